//! The state described by the log: every entry is applied in order, and one that contradicts the
//! earlier ones is refused.
//!
//! The API and the pages are built from this alone, so a mirror that copied the log serves the
//! same.

use crate::crawl::cause::Cause;
use crate::entry::{
    AdvisoryStatement, BadEntry, ClaimState, ClaimStatement, DriftItem, DriftStatement, Entry,
    Moment, ServerFacts, Statement, Subject, ToolItem, VerdictStatement, VisitOutcome, entry_hash,
    item_hash,
};
use crate::subject::SubjectId;
use contract::change::{ChangeClass, ChangeKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The most entries about visits to one server per day.
pub const MAX_ENTRIES_A_DAY: usize = 24;
/// The most entries about claims to one server per day. Counted separately: an owner who claims
/// repeatedly must not use up the entries for the server's verdicts.
pub const MAX_CLAIMS_A_DAY: usize = 8;

/// Why an entry contradicts the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error(transparent)]
    Entry(#[from] BadEntry),
    #[error("it does not follow the entry before it about the same subject")]
    Chain,
    #[error("the item of `{0}` does not follow the tool's item before it")]
    ItemChain(String),
    #[error("it names a methodology that is not in the log: the methodology changes first")]
    Methodology,
    #[error("it is older than the entry before it")]
    Time,
    #[error("it is about a server that has no verdict")]
    NoServer,
    #[error(
        "more than {MAX_ENTRIES_A_DAY} entries of visits, or {MAX_CLAIMS_A_DAY} of claims, about one server on one day"
    )]
    TooMany,
}

/// The state of a tool.
#[derive(Debug, Clone)]
pub struct Tool {
    pub item: Arc<ToolItem>,
    /// The number of the entry that contains the item.
    pub number: u64,
    pub at: Moment,
    pub expires_at: Moment,
    pub evidence_grade: Arc<str>,
    pub methodology: Arc<str>,
    pub release: Option<String>,
}

/// A change of one entry of a server's contract.
#[derive(Debug, Clone)]
pub struct Drift {
    pub server: SubjectId,
    pub number: u64,
    pub at: Moment,
    pub release_before: Option<String>,
    pub release_after: Option<String>,
    pub item: DriftItem,
}

/// A recorded release or visit.
#[derive(Debug, Clone)]
pub struct Visit {
    pub number: u64,
    pub at: Moment,
    pub release: Option<String>,
    pub outcome: VisitOutcome,
    pub cause: Option<Cause>,
    pub surface: Option<String>,
    pub tools: u32,
    /// When the release was published.
    pub published_at: Option<Moment>,
}

/// A definition in which a later screening found what an earlier one did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLater {
    pub server: SubjectId,
    pub tool_name: String,
    pub definition_hash: String,
    /// The dimensions that failed with high severity.
    pub dimensions: Vec<String>,
    pub at: Moment,
    pub number: u64,
}

/// The state of a server.
#[derive(Debug, Clone)]
pub struct Server {
    pub id: SubjectId,
    pub first_at: Moment,
    pub at: Moment,
    pub expires_at: Moment,
    pub evidence_grade: Arc<str>,
    pub release: Option<String>,
    pub outcome: VisitOutcome,
    pub status: String,
    pub directive: String,
    pub dimensions: Vec<serde_json::Value>,
    pub facts: ServerFacts,
    pub surface: Option<String>,
    pub manifest: String,
    pub methodology: String,
    /// The tools of the last observed contract.
    pub tools: BTreeMap<String, Tool>,
    /// Removed tools, with the hash of their last item.
    heads: BTreeMap<String, String>,
    pub visits: Vec<Visit>,
    pub drifts: Vec<Arc<Drift>>,
    pub claims: Vec<(Moment, ClaimStatement)>,
    /// The numbers of all entries about the server.
    pub numbers: Vec<u64>,
}

