//! Claims of ownership: the person who controls a server's domain or publishes its package proves
//! it by publishing one line, `v1 SERVER KEY NONCE`.
//!
//! A claim permits probes. It never changes or hides a verdict. The nonce is derived from a secret
//! of the directory, so only verified claims have to be stored.

pub mod check;
pub mod dns;
pub mod ownership;

use crate::subject::{PackageRegistry, SubjectId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::hash::sha256_hex;
use contract::time::Timestamp;
use ed25519_dalek::{Signature, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;

/// How long a nonce is valid.
pub const NONCE_HOURS: i64 = 24;
const HOUR_MS: i64 = 3_600_000;
/// The prefix of a signed line, so that the signature cannot be that of another message with the
/// same key.
const SIGNED_PREFIX: &str = "holdpoint-claim ";
/// The longest domain that is looked up, without the prefix `_holdpoint.`.
const MAX_DOMAIN_BYTES: usize = 240;
/// The largest request of a claimant.
pub const MAX_REQUEST_BYTES: usize = 4 * 1024;

/// How a claim is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A TXT record of `_holdpoint.DOMAIN`.
    Dns,
    /// `https://DOMAIN/.well-known/holdpoint.json`.
    WellKnown,
    /// The newest release of the package contains the line in its manifest.
    Manifest,
    /// A signature with the key that the operator has registered for the publisher.
    AttestationKey,
}

impl Method {
    pub const ALL: [Method; 4] =
        [Method::Dns, Method::WellKnown, Method::Manifest, Method::AttestationKey];

    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Dns => "dns",
            Method::WellKnown => "well-known",
            Method::Manifest => "manifest",
            Method::AttestationKey => "attestation-key",
        }
    }

    pub fn from_word(word: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.as_str() == word)
    }
}

/// A claimant's public key: `ed25519:` and 32 bytes in base64.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimKey([u8; 32]);

/// The text is not a claimant's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a claimant's key is `ed25519:` and the 32 bytes of the public key as base64")]
pub struct BadClaimKey;

impl ClaimKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Result<ClaimKey, BadClaimKey> {
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| BadClaimKey)?;
        if key.is_weak() { Err(BadClaimKey) } else { Ok(ClaimKey(bytes)) }
    }

    /// The hash of the key, as used in the log.
    pub fn hash(&self) -> String {
        sha256_hex(&self.0)
    }

    /// Whether this key signed the line.
    pub fn signed(&self, line: &str, signature: &str) -> bool {
        let raw: Option<[u8; 64]> =
            STANDARD.decode(signature).ok().and_then(|bytes| bytes.try_into().ok());
        let key = VerifyingKey::from_bytes(&self.0);
        let (Some(raw), Ok(key)) = (raw, key) else { return false };
        key.verify_strict(signed_text(line).as_bytes(), &Signature::from_bytes(&raw)).is_ok()
    }
}

/// The text that a claimant signs, without a line ending.
pub fn signed_text(line: &str) -> String {
    format!("{SIGNED_PREFIX}{line}")
}

impl FromStr for ClaimKey {
    type Err = BadClaimKey;

    fn from_str(text: &str) -> Result<ClaimKey, BadClaimKey> {
        let encoded = text.strip_prefix("ed25519:").ok_or(BadClaimKey)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| BadClaimKey)?;
        ClaimKey::from_bytes(bytes.try_into().map_err(|_| BadClaimKey)?)
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ed25519:{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for ClaimKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClaimKey({self})")
    }
}

/// The line that a claimant publishes.
pub fn line(server: &SubjectId, key: &ClaimKey, nonce: &str) -> String {
    format!("v1 {server} {key} {nonce}")
}

/// The secret that nonces are derived from.
#[derive(Clone)]
pub struct NonceSecret(pub [u8; 32]);

impl fmt::Debug for NonceSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NonceSecret(..)")
    }
}

/// Why a nonce is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadNonce {
    #[error("the nonce is not one that this directory made for this server and this key")]
    Unknown,
    #[error("the nonce is older than {NONCE_HOURS} hours: begin again")]
    Expired,
}

