//! Shield by the call: a change of a tool's input holds only the calls that it affects, not the
//! whole tool.
//!
//! A call proceeds only if its arguments are valid under the approved, the accepted and the new
//! definition, the approved definition declares every member, and nothing that the call uses or
//! omits changed its meaning. Undecidable calls are held. [`CallRules`] is built once per change; a
//! call costs one validation and one walk over its arguments.

mod applied;
mod aspects;
mod bounds;
mod cache;
#[cfg(feature = "jsonschema")]
mod full_validator;
pub mod input;
mod numbers;
mod omission;
mod places;
#[cfg(any(test, not(feature = "jsonschema")))]
#[cfg_attr(
    feature = "jsonschema",
    allow(dead_code, reason = "here it is only compared with the full one")
)]
mod plain_validator;
mod reach;
mod relied;
mod sameness;
mod schema;
mod unplaced;
mod used;
mod validators;
mod work;

pub use bounds::MAX_APPLIED;
pub use cache::{CallRulesCache, MAX_CACHED_BYTES, MAX_CACHED_RULES};
pub use reach::{CallReach, ReachedParameters};
pub use schema::{MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_SCHEMA_BYTES, MAX_SUBSCHEMAS};

use aspects::Aspects;
use contract::change::{ChangeClass, ChangeKind, Finding};
use contract::json::{Document, Node};
use contract::sorted::SortedSet;
use contract::surface::Entry;
use places::Places;
use schema::Schema;
use serde_json::Value;
use std::sync::OnceLock;
use used::How;
use validators::{Readings, Validators};
use work::Work;

/// The most parameters named when a held call is explained.
const MAX_PARAMETERS: usize = 16;
/// A compiled validator takes about this many times the bytes of its schema.
const COMPILED_BYTES_PER_BYTE: usize = 16;
/// The most parameters that are omitted experimentally to find the refused one.
const MAX_TRIED: usize = 16;

/// Why a schema cannot be used to decide on calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    #[error("the definition cannot be read")]
    Unreadable,
    #[error("the schema is too large")]
    TooLarge,
    #[error("more than {MAX_APPLIED} subschemas apply to one place of a call")]
    TooManySubschemas,
    #[error("comparing the schemas takes too much work")]
    TooMuchWork,
    #[error("a reference leads back to itself")]
    Cycle,
    #[error("a reference cannot be followed inside the schema")]
    Reference,
    #[error("the schema names a dialect that is not draft-07, 2019-09 or 2020-12")]
    Dialect,
    #[error("the schema has too many patterns")]
    Patterns,
    #[error("the schema has a number that 64 bits cannot hold exactly")]
    Number,
    #[error("the schema is not valid, or has a pattern that needs backtracking")]
    Schema,
}

/// Why a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallCause {
    /// The call uses a parameter that changed, or relies on the absence of one.
    Touched,
    /// The arguments have a member that the approved definition does not declare.
    Undeclared,
    /// The new definition refuses the arguments.
    Invalid,
    /// The approved or the accepted definition refuses the arguments, so they were not valid before
    /// the change either.
    InvalidBefore,
    /// The arguments repeat a member, or contain a number that cannot be represented exactly.
    Ambiguous,
    /// The change concerns every call of the tool.
    WholeTool,
    /// It cannot be decided whether the change affects the call.
    Undecided(Undecided),
    /// A call of this tool was held in this session before.
    HeldBefore,
}

impl CallCause {
    /// The sentence that explains the cause to a person or a model. It contains nothing from the
    /// server.
    pub fn words(self) -> String {
        match self {
            CallCause::Touched => "the call depends on a part that changed".to_owned(),
            CallCause::Undeclared => {
                "the call uses a parameter that the approved definition does not have".to_owned()
            }
            CallCause::Invalid => {
                "the new definition does not accept the arguments".to_owned()
            }
            CallCause::InvalidBefore => {
                "the arguments are not valid under the approved definition, with or without the change"
                    .to_owned()
            }
            CallCause::Ambiguous => "the arguments can be read in more than one way".to_owned(),
            CallCause::WholeTool => "the change concerns every call of the tool".to_owned(),
            CallCause::Undecided(why) => {
                format!("whether the change concerns the call cannot be decided: {why}")
            }
            CallCause::HeldBefore => {
                "a call of this tool was held in this session before".to_owned()
            }
        }
    }
}

