//! Static keys: 256 random bits after a prefix that secret scanners can recognize. Only hashes are
//! stored.

use super::CredentialHash;
use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::time::Timestamp;
use foldhash::HashMap;
use policy::{ActorType, Caller, Identity, IdentityProof};
use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use store::{ApiKey, ApiKeyHash, ApiKeyId, Day, Store, StoreError};

/// The prefix of keys for the MCP paths.
const MCP_PREFIX: &str = "hp_";
/// The prefix of keys for the admin API.
const ADMIN_PREFIX: &str = "hpa_";
/// The issuer of every principal that uses a static key.
pub const KEY_ISSUER: &str = "holdpoint:keys";
const SECRET_BYTES: usize = 32;
const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// A new key, displayed once.
pub struct StaticKey(String);

impl std::fmt::Debug for StaticKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StaticKey(…)")
    }
}

impl StaticKey {
    /// The error comes from the operating system's random source.
    pub fn generate(is_admin: bool) -> Result<StaticKey, getrandom::Error> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret)?;
        let prefix = if is_admin { ADMIN_PREFIX } else { MCP_PREFIX };
        Ok(StaticKey(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(secret))))
    }

    /// The key itself, for the person who created it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash(CredentialHash::of(self.0.as_bytes()).0)
    }
}

/// Whether a bearer credential is a static key and not a token. A JWT has two dots; a key has none.
pub(super) fn is_static_key(text: &str) -> bool {
    text.starts_with(MCP_PREFIX) || text.starts_with(ADMIN_PREFIX)
}

/// Why a key is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum KeyFault {
    #[error("keys are not enabled")]
    Disabled,
    #[error("the key is not known")]
    Unknown,
    #[error("the key was revoked")]
    Revoked,
    #[error("the key has expired")]
    Expired,
    #[error("an admin key opens no MCP path")]
    AdminKey,
    #[error("the key is not an admin key")]
    NotAdminKey,
}

/// The keys as last read from the store, and the days of use that are not yet written.
#[derive(Debug, Default)]
pub(super) struct KeyRing {
    known: ArcSwap<HashMap<ApiKeyHashKey, KnownKey>>,
    /// Until when each subject has an unrevoked key; `None` if one of its keys never expires.
    subjects: ArcSwap<HashMap<String, Option<Timestamp>>>,
    used: Mutex<HashSet<(ApiKeyId, i64)>>,
}

type ApiKeyHashKey = [u8; 32];

#[derive(Debug)]
struct KnownKey {
    id: ApiKeyId,
    is_admin: bool,
    is_revoked: bool,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    /// The last day of use that is written or queued.
    last_used: AtomicI64,
    caller: Caller,
}

/// The most queued days of use; when full, later ones are recorded another time.
const MAX_WAITING_USES: usize = 10_000;

impl KeyRing {
    /// Loads the keys from the store. If another program changed them, no key is valid. If the
    /// store does not answer, the loaded keys stay valid: the lease decides how long calls proceed
    /// without the store.
    pub(super) fn reload(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.take_over(store.sealed_api_keys())
    }

    fn take_over(&self, keys: Result<Vec<ApiKey>, StoreError>) -> Result<(), StoreError> {
        let known: HashMap<ApiKeyHashKey, KnownKey> = match &keys {
            Ok(keys) => keys.iter().map(|key| (key.key.hash.0, KnownKey::new(key))).collect(),
            Err(error) if error.is_unreachable() => return keys.map(drop),
            Err(_) => HashMap::default(),
        };
        let mut subjects: HashMap<String, Option<Timestamp>> = HashMap::default();
        for key in known.values().filter(|key| !key.is_revoked) {
            let subject = key.caller.identity().subject.clone();
            let until = subjects.entry(subject).or_insert(key.expires_at);
            *until = until.zip(key.expires_at).map(|(one, other)| one.max(other));
        }
        self.subjects.store(Arc::new(subjects));
        self.known.store(Arc::new(known));
        keys.map(drop)
    }

    pub(super) fn check(
        &self,
        hash: CredentialHash,
        wants_admin: bool,
        now: Timestamp,
    ) -> Result<(Caller, Option<Timestamp>, Timestamp), KeyFault> {
        let known = self.known.load();
        let key = known.get(&hash.0).ok_or(KeyFault::Unknown)?;
        if key.is_revoked {
            return Err(KeyFault::Revoked);
        }
        if key.expires_at.is_some_and(|expires| now >= expires) {
            return Err(KeyFault::Expired);
        }
        match (key.is_admin, wants_admin) {
            (true, false) => return Err(KeyFault::AdminKey),
            (false, true) => return Err(KeyFault::NotAdminKey),
            (true, true) | (false, false) => {}
        }
        self.note_use(key, now.0.div_euclid(MILLISECONDS_PER_DAY));
        Ok((key.caller.clone(), key.expires_at, key.created_at))
    }

    pub(super) fn id_of(&self, hash: CredentialHash) -> Option<String> {
        Some(self.known.load().get(&hash.0)?.id.as_str().to_owned())
    }

