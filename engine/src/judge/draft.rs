//! Computes a judgement. Comparing a hostile list takes a while, so this part uses neither the
//! store nor the judge: the judge reads everything beforehand, and writes the outcome afterwards
//! unless the record was written in between.

use super::inherit::{Cover, Heritage, Inherited};
use super::views::{Removals, ViewKey, ViewMemory};
use super::{
    FirstUsePolicy, GATE_ACTOR, Judged, Rules, Seen, StoreRecord, first_basis, of_handshake,
};
use crate::acts::held_changes;
use crate::admission::Admittance;
use crate::anchor::{anchor, newly_anchored};
use crate::behavior::ObservedBehavior;
use crate::mirrored::{Mirrorings, is_stateless};
use crate::situation::Situation;
use contract::surface::{Entry, EntryId, EntryType, Surface};
use gate::by_the_call::CallRulesCache;
use gate::first_use::{FirstUse, first_use};
use gate::judge::SurfaceJudgement;
use gate::pins::{Basis, Pin, PinBook};
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use gate::time::Timestamp;
use gate::unseen::{Repinning, TakenIn, take_in};
use gate::view::{Materials, View};
use gate::words::Reviewer;
use std::sync::Arc;
use store::{Act, Baseline, HeldChange, Launch, NewPin, Observation, Revision, Sighting};

/// The part of the store that a judgement depends on.
#[derive(Debug)]
pub struct Draft {
    pub(super) rules: Rules,
    pub(super) call_rules: CallRulesCache,
    pub(super) behavior: ObservedBehavior,
    pub(super) record: StoreRecord,
    pub(super) baseline: Baseline,
    pub(super) heritage: Heritage,
    /// How many entries were re-pinned automatically during the last day.
    pub(super) auto_pins: usize,
    pub(super) launch: Option<Launch>,
    pub(super) of_view: OfView,
    pub(super) at: Timestamp,
}

/// The view that a judgement is for, with its memory.
#[derive(Debug)]
pub(super) struct OfView {
    pub(super) view: ViewKey,
    pub(super) memory: ViewMemory,
    pub(super) removals: Removals,
    /// Whether the server counts as changed because of another view.
    pub(super) is_changed_elsewhere: bool,
}

/// A judgement, with what must be written before it takes effect.
#[derive(Debug)]
pub struct Drafted {
    pub(super) judged: Judged,
    /// The record that it depends on, and the record after the write.
    pub(super) rests_on: StoreRecord,
    pub(super) record: StoreRecord,
    pub(super) writing: Option<Writing>,
    pub(super) view: ViewKey,
    pub(super) memory: ViewMemory,
}

/// What must be written.
#[derive(Debug)]
pub(super) struct Writing {
    name: &'static str,
    expect: Revision,
    launch: Option<Launch>,
    status: Option<ServerStatus>,
    pins: Vec<NewPin>,
    observation: Observation,
    /// The held entries of a surface that was not seen before.
    held: Vec<HeldChange>,
    /// The server whose decision also applies to this one.
    decided_for: Option<ServerId>,
    at: Timestamp,
}

impl Writing {
    pub(super) fn act<'a>(&'a self, rules: &'a Rules) -> Act<'a> {
        let mut act = Act::new(&rules.server, self.at, GATE_ACTOR, self.name);
        act.expect = Some(self.expect);
        act.launch = self.launch.as_ref();
        act.status = self.status;
        act.observation = Some(&self.observation);
        act.pins.clone_from(&self.pins);
        act.held.clone_from(&self.held);
        act.decided_for = self.decided_for.as_ref();
        act
    }
}

