//! A host's file in JSON may be any text: it is read or refused, and the way there and back ends where it began.

use crate::hosts_there_and_back;
use hosts::Syntax;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    hosts_there_and_back::check(Syntax::Json, &["opencode", "claude-code", "zed", "gemini"], text);
}
