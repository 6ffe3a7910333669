//! What an MCP server says of itself, read from hostile bytes, brought into one canonical form, hashed and compared.
//!
//! This crate does no I/O and knows no clock and no randomness. It says what changed; whether a call may go on is
//! decided in `gate`.
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
