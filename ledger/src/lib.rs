//! Tamper-evident receipts: records, hash chains, Merkle checkpoints, verification, proofs and
//! export formats.
//!
//! Nothing here accesses files, clocks or key files: bytes go through the traits in [`folder`];
//! times, keys and ids are passed as arguments.
#![forbid(unsafe_code)]

pub mod chain;
pub mod checkpoint;
mod digits;
pub mod drafts;
pub mod export;
pub mod folder;
pub mod index;
pub mod line;
pub mod lines;
pub mod memory;
pub mod note;
pub mod proof;
pub mod prove;
pub mod receipt;
pub mod record;
pub mod sample;
pub mod tree;
pub mod verify;
