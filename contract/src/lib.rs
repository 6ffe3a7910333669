//! Reads what an MCP server declares about itself from untrusted bytes, brings it into one
//! canonical form, hashes it and compares it.
//!
//! This crate does no I/O, reads no clock and uses no randomness. It reports what changed; `gate`
//! decides whether a call may proceed.
#![forbid(unsafe_code)]
#![cfg_attr(holdpoint_small, feature(optimize_attribute))]

pub mod canonical;
pub mod change;
pub mod client;
pub mod decimal;
pub mod detail;
pub mod diff;
pub mod hash;
pub mod hidden;
pub mod inert;
pub mod json;
pub mod markers;
pub mod names;
pub mod origin;
#[cfg(any(test, target_family = "wasm"))]
#[cfg_attr(not(test), allow(dead_code, reason = "the build script writes what the library reads"))]
mod packing;
pub mod percent;
pub mod pointer;
pub mod schema;
pub mod sorted;
pub mod surface;
pub mod time;
pub mod trip;
