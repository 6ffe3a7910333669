//! The only place where a contract is judged: its pins against what the server reports now.

use crate::by_the_call::{CallRules, CallRulesCache, ToolChange};
use crate::comparing::{Compared, Comparer};
use crate::network::DriftAdvisory;
use crate::pins::{EntryPins, Pin, PinBook};
use crate::posture::{Circumstances, Posture, Ruling, Settings};
use crate::reason::Reason;
use crate::tiers::Climbed;
use crate::verdict::{Provenance, SurfacedVerdict, Verdict};
use contract::change::{ChangeKind, Finding};
use contract::diff::mark_renames;
use contract::hash::EntryHash;
use contract::inert::{NotInert, not_inert};
use contract::json::{Document, Node};
use contract::markers::ToolNames;
use contract::sorted::SortedSet;
use contract::surface::{Entry, EntryId, EntryType, Surface};
use std::sync::Arc;

/// The most automatic pins of a server per day. Further changes are held, so that a person reviews
/// them.
pub const MAX_AUTO_PINS_A_DAY: usize = 20;

/// The judgement of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub id: EntryId,
    pub verdict: Verdict,
    pub reason: Option<Reason>,
    /// The client continues to see the approved definition while the new one waits.
    pub is_deferred: bool,
    /// Each call of the tool is decided separately, by what it uses. The verdict is HOLD, because
    /// some calls are held.
    pub is_by_the_call: bool,
    /// The change is inert: the entry is to be pinned automatically with the basis `auto`.
    pub is_accepted: bool,
    /// The entry of the approved pin, if there is one.
    pub before: Option<Entry>,
    pub after: Option<Entry>,
    pub findings: Vec<Finding>,
    /// Why new text is not inert, set only if that is the reason for deferring it.
    pub not_inert: Option<String>,
    pub renamed_to: Option<String>,
    /// A description of the fault in the baseline or the list.
    pub detail: Option<String>,
    /// The results of the tiers above the comparison, if they were consulted.
    pub climbed: Option<Climbed>,
    /// What a directory recorded about the same change. It is shown with the verdict and never
    /// changes it.
    pub advisory: Option<DriftAdvisory>,
}

/// The judgement of a server's whole surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurfaceJudgement {
    pub posture: Posture,
    pub verdict: Verdict,
    /// The entries to report, sorted by id. Unchanged entries are omitted.
    pub entries: Vec<Judgement>,
    /// A description of every list that could not be read.
    pub unreadable: Vec<String>,
}

impl SurfaceJudgement {
    pub fn is_safety_relevant(&self) -> bool {
        !self.unreadable.is_empty() || self.entries.iter().any(Judgement::is_safety_relevant)
    }

    /// The provenance of the entry that climbed furthest, among those with the verdict of the
    /// whole.
    pub fn provenance(&self) -> Provenance {
        let structural = Provenance::structural(self.verdict, !self.entries.is_empty());
        let deciding = self.entries.iter().filter(|entry| entry.verdict == self.verdict);
        let climbed = deciding.filter_map(|entry| entry.climbed).map(|climbed| climbed.provenance);
        let deepest = climbed.max_by_key(|provenance| provenance.tier_reached);
        deepest.filter(|provenance| provenance.tier_reached > 0).unwrap_or(structural)
    }

    /// The verdict in the form in which it may be shown.
    pub fn surfaced(&self) -> SurfacedVerdict {
        let entries = self.entries.iter().map(Judgement::surfaced);
        let is_known = entries.into_iter().all(|entry| entry.provenance().is_some());
        let provenance = is_known.then(|| self.provenance());
        SurfacedVerdict::new(self.verdict, self.is_safety_relevant(), provenance)
    }

    /// The entries to pin automatically.
    pub fn accepted(&self) -> impl Iterator<Item = &Entry> {
        let accepted = self.entries.iter().filter(|judgement| judgement.is_accepted);
        accepted.filter_map(|judgement| judgement.after.as_ref())
    }

    /// Everything that waits for a person: held or deferred entries.
    pub fn waiting(&self) -> impl Iterator<Item = &Judgement> {
        self.entries.iter().filter(|judgement| judgement.is_waiting())
    }

    pub fn held(&self) -> impl Iterator<Item = &Judgement> {
        self.entries.iter().filter(|judgement| judgement.verdict.is_held())
    }

