//! Hostile programs by name, each with a harmless counterpart; and `drive`, which runs one of them
//! confined.
//!
//! A program prints `done` if it succeeded, and `refused: WHY` otherwise.
#![cfg_attr(
    not(target_os = "linux"),
    allow(unused, reason = "the programs below try what Linux has")
)]
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this program attacks: it calls the kernel directly, and its faults end one test"
)]

#[cfg(target_os = "linux")]
#[path = "probe/acts.rs"]
mod acts;
#[cfg(target_os = "linux")]
#[path = "probe/drive.rs"]
mod drive;
#[cfg(target_os = "linux")]
#[path = "probe/kernel.rs"]
mod kernel;
#[cfg(target_os = "linux")]
#[path = "probe/network.rs"]
mod network;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = sandbox::helper_main() {
        return code;
    }
    #[cfg(target_os = "linux")]
    {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["drive", profile, rest @ ..] => return drive::drive(profile, rest),
            [act, arguments @ ..] => match acts::act(act, arguments) {
                Ok(told) => println!("done {told}"),
                Err(error) => println!("refused: {error}"),
            },
            [] => return ExitCode::FAILURE,
        }
    }
    ExitCode::SUCCESS
}