/// Why one call is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallHold {
    pub cause: CallCause,
    /// The changes that it is held for, sorted.
    pub kinds: Vec<ChangeKind>,
    /// The affected parameters of the call, sorted. The names come from the call or from a
    /// definition.
    pub parameters: Vec<String>,
}

/// The decision on one call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CallRuling {
    Proceed,
    Hold(CallHold),
}

impl CallRuling {
    pub fn is_held(&self) -> bool {
        match self {
            CallRuling::Proceed => false,
            CallRuling::Hold(_) => true,
        }
    }
}

/// The definitions of a tool that a call is judged under, and what changed between them.
#[derive(Debug, Clone, Copy)]
pub struct ToolChange<'a> {
    pub approved: &'a Entry,
    /// The last accepted definition, which the client sees.
    pub accepted: &'a Entry,
    pub new: &'a Entry,
    pub findings: &'a [Finding],
    /// `shield.parameter_text = "defer"`: new text of a parameter holds nothing.
    pub defers_text: bool,
}

/// Decides on the calls of one tool while a change to it is waiting. Schemas are compiled at the
/// first call that needs them.
#[derive(Debug)]
pub struct CallRules {
    approved: Entry,
    accepted: Entry,
    new: Entry,
    /// The changes of the input, each with the parameter that it affects.
    changes: Vec<InputChange>,
    defers_text: bool,
    compiled: OnceLock<Result<Compiled, Undecided>>,
}

/// One change of the input: its kind, and the call's parameter that it is about.
#[derive(Debug)]
struct InputChange {
    kind: ChangeKind,
    parameter: Option<String>,
    /// The change is inside the parameter.
    is_nested: bool,
    /// The change is about a keyword of the input as a whole.
    is_about_root: bool,
}

impl InputChange {
    fn of(finding: &Finding) -> InputChange {
        let parameter = parameter(&finding.path);
        let is_nested = finding.path.matches('/').count() > 3;
        let is_about_root = finding.path.matches('/').count() <= 2;
        InputChange { kind: finding.kind, parameter, is_nested, is_about_root }
    }

    fn is_about(&self, name: &str) -> bool {
        self.parameter.as_deref().is_none_or(|about| about == name)
    }
}

/// Everything that is compiled for a change.
#[derive(Debug)]
struct Compiled {
    approved: Validators,
    accepted: Option<Validators>,
    new: Validators,
    /// What changed since the approved definition and, if the accepted one is different, since that
    /// one.
    places: Vec<Places>,
}

impl CallRules {
    pub fn of(change: ToolChange<'_>) -> CallRules {
        let ToolChange { approved, accepted, new, findings, defers_text } = change;
        let weighs = |finding: &&Finding| match finding.class {
            ChangeClass::Text | ChangeClass::Breaking | ChangeClass::FailSafe => {
                finding.path.starts_with("/inputSchema")
            }
            ChangeClass::Widening => crate::posture::is_of_format(finding),
            ChangeClass::Metadata
            | ChangeClass::Additive
            | ChangeClass::Behavioral
            | ChangeClass::Marker => false,
        };
        let changes = findings.iter().filter(weighs);
        CallRules {
            approved: approved.clone(),
            accepted: accepted.clone(),
            new: new.clone(),
            changes: changes.map(InputChange::of).collect(),
            defers_text,
            compiled: OnceLock::new(),
        }
    }

