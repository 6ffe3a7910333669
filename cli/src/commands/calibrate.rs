//! `holdpoint calibrate report`: how often people overrode holds, from verified receipts. It
//! decides nothing.

use crate::arguments::Options;
use crate::arguments::measure::{CalibrateCommand, CalibrateReport, CalibrateSubcommand};
use crate::failure::{Exit, Failure};
use crate::people_events::people_events;
use crate::screen::{self, BOLD, DIM, YELLOW, styled};
use crate::target::{Workplace, home_path};
use contract::change::ChangeKind;
use contract::time::Timestamp;
use gate::posture::Posture;
use ledger::receipt::EventReceipt;
use ledger::verify::verify;
use measure::calibration::{
    Cell, Direction, Emptied, Lack, MIN_SERVERS, MIN_WEIGHT, Outcome, OutcomeStore, Report, Source,
};
use measure::plot::{Row, rates};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use store::receipts::{DiskFolder, public_keys};

/// The largest file of outcomes that is read, and the most outcomes in it.
const MAX_OUTCOME_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) fn run(command: &CalibrateCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        CalibrateSubcommand::Report(command) => report(command, options),
    }
}

fn report(command: &CalibrateReport, options: &Options) -> Result<Exit, Failure> {
    let store = outcomes(command, options)?;
    let report = store.report();
    if let Some(path) = &command.plot {
        let named =
            |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
        std::fs::write(path, plot(&report)).map_err(named)?;
    }
    if options.json {
        screen::print_json(&report)?;
    } else {
        print_result(&report, options);
    }
    Ok(Exit::Fine)
}

/// All outcomes, or none if any of them cannot be trusted.
fn outcomes(command: &CalibrateReport, options: &Options) -> Result<OutcomeStore, Failure> {
    let mut outcomes = match recorded(options)? {
        Ok(outcomes) => outcomes,
        Err(why) => return Ok(OutcomeStore::empty(why)),
    };
    if let Some(path) = &command.outcomes {
        match of_file(path)? {
            Ok(more) => outcomes.extend(more),
            Err(why) => return Ok(OutcomeStore::empty(why)),
        }
    }
    Ok(OutcomeStore::verified(outcomes))
}

type Trusted = Result<Vec<Outcome>, Emptied>;

/// What people decided on holds, if the receipts verify.
fn recorded(options: &Options) -> Result<Trusted, Failure> {
    let home = home_path(options)?;
    let receipts = home.join("receipts");
    if !receipts.exists() {
        return Ok(Ok(Vec::new()));
    }
    let broken = |error: &dyn std::fmt::Display| Emptied::LedgerDoesNotVerify(error.to_string());
    let keys = match public_keys(&home.join("keys").join("receipts.pub")) {
        Ok(keys) => keys,
        Err(error) => return Ok(Err(broken(&error))),
    };
    match verify(&DiskFolder::new(&receipts), &keys, &[], &|_| {}) {
        Ok(report) if report.is_sound() => {}
        Ok(report) => {
            let first = report.problems.first().map(ToString::to_string).unwrap_or_default();
            return Ok(Err(broken(&first)));
        }
        Err(error) => return Ok(Err(broken(&error))),
    }
    let events = people_events(&Workplace::open(options)?)?;
    Ok(Ok(events.iter().flat_map(of_event).collect()))
}

/// One outcome per kind of a held change that a person decided on. Events of older versions lack
/// the posture, so they yield none.
fn of_event(event: &EventReceipt) -> Vec<Outcome> {
    let is_wrong = match event.name.as_str() {
        "outcome.overridden" => true,
        "outcome.confirmed" => false,
        _ => return Vec::new(),
    };
    let member = |name: &str| event.data.as_ref().and_then(|data| data.get(name));
    let Some(posture) = member("posture").and_then(Value::as_str) else {
        return Vec::new();
    };
    let kinds = member("kinds").and_then(Value::as_array).into_iter().flatten();
    let outcome = |kind: &str| Outcome {
        at: event.ts,
        source: Source::Person,
        direction: Direction::Held,
        posture: posture.to_owned(),
        kind: kind.to_owned(),
        server: event.server_id.clone().unwrap_or_default(),
        by: event.by.clone(),
        is_wrong,
    };
    kinds.filter_map(Value::as_str).map(outcome).collect()
}

/// A line of a file of outcomes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: String,
    source: String,
    direction: String,
    posture: Posture,
    kind: String,
    server: String,
    wrong: bool,
}

