//! The pins of one server beside what it says: first use, re-pins, status, and the situation that calls are decided on.
//!
//! This is the only part of a session that writes to the store.

use crate::admission::{Admittance, Admitted, anchor_of};
use crate::recorder::now;
use crate::relist::ListOutcome;
use crate::situation::{DriftScope, Situation};
use crate::view::{Materials, View, is_stateless};
use attest::{ToolAllowlist, VerifiedAttestation, Vouched};
use contract::client::ClientCapabilities;
use contract::hash::EntryHash;
use contract::surface::{Anchor, Entry, EntryId, EntryType, ListKind, Surface, SurfaceReader};
use gate::first_use::{FirstUse, first_use};
use gate::judge::{Judgement, SurfaceJudgement};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::Settings;
use gate::server::{ServerId, ServerStatus};
use gate::shown::ListMode;
use gate::status::{Happening, next};
use gate::time::Timestamp;
use gate::unseen::{awaits_first_approval, judge_server};
use ledger::record::{Event, Text};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use store::receipts::ReceiptsError;
use store::{
    Act, Baseline, Count, Day, Incident, IncidentScope, IncidentStore, Launch, NewPin, Observation,
    Revision, RevokedKind, Sighting, StatisticsStore, Store, StoreError, Wanted, Witnessed,
};

/// How often a write is tried that somebody else came before.
const ATTEMPTS: usize = 5;
const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1_000;
/// Who acts where nobody was asked.
const NOBODY: &str = "holdpoint";

/// What is done with a server that is seen for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstUsePolicy {
    #[default]
    Trust,
    Approve,
}

/// How one server is judged.
#[derive(Debug, Clone)]
pub struct Rules {
    pub server: ServerId,
    pub settings: Settings,
    pub first_use: FirstUsePolicy,
    pub scope: DriftScope,
    pub mode: ListMode,
    /// The tools that may be used, where that is limited: others are not shown.
    pub allowed: Option<Arc<ToolAllowlist>>,
    /// Whether the server is reached over HTTP, where arguments go into headers if its definitions ask for that.
    pub mirrors_parameters: bool,
}

/// What a server says, as the answers that it said it with. They are read again when they are judged again, which is
/// seldom: kept in one piece they take a fraction of the memory.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub handshake: Option<Arc<str>>,
    pub lists: BTreeMap<ListKind, ListOutcome>,
    pub origin: Option<Entry>,
    /// Who vouches for it, as far as that was asked.
    pub attested: Option<Arc<Admitted>>,
    /// What the client can do that it said this to: it may say something else to another.
    pub client: Option<ClientCapabilities>,
}

impl Seen {
    /// Nothing where the handshake cannot be read in exactly one way.
    pub fn surface(&self) -> Option<Surface> {
        let mut reader = SurfaceReader::default();
        if let Some(handshake) = &self.handshake {
            reader.handshake(handshake).ok()?;
        }
        for (list, outcome) in &self.lists {
            outcome.read_into(*list, &mut reader);
        }
        let mut surface = reader.finish();
        if let Some(origin) = &self.origin {
            surface.insert(origin.clone());
        }
        Some(surface)
    }

    pub(crate) fn pages(&self) -> BTreeMap<ListKind, Arc<Vec<Arc<str>>>> {
        let pages = self.lists.iter().filter_map(|(list, outcome)| match outcome {
            ListOutcome::Pages(pages) => Some((*list, pages.clone())),
            ListOutcome::NotOffered | ListOutcome::Unreadable(_) => None,
        });
        pages.collect()
    }
}

/// What came of judging.
#[derive(Debug)]
pub struct Judged {
    pub situation: Situation,
    /// The pins of what a handshake tells.
    pub book: PinBook,
    /// Whether anything was ever pinned.
    pub has_baseline: bool,
    pub judgement: SurfaceJudgement,
    /// Entries that were pinned anew without asking.
    pub repinned: usize,
}

#[derive(Debug)]
pub struct Judge {
    store: Witnessed,
    rules: Rules,
    launch: Option<Launch>,
    /// What was held when it was last judged, to tell what began to be.
    held: HashSet<EntryId>,
    /// When the session began: what is revoked later concerns it.
    begun: Timestamp,
    /// The user whose calls these are, as receipts name them.
    principal: String,
    /// What the store said of the server when it was last judged.
    standing: Option<Standing>,
}

