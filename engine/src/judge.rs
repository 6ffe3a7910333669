//! Compares what a server shows with its pins: first use, re-pins, status, and the situation that
//! calls are decided on.
//!
//! This is the only part of a session that writes to the store.

mod draft;
mod inherit;
mod recorded;
mod views;

pub use draft::{Draft, Drafted};
pub use settings::FirstUsePolicy;
pub use views::{Instance, ViewKey};

use draft::{Judging, judged};
use inherit::Heritage;
use views::{Removals, ViewMemory, Views};

use crate::acts::{ActError, RecordedServer, approve_in_client};
use crate::admission::Admitted;
use crate::anchor::anchor;
use crate::behavior::{Observable, ObservedBehavior, Unobserved};
use crate::situation::{DriftScope, ServerProfile, Situation, Switches};
use crate::upper_tiers::UpperTiers;
use attest::{ToolAllowlist, VerifiedAttestation, Vouched};
use contract::client::ClientCapabilities;
use contract::hash::EntryHash;
use contract::sorted::SortedMap;
use contract::surface::{Anchor, Entry, EntryId, EntryType, ListKind, Surface, SurfaceReader};
use gate::behavior::Consent;
use gate::by_the_call::CallRulesCache;
use gate::judge::{Judgement, SurfaceJudgement};
use gate::network::DriftAdvisory;
use gate::pins::{Basis, PinBook};
use gate::posture::Settings;
use gate::server::{ServerId, ServerStatus};
use gate::shown::ListMode;
use gate::tiers::Behavior;
use gate::time::Timestamp;
use gate::unseen::judge_server_again;
use ledger::record::{Event, Text};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use store::receipts::ReceiptsError;
use store::{
    Baseline, By, Count, Day, IncidentStore, Launch, Revision, StatisticsStore, Store, StoreError,
    Wanted, Witnessed,
};
use wire::listing::ListOutcome;

/// How often a write is retried if another writer came first.
pub(crate) const ATTEMPTS: usize = 5;
const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1_000;
/// The name recorded for acts without a person.
const GATE_ACTOR: &str = "holdpoint";

/// The rules for judging one server.
#[derive(Debug, Clone)]
pub struct Rules {
    pub server: ServerId,
    pub settings: Settings,
    pub first_use: FirstUsePolicy,
    pub scope: DriftScope,
    pub mode: ListMode,
    /// The tools that may be used, if they are limited; others are not shown.
    pub allowed: Option<Arc<ToolAllowlist>>,
    /// Whether the server is reached over HTTP, so that its definitions may require arguments in
    /// headers.
    pub mirrors_parameters: bool,
    /// Whether the arguments of calls are checked against the approved definitions.
    pub checks_input: bool,
    /// The operator's description of the server.
    pub profile: ServerProfile,
    /// Whether and how its behavior may be tested.
    pub behavior: Consent,
    /// The tiers to consult about a change that the comparison cannot settle.
    pub upper: UpperTiers,
}

/// What a server shows, as its original responses. They are parsed again when they are judged
/// again, which is rare, because unparsed they take a fraction of the memory.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub handshake: Option<Arc<str>>,
    pub lists: BTreeMap<ListKind, ListOutcome>,
    pub origin: Option<Entry>,
    /// The result of admission, if it was checked.
    pub attested: Option<Arc<Admitted>>,
    /// The capabilities of the client that saw this: another client may be shown something
    /// different.
    pub client: Option<ClientCapabilities>,
    /// The process or endpoint that showed it.
    pub instance: Instance,
}

impl Seen {
    /// Returns `None` if the handshake cannot be read unambiguously.
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

    /// The view that it belongs to.
    pub(crate) fn view(&self) -> ViewKey {
        ViewKey::of(self.instance, self.client.as_ref())
    }

    /// The signer that currently vouches for the server.
    fn vouched(&self) -> Option<Anchor> {
        self.attested.as_ref().and_then(|admitted| admitted.anchor())
    }

    pub(crate) fn pages(&self) -> SortedMap<ListKind, Arc<Vec<Arc<str>>>> {
        let pages = self.lists.iter().filter_map(|(list, outcome)| match outcome {
            ListOutcome::Pages(pages) => Some((*list, pages.clone())),
            ListOutcome::NotOffered | ListOutcome::Unreadable(_) => None,
        });
        pages.collect()
    }
}

