//! TLS with rustls and the system's root certificates, and the key that a server presented.

use crate::error::ObserveError;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A connector that trusts the system's certificates, or Mozilla's if the system has none.
pub(crate) fn connector() -> Result<TlsConnector, ObserveError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    connector_with(roots)
}

pub(crate) fn connector_with(roots: RootCertStore) -> Result<TlsConnector, ObserveError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ObserveError::Tls {
            host: "any".to_owned(),
            source: std::io::Error::other(error),
        })?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The key that a server presented, readable outside the connections. Clones share one cell.
#[derive(Debug, Clone, Default)]
pub struct TlsKey(Arc<Shown>);

#[derive(Debug, Default)]
struct Shown {
    /// Contains `None` if the certificate's key could not be read.
    first: OnceLock<Option<String>>,
    has_changed: AtomicBool,
}

impl TlsKey {
    /// The SHA-256 of the public key (SubjectPublicKeyInfo) of the first connection, in
    /// hexadecimal.
    pub fn known(&self) -> Option<&str> {
        self.0.first.get()?.as_deref()
    }

    /// Whether a later connection presented a different key from the first.
    pub fn has_changed(&self) -> bool {
        self.0.has_changed.load(Ordering::Acquire)
    }

    /// Records the key of a connection.
    pub(crate) fn note(&self, key: Option<&str>) {
        if self.0.first.get_or_init(|| key.map(str::to_owned)).as_deref() != key {
            self.0.has_changed.store(true, Ordering::Release);
        }
    }
}

/// The SHA-256 of a certificate's SubjectPublicKeyInfo, in hexadecimal. Renewing a certificate with
/// the same key keeps it.
pub(crate) fn key_hash(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    Some(hex::encode(Sha256::digest(certificate.subject_public_key_info())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_stays_and_another_one_is_noticed() {
        let key = TlsKey::default();
        assert_eq!((key.known(), key.has_changed()), (None, false));
        key.note(Some("a"));
        key.note(Some("a"));
        assert_eq!((key.known(), key.has_changed()), (Some("a"), false));
        key.clone().note(Some("b"));
        assert_eq!((key.known(), key.has_changed()), (Some("a"), true));
    }
}
