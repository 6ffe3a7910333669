//! Digests of packages and programs, written as npm writes `integrity`, and the digest by which a document is revoked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::hash::sha256_hex;
use std::fmt;
use std::str::FromStr;

/// What a digest is made with, and how many bytes that gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    const ALL: [Algorithm; 3] = [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512];

    const fn as_str(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha384 => "sha384",
            Algorithm::Sha512 => "sha512",
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Algorithm::Sha256 => 32,
            Algorithm::Sha384 => 48,
            Algorithm::Sha512 => 64,
        }
    }
}

/// A digest of a package's archive or of a program's file: `sha512-BASE64`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a digest like `sha512-` and base64, or the 64 hexadecimal digits of a SHA-256")]
pub struct BadDigest;

impl Digest {
    /// Reads `sha256-…`, `sha384-…` or `sha512-…` with base64 behind it, or 64 hexadecimal digits of a SHA-256.
    pub fn parse(text: &str) -> Result<Digest, BadDigest> {
        if let Some(bytes) = sha256_digits(text) {
            return Ok(Digest { algorithm: Algorithm::Sha256, bytes });
        }
        let (name, encoded) = text.split_once('-').ok_or(BadDigest)?;
        let known = Algorithm::ALL.into_iter().find(|known| known.as_str() == name);
        let algorithm = known.ok_or(BadDigest)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| BadDigest)?;
        if bytes.len() != algorithm.bytes() {
            return Err(BadDigest);
        }
        Ok(Digest { algorithm, bytes })
    }

    /// The SHA-256 of some bytes.
    pub fn sha256(bytes: &[u8]) -> Digest {
        let bytes = sha256_digits(&sha256_hex(bytes)).unwrap_or_default();
        Digest { algorithm: Algorithm::Sha256, bytes }
    }
}

fn sha256_digits(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())).collect()
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.algorithm.as_str(), STANDARD.encode(&self.bytes))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Digest, BadDigest> {
        Digest::parse(text)
    }
}

/// The SHA-256 of a document's canonical body, as lower-case hex: what a revocation list names it by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttestationDigest(String);

impl AttestationDigest {
    pub(crate) fn of(body: &[u8]) -> AttestationDigest {
        AttestationDigest(sha256_hex(body))
    }

    pub fn parse(text: &str) -> Option<AttestationDigest> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_digest = text.len() == 64 && text.bytes().all(is_digit);
        is_digest.then(|| AttestationDigest(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AttestationDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_as_npm_and_as_sha256sum_write_it() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digest = Digest::sha256(b"");
        assert_eq!(Digest::parse(empty), Ok(digest.clone()));
        assert_eq!(digest.to_string(), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest));
        let long = format!("sha512-{}", STANDARD.encode([7; 64]));
        assert_eq!(Digest::parse(&long).unwrap().to_string(), long);
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let short = format!("sha512-{}", STANDARD.encode([7; 63]));
        let long = format!("sha256-{}", STANDARD.encode([7; 33]));
        let digits = "0".repeat(63);
        for text in ["", "sha256-", "sha1-AAAA", "md5-AAAA", &short, &long, &digits, "sha256:00"] {
            assert_eq!(Digest::parse(text), Err(BadDigest), "{text}");
        }
        let unpadded = Digest::sha256(b"").to_string().replace('=', "");
        assert_eq!(Digest::parse(&unpadded), Err(BadDigest));
    }
}