/// The result of judging.
#[derive(Debug)]
pub struct Judged {
    pub situation: Situation,
    /// The pins of what a handshake contains.
    pub book: PinBook,
    /// Whether anything was ever pinned.
    pub has_baseline: bool,
    pub judgement: SurfaceJudgement,
    /// How many entries were re-pinned automatically.
    pub repinned: usize,
    /// Changes that behavior could settle and that have not been tested yet.
    pub unobserved: Vec<Unobserved>,
    /// Pins that a directory's crawler saw change.
    pub changed_pins: Vec<(Entry, DriftAdvisory)>,
}

#[derive(Debug)]
pub struct Judge {
    store: Witnessed,
    rules: Rules,
    launch: Option<Launch>,
    views: Views,
    /// The rules for single calls, for every waiting change.
    call_rules: CallRulesCache,
    /// The store's version at which no other server had the same launch.
    alone_at: Cell<Option<u64>>,
    recorded: Option<recorded::RecordedJudgement>,
    behavior: ObservedBehavior,
}

/// The result of judging again.
#[derive(Debug)]
pub enum Again {
    /// The write concerned something else.
    Same,
    /// The server's own record is unchanged; only incident mode's switches changed.
    Switched(Switches),
    Judged(Box<Judged>),
}

/// The part of the store, besides the pins, that a judgement depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StoreRecord {
    revision: Revision,
    status: ServerStatus,
    lost: Option<String>,
    switches: Switches,
}

impl StoreRecord {
    /// Whether the server's own record is the same in both: its pins, its status, and any loss.
    fn is_same_server(&self, other: &StoreRecord) -> bool {
        let StoreRecord { revision, status, lost, switches: _ } = self;
        (*revision, *status, lost) == (other.revision, other.status, &other.lost)
    }
}