impl Draft {
    /// Judges the surface that a server shows now: which entries are pinned on first use, re-pinned
    /// or held.
    pub fn judge(self, seen: &Seen, surface: &mut Surface) -> Drafted {
        let Draft { rules, call_rules, behavior, record, baseline, heritage, .. } = self;
        let (auto_pins, launch, of_view, at) = (self.auto_pins, self.launch, self.of_view, self.at);
        let OfView { view, mut memory, removals, is_changed_elsewhere } = of_view;
        anchor(surface, seen.vouched(), &baseline.pins);
        let surface = &*surface;
        let status = baseline.status();
        let expect = baseline.revision();
        let mut book = baseline.pins;
        let is_trusted = !book.is_damaged();
        let launch = launch.map(|launch| launch.for_client(seen.client.clone())).filter(|launch| {
            let server = baseline.server.as_ref();
            server.is_none_or(|server| server.launch.as_ref() != Some(launch))
        });
        let accepting = Accepting::of(&rules, seen, surface, &book, status, &heritage);
        let Accepting { step, name, mut pins, decided_for } = accepting;
        let inherited = pins.iter().filter(|pin| pin.basis == Basis::Person).count();
        removals.apply(&mut book, surface);
        memory.show(&removals, &book, surface);
        pins.iter().for_each(|pin| book.push(pinned(pin, at)));
        let judged_as = if step == Step::Inherited { ServerStatus::Verified } else { status };
        let mut name = name;
        let may_pin_again = step == Step::Later && is_trusted && status != ServerStatus::Pending;
        if may_pin_again && let Some(entry) = newly_anchored(&book, surface) {
            let anchored = NewPin { entry, basis: Basis::Attested };
            book.push(pinned(&anchored, at));
            pins.push(anchored);
        }
        let repinning = may_pin_again.then_some(Repinning { at, by: GATE_ACTOR });
        let (settings, compared) = (&rules.settings, &mut memory.compared);
        let taken =
            take_in(judged_as, &mut book, surface, settings, auto_pins, compared, repinning);
        let TakenIn { judgement, repinned: benign, is_changed } = taken;
        pins.extend(benign.into_iter().map(|entry| NewPin { entry, basis: Basis::Auto }));
        if may_pin_again && pins.len() > inherited {
            name = "pin.auto";
        }
        memory.is_changed = is_changed;
        let is_held = memory.is_changed || is_changed_elsewhere;
        let repinned = if step == Step::Later { pins.len() - inherited } else { 0 };
        let next_status = step.status_after(status, is_held);
        let status = Some(next_status).filter(|next| *next != status);
        // An unchanged surface is not recorded again, so a start costs no write.
        let is_news = !pins.is_empty()
            || status.is_some()
            || launch.is_some()
            || baseline.sighting.as_ref().is_none_or(|seen| *seen != Sighting::of(surface));
        let has_moved =
            baseline.sighting.is_none_or(|seen| seen.surface_hash != surface.surface_hash());
        let held = if has_moved {
            held_changes(judgement.posture, &judgement.entries)
        } else {
            Vec::new()
        };
        // A record that cannot be trusted is left for a person to repair, not overwritten.
        let writing = (is_news && (is_trusted || pins.is_empty())).then(|| {
            let observation = Observation::of(surface, at);
            Writing { name, expect, launch, status, pins, observation, held, decided_for, at }
        });
        let rests_on = record.clone();
        let record = StoreRecord { status: next_status, ..record };
        let judging = Judging { rules: &rules, call_rules: &call_rules, behavior: &behavior };
        let judged = judged(judging, seen, surface, &book, judgement, &record, repinned);
        Drafted { judged, rests_on, record, writing, view, memory }
    }
}

/// The state of a server when it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Not the first time, or still waiting for a person since the first time.
    Later,
    /// Seen for the first time, and trusted.
    Trusted,
    /// Seen for the first time, and a person must approve it.
    Asked,
    /// A person approved all of it for another server with the same launch.
    Inherited,
    /// Another server with the same launch is quarantined.
    Stopped,
}

impl Step {
    fn status_after(self, status: ServerStatus, is_held: bool) -> ServerStatus {
        let happening = match self {
            Step::Later => None,
            Step::Trusted => Some(Happening::FirstUseTrusted),
            Step::Asked => Some(Happening::FirstUseAsked),
            Step::Inherited => Some(Happening::Approved { is_held }),
            Step::Stopped => Some(Happening::Quarantined),
        };
        let moved = happening.map(|happening| next(status, happening).unwrap_or(status));
        let status = moved.unwrap_or(status);
        // Entries left out on first use because of a marker are held from then on.
        next(status, Happening::Judged { is_held }).unwrap_or(status)
    }
}

/// The entries that are pinned without a comparison.
#[derive(Debug)]
struct Accepting {
    step: Step,
    name: &'static str,
    pins: Vec<NewPin>,
    decided_for: Option<ServerId>,
}

