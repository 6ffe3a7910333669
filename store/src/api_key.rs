//! The API keys that callers use the gateway with. Only the hash of a key is stored, never the key.

use crate::act::within;
use crate::by::{By, Signed};
use crate::error::StoreError;
use crate::named::id_type;
use crate::statistics::Day;
use gate::time::Timestamp;

pub use ledger::record::ActorType;

/// The longest name of a principal, an organization or a group, in bytes.
pub const MAX_PRINCIPAL_BYTES: usize = 1_024;
/// The most groups of a key.
pub const MAX_GROUPS: usize = 256;
/// The most keys that are kept, including revoked ones.
pub const MAX_API_KEYS: usize = 100_000;

id_type! {
    /// The name of a key, used to list and revoke it.
    ApiKeyId
}

/// The SHA-256 of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyHash(pub [u8; 32]);

/// A key to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApiKey {
    pub id: ApiKeyId,
    pub hash: ApiKeyHash,
    pub sub: String,
    pub actor_type: ActorType,
    pub org: Option<String>,
    pub groups: Vec<String>,
    pub clearance: Option<String>,
    /// Whether the key opens the admin API; such a key opens no MCP path.
    pub admin: bool,
    pub expires_at: Option<Timestamp>,
}

impl NewApiKey {
    pub(crate) fn check_limits(&self) -> Result<(), StoreError> {
        let names =
            std::iter::once(&self.sub).chain(&self.org).chain(&self.clearance).chain(&self.groups);
        for name in names {
            within("the name of a principal", name.len(), MAX_PRINCIPAL_BYTES)?;
        }
        within("the number of a key's groups", self.groups.len(), MAX_GROUPS)
    }
}

/// A recorded key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub key: NewApiKey,
    pub created: Signed,
    pub revoked: Option<Signed>,
    pub last_used: Option<Day>,
}

impl ApiKey {
    /// Whether the key is valid at this moment.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.key.expires_at.is_none_or(|expires| now < expires)
    }
}

/// API keys, shared by all processes.
pub trait ApiKeyStore {
    fn add_api_key(&mut self, key: &NewApiKey, by: By<'_>) -> Result<(), StoreError>;

    /// The key with this hash, valid or not.
    fn api_key(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError>;

    /// All keys ordered by id, for display to people.
    fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// All keys, for callers that authenticate with them: fails if another program changed them.
    fn sealed_api_keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// Revokes a key permanently. Revoking it again keeps the first time.
    fn revoke_api_key(&mut self, id: &ApiKeyId, by: By<'_>) -> Result<(), StoreError>;

    /// Records the day on which a key was last used. Writes nothing if that day is already
    /// recorded.
    fn note_api_key_use(&mut self, id: &ApiKeyId, day: Day) -> Result<(), StoreError>;
}
