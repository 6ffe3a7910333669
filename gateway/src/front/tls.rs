//! TLS of the listeners: certificates from the configured files, taken over again when the files change. Connections that
//! are open keep what they began with.

use arc_swap::ArcSwap;
use settings::SecretName;
use settings::gateway::Transport;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Why there is no TLS. The content of a file is never part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("`gateway.tls.{key}`: {problem}")]
    File { key: &'static str, problem: String },
    #[error("`gateway.tls`: {0}")]
    Together(String),
}

/// The files as they were read.
#[derive(Clone, PartialEq, Eq)]
struct TlsFiles {
    cert: String,
    key: String,
    client_ca: Option<String>,
}

/// The certificate, the key and the authority of client certificates that new connections get.
pub(crate) struct TlsFront {
    transport: Transport,
    config: ArcSwap<ServerConfig>,
    /// What was last looked at, also if it was refused: the same mistake is told once.
    seen: Mutex<TlsFiles>,
}

impl std::fmt::Debug for TlsFront {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TlsFront").field("transport", &self.transport).finish()
    }
}

impl TlsFront {
    /// Reads the files. `None` where the gateway does not end TLS itself.
    pub(crate) fn open(transport: &Transport) -> Result<Option<TlsFront>, TlsError> {
        let Some(files) = TlsFiles::read(transport)? else { return Ok(None) };
        let config = ArcSwap::from_pointee(files.config()?);
        Ok(Some(TlsFront { transport: transport.clone(), config, seen: Mutex::new(files) }))
    }

    /// What a new connection begins with.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// Takes the files over if they changed. On an error the earlier ones stay. Returns whether anything was taken over.
    pub(crate) fn renew(&self) -> Result<bool, TlsError> {
        let Some(files) = TlsFiles::read(&self.transport)? else { return Ok(false) };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == files {
            return Ok(false);
        }
        *seen = files;
        self.config.store(Arc::new(seen.config()?));
        Ok(true)
    }
}

impl TlsFiles {
    fn read(transport: &Transport) -> Result<Option<TlsFiles>, TlsError> {
        let Transport::Tls { cert, key, client_ca } = transport else { return Ok(None) };
        let client_ca = client_ca.as_ref().map(|name| read("client_ca", name)).transpose()?;
        Ok(Some(TlsFiles { cert: read("cert", cert)?, key: read("key", key)?, client_ca }))
    }

    fn config(&self) -> Result<ServerConfig, TlsError> {
        let wrong = |key, problem: &str| TlsError::File { key, problem: problem.to_owned() };
        let chain = certificates("cert", &self.cert)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|_| wrong("key", "there is no private key in PEM"))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| TlsError::Together(error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(text) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("client_ca", text)? {
                    roots
                        .add(certificate)
                        .map_err(|error| wrong("client_ca", &error.to_string()))?;
                }
                // A caller without a certificate may still have a token or a key.
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| wrong("client_ca", &error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            TlsError::Together(format!("`cert` and `key` do not go together: {error}"))
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.client_ca.is_some() {
            // A resumed session brings its client's certificate along without verifying it again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
        }
        Ok(config)
    }
}

fn read(key: &'static str, name: &SecretName) -> Result<String, TlsError> {
    name.read(|name| std::env::var(name).ok())
        .map_err(|error| TlsError::File { key, problem: error.to_string() })
}

fn certificates(key: &'static str, text: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => {
            Err(TlsError::File { key, problem: "there is no certificate in PEM".to_owned() })
        }
    }
}
