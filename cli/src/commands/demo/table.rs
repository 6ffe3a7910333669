//! `demo --all`: every case of the drift battery through the real gate, with the predicted and the actual result.

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

/// The result of one case.
#[derive(Debug, Serialize)]
struct Row {
    scenario: &'static str,
    predicted: String,
    /// The verdict in the response to the client.
    actual: String,
    kinds: Vec<String>,
}

impl Row {
    fn is_as_predicted(&self) -> bool {
        self.predicted == self.actual
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
        screen::say(format!("{passed}/{total} scenarios PASS"));
    }
    if passed == total {
        Ok(Exit::Fine)
    } else {
        Err(Failure::internal("the battery did not match the predictions"))
    }
}

/// Lets the gate pin the server, changes the server, and calls the tool.
fn play(stage: &Stage, case: Case) -> Result<Row, Failure> {
    let id: ServerId = case.name.parse().map_err(Failure::internal)?;
    let launch = Launch { id: &id, scenario: case.name, gate_options: &[], server_options: &[] };
    let mut session = stage.start(&launch)?;
    session.ask("tools/list", &json!({}))?;
    stage.change(&id)?;
    // The server announces the change before it answers, so once the ping is answered the gate has
    // seen it.
    session.ask("ping", &json!({}))?;
    let called = session.call(&case.tool, &json!({ "title": "called-after-the-change" }))?;
    session.end()?;
    let has_reached = stage.has_reached(&id, "called-after-the-change")?;
    let (actual, kinds) = match (called, has_reached) {
        // The response to an allowed call does not mention changes: read them from the record.
        (Called::Through(_), true) => (Verdict::Proceed.to_string(), recorded_kinds(stage, &id)?),
        (Called::Held(held), false) => (held.verdict, held.kinds),
        (Called::Through(_), false) => return Err(gone_wrong("an answer came without a request")),
        (Called::Held(_), true) => return Err(gone_wrong("a held call reached the server")),
    };
    Ok(Row { scenario: case.name, predicted: case.predicted, actual, kinds })
}

fn recorded_kinds(stage: &Stage, id: &ServerId) -> Result<Vec<String>, Failure> {
    let judged = stage.judged(id)?;
    let findings = judged.judgement.entries.iter().flat_map(|entry| &entry.findings);
    let mut kinds: Vec<String> = findings.map(|finding| finding.kind.to_string()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

fn say_heading() {
    let heading = format!("{:<20} {:<13} {:<13} change", "scenario", "predicted", "the gate did");
    screen::say(styled(BOLD, heading));
    // The surface that every case starts from is pinned but not judged, so it is not a scenario.
    screen::say(format!("{:<20} {:<13} {:<13} (baseline)", "base", "—", "—"));
}

fn say(row: &Row) {
    let mark = if row.is_as_predicted() { styled(GREEN, "✓") } else { styled(RED, "✗") };
    let Row { scenario, predicted, actual, kinds } = row;
    let kinds = kinds.join(", ");
    screen::say(format!("{scenario:<20} {predicted:<13} {actual:<13} {kinds} {mark}"));
}
