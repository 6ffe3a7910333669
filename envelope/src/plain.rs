//! Skips over the inside of a string many bytes at a time: first eight-byte words, then blocks that
//! the compiler can vectorize.

use contract::json::specials;

/// How many bytes from the start of a string's inside are plain: up to the first quote, backslash
/// or control character.
#[inline]
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    // Most names and many strings end within one word.
    match bytes.split_first_chunk::<8>() {
        Some((word, rest)) => match specials(u64::from_le_bytes(*word)) {
            0 => 8 + plain_bytes_of_more(rest),
            specials => specials.trailing_zeros() as usize / 8,
        },
        None => plain_bytes_singly(bytes),
    }
}

#[inline(never)]
fn plain_bytes_of_more(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    let mut words = 0;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            return bytes.len() - rest.len() + specials.trailing_zeros() as usize / 8;
        }
        rest = after;
        words += 1;
        if words == WORDS_BEFORE_BLOCKS {
            rest = after_plain_blocks(rest);
        }
    }
    bytes.len() - rest.len() + plain_bytes_singly(rest)
}

fn after_plain_blocks(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
        if !is_plain(block) {
            break;
        }
        rest = after;
    }
    rest
}

/// Blocks are for long strings; shorter ones end within these words.
const WORDS_BEFORE_BLOCKS: usize = 4;
const BLOCK: usize = 64;

fn plain_bytes_singly(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len())
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Has no branch inside, so that the compiler can vectorize it.
#[inline]
fn is_plain(block: &[u8; BLOCK]) -> bool {
    block.iter().fold(0, |found, &byte| found | u8::from(is_special(byte))) == 0
}

#[cfg(test)]
mod tests;
