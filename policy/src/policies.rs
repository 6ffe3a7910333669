//! Compiles policy files against an inventory, reporting all mistakes together.

use crate::cache::Cache;
use crate::caller::IdentityKey;
use crate::decide::ClassOutcome;
use crate::entities::{EntityError, EntityMaker};
use crate::entities_file::{ExtraEntities, parse_entities};
use crate::inventory::{Inventory, ServerInventory};
use crate::place::{ClassNumber, Place, PlaceBuilder};
use crate::problem::{PolicyProblem, Severity, offset_of, validation_sentence, warning_sentence};
use crate::source::{ParsedSources, PolicySource, parse_sources};
use crate::texts::PolicyTexts;
use crate::unknown_names::unknown_names;
use crate::visible::VisibleSet;
use crate::vocabulary::{Kinds, Vocabulary};
use cedar_policy::{Entities, PolicySet, Schema, ValidationMode, ValidationWarning, Validator};
use std::collections::HashMap;
use std::sync::Arc;

/// The number of cached decisions. An entry takes about 200 bytes.
const CACHED_DECISIONS: usize = 65_536;
/// The number of cached visible sets, one per identity and server.
const CACHED_VISIBLE_SETS: usize = 8_192;

/// Policies that fit their inventory and are ready to decide.
#[derive(Debug)]
pub struct Policies {
    pub(crate) texts: Arc<PolicyTexts>,
    pub(crate) maker: Arc<EntityMaker>,
    files: Arc<ParsedSources>,
    pub(crate) base: Entities,
    pub(crate) gateway: Arc<Place>,
    pub(crate) servers: HashMap<Arc<str>, Arc<Place>>,
    pub(crate) caches: Arc<Caches>,
    warnings: Vec<PolicyProblem>,
}

/// Earlier decisions. Keys include the epoch of a place, so that policies derived from each other
/// can share the caches.
#[derive(Debug)]
pub(crate) struct Caches {
    pub decisions: Cache<(IdentityKey, u64, ClassNumber), ClassOutcome>,
    pub visible: Cache<(IdentityKey, u64), Arc<VisibleSet>>,
    /// Whether anything of a server that was never observed could be permitted.
    pub unseen: Cache<(IdentityKey, u64), bool>,
}

impl Caches {
    fn new(decisions: usize, visible: usize) -> Caches {
        Caches {
            decisions: Cache::new(decisions),
            visible: Cache::new(visible),
            unseen: Cache::new(visible),
        }
    }
}

impl Policies {
    /// Parses policy files, given as names and texts, and checks them against the whole inventory.
    ///
    /// # Errors
    /// Returns every mistake in the policies and in the entities file.
    pub fn compile<N: AsRef<str>, T: AsRef<str>>(
        files: &[(N, T)],
        entities_json: Option<&str>,
        inventory: &Inventory,
    ) -> Result<Policies, Vec<PolicyProblem>> {
        let sources = parse_sources(files);
        let mut problems = sources.problems.clone();
        let (extra, extra_problems) = entities_json.map(parse_entities).unwrap_or_default();
        problems.extend(extra_problems);
        let (policies, more) = match Policies::build(sources, extra, inventory) {
            Ok(built) => built,
            Err(error) => {
                problems.push(own_problem(error.to_string()));
                return Err(problems);
            }
        };
        problems.extend(more);
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            problems.sort_by(|one, other| {
                (&one.file, one.line, one.severity).cmp(&(&other.file, other.line, other.severity))
            });
            return Err(problems);
        }
        Ok(Policies { warnings: problems, ..policies })
    }

    /// The same policies over a changed inventory. Unchanged servers keep everything that was
    /// prepared and cached for them.
    ///
    /// A policy that no longer fits a changed tool is reported, and every call to that tool is
    /// denied.
    pub fn refresh(&self, inventory: &Inventory) -> (Policies, Vec<PolicyProblem>) {
        match self.rebuilt(inventory) {
            Ok(both) => both,
            Err(error) => (self.denying(), vec![own_problem(error.to_string())]),
        }
    }

    /// Problems that do not prevent the policies from being used.
    pub fn warnings(&self) -> &[PolicyProblem] {
        &self.warnings
    }

    /// The id, file and line of every policy, in file order.
    pub fn ids(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.texts.policies.iter().map(|source| (&*source.id, &*source.file, source.line))
    }

    fn build(
        sources: ParsedSources,
        extra: ExtraEntities,
        inventory: &Inventory,
    ) -> Result<(Policies, Vec<PolicyProblem>), BuildError> {
        let kinds = Kinds::parse()?;
        let texts = Arc::new(PolicyTexts::new(sources.policies.clone()));
        let maker = Arc::new(EntityMaker { kinds, extra });
        let general = vocabulary(&texts, &maker, None, true).schema()?;
        let mut problems = check_general(&texts, &sources, general.clone());
        let base = maker.base(inventory, &texts.named)?;
        let gateway = PlaceBuilder::new(&texts, &maker, general, None).build()?;
        let mut policies = Policies {
            texts,
            maker,
            files: Arc::new(sources),
            base,
            gateway: Arc::new(gateway),
            servers: HashMap::new(),
            caches: Arc::new(Caches::new(CACHED_DECISIONS, CACHED_VISIBLE_SETS)),
            warnings: Vec::new(),
        };
        for server in inventory.servers() {
            let place = policies.place(server, inventory, &mut problems)?;
            policies.servers.insert(Arc::clone(&server.id), Arc::new(place));
        }
        problems.extend(unknown_names(&policies.texts, &policies.maker.kinds, inventory));
        Ok((policies, problems))
    }

    fn rebuilt(&self, inventory: &Inventory) -> Result<(Policies, Vec<PolicyProblem>), BuildError> {
        let mut problems = Vec::new();
        let base = self.maker.base(inventory, &self.texts.named)?;
        // Every decision uses the base entities, which contain for example the incident flags of
        // other servers.
        let same_base = base.deep_eq(&self.base);
        let gateway = if same_base {
            Arc::clone(&self.gateway)
        } else {
            let schema = self.gateway.schema.clone();
            Arc::new(PlaceBuilder::new(&self.texts, &self.maker, schema, None).build()?)
        };
        let mut servers = HashMap::new();
        for server in inventory.servers() {
            let known = self.servers.get(&server.id);
            let unchanged =
                known.filter(|place| same_base && place.server.as_ref() == Some(server));
            let place = match unchanged {
                Some(place) => Arc::clone(place),
                None => Arc::new(self.place(server, inventory, &mut problems)?),
            };
            servers.insert(Arc::clone(&server.id), place);
        }
        let policies = Policies {
            texts: Arc::clone(&self.texts),
            maker: Arc::clone(&self.maker),
            files: Arc::clone(&self.files),
            base,
            gateway,
            servers,
            caches: Arc::clone(&self.caches),
            warnings: self.warnings.clone(),
        };
        Ok((policies, problems))
    }

    /// Policies over an inventory without servers, which deny everything.
    fn denying(&self) -> Policies {
        Policies {
            texts: Arc::clone(&self.texts),
            maker: Arc::clone(&self.maker),
            files: Arc::clone(&self.files),
            base: self.base.clone(),
            gateway: Arc::clone(&self.gateway),
            servers: HashMap::new(),
            caches: Arc::clone(&self.caches),
            warnings: self.warnings.clone(),
        }
    }

    fn place(
        &self,
        server: &Arc<ServerInventory>,
        inventory: &Inventory,
        problems: &mut Vec<PolicyProblem>,
    ) -> Result<Place, BuildError> {
        let schema = vocabulary(&self.texts, &self.maker, Some(server), false).schema()?;
        let place = PlaceBuilder::new(&self.texts, &self.maker, schema, Some(Arc::clone(server)))
            .build()?;
        check_readers(&self.texts, &self.files, &place, inventory, problems);
        Ok(place)
    }

    #[cfg(test)]
    pub(crate) fn with_cache_limits(mut self, decisions: usize, visible: usize) -> Policies {
        self.caches = Arc::new(Caches::new(decisions, visible));
        self
    }
}

