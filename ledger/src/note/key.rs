//! Keys that sign and verify notes, in the text formats of c2sp.org/signed-note and
//! golang.org/x/mod/sumdb/note.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer;
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// The longest name of a key, in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// The most keys in a keyring.
pub const MAX_KEYS: usize = 16;

/// The type byte of Ed25519, which precedes the key.
const ED25519: u8 = 1;
const KEY_BYTES: usize = 32;
const TYPED_KEY_BYTES: usize = 1 + KEY_BYTES;
const PRIVATE_PREFIX: &str = "PRIVATE+KEY+";

/// Why a text is not a key. Never contains any of the text, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error(
        "a key's name has 1 to {MAX_NAME_BYTES} bytes, without spaces, `+` and control characters"
    )]
    Name,
    #[error(
        "a public key reads `name+hash+key`: 8 hexadecimal digits, then 44 characters of base64"
    )]
    Public,
    #[error(
        "a private key reads `PRIVATE+KEY+name+hash+key`: 8 hexadecimal digits, then 44 characters of base64"
    )]
    Private,
    #[error("this is a private key, where a public one belongs")]
    NotPublic,
    #[error("the key is of another kind than Ed25519")]
    Kind,
    #[error("the key's hash is not that of its name and its bytes")]
    Hash,
    #[error("the key is not a point of the curve, or is one for which signatures can be forged")]
    Point,
}

/// A signing key. The secret is wiped on drop, and never shown by [`fmt::Debug`].
pub struct SigningKey {
    secret: ed25519_dalek::SigningKey,
    public: VerifyingKey,
}

impl SigningKey {
    /// Creates the key from 32 random bytes.
    pub fn generate(name: &str, seed: [u8; 32]) -> Result<SigningKey, BadKey> {
        Self::from_seed(name, &Zeroizing::new(seed))
    }

    /// Parses the output of [`SigningKey::to_text`], with or without a trailing newline.
    pub fn parse(text: &str) -> Result<SigningKey, BadKey> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_prefix(PRIVATE_PREFIX).ok_or(BadKey::Private)?;
        let (name, hash, seed) = parse_parts(text, BadKey::Private)?;
        let key = Self::from_seed(name, &seed)?;
        if key.public.hash_text() == hash { Ok(key) } else { Err(BadKey::Hash) }
    }

    /// The text of the private key, without a newline.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut typed = Zeroizing::new([ED25519; TYPED_KEY_BYTES]);
        typed.iter_mut().skip(1).zip(self.secret.as_bytes()).for_each(|(to, byte)| *to = *byte);
        let encoded = Zeroizing::new(STANDARD.encode(*typed));
        let (name, hash) = (self.name(), self.public.hash_text());
        let parts = [PRIVATE_PREFIX, name, "+", &hash, "+", &encoded];
        // Allocate the full capacity at once: growing would leave copies of the secret in memory.
        let mut text =
            Zeroizing::new(String::with_capacity(parts.iter().map(|part| part.len()).sum()));
        parts.iter().for_each(|part| text.push_str(part));
        text
    }

    pub fn name(&self) -> &str {
        &self.public.name
    }

    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    pub(super) fn sign_bytes(&self, bytes: &[u8]) -> [u8; 64] {
        self.secret.sign(bytes).to_bytes()
    }

    fn from_seed(name: &str, seed: &[u8; 32]) -> Result<SigningKey, BadKey> {
        let secret = ed25519_dalek::SigningKey::from_bytes(seed);
        let public = VerifyingKey::new(name, secret.verifying_key())?;
        Ok(SigningKey { secret, public })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({}+{})", self.name(), self.public.hash_text())
    }
}

/// A verifying key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    name: String,
    key_id: u32,
    key: ed25519_dalek::VerifyingKey,
}