impl Judge {
    pub fn new(store: Witnessed, rules: Rules, launch: Option<Launch>) -> Judge {
        Judge {
            store,
            rules,
            launch,
            views: Views::default(),
            call_rules: CallRulesCache::default(),
            alone_at: Cell::default(),
            recorded: None,
            behavior: ObservedBehavior::default(),
        }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes in what a server shows now: pins it on first use, re-pins benign changes, and records
    /// it for review.
    pub fn take_in(
        &mut self,
        seen: &Seen,
        mut surface: Surface,
        at: Timestamp,
    ) -> Result<Judged, StoreError> {
        for _ in 1..ATTEMPTS {
            let drafted = self.draft(seen, &surface, at)?.judge(seen, &mut surface);
            match self.settle(drafted) {
                Err(StoreError::Changed { .. }) => {}
                outcome => return outcome,
            }
        }
        let drafted = self.draft(seen, &surface, at)?.judge(seen, &mut surface);
        self.settle(drafted)
    }

    /// Reads everything that a judgement of this surface depends on.
    pub fn draft(
        &self,
        seen: &Seen,
        surface: &Surface,
        at: Timestamp,
    ) -> Result<Draft, StoreError> {
        let record = self.read_record()?;
        let baseline = self.store.baseline(&self.rules.server, Wanted::Beside(surface))?;
        let auto_pins = auto_pins_today(&self.store, &self.rules.server, at)?;
        let (rules, launch) = (self.rules.clone(), self.launch.clone());
        let view = seen.view();
        let memory = self.views.get(&view).cloned().unwrap_or_default();
        let removals = self.removals(&view, seen, &baseline);
        let is_changed_elsewhere = self.views.is_changed_elsewhere(&view);
        let of_view = draft::OfView { view, memory, removals, is_changed_elsewhere };
        let call_rules = self.call_rules.clone();
        let heritage = self.heritage(&baseline, surface)?;
        let behavior = self.behavior.clone();
        Ok(Draft {
            rules,
            call_rules,
            behavior,
            record,
            baseline,
            heritage,
            auto_pins,
            launch,
            of_view,
            at,
        })
    }

    /// The approvals and quarantines of servers with the same launch. They are looked up only if
    /// something could be taken over.
    fn heritage(&self, baseline: &Baseline, surface: &Surface) -> Result<Heritage, StoreError> {
        let Some(question) = inherit::question(self.launch.as_ref(), baseline, surface) else {
            return Ok(Heritage::default());
        };
        let version = self.store.version()?;
        if self.alone_at.get() == Some(version) {
            return Ok(Heritage::default());
        }
        let heritage = Heritage::read(&self.store, &self.rules.server, question)?;
        self.alone_at.set(heritage.is_empty().then_some(version));
        Ok(heritage)
    }

    /// Writes the outcome of a judgement. Fails with [`StoreError::Changed`] if the record was
    /// written since it was read: then nothing is written, and the surface must be judged again.
    pub fn settle(&mut self, drafted: Drafted) -> Result<Judged, StoreError> {
        let Drafted { judged, rests_on, mut record, writing, view, mut memory } = drafted;
        if self.read_record()? != rests_on {
            return Err(StoreError::Changed { server: self.rules.server.clone() });
        }
        if let Some(writing) = writing {
            record.revision = self.store.record(writing.act(&self.rules))?.revision;
        }
        memory.record = Some(record);
        *self.views.memory(&view) = memory;
        Ok(judged)
    }

    /// Determines which entries missing in this view were removed. After a start, the view that was
    /// recorded last is compared with every pin; any other view only with what it has shown since.
    fn removals(&self, view: &ViewKey, seen: &Seen, baseline: &Baseline) -> Removals {
        if let Some(shown) = self.views.shown_like(view) {
            return Removals::Shown(shown.clone());
        }
        let recorded = baseline.server.as_ref().and_then(|server| server.launch.as_ref());
        match recorded.and_then(Launch::client_capabilities) {
            Some(recorded) if seen.client.as_ref() != Some(recorded) => {
                Removals::Shown(HashSet::new())
            }
            Some(_) | None => Removals::All,
        }
    }

    /// Judges the last observed surface again, after a write to the store.
    pub fn look_again(&mut self, seen: &Seen, at: Timestamp) -> Result<Again, StoreError> {
        // Read before the pins, so that a change in between is detected the next time.
        let now = self.read_record()?;
        let view = seen.view();
        match self.views.get(&view).and_then(|memory| memory.record.as_ref()) {
            Some(before) if *before == now => return Ok(Again::Same),
            Some(before) if before.is_same_server(&now) => {
                let switches = now.switches.clone();
                self.views.memory(&view).record = Some(now);
                return Ok(Again::Switched(switches));
            }
            Some(_) => self.views.forget_changes(),
            None => {}
        }
        if matches!(now.status, ServerStatus::Quarantined | ServerStatus::Pending) {
            // Nothing of a stopped server is served, so no comparison is needed before the next
            // call is refused.
            return Ok(Again::Judged(Box::new(self.stopped(seen, now)?)));
        }
        Ok(Again::Judged(Box::new(self.judge_again(seen, now, at)?)))
    }

    /// Stores the observed behavior of a tool. Views judged earlier must be judged again.
    pub(crate) fn learn(&mut self, key: Observable, behavior: Behavior) {
        self.behavior.learn(key, behavior);
        self.forget_recorded();
    }

    /// Makes the recorded surface be judged again, even if nothing was written since.
    pub(crate) fn forget_recorded(&mut self) {
        self.recorded = None;
    }

    /// Judges the last observed surface again, even if nothing was written since.
    pub(crate) fn reconsider(&mut self, seen: &Seen, at: Timestamp) -> Result<Judged, StoreError> {
        let record = self.read_record()?;
        match record.status {
            ServerStatus::Quarantined | ServerStatus::Pending => self.stopped(seen, record),
            ServerStatus::Unbaselined | ServerStatus::Verified | ServerStatus::Changed => {
                self.judge_again(seen, record, at)
            }
        }
    }

    fn judge_again(
        &mut self,
        seen: &Seen,
        now: StoreRecord,
        at: Timestamp,
    ) -> Result<Judged, StoreError> {
        let view = seen.view();
        let (surface, baseline) = self.read_with_pins(seen)?;
        let status = baseline.status();
        let mut judgement = self.judge(&view, status, &baseline.pins, &surface, at)?;
        // Only the driver re-pins, with the list that it has just fetched.
        judgement.defer_accepted();
        let now = StoreRecord { status, ..now };
        let judged = judged(self.judging(), seen, &surface, &baseline.pins, judgement, &now, 0);
        self.views.memory(&view).record = Some(now);
        Ok(judged)
    }

    /// The judgement of a server that is stopped as a whole.
    fn stopped(&mut self, seen: &Seen, record: StoreRecord) -> Result<Judged, StoreError> {
        // Tools and similar entries are read once there is something to judge.
        let baseline = self.store.baseline(&self.rules.server, Wanted::Of(is_told_at_handshake))?;
        let nothing = SurfaceJudgement {
            posture: self.rules.settings.posture,
            verdict: gate::verdict::Verdict::Proceed,
            entries: Vec::new(),
            unreadable: Vec::new(),
        };
        let record = StoreRecord { status: baseline.status(), ..record };
        let (pins, surface) = (&baseline.pins, Surface::default());
        let judged = judged(self.judging(), seen, &surface, pins, nothing, &record, 0);
        self.views.memory(&seen.view()).record = Some(record);
        Ok(Judged { has_baseline: judged.has_baseline || baseline.has_pins, ..judged })
    }

    /// The observed surface, with its pins.
    fn read_with_pins(&self, seen: &Seen) -> Result<(Surface, Baseline), StoreError> {
        let mut surface = seen.surface().unwrap_or_default();
        let mut baseline = self.store.baseline(&self.rules.server, Wanted::Beside(&surface))?;
        anchor(&mut surface, seen.vouched(), &baseline.pins);
        let removals = self.removals(&seen.view(), seen, &baseline);
        removals.apply(&mut baseline.pins, &surface);
        Ok((surface, baseline))
    }

    fn judging(&self) -> Judging<'_> {
        let Judge { rules, call_rules, behavior, .. } = self;
        Judging { rules, call_rules, behavior }
    }