fn of_file(path: &Path) -> Result<Trusted, Failure> {
    let named =
        |error: &dyn std::fmt::Display| Failure::usage(format!("`{}`: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| named(&error))?.len();
    if size > MAX_OUTCOME_BYTES {
        return Err(named(&format!("larger than {MAX_OUTCOME_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let mut outcomes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line: Line = serde_json::from_str(line)
            .map_err(|error| named(&format!("line {}: {error}", number + 1)))?;
        let Some(source) = Source::named(&line.source) else {
            return Ok(Err(Emptied::UnknownSource(line.source)));
        };
        let direction = match line.direction.as_str() {
            "held" => Direction::Held,
            "cleared" => Direction::Cleared,
            other => {
                return Err(named(&format!(
                    "line {}: `{other}` is neither held nor cleared",
                    number + 1
                )));
            }
        };
        let is_kind = ChangeKind::ALL.iter().any(|kind| kind.as_str() == line.kind);
        let at = Timestamp::parse(&line.at).filter(|_| is_kind);
        let at = at.ok_or_else(|| {
            named(&format!("line {}: not a moment, or not a kind of change", number + 1))
        })?;
        let (posture, kind, server) = (line.posture.to_string(), line.kind, line.server);
        outcomes.push(Outcome {
            at,
            source,
            direction,
            posture,
            kind,
            server,
            by: None,
            is_wrong: line.wrong,
        });
    }
    Ok(Ok(outcomes))
}

fn print_result(report: &Report, options: &Options) {
    screen::say(styled(
        BOLD,
        format!("{} outcomes, calibrated: {}", report.outcomes, report.calibrated),
    ));
    match &report.emptied {
        None => {}
        Some(Emptied::NoOutcomes) => screen::say(
            "  no outcomes are recorded: P(wrong) is 1.0 for everything, and everything is escalated",
        ),
        Some(Emptied::LedgerDoesNotVerify(why)) => screen::say_fitted(styled(
            YELLOW,
            format!(
                "  the receipts do not verify ({}): no outcome counts, P(wrong) is 1.0 for everything, and everything is escalated",
                screen::readable(why)
            ),
        )),
        Some(Emptied::UnknownSource(source)) => screen::say_fitted(styled(
            YELLOW,
            format!(
                "  `{}` is not a known source of outcomes: no outcome counts, P(wrong) is 1.0 for everything, and everything is escalated",
                screen::name(source)
            ),
        )),
    }
    for cell in &report.cells {
        screen::say(format!("  {}", line(cell)));
    }
    match report.reliability {
        Some(reliability) => {
            screen::say(format!("  reliability (lower is better): {reliability:.4}"));
        }
        None => screen::say("  reliability: n/a, no cell has enough outcomes"),
    }
    if !options.quiet {
        let limits = "  Wrong means overridden by a person, not unsafe. Calibration decides nothing: autonomy is off, and what the gate holds stays held.";
        screen::say_fitted(styled(DIM, limits));
    }
}

fn line(cell: &Cell) -> String {
    let Cell { posture, kind, outcomes, weight, servers, .. } = cell;
    let direction = match cell.direction {
        Direction::Held => "held",
        Direction::Cleared => "cleared",
    };
    let said = match cell.observed {
        Some(observed) => format!("P(wrong) ≤ {:.3}, later {observed:.3}", cell.p_wrong),
        None => {
            let lacks: Vec<String> = cell.lacks.iter().map(|lack| lacking(*lack)).collect();
            format!("P(wrong) = 1.0: {}", lacks.join(", "))
        }
    };
    format!(
        "{posture:<8} {kind:<32} {direction:<7} {outcomes:>5} outcomes, weight {weight}, {servers} servers: {said}"
    )
}

fn lacking(lack: Lack) -> String {
    match lack {
        Lack::Weight => format!("weight below {MIN_WEIGHT}"),
        Lack::Servers => format!("fewer than {MIN_SERVERS} servers"),
        Lack::OnlyPersons => "only people's decisions".to_owned(),
    }
}

fn plot(report: &Report) -> String {
    let rows: Vec<Row> = report
        .cells
        .iter()
        .map(|cell| {
            let rate = cell.observed.unwrap_or(1.0);
            let (low, high) = (rate.min(cell.p_wrong), cell.p_wrong);
            let label = format!("{} {}", cell.posture, cell.kind);
            Row { label, rate, low, high, note: format!("weight {}", cell.weight) }
        })
        .collect();
    rates("P(wrong) by posture and kind; 100 % where there is too little data", &rows, None)
}