/// What of the store a judgement rests on, beside the pins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    revision: Revision,
    status: ServerStatus,
    lost: Option<String>,
    is_incident: bool,
    is_revoked: bool,
    is_principal_revoked: bool,
}

impl Judge {
    pub fn new(store: Witnessed, rules: Rules, launch: Option<Launch>) -> Judge {
        let (held, begun, principal) = (HashSet::new(), now(), String::new());
        Judge { store, rules, launch, held, begun, principal, standing: None }
    }

    /// Names the user whose calls these are: they are refused once that principal is revoked.
    pub fn for_principal(self, principal: &str) -> Judge {
        Judge { principal: principal.to_owned(), ..self }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes in what a server says now: pins it at first use, pins anew what is benign, remembers it for review.
    pub fn take_in(
        &mut self,
        seen: &Seen,
        mut surface: Surface,
        at: Timestamp,
    ) -> Result<Judged, StoreError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.try_take_in(seen, &mut surface, at) {
                Err(StoreError::Changed { .. }) if attempt < ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }

    fn try_take_in(
        &mut self,
        seen: &Seen,
        surface: &mut Surface,
        at: Timestamp,
    ) -> Result<Judged, StoreError> {
        let mut standing = self.read_standing()?;
        let baseline = self.store.baseline(&self.rules.server, Wanted::Beside(surface))?;
        anchor(surface, seen, &baseline.pins);
        let surface = &*surface;
        let status = status_of(&baseline);
        let revision = baseline.revision();
        let mut book = baseline.pins;
        let is_trusted = book.lost.is_none() && book.tampered.is_empty();
        let observation;
        let launch = self.launch.clone().map(|launch| launch.for_client(seen.client.clone()));
        let mut act = Act::new(&self.rules.server, at, NOBODY, "server.observe");
        act.expect = Some(revision);
        act.launch = launch.as_ref().filter(|launch| {
            baseline.server.as_ref().is_none_or(|server| server.launch.as_ref() != Some(launch))
        });
        let is_first = book.is_empty() && is_trusted && status == ServerStatus::Unbaselined;
        let mut judgement = None;
        if is_first && self.rules.first_use == FirstUsePolicy::Trust {
            let FirstUse { pins, .. } = first_use(surface, &self.rules.settings);
            act.name = "server.pin";
            let verified = seen.attested.as_ref().and_then(|admitted| admitted.verified());
            let basis = |entry: &Entry| first_basis(entry, verified);
            act.pins =
                pins.into_iter().map(|entry| NewPin { basis: basis(&entry), entry }).collect();
        }
        if !is_first && is_trusted && status != ServerStatus::Pending {
            if let Some(identity) = newly_anchored(&book, surface) {
                act.pins.push(NewPin { entry: identity.clone(), basis: Basis::Attested });
                let by = NOBODY.to_owned();
                book.push(Pin { entry: identity, basis: Basis::Attested, at, by });
            }
            let judged = self.judge(status, &book, surface, at)?;
            let accepted = judged.accepted().cloned();
            act.pins.extend(accepted.map(|entry| NewPin { entry, basis: Basis::Auto }));
            if !act.pins.is_empty() {
                act.name = "pin.auto";
            }
            judgement = Some(judged).filter(|_| act.pins.is_empty());
        }
        let repinned = if is_first { 0 } else { act.pins.len() };
        // An identity that was anchored is in the book already.
        let is_anchored = |pin: &&NewPin| !is_first && pin.basis == Basis::Attested;
        for pin in act.pins.iter().filter(|pin| !is_anchored(pin)) {
            let entry = pin.entry.clone();
            book.push(Pin { entry, basis: pin.basis, at, by: NOBODY.to_owned() });
        }
        let judgement = match judgement {
            Some(judgement) => judgement,
            None => self.judge(status, &book, surface, at)?,
        };
        let next_status = if is_first {
            let happening = match self.rules.first_use {
                FirstUsePolicy::Trust => Happening::FirstUseTrusted,
                FirstUsePolicy::Approve => Happening::FirstUseAsked,
            };
            let is_held = self.is_changed(status, &book, surface, &judgement, at)?;
            after_first(next(status, happening).unwrap_or(status), is_held)
        } else {
            let is_held = self.is_changed(status, &book, surface, &judgement, at)?;
            next(status, Happening::Judged { is_held }).unwrap_or(status)
        };
        act.status = Some(next_status).filter(|next| *next != status);
        // What is as it was recorded is not recorded again: a start costs no write.
        let is_news = !act.pins.is_empty()
            || act.status.is_some()
            || act.launch.is_some()
            || baseline.sighting.is_none_or(|seen| seen != Sighting::of(surface));
        // A record that cannot be trusted is mended by a person, not written over.
        if is_news && (is_trusted || act.pins.is_empty()) {
            observation = Observation::of(surface, at);
            act.observation = Some(&observation);
            standing.revision = self.store.record(act)?.revision;
        }
        standing.status = next_status;
        Ok(self.judged(seen, surface, &book, judgement, standing, repinned))
    }

    /// Judges the same again after somebody wrote to the store; nothing where that was about something else.
    pub fn look_again(&mut self, seen: &Seen, at: Timestamp) -> Result<Option<Judged>, StoreError> {
        // Read before the pins: what changes in between is found to have changed the next time.
        let now = self.read_standing()?;
        if self.standing.as_ref() == Some(&now) {
            return Ok(None);
        }
        let (surface, baseline) = self.read_beside(seen)?;
        let judgement = self.judge(status_of(&baseline), &baseline.pins, &surface, at)?;
        let now = Standing { status: status_of(&baseline), ..now };
        Ok(Some(self.judged(seen, &surface, &baseline.pins, judgement, now, 0)))
    }

    /// What was seen, beside its pins.
    fn read_beside(&self, seen: &Seen) -> Result<(Surface, Baseline), StoreError> {
        let mut surface = seen.surface().unwrap_or_default();
        let baseline = self.store.baseline(&self.rules.server, Wanted::Beside(&surface))?;
        anchor(&mut surface, seen, &baseline.pins);
        Ok((surface, baseline))
    }

    fn read_standing(&self) -> Result<Standing, StoreError> {
        let server = self.store.server(&self.rules.server)?;
        let state = self.store.incident()?;
        let is_declared =
            state.incident.is_some_and(|(incident, _)| is_about(&incident, &self.rules.server));
        let is_revoked = |kind: RevokedKind, value: &str| {
            state.revocations.iter().any(|revoked| {
                revoked.kind == kind && revoked.value == value && revoked.signed.at >= self.begun
            })
        };
        let is_principal_revoked = is_revoked(RevokedKind::Principal, &self.principal);
        let is_revoked =
            is_principal_revoked || is_revoked(RevokedKind::Server, self.rules.server.as_str());
        Ok(Standing {
            revision: server.as_ref().map_or(Revision::NONE, |server| server.revision),
            status: server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status),
            lost: server.and_then(|server| server.lost),
            is_incident: is_declared,
            is_revoked,
            is_principal_revoked,
        })
    }

