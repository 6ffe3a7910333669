//! `holdpoint diff OLD NEW`: two captures, the first as approved by a person.

use crate::arguments::{DiffCommand, Options};
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::report::{self, VerdictDocument};
use crate::screen;
use crate::server_text::ServerText;
use crate::target::{home_path, read_file};
use contract::surface::{CaptureError, Surface, read_capture};
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
    let judgement = judge_surface(&approved(&old), &new, &settings, 0);
    if options.json {
        screen::print_json(&VerdictDocument::of(&judgement, ServerText::Shown))?;
    } else {
        report::say_entries(&judgement, ServerText::Shown);
        screen::say(report::summary(&judgement));
    }
    Ok(if judgement.verdict.is_held() { Exit::Held } else { Exit::Fine })
}

/// A book in which a person approved a whole surface.
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
