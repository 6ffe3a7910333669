//! `holdpoint diff OLD NEW`: compares two captures, with the first one treated as approved by a
//! person.

mod calls;

use crate::arguments::{DiffCommand, Options};
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::report::{self, VerdictDocument};
use crate::screen;
use crate::server_text::ServerText;
use crate::target::{home_path, read_file};
use contract::surface::{CaptureError, Surface, read_capture};
use gate::by_the_call::CallRulesCache;
use gate::call_verdict::CallCase;
use gate::judge::judge_surface;
use gate::pins::{Basis, Pin, PinBook};
use gate::time::Timestamp;

pub(crate) fn run(command: &DiffCommand, options: &Options) -> Result<Exit, Failure> {
    let old = read_capture(&read_file(&command.old)?)
        .map_err(|error| Failure::usage(format!("`{}`: {error}", command.old.display())))?;
    let new = match read_capture(&read_file(&command.new)?) {
        Ok(new) => new,
        Err(CaptureError::Unreadable(unreadable)) => {
            return unreadable_capture(
                &format!("`{}`: {unreadable}", command.new.display()),
                options,
            );
        }
        Err(error) => return Err(Failure::usage(format!("`{}`: {error}", command.new.display()))),
    };
    let configuration = Configuration::read(&home_path(options)?.join("holdpoint.toml"))?;
    let settings = configuration.settings(None, command.posture);
    let book = approved(&old);
    let judgement = judge_surface(&book, &new, &settings, 0);
    let case = CallCase {
        book: &book,
        surface: &new,
        judgement: &judgement,
        settings: &settings,
        cache: &CallRulesCache::default(),
    };
    let calls = calls::judged(command, &case)?;
    // With `--call` or `--calls`, the exit code depends on those calls only. The change may hold
    // others.
    let is_held = match &calls {
        Some(calls) => calls.iter().any(|call| call.verdict.is_held()),
        None => judgement.verdict.is_held(),
    };
    if options.json {
        let mut document = VerdictDocument::of(&judgement, ServerText::Shown);
        document.calls = calls;
        screen::print_json(&document)?;
    } else {
        report::say_entries(&judgement, ServerText::Shown);
        screen::say(report::summary(&judgement));
        report::say_calls(calls.as_deref().unwrap_or_default());
    }
    Ok(if is_held { Exit::Held } else { Exit::Fine })
}

/// Pins for a whole surface, as if a person had approved it.
pub(crate) fn approved(surface: &Surface) -> PinBook {
    let mut book = PinBook::default();
    for entry in surface.entries() {
        let by = "diff".to_owned();
        book.push(Pin { entry: entry.clone(), basis: Basis::Person, at: Timestamp::default(), by });
    }
    book
}

fn unreadable_capture(detail: &str, options: &Options) -> Result<Exit, Failure> {
    if options.json {
        let document = serde_json::json!({ "verdict": "HOLD", "reason": "surface_unreadable", "detail": detail });
        screen::print_json(&document)?;
    } else {
        let verdict = screen::verdict(gate::verdict::Verdict::Hold);
        screen::say(format!("{verdict}  {}", screen::readable(detail)));
    }
    Ok(Exit::Held)
}
