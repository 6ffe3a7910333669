//! `holdpoint demo`: the real gate catches a silent change of a real server, with nothing installed
//! and nothing kept. `--all` plays the whole drift battery.

mod poisoned;
mod session;
mod story;
mod table;

use crate::arguments::{DemoCommand, Options};
use crate::failure::{Exit, Failure};
use story::Ending;

pub(crate) fn run(command: &DemoCommand, options: &Options) -> Result<Exit, Failure> {
    if command.all {
        return table::run(options);
    }
    let ending = match (command.restart, command.withheld) {
        (true, _) => Ending::WhileDown,
        (_, true) => Ending::Withheld,
        _ => Ending::Announced,
    };
    story::run(ending, options)
}

/// The demonstration checks itself: it fails if the gate did not do what the text claims.
fn gone_wrong(what: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("the demo failed: {what}"))
}
