//! `holdpoint completions`: prints a shell completion script, generated from the argument
//! definitions.

use crate::arguments::Arguments;
use crate::arguments::shell::CompletionsCommand;
use crate::failure::{Exit, Failure};
use crate::screen;
use clap::CommandFactory;

/// The command name that is completed, whatever the binary is called.
const PROGRAM: &str = "holdpoint";

pub(crate) fn run(command: &CompletionsCommand) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut offered(), PROGRAM, &mut script);
    screen::print_raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Fine)
}

/// The command line without hidden commands, which the scripts would otherwise offer.
fn offered() -> clap::Command {
    let all = Arguments::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(commands)
}
