//! TLS: rustls with the system's roots, and the key that a server showed.

use crate::error::ObserveError;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A connector that trusts what this system trusts. Where it has no roots at all, Mozilla's stand in.
pub(super) fn connector() -> Result<TlsConnector, ObserveError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    connector_with(roots)
}

pub(super) fn connector_with(roots: RootCertStore) -> Result<TlsConnector, ObserveError> {
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

/// The SHA-256 of a certificate's SubjectPublicKeyInfo, in hexadecimal: it stays when a certificate is renewed.
pub(super) fn key_hash(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    Some(hex::encode(Sha256::digest(certificate.subject_public_key_info())))
}
