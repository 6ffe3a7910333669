//! Has the contract moved since somebody accepted it? One look-up in the view.

use crate::call::{Call, Method, Target};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use crate::view::Found;
use gate::reason::Reason;
use wire::envelope::member_names;

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
            Found::Changed(standing) if uses_any(call, standing.unapproved_parameters()) => {
                let server = situation.server.as_str();
                Answer::Hold(standing.because(Reason::UnapprovedParameter, target, server))
            }
            Found::Changed(_) => Answer::Continue,
            Found::Unknown if is_open(target, situation) => Answer::Continue,
            Found::Unknown => Answer::Hold(situation.view.unknown(target, situation)),
        }
    }
}

/// Whether what no pin knows may be used: always under monitor; and a resource by its address, since most are not listed.
fn is_open(target: Target<'_>, situation: &Situation) -> bool {
    !situation.is_holding() || target.entry_type == contract::surface::EntryType::Resource
}

/// Whether a call uses a parameter that only the new definition has.
fn uses_any(call: &Call<'_>, unapproved: &[Box<str>]) -> bool {
    if unapproved.is_empty() {
        return false;
    }
    let mut names = call.arguments.into_iter().flat_map(member_names);
    names.any(|name| unapproved.iter().any(|unapproved| **unapproved == *name))
}
