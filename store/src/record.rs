//! The records that the store returns: servers, launches, observations and history.

use crate::launch_identity::LaunchIdentity;
use contract::client::ClientCapabilities;
use contract::hash::{EntryHash, SurfaceHash};
use contract::json::Document;
use contract::surface::{Entry, EntryId, EntryType, ListKind, Surface, SurfaceReader, Unreadable};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::Posture;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use std::collections::BTreeMap;

/// How often a server's record was written. A decision names the revision it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Revision(pub(crate) i64);

impl Revision {
    /// The revision of a server that has no record.
    pub const NONE: Revision = Revision(0);
}

/// A server as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRecord {
    pub id: ServerId,
    /// `Quarantined` if the stored status cannot be read: nothing is served in that status.
    pub status: ServerStatus,
    /// How to start or reach the server again. Must only be used if `lost` is `None`.
    pub launch: Option<Launch>,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    pub revision: Revision,
    /// How often the record was sealed. An older copy that was put back has a smaller number.
    pub seal_count: i64,
    /// Why the record does not authenticate; `None` if it does.
    pub lost: Option<String>,
}

impl ServerRecord {
    /// The identity of the launch. `None` if the record does not authenticate.
    pub fn identity(&self) -> Option<&LaunchIdentity> {
        self.launch.as_ref().filter(|_| self.lost.is_none())?.identity()
    }
}

/// How a server stands after an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    pub revision: Revision,
    /// The seal count that the ledger must record as seen. After an act on a record that stays
    /// broken it is larger than the record's own, so that no copy from before the act counts as the
    /// newest state.
    pub seal_count: i64,
}

/// Everything stored about a server, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub server: Option<ServerRecord>,
    pub pins: PinBook,
    pub observation: Option<Observation>,
}

impl Snapshot {
    /// The revision that an act based on this snapshot must expect.
    pub fn revision(&self) -> Revision {
        self.server.as_ref().map_or(Revision::NONE, |server| server.revision)
    }

    pub fn status(&self) -> ServerStatus {
        self.server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status)
    }
}

/// A pin that was made at any time, withdrawn or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastPin {
    pub pin: Pin,
    pub is_withdrawn: bool,
}

/// The data a server is judged by: a [`Snapshot`] without the texts that were last observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    pub server: Option<ServerRecord>,
    /// The pins that were asked for. For the others, only whether they authenticate is known.
    pub pins: PinBook,
    /// Whether the server has any pin, asked for or not.
    pub has_pins: bool,
    pub sighting: Option<Sighting>,
}

impl Baseline {
    /// The revision that an act based on this baseline must expect.
    pub fn revision(&self) -> Revision {
        self.server.as_ref().map_or(Revision::NONE, |server| server.revision)
    }

    pub fn status(&self) -> ServerStatus {
        self.server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status)
    }
}

/// Which pins of a [`Baseline`] are kept in memory. All pins are authenticated either way.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// The pins of some entry types.
    Of(fn(EntryType) -> bool),
    /// All pins. A pin with the same text as an entry of this surface shares that text.
    Beside(&'a Surface),
}

impl Wanted<'_> {
    pub(crate) fn is_of(self, entry_type: EntryType) -> bool {
        match self {
            Wanted::Of(is_wanted) => is_wanted(entry_type),
            Wanted::Beside(_) => true,
        }
    }

    /// The entry of the surface with this id and exactly this text.
    pub(crate) fn same(&self, id: &EntryId, raw: &str) -> Option<&Entry> {
        match self {
            Wanted::Of(_) => None,
            Wanted::Beside(surface) => surface.entry(id).filter(|entry| entry.raw() == raw),
        }
    }
}

/// A summary of an observation without its texts, enough to compare it with another observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub surface_hash: SurfaceHash,
    pub unreadable: BTreeMap<ListKind, String>,
    pub notes: Vec<String>,
    pub protocol_version: Option<String>,
    pub server_version: Option<String>,
}

impl Sighting {
    pub fn of(surface: &Surface) -> Sighting {
        let unreadable =
            surface.unreadable().iter().map(|(list, reason)| (*list, reason.0.clone())).collect();
        Sighting {
            surface_hash: surface.surface_hash(),
            unreadable,
            notes: surface.notes().to_vec(),
            protocol_version: surface.protocol_version.clone(),
            server_version: surface.server_version.clone(),
        }
    }
}

/// How a server is started or reached, as stored: words that may be secrets are keyed hashes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Launch {
    Program {
        command: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
        #[serde(default)]
        environment_names: Vec<String>,
        /// Whether an argument was stored only as its hash.
        #[serde(default)]
        has_secrets: bool,
        /// The client capabilities of the last start: some servers offer different tools depending
        /// on them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_capabilities: Option<ClientCapabilities>,
        /// The posture last given on the gate's command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        posture: Option<Posture>,
        /// Recognises other launches of the same server, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<LaunchIdentity>,
    },
    Url {
        url: String,
        #[serde(default)]
        header_names: Vec<String>,
        /// Whether a part of the URL was stored only as its hash.
        #[serde(default)]
        has_secrets: bool,
        /// The client capabilities of the last connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_capabilities: Option<ClientCapabilities>,
        /// The posture last given on the gate's command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        posture: Option<Posture>,
        /// Recognises other launches of the same server, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<LaunchIdentity>,
    },
}

