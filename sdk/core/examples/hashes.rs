//! Reads captures, one per line, and prints the hashes of each, or `!` and the error. The SDKs of
//! other languages are compared with its output.
#![allow(clippy::print_stdout, reason = "it prints")]

use std::io::BufRead;

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        match sdk_core::checks::hash(&line?) {
            Ok(hashes) => println!("{hashes}"),
            Err(words) => println!("!{words}"),
        }
    }
    Ok(())
}
