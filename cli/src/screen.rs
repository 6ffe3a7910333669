//! Everything that is printed goes through here: colours on a terminal only, JSON on standard output and nothing else.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one place that prints")]

use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use gate::verdict::Verdict;
use gate::words::escape_hidden;
use std::io::Write;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// A text in a style. Colours are taken out again where the output is not a terminal.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A line for a person. A reader that has gone away is no reason to fail.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(anstream::stdout(), "{line}");
}

/// A line beside the answer: progress, hints, what goes on.
pub(crate) fn remark(line: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Words that may quote a server, fit to be shown: lines and tabs stay, everything else that hides is escaped.
pub(crate) fn readable(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let parts: Vec<String> = line.split('\t').map(escape_hidden).collect();
        parts.join("\t")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A question, with the cursor left behind it.
pub(crate) fn ask(question: impl std::fmt::Display) {
    let mut error = anstream::stderr();
    let _ = write!(error, "{question}");
    let _ = error.flush();
}

/// The one JSON document of a command.
pub(crate) fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(document)?;
    text.push('\n');
    print_raw(&text)
}

/// Bytes as they are. Whoever goes on with what was printed has to hear when it did not come out whole; a reader that has
/// gone away has taken what it wanted.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("the answer could not be written: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Says what went wrong: as a JSON document where one was asked for, and as a sentence on standard error always.
pub(crate) fn complain(failure: &Failure, json: bool) {
    if json {
        print_failure(failure);
    }
    remark(format!("{} {}", styled(RED.bold(), "holdpoint:"), readable(&failure.to_string())));
}

/// A failure as the one JSON document of a command.
pub(crate) fn print_failure(failure: &Failure) {
    let document = serde_json::json!({
        "error": { "exit": failure.exit.code(), "reason": failure.reason, "message": failure.to_string() }
    });
    let _ = writeln!(std::io::stdout(), "{document}");
}

pub(crate) fn verdict(verdict: Verdict) -> String {
    let style = match verdict {
        Verdict::Proceed => GREEN,
        Verdict::Inconclusive => YELLOW,
        Verdict::Hold => RED,
    };
    styled(style.bold(), verdict)
}

/// How many columns there are to write on.
pub(crate) fn width() -> usize {
    const USUAL: usize = 100;
    let of_terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    of_terminal.or(named).unwrap_or(USUAL).clamp(40, 240)
}
