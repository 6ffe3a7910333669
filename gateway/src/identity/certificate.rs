//! Client certificates. The TLS handshake has verified them; here is read whom they name.

use policy::{ActorType, Identity, IdentityProof};
use sha2::{Digest, Sha256};
use store::MAX_PRINCIPAL_BYTES;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// A certificate that the TLS handshake verified against `client_ca`.
#[derive(Debug, Clone, Copy)]
pub struct VerifiedCertificate<'a>(pub &'a CertificateDer<'a>);

/// The object identifier of a common name, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Why a certificate names no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CertificateFault {
    #[error("the certificate cannot be read")]
    Unreadable,
    #[error("the certificate has no URI among its alternative names")]
    NoUri,
    #[error("the certificate's URI is longer than {MAX_PRINCIPAL_BYTES} bytes")]
    TooLong,
}

impl VerifiedCertificate<'_> {
    /// The caller: the first URI of the certificate, within the authority that signed it.
    pub(super) fn identity(self) -> Result<Identity, CertificateFault> {
        let certificate = webpki::EndEntityCert::try_from(self.0);
        let certificate = certificate.map_err(|_| CertificateFault::Unreadable)?;
        let subject = certificate.valid_uri_names().next().ok_or(CertificateFault::NoUri)?;
        if subject.is_empty() {
            return Err(CertificateFault::NoUri);
        }
        if subject.len() > MAX_PRINCIPAL_BYTES {
            return Err(CertificateFault::TooLong);
        }
        Ok(Identity {
            issuer: issuer_name(certificate.issuer()),
            subject: subject.to_owned(),
            actor_type: ActorType::Agent,
            client_id: None,
            org: None,
            groups: Vec::new(),
            clearance: None,
            mfa: false,
            proof: IdentityProof::Certificate,
        })
    }
}

/// `mtls:` and the common name of the authority. One without a plain common name is told by the hash of its name.
fn issuer_name(name: &[u8]) -> String {
    match common_name(name) {
        Some(common) => format!("mtls:{common}"),
        None => {
            let hash: [u8; 32] = Sha256::digest(name).into();
            format!("mtls:sha256:{}", hex::encode(hash))
        }
    }
}

/// The common name within a name in DER: a sequence of sets of pairs.
fn common_name(mut name: &[u8]) -> Option<&str> {
    while !name.is_empty() {
        let (set, rest) = element(name, 0x31)?;
        name = rest;
        let (pair, _) = element(set, 0x30)?;
        let (kind, value) = element(pair, 0x06)?;
        if kind == COMMON_NAME {
            // UTF8String or PrintableString.
            let (text, _) = element(value, 0x0c).or_else(|| element(value, 0x13))?;
            let text = std::str::from_utf8(text).ok()?;
            let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
            // A common name must not look like the hash of another.
            return Some(text).filter(|text| is_plain && !text.starts_with("sha256:"));
        }
    }
    None
}

/// An element with this tag, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    if found != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
