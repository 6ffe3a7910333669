//! Has the contract changed since it was accepted? One look-up in the view.

use crate::call::{Call, Method, Target};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use crate::view::Found;
use contract::surface::{EntryType, ListKind};
use gate::naming::named_tool;
use gate::reason::Reason;

#[derive(Debug)]
pub struct DriftCheck;

impl Check for DriftCheck {
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        match Method::of(call.method) {
            Method::Use(_) => {}
            // What could not be read cannot be shown.
            Method::List(list) => {
                let unreadable = situation.view.unreadable(list);
                return unreadable.cloned().map_or(Answer::Continue, Answer::Hold);
            }
            Method::Handshake | Method::Ping | Method::Other => return Answer::Continue,
        }
        let Some(target) = call.target else {
            return Answer::Deny(Denial {
                reason: ReasonCode::BadFrame,
                message: "○ holdpoint — the call does not say in one way what it is about"
                    .to_owned(),
            });
        };
        match situation.view.find(target) {
            Found::Unchanged(_) => Answer::Continue,
            Found::Changed(standing) if standing.is_held() => Answer::Hold(standing.clone()),
            Found::Changed(standing) if standing.is_beyond_approved(call.arguments) => {
                let server = situation.server.as_str();
                Answer::Hold(standing.because(Reason::UnapprovedParameter, target, server))
            }
            Found::Changed(_) => Answer::Continue,
            Found::Unknown if is_open(target, situation) => Answer::Continue,
            Found::Unknown if is_unlisted_tool(target, situation) => {
                let tool = named_tool(target.key, false);
                Answer::Deny(Denial {
                    reason: ReasonCode::UnknownTool,
                    message: format!(
                        "○ holdpoint — the server lists no {tool}; look at its list for the right name"
                    ),
                })
            }
            Found::Unknown => Answer::Hold(situation.view.unknown(target, situation)),
        }
    }
}

/// Whether what no pin knows may be used: always under monitor; and a resource by its address, since most are not listed.
fn is_open(target: Target<'_>, situation: &Situation) -> bool {
    !situation.is_holding() || target.entry_type == EntryType::Resource
}

/// Whether neither a pin nor the server's current list has a tool: it waits for nobody, its name is wrong.
fn is_unlisted_tool(target: Target<'_>, situation: &Situation) -> bool {
    let view = &situation.view;
    target.entry_type == EntryType::Tool
        && view.has_lists()
        && view.unreadable(ListKind::Tools).is_none()
}