impl Server {
    /// A server about which nothing is known except that it was visited.
    fn new(id: SubjectId, at: Moment, outcome: VisitOutcome) -> Server {
        Server {
            id,
            first_at: at,
            at,
            expires_at: at,
            evidence_grade: "".into(),
            release: None,
            outcome,
            status: String::new(),
            directive: String::new(),
            dimensions: Vec::new(),
            facts: ServerFacts::default(),
            surface: None,
            manifest: String::new(),
            methodology: String::new(),
            tools: BTreeMap::new(),
            heads: BTreeMap::new(),
            visits: Vec::new(),
            drifts: Vec::new(),
            claims: Vec::new(),
            numbers: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(id: SubjectId, at: Moment) -> Server {
        Server::new(id, at, VisitOutcome::Listed)
    }

    /// The newest statement on each claim, newest first.
    pub fn current_claims(&self) -> Vec<&(Moment, ClaimStatement)> {
        let mut keys = BTreeSet::new();
        self.claims.iter().rev().filter(|(_, claim)| keys.insert(&claim.hashes.key)).collect()
    }

    /// Whether an owner with a valid claim permits probes. Never affects the directory's verdict on
    /// the server.
    pub fn permits_probes(&self) -> bool {
        self.current_claims().iter().any(|(_, claim)| claim.state == ClaimState::Verified)
    }

    /// The last item of a tool, including removed tools.
    pub fn head_of(&self, tool: &str) -> Option<&str> {
        self.heads.get(tool).map(String::as_str)
    }

    /// The last observed contract, even if the last visit did not get one.
    pub fn last_surface(&self) -> Option<&Visit> {
        self.visits.iter().rev().find(|visit| visit.surface.is_some())
    }

    /// The number of pairs of consecutive listed releases, and how many of those had a breaking
    /// change without a new major version.
    pub fn release_pairs(&self) -> (u32, u32) {
        let listed: Vec<&Visit> = self
            .visits
            .iter()
            .filter(|visit| visit.outcome == VisitOutcome::Listed && visit.release.is_some())
            .collect();
        let (mut pairs, mut broken) = (0, 0);
        for pair in listed.windows(2) {
            let [old, new] = pair else { continue };
            if old.release == new.release {
                continue;
            }
            pairs += 1;
            let is_major = major(old.release.as_deref()) != major(new.release.as_deref());
            let breaks = self
                .drifts
                .iter()
                .any(|drift| drift.release_after == new.release && is_breaking(&drift.item));
            broken += u32::from(breaks && !is_major);
        }
        (pairs, broken)
    }

    pub fn releases(&self) -> usize {
        let releases: BTreeSet<&str> =
            self.visits.iter().filter_map(|visit| visit.release.as_deref()).collect();
        releases.len()
    }
}

/// Whether a change breaks existing calls. A kind can be found in a weaker class than its own (a
/// new version in a server's identity), so the class of the item counts too.
pub fn is_breaking(item: &DriftItem) -> bool {
    let weaker = ChangeClass::ALL.iter().take_while(|class| **class != ChangeClass::Breaking);
    if weaker.map(|class| class.as_str()).any(|class| class == item.class) {
        return false;
    }
    let breaks = |kind: &&ChangeKind| kind.class() == ChangeClass::Breaking;
    ChangeKind::ALL
        .iter()
        .filter(breaks)
        .any(|kind| item.kinds.iter().any(|it| it == kind.as_str()))
}

/// The part of a version that a breaking change must increment: the first number, or the second
/// while the first is 0.
fn major(version: Option<&str>) -> Option<String> {
    let mut parts = version?.split('.');
    let first = parts.next()?;
    Some(match first {
        "0" => format!("0.{}", parts.next().unwrap_or_default()),
        first => first.to_owned(),
    })
}

/// The state described by the whole log.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub size: u64,
    pub servers: BTreeMap<SubjectId, Server>,
    /// The methodologies, oldest first.
    pub methodologies: Vec<(Moment, u64, String, String)>,
    pub drifts: Vec<Arc<Drift>>,
    pub advisories: Vec<(Moment, u64, AdvisoryStatement)>,
    /// The leaf hash of the last entry about each subject.
    heads: HashMap<Subject, String>,
    /// Tools by their definition hash.
    by_definition: HashMap<String, Vec<(SubjectId, String)>>,
    /// The number of entries about each server on the last day that has any: visits and claims.
    on_day: HashMap<SubjectId, (String, [usize; 2])>,
    /// Tools with an unchanged definition that newly failed with high severity.
    pub found_later: Vec<FoundLater>,
    /// The number of entries of each kind.
    pub kinds: BTreeMap<&'static str, u64>,
    last_at: Option<Moment>,
}

impl Model {
    /// The leaf hash of the last entry about a subject.
    pub fn head(&self, subject: &Subject) -> Option<String> {
        self.heads.get(subject).cloned()
    }

