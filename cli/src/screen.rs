//! All output goes through here: colours only on a terminal; with `--json`, one document on
//! standard output and nothing else.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one place that prints")]

use crate::failure::Failure;
use crate::layout;
use anstyle::{AnsiColor, Style};
use gate::verdict::Verdict;
use gate::words::{escape_hidden, is_hidden};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// A text in a style. The styles are stripped if the output is not a terminal.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a line for a person, broken at words. A closed pipe is not an error.
pub(crate) fn say(line: impl std::fmt::Display) {
    let line = one_line(&line.to_string());
    match line_columns() {
        Some(width) => layout::wrapped(&line, width).iter().for_each(|piece| print_line(piece)),
        None => print_line(&line),
    }
}

/// Prints a line for a person. The error says that the reader has gone away.
pub(crate) fn try_say(line: &str) -> std::io::Result<()> {
    let line = one_line(line);
    let pieces = match line_columns() {
        Some(width) => layout::wrapped(&line, width),
        None => vec![line],
    };
    pieces.iter().try_for_each(|piece| writeln!(anstream::stdout(), "{piece}"))
}

/// Prints a line that was already laid out to fit.
pub(crate) fn say_fitted(line: impl std::fmt::Display) {
    print_line(&one_line(&line.to_string()));
}

/// Prints a command for a person to copy. A long command is continued with backslashes, as a shell
/// reads it: one that the terminal wraps cannot be copied from a pager, and one broken at any word
/// cannot be pasted.
pub(crate) fn say_command(label: &str, words: &[String]) {
    let whole = format!("{label} {}", words.join(" "));
    let Some(width) = line_columns().filter(|width| columns(&whole) > *width) else {
        print_line(&one_line(&styled(DIM, whole)));
        return;
    };
    print_line(&one_line(&styled(DIM, label.trim_end())));
    let mut line = String::from(" ");
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let end = if words.peek().is_some() { 2 } else { 0 };
        let is_started = line.trim() != "";
        if is_started && columns(&line) + 1 + columns(word) + end > width {
            print_line(&one_line(&styled(DIM, format!("{line} \\"))));
            line = String::from("   ");
        }
        line.push(' ');
        line.push_str(word);
    }
    print_line(&one_line(&styled(DIM, line)));
}

/// Lines that are collected for a pager.
static COLLECTED: Mutex<Option<String>> = Mutex::new(None);

/// Collects the lines that follow instead of printing them.
pub(crate) fn start_collecting() {
    if let Ok(mut collected) = COLLECTED.lock() {
        *collected = Some(String::new());
    }
}

/// Returns the collected lines, with colours as the terminal supports them.
pub(crate) fn end_collecting() -> String {
    COLLECTED.lock().ok().and_then(|mut collected| collected.take()).unwrap_or_default()
}

fn print_line(line: &str) {
    if let Ok(mut collected) = COLLECTED.lock()
        && let Some(collected) = collected.as_mut()
    {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => {
                collected.push_str(&anstream::adapter::strip_str(line).to_string());
            }
            _ => collected.push_str(line),
        }
        collected.push('\n');
        return;
    }
    let _ = writeln!(anstream::stdout(), "{line}");
}

/// Prints a line on standard error: progress, hints, warnings.
pub(crate) fn remark(line: impl std::fmt::Display) {
    let line = one_line(&line.to_string());
    let pieces = match line_width(&std::io::stderr()) {
        Some(width) => layout::wrapped(&line, width),
        None => vec![line],
    };
    for piece in pieces {
        let _ = writeln!(anstream::stderr(), "{piece}");
    }
}

/// The columns at which lines on standard output are broken; `None` if they are not broken.
pub(crate) fn line_columns() -> Option<usize> {
    line_width(&std::io::stdout())
}

/// The columns at which lines are broken: those of the terminal, or of `COLUMNS`. Output to a pipe
/// is only broken if `COLUMNS` is set.
fn line_width(stream: &impl IsTerminal) -> Option<usize> {
    (stream.is_terminal() || named_width().is_some()).then(width)
}

/// Reports a panic and its location. The panic message may quote untrusted text, so it is not
/// printed.
pub(crate) fn admit_fault(place: Option<&std::panic::Location<'_>>) {
    let place =
        place.map_or_else(String::new, |place| format!(" ({}:{})", place.file(), place.line()));
    remark(format!("holdpoint: internal error{place}; please report it"));
}

/// Prints a question and leaves the cursor after it.
pub(crate) fn ask(question: impl std::fmt::Display) {
    let mut error = anstream::stderr();
    let _ = write!(error, "{}", one_line(&question.to_string()));
    let _ = error.flush();
}

/// INVARIANT: a printed line stays one line, whatever untrusted text it quotes. Line breaks, cursor
/// movements, bidirectional controls and invisible characters are shown escaped; only the styles of
/// this file are kept.
fn one_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((text, after)) = rest.split_once(ESCAPE) {
        out.push_str(&escape_hidden(text));
        match STYLES.iter().find(|style| after.starts_with(**style)) {
            Some(style) => {
                out.push(ESCAPE);
                out.push_str(style);
                rest = after.strip_prefix(style).unwrap_or(after);
            }
            None => {
                out.extend(ESCAPE.escape_unicode());
                rest = after;
            }
        }
    }
    out.push_str(&escape_hidden(rest));
    out
}

