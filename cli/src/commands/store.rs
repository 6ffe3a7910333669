//! `holdpoint store migrate`: moves Holdpoint's data to another database.

use crate::arguments::Options;
use crate::arguments::store::{MigrateCommand, StoreCommand, StoreSubcommand};
use crate::failure::{Exit, Failure};
use crate::screen;
use crate::target::home_path;
use std::collections::BTreeMap;
use store::{Home, Location, relocate};

pub(crate) fn run(command: &StoreCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        StoreSubcommand::Migrate(command) => migrate(command, options),
    }
}

fn migrate(command: &MigrateCommand, options: &Options) -> Result<Exit, Failure> {
    let home = Home::open(&home_path(options)?)?;
    let from = place("--from", &command.from)?;
    let to = place("--to", &command.to)?;
    let moved = relocate(&home, &from, &to)?;
    if options.json {
        let rows: BTreeMap<&str, u64> = moved.rows.iter().copied().collect();
        screen::print_json(&serde_json::json!({
            "from": from.to_string(),
            "to": to.to_string(),
            "was_there": moved.was_there,
            "rows": rows,
        }))?;
        return Ok(Exit::Fine);
    }
    let done = if moved.was_there { "is in already" } else { "copied to" };
    screen::say(format!("{from}: {done} {to}, compared row by row"));
    for (table, rows) in moved.rows.iter().filter(|(_, rows)| options.verbose || *rows > 0) {
        screen::say(format!("  {rows:>8}  {table}"));
    }
    if let Location::Postgres(_) = to {
        let shown = if to.shows_password(&command.to) { "env:VARIABLE" } else { &command.to };
        screen::say(format!("To use it, write in holdpoint.toml: store = \"{shown}\""));
    }
    Ok(Exit::Fine)
}

/// Parses a location, and warns of a password in it: other users can see arguments in the process
/// list.
fn place(option: &str, text: &str) -> Result<Location, Failure> {
    let location =
        Location::parse(text).map_err(|error| Failure::usage(format!("`{option}`: {error}")))?;
    if location.shows_password(text) {
        screen::remark(format!(
            "`{option}`: others on this machine can see a password among a program's arguments: name a place that has the address, with `env:VARIABLE` or `file:PATH`"
        ));
    }
    Ok(location)
}
