//! Models' opinions, stored by the hash of the definition. Their rationale is untrusted.

use crate::network::NetworkFolder;
use contract::hash::EntryHash;
use contract::time::Timestamp;
use gate::consult::Answer;
use gate::words::escape_hidden;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const FILE: &str = "opinions.json";
/// The most opinions that are kept: the newest ones.
const MAX_OPINIONS: usize = 1_000;

/// An opinion, with its model and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOpinion {
    pub model: String,
    pub at: Timestamp,
    pub answer: Answer,
}

impl KeptOpinion {
    /// The opinion for a program that shows it to a person. The rationale is untrusted: it is
    /// included only on request, with characters that affect a terminal escaped.
    pub fn document(&self, with_rationale: bool) -> serde_json::Value {
        let Answer { opinion, severity, reason_class, rationale } = &self.answer;
        serde_json::json!({
            "framing": "opinion-not-verdict",
            "opinion": opinion,
            "severity": severity,
            "reason_class": reason_class,
            "model": escape_hidden(&self.model),
            "at": self.at,
            "rationale": with_rationale.then(|| escape_hidden(rationale)),
        })
    }
}

/// A stored opinion. The answer has the same format as a model's, and is read by the same parser.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    entry_hash: String,
    model: String,
    at: i64,
    answer: String,
}

#[derive(Debug, Default)]
pub struct Opinions(Vec<(EntryHash, KeptOpinion)>);

impl Opinions {
    pub fn read(folder: &NetworkFolder) -> Opinions {
        let lines = folder.read(FILE).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let lines: Vec<Line> = lines.unwrap_or_default();
        let known = lines.into_iter().filter_map(|line| {
            let answer = Answer::of_text(&line.answer).ok()?;
            let kept = KeptOpinion { model: line.model, at: Timestamp(line.at), answer };
            Some((line.entry_hash.parse().ok()?, kept))
        });
        Opinions(known.collect())
    }

    pub fn get(&self, entry: EntryHash, model: &str) -> Option<&KeptOpinion> {
        let mut known = self.0.iter().rev();
        known.find(|(hash, kept)| *hash == entry && kept.model == model).map(|(_, kept)| kept)
    }

    /// The newest opinion on a definition, from any model.
    pub fn newest(&self, entry: EntryHash) -> Option<&KeptOpinion> {
        self.0.iter().rev().find(|(hash, _)| *hash == entry).map(|(_, kept)| kept)
    }

    pub(super) fn of_model(&self, model: &str) -> HashMap<EntryHash, Answer> {
        let own = self.0.iter().filter(|(_, kept)| kept.model == model);
        own.map(|(hash, kept)| (*hash, kept.answer.clone())).collect()
    }

    pub(super) fn add(
        folder: &NetworkFolder,
        entry: EntryHash,
        model: &str,
        answer: &Answer,
        at: Timestamp,
    ) {
        let Ok(_lock) = folder.lock() else { return };
        let mut all = Opinions::read(folder).0;
        let surplus = (all.len() + 1).saturating_sub(MAX_OPINIONS);
        all.drain(..surplus);
        let (model, answer) = (model.to_owned(), answer.clone());
        all.push((entry, KeptOpinion { model, at, answer }));
        let lines: Vec<Line> = all.iter().map(|(entry, kept)| line_of(*entry, kept)).collect();
        if let Ok(bytes) = serde_json::to_vec(&lines) {
            // If it cannot be stored, the question is asked again.
            let _ = folder.write(FILE, &bytes);
        }
    }
}

fn line_of(entry: EntryHash, kept: &KeptOpinion) -> Line {
    let Answer { opinion, severity, reason_class, rationale } = &kept.answer;
    let answer = serde_json::json!({"opinion": opinion, "severity": severity,
        "reason_class": reason_class, "rationale": rationale});
    Line {
        entry_hash: entry.to_string(),
        model: kept.model.clone(),
        at: kept.at.0,
        answer: answer.to_string(),
    }
}
