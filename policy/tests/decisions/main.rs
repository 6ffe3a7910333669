//! Tests the decisions of policies through the crate's public API: each allow has a deny
//! counterpart.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

mod admin;
mod agreement;
mod compiling;
mod deciding;
mod entities;
mod explaining;
mod scene;
mod timing;