    /// How things stand before anything of the server was seen: nothing of it can be called, and a server that a
    /// person stopped is stopped from the first message on.
    pub fn begin(&mut self) -> Result<Judged, StoreError> {
        let standing = self.read_standing()?;
        // Tools and the like are read when there is something to judge them against.
        let baseline = self.store.baseline(&self.rules.server, Wanted::Of(is_told_at_handshake))?;
        let standing = Standing { status: status_of(&baseline), ..standing };
        let nothing = SurfaceJudgement {
            posture: self.rules.settings.posture,
            verdict: gate::verdict::Verdict::Proceed,
            entries: Vec::new(),
            unreadable: Vec::new(),
        };
        let (seen, surface) = (Seen::default(), Surface::default());
        let begun = self.judged(&seen, &surface, &baseline.pins, nothing, standing, 0);
        Ok(Judged { has_baseline: begun.has_baseline || baseline.has_pins, ..begun })
    }

    fn judge(
        &self,
        status: ServerStatus,
        book: &PinBook,
        surface: &Surface,
        at: Timestamp,
    ) -> Result<SurfaceJudgement, StoreError> {
        let auto_pins = auto_pins_today(&self.store, &self.rules.server, at)?;
        Ok(judge_server(status, book, surface, &self.rules.settings, auto_pins))
    }

    /// Whether the server counts as changed, which does not depend on whether the posture serves what changed.
    fn is_changed(
        &self,
        status: ServerStatus,
        book: &PinBook,
        surface: &Surface,
        judgement: &SurfaceJudgement,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let posture = judgement.posture.for_status();
        if posture == judgement.posture {
            return Ok(judgement.verdict.is_held());
        }
        let settings = Settings { posture, ..self.rules.settings.clone() };
        let auto_pins = auto_pins_today(&self.store, &self.rules.server, at)?;
        Ok(judge_server(status, book, surface, &settings, auto_pins).verdict.is_held())
    }

