//! Has the contract changed since it was accepted? One look-up in the view.

use crate::call::{Method, Target};
use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use crate::view::{Found, Standing};
use contract::surface::{EntryType, ListKind};
use gate::by_the_call::CallRuling;
use gate::naming::named_tool;
use gate::reason::Reason;

#[derive(Debug)]
pub(crate) struct DriftCheck;

impl Check for DriftCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, situation, .. } = *question;
        if let Method::List(list) = call.kind {
            // A list that cannot be read is not shown.
            let unreadable = situation.view.unreadable(list);
            return unreadable.cloned().map_or(Answer::Continue, Answer::Hold);
        }
        let Some(target) = call.target else {
            let message = "○ holdpoint — the call does not say in one way what it is about";
            return Answer::deny(ReasonCode::BadFrame, message);
        };
        match situation.view.find(target) {
            Found::Unchanged(_) => Answer::Continue,
            Found::Changed(standing) if standing.is_held() => Answer::Hold(standing.clone()),
            Found::Changed(standing) if standing.is_by_the_call() => {
                by_the_call(standing, question)
            }
            Found::Changed(standing) if standing.is_beyond_approved(call.arguments) => {
                let server = situation.server.as_str();
                Answer::Hold(standing.because(Reason::UnapprovedParameter, target, server))
            }
            Found::Changed(_) => Answer::Continue,
            Found::Unknown if is_open(target, situation) => Answer::Continue,
            Found::Unknown if is_unlisted_tool(target, situation) => {
                let tool = named_tool(target.key, false);
                let message = format!(
                    "○ holdpoint — the server lists no {tool}; look at its list for the right name"
                );
                Answer::deny(ReasonCode::UnknownTool, message)
            }
            Found::Unknown => Answer::Hold(situation.view.unknown(target, situation)),
        }
    }
}

/// Decides on one call of a tool whose change shield holds by the call.
fn by_the_call(standing: &Standing, question: &Question<'_>) -> Answer {
    let Question { call, held_tools, .. } = *question;
    let approved = standing.before.map(|before| before.entry);
    if let Some((target, approved)) = call.target.zip(approved)
        && held_tools.has(target.key, approved)
    {
        return Answer::Hold(standing.holding_every_call());
    }
    match standing.call_ruling(call.arguments) {
        Some(CallRuling::Proceed) => Answer::Continue,
        Some(CallRuling::Hold(hold)) => Answer::Hold(standing.holding_call(&hold)),
        // INVARIANT: a change that is decided by the call has rules; without them nothing goes through.
        None => Answer::Hold(standing.holding_every_call()),
    }
}

/// Whether what no pin knows may be used: always under monitor; and a resource by its address, since most are not listed.
fn is_open(target: Target<'_>, situation: &Situation) -> bool {
    !situation.is_holding() || target.entry_type == EntryType::Resource
}

/// Whether neither a pin nor the server's current list has a tool: no person has to decide, the name is wrong.
fn is_unlisted_tool(target: Target<'_>, situation: &Situation) -> bool {
    let view = &situation.view;
    target.entry_type == EntryType::Tool
        && view.has_lists()
        && view.unreadable(ListKind::Tools).is_none()
}
