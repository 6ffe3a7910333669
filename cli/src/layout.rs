//! Breaks lines at words, and keeps their indent. Every line that a command prints for a person goes through here.
//!
//! INVARIANT: the continuation of a broken line is indented further than the line itself. A
//! terminal that wraps a line continues it at the first column, where a server's text would look
//! like a line of Holdpoint's own.

use textwrap::WordSeparator;
use textwrap::core::{Word, display_width};
use textwrap::wrap_algorithms::wrap_first_fit;

/// How much further the rest of a broken line is indented. Equal to the width of a bullet and its
/// space.
const HANGING: usize = 2;
/// The fewest columns left for the words of a line, however far it is indented.
const MIN_TEXT: usize = 20;
const ESCAPE: char = '\u{1b}';
const END_OF_STYLE: &str = "\u{1b}[0m";

/// Breaks a line into pieces of at most `width` columns. A hash is never broken even if the
/// terminal is narrower than it: people copy hashes.
pub(crate) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let (indent, _) = indented(line);
    wrapped_at(line, width, indent + HANGING)
}

/// The indent of a line, and the line without it. Styles may come before the indent.
fn indented(line: &str) -> (usize, String) {
    let mut text = line;
    let mut styles = String::new();
    while let Some((style, after)) = text.strip_prefix(ESCAPE).and_then(|rest| rest.split_once('m'))
    {
        styles.push_str(&format!("{ESCAPE}{style}m"));
        text = after;
    }
    let rest = text.trim_start_matches(' ');
    (text.len() - rest.len(), format!("{styles}{rest}"))
}

/// Like [`wrapped`], with continuation lines indented to `hanging`.
pub(crate) fn wrapped_at(line: &str, width: usize, hanging: usize) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let (indent, text) = indented(line);
    let room = |taken: usize| width.saturating_sub(taken).max(MIN_TEXT);
    let (first, rest) = (room(indent), room(hanging));
    let mut words: Vec<Word<'_>> = Vec::new();
    for word in WordSeparator::AsciiSpace.find_words(&text) {
        if display_width(word.word) > rest && !is_unbreakable(word.word) {
            words.extend(word.break_apart(rest));
        } else {
            words.push(word);
        }
    }
    let lines = wrap_first_fit(&words, &[first as f64, rest as f64]);
    let mut styles = OpenStyles::default();
    let pieces = lines.iter().enumerate().map(|(place, words)| {
        let spaces = " ".repeat(if place == 0 { indent } else { hanging });
        format!("{spaces}{}", styles.complete(&joined(words)))
    });
    pieces.collect()
}

/// Joins the words of one piece, without trailing spaces.
fn joined(words: &[Word<'_>]) -> String {
    let mut line = String::new();
    for (place, word) in words.iter().enumerate() {
        line.push_str(word.word);
        if place + 1 < words.len() {
            line.push_str(word.whitespace);
        }
    }
    line
}

/// Whether people copy a word rather than read it: a hash, a path or a key name.
fn is_unbreakable(word: &str) -> bool {
    /// The most quotation marks and punctuation that may surround such a word.
    const AROUND: usize = 4;
    let word = anstream::adapter::strip_str(word).to_string();
    let plain = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '/');
    let is_hash = plain.len() == 64 && plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_path = plain.starts_with('/') && plain.bytes().all(|byte| byte.is_ascii_graphic());
    // The name of a receipt-signing key.
    let is_key = plain.starts_with("holdpoint/") && plain.len() <= 128;
    (is_hash || is_path || is_key) && word.len() <= plain.len() + AROUND
}

/// The styles that are open at the end of a piece. Each piece closes them and the next one reopens
/// them, so that neither an indent nor a pager's screen is coloured by the line before.
#[derive(Debug, Default)]
struct OpenStyles(String);

impl OpenStyles {
    fn complete(&mut self, piece: &str) -> String {
        let mut out = format!("{}{piece}", self.0);
        let mut rest = piece;
        while let Some((_, after)) = rest.split_once(ESCAPE) {
            let Some((style, behind)) = after.split_once('m') else { break };
            match style {
                "[0" => self.0.clear(),
                style => self.0.push_str(&format!("{ESCAPE}{style}m")),
            }
            rest = behind;
        }
        if !self.0.is_empty() {
            out.push_str(END_OF_STYLE);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_at_words_and_keeps_its_indent() {
        let line = "  • one two three four five six seven";
        let lines = wrapped(line, 30);
        assert_eq!(lines, ["  • one two three four five", "    six seven"]);
        assert_eq!(wrapped("short", 30), ["short"]);
        assert_eq!(wrapped("one two three four five six seven", 20)[1], "  five six seven");
    }

    #[test]
    fn a_hash_is_left_whole_and_any_other_long_word_is_not() {
        let hash = "0123456789abcdef".repeat(4);
        let lines = wrapped(&format!("the hash is {hash}."), 40);
        assert_eq!(lines, ["the hash is".to_owned(), format!("  {hash}.")]);
        let long = "x".repeat(90);
        let lines = wrapped(&format!("a {long} b"), 40);
        assert!(lines.iter().all(|line| display_width(line) <= 40), "{lines:#?}");
        assert!(lines.iter().skip(1).all(|line| line.starts_with("  ")), "{lines:#?}");
        assert_eq!(lines.concat().matches('x').count(), 90);
    }

    #[test]
    fn a_style_is_closed_at_the_end_of_a_line_and_goes_on_in_the_next() {
        let red = "\u{1b}[31m";
        let lines = wrapped(&format!("{red}one two three four five six{END_OF_STYLE} seven"), 22);
        let expected = [
            format!("{red}one two three four{END_OF_STYLE}"),
            format!("  {red}five six{END_OF_STYLE} seven"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_indent_is_kept_also_behind_the_beginning_of_a_style() {
        let dim = "\u{1b}[2m";
        let lines = wrapped(&format!("{dim}    one two three four five six{END_OF_STYLE}"), 26);
        let expected = [
            format!("    {dim}one two three four{END_OF_STYLE}"),
            format!("      {dim}five six{END_OF_STYLE}"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn letters_that_take_two_columns_are_counted_as_two() {
        let lines = wrapped(&"字".repeat(30), 40);
        assert!(lines.len() > 1, "{lines:#?}");
        assert!(lines.iter().all(|line| display_width(line) <= 40), "{lines:#?}");
    }
}
