//! `holdpoint directory corpus`: the operator's decisions about the network's corpus.

use super::place::Place;
use crate::arguments::Options;
use crate::arguments::directory::{
    CorpusAdjudicate, CorpusCommand, CorpusInvalidate, CorpusList, CorpusSubcommand, DirectoryPlace,
};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen;
use contract::hash::DefinitionHash;
use contract::time::Timestamp;
use directory::adjudication::{self, Decided, MAX_TEXT_BYTES};
use directory::corpus::anomaly::{self, Flag, WINDOW_DAYS};
use directory::model::Model;
use directory::writer::read_model;
use gate::network::{CorpusVerdict, ReasonClass};
use serde_json::{Value, json};

const DAY_MS: i64 = 86_400_000;
/// How many servers or tools a line names.
const NAMED: usize = 3;

pub(super) fn run(command: &CorpusCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        CorpusSubcommand::List(command) if command.found_later => found_later(command, options),
        CorpusSubcommand::List(command) => list(command, options),
        CorpusSubcommand::Adjudicate(command) => adjudicate(command, options),
        CorpusSubcommand::Invalidate(command) => invalidate(command, options),
        CorpusSubcommand::Report(place) => report(place, options),
    }
}

fn definition(text: &str) -> Result<DefinitionHash, Failure> {
    text.parse().map_err(|_| Failure::usage("a definition hash has 64 hexadecimal digits"))
}

/// The tools in the log that have this definition.
fn tools_with(model: &Model, definition: &str) -> Vec<String> {
    let named = |(server, tool): &(_, String)| format!("{server} {}", screen::name(tool));
    model.tools_with(definition).iter().take(NAMED).map(named).collect()
}

fn list(command: &CorpusList, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let database = place.database()?;
    let model = read_model(&database).map_err(Failure::usage)?;
    let most = usize::try_from(command.limit).unwrap_or(usize::MAX);
    let entries = database.corpus_entries(command.standing.as_deref(), most);
    let entries = entries.map_err(Failure::usage)?;
    if options.json {
        let entries: Vec<Value> = entries
            .iter()
            .map(|entry| {
                json!({
                    "definition_hash": entry.definition.to_string(),
                    "standing": entry.standing,
                    "served": entry.served.map(CorpusVerdict::as_str),
                    "reason_class": entry.reason.as_str(),
                    "adjudicated": entry.adjudicated,
                    "dangerous": entry.dangerous,
                    "cleared": entry.cleared,
                    "tools": tools_with(&model, &entry.definition.to_string()),
                })
            })
            .collect();
        screen::print_json(&json!({ "definitions": entries }))?;
        return Ok(Exit::Fine);
    }
    if entries.is_empty() {
        screen::say("no definition in the corpus matches");
    }
    for entry in &entries {
        let owners = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => names.iter().map(|name| screen::name(name)).collect::<Vec<_>>().join(", "),
        };
        screen::say(format!("{}  {}", entry.definition, entry.standing));
        if let Some(served) = entry.served {
            screen::say(format!("  served: {served} {}", entry.reason));
        }
        if let Some(word) = &entry.adjudicated {
            screen::say(format!("  the operator: {word}"));
        }
        screen::say(format!("  dangerous: {}", owners(&entry.dangerous)));
        screen::say(format!("  cleared: {}", owners(&entry.cleared)));
        for tool in tools_with(&model, &entry.definition.to_string()) {
            screen::say(format!("  known as {tool}"));
        }
    }
    Ok(Exit::Fine)
}

/// Definitions that the crawl's own screen later graded worse than at first.
fn found_later(command: &CorpusList, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let model = read_model(&place.database()?).map_err(Failure::usage)?;
    let most = usize::try_from(command.limit).unwrap_or(usize::MAX);
    let found: Vec<_> = model.found_later.iter().rev().take(most).collect();
    if options.json {
        let found: Vec<Value> = found
            .iter()
            .map(|one| {
                json!({
                    "definition_hash": one.definition_hash,
                    "server_id": one.server.as_str(),
                    "tool_name": screen::name(&one.tool_name),
                    "dimensions": one.dimensions,
                    "at": one.at,
                    "log_entry": one.number,
                })
            })
            .collect();
        screen::print_json(&json!({ "found_later": found }))?;
        return Ok(Exit::Fine);
    }
    if found.is_empty() {
        screen::say("no later reading found more than an earlier one");
    }
    for one in found {
        let (tool, dimensions) = (screen::name(&one.tool_name), one.dimensions.join(", "));
        screen::say(&one.definition_hash);
        screen::say(format!(
            "  {} {tool}: {dimensions}, {} (entry {})",
            one.server, one.at, one.number
        ));
    }
    Ok(Exit::Fine)
}