/// A failure to prepare something that the policies do not control.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error("{0}")]
    Entity(#[from] EntityError),
    #[error("cannot make a schema: {0}")]
    Schema(#[from] Box<cedar_policy::SchemaError>),
    #[error("cannot name the entity types: {0}")]
    Kinds(#[from] Box<cedar_policy::ParseErrors>),
}

fn own_problem(sentence: String) -> PolicyProblem {
    PolicyProblem {
        severity: Severity::Error,
        file: Arc::from("policies"),
        line: 0,
        policy_id: None,
        sentence,
    }
}

fn vocabulary<'a>(
    texts: &'a PolicyTexts,
    maker: &'a EntityMaker,
    server: Option<&'a ServerInventory>,
    named_apply: bool,
) -> Vocabulary<'a> {
    Vocabulary { extra: &maker.extra.attributes, named: &texts.named_actions, named_apply, server }
}

/// Checks the policies that do not read arguments. They mean the same for every tool, so one check
/// is enough.
fn check_general(texts: &PolicyTexts, files: &ParsedSources, schema: Schema) -> Vec<PolicyProblem> {
    let general = texts.policies.iter().filter(|source| !source.reads_context());
    check(general, texts, files, schema, &Inventory::default(), true)
}

/// Checks the policies that read arguments against the tools of one server.
fn check_readers(
    texts: &PolicyTexts,
    files: &ParsedSources,
    place: &Place,
    inventory: &Inventory,
    problems: &mut Vec<PolicyProblem>,
) {
    let mut readers: Vec<usize> =
        place.classes.iter().flat_map(|class| class.relevant.members.iter().copied()).collect();
    readers.sort_unstable();
    readers.dedup();
    let readers = readers.into_iter().filter_map(|position| texts.policies.get(position));
    let readers = readers.filter(|source| source.reads_context());
    let found = check(readers, texts, files, place.schema.clone(), inventory, false);
    for problem in found {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

fn check<'a>(
    sources: impl Iterator<Item = &'a Arc<PolicySource>>,
    texts: &PolicyTexts,
    files: &ParsedSources,
    schema: Schema,
    inventory: &Inventory,
    report_impossible: bool,
) -> Vec<PolicyProblem> {
    let policies: Vec<_> = sources.map(|source| source.policy.clone()).collect();
    if policies.is_empty() {
        return Vec::new();
    }
    let set = match PolicySet::from_policies(policies) {
        Ok(set) => set,
        Err(error) => return vec![own_problem(error.to_string())],
    };
    let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
    let mut problems = Vec::new();
    for error in result.validation_errors() {
        let Some(source) = texts.by_id(error.policy_id()) else { continue };
        let line = offset_of(error).map_or(source.line, |at| files.line(&source.file, at));
        let sentence = validation_sentence(error, inventory);
        problems.push(source.problem(Severity::Error, line, sentence));
    }
    for warning in result.validation_warnings() {
        let impossible = matches!(
            warning,
            ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_)
        );
        let Some(source) = texts.by_id(warning.policy_id()) else { continue };
        if !impossible || report_impossible {
            let sentence = warning_sentence(warning);
            problems.push(source.problem(Severity::Warning, source.line, sentence));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
