//! Suggestions for arguments that clap could not parse, in addition to clap's own.

use crate::arguments::Arguments;
use clap::CommandFactory;
use clap::error::{Error, ErrorKind};

/// The commands that take a server's command line.
const WITH_SERVER: [&str; 4] = ["run", "pin", "check", "capture"];

/// The error message of clap, coloured or not, with a suggestion if there is one.
pub(crate) fn explain(error: &Error, words: &[String], is_coloured: bool) -> String {
    if error.kind() == ErrorKind::MissingSubcommand {
        // clap would list all commands here, including hidden ones.
        return "which command? `holdpoint help` lists them\n".to_owned();
    }
    let text = error.render();
    let mut text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
    if let Some(line) = with_dashes(error.kind(), words) {
        text.push_str(&format!("\nA server's own command goes behind `--`:\n  {line}\n"));
    }
    text
}

/// The command line as probably meant: with `--` before the first word that is not one of our
/// options.
fn with_dashes(kind: ErrorKind, words: &[String]) -> Option<String> {
    let is_about_words = matches!(kind, ErrorKind::UnknownArgument | ErrorKind::ValueValidation);
    if !is_about_words || words.iter().any(|word| word == "--") {
        return None;
    }
    let mut arguments = Arguments::command();
    arguments.build();
    let at = words.iter().position(|word| WITH_SERVER.contains(&word.as_str()))?;
    let (before, rest) = words.split_at(at + 1);
    let command = arguments.find_subcommand(before.last()?)?;
    let takes_value = |word: &str| {
        let mut known = command.get_arguments();
        known.any(|argument| {
            let is_it = argument.get_long().is_some_and(|long| word == format!("--{long}"))
                || argument.get_short().is_some_and(|short| word == format!("-{short}"));
            is_it && argument.get_action().takes_values()
        })
    };
    let mut first = 0;
    while let Some(word) = rest.get(first).filter(|word| word.starts_with('-')) {
        first += if takes_value(word) { 2 } else { 1 };
    }
    // A single word may be a mistyped id.
    if rest.len() < first + 2 && !rest.get(first)?.contains(['/', '.']) {
        return None;
    }
    let (options, server) = rest.split_at_checked(first)?;
    let line = before.iter().chain(options).map(String::as_str).chain(["--"]);
    let line: Vec<&str> = line.chain(server.iter().map(String::as_str)).collect();
    Some(format!("holdpoint {}", line.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = clap::Parser::try_parse_from(
            std::iter::once("holdpoint".to_owned()).chain(words.iter().cloned()),
        );
        let error: Error = match error {
            Ok(Arguments { .. }) => return None,
            Err(error) => error,
        };
        with_dashes(error.kind(), &words)
    }

    #[test]
    fn the_dashes_go_before_the_command_of_the_server() {
        for (typed, expected) in [
            ("pin uvx mcp-server-time", "pin -- uvx mcp-server-time"),
            ("pin --server time uvx x", "pin --server time -- uvx x"),
            ("--home /h check -q npx -y p", "--home /h check -q -- npx -y p"),
            ("run ./server.py", "run -- ./server.py"),
            ("capture -o f.json uvx x", "capture -o f.json -- uvx x"),
        ] {
            assert_eq!(meant(typed), Some(format!("holdpoint {expected}")), "{typed}");
        }
        for typed in ["pin -- uvx x", "pin --nonsense", "status a b", "pin FILES"] {
            assert_eq!(meant(typed), None, "{typed}");
        }
    }
}