fn checked_text(text: Option<&str>) -> Result<Option<&str>, Failure> {
    match text {
        Some(text) if text.len() > MAX_TEXT_BYTES => {
            Err(Failure::usage(format!("`--text` has at most {MAX_TEXT_BYTES} bytes")))
        }
        text => Ok(text),
    }
}

fn adjudicate(command: &CorpusAdjudicate, options: &Options) -> Result<Exit, Failure> {
    let definition = definition(&command.hash)?;
    let verdict = CorpusVerdict::of(&command.verdict)
        .ok_or_else(|| Failure::usage("the verdict is `dangerous` or `cleared`"))?;
    let usual = match verdict {
        CorpusVerdict::Cleared => ReasonClass::ReviewedBenign,
        CorpusVerdict::Dangerous => ReasonClass::Unstated,
    };
    let reason = command.reason.as_deref().map_or(usual, ReasonClass::or_unstated);
    let text = checked_text(command.text.as_deref())?;
    let place = Place::read(&command.place, options)?;
    let mut database = place.database()?;
    let decided = adjudication::adjudicate(&mut database, definition, verdict, reason, text, now())
        .map_err(Failure::usage)?;
    print_result(&place, &decided, options)
}

fn invalidate(command: &CorpusInvalidate, options: &Options) -> Result<Exit, Failure> {
    let hashes: Vec<DefinitionHash> =
        command.hashes.iter().map(|hash| definition(hash)).collect::<Result<_, _>>()?;
    let text = checked_text(command.text.as_deref())?;
    let place = Place::read(&command.place, options)?;
    let mut database = place.database()?;
    let decided = match &command.owner {
        Some(owner) => adjudication::invalidate_owner(&mut database, owner, text, now()),
        None => adjudication::invalidate(&mut database, &hashes, text, now()),
    };
    print_result(&place, &decided.map_err(Failure::usage)?, options)
}

/// Prints what is served from now on, and publishes the advisories.
fn print_result(place: &Place, decided: &Decided, options: &Options) -> Result<Exit, Failure> {
    let saying = match decided.advisories.is_empty() {
        true => None,
        false => Some(place.say_waiting()?),
    };
    if options.json {
        let settled: Vec<Value> = decided
            .settled
            .iter()
            .map(|one| {
                json!({
                    "definition_hash": one.definition.to_string(),
                    "standing": one.after.as_str(),
                    "served_before": one.before.map(CorpusVerdict::as_str),
                    "served": one.after.served().map(|(verdict, _)| verdict.as_str()),
                })
            })
            .collect();
        screen::print_json(&json!({
            "definitions": settled,
            "advisories": decided.advisories,
            "published": saying.map(|it| it == super::place::Saying::Published),
        }))?;
        return Ok(Exit::Fine);
    }
    if decided.settled.is_empty() {
        screen::say("nothing to change");
    }
    for one in &decided.settled {
        let standing = match one.after.served() {
            Some((verdict, _)) => format!("served as {verdict}"),
            None => format!("not served: {}", one.after.as_str()),
        };
        screen::say(format!("{}: {standing}", one.definition));
    }
    for id in &decided.advisories {
        let saying = saying.map(super::place::Saying::sentence).unwrap_or_default();
        screen::say(format!("advisory {id}: {saying}"));
    }
    Ok(Exit::Fine)
}

fn report(named: &DirectoryPlace, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(named, options)?;
    let database = place.database()?;
    let since = Timestamp(now().0 - WINDOW_DAYS * DAY_MS);
    let hours = database.activity_since(since).map_err(Failure::usage)?;
    let said = database.all_said().map_err(Failure::usage)?;
    let lines = anomaly::report(&hours, said);
    if options.json {
        screen::print_json(&json!({ "window_days": WINDOW_DAYS, "keys": lines }))?;
        return Ok(Exit::Fine);
    }
    if lines.is_empty() {
        screen::say(format!("no key contributed or reported anything in {WINDOW_DAYS} days"));
    }
    for line in &lines {
        let flags: Vec<&str> = line.flags.iter().copied().map(Flag::as_str).collect();
        let flags = if flags.is_empty() { "ordinary".to_owned() } else { flags.join(", ") };
        screen::say(format!("{} (key {}): {flags}", screen::name(&line.owner), line.key));
        screen::say(format!(
            "  contributions {} (busiest hour {}), reports {}, refused {}",
            line.contributions, line.busiest_hour, line.reports, line.refused
        ));
        screen::say(format!(
            "  contradicted by the operator or most owners: {} of {} that can be compared",
            line.contradictions, line.comparable
        ));
    }
    Ok(Exit::Fine)
}
