//! Searches outgoing data for a caller's token: plain, in either base64 alphabet at any alignment,
//! percent-encoded, or with JSON escapes.
//!
//! It searches for a window of the token's secret part, which a complete token always contains: the
//! signature of a JWT, or the random part of a key. So the cost is independent of the token's
//! length, and a token that lost a few characters is found too. Encrypted, compressed or otherwise
//! encoded tokens are not found.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::{self, Finder};
use std::borrow::Cow;
use std::fmt;

/// How many bytes of a token are searched for: 192 bits if they are base64url.
const WINDOW_BYTES: usize = 32;
/// How many times percent-encoding is undone, because encoded text may have been encoded again.
const MAX_DECODINGS: usize = 3;

/// The forms of a token that are searched for.
pub struct Needles {
    finders: Vec<Finder<'static>>,
    shortest: usize,
}

impl fmt::Debug for Needles {
    /// These are parts of a token, so only their number is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Needles").field("forms", &self.finders.len()).finish()
    }
}

impl Needles {
    pub fn of(token: &[u8]) -> Needles {
        let window = window_of(token);
        let mut forms: Vec<Vec<u8>> = vec![window.to_vec()];
        for skipped in 0..3 {
            // The bytes before the window share its first group, so the remainder starts at a group
            // boundary.
            let Some(rest) = window.get(skipped..) else { continue };
            let whole = rest.get(..rest.len() / 3 * 3).unwrap_or_default();
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let form = engine.encode(whole).into_bytes();
                if !form.is_empty() && !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        let shortest = forms.iter().map(Vec::len).min().unwrap_or(usize::MAX);
        let finders = forms.iter().map(|form| Finder::new(form).into_owned()).collect();
        Needles { finders, shortest }
    }

    /// Whether a text contains the token in any of its forms.
    pub fn occur_in(&self, text: &[u8]) -> bool {
        if text.len() < self.shortest {
            return false;
        }
        if self.is_in(text) {
            return true;
        }
        let plain = match has_escapes(text) {
            true => Cow::Owned(unescaped(text)),
            false => Cow::Borrowed(text),
        };
        if matches!(plain, Cow::Owned(_)) && self.is_in(&plain) {
            return true;
        }
        let mut decoded = plain;
        for _ in 0..MAX_DECODINGS {
            match percent_decoded(&decoded) {
                Some(further) if self.is_in(&further) => return true,
                Some(further) => decoded = Cow::Owned(further),
                None => return false,
            }
        }
        false
    }

    fn is_in(&self, text: &[u8]) -> bool {
        self.finders.iter().any(|finder| finder.find(text).is_some())
    }
}

/// The part of a token to search for, from the middle of its secret part.
fn window_of(token: &[u8]) -> &[u8] {
    let secret = memchr::memrchr(b'.', token).and_then(|dot| token.get(dot + 1..));
    let secret = secret.filter(|secret| secret.len() >= WINDOW_BYTES).unwrap_or(token);
    let start = secret.len().saturating_sub(WINDOW_BYTES) / 2;
    secret.get(start..(start + WINDOW_BYTES).min(secret.len())).unwrap_or(secret)
}

/// Whether a text contains JSON escapes that may stand for characters of a token.
fn has_escapes(text: &[u8]) -> bool {
    memchr::memchr(b'\\', text).is_some()
        && (memmem::find(text, br"\u00").is_some() || memmem::find(text, br"\/").is_some())
}

/// Undoes those escapes. Others are left unchanged, because no token contains their characters.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            plain.push(*first);
            continue;
        }
        match rest {
            [b'/', after @ ..] => {
                plain.push(b'/');
                rest = after;
            }
            [b'u', b'0', b'0', high, low, after @ ..] => match hex_byte(*high, *low) {
                Some(byte) => {
                    plain.push(byte);
                    rest = after;
                }
                None => plain.push(b'\\'),
            },
            // An escaped backslash does not start another escape.
            [escaped, after @ ..] => {
                plain.extend([b'\\', *escaped]);
                rest = after;
            }
            [] => plain.push(b'\\'),
        }
    }
    plain
}

/// Undoes percent-encoding; `None` if there is none.
fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let encodes = |at: &usize| match text.get(at + 1..at + 3) {
        Some([high, low]) => hex_byte(*high, *low).is_some(),
        Some(_) | None => false,
    };
    // Most percent signs encode nothing, so the text is copied only if one does.
    let first = memchr::memchr_iter(b'%', text).find(encodes)?;
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(text.get(..first)?);
    let mut rest = text.get(first..)?;
    while let Some((byte, after)) = rest.split_first() {
        let encoded = match after {
            [high, low, ..] if *byte == b'%' => hex_byte(*high, *low),
            _ => None,
        };
        match encoded {
            Some(encoded) => {
                decoded.push(encoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    Some(decoded)
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests;
