//! Stubs, which the client sees in place of tools that were held when first seen: a name and our
//! own text, so that a person who misses the tool learns why. Nothing in a stub comes from the
//! server except a name that cannot carry a message.

use crate::judge::{Judgement, SurfaceJudgement};
use crate::naming::shown_name;
use crate::pins::{EntryPins, PinBook};
use crate::posture::Posture;
use crate::shown::ListMode;
use crate::words::{self, Reviewer};
use contract::json::escape_into;
use contract::surface::{EntryId, ListKind, Surface};

/// The most stubs in a list, so that a server cannot fill the client's list with tools that may not
/// be used.
pub const MAX_STUBS: usize = 10;

/// A placeholder for a held tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub<'a> {
    /// The tool that it represents.
    pub id: &'a EntryId,
    /// The name that the client sees: the tool's own if a refusal may show it, otherwise `held_`
    /// and the start of its hash.
    pub name: String,
    /// The definition that the client sees.
    pub definition: String,
}

/// The stubs for a server's list of tools, in list order.
pub fn stubs<'a>(
    reviewer: Reviewer<'_>,
    book: &PinBook,
    surface: &'a Surface,
    judgement: &SurfaceJudgement,
    mode: ListMode,
) -> Vec<Stub<'a>> {
    if mode != ListMode::Stub || judgement.posture == Posture::Monitor || book.lost.is_some() {
        return Vec::new();
    }
    let tools = surface.list(ListKind::Tools);
    let held = tools.filter_map(|entry| {
        let judged = judgement.of(entry.id()).filter(|judged| judged.verdict.is_held())?;
        is_first_sight(book, judged).then(|| stub(reviewer, entry.id(), judged))
    });
    let is_taken = |stub: &Stub<'_>| {
        stub.name != stub.id.key
            && surface.list(ListKind::Tools).any(|entry| entry.key() == stub.name)
    };
    held.filter(|stub| !is_taken(stub)).take(MAX_STUBS).collect()
}

/// Whether no version of the entry was ever accepted, and that is not due to tampered pins.
fn is_first_sight(book: &PinBook, judged: &Judgement) -> bool {
    let accepted = book.get(&judged.id).and_then(EntryPins::accepted);
    accepted.is_none() && judged.before.is_none() && !book.tampered.contains_key(&judged.id)
}

fn stub<'a>(reviewer: Reviewer<'_>, id: &'a EntryId, judged: &Judgement) -> Stub<'a> {
    let shown = shown_name(&id.key, false);
    let name = if shown == id.key { shown } else { format!("held_{shown}") };
    let mut description = Vec::new();
    escape_into(&words::stub(reviewer, judged), &mut description);
    let definition = format!(
        r#"{{"name":"{name}","description":{},"inputSchema":{{"type":"object","properties":{{}}}}}}"#,
        String::from_utf8_lossy(&description)
    );
    Stub { id, name, definition }
}

#[cfg(test)]
mod tests;
