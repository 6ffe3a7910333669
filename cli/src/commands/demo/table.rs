//! `demo --all`: every case of the drift battery through the real gate, what is predicted beside what happened.

use super::gone_wrong;
use super::session::{Called, Launch, Stage};
use crate::arguments::Options;
use crate::failure::{Exit, Failure};
use crate::scenario::battery::{self, Case};
use crate::screen::{self, BOLD, GREEN, RED, styled};
use gate::server::ServerId;
use gate::verdict::Verdict;
use serde::Serialize;
use serde_json::json;

/// One case as it went.
#[derive(Debug, Serialize)]
struct Row {
    scenario: &'static str,
    predicted: String,
    actual: Verdict,
    kinds: Vec<&'static str>,
}

impl Row {
    fn is_as_predicted(&self) -> bool {
        self.predicted == self.actual.as_str()
    }
}

pub(super) fn run(options: &Options) -> Result<Exit, Failure> {
    let stage = Stage::new(options)?;
    let mut rows = Vec::new();
    for name in battery::names() {
        let case = battery::find(name)?.ok_or_else(|| gone_wrong("a scenario is missing"))?;
        let row = play(&stage, case)?;
        if !options.json {
            if rows.is_empty() {
                say_heading();
            }
            say(&row);
        }
        rows.push(row);
    }
    let (passed, total) = (rows.iter().filter(|row| row.is_as_predicted()).count(), rows.len());
    if options.json {
        screen::print_json(&json!({ "passed": passed, "total": total, "scenarios": rows }))?;
    } else {
        screen::say(format!("{passed}/{total} scenarios as predicted"));
    }
    if passed == total {
        Ok(Exit::Fine)
    } else {
        Err(Failure::internal("the battery did not go as predicted"))
    }
}

/// Lets the gate meet the server, changes it, and calls.
fn play(stage: &Stage, case: Case) -> Result<Row, Failure> {
    let id: ServerId = case.name.parse().map_err(Failure::internal)?;
    let launch = Launch { id: &id, scenario: case.name, gate_options: &[], server_options: &[] };
    let mut session = stage.start(&launch)?;
    session.ask("tools/list", &json!({}))?;
    stage.change(&id)?;
    // The server says that it has changed before it answers anything, so the gate has read it when this is answered.
    session.ask("ping", &json!({}))?;
    let called = session.call(&case.tool, &json!({ "title": "called-after-the-change" }))?;
    session.end()?;
    let has_reached = stage.has_reached(&id, "called-after-the-change")?;
    let judged = stage.judged(&id)?;
    let recorded = judged.judgement.verdict;
    let actual = match (called, has_reached) {
        (Called::Through(_), true) => Verdict::Proceed,
        (Called::Held(_), false) if recorded.is_held() => recorded,
        (Called::Held(_), false) => Verdict::Hold,
        (Called::Through(_), false) => return Err(gone_wrong("an answer came from nowhere")),
        (Called::Held(_), true) => return Err(gone_wrong("a held call reached the server")),
    };
    let findings = judged.judgement.entries.iter().flat_map(|entry| &entry.findings);
    let mut kinds: Vec<&str> = findings.map(|finding| finding.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    Ok(Row { scenario: case.name, predicted: case.predicted, actual, kinds })
}

fn say_heading() {
    let heading = format!("{:<20} {:<13} {:<13} change", "scenario", "predicted", "the gate did");
    screen::say(styled(BOLD, heading));
}

fn say(row: &Row) {
    let mark = if row.is_as_predicted() { styled(GREEN, "✓") } else { styled(RED, "✗") };
    let (actual, kinds) = (row.actual.as_str(), row.kinds.join(", "));
    screen::say(format!("{:<20} {:<13} {actual:<13} {kinds} {mark}", row.scenario, row.predicted));
}
