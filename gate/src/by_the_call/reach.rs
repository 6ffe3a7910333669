//! Which calls a change affects, as far as parameter names tell: for counting calls that were made
//! before.

use super::aspects::Aspects;
use super::places::CallMember;
use super::{CallRules, Compiled};
use contract::change::ChangeKind;
use contract::sorted::SortedSet;

/// The calls that a change holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallReach {
    /// All of them.
    Every,
    Parameters(ReachedParameters),
}

/// The parameters that decide whether a call is held.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReachedParameters {
    /// Every call that uses one of these is held.
    pub used: SortedSet<String>,
    /// Every call that omits one of these is held.
    pub left_out: SortedSet<String>,
    /// Calls that use one of these may be held, depending on the value.
    pub by_value: SortedSet<String>,
    /// Any other call may be held too.
    pub is_open: bool,
}

impl ReachedParameters {
    /// Whether no call is held that is valid under the approved definition and uses only declared
    /// parameters.
    pub fn is_empty(&self) -> bool {
        let ReachedParameters { used, left_out, by_value, is_open } = self;
        used.is_empty() && left_out.is_empty() && by_value.is_empty() && !is_open
    }
}

impl CallRules {
    /// Which calls the change holds.
    pub fn reach(&self) -> CallReach {
        match self.compiled.get_or_init(|| self.compile()) {
            Ok(compiled) if !compiled.is_about_every_call() => self.reach_of(compiled),
            Ok(_) | Err(_) => CallReach::Every,
        }
    }

    fn reach_of(&self, compiled: &Compiled) -> CallReach {
        let mut reached = ReachedParameters::default();
        for places in &compiled.places {
            let members = places.get(0).into_iter().flat_map(|root| &root.members);
            for (name, member) in members {
                let place = match member {
                    // No earlier call could have used it.
                    CallMember::Added(aspects) if !aspects.is_none() => return CallReach::Every,
                    CallMember::Added(_) => continue,
                    CallMember::Declared(place) => place,
                };
                let Some(place) = places.get(*place) else { return CallReach::Every };
                let names =
                    [(&mut reached.used, place.within), (&mut reached.left_out, place.left_out)];
                for (names, aspects) in names {
                    if aspects != Aspects::NONE {
                        names.insert(name.as_ref().to_owned());
                    }
                }
            }
        }
        let undecidable = compiled.validators().flat_map(|validators| &validators.undecidable);
        reached.used.extend(undecidable.cloned());
        for change in &self.changes {
            let is_nested = change.is_nested;
            match (change.kind, &change.parameter) {
                // No earlier call could have used it.
                (ChangeKind::AddedRequiredParam, Some(_)) if !is_nested => return CallReach::Every,
                (ChangeKind::RequiredSetExpanded, Some(name)) if !is_nested => {
                    reached.left_out.insert(name.clone());
                }
                (_, Some(name)) if reached.used.contains(name) => {}
                (_, Some(name)) => {
                    reached.by_value.insert(name.clone());
                }
                // Arguments are an object, even if no definition says so.
                (ChangeKind::TypeChanged, None) if change.is_about_root => {}
                (_, None) => reached.is_open = true,
            }
        }
        CallReach::Parameters(reached)
    }
}
