//! The arguments of `holdpoint run` and `holdpoint pins` alone. A gate stays up for as long as its client: reading them with the definitions of
//! all other commands would keep those in its memory.

use super::pins::PinsCommand;
use super::{Arguments, Command, Options, RunCommand};
use clap::{Parser, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Parser)]
struct RunArguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: OnlyGates,
}

#[derive(Debug, Subcommand)]
enum OnlyGates {
    Run(Box<RunCommand>),
    Pins(PinsCommand),
}

/// Returns `None` for other commands, and for what is not understood: the definitions of all commands explain it.
pub(super) fn read(words: impl IntoIterator<Item = OsString>) -> Option<Arguments> {
    let RunArguments { options, command } = RunArguments::try_parse_from(words).ok()?;
    let command = match command {
        OnlyGates::Run(command) => Command::Run(*command),
        OnlyGates::Pins(command) => Command::Pins(command),
    };
    Some(Arguments { options, command })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads arguments of a gate, which have to be understood as they are with all commands.
    fn check(words: &str, is_gate: bool) {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let alone = read(words.clone()).map(|arguments| format!("{arguments:?}"));
        let among_all = Arguments::try_parse_from(&words).map(|arguments| format!("{arguments:?}"));
        assert_eq!(alone.is_some(), is_gate, "{words:?}");
        assert_eq!(alone, among_all.ok().filter(|_| is_gate), "{words:?}");
    }

    #[test]
    fn arguments_of_a_gate_are_read_as_they_are_with_all_commands() {
        check("holdpoint run -- npx server --help", true);
        check("holdpoint --quiet run --home /h --server files --posture shield -- a b", true);
        check("holdpoint -q pins --stdio --home /h", true);
        check("holdpoint run --json --url https://example.com/mcp --header A=env:B", true);
        check(
            "holdpoint run --trust-root root.json --required internal --url https://a.example",
            true,
        );
    }

    #[test]
    fn what_is_not_a_gate_is_left_to_the_others() {
        for words in [
            "holdpoint",
            "holdpoint --version",
            "holdpoint help run",
            "holdpoint pins",
            "holdpoint run --help",
            "holdpoint run --quiet --verbose -- a",
            "holdpoint run --unknown -- a",
            "holdpoint rum -- a",
            "holdpoint check -- run",
            "holdpoint status",
        ] {
            check(words, false);
        }
    }
}
