//! Records of sign-ins in the store. Their content is sealed here together with the record's name,
//! so that a row put in place of another does not open.

use super::client::ClientDocuments;
use super::cookies::is_revoked;
use super::provider::Providers;
use crate::identity::{RevokedCallers, WrittenIdentity};
use crate::sealed::{Purpose, SealError, Sealer};
use arc_swap::ArcSwap;
use contract::hash::sha256_hex;
use contract::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Home, Location, SignIn, SignInKind, SignInName, Store, StoreError, Witnessed};

/// The stored sign-ins, and cached data of clients and identity providers.
pub(crate) struct SignIns {
    home: Home,
    location: Location,
    pub(crate) sealer: Arc<Sealer>,
    /// A separate connection, opened with the first sign-in.
    store: Mutex<Option<Witnessed>>,
    pub(super) documents: ClientDocuments,
    pub(super) providers: Providers,
    /// The revoked callers.
    revoked: ArcSwap<RevokedCallers>,
}

impl std::fmt::Debug for SignIns {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SignIns").field("home", &self.home).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct Content<T> {
    kind: String,
    name: String,
    content: T,
}

impl SignIns {
    pub(crate) fn new(home: &Home, location: &Location, sealer: Arc<Sealer>) -> SignIns {
        SignIns {
            home: home.clone(),
            location: location.clone(),
            sealer,
            store: Mutex::default(),
            documents: ClientDocuments::default(),
            providers: Providers::default(),
            revoked: ArcSwap::default(),
        }
    }

    /// Takes over the revoked callers. Returns whether they changed.
    pub(crate) fn take_revoked(&self, revoked: &Arc<RevokedCallers>) -> bool {
        *self.revoked.swap(revoked.clone()) != **revoked
    }

    pub(super) fn is_revoked(&self, identity: &WrittenIdentity, since: Timestamp) -> bool {
        is_revoked(identity, since, &self.revoked.load())
    }

    /// Uses the store on a thread that may block.
    pub(crate) async fn with_store<T: Send + 'static>(
        self: &Arc<Self>,
        doing: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let own = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut kept = own.store.lock().unwrap_or_else(PoisonError::into_inner);
            let store = match kept.take() {
                Some(store) if store.is_in_place() => store,
                _ => Witnessed::new(store::open(&own.home, &own.location)?, &own.home),
            };
            doing(kept.insert(store))
        });
        done.await.unwrap_or(Err(StoreError::Garbled { what: "a sign-in" }))
    }

    /// A record that is ready to be written.
    pub(super) fn record<T: Serialize>(
        &self,
        named: (SignInKind, SignInName),
        owner: &str,
        (at, expires_at): (Timestamp, Timestamp),
        content: &T,
    ) -> Result<SignIn, SealError> {
        let (kind, name) = named;
        let content = Content { kind: kind.as_str().to_owned(), name: name.to_string(), content };
        let sealed = seal(&self.sealer, Purpose::SignInRecord, &content)?;
        Ok(SignIn { kind, name, owner: owner.to_owned(), at, expires_at, sealed })
    }

    /// The content of a record; `None` if the gateway did not write it under this name.
    pub(super) fn open<T: DeserializeOwned>(&self, record: &SignIn) -> Option<T> {
        let read: Content<T> = open(&self.sealer, Purpose::SignInRecord, &record.sealed)?;
        let is_own = read.kind == record.kind.as_str() && read.name == record.name.as_str();
        is_own.then_some(read.content)
    }

    /// Marks something as used. Returns `false` if it was used before.
    pub(super) async fn use_up(
        self: &Arc<Self>,
        name: SignInName,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let record = SignIn {
            kind: SignInKind::Used,
            name,
            owner: owner.to_owned(),
            at: now,
            expires_at: until,
            sealed: String::new(),
        };
        self.with_store(move |store| {
            store.expire_sign_ins(now)?;
            store.add_sign_in(&record)
        })
        .await
    }
}

/// Seals a value.
pub(super) fn seal<T: Serialize>(
    sealer: &Sealer,
    purpose: Purpose,
    content: &T,
) -> Result<String, SealError> {
    let content = zeroize::Zeroizing::new(serde_json::to_vec(content).map_err(|_| SealError::Key)?);
    sealer.seal(purpose, &content)
}

/// The content that [`seal`] sealed for the same purpose.
pub(super) fn open<T: DeserializeOwned>(
    sealer: &Sealer,
    purpose: Purpose,
    sealed: &str,
) -> Option<T> {
    let content = zeroize::Zeroizing::new(sealer.open(purpose, sealed)?);
    serde_json::from_slice(&content).ok()
}

/// The record name for these parts. They are hashed, so that the name is short and reveals nothing.
pub(super) fn name_of(parts: &[&str]) -> Result<SignInName, SealError> {
    let lengths = parts.iter().map(|part| format!("{}:{part}", part.len()));
    let joined: String = lengths.collect();
    sha256_hex(joined.as_bytes()).parse().map_err(|_| SealError::Key)
}

/// Random bytes from the operating system.
pub(super) fn random<const BYTES: usize>() -> Result<[u8; BYTES], SealError> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).map_err(SealError::NoRandomness)?;
    Ok(bytes)
}

/// 128 random bits as text, for names.
pub(super) fn random_id() -> Result<String, SealError> {
    Ok(hex::encode(random::<16>()?))
}

/// The moment this many seconds later.
pub(super) fn after(moment: Timestamp, seconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    Timestamp(moment.0.saturating_add(milliseconds))
}
