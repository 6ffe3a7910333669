//! Signed notes in the format of c2sp.org/signed-note: a text, an empty line, and signature lines.
//!
//! Only Ed25519 signatures are supported. Signature lines of other keys and types are ignored, so
//! that witnesses may add theirs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub mod cosignature;
mod key;

pub use key::{BadKey, BadKeyring, Keyring, MAX_KEYS, MAX_NAME_BYTES, SigningKey, VerifyingKey};

/// The longest note that is opened, in bytes. It has room for sixteen signatures of the largest
/// types in use.
pub const MAX_NOTE_BYTES: usize = 128 * 1024;

/// The most signatures in a note. A note with more is refused.
pub const MAX_SIGNATURES: usize = 100;

pub(crate) const SIGNATURE_PREFIX: &str = "— ";
const KEY_ID_BYTES: usize = 4;

/// Why a note cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("it is longer than {MAX_NOTE_BYTES} bytes")]
    TooLong,
    #[error(
        "line {line} has a control character, such as the carriage return of a changed line end"
    )]
    ControlCharacter { line: usize },
    #[error("it is not a signed note: an empty line and signatures belong at its end")]
    NoSignatures,
    #[error("line {line} is not a signature, and only signatures may follow the empty line")]
    BadSignatureLine { line: usize },
    #[error("it has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    #[error("no known key has signed it")]
    UnknownSigners,
    #[error("the signature by `{name}` does not belong to this text")]
    WrongSignature { name: String },
}

/// Signs a text, which must end with a newline and contain no other control characters.
pub fn sign(text: &str, key: &SigningKey) -> String {
    debug_assert!(text.ends_with('\n') && !text.chars().any(is_forbidden), "{text:?}");
    let mut signature = key.verifying_key().key_id().to_be_bytes().to_vec();
    signature.extend_from_slice(&key.sign_bytes(text.as_bytes()));
    let signature = STANDARD.encode(signature);
    format!("{text}\n{SIGNATURE_PREFIX}{} {signature}\n", key.name())
}

/// Returns the text of a note, with its last newline, and the first known key that signed it.
///
/// Every signature that names a known key must verify: an invalid one is a sign of tampering, even
/// if others are valid.
pub fn open<'t, 'k>(
    note: &'t str,
    keys: &'k Keyring,
) -> Result<(&'t str, &'k VerifyingKey), NoteError> {
    if note.len() > MAX_NOTE_BYTES {
        return Err(NoteError::TooLong);
    }
    if let Some(at) = note.find(is_forbidden) {
        return Err(NoteError::ControlCharacter { line: line_number(note, at) });
    }
    let (text, signatures) = split(note).ok_or(NoteError::NoSignatures)?;
    let first_line = line_number(note, note.len() - signatures.len());
    let mut signer = None;
    for (number, line) in signatures.lines().enumerate() {
        if number == MAX_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        let bad_line = NoteError::BadSignatureLine { line: first_line + number };
        let signature = SignatureLine::parse(line).ok_or(bad_line)?;
        let Some(key) = keys.find(signature.name, signature.key_id) else { continue };
        if !key.has_signed(text.as_bytes(), &signature.bytes) {
            return Err(NoteError::WrongSignature { name: key.name().to_owned() });
        }
        signer.get_or_insert(key);
    }
    signer.map(|key| (text, key)).ok_or(NoteError::UnknownSigners)
}

/// Splits a note at the last empty line into the text with its newline, and the signature lines.
pub fn split(note: &str) -> Option<(&str, &str)> {
    let (text, signatures) = note.split_at_checked(note.rfind("\n\n")? + 1)?;
    let signatures = signatures.strip_prefix('\n')?;
    signatures.ends_with('\n').then_some((text, signatures))
}

struct SignatureLine<'t> {
    name: &'t str,
    key_id: u32,
    bytes: Vec<u8>,
}

impl<'t> SignatureLine<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix(SIGNATURE_PREFIX)?.split_once(' ')?;
        let decoded = STANDARD.decode(encoded).ok()?;
        let (key_id, bytes) = decoded.split_first_chunk::<KEY_ID_BYTES>()?;
        let is_signature = key::is_name(name) && !bytes.is_empty();
        is_signature.then(|| SignatureLine {
            name,
            key_id: u32::from_be_bytes(*key_id),
            bytes: bytes.to_vec(),
        })
    }
}

fn is_forbidden(character: char) -> bool {
    character < ' ' && character != '\n'
}

/// The line number, counted from 1, of a byte.
fn line_number(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests;
