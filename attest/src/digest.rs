//! Digests of packages and programs, in the notation of npm's `integrity`, and the digest by which
//! a document is revoked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::hash::sha256_hex;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use std::fmt;
use std::str::FromStr;

/// The algorithm of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    const ALL: [Algorithm; 3] = [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512];

    pub const fn as_str(self) -> &'static str {
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
    /// Parses `sha256-…`, `sha384-…` or `sha512-…` followed by base64, or 64 hexadecimal digits of
    /// a SHA-256.
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
        Digest::of(Algorithm::Sha256, bytes)
    }

    /// The digest of some bytes.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let mut hasher = DigestHasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The algorithm. Only digests with the same algorithm can be compared.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Computes a digest incrementally, for data too long to hold in memory.
#[derive(Debug, Clone)]
pub struct DigestHasher(HasherState);

#[derive(Debug, Clone)]
enum HasherState {
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl DigestHasher {
    pub fn new(algorithm: Algorithm) -> DigestHasher {
        DigestHasher(match algorithm {
            Algorithm::Sha256 => HasherState::Sha256(Sha256::default()),
            Algorithm::Sha384 => HasherState::Sha384(Sha384::default()),
            Algorithm::Sha512 => HasherState::Sha512(Sha512::default()),
        })
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HasherState::Sha256(state) => state.update(bytes),
            HasherState::Sha384(state) => state.update(bytes),
            HasherState::Sha512(state) => state.update(bytes),
        }
    }

    pub fn finish(self) -> Digest {
        let (algorithm, bytes) = match self.0 {
            HasherState::Sha256(state) => (Algorithm::Sha256, state.finalize().to_vec()),
            HasherState::Sha384(state) => (Algorithm::Sha384, state.finalize().to_vec()),
            HasherState::Sha512(state) => (Algorithm::Sha512, state.finalize().to_vec()),
        };
        Digest { algorithm, bytes }
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

/// The SHA-256 of a document's canonical body in lower-case hex. Revocation lists identify
/// documents by it.
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
    fn each_algorithm_gives_what_openssl_gives() {
        // printf abc | openssl dgst -ALGORITHM -binary | base64
        for (algorithm, expected) in [
            (Algorithm::Sha256, "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
            (
                Algorithm::Sha384,
                "sha384-ywB1P0WjXou1oD1pmsZQBycsMqsO3tFjGotgWkP/W+2AhgcroefMI1i67KE0yCWn",
            ),
            (
                Algorithm::Sha512,
                "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==",
            ),
        ] {
            assert_eq!(Digest::of(algorithm, b"abc").to_string(), expected);
            let mut hasher = DigestHasher::new(algorithm);
            hasher.update(b"a");
            hasher.update(b"bc");
            assert_eq!(hasher.finish(), Digest::parse(expected).unwrap());
        }
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