    fn judged(
        &mut self,
        seen: &Seen,
        surface: &Surface,
        book: &PinBook,
        judgement: SurfaceJudgement,
        standing: Standing,
        repinned: usize,
    ) -> Judged {
        let Standing { is_incident, is_revoked, is_principal_revoked, status, .. } = standing;
        self.standing = Some(standing);
        // A server that waits for a person is stopped before its lists are there to be judged.
        let is_asked = self.rules.first_use == FirstUsePolicy::Approve && book.is_empty();
        let status = match status {
            ServerStatus::Unbaselined if is_asked => ServerStatus::Pending,
            status => status,
        };
        let view = View::of(&Materials {
            server: &self.rules.server,
            status,
            book,
            surface,
            judgement: &judgement,
            settings: &self.rules.settings,
            mode: self.rules.mode,
            scope: self.rules.scope,
            allowed: self.rules.allowed.as_deref(),
            mirrors: self.rules.mirrors_parameters && is_stateless(seen.handshake.as_deref()),
            pages: &seen.pages(),
        });
        let situation = Situation {
            server: self.rules.server.clone(),
            settings: self.rules.settings.clone(),
            is_incident,
            is_revoked,
            is_principal_revoked,
            // Whoever publishes it knows: it is not the judge's.
            admission: Admittance::default(),
            view: Arc::new(view),
        };
        let has_baseline = !book.is_empty() || book.lost.is_some() || !book.tampered.is_empty();
        Judged { situation, book: of_handshake(book), has_baseline, judgement, repinned }
    }

    /// How one entry is judged now.
    pub fn change_of(
        &self,
        seen: &Seen,
        id: &EntryId,
        at: Timestamp,
    ) -> Result<Option<Judgement>, StoreError> {
        let (surface, baseline) = self.read_beside(seen)?;
        let judgement = self.judge(status_of(&baseline), &baseline.pins, &surface, at)?;
        Ok(judgement.entries.into_iter().find(|judged| judged.id == *id))
    }

    /// Pins one entry as approved by a person, if it is still what the person was asked about.
    pub fn approve(
        &mut self,
        seen: &Seen,
        id: &EntryId,
        hash: Option<EntryHash>,
        by: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (surface, baseline) = self.read_beside(seen)?;
        let status = status_of(&baseline);
        let is_sound = baseline.pins.lost.is_none() && baseline.pins.tampered.is_empty();
        let entry = surface.entry(id);
        let is_first = awaits_first_approval(status, &baseline.pins);
        if !is_sound || is_first || entry.map(Entry::entry_hash) != hash {
            return Ok(false);
        }
        let entry = entry.cloned().unwrap_or_else(|| Entry::gone(id.clone()));
        let revision = baseline.revision();
        let mut book = baseline.pins;
        book.push(Pin { entry: entry.clone(), basis: Basis::Person, at, by: by.to_owned() });
        let judgement = self.judge(status, &book, &surface, at)?;
        let is_held = self.is_changed(status, &book, &surface, &judgement, at)?;
        let Ok(status) = next(status, Happening::Approved { is_held }) else { return Ok(false) };
        let mut act = Act::new(&self.rules.server, at, by, "server.approve");
        act.expect = Some(revision);
        act.status = Some(status);
        act.detail = Some("asked in the client".to_owned());
        act.pins = vec![NewPin { entry, basis: Basis::Person }];
        self.store.record(act)?;
        Ok(true)
    }

    /// Records in the home's index what is not an act on the store.
    pub fn witness(
        &mut self,
        name: &str,
        data: &serde_json::Value,
        at: Timestamp,
    ) -> Result<(), ReceiptsError> {
        let server_id = Some(Text(self.rules.server.as_str()));
        let event = Event { ts: at, name, by: None, server_id, data: Some(data) };
        self.store.journal().lock(at)?.append(&event)?;
        Ok(())
    }

    /// How many entries began to be held since the last time this was asked.
    pub fn newly_held(&mut self, judgement: &SurfaceJudgement) -> usize {
        let held: HashSet<EntryId> = judgement.held().map(|judged| judged.id.clone()).collect();
        let new = held.difference(&self.held).count();
        self.held = held;
        new
    }

    pub fn version(&self) -> Result<u64, StoreError> {
        self.store.version()
    }

