//! Ed25519 keys in the file formats of other tools: PKCS#8 and SPKI as PEM, with private keys
//! optionally encrypted.
//!
//! Signatures are verified strictly: keys and signatures that allow more than one spelling, or that
//! could be forged without the private key, are refused.

use crate::limits::{
    MAX_PBKDF2_ROUNDS, MAX_PEM_BYTES, MAX_SCRYPT_BYTES, MAX_SCRYPT_PARALLELIZATION,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::hash::sha256_hex;
use ed25519_dalek::pkcs8::spki::{DecodePublicKey, EncodePublicKey};
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer, VerifyingKey};
use pkcs8::der::asn1::OctetString;
use pkcs8::der::pem::PemLabel;
use pkcs8::pkcs5::pbes2::{Kdf, Parameters};
use pkcs8::{
    EncryptedPrivateKeyInfo, EncryptedPrivateKeyInfoOwned, LineEnding, PrivateKeyInfoRef,
    SecretDocument,
};
use std::fmt;
use zeroize::Zeroizing;

/// The number of PBKDF2 rounds for keys encrypted here.
const PBKDF2_ROUNDS: u32 = 600_000;
const SIGNATURE_BYTES: usize = 64;

/// Why a key cannot be read or written. It contains nothing of the text, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("a key of over {MAX_PEM_BYTES} bytes")]
    TooLong,
    #[error("expected a public key of Ed25519 as PEM, `-----BEGIN PUBLIC KEY-----`")]
    Public,
    #[error("expected a private key of Ed25519 as PEM, `-----BEGIN PRIVATE KEY-----`")]
    Private,
    #[error("this is a private key, where a public one belongs")]
    NotPublic,
    #[error(
        "the key is not a canonical point of the curve, or is one for which signatures can be forged"
    )]
    Point,
    #[error("the key is encrypted, and no passphrase was given")]
    NeedsPassphrase,
    #[error("the passphrase is wrong, or the key is damaged")]
    WrongPassphrase,
    #[error(
        "the key is encrypted in a way that is not supported: expected PBES2 with PBKDF2 or scrypt, and AES"
    )]
    Encryption,
    #[error("the key asks for too much work to decrypt it, or for an impossible amount")]
    TooCostly,
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    #[error("the key could not be written: {0}")]
    Unwritable(#[source] pkcs8::Error),
}

fn unwritable(error: impl Into<pkcs8::Error>) -> BadKey {
    BadKey::Unwritable(error.into())
}

/// Whether a key made a given signature.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signed {
    Yes,
    No,
}

/// A key that verifies signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Parses `-----BEGIN PUBLIC KEY-----`.
    pub fn from_pem(text: &str) -> Result<PublicKey, BadKey> {
        if text.len() > MAX_PEM_BYTES {
            return Err(BadKey::TooLong);
        }
        if text.contains("PRIVATE KEY-----") {
            return Err(BadKey::NotPublic);
        }
        let key = ed25519_dalek::pkcs8::PublicKeyBytes::from_public_key_pem(text.trim());
        PublicKey::from_bytes(&key.map_err(|_| BadKey::Public)?.to_bytes())
    }

    /// The key from its 32 bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<PublicKey, BadKey> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| BadKey::Point)?;
        if key.is_weak() || !is_canonical(bytes) {
            return Err(BadKey::Point);
        }
        Ok(PublicKey(key))
    }

    pub fn to_pem(&self) -> Result<String, BadKey> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(unwritable)
    }

    pub fn fingerprint(&self) -> KeyFingerprint {
        // The same value as `openssl pkey -pubin -outform DER | sha256sum`.
        let der = self.0.to_public_key_der().map(|der| sha256_hex(der.as_bytes()));
        KeyFingerprint(der.unwrap_or_else(|_| sha256_hex(self.0.as_bytes())))
    }

    /// Whether base64 text is this key's signature of these bytes.
    pub(crate) fn check_text(&self, bytes: &[u8], signature: &str) -> Signed {
        let mut raw = [0; SIGNATURE_BYTES];
        // Base64 is decoded strictly, so each signature has only one valid spelling.
        if STANDARD.decode_slice(signature, &mut raw) != Ok(SIGNATURE_BYTES) {
            return Signed::No;
        }
        match self.0.verify_strict(bytes, &Signature::from_bytes(&raw)) {
            Ok(()) => Signed::Yes,
            Err(_) => Signed::No,
        }
    }
}

/// Whether a point's bytes are its canonical spelling: the coordinate is below 2^255 - 19.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let [first, middle @ .., last] = bytes;
    let is_over = *first >= 0xed && middle.iter().all(|byte| *byte == 0xff) && last & 0x7f == 0x7f;
    !is_over
}

/// The SHA-256 of a public key's SPKI bytes in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyFingerprint(String);

