//! Properties that must hold for any input of each parser of untrusted bytes. A check panics if its
//! property is violated.
//!
//! Used twice: `fuzz/` explores inputs with a sanitizer, which takes minutes, and `tests/replay.rs`
//! runs the seeds and earlier failing inputs with every test run.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a check that fails panics: the fuzzer and the test runner report that"
)]

pub mod attestation;
pub mod canonical;
pub mod confinement;
pub mod consult;
pub mod diff;
pub mod directory;
pub mod envelope;
pub mod hosts_json;
mod hosts_there_and_back;
pub mod hosts_toml;
pub mod hosts_yaml;
pub mod installed;
pub mod ledger;
pub mod lines;
pub mod markers;
pub mod network;
pub mod pins_line;
pub mod proofs;
pub mod reader;
pub mod redirect_uris;
pub mod screen;
pub mod sdk_session;
pub mod sign_in_challenge;
pub mod sign_in_metadata;