    /// The judgement of an entry. Returns `None` if the entry matches its accepted version.
    pub fn of(&self, id: &EntryId) -> Option<&Judgement> {
        let at = self.entries.binary_search_by(|judgement| judgement.id.cmp(id)).ok()?;
        self.entries.get(at)
    }

    /// INVARIANT: nothing unpinned is served. If nothing can be pinned now, entries that would be
    /// accepted wait instead.
    pub fn defer_accepted(&mut self) {
        let is_served = self.posture == Posture::Monitor;
        for judgement in self.entries.iter_mut().filter(|judgement| judgement.is_accepted) {
            judgement.is_accepted = false;
            judgement.is_deferred = !is_served && judgement.after.is_some();
        }
    }
}

impl Judgement {
    pub fn is_waiting(&self) -> bool {
        self.verdict.is_held() || self.is_deferred
    }

    /// Whether a person could have reviewed the entry. An unreadable list reveals neither its
    /// entries nor which ones were removed.
    pub fn can_be_approved(&self) -> bool {
        self.reason != Some(Reason::SurfaceUnreadable)
    }

    /// The hash that identifies the waiting change: of the current entry, or of the removed one.
    pub fn reviewed_hash(&self) -> Option<EntryHash> {
        self.after.as_ref().or(self.before.as_ref()).map(Entry::entry_hash)
    }

    pub fn is_safety_relevant(&self) -> bool {
        let has_fault = self.reason.is_some_and(|reason| reason != Reason::ContractDrift);
        has_fault || self.findings.iter().any(|finding| finding.class.is_safety_relevant())
    }

    pub fn provenance(&self) -> Provenance {
        match &self.climbed {
            Some(climbed) => climbed.provenance,
            None => Provenance::structural(self.verdict, !self.findings.is_empty()),
        }
    }

    /// The verdict in the form in which it may be shown. It has no provenance if nothing says what
    /// held it.
    pub fn surfaced(&self) -> SurfacedVerdict {
        let has_cause = !self.findings.is_empty() || self.detail.is_some();
        let provenance = (has_cause || !self.verdict.is_held()).then(|| self.provenance());
        SurfacedVerdict::new(self.verdict, self.is_safety_relevant(), provenance)
    }
}

/// Judges a server's whole surface against its pins. `auto_pins_today` counts the automatic pins of
/// this server today.
pub fn judge_surface(
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
) -> SurfaceJudgement {
    let mut comparer = Comparer::knowing(&Compared::default(), book, surface);
    judge_each(book, surface, settings, auto_pins_today, &mut comparer, |_| {})
}

/// Judges a surface with an additional check of each entry, which runs before the limit on
/// automatic pins is applied.
pub(crate) fn judge_each(
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
    comparer: &mut Comparer,
    adjust: impl Fn(&mut Judgement),
) -> SurfaceJudgement {
    let pinned = book.iter().map(|(id, _)| id);
    let ids: SortedSet<&EntryId> =
        surface.entries().map(Entry::id).chain(pinned).chain(book.tampered.keys()).collect();
    let mut entries = Vec::new();
    let mut auto_pins = auto_pins_today;
    for id in ids {
        let mut judgement = match judge_entry(book, surface, id, settings, comparer) {
            Some(judgement) => judgement,
            None => continue,
        };
        adjust(&mut judgement);
        if judgement.is_accepted {
            auto_pins += 1;
            if auto_pins > MAX_AUTO_PINS_A_DAY {
                require_review(&mut judgement, settings.posture);
            }
        }
        entries.push(judgement);
    }
    mark_renamed(&mut entries);
    let unreadable: Vec<String> = surface
        .unreadable()
        .iter()
        .map(|(list, unreadable)| format!("{}: {unreadable}", list.method()))
        .collect();
    let fault =
        if unreadable.is_empty() { Verdict::Proceed } else { held_unless_monitor(settings) };
    let verdict = entries.iter().map(|judgement| judgement.verdict).fold(fault, Verdict::max);
    SurfaceJudgement { posture: settings.posture, verdict, entries, unreadable }
}

fn held_unless_monitor(settings: &Settings) -> Verdict {
    match settings.posture {
        Posture::Monitor => Verdict::Proceed,
        Posture::Shield | Posture::Guard | Posture::Strict => Verdict::Hold,
    }
}

