//! A judgement in the making. Comparing a hostile list takes its time, so this part needs neither the store nor the judge:
//! the judge reads what it rests on, and then writes the outcome unless the record was written in between.

use super::views::{Removals, ViewKey, ViewMemory};
use super::{FirstUsePolicy, Judged, NOBODY, Rules, Seen, StoreRecord, first_basis, of_handshake};
use crate::acts::held_changes;
use crate::admission::Admittance;
use crate::anchor::{anchor, newly_anchored};
use crate::situation::Situation;
use crate::view::{Materials, View, is_stateless};
use contract::surface::{Entry, Surface};
use gate::by_the_call::CallRulesCache;
use gate::first_use::{FirstUse, first_use};
use gate::judge::SurfaceJudgement;
use gate::pins::{Basis, Pin, PinBook};
use gate::server::ServerStatus;
use gate::status::{Happening, next};
use gate::time::Timestamp;
use gate::unseen::{is_changed, judge_server_again};
use std::sync::Arc;
use store::{Act, Baseline, HeldChange, Launch, NewPin, Observation, Revision, Sighting};

/// What of the store a judgement rests on.
#[derive(Debug)]
pub struct Draft {
    pub(super) rules: Rules,
    pub(super) call_rules: CallRulesCache,
    pub(super) record: StoreRecord,
    pub(super) baseline: Baseline,
    /// How often entries were pinned again during the last day without asking.
    pub(super) auto_pins: usize,
    pub(super) launch: Option<Launch>,
    pub(super) of_view: OfView,
    pub(super) at: Timestamp,
}

/// The view that a judgement is for, and what is remembered of it.
#[derive(Debug)]
pub(super) struct OfView {
    pub(super) view: ViewKey,
    pub(super) memory: ViewMemory,
    pub(super) removals: Removals,
    /// The server counts as changed because of another view.
    pub(super) is_changed_elsewhere: bool,
}

/// A judgement, and what is to be written before it counts.
#[derive(Debug)]
pub struct Drafted {
    pub(super) judged: Judged,
    /// The record that it rests on, and the one after it was written.
    pub(super) rests_on: StoreRecord,
    pub(super) record: StoreRecord,
    pub(super) writing: Option<Writing>,
    pub(super) view: ViewKey,
    pub(super) memory: ViewMemory,
}

/// What is to be written.
#[derive(Debug)]
pub(super) struct Writing {
    name: &'static str,
    expect: Revision,
    launch: Option<Launch>,
    status: Option<ServerStatus>,
    pins: Vec<NewPin>,
    observation: Observation,
    /// What is held of a surface that was not seen before.
    held: Vec<HeldChange>,
    at: Timestamp,
}

impl Writing {
    pub(super) fn act<'a>(&'a self, rules: &'a Rules) -> Act<'a> {
        let mut act = Act::new(&rules.server, self.at, NOBODY, self.name);
        act.expect = Some(self.expect);
        act.launch = self.launch.as_ref();
        act.status = self.status;
        act.observation = Some(&self.observation);
        act.pins.clone_from(&self.pins);
        act.held.clone_from(&self.held);
        act
    }
}

