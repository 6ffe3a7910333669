//! Proofs of possession of a key (RFC 9449), signed with ECDSA on P-256 (`ES256`).
//!
//! `ring` uses its own randomness for signing; the time is an argument.

use crate::error::SignInError;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// The longest server nonce that is sent back.
pub const MAX_NONCE_BYTES: usize = 1024;

/// A key that tokens are bound to.
#[derive(Clone)]
pub struct DpopKey {
    /// In base64, as stored.
    pkcs8: Secret,
    pair: Arc<EcdsaKeyPair>,
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("DpopKey").field(&self.thumbprint()).finish()
    }
}

impl Serialize for DpopKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.pkcs8.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DpopKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DpopKey, D::Error> {
        let pkcs8 = Secret::deserialize(deserializer)?;
        DpopKey::of(pkcs8).ok_or_else(|| serde::de::Error::custom("not a key"))
    }
}

/// What a proof is made for.
#[derive(Debug, Clone, Copy)]
pub struct Proven<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub now_seconds: i64,
    /// Makes the proof unique.
    pub id: [u8; 16],
    pub nonce: Option<&'a str>,
    /// The access token that is sent with the proof.
    pub token: Option<&'a Secret>,
}

impl DpopKey {
    pub fn generate() -> Result<DpopKey, SignInError> {
        let failed = || SignInError::NoRandomness("no key could be made".to_owned());
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| failed())?;
        DpopKey::of(Secret::new(STANDARD_NO_PAD.encode(made.as_ref()))).ok_or_else(failed)
    }

    fn of(pkcs8: Secret) -> Option<DpopKey> {
        let bytes = zeroize::Zeroizing::new(STANDARD_NO_PAD.decode(pkcs8.expose()).ok()?);
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &bytes, &SystemRandom::new()).ok()?;
        Some(DpopKey { pkcs8, pair: Arc::new(pair) })
    }

    /// The public point's coordinates in base64url.
    fn point(&self) -> (String, String) {
        // The point is uncompressed: the byte 4, then two numbers of 32 bytes.
        let point = self.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
    }

    /// The key's thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let (x, y) = self.point();
        let named = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        URL_SAFE_NO_PAD.encode(Sha256::digest(named.as_bytes()))
    }

    /// Creates a proof for one request.
    pub fn prove(&self, proven: Proven<'_>) -> Result<String, SignInError> {
        let (x, y) = self.point();
        let header = json!({"typ": "dpop+jwt", "alg": "ES256",
            "jwk": {"kty": "EC", "crv": "P-256", "x": x, "y": y}});
        // The proof does not cover the query and the fragment (§4.2).
        let url = proven.url.split(['?', '#']).next().unwrap_or_default();
        let mut claims = json!({"jti": URL_SAFE_NO_PAD.encode(proven.id), "htm": proven.method,
            "htu": url, "iat": proven.now_seconds});
        if let Some(members) = claims.as_object_mut() {
            if let Some(nonce) = proven.nonce {
                members.insert("nonce".to_owned(), nonce.into());
            }
            if let Some(token) = proven.token {
                let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(token.expose().as_bytes()));
                members.insert("ath".to_owned(), hash.into());
            }
        }
        let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature
            .map_err(|_| SignInError::NoRandomness("a proof could not be signed".to_owned()))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// A nonce from a server, if it is valid (RFC 9449 §8.1).
pub fn nonce(value: &[u8]) -> Option<String> {
    let is_part = |&byte: &u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let fits = !value.is_empty() && value.len() <= MAX_NONCE_BYTES && value.iter().all(is_part);
    fits.then(|| String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    fn proven<'a>(nonce: Option<&'a str>, token: Option<&'a Secret>) -> Proven<'a> {
        let url = "https://a.example/mcp?x=1#y";
        Proven { method: "POST", url, now_seconds: 1_700_000_000, id: [1; 16], nonce, token }
    }

    fn parts(proof: &str) -> (Value, Value) {
        let mut parts = proof.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let header = serde_json::from_slice(&parts.next().unwrap()).unwrap();
        (header, serde_json::from_slice(&parts.next().unwrap()).unwrap())
    }

    #[test]
    fn a_proof_verifies_with_the_key_that_it_carries() {
        let key = DpopKey::generate().unwrap();
        let proof = key.prove(proven(None, None)).unwrap();
        let (header, claims) = parts(&proof);
        assert_eq!(header["typ"], "dpop+jwt");
        assert_eq!(claims["htu"], "https://a.example/mcp");
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims.get("ath"), None);
        let coordinate =
            |name: &str| URL_SAFE_NO_PAD.decode(header["jwk"][name].as_str().unwrap()).unwrap();
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let (signed, signature) = proof.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        assert!(public.verify(signed.as_bytes(), &signature).is_ok());
        assert!(public.verify(b"other", &signature).is_err());
    }

    #[test]
    fn a_proof_names_the_token_and_the_nonce() {
        let key = DpopKey::generate().unwrap();
        let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU".into());
        let (_, claims) = parts(&key.prove(proven(Some("n1"), Some(&token))).unwrap());
        assert_eq!(claims["nonce"], "n1");
        // The example from RFC 9449 §7.1.
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
    }

    #[test]
    fn a_key_is_kept_and_read_back() {
        let key = DpopKey::generate().unwrap();
        let kept = serde_json::to_string(&key).unwrap();
        let again: DpopKey = serde_json::from_str(&kept).unwrap();
        assert_eq!(again.thumbprint(), key.thumbprint());
        assert!(serde_json::from_str::<DpopKey>("\"AAAA\"").is_err());
        assert!(!format!("{key:?}").contains(key.pkcs8.expose()));
    }

    #[test]
    fn a_nonce_is_taken_up_to_the_limit_and_only_if_visible() {
        assert_eq!(nonce(b"a.b~c").as_deref(), Some("a.b~c"));
        assert!(nonce(&[b'x'; MAX_NONCE_BYTES]).is_some());
        assert!(nonce(&[b'x'; MAX_NONCE_BYTES + 1]).is_none());
        assert!(nonce(b"").is_none() && nonce(b"a b").is_none() && nonce(b"a\"").is_none());
    }
}