    /// The server's recorded status.
    pub(crate) fn status(&self) -> Result<ServerStatus, StoreError> {
        let server = self.store.server(&self.rules.server)?;
        Ok(server.map_or(ServerStatus::Unbaselined, |server| server.status))
    }

    fn read_record(&self) -> Result<StoreRecord, StoreError> {
        let id = &self.rules.server;
        let server = self.store.server(id)?;
        let state = self.store.incident()?;
        Ok(StoreRecord {
            revision: server.as_ref().map_or(Revision::NONE, |server| server.revision),
            status: server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status),
            lost: server.and_then(|server| server.lost),
            switches: Switches::about(id, &state),
        })
    }

    /// The situation of a view before anything was seen in it: nothing can be called, and a server
    /// that a person stopped is stopped from the first message on.
    pub fn begin(&mut self, unseen: &Seen) -> Result<Judged, StoreError> {
        let record = self.read_record()?;
        self.stopped(unseen, record)
    }

    /// Forgets a view that no session uses.
    pub(crate) fn forget_view(&mut self, view: &ViewKey) {
        self.views.forget(view);
    }

    fn judge(
        &mut self,
        view: &ViewKey,
        status: ServerStatus,
        book: &PinBook,
        surface: &Surface,
        at: Timestamp,
    ) -> Result<SurfaceJudgement, StoreError> {
        let auto_pins = auto_pins_today(&self.store, &self.rules.server, at)?;
        let ViewMemory { compared, .. } = self.views.memory(view);
        Ok(judge_server_again(status, book, surface, &self.rules.settings, auto_pins, compared))
    }

    /// The current judgement of one entry.
    pub fn change_of(
        &mut self,
        seen: &Seen,
        id: &EntryId,
        at: Timestamp,
    ) -> Result<Option<Judgement>, StoreError> {
        let (surface, baseline) = self.read_with_pins(seen)?;
        let (view, status) = (seen.view(), baseline.status());
        let judgement = self.judge(&view, status, &baseline.pins, &surface, at)?;
        Ok(judgement.entries.into_iter().find(|judged| judged.id == *id))
    }

    /// Pins one entry as approved by a person. Returns `false` if it must not be approved this way,
    /// or has changed since they were asked.
    pub fn approve(
        &mut self,
        seen: &Seen,
        id: &EntryId,
        hash: Option<EntryHash>,
        by: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (surface, baseline) = self.read_with_pins(seen)?;
        let Judge { store, rules: Rules { server, settings, .. }, views, .. } = self;
        let ViewMemory { compared, .. } = views.memory(&seen.view());
        let auto_pins = auto_pins_today(store, server, at)?;
        let server = RecordedServer::of_gate(server, baseline, settings.clone(), auto_pins);
        let by = By { name: by, at };
        match approve_in_client(store, &server, &surface, (id, hash), by, compared) {
            Ok(_) => Ok(true),
            Err(ActError::Store(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Records an event that is not an act on the store in the home's index.
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

    /// How many entries of a view were newly held since the previous call.
    pub fn newly_held(&mut self, view: &ViewKey, judgement: &SurfaceJudgement) -> usize {
        let held: HashSet<EntryId> = judgement.held().map(|judged| judged.id.clone()).collect();
        let memory = self.views.memory(view);
        let new = held.difference(&memory.held).count();
        memory.held = held;
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

/// The basis for pinning an entry on first use: the publisher may have vouched for exactly this
/// contract.
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

/// The pins that shape a handshake. The others are in the store.
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

/// How many entries of a server were re-pinned automatically during the last day.
pub fn auto_pins_today(
    store: &dyn Store,
    server: &ServerId,
    at: Timestamp,
) -> Result<usize, StoreError> {
    let since = Timestamp(at.0.saturating_sub(DAY_MILLISECONDS));
    store.count_history(server, Basis::Auto, since)
}