impl KeyFingerprint {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Random bytes for encrypting a key once. They are not secret, and must not be reused.
#[derive(Debug, Clone, Copy)]
pub struct Salt {
    pub salt: [u8; 16],
    pub initialization: [u8; 16],
}

/// A key that signs. The secret is wiped on drop and never shown by [`fmt::Debug`].
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key from 32 random bytes.
    pub fn from_seed(seed: [u8; 32]) -> SigningKey {
        let seed = Zeroizing::new(seed);
        SigningKey(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Parses `-----BEGIN PRIVATE KEY-----`, or `-----BEGIN ENCRYPTED PRIVATE KEY-----` with its
    /// passphrase.
    pub fn from_pem(text: &str, passphrase: Option<&str>) -> Result<SigningKey, BadKey> {
        if text.len() > MAX_PEM_BYTES {
            return Err(BadKey::TooLong);
        }
        let (label, document) =
            SecretDocument::from_pem(text.trim()).map_err(|_| BadKey::Private)?;
        if label == PrivateKeyInfoRef::PEM_LABEL {
            return SigningKey::from_der(document.as_bytes(), BadKey::Private);
        }
        if label != EncryptedPrivateKeyInfoOwned::PEM_LABEL {
            return Err(BadKey::Private);
        }
        let passphrase = passphrase.ok_or(BadKey::NeedsPassphrase)?;
        let encrypted = EncryptedPrivateKeyInfoOwned::try_from(document.as_bytes())
            .map_err(|_| BadKey::Encryption)?;
        let parameters = encrypted.encryption_algorithm.pbes2().ok_or(BadKey::Encryption)?;
        check_cost(&parameters.kdf)?;
        let decrypted = encrypted.decrypt(passphrase).map_err(|_| BadKey::WrongPassphrase)?;
        SigningKey::from_der(decrypted.as_bytes(), BadKey::WrongPassphrase)
    }

    fn from_der(der: &[u8], bad: BadKey) -> Result<SigningKey, BadKey> {
        let key = ed25519_dalek::SigningKey::from_pkcs8_der(der).map_err(|_| bad)?;
        Ok(SigningKey(key))
    }

    /// PKCS#8 in openssl's format.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, BadKey> {
        self.bytes().to_pkcs8_pem(LineEnding::LF).map_err(unwritable)
    }

    /// PKCS#8 encrypted with a passphrase: PBKDF2 with SHA-256, then AES-256.
    pub fn to_encrypted_pem(
        &self,
        passphrase: &str,
        salt: Salt,
    ) -> Result<Zeroizing<String>, BadKey> {
        if passphrase.is_empty() {
            return Err(BadKey::EmptyPassphrase);
        }
        let Salt { salt, initialization } = salt;
        let parameters =
            Parameters::generate_pbkdf2_sha256_aes256cbc(PBKDF2_ROUNDS, &salt, initialization)
                .map_err(unwritable)?;
        let document = self.bytes().to_pkcs8_der().map_err(unwritable)?;
        let encrypted = parameters.encrypt(passphrase, document.as_bytes()).map_err(unwritable)?;
        let info = EncryptedPrivateKeyInfo {
            encryption_algorithm: parameters.into(),
            encrypted_data: OctetString::new(encrypted).map_err(unwritable)?,
        };
        let document = SecretDocument::try_from(info).map_err(unwritable)?;
        let label = EncryptedPrivateKeyInfoOwned::PEM_LABEL;
        document.to_pem(label, LineEnding::LF).map_err(unwritable)
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// The signature of some bytes, as base64.
    pub(crate) fn sign_text(&self, bytes: &[u8]) -> String {
        STANDARD.encode(self.0.sign(bytes).to_bytes())
    }

    /// Omits the public half, because older readers do not know the form that includes it.
    fn bytes(&self) -> KeypairBytes {
        KeypairBytes { secret_key: self.0.to_bytes(), public_key: None }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.public_key().fingerprint())
    }
}

/// Bounds the cost of opening a key: the file itself states that cost, and could state any value.
fn check_cost(derivation: &Kdf) -> Result<(), BadKey> {
    let is_fit = match derivation {
        Kdf::Pbkdf2(parameters) => (1..=MAX_PBKDF2_ROUNDS).contains(&parameters.iteration_count),
        Kdf::Scrypt(parameters) => {
            let memory = u64::from(parameters.block_size)
                .checked_mul(128)
                .and_then(|block| block.checked_mul(parameters.cost_parameter));
            // Do not try parameters that scrypt is not defined for: its implementation would
            // underflow.
            let is_defined = parameters.cost_parameter >= 2
                && parameters.cost_parameter.is_power_of_two()
                && parameters.block_size >= 1;
            is_defined
                && memory.is_some_and(|memory| memory <= MAX_SCRYPT_BYTES)
                && (1..=MAX_SCRYPT_PARALLELIZATION).contains(&parameters.parallelization)
        }
        _ => return Err(BadKey::Encryption),
    };
    if is_fit { Ok(()) } else { Err(BadKey::TooCostly) }
}

#[cfg(test)]
mod tests;
