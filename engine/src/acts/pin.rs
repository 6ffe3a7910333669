//! Pins what a server shows now, as approved by the person who requested it.

use crate::acts::siblings::{Approval, Siblings};
use crate::acts::{ActError, Configured, RecordedServer, Shared, held_changes};
use crate::anchor::anchor;
use contract::change::ChangeKind;
use contract::surface::{Anchor, Entry, EntryId, Surface};
use gate::judge::{Judgement, SurfaceJudgement, judge_surface};
use gate::pins::{Basis, PinBook};
use gate::server::ServerStatus;
use gate::status::Happening;
use store::{Act, By, HoldDecision, Launch, NewPin, Observation, Store};

/// The entries about to be pinned, to be shown to a person.
#[derive(Debug)]
pub struct PinDraft {
    server: RecordedServer,
    pub surface: Surface,
    entries: Vec<Entry>,
    pub question: PinQuestion,
    /// Entries that stay unpinned and held.
    left_out: Vec<EntryId>,
}

/// What a person must be asked before the entries are pinned.
#[derive(Debug)]
pub enum PinQuestion {
    Nothing,
    /// There is a baseline already, so pinning anything over it is an approval, whether the change
    /// is benign or not.
    Change(SurfaceJudgement),
    /// On first use, these contain wording or characters designed to steer a model. They can be
    /// left out.
    Marked(SurfaceJudgement),
}

/// The result of pinning.
#[derive(Debug)]
pub struct Pinned {
    pub status: ServerStatus,
    pub count: usize,
    pub surface: Surface,
    pub left_out: Vec<EntryId>,
    pub shared: Vec<Shared>,
}

impl RecordedServer {
    /// Refuses a server that cannot be pinned. To be called before the server is contacted.
    pub fn check_pin(&self) -> Result<(), ActError> {
        self.next(Happening::Approved { is_held: false }).map(|_| ())
    }
}

impl PinDraft {
    /// Drafts pins for everything in a surface that no person has approved, anchored to the signer
    /// that vouches for the server now: a pin without an anchor would later accept any signer.
    pub fn new(
        server: RecordedServer,
        mut surface: Surface,
        vouched: Option<Anchor>,
    ) -> Result<PinDraft, ActError> {
        server.check_pin()?;
        if let Some((list, reason)) = surface.unreadable().iter().next() {
            return Err(ActError::UnreadableList { list: *list, reason: reason.to_string() });
        }
        anchor(&mut surface, vouched, server.pins());
        let mut entries: Vec<Entry> =
            surface.entries().filter(|entry| !is_approved(entry, server.pins())).cloned().collect();
        let question = if server.pins().has_baseline() {
            let judgement = server.judge(&surface, None);
            let gone = judgement.entries.iter().filter(|entry| entry.after.is_none());
            entries.extend(gone.map(|entry| Entry::gone(entry.id.clone())));
            match entries.is_empty() && !server.pins().is_damaged() {
                true => PinQuestion::Nothing,
                false => PinQuestion::Change(judgement),
            }
        } else {
            let mut judgement = judge_surface(&PinBook::default(), &surface, server.settings(), 0);
            judgement.entries.retain(is_marked);
            match judgement.entries.is_empty() {
                true => PinQuestion::Nothing,
                false => PinQuestion::Marked(judgement),
            }
        };
        Ok(PinDraft { server, surface, entries, question, left_out: Vec::new() })
    }

    /// The entries that would be pinned.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Leaves out the entries with a marker: they stay unpinned and held, and all others are
    /// pinned.
    #[must_use]
    pub fn without_marked(mut self) -> PinDraft {
        if let PinQuestion::Marked(judgement) = &self.question {
            self.left_out = judgement.entries.iter().map(|entry| entry.id.clone()).collect();
            self.entries.retain(|entry| !self.left_out.contains(entry.id()));
        }
        self
    }
}

/// Pins a draft, for this server and for others with the same launch.
pub fn pin(
    store: &mut dyn Store,
    draft: PinDraft,
    launch: Option<&Launch>,
    configured: Configured<'_>,
    by: By<'_>,
) -> Result<Pinned, ActError> {
    let PinDraft { server, surface, entries, left_out, question } = draft;
    let status = server.next(Happening::Approved { is_held: !left_out.is_empty() })?;
    let count = entries.len();
    let identity = match launch {
        Some(launch) => launch.identity(),
        None => server.identity(),
    };
    let siblings = Siblings::of(store, &server.id, identity)?;
    let observation = Observation::of(&surface, by.at);
    let mut act = Act::new(&server.id, by.at, by.name, "server.pin");
    act.expect = Some(server.snapshot.revision());
    act.launch = launch;
    act.status = Some(status);
    act.observation = Some(&observation);
    act.reseal = server.pins().is_damaged();
    // Pinning over a held change approves that change.
    if let PinQuestion::Change(judgement) = &question {
        act.held = held_changes(judgement.posture, &judgement.entries);
        act.decision = Some(HoldDecision::Overridden);
    }
    let pins = entries.iter().cloned();
    act.pins = pins.map(|entry| NewPin { entry, basis: Basis::Person }).collect();
    store.record(act)?;
    let (book, file) = (server.pins_with(&entries, by), siblings.file);
    let (name, entries) = ("server.pin", entries.as_slice());
    let approval = Approval { name, entries, book: &book, file, detail: None, by };
    let shared = siblings.share(store, configured, by, |server| approval.for_sibling(server));
    Ok(Pinned { status, count, surface, left_out, shared })
}

/// Whether a person approved exactly this entry. If the book as a whole is lost, none of its pins
/// counts.
fn is_approved(entry: &Entry, book: &PinBook) -> bool {
    let pins = book.get(entry.id()).filter(|_| book.lost.is_none());
    pins.and_then(gate::pins::EntryPins::accepted).is_some_and(|pin| {
        pin.basis == Basis::Person && pin.entry.entry_hash() == entry.entry_hash()
    })
}

fn is_marked(entry: &Judgement) -> bool {
    entry.findings.iter().any(|finding| finding.kind == ChangeKind::MarkerFound)
}