    /// Decides on one call by the raw bytes of its arguments. `None` counts as an empty object.
    pub fn judge(&self, arguments: Option<&[u8]>) -> CallRuling {
        let compiled = match self.compiled.get_or_init(|| self.compile()) {
            Ok(compiled) => compiled,
            Err(why) => return self.hold(CallCause::Undecided(*why), Vec::new()),
        };
        if compiled.is_about_every_call() {
            return self.hold(CallCause::WholeTool, Vec::new());
        }
        let arguments = arguments.unwrap_or(b"{}");
        let Ok(document) = Document::parse_bytes(arguments) else {
            return self.hold(CallCause::Ambiguous, Vec::new());
        };
        let Some(value) = schema::exact_value(document.root()) else {
            return self.hold(CallCause::Ambiguous, Vec::new());
        };
        if !document.root().is_object() {
            // A call's arguments must be an object, even if no definition says so.
            return self.hold(CallCause::Invalid, Vec::new());
        }
        if let Some(hold) = self.touched(compiled, document.root()) {
            return CallRuling::Hold(hold);
        }
        let undecidable = compiled.undecidable(&value);
        if !undecidable.is_empty() {
            return self.hold(CallCause::Undecided(Undecided::Schema), undecidable);
        }
        compiled.refusing(&value).map_or(CallRuling::Proceed, |(validators, cause)| {
            self.hold(cause, self.refused(validators, &value))
        })
    }

    /// The parameters that caused a refusal, as far as can be determined: new required ones that
    /// are missing, else refused ones, else those that changed.
    fn refused(&self, validators: &Validators, arguments: &Value) -> Vec<String> {
        let is_required = |change: &InputChange| {
            let kinds = [ChangeKind::AddedRequiredParam, ChangeKind::RequiredSetExpanded];
            kinds.contains(&change.kind) && !change.is_nested
        };
        let named = |is_wanted: &dyn Fn(&InputChange, &str) -> bool| -> Vec<String> {
            let names = self.changes.iter().filter_map(|change| {
                change.parameter.as_ref().filter(|name| is_wanted(change, name))
            });
            let names: SortedSet<&String> = names.collect();
            names.into_iter().take(MAX_PARAMETERS).cloned().collect()
        };
        let missing = named(&|change, name| is_required(change) && arguments.get(name).is_none());
        if !missing.is_empty() {
            return missing;
        }
        let refused = validators.refused(arguments, MAX_TRIED);
        match refused.is_empty() {
            true => named(&|_, name| arguments.get(name).is_some()),
            false => refused,
        }
    }

    /// Holds every later call of a tool after one call was held.
    pub fn held_before(&self) -> CallHold {
        let kinds: SortedSet<ChangeKind> = self.changes.iter().map(|change| change.kind).collect();
        let kinds = kinds.into_iter().collect();
        CallHold { cause: CallCause::HeldBefore, kinds, parameters: Vec::new() }
    }

    fn touched(&self, compiled: &Compiled, arguments: Node<'_>) -> Option<CallHold> {
        let mut parameters = SortedSet::new();
        let mut kinds = SortedSet::new();
        let mut is_declared = true;
        for places in &compiled.places {
            for touched in used::touched(places, arguments) {
                match touched.how {
                    How::Used(aspects) | How::LeftOut(aspects) => {
                        kinds.extend(self.kinds_of(aspects, &touched.parameter));
                    }
                    How::AddedLeftOut => {
                        kinds.insert(ChangeKind::AddedOptionalParam);
                    }
                    How::Added => {
                        kinds.insert(ChangeKind::AddedOptionalParam);
                        is_declared = false;
                    }
                    How::Undeclared => is_declared = false,
                }
                parameters.insert(touched.parameter.into_owned());
            }
        }
        if parameters.is_empty() {
            return None;
        }
        let cause = if is_declared { CallCause::Touched } else { CallCause::Undeclared };
        let parameters = parameters.into_iter().take(MAX_PARAMETERS).collect();
        Some(CallHold { cause, kinds: kinds.into_iter().collect(), parameters })
    }

    /// The kinds to report for changes of a parameter. If branches changed, those of the
    /// comparison.
    fn kinds_of(&self, aspects: Aspects, parameter: &str) -> Vec<ChangeKind> {
        let told = self.changes.iter().filter(|change| change.is_about(parameter));
        let told: Vec<ChangeKind> = told.map(|change| change.kind).collect();
        match aspects.has(Aspects::BRANCHES) && !told.is_empty() {
            true => told,
            false => aspects.kinds().collect(),
        }
    }

