//! The client that asks for tokens: registered by the operator, or identified by the URL of its
//! metadata document.

use super::Asked;
use super::client_document::{ClientDocument, DocumentUrl, MAX_DOCUMENT_BYTES};
use super::refused::SignInRefusal;
use http::{Method, StatusCode};
use settings::gateway::{ProxySettings, RedirectUri};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use wire::attestation::FetchLimits;
use wire::service::{ServiceAddress, ServiceRequest};

const LIMITS: FetchLimits =
    FetchLimits { bytes: MAX_DOCUMENT_BYTES, patience: Duration::from_secs(5) };
/// How long a document is cached, and how long a failed fetch is not repeated.
const FRESH: Duration = Duration::from_secs(600);
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// The most cached documents, and the most concurrent fetches.
const MAX_KEPT: usize = 1_000;
const MAX_FETCHES: usize = 8;

/// A client that may ask for tokens.
#[derive(Debug, Clone)]
pub(super) struct KnownClient {
    /// The name that a person is shown.
    pub(super) name: String,
    redirect_uris: Vec<RedirectUri>,
}

impl KnownClient {
    pub(super) fn check_redirect(&self, asked: &RedirectUri) -> Result<(), SignInRefusal> {
        match self.redirect_uris.iter().any(|registered| registered.allows(asked)) {
            true => Ok(()),
            false => Err(SignInRefusal::UnregisteredRedirect),
        }
    }
}

/// A cache of clients' metadata documents.
#[derive(Debug)]
pub(super) struct ClientDocuments {
    kept: Mutex<HashMap<String, KeptDocument>>,
    fetches: Semaphore,
}

#[derive(Debug, Clone)]
struct KeptDocument {
    at: Instant,
    read: Result<Arc<ClientDocument>, String>,
}

impl KeptDocument {
    fn counts(&self) -> bool {
        self.at.elapsed() < if self.read.is_ok() { FRESH } else { FAILURE_PAUSE }
    }
}

impl Default for ClientDocuments {
    fn default() -> ClientDocuments {
        ClientDocuments { kept: Mutex::default(), fetches: Semaphore::new(MAX_FETCHES) }
    }
}

impl ClientDocuments {
    fn kept(&self, url: &str) -> Option<KeptDocument> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(url).filter(|document| document.counts()).cloned()
    }

    fn keep(&self, url: &str, read: Result<Arc<ClientDocument>, String>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, document| document.counts());
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(url.to_owned(), KeptDocument { at: Instant::now(), read });
    }

    async fn of(
        &self,
        url: &DocumentUrl,
        proxy: &ProxySettings,
    ) -> Result<Arc<ClientDocument>, String> {
        if let Some(kept) = self.kept(&url.text) {
            return kept.read;
        }
        // Do not wait: a flood of unknown clients must not delay the known ones.
        let Ok(_fetching) = self.fetches.try_acquire() else {
            return Err("too many documents are fetched at this moment".to_owned());
        };
        let read = fetch(url, proxy).await.map(Arc::new);
        self.keep(&url.text, read.clone());
        read
    }
}

/// Fetches a document. The address comes from a stranger: the rules for calls apply, and it must
/// not lead to this machine.
async fn fetch(url: &DocumentUrl, proxy: &ProxySettings) -> Result<ClientDocument, String> {
    let authorities = proxy.ca.as_ref().map(|ca| ca.read(|name| std::env::var(name).ok()));
    let authorities = authorities.transpose().map_err(|error| error.to_string())?;
    let address = url.text.parse().map_err(|error: wire::BadUrl| error.to_string())?;
    let authorities = authorities.as_deref().map(str::as_bytes);
    let address = ServiceAddress::new(address, proxy.allow_private, authorities)
        .map_err(|error| error.to_string())?;
    let address = if proxy.allow_private { address } else { address.off_this_machine() };
    let request = ServiceRequest { method: Method::GET, ..ServiceRequest::default() };
    let answer = address.exchange(request, LIMITS).await.map_err(|error| error.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!("it was answered with status {}", answer.status.as_u16()));
    }
    ClientDocument::read(&answer.body, &url.text).map_err(str::to_owned)
}

impl Asked<'_> {
    /// The client with this id, if it may ask for tokens here.
    pub(super) async fn client(
        &self,
        id: &str,
        proxy: &ProxySettings,
    ) -> Result<KnownClient, SignInRefusal> {
        if let Some(client) = proxy.clients.get(id) {
            let (name, redirect_uris) = (client.name.clone(), client.redirect_uris.clone());
            return Ok(KnownClient { name, redirect_uris });
        }
        let url = DocumentUrl::read(id, proxy.allow_private).ok_or(SignInRefusal::UnknownClient)?;
        if !proxy.client_hosts.allow(&url.host) {
            return Err(SignInRefusal::ClientHost);
        }
        let documents = &self.node.shared.sign_ins.documents;
        let document = documents.of(&url, proxy).await.map_err(SignInRefusal::ClientDocument)?;
        let name = document.name.clone().unwrap_or_else(|| url.host.clone());
        Ok(KnownClient { name, redirect_uris: document.redirect_uris.clone() })
    }
}
