//! Approval: pins exactly what a person reviewed, and nothing else.
//!
//! INVARIANT: approvals compare whole hashes. The server chooses both the reviewed definition and
//! the one that follows, and two definitions whose hashes share their first 16 digits can be found
//! within minutes.

use crate::acts::siblings::{Approval, Siblings};
use crate::acts::{
    ActError, Among, Configured, Decided, RecordedServer, Review, hash_of, held_changes,
};
use contract::hash::{EntryHash, SurfaceHash};
use contract::surface::{Entry, EntryId, Surface};
use gate::comparing::Compared;
use gate::judge::Judgement;
use gate::pins::Basis;
use gate::server::ServerId;
use gate::status::Happening;
use std::fmt;
use std::str::FromStr;
use store::{Act, By, HeldChange, HoldDecision, NewPin, Store};

/// The number of hexadecimal digits in a SHA-256.
const DIGITS: usize = 64;
/// The most hashes recorded in the history of one approval.
const MAX_NAMED_HASHES: usize = 32;

/// The hash that a person reviewed: of one entry, or of the whole surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedHash(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a whole hash, which has {DIGITS} hexadecimal digits")]
pub struct NotAHash;

impl FromStr for ReviewedHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<ReviewedHash, NotAHash> {
        let is_whole = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_whole.then(|| ReviewedHash(text.to_ascii_lowercase())).ok_or(NotAHash)
    }
}

impl From<EntryHash> for ReviewedHash {
    fn from(hash: EntryHash) -> ReviewedHash {
        ReviewedHash(hash.to_string())
    }
}

impl From<SurfaceHash> for ReviewedHash {
    fn from(hash: SurfaceHash) -> ReviewedHash {
        ReviewedHash(hash.to_string())
    }
}

impl fmt::Display for ReviewedHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Waiting entries that have the reviewed hash.
#[derive(Debug)]
pub struct Choice<'r> {
    review: &'r Review,
    hashes: Vec<ReviewedHash>,
    pub entries: Vec<&'r Judgement>,
}

impl Review {
    /// The waiting entries selected by the keys and the hash. Without keys, the hash alone selects
    /// them.
    pub fn choose(&self, keys: &[String], hash: &ReviewedHash) -> Result<Choice<'_>, ActError> {
        let waiting = self.approvable()?;
        if !keys.is_empty() {
            let found = keys.iter().map(|key| self.find_waiting(&waiting, key));
            return self.chosen(found.collect::<Result<_, _>>()?, hash);
        }
        if self.surface_hash().as_ref() == Some(hash) {
            return self.chosen(waiting, hash);
        }
        let mut named = waiting.into_iter().filter(|entry| hash_of(entry).as_ref() == Some(hash));
        match (named.next(), named.next()) {
            (Some(one), None) => self.chosen(vec![one], hash),
            (None, _) | (Some(_), Some(_)) => Err(self.other_hash()),
        }
    }

    /// These entries, provided that they still wait and still have the reviewed hash.
    pub fn choose_shown(
        &self,
        shown: &[EntryId],
        hash: &ReviewedHash,
    ) -> Result<Choice<'_>, ActError> {
        let mut entries = self.approvable()?;
        entries.retain(|entry| shown.contains(&entry.id));
        if entries.len() == shown.len() {
            self.chosen(entries, hash)
        } else {
            Err(self.other_hash())
        }
    }

    /// Several entries, each with the hash it was reviewed with. If one of them is not waiting, or
    /// has a different hash, the whole choice is refused.
    pub fn choose_entries(
        &self,
        reviewed: &[(EntryId, ReviewedHash)],
    ) -> Result<Choice<'_>, ActError> {
        let waiting = self.approvable()?;
        let mut entries: Vec<&Judgement> = Vec::new();
        for (id, hash) in reviewed {
            let found = waiting.iter().find(|entry| entry.id == *id);
            let found = found.filter(|entry| hash_of(entry).as_ref() == Some(hash));
            let found = *found.ok_or_else(|| self.other_hash())?;
            if !entries.iter().any(|chosen| chosen.id == found.id) {
                entries.push(found);
            }
        }
        if entries.is_empty() {
            return Err(self.other_hash());
        }
        let hashes = reviewed.iter().map(|(_, hash)| hash.clone()).collect();
        self.whole_if_first(Choice { review: self, hashes, entries })
    }

    fn chosen<'r>(
        &'r self,
        entries: Vec<&'r Judgement>,
        hash: &ReviewedHash,
    ) -> Result<Choice<'r>, ActError> {
        let is_whole = self.surface_hash().as_ref() == Some(hash);
        let is_it = match entries.as_slice() {
            [one] => is_whole || hash_of(one).as_ref() == Some(hash),
            _ => is_whole,
        };
        if !is_it {
            return Err(self.other_hash());
        }
        self.whole_if_first(Choice { review: self, hashes: vec![hash.clone()], entries })
    }

    /// Entries left out of a first approval would later look like additions.
    fn whole_if_first<'r>(&self, choice: Choice<'r>) -> Result<Choice<'r>, ActError> {
        let mut waiting = self.waiting().filter(|entry| entry.can_be_approved());
        let is_chosen =
            |entry: &Judgement| choice.entries.iter().any(|chosen| chosen.id == entry.id);
        if self.awaits_first_approval() && !waiting.all(is_chosen) {
            return Err(ActError::PartOfFirst { server: self.server.id.clone() });
        }
        Ok(choice)
    }

    fn approvable(&self) -> Result<Vec<&Judgement>, ActError> {
        // Nothing of a quarantined server can be approved, whatever would be held.
        self.server.next(Happening::Approved { is_held: false })?;
        let waiting: Vec<&Judgement> =
            self.waiting().filter(|entry| entry.can_be_approved()).collect();
        let server = self.server.id.clone();
        match (waiting.is_empty(), self.judgement.unreadable.is_empty()) {
            (false, _) => Ok(waiting),
            (true, false) => Err(ActError::UnreadableSurface { server }),
            (true, true) => Err(ActError::NothingWaits { server }),
        }
    }

    fn find_waiting<'r>(
        &self,
        waiting: &[&'r Judgement],
        key: &str,
    ) -> Result<&'r Judgement, ActError> {
        if let Some(found) = Review::find(waiting.iter().copied(), |entry| &entry.id, key)? {
            return Ok(found);
        }
        let (server, key) = (self.server.id.clone(), key.to_owned());
        if self.has_entry(&key) {
            return Err(ActError::DoesNotWait { server, key });
        }
        let known = waiting.iter().map(|entry| entry.id.clone()).collect();
        Err(ActError::UnknownEntry { server, key, among: Among::Waiting, known })
    }

    fn other_hash(&self) -> ActError {
        ActError::OtherHash { server: self.server.id.clone() }
    }
}

