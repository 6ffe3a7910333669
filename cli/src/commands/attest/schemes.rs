//! `attest schemes`: the levels that documents may name.

use super::find_scheme;
use crate::arguments::Options;
use crate::arguments::attest::SchemesCommand;
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, styled};
use attest::{Level, Scheme};
use serde_json::{Value, json};

pub(super) fn run(command: &SchemesCommand, options: &Options) -> Result<Exit, Failure> {
    let found = command.scheme.as_deref().map(find_scheme).transpose()?;
    let schemes = found.as_deref().map_or(Scheme::built_ins(), std::slice::from_ref);
    if options.json {
        let schemes: Vec<Value> = schemes.iter().map(as_json).collect();
        screen::print_json(&json!({ "schemes": schemes }))?;
    } else {
        schemes.iter().for_each(print_result);
    }
    Ok(Exit::Fine)
}

fn as_json(scheme: &Scheme) -> Value {
    let level = |(rank, level): (usize, &Level)| json!({ "rank": rank, "name": level.name(), "aliases": level.aliases() });
    json!({
        "id": scheme.id(),
        "description": scheme.description(),
        "levels": scheme.levels().iter().enumerate().map(level).collect::<Vec<_>>(),
        "compartments": scheme.compartments(),
        "releasability": scheme.releasability(),
    })
}

fn print_result(scheme: &Scheme) {
    let (id, description) = (screen::readable(scheme.id()), screen::readable(scheme.description()));
    screen::say(format!("{}  {description}", styled(BOLD, id)));
    for (rank, level) in scheme.levels().iter().enumerate() {
        let aliases = screen::readable(&level.aliases().join(", "));
        screen::say(format!(
            "  {rank}  {:<20} {}",
            screen::readable(level.name()),
            styled(DIM, aliases)
        ));
    }
    for (what, names) in
        [("compartments", scheme.compartments()), ("releasability", scheme.releasability())]
    {
        if !names.is_empty() {
            screen::say(format!("  {what}: {}", screen::readable(&names.join(", "))));
        }
    }
}
