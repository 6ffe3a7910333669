//! JSON strings: unescaping what the parser has already checked, escaping as RFC 8785 does, and its member order.

use std::cmp::Ordering;

/// The text of a string's inside. The parser has refused bad escapes and lone surrogates, so nothing is lost here.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub(super) fn unescape(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        text.push_str(rest.get(..at).unwrap_or(""));
        let escape = rest.get(at + 1..).unwrap_or("");
        let (character, used) = unescape_one(escape);
        text.push(character);
        rest = escape.get(used..).unwrap_or("");
    }
    text.push_str(rest);
    text
}

/// The character that an escape (without its backslash) stands for, and how many bytes the escape has.
fn unescape_one(escape: &str) -> (char, usize) {
    match escape.bytes().next() {
        Some(b'b') => ('\u{8}', 1),
        Some(b'f') => ('\u{c}', 1),
        Some(b'n') => ('\n', 1),
        Some(b'r') => ('\r', 1),
        Some(b't') => ('\t', 1),
        Some(b'u') => {
            let first = hex4(escape.get(1..5));
            if let Some(character) = char::from_u32(first) {
                return (character, 5);
            }
            let second = hex4(escape.get(7..11));
            let code = 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
            (char::from_u32(code).unwrap_or('\u{fffd}'), 11)
        }
        Some(other) => (char::from(other), 1),
        None => ('\\', 0),
    }
}

fn hex4(digits: Option<&str>) -> u32 {
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xfffd)
}

/// How many bytes of a string's inside need no look: up to the first quote, backslash or control character.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            return bytes.len() - rest.len() + specials.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    bytes.len() - rest.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// The quotes, backslashes and control characters among eight bytes, as the top bits of their places. What is above the
/// lowest one may be wrong, because of carries; the lowest one is right.
#[inline]
pub fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let equal = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        difference.wrapping_sub(ONES) & !difference
    };
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    (equal(b'"') | equal(b'\\') | below_space) & TOPS
}

/// Writes a string with quotes and the escapes of RFC 8785.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub fn escape_into(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    // JSON within a string has a quote every few bytes, and to append so few costs more than to look at them. So eight bytes
    // are stored at a time, of which those before the first special one count.
    let mut block = [0; BLOCK];
    let mut length = 0;
    let mut rest = text.as_bytes();
    while let Some(word) = rest.first_chunk::<8>() {
        if length > BLOCK - 16 {
            out.extend_from_slice(block.get(..length).unwrap_or_default());
            length = 0;
        }
        if let Some(place) = block.get_mut(length..length + 8) {
            place.copy_from_slice(word);
        }
        let plain = specials(u64::from_le_bytes(*word)).trailing_zeros() as usize / 8;
        length += plain;
        rest = rest.get(plain..).unwrap_or_default();
        let Some(&special) = word.get(plain) else { continue };
        rest = rest.get(1..).unwrap_or_default();
        if special < b' ' {
            out.extend_from_slice(block.get(..length).unwrap_or_default());
            length = 0;
            escape_one(special, out);
        } else if let Some(place) = block.get_mut(length..length + 2) {
            place.copy_from_slice(&[b'\\', special]);
            length += 2;
        }
    }
    out.extend_from_slice(block.get(..length).unwrap_or_default());
    for &byte in rest {
        match byte {
            b'"' | b'\\' | ..b' ' => escape_one(byte, out),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// How many bytes are gathered before they are appended.
const BLOCK: usize = 256;

fn escape_one(byte: u8, out: &mut Vec<u8>) {
    const HEX: [u8; 16] = *b"0123456789abcdef";
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x09 => out.extend_from_slice(b"\\t"),
        0x0a => out.extend_from_slice(b"\\n"),
        0x0c => out.extend_from_slice(b"\\f"),
        0x0d => out.extend_from_slice(b"\\r"),
        control => {
            let low = HEX.get(usize::from(control & 0xf)).copied().unwrap_or(b'0');
            let high = HEX.get(usize::from(control >> 4)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    }
}

/// Appends a few bytes. Most pieces of JSON are shorter than what makes a call that copies memory worth it, as
/// WebAssembly needs one.
#[inline(always)]
pub(crate) fn append(bytes: &[u8], out: &mut Vec<u8>) {
    const FEW: usize = 64;
    if bytes.len() > FEW {
        return out.extend_from_slice(bytes);
    }
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| out.extend_from_slice(word));
    rest.iter().for_each(|&byte| out.push(byte));
}

/// The order of member names in RFC 8785: by UTF-16 code units.
///
/// Byte order is the same but where one string has a character above U+FFFF and the other one from U+E000 to U+FFFF.
pub fn utf16_order(left: &str, right: &str) -> Ordering {
    // Names may be long and begin alike, and whole chunks are compared at once.
    const CHUNK: usize = 32;
    let (a, b) = (left.as_bytes(), right.as_bytes());
    let mut chunks = a.chunks(CHUNK).zip(b.chunks(CHUNK));
    let Some((a_rest, b_rest)) = chunks.find(|(x, y)| x != y) else {
        return a.len().cmp(&b.len());
    };
    let Some((&x, &y)) = a_rest.iter().zip(b_rest).find(|(x, y)| x != y) else {
        return a.len().cmp(&b.len());
    };
    // Lead bytes 0xEE and 0xEF start U+E000 to U+FFFF, 0xF0 and above start what UTF-16 writes as surrogates.
    match (x, y) {
        (0xee..=0xef, 0xf0..) => Ordering::Greater,
        (0xf0.., 0xee..=0xef) => Ordering::Less,
        _ => x.cmp(&y),
    }
}
