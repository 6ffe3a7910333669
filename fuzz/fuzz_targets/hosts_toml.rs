//! A host's file in TOML may be any text: it is read or refused, and the way there and back ends where it began.
#![no_main]

use hosts::Syntax;
use libfuzzer_sys::fuzz_target;

#[path = "hosts_there_and_back.rs"]
mod hosts_there_and_back;

fuzz_target!(|text: &str| hosts_there_and_back::check(Syntax::Toml, &["codex"], text));