impl NonceSecret {
    /// A nonce for one server and one key, and when it expires.
    pub fn nonce(&self, server: &SubjectId, key: &ClaimKey, now: Timestamp) -> (String, Timestamp) {
        let expires = Timestamp((now.0.div_euclid(1_000)) * 1_000 + NONCE_HOURS * HOUR_MS);
        (self.spell(server, key, expires), expires)
    }

    /// Ten digits of the expiry in seconds, followed by a MAC over everything the nonce is bound
    /// to.
    fn spell(&self, server: &SubjectId, key: &ClaimKey, expires: Timestamp) -> String {
        let mut block = [0; 64];
        block.iter_mut().zip(self.0).for_each(|(to, byte)| *to = byte);
        let seconds = format!("{:010x}", expires.0.div_euclid(1_000));
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(format!("holdpoint-claim-nonce-v1\n{server}\n{key}\n{seconds}").as_bytes());
        let code: Vec<u8> = mac.finalize().into_bytes().into_iter().take(16).collect();
        format!("{seconds}{}", hex::encode(code))
    }

    pub fn check(
        &self,
        server: &SubjectId,
        key: &ClaimKey,
        nonce: &str,
        now: Timestamp,
    ) -> Result<(), BadNonce> {
        let seconds = nonce.get(..10).and_then(|text| i64::from_str_radix(text, 16).ok());
        let expires = Timestamp(seconds.ok_or(BadNonce::Unknown)?.saturating_mul(1_000));
        // No constant-time comparison needed: `start` returns this nonce to any caller.
        if self.spell(server, key, expires) != nonce {
            return Err(BadNonce::Unknown);
        }
        if now > expires { Err(BadNonce::Expired) } else { Ok(()) }
    }
}

/// A place where an owner can publish a claim to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Domain {
        /// The host as named in the log.
        name: String,
        /// Whether the host can have a TXT record; an IP address cannot.
        has_records: bool,
        /// The URL of the file.
        well_known: String,
    },
    Package {
        registry: PackageRegistry,
        name: String,
    },
}

/// The places to claim a server: the remote's host, the domain of the reversed namespace, or the
/// package.
pub fn places(server: &SubjectId, remote: Option<&str>) -> Vec<Place> {
    if let Some((registry, name)) = server.as_package() {
        return vec![Place::Package { registry, name: name.to_owned() }];
    }
    let mut found = Vec::new();
    let remote = remote.and_then(|url| url.parse::<wire::PlainUrl>().ok());
    if let Some(url) = remote.filter(|url| matches!(url.url.scheme(), "https" | "http")) {
        let has_records = is_domain(&url.host);
        let origin = url.url.origin().ascii_serialization();
        let well_known = format!("{origin}{WELL_KNOWN_PATH}");
        found.push(Place::Domain { name: url.host, has_records, well_known });
    }
    if let Some((namespace, _)) = server.as_str().split_once('/') {
        let labels: Vec<&str> = namespace.split('.').rev().collect();
        let name = labels.join(".").to_ascii_lowercase();
        let is_known = found
            .iter()
            .any(|it| matches!(it, Place::Domain { name: known, .. } if *known == name));
        if is_domain(&name) && !is_known {
            let well_known = format!("https://{name}{WELL_KNOWN_PATH}");
            found.push(Place::Domain { name, has_records: true, well_known });
        }
    }
    found
}

/// The path of the file with claims.
pub const WELL_KNOWN_PATH: &str = "/.well-known/holdpoint.json";

/// Whether a name can be looked up: it has at least two labels and is not an IP address.
fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= MAX_DOMAIN_BYTES
        && name.split('.').count() >= 2
        && name.split('.').all(is_label)
        && last.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// The request that starts a claim: `{"server": …, "key": …}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    pub server: String,
    pub key: String,
}

/// The request after the claimant has published the line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    pub server: String,
    pub key: String,
    pub nonce: String,
    pub method: Method,
    /// With the attestation key: the signature of the line in base64.
    #[serde(default)]
    pub signature: Option<String>,
}

#[cfg(test)]
mod tests;
