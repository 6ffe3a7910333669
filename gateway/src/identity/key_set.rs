//! A published key set (JWKS, RFC 7517): public keys by their `kid`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::json::{Document, Node};
use jsonwebtoken::{Algorithm, DecodingKey};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The largest key set that is read.
pub(super) const MAX_KEY_SET_BYTES: usize = 256 * 1024;
/// The most keys that are kept of one set.
const MAX_KEYS: usize = 100;
/// The longest `kid`.
pub(super) const MAX_KEY_ID_BYTES: usize = 256;

/// Why a document is not a key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKeySet {
    #[error("not valid JSON: {0}")]
    NotJson(String),
    #[error("it has no list `keys`")]
    NoKeys,
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
}

/// The keys of one issuer that can verify tokens.
#[derive(Debug, Default)]
pub(super) struct KeySet(HashMap<String, Vec<VerifyingKey>>);

/// One public key.
#[derive(Clone)]
pub(super) struct VerifyingKey {
    kind: KeyKind,
    /// If set, the only algorithm that the key may be used with.
    algorithm: Option<Algorithm>,
    pub(super) key: DecodingKey,
    /// Distinguishes two keys with the same `kid`.
    pub(super) fingerprint: [u8; 32],
}

impl std::fmt::Debug for VerifyingKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("VerifyingKey").field(&self.kind).finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl KeyKind {
    fn fits(self, algorithm: Algorithm) -> bool {
        match algorithm {
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512 => self == KeyKind::Rsa,
            Algorithm::ES256 => self == KeyKind::P256,
            Algorithm::ES384 => self == KeyKind::P384,
            Algorithm::EdDSA => self == KeyKind::Ed25519,
            _ => false,
        }
    }
}

impl KeySet {
    /// Parses a key set. Keys that cannot verify a token (for encryption, of another type, without
    /// `kid`) are left out.
    pub(super) fn parse(bytes: &[u8]) -> Result<KeySet, BadKeySet> {
        let document =
            Document::parse_bytes(bytes).map_err(|error| BadKeySet::NotJson(error.to_string()))?;
        let list = document.root().get("keys").filter(|keys| keys.is_array());
        let list = list.ok_or(BadKeySet::NoKeys)?;
        let mut keys: HashMap<String, Vec<VerifyingKey>> = HashMap::new();
        for (count, node) in list.items().enumerate() {
            if count >= MAX_KEYS {
                return Err(BadKeySet::TooMany);
            }
            if let Some((id, key)) = verifying_key(node) {
                keys.entry(id).or_default().push(key);
            }
        }
        Ok(KeySet(keys))
    }

    /// The keys with this id that are allowed for an algorithm.
    pub(super) fn find(
        &self,
        id: &str,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &VerifyingKey> {
        let named = self.0.get(id).map(Vec::as_slice).unwrap_or_default();
        named.iter().filter(move |key| {
            key.kind.fits(algorithm) && key.algorithm.is_none_or(|named| named == algorithm)
        })
    }

    pub(super) fn knows(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    pub(super) fn has(&self, id: &str, fingerprint: &[u8; 32]) -> bool {
        self.0.get(id).is_some_and(|keys| keys.iter().any(|key| key.fingerprint == *fingerprint))
    }
}

fn verifying_key(node: Node<'_>) -> Option<(String, VerifyingKey)> {
    let text = |name: &str| node.get(name).and_then(Node::as_str);
    let id = text("kid").filter(|id| !id.is_empty() && id.len() <= MAX_KEY_ID_BYTES)?.into_owned();
    if node.get("use").is_some_and(|usage| !usage.is_text("sig")) {
        return None;
    }
    if let Some(operations) = node.get("key_ops")
        && !operations.items().any(|operation| operation.is_text("verify"))
    {
        return None;
    }
    let algorithm = match text("alg") {
        Some(name) => Some(name.parse::<Algorithm>().ok()?),
        None => None,
    };
    let number = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?.as_bytes()).ok();
    let (kind, parts) = match (text("kty")?.as_ref(), text("crv").as_deref()) {
        ("RSA", None) => (KeyKind::Rsa, vec![number("n")?, number("e")?]),
        ("EC", Some("P-256")) => (KeyKind::P256, vec![number("x")?, number("y")?]),
        ("EC", Some("P-384")) => (KeyKind::P384, vec![number("x")?, number("y")?]),
        ("OKP", Some("Ed25519")) => (KeyKind::Ed25519, vec![number("x")?]),
        _ => return None,
    };
    let coordinate = match kind {
        KeyKind::Rsa => None,
        KeyKind::P256 | KeyKind::Ed25519 => Some(32),
        KeyKind::P384 => Some(48),
    };
    if coordinate.is_some_and(|length| parts.iter().any(|part| part.len() != length)) {
        return None;
    }
    let key = match (kind, parts.as_slice()) {
        (KeyKind::Rsa, [modulus, exponent]) => {
            DecodingKey::from_rsa_raw_components(modulus, exponent)
        }
        (KeyKind::Ed25519, [x]) => DecodingKey::from_ed_der(x),
        (KeyKind::P256 | KeyKind::P384, [x, y]) => {
            let point: Vec<u8> = [4].iter().chain(x).chain(y).copied().collect();
            DecodingKey::from_ec_der(&point)
        }
        _ => return None,
    };
    let mut hash = Sha256::new();
    for part in &parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let fingerprint = hash.finalize().into();
    Some((id, VerifyingKey { kind, algorithm, key, fingerprint }))
}