    /// Whether a subject has a valid key.
    pub(super) fn has_any_of(&self, subject: &str, now: Timestamp) -> bool {
        let until = self.subjects.load().get(subject).copied();
        until.is_some_and(|until| until.is_none_or(|until| now < until))
    }

    /// Whether the key exists and is not revoked.
    pub(super) fn has(&self, hash: CredentialHash) -> bool {
        self.known.load().get(&hash.0).is_some_and(|key| !key.is_revoked)
    }

    /// The caller of an unrevoked key for the MCP paths.
    pub(super) fn caller_of(&self, subject: &str) -> Option<Caller> {
        let known = self.known.load();
        let found = known.values().find(|key| {
            !key.is_revoked && !key.is_admin && key.caller.identity().subject == subject
        });
        found.map(|key| key.caller.clone())
    }

    fn note_use(&self, key: &KnownKey, day: i64) {
        if key.last_used.load(Ordering::Relaxed) >= day {
            return;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() < MAX_WAITING_USES {
            used.insert((key.id.clone(), day));
            key.last_used.fetch_max(day, Ordering::Relaxed);
        }
    }

    /// Writes the queued days of use. Called by a timer, never on the path of a request.
    pub(super) fn write_uses(&self, store: &mut dyn Store) -> Result<(), StoreError> {
        let waiting =
            std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, day) in waiting {
            store.note_api_key_use(&id, Day(day))?;
        }
        Ok(())
    }
}

impl KnownKey {
    fn new(ApiKey { key, created, revoked, last_used }: &ApiKey) -> KnownKey {
        let mut groups = key.groups.clone();
        groups.sort_unstable();
        groups.dedup();
        let identity = Identity {
            issuer: KEY_ISSUER.to_owned(),
            subject: key.sub.clone(),
            actor_type: match key.actor_type {
                store::ActorType::User => ActorType::User,
                store::ActorType::Agent => ActorType::Agent,
                store::ActorType::System => ActorType::System,
            },
            client_id: None,
            org: key.org.clone(),
            groups,
            clearance: key.clearance.clone(),
            mfa: false,
            proof: IdentityProof::Key,
        };
        KnownKey {
            id: key.id.clone(),
            is_admin: key.admin,
            is_revoked: revoked.is_some(),
            created_at: created.at,
            expires_at: key.expires_at,
            last_used: AtomicI64::new(last_used.map_or(i64::MIN, |day| day.0)),
            caller: Caller::new(identity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{ActorType as KeyActor, NewApiKey, Signed};

    #[test]
    fn a_subject_has_left_once_its_last_key_is_revoked_or_over() {
        let (ring, now) = (KeyRing::default(), Timestamp(1_800_000_000_000));
        let key = |id: &str, expires_at: Option<i64>, is_revoked: bool| ApiKey {
            key: NewApiKey {
                id: id.parse().unwrap(),
                hash: StaticKey::generate(false).unwrap().hash(),
                sub: "ada".to_owned(),
                actor_type: KeyActor::Agent,
                org: None,
                groups: Vec::new(),
                clearance: None,
                admin: false,
                expires_at: expires_at.map(Timestamp),
            },
            created: Signed { by: "bob".to_owned(), at: now },
            revoked: is_revoked.then(|| Signed { by: "bob".to_owned(), at: now }),
            last_used: None,
        };
        let has_any = |keys: Vec<ApiKey>| {
            ring.take_over(Ok(keys)).unwrap();
            ring.has_any_of("ada", now)
        };
        let later = Some(now.0 + 1);
        assert!(!has_any(Vec::new()));
        assert!(has_any(vec![key("k1", None, true), key("k2", later, false)]));
        assert!(has_any(vec![key("k1", None, false), key("k2", Some(now.0), false)]));
        assert!(has_any(vec![key("k1", later, false), key("k2", Some(now.0), false)]));
        assert!(!has_any(vec![key("k1", None, true), key("k2", Some(now.0), false)]));
    }

    #[test]
    fn keys_count_while_the_store_does_not_answer_and_not_after_another_program_changed_it() {
        let (ring, key) = (KeyRing::default(), StaticKey::generate(false).unwrap());
        let at = Timestamp(1_800_000_000_000);
        let known = ApiKey {
            key: NewApiKey {
                id: "k1".parse().unwrap(),
                hash: key.hash(),
                sub: "ada".to_owned(),
                actor_type: KeyActor::Agent,
                org: None,
                groups: Vec::new(),
                clearance: None,
                admin: false,
                expires_at: None,
            },
            created: Signed { by: "bob".to_owned(), at },
            revoked: None,
            last_used: None,
        };
        let counts = || ring.check(CredentialHash(key.hash().0), false, at).is_ok();
        ring.take_over(Ok(vec![known])).unwrap();
        assert!(counts());
        // The connection was lost while the keys were read.
        let lost = StoreError::Unreachable { place: "db".to_owned(), reason: "lost".to_owned() };
        for away in [lost, StoreError::LeaseOver] {
            assert!(ring.take_over(Err(away)).is_err());
            assert!(counts(), "for how long is the lease's to say");
        }
        let changed = StoreError::OlderStore { reason: "put back".to_owned() };
        assert!(ring.take_over(Err(changed)).is_err());
        assert!(!counts());
    }
}