fn require_review(judgement: &mut Judgement, posture: Posture) {
    judgement.is_accepted = false;
    judgement.detail =
        Some(format!("more than {MAX_AUTO_PINS_A_DAY} changes of this server were accepted today"));
    if posture != Posture::Monitor {
        judgement.verdict = Verdict::Hold;
        judgement.reason = Some(Reason::ContractDrift);
    }
}

/// Judges one entry. Returns `None` if there is nothing to report.
fn judge_entry(
    book: &PinBook,
    surface: &Surface,
    id: &EntryId,
    settings: &Settings,
    comparer: &mut Comparer,
) -> Option<Judgement> {
    let pins = book.get(id);
    let observed = surface.entry(id);
    if let Some(lost) = book.lost.as_ref().or_else(|| book.tampered.get(id)) {
        return Some(fault(id, pins, observed, Reason::BaselineLost, lost, settings));
    }
    let list = id.entry_type.list();
    if let Some(unreadable) = list.and_then(|list| surface.unreadable().get(&list)) {
        let words = unreadable.to_string();
        return Some(fault(id, pins, observed, Reason::SurfaceUnreadable, &words, settings));
    }
    match (pins, observed) {
        (Some(pins), None) if pins.is_gone() || !surface.tells_of(id.entry_type) => None,
        (None, None) => None,
        (pins, observed) => compare(id, pins, observed, settings, comparer),
    }
}

/// A verdict without a comparison: the baseline or the list is not trustworthy.
fn fault(
    id: &EntryId,
    pins: Option<&EntryPins>,
    observed: Option<&Entry>,
    reason: Reason,
    words: &str,
    settings: &Settings,
) -> Judgement {
    Judgement {
        id: id.clone(),
        verdict: held_unless_monitor(settings),
        reason: Some(reason),
        is_deferred: false,
        is_by_the_call: false,
        is_accepted: false,
        before: pins.and_then(EntryPins::approved).map(|pin| pin.entry.clone()),
        after: observed.cloned(),
        findings: Vec::new(),
        not_inert: None,
        renamed_to: None,
        detail: Some(words.to_owned()),
        climbed: None,
        advisory: None,
    }
}

fn compare(
    id: &EntryId,
    pins: Option<&EntryPins>,
    observed: Option<&Entry>,
    settings: &Settings,
    comparer: &mut Comparer,
) -> Option<Judgement> {
    let approved = pins.and_then(EntryPins::approved);
    let accepted = pins.and_then(EntryPins::accepted);
    let findings = comparer.findings(id, pins, observed);
    if findings.is_empty() {
        return None;
    }
    let before = approved.map(|pin| pin.entry.clone());
    let circumstances = Circumstances::of(before.as_ref());
    let ruling = settings.strongest(&findings, circumstances);
    let verdict = settings.verdict(&findings, circumstances);
    let mut judgement = Judgement {
        id: id.clone(),
        verdict,
        reason: None,
        is_deferred: false,
        is_by_the_call: false,
        is_accepted: false,
        before,
        after: observed.cloned(),
        findings,
        not_inert: None,
        renamed_to: None,
        detail: None,
        climbed: None,
        advisory: None,
    };
    match ruling {
        Ruling::Hold | Ruling::Inconclusive | Ruling::Note => {}
        Ruling::ByTheCall => {
            judgement.is_by_the_call = observed.is_some() && judgement.before.is_some();
        }
        Ruling::Defer => judgement.is_deferred = observed.is_some(),
        Ruling::AcceptIfInert => {
            accept_if_inert(&mut judgement, accepted, settings, comparer.tools());
        }
    }
    if judgement.verdict.is_held() {
        let has_marker =
            judgement.findings.iter().any(|found| found.kind == ChangeKind::MarkerFound);
        let only_marker =
            judgement.findings.iter().all(|found| found.kind == ChangeKind::MarkerFound);
        judgement.reason = Some(match (has_marker && only_marker, approved) {
            (true, _) => Reason::Marker,
            (false, None) => Reason::NoPin,
            (false, Some(_)) => Reason::ContractDrift,
        });
    }
    Some(judgement)
}

