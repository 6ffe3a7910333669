//! What waits for a person, in full, and what a person accepts.

use super::Session;
use crate::actions::text_of;
use contract::surface::{Entry, EntryId, EntryType};
use gate::document::EntryDocument;
use gate::judge::Judgement;
use gate::pins::{Basis, Pin};
use gate::server_text::ServerText;
use gate::time::Timestamp;
use serde::Serialize;

/// The longest name of a person that is kept.
const MAX_NAME: usize = 200;

/// Why nothing was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepinError {
    #[error("nothing of this entry waits for a decision")]
    NothingWaits,
    #[error(
        "the definition that waits now is not the one that was held: its hash differs. Review it again"
    )]
    OtherHash,
    #[error("the server's list cannot be read, so that there is nothing that could be accepted")]
    Unreadable,
}

/// What waits of one entry.
#[derive(Serialize)]
struct Review<'a> {
    #[serde(flatten)]
    document: EntryDocument<'a>,
    /// What names it when it is accepted.
    hash: Option<String>,
    /// The JSON of the approved definition, as it came.
    before: Option<&'a str>,
    /// The JSON of the one that waits.
    after: Option<&'a str>,
}

impl<'a> Review<'a> {
    fn of(judged: &'a Judgement) -> Review<'a> {
        Review {
            document: EntryDocument::of(judged, ServerText::Shown),
            hash: judged.reviewed_hash().map(|hash| hash.to_string()),
            before: judged.before.as_ref().map(Entry::raw),
            after: judged.after.as_ref().map(Entry::raw),
        }
    }
}

impl Session {
    /// What waits of an entry, before and after in full; `None` if nothing does. It is for a person, not for a model.
    pub fn review(&self, entry_type: &str, key: &str) -> Option<String> {
        let judged = self.judged(entry_type, key)?;
        serde_json::to_string(&Review::of(judged)).ok()
    }

    /// Everything that waits.
    pub fn waiting(&self) -> String {
        let waiting = self.judgement.iter().flat_map(gate::judge::SurfaceJudgement::waiting);
        let waiting: Vec<Review<'_>> = waiting.map(Review::of).collect();
        serde_json::to_string(&waiting).unwrap_or_else(|_| "[]".to_owned())
    }

    fn judged(&self, entry_type: &str, key: &str) -> Option<&Judgement> {
        let entry_type: EntryType = entry_type.parse().ok()?;
        let judgement = self.judgement.as_ref()?.of(&EntryId::new(entry_type, key))?;
        Some(judgement).filter(|judged| judged.is_waiting())
    }

    /// Accepts exactly what has this hash.
    ///
    /// INVARIANT: hashes are compared whole. The server chooses the definition that is reviewed and the one that follows.
    pub fn repin(
        &mut self,
        entry_type: &str,
        key: &str,
        hash: &str,
        by: &str,
        now: i64,
    ) -> Result<Option<String>, RepinError> {
        let judged = self.judged(entry_type, key).ok_or(RepinError::NothingWaits)?;
        if !judged.can_be_approved() {
            return Err(RepinError::Unreadable);
        }
        if judged.reviewed_hash().map(|hash| hash.to_string()).as_deref() != Some(hash) {
            return Err(RepinError::OtherHash);
        }
        let entry = judged.after.clone().unwrap_or_else(|| Entry::gone(judged.id.clone()));
        let by = by.chars().take(MAX_NAME).collect();
        let mut book = self.unsaved.take().unwrap_or_else(|| self.kept.book.clone());
        book.push(Pin { entry, basis: Basis::Person, at: Timestamp(now), by });
        self.unsaved = Some(book);
        let mut out = Vec::new();
        self.judge(now, &mut out);
        Ok(text_of(&out))
    }
}
