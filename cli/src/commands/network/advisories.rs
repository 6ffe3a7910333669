//! `holdpoint network advisories`: joins later findings about contracts with the calls of this
//! home.

use super::announced::block_on;
use crate::arguments::Options;
use crate::arguments::network::NetworkAdvisories;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen::{self, BOLD, RED, styled};
use crate::target::Workplace;
use crate::upper_tiers;
use contract::hash::DefinitionHash;
use contract::time::Timestamp;
use engine::network::{DirectoryClient, KeptAdvisories, NetworkFolder};
use gate::network::{Advisory, AdvisoryKind, Hour, ReasonClass};
use ledger::receipt::{Decision, Entry, Reading};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most distinct calls that are listed.
const MAX_LISTED: usize = 1_000;

/// Calls of one tool by one principal, made while the tool had a definition that was later found
/// dangerous.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct AffectedCalls {
    definition_hash: DefinitionHash,
    reason_class: ReasonClass,
    found: Hour,
    server: String,
    tool: Option<String>,
    principal: String,
    calls: u64,
    first: Timestamp,
    last: Timestamp,
}

pub(super) fn run(command: &NetworkAdvisories, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let access = upper_tiers::access(workplace.home.path(), &workplace.configuration);
    let folder = NetworkFolder::of(workplace.home.path());
    let url = workplace.configuration.network().url.as_deref().unwrap_or_default();
    let mut kept = KeptAdvisories::read(&folder, url.trim_end_matches('/'));
    let mut problem = None;
    match (&access.network, command.offline) {
        (Some(settings), false) => {
            let directory = DirectoryClient::new(settings.clone(), &folder);
            let read = block_on(kept.refresh(&directory, &folder, now()));
            problem = read.and_then(Result::err).map(|error| error.to_string());
        }
        (None, false) => {
            let why = access.veto.as_ref().map_or_else(
                || "no directory is configured".to_owned(),
                |veto| format!("no requests are made: {veto}"),
            );
            problem = Some(why);
        }
        (_, true) => {}
    }
    let dangerous = standing(kept.advisories());
    let affected = affected(&workplace, &dangerous)?;
    if options.json {
        screen::print_json(&serde_json::json!({
            "advisories": dangerous.len(),
            "refreshed": problem.is_none() && !command.offline,
            "problem": problem,
            "affected": affected,
        }))?;
    } else {
        print(dangerous.len(), problem.as_deref(), &affected);
    }
    Ok(if affected.is_empty() { Exit::Fine } else { Exit::Held })
}

/// The definitions that still count as dangerous: a later advisory may withdraw an earlier one.
fn standing(advisories: &[Advisory]) -> BTreeMap<String, Advisory> {
    let mut standing = BTreeMap::new();
    for advisory in advisories {
        let name = advisory.definition_hash.to_string();
        match advisory.kind {
            AdvisoryKind::Dangerous => standing.insert(name, *advisory),
            AdvisoryKind::Withdrawn => standing.remove(&name),
        };
    }
    standing
}

/// The calls that were made with one of these definitions, either as approved or as the server had
/// it then.
fn affected(
    workplace: &Workplace,
    dangerous: &BTreeMap<String, Advisory>,
) -> Result<Vec<AffectedCalls>, Failure> {
    let folder = workplace.store.journal().folder();
    if dangerous.is_empty() || !folder.path().exists() {
        return Ok(Vec::new());
    }
    let mut found: BTreeMap<(String, String, Option<String>, String), AffectedCalls> =
        BTreeMap::new();
    for (_, entry) in Reading::begin(folder.clone(), &BTreeMap::new())? {
        let Entry::Decision(decision) = entry else { continue };
        if !decision.is_dispatched() {
            continue;
        }
        for advisory in used(&decision, dangerous) {
            let Decision { ts, principal, mcp, .. } = decision.as_ref();
            let (server, tool) = (mcp.server_id.clone(), mcp.tool_name.clone());
            let key = (
                advisory.definition_hash.to_string(),
                server.clone(),
                tool.clone(),
                principal.sub.clone(),
            );
            if found.len() >= MAX_LISTED && !found.contains_key(&key) {
                continue;
            }
            let calls = found.entry(key).or_insert_with(|| AffectedCalls {
                definition_hash: advisory.definition_hash,
                reason_class: advisory.reason_class,
                found: advisory.hour,
                server,
                tool,
                principal: principal.sub.clone(),
                calls: 0,
                first: *ts,
                last: *ts,
            });
            calls.calls += 1;
            calls.first = calls.first.min(*ts);
            calls.last = calls.last.max(*ts);
        }
    }
    Ok(found.into_values().collect())
}

fn used<'a>(decision: &Decision, dangerous: &'a BTreeMap<String, Advisory>) -> Vec<&'a Advisory> {
    let Some(drift) = &decision.drift else { return Vec::new() };
    let mut hashes: Vec<&String> = [&drift.definition_hash.before, &drift.definition_hash.after]
        .into_iter()
        .flatten()
        .collect();
    hashes.dedup();
    hashes.into_iter().filter_map(|hash| dangerous.get(hash)).collect()
}

fn print(dangerous: usize, problem: Option<&str>, affected: &[AffectedCalls]) {
    if let Some(problem) = problem {
        screen::remark(format!("the advisories are those that were read before: {problem}"));
    }
    if affected.is_empty() {
        let definitions = crate::report::count(dangerous, "definition", "definitions");
        screen::say(format!("no call of this home used one of the {definitions} found dangerous"));
        return;
    }
    let heading = "Calls were made with contracts that were found dangerous afterwards:";
    screen::say(styled(RED.bold(), heading));
    for calls in affected {
        let tool = calls.tool.as_deref().map_or_else(|| "?".to_owned(), screen::name);
        let (server, principal) = (&calls.server, screen::readable(&calls.principal));
        let count = crate::report::count(
            usize::try_from(calls.calls).unwrap_or(usize::MAX),
            "call",
            "calls",
        );
        screen::say(styled(BOLD, format!("  {server} `{tool}`: {count} by {principal}")));
        let class = match calls.reason_class {
            ReasonClass::Unstated => "no class",
            class => class.as_str(),
        };
        screen::say(format!(
            "    {} to {}; found {}h UTC ({class})",
            calls.first, calls.last, calls.found
        ));
        screen::say(format!("    definition {}", calls.definition_hash));
        screen::say_command(
            "    stop the server:",
            &["holdpoint".to_owned(), "quarantine".to_owned(), server.clone()],
        );
    }
}
