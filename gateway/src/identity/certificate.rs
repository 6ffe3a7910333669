//! Client certificates. The TLS handshake has verified them; this reads whom they name.

use contract::time::Timestamp;
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
    /// The caller: the first URI of the certificate, qualified by the authority that signed it.
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

impl VerifiedCertificate<'_> {
    /// The start of the validity period, which is not before the certificate was issued.
    pub(super) fn not_before(self) -> Result<Timestamp, CertificateFault> {
        not_before(self.0).ok_or(CertificateFault::Unreadable)
    }
}

fn not_before(certificate: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = element(certificate, 0x30)?;
    let (body, _) = element(certificate, 0x30)?;
    // The version is optional.
    let rest = element(body, 0xa0).map_or(body, |(_, rest)| rest);
    let (_serial, rest) = element(rest, 0x02)?;
    let (_algorithm, rest) = element(rest, 0x30)?;
    let (_issuer, rest) = element(rest, 0x30)?;
    let (validity, _) = element(rest, 0x30)?;
    // A UTCTime has a two-digit year, 1950 to 2049; a GeneralizedTime has four digits.
    let text = match (element(validity, 0x17), element(validity, 0x18)) {
        (Some((short, _)), _) => {
            let short = std::str::from_utf8(short).ok()?;
            let century = if short.as_bytes().first()? < &b'5' { "20" } else { "19" };
            format!("{century}{short}")
        }
        (None, Some((long, _))) => std::str::from_utf8(long).ok()?.to_owned(),
        (None, None) => return None,
    };
    let part = |from: usize, until: usize| text.get(from..until);
    let moment = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, 14)?
    );
    if part(14, text.len())? == "Z" { Timestamp::parse(&moment) } else { None }
}

/// `mtls:` and the common name of the authority, or the hash of its name if it has no plain common
/// name.
fn issuer_name(name: &[u8]) -> String {
    match common_name(name) {
        Some(common) => format!("mtls:{common}"),
        None => {
            let hash: [u8; 32] = Sha256::digest(name).into();
            format!("mtls:sha256:{}", hex::encode(hash))
        }
    }
}

/// The common name in a DER-encoded name: a sequence of sets of pairs.
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
            // A common name must not be able to imitate the hash of another name.
            return Some(text).filter(|text| is_plain && !text.starts_with("sha256:"));
        }
    }
    None
}

/// An element with this tag, and the bytes after it.
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