const ESCAPE: char = '\u{1b}';
/// The styles above and those of clap as escape sequences: bold, dimmed, underlined, red, green,
/// yellow, cyan, and reset.
const STYLES: [&str; 8] = ["[1m", "[2m", "[4m", "[31m", "[32m", "[33m", "[36m", "[0m"];

/// Untrusted text as part of a line: every character that could break the line, move the cursor or
/// hide is escaped. So are long runs of spaces: they would fill the line, so that the text after
/// the terminal's line break looks like one of our lines.
pub(crate) fn readable(text: &str) -> String {
    let escaped = escape_hidden(text);
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped.as_str();
    while let Some(start) = rest.find(&" ".repeat(MAX_SPACES + 1)) {
        let (before, from) = rest.split_at_checked(start).unwrap_or((rest, ""));
        let after = from.trim_start_matches(' ');
        out.push_str(before);
        out.push_str(&format!("\\u{{20}}×{}", from.len() - after.len()));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A path as part of a line. File names in a project may be chosen by other people.
pub(crate) fn path(path: &std::path::Path) -> String {
    readable(&path.display().to_string())
}

/// The longest run of spaces in untrusted text that is shown unescaped.
const MAX_SPACES: usize = 8;

/// The longest name that is shown in full.
const MAX_NAME: usize = 64;

/// An untrusted name as part of a sentence. Runs of spaces are escaped, so that a name cannot fill
/// the line and start what looks like the next one, and a very long name is cut.
pub(crate) fn name(name: &str) -> String {
    let mut out = String::new();
    let mut was_space = false;
    for character in name.chars().take(MAX_NAME) {
        let is_space = character.is_whitespace();
        if is_hidden(character) || is_space && (was_space || character != ' ') {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
        was_space = is_space;
    }
    if name.chars().count() > MAX_NAME {
        out.push('…');
    }
    out
}

/// How many columns a text takes on a terminal. East Asian characters take two.
pub(crate) fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Prints the one JSON document of a command.
pub(crate) fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(document)?;
    text.push('\n');
    print_raw(&text)
}

/// Prints text unchanged. Fails if it could not be written in full; a closed pipe is not an error.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("the output could not be written: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reports a failure: as a JSON document if `--json` was given, and always as text on standard
/// error. Further lines of the message, such as a server's own output, are marked so that they
/// cannot pass for our lines.
pub(crate) fn complain(failure: &Failure, json: bool) {
    if json {
        print_failure(failure);
    }
    let message = failure.to_string();
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    remark(format!("{} {first}", styled(RED.bold(), "holdpoint:")));
    lines.for_each(|line| remark(format!("  | {line}")));
}

/// Prints a failure as the one JSON document of a command.
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

/// The columns of the output: `COLUMNS` if it is set, else the terminal's width.
pub(crate) fn width() -> usize {
    const USUAL: usize = 100;
    let of_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    named_width().or_else(of_terminal).unwrap_or(USUAL).clamp(40, 240)
}

fn named_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// How many lines the terminal shows, if known.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, height)| usize::from(height.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_fill_a_line_with_spaces_or_leave_it() {
        let padded = format!("a{}b\n{}", " ".repeat(200), " ".repeat(9));
        assert_eq!(readable(&padded), "a\\u{20}×200b\\u{a}\\u{20}×9");
        assert_eq!(readable("a  b        c"), "a  b        c");
    }

    #[test]
    fn untrusted_text_cannot_break_a_line_or_act_on_the_terminal() {
        let hostile = "a\nb\r\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[8mc\u{202e}d\u{2028}e\u{85}";
        let shown = one_line(&styled(RED.bold(), hostile));
        assert_eq!(
            shown,
            "\u{1b}[1m\u{1b}[31ma\\u{a}b\\u{d}\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\u{1b}[8mc\\u{202e}d\\u{2028}e\\u{85}\u{1b}[0m"
        );
    }

    #[test]
    fn every_style_passes() {
        for style in [BOLD, DIM, GREEN, RED, YELLOW, CYAN, RED.bold(), GREEN.bold(), CYAN.bold()] {
            let text = styled(style, "x");
            assert_eq!(one_line(&text), text);
        }
    }

    #[test]
    fn a_name_cannot_pretend_to_begin_the_next_line() {
        assert_eq!(name("plain name"), "plain name");
        assert_eq!(name("a  b\u{3000}c\nd"), "a \\u{20}b\\u{3000}c\\u{a}d");
        assert_eq!(name(&"x".repeat(MAX_NAME)), "x".repeat(MAX_NAME));
        assert_eq!(name(&"x".repeat(MAX_NAME + 1)), format!("{}…", "x".repeat(MAX_NAME)));
    }
}