impl Draft {
    /// Judges what a server says now: what is pinned at first use, what is pinned again, what is held.
    pub fn judge(self, seen: &Seen, surface: &mut Surface) -> Drafted {
        let Draft { rules, call_rules, record, baseline, auto_pins, launch, of_view, at } = self;
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
        let is_first = book.is_empty() && is_trusted && status == ServerStatus::Unbaselined;
        removals.apply(&mut book, surface);
        memory.show(&removals, &book, surface);
        let compared = &mut memory.compared;
        let mut judge = |book: &PinBook, auto_pins: usize| {
            judge_server_again(status, book, surface, &rules.settings, auto_pins, compared)
        };
        let mut name = "server.observe";
        let mut pins: Vec<NewPin> = Vec::new();
        let mut accepted = 0;
        if is_first && rules.first_use == FirstUsePolicy::Trust {
            let FirstUse { pins: entries, .. } = first_use(surface);
            name = "server.pin";
            let verified = seen.attested.as_ref().and_then(|admitted| admitted.verified());
            let basis = |entry: &Entry| first_basis(entry, verified);
            pins =
                entries.into_iter().map(|entry| NewPin { basis: basis(&entry), entry }).collect();
            pins.iter().for_each(|pin| book.push(pinned(pin, at)));
        }
        let may_pin_again = !is_first && is_trusted && status != ServerStatus::Pending;
        if may_pin_again && let Some(entry) = newly_anchored(&book, surface) {
            pins.push(NewPin { entry, basis: Basis::Attested });
            pins.iter().for_each(|pin| book.push(pinned(pin, at)));
        }
        let mut judgement = judge(&book, auto_pins);
        if may_pin_again {
            let benign = judgement.accepted().cloned();
            let benign: Vec<NewPin> =
                benign.map(|entry| NewPin { entry, basis: Basis::Auto }).collect();
            accepted = benign.len();
            benign.iter().for_each(|pin| book.push(pinned(pin, at)));
            pins.extend(benign);
            if !pins.is_empty() {
                name = "pin.auto";
            }
        }
        if accepted > 0 {
            // INVARIANT: what was accepted just now counts for today, though it is not written yet.
            judgement = judge(&book, auto_pins + accepted);
        }
        judgement.defer_accepted();
        let (settings, auto_pins) = (&rules.settings, auto_pins + accepted);
        let compared = &mut memory.compared;
        memory.is_changed =
            is_changed(&judgement, status, &book, surface, settings, auto_pins, compared);
        let is_held = memory.is_changed || is_changed_elsewhere;
        let repinned = if is_first { 0 } else { pins.len() };
        let next_status = next_status(&rules, status, is_first, is_held);
        let status = Some(next_status).filter(|next| *next != status);
        // What is as it was recorded is not recorded again: a start costs no write.
        let is_news = !pins.is_empty()
            || status.is_some()
            || launch.is_some()
            || baseline.sighting.as_ref().is_none_or(|seen| *seen != Sighting::of(surface));
        let has_moved =
            baseline.sighting.is_none_or(|seen| seen.surface_hash != surface.surface_hash());
        let held = if has_moved { held_changes(&judgement.entries) } else { Vec::new() };
        // A record that cannot be trusted is mended by a person, not written over.
        let writing = (is_news && (is_trusted || pins.is_empty())).then(|| {
            let observation = Observation::of(surface, at);
            Writing { name, expect, launch, status, pins, observation, held, at }
        });
        let rests_on = record.clone();
        let record = StoreRecord { status: next_status, ..record };
        let judging = Judging { rules: &rules, call_rules: &call_rules };
        let judged = judged(judging, seen, surface, &book, judgement, &record, repinned);
        Drafted { judged, rests_on, record, writing, view, memory }
    }
}

fn pinned(pin: &NewPin, at: Timestamp) -> Pin {
    Pin { entry: pin.entry.clone(), basis: pin.basis, at, by: NOBODY.to_owned() }
}

fn next_status(rules: &Rules, status: ServerStatus, is_first: bool, is_held: bool) -> ServerStatus {
    let status = match (is_first, rules.first_use) {
        (false, _) => status,
        (true, FirstUsePolicy::Trust) => next(status, Happening::FirstUseTrusted).unwrap_or(status),
        (true, FirstUsePolicy::Approve) => next(status, Happening::FirstUseAsked).unwrap_or(status),
    };
    // What is left out at first sight because of a marker is held from then on.
    next(status, Happening::Judged { is_held }).unwrap_or(status)
}

/// How a server is judged, and what is kept between judgements.
#[derive(Clone, Copy)]
pub(super) struct Judging<'a> {
    pub(super) rules: &'a Rules,
    pub(super) call_rules: &'a CallRulesCache,
}

/// The situation that calls are decided on.
pub(super) fn judged(
    Judging { rules, call_rules }: Judging<'_>,
    seen: &Seen,
    surface: &Surface,
    book: &PinBook,
    judgement: SurfaceJudgement,
    record: &StoreRecord,
    repinned: usize,
) -> Judged {
    // A server that waits for a person is stopped before its lists are there to be judged.
    let is_asked = rules.first_use == FirstUsePolicy::Approve && book.is_empty();
    let status = match record.status {
        ServerStatus::Unbaselined if is_asked => ServerStatus::Pending,
        status => status,
    };
    let view = View::of(&Materials {
        server: &rules.server,
        status,
        book,
        surface,
        judgement: &judgement,
        settings: &rules.settings,
        mode: rules.mode,
        scope: rules.scope,
        allowed: rules.allowed.as_deref(),
        mirrors: rules.mirrors_parameters && is_stateless(seen.handshake.as_deref()),
        pages: &seen.pages(),
        call_rules,
    });
    let situation = Situation {
        server: rules.server.clone(),
        settings: rules.settings.clone(),
        profile: rules.profile,
        switches: record.switches.clone(),
        // The caller sets it: the judge does not track admission.
        admission: Admittance::default(),
        view: Arc::new(view),
    };
    let has_baseline = book.has_baseline();
    Judged { situation, book: of_handshake(book), has_baseline, judgement, repinned }
}