/// Pins the chosen entries as approved by a person, for this server and for others with the same
/// launch.
pub fn approve(
    store: &mut dyn Store,
    choice: &Choice<'_>,
    configured: Configured<'_>,
    by: By<'_>,
) -> Result<Decided, ActError> {
    let Review { server, surface, .. } = choice.review;
    let gone = |entry: &Judgement| Entry::gone(entry.id.clone());
    let entries = choice.entries.iter();
    let entries: Vec<Entry> =
        entries.map(|entry| entry.after.clone().unwrap_or_else(|| gone(entry))).collect();
    let nothing = Surface::default();
    let surface = surface.as_ref().unwrap_or(&nothing);
    let detail = detail_of(&choice.hashes);
    let held = match server.awaits_first_approval() {
        true => Vec::new(),
        false => held_changes(choice.review.judgement.posture, choice.entries.iter().copied()),
    };
    let approved = Approved { entries, detail, held };
    record(store, server, surface, approved, configured, by, &mut Compared::default())
}

/// The history text for an approval: its hashes, as many as there is room for.
fn detail_of(hashes: &[ReviewedHash]) -> String {
    match hashes {
        [one] => format!("hash {one}"),
        many => {
            let shown: Vec<&str> =
                many.iter().take(MAX_NAMED_HASHES).map(|hash| hash.0.as_str()).collect();
            let more = match many.len().saturating_sub(MAX_NAMED_HASHES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("hashes {}{more}", shown.join(", "))
        }
    }
}

/// Pins one entry that a person approved when the gate asked in their client, if the entry is still
/// the one they were asked about. They saw only one entry, so anything that requires reviewing the
/// whole server cannot be approved this way.
pub(crate) fn approve_in_client(
    store: &mut dyn Store,
    server: &RecordedServer,
    surface: &Surface,
    (id, hash): (&EntryId, Option<EntryHash>),
    by: By<'_>,
    compared: &mut Compared,
) -> Result<Decided, ActError> {
    let name = || server.id.clone();
    if server.pins().is_damaged() {
        return Err(ActError::DamagedPins { server: name() });
    }
    if server.awaits_first_approval() {
        return Err(ActError::PartOfFirst { server: name() });
    }
    let entry = surface.entry(id);
    if entry.map(Entry::entry_hash) != hash {
        return Err(ActError::OtherHash { server: name() });
    }
    let entry = entry.cloned().unwrap_or_else(|| Entry::gone(id.clone()));
    let detail = "asked in the client".to_owned();
    let judgement = server.judge(surface, None);
    let held = held_changes(judgement.posture, judgement.of(id));
    let approved = Approved { entries: vec![entry], detail, held };
    let configured = |_: &ServerId| server.settings().clone();
    record(store, server, surface, approved, &configured, by, compared)
}

/// The entries to approve, how they are approved, and the holds that end with the approval.
struct Approved {
    entries: Vec<Entry>,
    detail: String,
    held: Vec<HeldChange>,
}

fn record(
    store: &mut dyn Store,
    server: &RecordedServer,
    surface: &Surface,
    approved: Approved,
    configured: Configured<'_>,
    by: By<'_>,
    compared: &mut Compared,
) -> Result<Decided, ActError> {
    let Approved { entries, detail, held } = approved;
    let name = "server.approve";
    let book = server.pins_with(&entries, by);
    let is_held = server.is_held_with(&book, surface, compared);
    let status = server.next(Happening::Approved { is_held })?;
    let siblings = Siblings::of(store, &server.id, server.identity())?;
    let mut act = Act::new(&server.id, by.at, by.name, name);
    act.expect = Some(server.snapshot.revision());
    act.status = Some(status);
    act.reseal = server.pins().is_damaged();
    act.detail = Some(detail.clone());
    act.held = held;
    act.decision = Some(HoldDecision::Overridden);
    let pins = entries.iter().cloned();
    act.pins = pins.map(|entry| NewPin { entry, basis: Basis::Person }).collect();
    store.record(act)?;
    let (book, file, detail) = (&book, siblings.file, Some(detail.as_str()));
    let approval = Approval { name, entries: &entries, book, file, detail, by };
    let shared = siblings.share(store, configured, by, |server| approval.for_sibling(server));
    Ok(Decided { status, shared })
}
