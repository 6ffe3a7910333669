//! Decides on one use of an entry, with a single lookup in the view.

use super::{Found, HeldTools, Standing, View};
use crate::by_the_call::CallRuling;
use crate::method::Target;
use crate::posture::Posture;
use crate::reason::Reason;
use crate::words::Reviewer;
use contract::surface::{EntryType, ListKind};
use std::sync::Arc;

/// A use of an entry: calling a tool, requesting a prompt, or reading a resource.
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    pub target: Target<'a>,
    /// The raw JSON of the call's arguments.
    pub arguments: Option<&'a [u8]>,
    pub posture: Posture,
    /// The person to name as the one who decides if it is held.
    pub reviewer: Reviewer<'a>,
    /// The tools of which the session already had a call held by the call.
    pub held_tools: &'a HeldTools,
}

/// The decision on a use.
#[derive(Debug, Clone)]
pub enum UseRuling {
    Proceed,
    Hold(Arc<Standing>),
    /// Neither a pin nor the server's current list has the tool: the name is wrong, and no person
    /// has to decide.
    NotListed,
}

impl View {
    /// Decides whether a use may proceed, given how the contract has changed since it was accepted.
    pub fn rule(&self, asked: &Use<'_>) -> UseRuling {
        let Use { target, arguments, reviewer, .. } = *asked;
        match self.find(target) {
            Found::Unchanged(_) => UseRuling::Proceed,
            Found::Changed(standing) if standing.is_held() => UseRuling::Hold(standing.clone()),
            Found::Changed(standing) if standing.is_by_the_call() => by_the_call(standing, asked),
            Found::Changed(standing) if standing.is_beyond_approved(arguments) => {
                UseRuling::Hold(standing.because(Reason::UnapprovedParameter, target, reviewer))
            }
            Found::Changed(_) => UseRuling::Proceed,
            Found::Unknown if is_open(asked) => UseRuling::Proceed,
            Found::Unknown if self.is_unlisted_tool(target) => UseRuling::NotListed,
            Found::Unknown => UseRuling::Hold(self.unknown(target, reviewer)),
        }
    }

    fn is_unlisted_tool(&self, target: Target<'_>) -> bool {
        let is_read = self.has_lists() && self.unreadable(ListKind::Tools).is_none();
        target.entry_type == EntryType::Tool && is_read
    }
}

/// Decides on one call of a tool whose change shield decides by the call.
fn by_the_call(standing: &Standing, asked: &Use<'_>) -> UseRuling {
    let approved = standing.before.as_ref().map(|before| *before.entry_hash().as_bytes());
    if approved.is_some_and(|approved| asked.held_tools.has(asked.target.key, approved)) {
        return UseRuling::Hold(standing.holding_every_call());
    }
    match standing.call_ruling(asked.arguments) {
        Some(CallRuling::Proceed) => UseRuling::Proceed,
        Some(CallRuling::Hold(hold)) => UseRuling::Hold(standing.holding_call(&hold)),
        // INVARIANT: a change that is decided by the call has rules. Without them no call proceeds.
        None => UseRuling::Hold(standing.holding_every_call()),
    }
}

/// Whether an unpinned entry may be used: always under monitor, and a resource by its address,
/// since most are not listed.
fn is_open(asked: &Use<'_>) -> bool {
    asked.posture == Posture::Monitor || asked.target.entry_type == EntryType::Resource
}
