//! Approving is an act of a person: finds out who that is, and whether a person is present.

use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::observation::now;
use crate::screen;
use std::io::{BufRead, IsTerminal};
use store::By;

/// The name that goes into the record. It comes from the environment, so the user can set it to
/// anything: where the name has to be certain, use [`account`].
pub(crate) fn name() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|variable| {
        std::env::var(variable).ok().filter(|name| !name.is_empty() && name.len() <= 128)
    });
    named.unwrap_or_else(|| "unknown".to_owned())
}

/// An act by this name, decided now.
pub(crate) fn by(name: &str) -> By<'_> {
    By { name, at: now() }
}

/// The name of the account that this process runs under. Unlike `$USER`, an environment variable cannot change it.
///
/// Only accounts in `/etc/passwd` are found: those of a directory service would need the C
/// library's `getpwuid`, whose call is `unsafe`.
#[cfg(unix)]
pub(crate) fn account() -> Option<String> {
    let file = std::fs::read("/etc/passwd").ok()?;
    account_in(&String::from_utf8_lossy(&file), rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
pub(crate) fn account() -> Option<String> {
    None
}

/// The first account with this number, in the format of `/etc/passwd`.
#[cfg(unix)]
fn account_in(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    })
}

/// Requires a person to confirm: shows again what is about to be approved, and asks for a typed
/// word.
///
/// An agent with a shell must not approve its own change, so without a terminal the configuration
/// must allow it. The word is fixed. Typing the first digits of a hash would add nothing: the
/// server chooses the definition, and can search for one whose hash has the same first digits.
pub(crate) fn confirm(
    configuration: &Configuration,
    what: &str,
    show: impl FnOnce(),
) -> Result<(), Failure> {
    const WORD: &str = "approve";
    if configuration.is_unattended() {
        return Ok(());
    }
    need_screen()?;
    show();
    screen::remark(what);
    screen::ask(format!("Type `{WORD}` to approve exactly this: "));
    if read_line()? == WORD { Ok(()) } else { Err(Failure::held("nothing was approved")) }
}

/// Requires a person to answer yes.
pub(crate) fn confirm_yes(configuration: &Configuration, question: &str) -> Result<(), Failure> {
    if configuration.is_unattended() {
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
    match std::io::stdin().is_terminal() {
        true => Ok(()),
        false => Err(needs_terminal()),
    }
}

/// Requires a terminal for input and output: server text that no person has accepted is only shown
/// on a terminal, and a person has to see it to decide on it.
pub(crate) fn need_screen() -> Result<(), Failure> {
    match std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        true => Ok(()),
        false => Err(needs_terminal()),
    }
}

fn needs_terminal() -> Failure {
    Failure::usage(
        "this is a person's decision and needs a terminal: ask a person to run this in a terminal (docs/reviewing-a-change.md says why)",
    )
}

pub(crate) fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::account_in;

    #[test]
    fn an_account_is_found_by_its_number_alone() {
        let passwd = "# local\nroot:x:0:0::/root:/bin/sh\n\nada:x:1000:1000:Ada:/home/ada:/bin/sh\n\
                      twin:x:1000:1000::/:/bin/sh\n:x:7:7::/:\n+::::::";
        assert_eq!(account_in(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(account_in(passwd, 0).as_deref(), Some("root"));
        assert_eq!((account_in(passwd, 7), account_in(passwd, 100)), (None, None));
    }
}
