//! The answers of the upper tiers and the drift network: every view is judged again with them, and
//! each answer is reported once.

use super::{Driver, TICK};
use crate::judge::Judged;
use crate::recorder::now;
use crate::session::Session;
use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId};
use gate::judge::{Judgement, SurfaceJudgement};
use gate::naming::shown_name;
use gate::network::DriftAdvisory;
use gate::tiers::{CorpusAnswer, Opinion};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most answers that are remembered as reported.
const MAX_TOLD: usize = 10_000;

/// The answers of the tiers that were already reported.
#[derive(Debug, Default)]
pub(super) struct ReportedTiers(HashSet<(EntryHash, &'static str)>);

impl ReportedTiers {
    /// Whether it is news. Beyond the limit nothing is, because a server may change whenever it is
    /// listed.
    fn is_news(&mut self, entry: EntryHash, answer: &'static str) -> bool {
        self.0.len() < MAX_TOLD && self.0.insert((entry, answer))
    }
}

/// Events to report after a judgement, once no lock is held.
#[derive(Debug, Default)]
pub(super) struct Climbing {
    entries: Vec<Judgement>,
    changed_pins: Vec<(Entry, DriftAdvisory)>,
}

impl Climbing {
    /// Empty if there are no tiers, since there is nothing to report then.
    pub(super) fn of(judged: &mut Judged) -> Climbing {
        let is_told = |entry: &&Judgement| {
            let climbed = entry.climbed.is_some_and(|climbed| {
                climbed.corpus != CorpusAnswer::NotRun || climbed.opinion != Opinion::NotRun
            });
            climbed || entry.advisory.is_some()
        };
        let entries = judged.judgement.entries.iter().filter(is_told).cloned().collect();
        Climbing { entries, changed_pins: std::mem::take(&mut judged.changed_pins) }
    }
}

impl Driver {
    /// How long the driver waits to be woken.
    pub(super) fn patience(&self) -> Duration {
        let until = self.corpus_until.map(|until| until.saturating_duration_since(Instant::now()));
        until.map_or(TICK, |until| until.min(TICK))
    }

    /// Called after a surface was judged as the server just showed it, because that may have
    /// started lookups.
    pub(super) fn note_met(&mut self, judgement: &SurfaceJudgement) {
        let upper = &self.server.rules.upper;
        upper.met(judgement, now());
        let definitions = judgement.entries.iter().filter_map(|entry| entry.after.as_ref());
        let definitions = definitions.filter_map(Entry::definition_hash);
        let until = definitions.filter_map(|definition| upper.awaited_until(definition)).max();
        self.corpus_until = self.corpus_until.max(until);
    }

    /// Makes a call wait for the corpus, unless the wait is already over.
    pub(super) fn await_corpus(&mut self, session: &Arc<Session>) {
        if self.corpus_until.is_none() {
            session.resume_looked_up();
        }
    }

    /// Called when something was learned, or the corpus did not answer in time.
    pub(super) fn end_corpus_wait(&mut self) {
        self.corpus_until = None;
        let (unobserved, climbing) = match self.server.reconsider() {
            Ok(judged) => judged,
            Err(error) => {
                self.server.remark(&format!("what was learned could not be judged: {error}"));
                return self.resume_waiting();
            }
        };
        climbing.iter().for_each(|climbing| self.tell_tiers(climbing));
        self.probing.begin(&self.server, unobserved);
        self.resume_waiting();
    }

    fn resume_waiting(&mut self) {
        for session in self.server.sessions() {
            self.handle(&session, |_| session.resume_looked_up());
        }
    }

    /// Records and reports each answer once. Text received over the network is not included.
    pub(super) fn tell_tiers(&mut self, climbing: &Climbing) {
        for judgement in &climbing.entries {
            let Some(after) = &judgement.after else { continue };
            if let Some(climbed) = judgement.climbed {
                self.tell_corpus(&judgement.id, after, climbed.corpus);
                self.tell_opinion(&judgement.id, after, climbed.opinion);
            }
            if let Some(advisory) = &judgement.advisory {
                self.tell_advisory(&judgement.id, after.entry_hash(), advisory);
            }
        }
        for (pinned, advisory) in &climbing.changed_pins {
            self.tell_advisory(pinned.id(), pinned.entry_hash(), advisory);
        }
    }

    fn tell_corpus(&mut self, id: &EntryId, after: &Entry, answer: CorpusAnswer) {
        let Some(definition) = after.definition_hash() else { return };
        let is_answer = answer != CorpusAnswer::NotRun;
        if !is_answer || !self.told.is_news(after.entry_hash(), answer.as_str()) {
            return;
        }
        let class = self.server.rules.upper.row(definition).map(|row| row.reason_class);
        let name = shown_name(&id.key, true);
        let data = json!({"tool": name, "definition_hash": definition, "answer": answer.as_str(),
            "reason_class": class});
        self.server.recorder.event(self.server.id.as_str(), "corpus.answered", None, &data);
        if answer == CorpusAnswer::Dangerous {
            self.server.remark(&format!(
                "the directory lists the new definition of `{name}` as dangerous: it stays held"
            ));
        }
    }

    fn tell_opinion(&mut self, id: &EntryId, after: &Entry, opinion: Opinion) {
        let word = match opinion {
            Opinion::NotRun => return,
            Opinion::Abstained => "ABSTAIN",
            Opinion::LikelyBenign => "LIKELY_BENIGN",
            Opinion::Suspicious => "LIKELY_HOSTILE",
        };
        if !self.told.is_news(after.entry_hash(), word) {
            return;
        }
        let answer = self.server.rules.upper.answer(after.entry_hash());
        let name = shown_name(&id.key, true);
        let data = json!({"tool": name, "entry_hash": after.entry_hash(), "opinion": word,
            "severity": answer.as_ref().map(|answer| answer.severity),
            "reason_class": answer.as_ref().map(|answer| answer.reason_class)});
        self.server.recorder.event(self.server.id.as_str(), "consult.answered", None, &data);
    }

    fn tell_advisory(&mut self, id: &EntryId, entry: EntryHash, advisory: &DriftAdvisory) {
        if !self.told.is_news(entry, advisory.seen.as_str()) {
            return;
        }
        let name = shown_name(&id.key, true);
        let data = json!({"key": name, "type": id.entry_type, "entry_hash": entry,
            "seen": advisory.seen.as_str(), "kinds": advisory.kinds,
            "safety_relevant": advisory.is_safety_relevant, "hour": advisory.hour});
        self.server.recorder.event(self.server.id.as_str(), "network.advisory", None, &data);
        self.server.remark(&format!("`{name}`: {}", advisory.sentence()));
    }
}