    pub fn add_counts(
        &mut self,
        counts: &[(gate::counters::Counter, u64)],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let counts: Vec<Count> = counts
            .iter()
            .map(|(counter, value)| Count {
                day: Day::of(at),
                server: self.rules.server.clone(),
                name: counter.name(),
                value: *value,
            })
            .collect();
        counts.chunks(store::MAX_COUNTS_PER_WRITE).try_for_each(|part| self.store.add_counts(part))
    }
}

/// Anchors the identity to whoever vouches for the server: another id or signer is then another identity. Where nobody
/// does now, it stays anchored as it was pinned: whether that is enough is admission's question, not that of drift.
fn anchor(surface: &mut Surface, seen: &Seen, book: &PinBook) {
    let verified = seen.attested.as_ref().and_then(|admitted| admitted.verified());
    let anchor = match verified {
        Some(verified) => Some(anchor_of(verified.identity())),
        None => pinned_identity(book).and_then(Anchor::of),
    };
    if let Some(anchor) = anchor {
        // The identity is text that was read before, so it reads again.
        let _ = surface.anchor_to(&anchor);
    }
}

/// On what basis an entry is pinned at first use: the publisher may have vouched for this very contract.
fn first_basis(entry: &Entry, verified: Option<&VerifiedAttestation>) -> Basis {
    let is_tool = entry.entry_type() == EntryType::Tool;
    let vouched = verified
        .filter(|_| is_tool)
        .map(|verified| verified.check_digest(entry.key(), entry.entry_hash()));
    match vouched {
        Some(Ok(Vouched::Yes)) => Basis::Attested,
        Some(Ok(Vouched::NotNamed) | Err(_)) | None => Basis::FirstUse,
    }
}

/// What the pinned identity is anchored to: an observation that asked nobody who vouches for the server keeps it.
pub fn pinned_anchor(book: &PinBook) -> Option<Anchor> {
    pinned_identity(book).and_then(Anchor::of)
}

fn pinned_identity(book: &PinBook) -> Option<&Entry> {
    let id = EntryId::only(EntryType::Identity);
    let is_trusted = book.lost.is_none() && !book.tampered.contains_key(&id);
    let pins = book.get(&id).filter(|_| is_trusted)?;
    pins.accepted().map(|pin| &pin.entry)
}

/// An identity that was pinned before anybody vouched for it, with who vouches for it now. To gain an anchor is no change:
/// there was none that it could be another than. Whatever else of it changed is judged as always.
fn newly_anchored(book: &PinBook, surface: &Surface) -> Option<Entry> {
    let anchor = surface.anchor()?;
    let pinned = pinned_identity(book)?;
    if Anchor::of(pinned).is_some() {
        return None;
    }
    let mut anchored = Surface::default();
    anchored.insert(pinned.clone());
    anchored.anchor_to(&anchor).ok()?;
    anchored.entry(pinned.id()).cloned()
}

/// The pins that a handshake is shaped by; the others are in the store.
fn of_handshake(book: &PinBook) -> PinBook {
    let mut part = PinBook::default();
    part.lost.clone_from(&book.lost);
    let told = book.iter().filter(|(id, _)| is_told_at_handshake(id.entry_type));
    let pins = told.flat_map(|(_, pins)| pins.iter());
    pins.for_each(|pin| part.push(pin.clone()));
    part.tampered.clone_from(&book.tampered);
    part
}

fn is_told_at_handshake(entry_type: EntryType) -> bool {
    matches!(entry_type, EntryType::Instructions | EntryType::Identity)
}

/// What is left out at first sight because of a marker is held from then on.
fn after_first(status: ServerStatus, is_held: bool) -> ServerStatus {
    next(status, Happening::Judged { is_held }).unwrap_or(status)
}

fn status_of(baseline: &Baseline) -> ServerStatus {
    baseline.server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status)
}

fn is_about(incident: &Incident, server: &ServerId) -> bool {
    match &incident.scope {
        IncidentScope::All => true,
        IncidentScope::Servers(servers) => servers.contains(server),
    }
}

/// How often a server was pinned anew without asking during the last day.
pub fn auto_pins_today(
    store: &dyn Store,
    server: &ServerId,
    at: Timestamp,
) -> Result<usize, StoreError> {
    let since = Timestamp(at.0.saturating_sub(DAY_MILLISECONDS));
    store.count_history(server, Basis::Auto, since)
}
