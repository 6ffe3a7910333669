//! `holdpoint demo`: a silent change, caught, with nothing installed; `--all` runs the whole drift battery.

use crate::arguments::{DemoCommand, Options};
use crate::commands::diff::approved;
use crate::failure::{Exit, Failure};
use crate::report;
use crate::screen::{self, BOLD, DIM, GREEN, RED, styled};
use crate::side_by_side;
use contract::surface::{Entry, EntryId, EntryType, Surface, read_capture};
use gate::judge::{SurfaceJudgement, judge_surface};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::time::Timestamp;
use gate::verdict::Verdict;
use gate::words;

macro_rules! battery {
    ($($name:literal),* $(,)?) => {
        /// The scenarios, each a capture before and after with what is expected of it.
        const BATTERY: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../conformance/drift/battery/", $name, ".json")))),*];
    };
}

battery![
    "benign_noop",
    "added_optional",
    "added_required",
    "removed_param",
    "type_changed",
    "enum_reduced",
    "constraint_narrowed",
    "annotation_flip",
    "output_added",
    "output_changed",
    "description_change",
    "new_tool",
    "marker_input",
    "marker_output",
];

/// The one hold that a newcomer must see.
const HERO: &str = "added_required";

pub(crate) fn run(command: &DemoCommand, options: &Options) -> Result<Exit, Failure> {
    if command.all { run_battery(options) } else { run_story(options) }
}

struct Scenario {
    name: &'static str,
    old: Surface,
    new: Surface,
    expected: String,
}

fn scenario(name: &str) -> Result<Scenario, Failure> {
    let found = BATTERY.iter().find(|(known, _)| *known == name);
    let Some((name, text)) = found else { return Err(Failure::internal("no such scenario")) };
    let document: serde_json::Value = serde_json::from_str(text)?;
    let member = |name: &str| document.get(name).map(ToString::to_string).unwrap_or_default();
    let read = |capture: String| read_capture(capture.as_bytes()).map_err(Failure::internal);
    let expected = document.pointer("/expect/verdict/guard").and_then(serde_json::Value::as_str);
    let expected = expected.unwrap_or_default().to_owned();
    Ok(Scenario { name, old: read(member("old"))?, new: read(member("new"))?, expected })
}

fn judge(book: &PinBook, surface: &Surface) -> SurfaceJudgement {
    judge_surface(book, surface, &Settings::with_posture(Posture::Guard), 0)
}

/// Monday, Tuesday, a decision, and the next call.
fn run_story(options: &Options) -> Result<Exit, Failure> {
    let Scenario { old, new, .. } = scenario(HERO)?;
    let mut book = approved(&old);
    let held = judge(&book, &new);
    if options.json {
        let after = approve_all(&mut book, &held, &new);
        screen::print_json(&serde_json::json!({
            "held": report::VerdictDocument::of(&held),
            "after_approval": report::VerdictDocument::of(&after),
        }))?;
        return outcome(&held, &after);
    }
    let step = |number: usize, text: &str| {
        screen::say(format!("\n{} {text}", styled(BOLD, format!("{number}."))));
    };
    step(1, "On Monday your agent meets a server. Holdpoint pins what it says of its tools.");
    for entry in old.entries().filter(|entry| entry.entry_type() == EntryType::Tool) {
        screen::say(format!(
            "   {} {}  {}",
            styled(GREEN, "pinned"),
            entry.key(),
            styled(DIM, format!("{:.16}…", entry.entry_hash().to_string()))
        ));
    }
    step(
        2,
        "On Tuesday the same tool says something else. Nothing in MCP notices. The agent calls it:\n",
    );
    for entry in held.held() {
        let name =
            words::entry_name(entry.id.entry_type, &entry.id.key, true, words::Audience::Model);
        screen::say(format!(
            "   {}\n",
            styled(RED, words::banner("reports", &name, &entry.findings))
        ));
    }
    step(3, "You look at what changed, before and after:\n");
    report::say_entries(&held);
    screen::say("");
    for entry in held.held() {
        side_by_side::show(entry.before.as_ref(), entry.after.as_ref());
    }
    step(4, "It is what the vendor announced, so you approve it, by its hash:");
    screen::say(format!(
        "   $ holdpoint approve reports --hash {:.16}",
        new.surface_hash().to_string()
    ));
    let after = approve_all(&mut book, &held, &new);
    step(5, "The next call goes through:");
    screen::say(format!("   {}\n", report::summary(&after)));
    screen::say(styled(
        DIM,
        "A hold says that a contract moved, never that a tool is unsafe. You decide.",
    ));
    screen::say(styled(
        DIM,
        "Try it on a server of yours: holdpoint pin -- CMD…, and tomorrow: holdpoint check -- CMD…",
    ));
    outcome(&held, &after)
}

fn approve_all(book: &mut PinBook, held: &SurfaceJudgement, new: &Surface) -> SurfaceJudgement {
    for entry in held.waiting() {
        let entry = entry.after.clone().unwrap_or_else(|| Entry::gone(EntryId::clone(&entry.id)));
        book.push(Pin {
            entry,
            basis: Basis::Person,
            at: Timestamp::default(),
            by: "you".to_owned(),
        });
    }
    judge(book, new)
}

/// The demonstration is a test of itself: it fails if the gate did not do what it shows.
fn outcome(held: &SurfaceJudgement, after: &SurfaceJudgement) -> Result<Exit, Failure> {
    match (held.verdict, after.verdict) {
        (Verdict::Hold, Verdict::Proceed) => Ok(Exit::Fine),
        _ => Err(Failure::internal("the demonstration did not go as it should")),
    }
}

/// Every scenario: what is predicted, what the gate says.
fn run_battery(options: &Options) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for (name, _) in BATTERY {
        let scenario = scenario(name)?;
        let judgement = judge(&approved(&scenario.old), &scenario.new);
        let mut kinds: Vec<&str> = judgement
            .entries
            .iter()
            .flat_map(|entry| entry.findings.iter().map(|finding| finding.kind.as_str()))
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        rows.push((scenario.name, scenario.expected, judgement.verdict, kinds));
    }
    let total = rows.len();
    let passed = rows.iter().filter(|(_, expected, actual, _)| expected == actual.as_str()).count();
    if options.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, expected, actual, kinds)| {
                serde_json::json!({ "scenario": name, "predicted": expected, "actual": actual, "kinds": kinds })
            })
            .collect();
        screen::print_json(
            &serde_json::json!({ "passed": passed, "total": total, "scenarios": rows }),
        )?;
    } else {
        screen::say(styled(
            BOLD,
            format!("{:<20} {:<13} {:<13} change", "scenario", "predicted", "guard says"),
        ));
        for (name, expected, actual, kinds) in &rows {
            let mark =
                if expected == actual.as_str() { styled(GREEN, "✓") } else { styled(RED, "✗") };
            screen::say(format!(
                "{name:<20} {expected:<13} {:<13} {} {mark}",
                actual.as_str(),
                kinds.join(", ")
            ));
        }
        screen::say(format!("{passed}/{total} scenarios as predicted"));
    }
    if passed == total {
        Ok(Exit::Fine)
    } else {
        Err(Failure::internal("the battery did not go as predicted"))
    }
}