impl Launch {
    /// Whether launching again needs a value that was not stored. Variables and headers are stored
    /// by name only as well; the caller that launches the server knows whether they are available.
    pub fn has_secrets(&self) -> bool {
        match self {
            Launch::Program { has_secrets, .. } | Launch::Url { has_secrets, .. } => *has_secrets,
        }
    }

    /// The client capabilities of the last launch, where known.
    pub fn client_capabilities(&self) -> Option<&ClientCapabilities> {
        match self {
            Launch::Program { client_capabilities, .. }
            | Launch::Url { client_capabilities, .. } => client_capabilities.as_ref(),
        }
    }

    /// The same launch for another client.
    #[must_use]
    pub fn for_client(mut self, client: Option<ClientCapabilities>) -> Launch {
        match &mut self {
            Launch::Program { client_capabilities, .. }
            | Launch::Url { client_capabilities, .. } => *client_capabilities = client,
        }
        self
    }

    /// The identity of the launch, where known.
    pub fn identity(&self) -> Option<&LaunchIdentity> {
        match self {
            Launch::Program { identity, .. } | Launch::Url { identity, .. } => identity.as_ref(),
        }
    }

    /// The same launch with this identity.
    #[must_use]
    pub fn known_as(mut self, known: Option<LaunchIdentity>) -> Launch {
        match &mut self {
            Launch::Program { identity, .. } | Launch::Url { identity, .. } => *identity = known,
        }
        self
    }

    /// The posture last given on the gate's command line; `None` if the configuration decided.
    pub fn posture(&self) -> Option<Posture> {
        match self {
            Launch::Program { posture, .. } | Launch::Url { posture, .. } => *posture,
        }
    }

    /// The same launch with this posture from the gate's command line.
    #[must_use]
    pub fn under(mut self, given: Option<Posture>) -> Launch {
        match &mut self {
            Launch::Program { posture, .. } | Launch::Url { posture, .. } => *posture = given,
        }
        self
    }
}

/// A surface as it was last observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub capture: String,
    /// The JSON of the origin entry, which a capture does not have.
    pub origin: Option<String>,
    pub surface_hash: SurfaceHash,
    /// The lists that could not be read, and why.
    pub unreadable: BTreeMap<ListKind, String>,
    pub notes: Vec<String>,
    pub observed_at: Timestamp,
    pub protocol_version: Option<String>,
    pub server_version: Option<String>,
}

/// Why an observation cannot be turned back into its surface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    #[error("the recorded surface cannot be read: {0}")]
    Capture(#[from] Unreadable),
    #[error("the recorded surface is not the one whose hash was recorded with it")]
    OtherSurface,
}

impl Observation {
    pub fn of(surface: &Surface, observed_at: Timestamp) -> Observation {
        let Sighting { surface_hash, unreadable, notes, protocol_version, server_version } =
            Sighting::of(surface);
        Observation {
            capture: surface.to_record(),
            origin: surface
                .entry(&EntryId::only(EntryType::Origin))
                .map(|origin| origin.raw().to_owned()),
            surface_hash,
            unreadable,
            notes,
            observed_at,
            protocol_version,
            server_version,
        }
    }

    /// Rebuilds the surface and checks it against the recorded hash.
    pub fn surface(&self) -> Result<Surface, ObservationError> {
        let document = Document::parse(&self.capture).map_err(Unreadable::from)?;
        let mut reader = SurfaceReader::default();
        for list in ListKind::ALL {
            if let Some(entries) = document.root().get(list.member()) {
                reader.list(list, &[format!("{{\"{}\":{}}}", list.member(), entries.raw())]);
            }
        }
        reader.handshake(&self.capture)?;
        for (list, reason) in &self.unreadable {
            reader.unreadable(*list, reason.clone());
        }
        for note in &self.notes {
            reader.note(note.clone());
        }
        let mut surface = reader.finish();
        if let Some(origin) = &self.origin {
            let id = EntryId::only(EntryType::Origin);
            surface.insert(Entry::from_raw(id, origin).map_err(Unreadable::from)?);
        }
        if let Some(anchor) = Surface::recorded_anchor(&document) {
            surface.anchor_to(&anchor).map_err(Unreadable::from)?;
        }
        if surface.surface_hash() == self.surface_hash {
            Ok(surface)
        } else {
            Err(ObservationError::OtherSurface)
        }
    }

    /// Whether both observations show the same surface, whenever they were made.
    pub fn shows_the_same(&self, other: &Observation) -> bool {
        self.surface_hash == other.surface_hash
            && self.unreadable == other.unreadable
            && self.notes == other.notes
            && self.protocol_version == other.protocol_version
            && self.server_version == other.server_version
    }
}

/// One line of a server's history.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HistoryEvent {
    pub seq: i64,
    /// The `seq` of the act that this line belongs to; for an act's own line, its own `seq`.
    pub act: i64,
    pub at: Timestamp,
    pub by: String,
    pub server: ServerId,
    /// The name of the act, or `pin.added`, `pin.withdrawn` or `pin.discarded`.
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_type: Option<EntryType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_hash_before: Option<EntryHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_hash_after: Option<EntryHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface_hash_before: Option<SurfaceHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface_hash_after: Option<SurfaceHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_before: Option<ServerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_after: Option<ServerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The contents of a discarded row, as far as they could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

#[cfg(test)]
mod tests;