/// Whether each posture, in the order of [`Posture::ALL`], would hold a call of the entry. It
/// applies the postures' rules to the existing findings; nothing is compared again.
pub fn would_hold(judgement: &Judgement, book: &PinBook, settings: &Settings) -> [bool; 4] {
    let is_fault =
        matches!(judgement.reason, Some(Reason::BaselineLost | Reason::SurfaceUnreadable));
    let is_unpinned = crate::unseen::holds_unpinned(judgement, book);
    let circumstances = Circumstances::of(judgement.before.as_ref());
    Posture::ALL.map(|posture| {
        let settings = Settings { posture, ..settings.clone() };
        let is_holding = held_unless_monitor(&settings).is_held();
        let verdict = settings.verdict(&judgement.findings, circumstances);
        is_holding && (is_fault || is_unpinned) || !is_fault && verdict.is_held()
    })
}

/// The rules by which shield would decide on single calls of a tool, whatever the actual posture
/// is. Returns `None` if shield would hold all calls or none.
pub fn call_rules(
    judgement: &Judgement,
    book: &PinBook,
    settings: &Settings,
    cache: &CallRulesCache,
) -> Option<Arc<CallRules>> {
    let (approved, new) = (judgement.before.as_ref()?, judgement.after.as_ref()?);
    let accepted = book.get(&judgement.id).and_then(EntryPins::accepted)?;
    let is_fault =
        matches!(judgement.reason, Some(Reason::BaselineLost | Reason::SurfaceUnreadable));
    if judgement.id.entry_type != EntryType::Tool || is_fault {
        return None;
    }
    let shield = Settings { posture: Posture::Shield, ..settings.clone() };
    match shield.strongest(&judgement.findings, Circumstances::of(Some(approved))) {
        Ruling::ByTheCall => Some(cache.rules(ToolChange {
            approved,
            accepted: &accepted.entry,
            new,
            findings: &judgement.findings,
            defers_text: settings.defer_parameter_text,
        })),
        Ruling::AcceptIfInert
        | Ruling::Defer
        | Ruling::Note
        | Ruling::Inconclusive
        | Ruling::Hold => None,
    }
}

impl Circumstances {
    fn of(approved: Option<&Entry>) -> Circumstances {
        Circumstances {
            is_approved: approved.is_some(),
            is_approved_read_only: approved.is_some_and(is_read_only),
        }
    }
}

fn accept_if_inert(
    judgement: &mut Judgement,
    accepted: Option<&Pin>,
    settings: &Settings,
    tools: &ToolNames,
) {
    let Some(after) = &judgement.after else { return };
    let is_known = accepted.is_some_and(|pin| pin.entry.entry_hash() == after.entry_hash());
    match why_not_inert(judgement.before.as_ref(), after, settings, tools) {
        None => judgement.is_accepted = !is_known,
        Some(words) => {
            // Monitor shows what the server reports, so nothing waits.
            judgement.is_deferred = settings.posture != Posture::Monitor;
            judgement.not_inert = Some(words);
        }
    }
}

fn why_not_inert(
    before: Option<&Entry>,
    after: &Entry,
    settings: &Settings,
    tools: &ToolNames,
) -> Option<String> {
    let old = before.map(Entry::document);
    let (Ok(old), Ok(new)) = (old.transpose(), after.document()) else {
        return Some("it cannot be read".to_owned());
    };
    let old = old.as_ref().map(Document::root);
    Some(match not_inert(old, new.root(), tools, &settings.inert)? {
        NotInert::Marker(marker) => format!("a marker at `{}`", marker.pointer),
        NotInert::StringTooLong { pointer, length } => {
            format!("a new text of {length} characters at `{pointer}`")
        }
        NotInert::TooMuchText { total } => format!("{total} characters of new text in all"),
        NotInert::Preset { pointer } => {
            format!("a new parameter with a value of its own at `{pointer}`")
        }
    })
}

fn is_read_only(entry: &Entry) -> bool {
    let Ok(document) = entry.document() else { return false };
    let annotations = document.root().get("annotations");
    let hint = annotations.and_then(|annotations| annotations.get("readOnlyHint"));
    hint.and_then(Node::as_bool) == Some(true)
}

fn mark_renamed(entries: &mut [Judgement]) {
    let pairs: Vec<_> = entries
        .iter()
        .map(|entry| (entry.id.clone(), entry.before.clone(), entry.after.clone()))
        .collect();
    let changed = pairs.iter().map(|(id, before, after)| (id, before.as_ref(), after.as_ref()));
    let renames = mark_renames(changed);
    for entry in entries {
        entry.renamed_to = renames.get(&entry.id).cloned();
    }
}

#[cfg(test)]
mod tests;