impl Accepting {
    fn of(
        rules: &Rules,
        seen: &Seen,
        surface: &Surface,
        book: &PinBook,
        status: ServerStatus,
        heritage: &Heritage,
    ) -> Accepting {
        let is_unpinned = book.is_empty() && !book.is_damaged();
        let is_first = is_unpinned && status == ServerStatus::Unbaselined;
        let is_asked = is_first && rules.first_use == FirstUsePolicy::Approve
            || is_unpinned && status == ServerStatus::Pending;
        let nothing = |step: Step| Accepting {
            step,
            name: "server.observe",
            pins: Vec::new(),
            decided_for: None,
        };
        if status == ServerStatus::Quarantined || book.is_damaged() {
            return nothing(Step::Later);
        }
        if let Some(other) = &heritage.stopped_by {
            let decided_for = Some(other.clone());
            return Accepting { name: "server.quarantine", decided_for, ..nothing(Step::Stopped) };
        }
        let cover = if is_asked { Cover::All } else { Cover::Any };
        let Inherited { mut pins, from: decided_for } = heritage.pins_for(book, surface, cover);
        let step = match (is_asked, is_first) {
            (true, _) if !pins.is_empty() => Step::Inherited,
            (true, true) => Step::Asked,
            (true, false) | (false, false) => Step::Later,
            (false, true) => Step::Trusted,
        };
        if step == Step::Trusted {
            let verified = seen.attested.as_ref().and_then(|admitted| admitted.verified());
            let FirstUse { pins: entries, .. } = first_use(surface);
            let is_taken = |entry: &Entry| pins.iter().any(|pin| pin.entry.id() == entry.id());
            let own: Vec<Entry> = entries.into_iter().filter(|entry| !is_taken(entry)).collect();
            let basis = |entry: &Entry| first_basis(entry, verified);
            pins.extend(own.into_iter().map(|entry| NewPin { basis: basis(&entry), entry }));
        }
        if pins.is_empty() && step != Step::Trusted {
            return nothing(step);
        }
        Accepting { step, name: "server.pin", pins, decided_for }
    }
}

fn pinned(pin: &NewPin, at: Timestamp) -> Pin {
    Pin { entry: pin.entry.clone(), basis: pin.basis, at, by: GATE_ACTOR.to_owned() }
}

/// The rules for a server, and the state kept between judgements.
#[derive(Clone, Copy)]
pub(super) struct Judging<'a> {
    pub(super) rules: &'a Rules,
    pub(super) call_rules: &'a CallRulesCache,
    pub(super) behavior: &'a ObservedBehavior,
}

/// Builds the situation that calls are decided on.
pub(super) fn judged(
    Judging { rules, call_rules, behavior }: Judging<'_>,
    seen: &Seen,
    surface: &Surface,
    book: &PinBook,
    mut judgement: SurfaceJudgement,
    record: &StoreRecord,
    repinned: usize,
) -> Judged {
    // A server that waits for a person is stopped even before there are lists to judge.
    let is_asked = rules.first_use == FirstUsePolicy::Approve && book.is_empty();
    let status = match record.status {
        ServerStatus::Unbaselined if is_asked => ServerStatus::Pending,
        status => status,
    };
    // The status and what waits for a person were determined above. Clearing a change here applies
    // only to this process.
    let unobserved =
        rules.upper.climb(&rules.server, behavior, rules.behavior, surface, &mut judgement);
    let changed_pins = rules.upper.changed_pins(book);
    let mirrors = rules.mirrors_parameters && is_stateless(seen.handshake.as_deref());
    let mirrorings = match mirrors {
        true => Mirrorings::of(book, surface, &judgement, rules.mode),
        false => Mirrorings::default(),
    };
    let is_allowed = |id: &EntryId| {
        let is_tool = id.entry_type == EntryType::Tool;
        !is_tool || rules.allowed.as_ref().is_none_or(|allowed| allowed.check(&id.key).is_ok())
    };
    let view = View::of(&Materials {
        reviewer: Reviewer::Terminal(rules.server.as_str()),
        status,
        book,
        surface,
        judgement: &judgement,
        settings: &rules.settings,
        mode: rules.mode,
        scope: rules.scope,
        is_offered: &|id| mirrorings.can_be_called(id) && is_allowed(id),
        checks_input: rules.checks_input,
        pages: &seen.pages(),
        call_rules,
    });
    let situation = Situation {
        server: rules.server.clone(),
        settings: rules.settings.clone(),
        profile: rules.profile.clone(),
        switches: record.switches.clone(),
        // The caller sets it: the judge does not track admission.
        admission: Admittance::default(),
        view: Arc::new(view),
        mirrorings: Arc::new(mirrorings),
    };
    let has_baseline = book.has_baseline();
    let book = of_handshake(book);
    Judged { situation, book, has_baseline, judgement, repinned, unobserved, changed_pins }
}
