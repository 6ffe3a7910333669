//! `holdpoint hash FILE`: prints the hashes of a capture's entries, without judging them.

use crate::arguments::{HashCommand, Options};
use crate::failure::{Exit, Failure};
use crate::observation::captured;
use crate::screen::{self, DIM, styled};
use serde_json::json;

pub(crate) fn run(command: &HashCommand, options: &Options) -> Result<Exit, Failure> {
    let surface = captured(&command.file)?;
    if options.json {
        let entries: Vec<_> = surface
            .entries()
            .map(|entry| {
                json!({
                    "type": entry.entry_type(),
                    "key": entry.key(),
                    "entry_hash": entry.entry_hash(),
                    "definition_hash": entry.definition_hash(),
                })
            })
            .collect();
        screen::print_json(&json!({ "surface_hash": surface.surface_hash(), "entries": entries }))?;
        return Ok(Exit::Fine);
    }
    for entry in surface.entries() {
        let name = format!("{}:{}", entry.entry_type(), screen::readable(entry.key()));
        screen::say(format!("{}  {name}", entry.entry_hash()));
        if let Some(hash) = entry.definition_hash() {
            screen::say(styled(DIM, format!("{hash}    definition")));
        }
    }
    screen::say(format!("{}  surface", surface.surface_hash()));
    Ok(Exit::Fine)
}
