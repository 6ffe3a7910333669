//! Decrypts age files (`age-encryption.org/v1`) for X25519 recipients: the part of the format that
//! secrets need. Files for passphrases, SSH keys and plugins are not supported.
//!
//! INVARIANT: nothing of a file is used before its header and all of its content were
//! authenticated.

mod identity;
mod stanza;

use curve25519_dalek::montgomery::MontgomeryPoint;
use identity::AgeIdentity;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;
use stanza::{Header, Recipient};
use zeroize::Zeroizing;

/// The largest file that is read.
pub(super) const MAX_AGE_BYTES: usize = 128 * 1024;
/// The size of a plaintext chunk, and of its authentication tag.
const CHUNK_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;
const FILE_KEY_BYTES: usize = 16;
const NONCE_BYTES: usize = 16;

/// Why a file cannot be decrypted. Contains nothing of the file or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AgeError {
    #[error("it is not a file that age encrypted, or it is damaged")]
    Damaged,
    #[error("it is larger than {MAX_AGE_BYTES} bytes")]
    TooLarge,
    #[error("the identity has no line `AGE-SECRET-KEY-1…`, or one that is not complete")]
    BadIdentity,
    #[error("it was not encrypted for this identity")]
    OtherRecipient,
    #[error("its content is not a text")]
    NotText,
    #[error("it has no line that begins with this name and `=`")]
    NoSuchName,
}

/// The text in a file: all of it, or the value of a line `NAME=…`.
pub(super) fn read(
    file: &[u8],
    identity: &str,
    name: Option<&str>,
) -> Result<Zeroizing<String>, AgeError> {
    let plain = decrypt(file, identity)?;
    let text = std::str::from_utf8(&plain).map_err(|_| AgeError::NotText)?;
    let value = match name {
        None => text.trim_end(),
        Some(name) => {
            let value = |line: &'_ str| {
                line.split_once('=').filter(|(known, _)| known.trim() == name).is_some()
            };
            let line = text.lines().find(|line| value(line)).ok_or(AgeError::NoSuchName)?;
            line.split_once('=').map_or("", |(_, value)| value.trim())
        }
    };
    Ok(Zeroizing::new(value.to_owned()))
}

fn decrypt(file: &[u8], identity: &str) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    if file.len() > MAX_AGE_BYTES {
        return Err(AgeError::TooLarge);
    }
    let identities = AgeIdentity::read_all(identity)?;
    let unarmored = stanza::unarmored(file)?;
    let header = Header::read(&unarmored)?;
    let mut opened = (header.recipients.iter())
        .flat_map(|recipient| identities.iter().map(move |identity| (recipient, identity)))
        .filter_map(|(recipient, identity)| open_file_key(recipient, identity));
    let file_key = opened.next().ok_or(AgeError::OtherRecipient)?;
    let mac_key = derive(&[], &*file_key, b"header");
    let mac_key = hmac::Key::new(hmac::HMAC_SHA256, &*mac_key);
    hmac::verify(&mac_key, header.authenticated, &header.mac).map_err(|_| AgeError::Damaged)?;
    let (nonce, content) = header.payload.split_at_checked(NONCE_BYTES).ok_or(AgeError::Damaged)?;
    open_content(&derive(nonce, &*file_key, b"payload"), content)
}

/// The file's key, if it was wrapped for this identity.
fn open_file_key(
    recipient: &Recipient,
    identity: &AgeIdentity,
) -> Option<Zeroizing<[u8; FILE_KEY_BYTES]>> {
    let shared = MontgomeryPoint(recipient.share).mul_clamped(*identity.secret);
    let shared = Zeroizing::new(shared.to_bytes());
    // A shared secret from a point of low order would be known to everyone.
    if shared.iter().all(|byte| *byte == 0) {
        return None;
    }
    let salt = [recipient.share.as_slice(), &identity.public].concat();
    let key = derive(&salt, &*shared, b"age-encryption.org/v1/X25519");
    let mut wrapped = Zeroizing::new(recipient.wrapped_key.to_vec());
    let opened = aead(&key)?
        .open_in_place(Nonce::assume_unique_for_key([0; 12]), Aad::empty(), &mut wrapped)
        .ok()?;
    let mut file_key = Zeroizing::new([0; FILE_KEY_BYTES]);
    if opened.len() != FILE_KEY_BYTES {
        return None;
    }
    file_key.copy_from_slice(opened);
    Some(file_key)
}

/// Decrypts the chunks of the content, each of which authenticates its number and whether it is the
/// last.
fn open_content(key: &[u8; 32], content: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let key = aead(key).ok_or(AgeError::Damaged)?;
    let chunks: Vec<&[u8]> = content.chunks(CHUNK_BYTES + TAG_BYTES).collect();
    let mut plain = Zeroizing::new(Vec::with_capacity(content.len()));
    for (number, chunk) in chunks.iter().enumerate() {
        let is_last = number + 1 == chunks.len();
        let mut nonce = [0_u8; 12];
        let number_bytes = (number as u64).to_be_bytes();
        for (to, from) in nonce.iter_mut().skip(3).zip(number_bytes) {
            *to = from;
        }
        if let Some(last) = nonce.last_mut() {
            *last = u8::from(is_last);
        }
        let mut chunk = Zeroizing::new(chunk.to_vec());
        let opened = key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut chunk)
            .map_err(|_| AgeError::Damaged)?;
        // Only a file without content has an empty last chunk.
        if opened.is_empty() && number > 0 {
            return Err(AgeError::Damaged);
        }
        plain.extend_from_slice(opened);
    }
    if chunks.is_empty() { Err(AgeError::Damaged) } else { Ok(plain) }
}

fn aead(key: &[u8; 32]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new)
}

/// HKDF with SHA-256.
fn derive(salt: &[u8], secret: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let expanded = extracted.expand(&[info], HKDF_SHA256).and_then(|okm| okm.fill(&mut *key));
    // The length equals that of the hash, so this cannot fail. If it did, the zeroed key would
    // decrypt nothing.
    if expanded.is_err() {
        key.fill(0);
    }
    key
}

#[cfg(test)]
mod tests;
