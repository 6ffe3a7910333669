//! Outside opinions on a change, for the person who decides: the crawler's record, unconfirmed
//! reports, a model's opinion. None of it is a verdict, and the wording says so.

use crate::commands::network::{LocalNetwork, UnconfirmedReports};
use crate::screen;
use crate::server_text::ServerText;
use crate::target::Workplace;
use contract::surface::Entry;
use engine::consult::{KeptOpinion, Opinions};
use engine::network::NetworkFolder;
use gate::judge::Judgement;
use gate::network::{DriftAdvisory, ReasonClass};
use serde_json::{Value, json};

pub(super) struct Others {
    network: LocalNetwork,
    opinions: Opinions,
}

impl Others {
    pub(super) fn read(workplace: &Workplace) -> Others {
        let home = workplace.home.path();
        Others {
            network: LocalNetwork::open(home, &workplace.configuration).refreshed(),
            opinions: Opinions::read(&NetworkFolder::of(home)),
        }
    }

    fn opinion(&self, entry: &Judgement) -> Option<&KeptOpinion> {
        self.opinions.newest(entry.after.as_ref().map(Entry::entry_hash)?)
    }

    pub(super) fn lines(&self, entry: &Judgement, text: ServerText) -> Vec<String> {
        let advisory = self.network.advisory(entry).as_ref().map(DriftAdvisory::sentence);
        let reports = self.network.reports(entry).map(UnconfirmedReports::words);
        let opinion = self.opinion(entry).map(|kept| words_of(kept, text));
        [advisory, reports, opinion].into_iter().flatten().collect()
    }

    /// The same as JSON; `None` if there is nothing to report. The rationale is untrusted text and
    /// only included where server text is.
    pub(super) fn document(&self, entry: &Judgement, text: ServerText) -> Option<Value> {
        let advisory = self.network.advisory(entry).map(|advisory| {
            json!({"seen": advisory.seen.as_str(), "kinds": advisory.kinds, "hour": advisory.hour,
                "safety_relevant": advisory.is_safety_relevant})
        });
        let reports = self.network.reports(entry).map(|reports| reports.installs);
        let opinion = self.opinion(entry);
        let opinion = opinion.map(|kept| kept.document(text == ServerText::Shown));
        let is_empty = advisory.is_none() && reports.is_none() && opinion.is_none();
        (!is_empty).then(
            || json!({"advisory": advisory, "unconfirmed_reports": reports, "opinion": opinion}),
        )
    }
}

fn words_of(kept: &KeptOpinion, text: ServerText) -> String {
    let KeptOpinion { model, answer, .. } = kept;
    let class = match answer.reason_class {
        ReasonClass::Unstated => String::new(),
        class => format!(", {class}"),
    };
    let (model, opinion) = (screen::readable(model), answer.opinion);
    let said =
        format!("an opinion, not a verdict: {model} says {opinion} ({}{class})", answer.severity);
    match text {
        ServerText::Shown if !answer.rationale.is_empty() => {
            format!(
                "{said}: \"{}\" (the model's words; the server may have steered them)",
                screen::readable(&answer.rationale)
            )
        }
        ServerText::Shown | ServerText::Located => said,
    }
}
