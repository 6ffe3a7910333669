//! Cosignatures of witnesses in the format of c2sp.org/tlog-cosignature: a witness states that it
//! saw a checkpoint at a time, and never saw one that contradicts it.

use super::key::{BadKey, SigningKey, is_name};
use super::{SIGNATURE_PREFIX, SignatureLine, split};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt;

/// The type byte of Ed25519 cosignatures, which precedes the key.
const COSIGNATURE: u8 = 4;
const TIME_BYTES: usize = 8;

/// The public key of a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    key_id: u32,
    key: ed25519_dalek::VerifyingKey,
}

/// A checkpoint that a witness saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigned {
    pub witness: String,
    /// Unix time in seconds, by the witness's clock.
    pub seconds: u64,
}

impl WitnessKey {
    /// The cosigning key with the same bytes as a key that signs notes.
    pub fn of(key: &SigningKey) -> Result<WitnessKey, BadKey> {
        WitnessKey::new(key.name(), key.verifying_key().to_bytes())
    }

    /// Parses `name+hash+key`.
    pub fn parse(text: &str) -> Result<WitnessKey, BadKey> {
        let parts = text.trim_end_matches('\n').split_once('+');
        let parts = parts.and_then(|(name, rest)| Some((name, rest.split_once('+')?)));
        let Some((name, (hash, encoded))) = parts else { return Err(BadKey::Public) };
        let typed = STANDARD.decode(encoded).map_err(|_| BadKey::Public)?;
        let Some((&kind, bytes)) = typed.split_first() else { return Err(BadKey::Public) };
        if kind != COSIGNATURE {
            return Err(BadKey::Kind);
        }
        let key = WitnessKey::new(name, bytes.try_into().map_err(|_| BadKey::Public)?)?;
        if format!("{:08x}", key.key_id) == hash { Ok(key) } else { Err(BadKey::Hash) }
    }

    fn new(name: &str, bytes: [u8; 32]) -> Result<WitnessKey, BadKey> {
        if !is_name(name) {
            return Err(BadKey::Name);
        }
        let key = ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| BadKey::Point)?;
        if key.is_weak() {
            return Err(BadKey::Point);
        }
        let hasher = Sha256::new_with_prefix(name).chain_update([b'\n', COSIGNATURE]);
        let hash: [u8; 32] = hasher.chain_update(bytes).finalize().into();
        let [first, second, third, fourth, ..] = hash;
        let key_id = u32::from_be_bytes([first, second, third, fourth]);
        Ok(WitnessKey { name: name.to_owned(), key_id, key })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// This witness's cosignature of a note, if there is one that verifies.
    pub fn cosigned(&self, note: &str) -> Option<Cosigned> {
        let (text, signatures) = split(note)?;
        signatures.lines().take(super::MAX_SIGNATURES).find_map(|line| {
            let line = SignatureLine::parse(line)?;
            let is_mine = line.name == self.name && line.key_id == self.key_id;
            let (time, signature) = line.bytes.split_first_chunk::<TIME_BYTES>()?;
            let seconds = u64::from_be_bytes(*time);
            let signature = ed25519_dalek::Signature::from_slice(signature).ok()?;
            let said = message(text, seconds);
            let verifies = is_mine && self.key.verify_strict(&said, &signature).is_ok();
            verifies.then(|| Cosigned { witness: self.name.clone(), seconds })
        })
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut typed = vec![COSIGNATURE];
        typed.extend_from_slice(self.key.as_bytes());
        write!(formatter, "{}+{:08x}+{}", self.name, self.key_id, STANDARD.encode(typed))
    }
}

/// The cosignature line of a witness for the text of a checkpoint, with its newline.
pub fn cosign(text: &str, key: &SigningKey, seconds: u64) -> Result<String, BadKey> {
    let mut bytes = WitnessKey::of(key)?.key_id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&seconds.to_be_bytes());
    bytes.extend_from_slice(&key.sign_bytes(&message(text, seconds)));
    Ok(format!("{SIGNATURE_PREFIX}{} {}\n", key.name(), STANDARD.encode(bytes)))
}

fn message(text: &str, seconds: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {seconds}\n{text}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, seed: u8) -> SigningKey {
        SigningKey::generate(name, [seed; 32]).unwrap()
    }

    const TEXT: &str = "a.example/log\n1\nqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo=\n";

    #[test]
    fn a_cosignature_verifies_for_its_witness_and_its_text_only() {
        let witness = key("w.example", 1);
        let line = cosign(TEXT, &witness, 1_700_000_000).unwrap();
        let note = format!("{TEXT}\n{line}");
        let public = WitnessKey::parse(&WitnessKey::of(&witness).unwrap().to_string()).unwrap();
        assert_eq!(public.cosigned(&note).unwrap().seconds, 1_700_000_000);
        let other = WitnessKey::of(&key("w.example", 2)).unwrap();
        assert_eq!(other.cosigned(&note), None);
        assert_eq!(public.cosigned(&note.replace("\n1\n", "\n2\n")), None);
    }

    #[test]
    fn a_key_that_signs_notes_is_no_witness_key() {
        let signer = key("w.example", 1).verifying_key().to_string();
        assert_eq!(WitnessKey::parse(&signer), Err(BadKey::Kind));
    }
}
