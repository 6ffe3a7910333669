//! The header of a file: its recipients, and the authentication of the header.

use super::AgeError;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use std::borrow::Cow;

const VERSION: &[u8] = b"age-encryption.org/v1\n";
const ARMOR_BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const ARMOR_END: &str = "-----END AGE ENCRYPTED FILE-----";
/// The most recipients, of any kind.
const MAX_STANZAS: usize = 64;
/// The number of letters in a full line of a stanza's body.
const LINE_LETTERS: usize = 64;

pub(super) struct Header<'f> {
    /// The recipients with X25519 keys.
    pub(super) recipients: Vec<Recipient>,
    /// The authenticated bytes: everything up to `---`.
    pub(super) authenticated: &'f [u8],
    pub(super) mac: Vec<u8>,
    pub(super) payload: &'f [u8],
}

pub(super) struct Recipient {
    pub(super) share: [u8; 32],
    /// The file's key, wrapped for the recipient.
    pub(super) wrapped_key: [u8; 32],
}

/// Decodes a file that may be ASCII-armored.
pub(super) fn unarmored(file: &[u8]) -> Result<Cow<'_, [u8]>, AgeError> {
    if file.starts_with(VERSION) {
        return Ok(Cow::Borrowed(file));
    }
    let text = std::str::from_utf8(file).map_err(|_| AgeError::Damaged)?;
    let inside =
        text.trim().strip_prefix(ARMOR_BEGIN).and_then(|rest| rest.strip_suffix(ARMOR_END));
    let letters: String = inside.ok_or(AgeError::Damaged)?.split_whitespace().collect();
    STANDARD.decode(letters).map(Cow::Owned).map_err(|_| AgeError::Damaged)
}

impl<'f> Header<'f> {
    pub(super) fn read(file: &'f [u8]) -> Result<Header<'f>, AgeError> {
        Header::parse(file).ok_or(AgeError::Damaged)
    }

    fn parse(file: &'f [u8]) -> Option<Header<'f>> {
        let mut rest = file.strip_prefix(VERSION)?;
        let mut recipients = Vec::new();
        for _ in 0..MAX_STANZAS {
            let (line, after) = next_line(rest)?;
            if let Some(mac) = line.strip_prefix("--- ") {
                let before_mac = file.len().checked_sub(rest.len())?.checked_add(3)?;
                let mac = decoded(mac)?;
                let authenticated = file.get(..before_mac)?;
                return Some(Header { recipients, authenticated, mac, payload: after });
            }
            let mut words = line.strip_prefix("-> ")?.split(' ');
            let (kind, argument) = (words.next()?, words.next());
            let (body, after) = body(after)?;
            rest = after;
            if kind == "X25519" && words.next().is_none() {
                let share = decoded(argument?)?.try_into().ok()?;
                let wrapped_key = body.try_into().ok()?;
                recipients.push(Recipient { share, wrapped_key });
            }
        }
        None
    }
}

/// The body of a stanza, and what follows it: the body consists of full lines and one shorter line.
fn body(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut letters = String::new();
    loop {
        let (line, after) = next_line(rest)?;
        letters += line;
        rest = after;
        match line.len() {
            ..LINE_LETTERS => return Some((decoded(&letters)?, rest)),
            LINE_LETTERS => {}
            _ => return None,
        }
    }
}

fn next_line(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(text.get(..end)?).ok()?;
    Some((line, text.get(end + 1..)?))
}

fn decoded(letters: &str) -> Option<Vec<u8>> {
    STANDARD_NO_PAD.decode(letters).ok()
}