    pub fn methodology(&self) -> Option<&str> {
        self.methodologies.last().map(|(_, _, hash, _)| hash.as_str())
    }

    pub fn tools_with(&self, definition: &str) -> &[(SubjectId, String)] {
        self.by_definition.get(definition).map_or(&[], Vec::as_slice)
    }

    pub fn last_at(&self) -> Option<Moment> {
        self.last_at
    }

    /// How many more entries about visits to a server are allowed on a day.
    pub fn left_on(&self, server: &SubjectId, day: Moment) -> usize {
        let [visits, _] = self.used_on(server, day);
        MAX_ENTRIES_A_DAY.saturating_sub(visits)
    }

    fn used_on(&self, server: &SubjectId, day: Moment) -> [usize; 2] {
        match self.on_day.get(server) {
            Some((known, used)) if *known == day_of(day) => *used,
            _ => [0, 0],
        }
    }

    /// The number of distinct tool definitions ever in the log.
    pub fn definitions(&self) -> usize {
        self.by_definition.len()
    }

    /// Applies an entry. If it does not fit, nothing changes.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Entry, Misfit> {
        let entry = Entry::read(bytes)?;
        if self.head(&entry.subject) != entry.prev {
            return Err(Misfit::Chain);
        }
        if self.last_at.is_some_and(|last| entry.at < last) {
            return Err(Misfit::Time);
        }
        let number = self.size;
        match (&entry.subject, &entry.statement) {
            (Subject::ServerId(server), Statement::Verdict(verdict)) => {
                self.check_day(server, entry.at)?;
                self.verdict(server, verdict, entry.at, number)?;
            }
            (Subject::ServerId(server), Statement::Drift(drift)) => {
                self.check_day(server, entry.at)?;
                self.drift(server, drift, entry.at, number)?;
            }
            (Subject::ServerId(server), Statement::Claim(claim)) => {
                let [_, claims] = self.used_on(server, entry.at);
                if claims >= MAX_CLAIMS_A_DAY {
                    return Err(Misfit::TooMany);
                }
                let server = self.servers.get_mut(server).ok_or(Misfit::NoServer)?;
                server.claims.push((entry.at, claim.clone()));
                server.numbers.push(number);
            }
            (Subject::Document(_), Statement::Methodology(said)) => {
                let hash = said.hashes.methodology.clone();
                self.methodologies.push((entry.at, number, hash, said.version.clone()));
            }
            (Subject::Document(_), Statement::Advisory(advisory)) => {
                self.advisories.push((entry.at, number, advisory.clone()));
            }
            _ => return Err(Misfit::Chain),
        }
        if let Subject::ServerId(server) = &entry.subject {
            let [mut visits, mut claims] = self.used_on(server, entry.at);
            match entry.statement {
                Statement::Claim(_) => claims += 1,
                _ => visits += 1,
            }
            self.on_day.insert(server.clone(), (day_of(entry.at), [visits, claims]));
        }
        self.heads.insert(entry.subject.clone(), entry_hash(bytes));
        *self.kinds.entry(entry.statement.kind()).or_default() += 1;
        self.size += 1;
        self.last_at = Some(entry.at);
        Ok(entry)
    }

    fn check_day(&self, server: &SubjectId, at: Moment) -> Result<(), Misfit> {
        if self.left_on(server, at) == 0 { Err(Misfit::TooMany) } else { Ok(()) }
    }

