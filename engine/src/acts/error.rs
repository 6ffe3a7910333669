//! Why an act was refused. A surface that shows the error adds in its own words what to do next.

use contract::surface::{EntryId, ListKind};
use gate::server::ServerId;
use gate::status::NotAllowed;
use store::{ObservationError, QuarantineId, RevokedKind, Store, StoreError};

/// The set of entries in which a name was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    Waiting,
    Pinned,
}

#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("no server `{id}` is known")]
    UnknownServer { id: ServerId, known: Vec<ServerId> },
    #[error("server `{server}` has nothing called `{key}`")]
    UnknownEntry { server: ServerId, key: String, among: Among, known: Vec<EntryId> },
    #[error("`{key}` names several entries")]
    AmbiguousEntry { key: String },
    #[error("`{server}`: {source}")]
    NotAllowed { server: ServerId, source: NotAllowed },
    #[error("server `{server}` has nothing to approve")]
    NothingWaits { server: ServerId },
    #[error("`{key}` of server `{server}` is not waiting: it matches its approved version")]
    DoesNotWait { server: ServerId, key: String },
    #[error("the last surface of server `{server}` could not be read, so it cannot be approved")]
    UnreadableSurface { server: ServerId },
    #[error("the waiting entries of server `{server}` now have a different hash")]
    OtherHash { server: ServerId },
    #[error("server `{server}` waits for its first approval, which is of all its entries")]
    PartOfFirst { server: ServerId },
    #[error("the pins of server `{server}` cannot be trusted")]
    DamagedPins { server: ServerId },
    #[error("`{}` cannot be read: {reason}", list.method())]
    UnreadableList { list: ListKind, reason: String },
    #[error("`{key}` of server `{server}` has no pin yet: there is nothing to take back")]
    Unpinned { server: ServerId, key: String },
    #[error("`{entry}` has one pin only: there is nothing to go back to")]
    OnlyPin { entry: EntryId },
    /// The change would stop less than is stopped now, which requires a person's consent.
    #[error("this stops less than is stopped now, and needs a person's consent")]
    NeedsConsent,
    #[error("say why the incident is over: the reason is written down")]
    NoReason,
    #[error("nothing is quarantined under `{0}`")]
    NotQuarantined(QuarantineId),
    #[error("which {}? its name is empty", .0.as_str())]
    Nameless(RevokedKind),
    #[error(transparent)]
    NotAServerId(#[from] gate::server::BadServerId),
    #[error("the receipts cannot be read: {0}")]
    Receipts(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Observation(#[from] ObservationError),
}

impl ActError {
    /// Lists the known servers, so that a surface can suggest one.
    pub fn unknown_server(store: &dyn Store, id: &ServerId) -> ActError {
        let servers = store.servers().unwrap_or_default();
        ActError::UnknownServer {
            id: id.clone(),
            known: servers.into_iter().map(|server| server.id).collect(),
        }
    }
}
