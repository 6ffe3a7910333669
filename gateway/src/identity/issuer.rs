//! An issuer and its published keys. Keys are fetched by a timer, and when a token names an unknown
//! key, at a limited rate: a flood of invented key ids causes at most one fetch per interval.

use super::key_set::{KeySet, MAX_KEY_SET_BYTES};
use super::token::TokenFault;
use arc_swap::ArcSwapOption;
use contract::time::Timestamp;
use settings::SecretError;
use settings::gateway::IssuerSettings;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use wire::attestation::FetchLimits;
use wire::document::DocumentAddress;

/// The shortest time between two fetches of one key set.
pub const FETCH_INTERVAL_SECONDS: i64 = 30;
/// A key set that could not be renewed for this long is no longer valid.
pub const MAX_KEY_SET_AGE_SECONDS: i64 = 24 * 3_600;
/// How long one fetch may take.
const FETCH_PATIENCE: Duration = Duration::from_secs(5);

/// A source of key sets.
pub trait KeySetSource: fmt::Debug + Send + Sync {
    /// The document at the issuer's `jwks_uri`. The error is for the log.
    fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + '_>>;
}

/// Why an issuer's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    #[error("`jwks_uri` of {issuer}: {problem}")]
    Address { issuer: String, problem: String },
    #[error("`ca` of {issuer}: {source}")]
    Authorities { issuer: String, source: SecretError },
}

/// A key set at an address.
#[derive(Debug)]
pub(super) struct HttpKeySet(DocumentAddress);

impl HttpKeySet {
    pub(super) fn new(settings: &IssuerSettings) -> Result<HttpKeySet, IssuerError> {
        let issuer = || settings.issuer.clone();
        let address = |problem: String| IssuerError::Address { issuer: issuer(), problem };
        let url = settings.jwks_uri.as_str();
        let url = url.parse().map_err(|error: wire::BadUrl| address(error.to_string()))?;
        let authorities = match &settings.ca {
            None => None,
            Some(secret) => {
                let read = secret.read(|name| std::env::var(name).ok());
                let failed = |source| IssuerError::Authorities { issuer: issuer(), source };
                Some(read.map_err(failed)?)
            }
        };
        let authorities = authorities.as_deref().map(str::as_bytes);
        let made = DocumentAddress::new(url, settings.allow_private, authorities);
        made.map(HttpKeySet).map_err(|error| address(error.to_string()))
    }
}

impl KeySetSource for HttpKeySet {
    fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + '_>> {
        let limits = FetchLimits { bytes: MAX_KEY_SET_BYTES, patience: FETCH_PATIENCE };
        Box::pin(async move { self.0.fetch(limits).await.map_err(|error| error.to_string()) })
    }
}

/// One configured issuer.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) settings: IssuerSettings,
    source: Box<dyn KeySetSource>,
    keys: ArcSwapOption<FetchedKeys>,
    /// When the last fetch began. Locked during a fetch, so that other tasks wait for its result.
    last_fetch: Mutex<Option<Timestamp>>,
}

#[derive(Debug)]
pub(super) struct FetchedKeys {
    pub(super) set: KeySet,
    at: Timestamp,
}

impl Issuer {
    pub(super) fn new(settings: IssuerSettings, source: Box<dyn KeySetSource>) -> Issuer {
        Issuer { settings, source, keys: ArcSwapOption::empty(), last_fetch: Mutex::new(None) }
    }

    /// The known keys, unless they are too old.
    pub(super) fn known(&self, now: Timestamp) -> Option<Arc<FetchedKeys>> {
        let is_fresh =
            |keys: &Arc<FetchedKeys>| apart(now, keys.at) <= MAX_KEY_SET_AGE_SECONDS * 1_000;
        self.keys.load_full().filter(is_fresh)
    }

    /// The known keys. Fetches them first if this id is unknown and the last fetch is long enough
    /// ago.
    pub(super) async fn keys_for(
        &self,
        key_id: &str,
        now: Timestamp,
    ) -> Result<Arc<FetchedKeys>, TokenFault> {
        let knows = |keys: &Arc<FetchedKeys>| keys.set.knows(key_id);
        if let Some(keys) = self.known(now).filter(knows) {
            return Ok(keys);
        }
        let fetched = self.renew(now, |keys| keys.set.knows(key_id)).await;
        match (self.known(now), fetched) {
            (Some(keys), _) if knows(&keys) => Ok(keys),
            (Some(_), _) => Err(TokenFault::UnknownKey),
            (None, _) => Err(TokenFault::NoKeys),
        }
    }

    /// Fetches the keys, unless they were just fetched, or the fetch of another task satisfied
    /// `is_enough`.
    pub(super) async fn renew(
        &self,
        now: Timestamp,
        is_enough: impl Fn(&FetchedKeys) -> bool,
    ) -> Result<(), String> {
        let mut last = self.last_fetch.lock().await;
        if self.known(now).is_some_and(|keys| is_enough(&keys)) {
            return Ok(());
        }
        if last.is_some_and(|last| apart(now, last) < FETCH_INTERVAL_SECONDS * 1_000) {
            return Ok(());
        }
        *last = Some(now);
        let document = self.source.fetch().await?;
        let set = KeySet::parse(&document).map_err(|error| error.to_string())?;
        self.keys.store(Some(Arc::new(FetchedKeys { set, at: now })));
        Ok(())
    }
}

/// The milliseconds between two moments, in either order. A clock that was set back must not stop
/// fetches until it catches up.
fn apart(one: Timestamp, other: Timestamp) -> i64 {
    one.0.saturating_sub(other.0).saturating_abs()
}
