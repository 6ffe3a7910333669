//! How the letters of words are compared, and the hash of a word. `build.rs` uses this file too, so it uses nothing of
//! the crate.

/// A byte between words.
pub(crate) const SEPARATOR: u8 = 0;
/// An apostrophe: part of the word around it and not spelled (`don't` is `dont`).
pub(crate) const SKIPPED: u8 = 1;
/// In what [`traits`] says of a byte, next to its class: it is a capital, or a small letter.
pub(crate) const CAPITAL: u16 = 1 << 8;
pub(crate) const SMALL: u16 = 1 << 9;
const TRAITS: [u16; 256] = table_of_traits();

/// What each byte is to a word: itself in lower case, with letters and digits that pass for each other made one.
const fn table_of_traits() -> [u16; 256] {
    let mut table = [SEPARATOR as u16; 256];
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
        let case = match byte {
            b'A'..=b'Z' => CAPITAL,
            b'a'..=b'z' => SMALL,
            _ => 0,
        };
        #[allow(
            clippy::indexing_slicing,
            reason = "a byte below 128 is within 256, and const code has no `get_mut`"
        )]
        {
            table[byte as usize] = class | case;
        }
        byte += 1;
    }
    table
}

/// What a byte is to a word: its class in the lower half, and its case.
#[inline(always)]
pub(crate) fn traits(byte: u8) -> u16 {
    TRAITS.get(usize::from(byte)).copied().unwrap_or(SEPARATOR as u16)
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

/// The hash that the word loop keeps as it goes: one step a byte.
#[inline(always)]
pub(crate) fn hash_step(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

pub(crate) const HASH_START: u32 = 0x811c_9dc5;
