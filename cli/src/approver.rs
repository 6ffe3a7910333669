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

/// Makes sure that a person decides: the first digits of the hash are typed again at a terminal.
///
/// An agent with a shell must not wave its own change through, so without a terminal the configuration must allow it.
pub(crate) fn confirm(
    configuration: &Configuration,
    what: &str,
    hash: &str,
) -> Result<(), Failure> {
    const DIGITS: usize = 4;
    if configuration.is_unattended()? {
        return Ok(());
    }
    need_terminal()?;
    let digits: String = hash.chars().take(DIGITS).collect();
    screen::ask(format!(
        "{}\nType the first {DIGITS} digits of its hash ({hash:.16}…) to approve: ",
        screen::readable(what)
    ));
    if read_line()? == digits {
        Ok(())
    } else {
        Err(Failure::held("those are not the digits; nothing was approved"))
    }
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