    fn verdict(
        &mut self,
        id: &SubjectId,
        said: &VerdictStatement,
        at: Moment,
        number: u64,
    ) -> Result<(), Misfit> {
        let is_known =
            |hash: &String| self.methodologies.iter().any(|(_, _, known, _)| known == hash);
        if !is_known(&said.hashes.methodology) {
            return Err(Misfit::Methodology);
        }
        let known = self.servers.get(id);
        let mut hashes = Vec::with_capacity(said.tools.len());
        for item in &said.tools {
            if known.and_then(|known| known.head_of(&item.tool_name)) != item.prev.as_deref() {
                return Err(Misfit::ItemChain(item.tool_name.clone()));
            }
            hashes.push(item_hash(item)?);
        }
        let grade: Arc<str> = said.evidence_grade.as_str().into();
        let methodology: Arc<str> = said.hashes.methodology.as_str().into();
        let outcome = said.outcome;
        let server =
            self.servers.entry(id.clone()).or_insert_with(|| Server::new(id.clone(), at, outcome));
        if said.part[0] <= 1 {
            server.visits.push(Visit {
                number,
                at,
                release: said.release.clone(),
                outcome: said.outcome,
                cause: said.cause,
                surface: said.hashes.surface.clone(),
                tools: said.facts.tools,
                published_at: said.facts.published_at,
            });
            // Only the first part has the dimensions of the whole server.
            server.dimensions.clone_from(&said.dimensions);
        }
        (server.at, server.expires_at) = (at, said.expires_at);
        server.evidence_grade = grade.clone();
        server.release.clone_from(&said.release);
        (server.outcome, server.facts) = (said.outcome, said.facts.clone());
        server.status.clone_from(&said.status);
        server.directive.clone_from(&said.directive);
        server.surface.clone_from(&said.hashes.surface);
        server.manifest.clone_from(&said.hashes.manifest);
        server.methodology.clone_from(&said.hashes.methodology);
        server.numbers.push(number);
        for (item, hash) in said.tools.iter().zip(hashes) {
            server.heads.insert(item.tool_name.clone(), hash);
            let tool = Tool {
                item: Arc::new(item.clone()),
                number,
                at,
                expires_at: said.expires_at,
                evidence_grade: grade.clone(),
                methodology: methodology.clone(),
                release: said.release.clone(),
            };
            if let Some(known) = server.tools.get(&item.tool_name)
                && known.item.definition_hash == item.definition_hash
                && high_failures(&known.item.dimensions).is_empty()
                && !high_failures(&item.dimensions).is_empty()
            {
                self.found_later.push(FoundLater {
                    server: id.clone(),
                    tool_name: item.tool_name.clone(),
                    definition_hash: item.definition_hash.clone(),
                    dimensions: high_failures(&item.dimensions),
                    at,
                    number,
                });
            }
            server.tools.insert(item.tool_name.clone(), tool);
            let named = self.by_definition.entry(item.definition_hash.clone()).or_default();
            let pair = (id.clone(), item.tool_name.clone());
            if !named.contains(&pair) {
                named.push(pair);
            }
        }
        Ok(())
    }

    fn drift(
        &mut self,
        id: &SubjectId,
        said: &DriftStatement,
        at: Moment,
        number: u64,
    ) -> Result<(), Misfit> {
        let server = self.servers.get_mut(id).ok_or(Misfit::NoServer)?;
        let mut hashes = Vec::with_capacity(said.entries.len());
        for item in &said.entries {
            let is_tool = item.entry_type == "tool";
            let head = is_tool.then(|| server.head_of(&item.name)).flatten();
            if head != item.prev.as_deref() {
                return Err(Misfit::ItemChain(item.name.clone()));
            }
            hashes.push((is_tool, item_hash(item)?));
        }
        server.numbers.push(number);
        for (item, (is_tool, hash)) in said.entries.iter().zip(hashes) {
            if is_tool {
                server.heads.insert(item.name.clone(), hash);
                if item.entry_after.is_none() {
                    server.tools.remove(&item.name);
                }
            }
            let drift = Arc::new(Drift {
                server: id.clone(),
                number,
                at,
                release_before: said.release_before.clone(),
                release_after: said.release_after.clone(),
                item: item.clone(),
            });
            server.drifts.push(drift.clone());
            self.drifts.push(drift);
        }
        Ok(())
    }
}

/// The dimensions that failed with high severity.
fn high_failures(dimensions: &[serde_json::Value]) -> Vec<String> {
    let text = |value: &serde_json::Value, name: &str| -> Option<String> {
        value.get(name)?.as_str().map(str::to_owned)
    };
    let is_high = |value: &&serde_json::Value| {
        text(value, "outcome").as_deref() == Some("fail")
            && text(value, "severity").as_deref() == Some("high")
    };
    dimensions.iter().filter(is_high).filter_map(|value| text(value, "dimension")).collect()
}

fn day_of(moment: Moment) -> String {
    moment.to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests;
