//! How the letters of words are compared, and the hash of a word. `build.rs` uses this file too, so it uses nothing of
//! the crate.

/// A byte between words.
pub(crate) const SEPARATOR: u8 = 0;
/// An apostrophe: part of the word around it and not spelled (`don't` is `dont`).
pub(crate) const SKIPPED: u8 = 1;
/// In what [`traits`] says of a byte, next to its class: it is a capital, or a small letter.
pub(crate) const CAPITAL: u16 = 1 << 8;
pub(crate) const SMALL: u16 = 1 << 9;
/// It is neither white space nor a character of ASCII that can be seen.
pub(crate) const UNSEEN: u16 = 1 << 10;
/// It is no letter, no digit, and neither `_` nor `-`.
pub(crate) const OF_NO_NAME: u16 = 1 << 11;
/// It is a `<`.
pub(crate) const TAG: u16 = 1 << 12;
const TRAITS: [u16; 256] = table_of_traits();

/// What each byte is to a word: itself in lower case, with letters and digits that pass for each other made one.
const fn table_of_traits() -> [u16; 256] {
    let mut table = [SEPARATOR as u16 | UNSEEN | OF_NO_NAME; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let class = match byte.to_ascii_lowercase() {
            b'i' | b'1' => b'l',
            b'0' => b'o',
            b'3' => b'e',
            b'4' => b'a',
            b'5' => b's',
            b'7' => b't',
            b'\'' => SKIPPED,
            lower if lower.is_ascii_alphanumeric() => lower,
            _ => SEPARATOR,
        } as u16;
        let look = match byte {
            b'A'..=b'Z' => CAPITAL,
            b'a'..=b'z' => SMALL,
            b'0'..=b'9' | b'_' | b'-' => 0,
            b'<' => OF_NO_NAME | TAG,
            b'\t' | b'\n' | b'\r' | b' '..=b'~' => OF_NO_NAME,
            _ => OF_NO_NAME | UNSEEN,
        };
        #[allow(
            clippy::indexing_slicing,
            reason = "a byte below 128 is within 256, and const code has no `get_mut`"
        )]
        {
            table[byte as usize] = class | look;
        }
        byte += 1;
    }
    table
}

/// What a byte is to a word: its class in the lower half, and what it looks like in the upper one.
#[inline(always)]
pub(crate) fn traits(byte: u8) -> u16 {
    TRAITS.get(usize::from(byte)).copied().unwrap_or(UNSEEN)
}

/// What a byte is to a word.
#[inline(always)]
pub(crate) fn class(byte: u8) -> u8 {
    traits(byte) as u8
}

/// A letter or digit as words are compared; nothing for any other byte.
pub(crate) fn normalized_byte(byte: u8) -> Option<u8> {
    Some(class(byte)).filter(|&class| class > SKIPPED)
}

/// The hash that the word loop keeps as it goes: one step a letter. Each step waits for the one before it, so there is no
/// multiplication in it: that is left to the search for a slot.
#[inline(always)]
pub(crate) fn hash_step(hash: u32, letter: u8) -> u32 {
    hash.rotate_left(5) ^ u32::from(letter)
}

pub(crate) const HASH_START: u32 = 0;
