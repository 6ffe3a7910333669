//! A host's JSON file may be any text: it is parsed or refused, and wiring and unwiring restore it.

use crate::hosts_there_and_back;
use hosts::Syntax;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    hosts_there_and_back::check(Syntax::Json, &["opencode", "claude-code", "zed", "gemini"], text);
}