impl VerifyingKey {
    /// Parses the output of [`fmt::Display`], with or without a trailing newline.
    pub fn parse(text: &str) -> Result<VerifyingKey, BadKey> {
        if text.starts_with(PRIVATE_PREFIX) {
            return Err(BadKey::NotPublic);
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        let (name, hash, bytes) = parse_parts(text, BadKey::Public)?;
        let point = ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| BadKey::Point)?;
        let key = Self::new(name, point)?;
        if key.hash_text() == hash { Ok(key) } else { Err(BadKey::Hash) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number that identifies this key and its name in signatures. It is short: it only serves
    /// to find the key, and proves nothing.
    pub fn key_id(&self) -> u32 {
        self.key_id
    }

    pub(super) fn to_bytes(&self) -> [u8; KEY_BYTES] {
        self.key.to_bytes()
    }

    pub(super) fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else { return false };
        // Strict verification: each signature has a single valid encoding.
        self.key.verify_strict(text, &signature).is_ok()
    }

    fn new(name: &str, key: ed25519_dalek::VerifyingKey) -> Result<Self, BadKey> {
        if !is_name(name) {
            return Err(BadKey::Name);
        }
        if key.is_weak() {
            return Err(BadKey::Point);
        }
        let hasher = Sha256::new_with_prefix(name).chain_update([b'\n', ED25519]);
        let hash: [u8; 32] = hasher.chain_update(key.as_bytes()).finalize().into();
        let [first, second, third, fourth, ..] = hash;
        let key_id = u32::from_be_bytes([first, second, third, fourth]);
        Ok(VerifyingKey { name: name.to_owned(), key_id, key })
    }

    fn hash_text(&self) -> String {
        format!("{:08x}", self.key_id)
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut typed = vec![ED25519];
        typed.extend_from_slice(self.key.as_bytes());
        write!(formatter, "{}+{}+{}", self.name, self.hash_text(), STANDARD.encode(typed))
    }
}

/// The trusted keys: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyring(Vec<VerifyingKey>);

/// Why a text is not a list of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKeyring {
    #[error("line {line}: {source}")]
    Key { line: usize, source: BadKey },
    #[error("there is no key in it")]
    Empty,
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
    #[error("line {line}: another key has the same name and hash")]
    Ambiguous { line: usize },
}

impl Keyring {
    /// Parses one public key per line. Ignores empty lines and lines that start with `#`.
    pub fn from_text(text: &str) -> Result<Keyring, BadKeyring> {
        let mut keys: Vec<VerifyingKey> = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line_number = number + 1;
            let key = VerifyingKey::parse(line)
                .map_err(|source| BadKeyring::Key { line: line_number, source })?;
            match keys.iter().find(|known| known.key_id == key.key_id && known.name == key.name) {
                Some(known) if *known == key => continue,
                Some(_) => return Err(BadKeyring::Ambiguous { line: line_number }),
                None if keys.len() == MAX_KEYS => return Err(BadKeyring::TooMany),
                None => keys.push(key),
            }
        }
        if keys.is_empty() { Err(BadKeyring::Empty) } else { Ok(Keyring(keys)) }
    }

    pub fn keys(&self) -> &[VerifyingKey] {
        &self.0
    }

    pub(super) fn find(&self, name: &str, key_id: u32) -> Option<&VerifyingKey> {
        self.0.iter().find(|key| key.key_id == key_id && key.name == name)
    }
}

impl From<VerifyingKey> for Keyring {
    fn from(key: VerifyingKey) -> Self {
        Keyring(vec![key])
    }
}

/// Displays the names of the keys.
impl fmt::Display for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, key) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(formatter, "{separator}{}", key.name)?;
        }
        Ok(())
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let is_forbidden =
        |character: char| character.is_whitespace() || character.is_control() || character == '+';
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(is_forbidden)
}

type Parts<'t> = (&'t str, &'t str, Zeroizing<[u8; KEY_BYTES]>);

/// Splits `name+hash+key`, and removes the type byte from the key.
fn parse_parts(text: &str, bad_shape: BadKey) -> Result<Parts<'_>, BadKey> {
    let parts = text.split_once('+').and_then(|(name, rest)| Some((name, rest.split_once('+')?)));
    let Some((name, (hash, encoded))) = parts else { return Err(bad_shape) };
    let mut typed = Zeroizing::new([0; TYPED_KEY_BYTES]);
    let length = STANDARD.decode_slice(encoded, &mut *typed).unwrap_or_default();
    let (TYPED_KEY_BYTES, Some((kind, key))) = (length, typed.split_first_chunk::<1>()) else {
        return Err(bad_shape);
    };
    if *kind != [ED25519] {
        return Err(BadKey::Kind);
    }
    let key = key.first_chunk().ok_or(bad_shape)?;
    Ok((name, hash, Zeroizing::new(*key)))
}

#[cfg(test)]
mod tests;
