//! Approving is a person's act: who it is, and whether one is there.

use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::screen;
use std::io::{BufRead, IsTerminal};

/// The name that goes into the record.
pub(crate) fn name() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|variable| {
        std::env::var(variable).ok().filter(|name| !name.is_empty() && name.len() <= 128)
    });
    named.unwrap_or_else(|| "somebody".to_owned())
}

/// Makes sure that a person decides: what is about to be approved is shown again, and the person types a word.
///
/// An agent with a shell must not approve its own change, so without a terminal the configuration must allow it. The
/// word is fixed: digits of a hash would bind nothing, because the server chooses the definition and can search for one
/// whose hash begins the same.
pub(crate) fn confirm(
    configuration: &Configuration,
    what: &str,
    show: impl FnOnce(),
) -> Result<(), Failure> {
    const WORD: &str = "approve";
    if configuration.is_unattended()? {
        return Ok(());
    }
    need_terminal()?;
    show();
    screen::remark(what);
    screen::ask(format!("Type `{WORD}` to approve exactly this: "));
    if read_line()? == WORD { Ok(()) } else { Err(Failure::held("nothing was approved")) }
}

/// Makes sure that a person says yes.
pub(crate) fn confirm_yes(configuration: &Configuration, question: &str) -> Result<(), Failure> {
    if configuration.is_unattended()? {
        return Ok(());
    }
    need_terminal()?;
    screen::ask(format!("{question} [y/N] "));
    match read_line()?.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::held("nothing was done")),
    }
}

fn need_terminal() -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "this is a person's decision and needs a terminal; where there is none, set `approve.unattended = true` in holdpoint.toml",
    ))
}

pub(crate) fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