    fn hold(&self, cause: CallCause, parameters: Vec<String>) -> CallRuling {
        let is_about = |change: &&InputChange| {
            parameters.is_empty() || parameters.iter().any(|name| change.is_about(name))
        };
        let changes = || self.changes.iter();
        let mut kinds: SortedSet<ChangeKind> =
            changes().filter(is_about).map(|change| change.kind).collect();
        if kinds.is_empty() {
            kinds = changes().map(|change| change.kind).collect();
        }
        CallRuling::Hold(CallHold { cause, kinds: kinds.into_iter().collect(), parameters })
    }

    fn compile(&self) -> Result<Compiled, Undecided> {
        let documents = (read(&self.approved)?, read(&self.accepted)?, read(&self.new)?);
        let (approved, accepted, new) = &documents;
        let empty = Document::parse("{}").map_err(|_| Undecided::Unreadable)?;
        // A tool without an input schema accepts anything, like an empty schema.
        let [approved, accepted, new] = [approved, accepted, new]
            .map(|document| document.root().get("inputSchema").unwrap_or(empty.root()));
        let work = Work::on(&[approved, accepted, new]);
        let approved = Schema::read(approved, work.clone())?;
        let accepted = Schema::read(accepted, work.clone())?;
        let new = Schema::read(new, work)?;
        [&approved, &accepted, &new].into_iter().try_for_each(bounds::check)?;
        let mut places = vec![Places::between(&approved, &new)?];
        let is_other = self.accepted.entry_hash() != self.approved.entry_hash();
        if is_other {
            places.push(Places::between(&accepted, &new)?);
        }
        if self.defers_text {
            places.iter_mut().for_each(Places::ignore_text);
        }
        Ok(Compiled {
            approved: Validators::compile(&approved, Readings::Every)?,
            accepted: is_other
                .then(|| Validators::compile(&accepted, Readings::Every))
                .transpose()?,
            new: Validators::compile(&new, Readings::Every)?,
            places,
        })
    }

    /// About how many bytes this takes: a validator is many times larger than its schema, and a
    /// pattern even more so.
    fn bytes(&self) -> usize {
        let entries = [&self.approved, &self.accepted, &self.new];
        let raw: usize = entries.iter().map(|entry| entry.raw().len()).sum();
        match self.compiled.get() {
            Some(Ok(compiled)) => {
                raw * COMPILED_BYTES_PER_BYTE
                    + compiled.validators().map(Validators::pattern_bytes).sum::<usize>()
            }
            Some(Err(_)) | None => raw,
        }
    }
}

impl Compiled {
    /// Whether there is a change that cannot be attributed to a parameter.
    fn is_about_every_call(&self) -> bool {
        self.places.iter().any(|places| places.unattributed || !places.whole().is_none())
    }

    fn validators(&self) -> impl Iterator<Item = &Validators> {
        [Some(&self.new), Some(&self.approved), self.accepted.as_ref()].into_iter().flatten()
    }

    /// The parameters of a call whose values the validators cannot decide on, sorted.
    fn undecidable(&self, arguments: &Value) -> Vec<String> {
        let names: SortedSet<&String> =
            self.validators().flat_map(|validators| &validators.undecidable).collect();
        let used = names.into_iter().filter(|name| arguments.get(name).is_some());
        used.take(MAX_PARAMETERS).cloned().collect()
    }

    /// A validator that refuses the arguments. Older definitions are tried first: if one refuses,
    /// the change is not the cause.
    fn refusing(&self, arguments: &Value) -> Option<(&Validators, CallCause)> {
        let before = [Some(&self.approved), self.accepted.as_ref()].into_iter().flatten();
        let before = before.map(|validators| (validators, CallCause::InvalidBefore));
        let mut all = before.chain([(&self.new, CallCause::Invalid)]);
        all.find(|(validators, _)| !validators.accept(arguments))
    }
}

fn read(entry: &Entry) -> Result<Document<'_>, Undecided> {
    entry.document().map_err(|_| Undecided::Unreadable)
}

/// The parameter of a call that contains a pointer's target.
pub(crate) fn parameter(path: &str) -> Option<String> {
    let step = path.strip_prefix("/inputSchema/properties/")?.split('/').next()?;
    Some(step.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests;
