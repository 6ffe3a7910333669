//! Shows an entry before and after a change: every changed line in full, with the server's text
//! quoted. Two columns if there is room, otherwise one side below the other. Both sides are in
//! canonical form, so that a different order of members or spelling of a number does not count as a
//! change.
//!
//! INVARIANT: a server's text cannot look like a line, a column or JSON of ours. Strings are quoted
//! and escaped, a string with line breaks becomes one quoted string per line, a folded line is
//! marked, and columns are measured in terminal cells.

use crate::report;
use crate::screen::{self, DIM, GREEN, RED, styled};
use anstyle::Style;
use contract::canonical::{Position, canonical_text};
use contract::json::{Document, Kind, Node};
use contract::surface::Entry;
use gate::words::is_hidden;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;
/// The time limit for comparing lines. The comparison is only a display: past the limit, more lines
/// count as changed.
const COMPARING: Duration = Duration::from_millis(500);
/// The narrowest readable column. With less room, one side is shown below the other.
const MIN_COLUMN: usize = 32;
/// Separates the columns.
const SEPARATOR: char = '│';
/// Marks each continuation of a line that is longer than its column.
const CONTINUATION: &str = "↳ ";
/// The combining marks that a letter may carry unescaped; a taller stack would cover the lines
/// around it.
const MAX_MARKS: usize = 3;

/// Prints the lines of two entries side by side, under these headings.
pub(crate) fn show(before: Option<&Entry>, after: Option<&Entry>, headings: [&str; 2]) {
    let rows = rows(before, after);
    let [left, right] = headings;
    let column = screen::width().saturating_sub(3) / 2;
    if column < MIN_COLUMN {
        screen::say(format!(
            "{}  {}",
            styled(RED, format!("- {left}")),
            styled(GREEN, format!("+ {right}"))
        ));
        let width = screen::width().saturating_sub(2);
        rows.iter().flat_map(|row| row.stacked(width)).for_each(screen::say_fitted);
        return;
    }
    screen::say_fitted(styled(DIM, format!("{left:<column$} {SEPARATOR} {right}")));
    rows.iter().flat_map(|row| row.lines(column)).for_each(screen::say_fitted);
}

/// Prints the lines of one entry.
pub(crate) fn show_entry(entry: &Entry) {
    let width = screen::width().saturating_sub(4);
    for line in lines_of(Some(entry)).iter().flat_map(|line| folded(line, width)) {
        screen::say_fitted(format!("    {line}"));
    }
}

/// A line of the comparison.
#[derive(Debug, PartialEq, Eq)]
enum Row {
    Same(String),
    Changed(Option<String>, Option<String>),
    Gap(usize),
}

impl Row {
    fn lines(&self, column: usize) -> Vec<String> {
        match self {
            Row::Same(text) => two_columns(Some(text), Some(text), column, None),
            Row::Changed(before, after) => {
                two_columns(before.as_deref(), after.as_deref(), column, Some((RED, GREEN)))
            }
            Row::Gap(count) => {
                vec![styled(
                    DIM,
                    format!(
                        "{:<column$} {SEPARATOR}",
                        format!("… {} as before", report::count(*count, "line", "lines"))
                    ),
                )]
            }
        }
    }

    /// Shows one side below the other.
    fn stacked(&self, width: usize) -> Vec<String> {
        let lines = |mark: &str, text: &str, style: Style| -> Vec<String> {
            let pieces = folded(text, width).into_iter();
            pieces.map(|piece| styled(style, format!("{mark} {piece}"))).collect()
        };
        match self {
            Row::Same(text) => lines(" ", text, DIM),
            Row::Changed(before, after) => {
                let old = before.iter().flat_map(|text| lines("-", text, RED));
                old.chain(after.iter().flat_map(|text| lines("+", text, GREEN))).collect()
            }
            Row::Gap(count) => {
                let lines = report::count(*count, "line", "lines");
                vec![styled(DIM, format!("  … {lines} as before"))]
            }
        }
    }
}

fn two_columns(
    left: Option<&str>,
    right: Option<&str>,
    column: usize,
    styles: Option<(Style, Style)>,
) -> Vec<String> {
    let fold = |text: Option<&str>| text.map(|text| folded(text, column)).unwrap_or_default();
    let (left, right) = (fold(left), fold(right));
    let empty = String::new();
    (0..left.len().max(right.len()))
        .map(|index| {
            let (left, right) =
                (left.get(index).unwrap_or(&empty), right.get(index).unwrap_or(&empty));
            let padding = " ".repeat(column.saturating_sub(screen::columns(left)));
            match styles {
                None => styled(DIM, format!("{left}{padding} {SEPARATOR} {right}")),
                Some((old, new)) => {
                    let separator = styled(DIM, SEPARATOR);
                    format!("{}{padding} {separator} {}", styled(old, left), styled(new, right))
                }
            }
        })
        .collect()
}

/// Folds a line into pieces that fit a column, measured in terminal cells. Pieces end at words
/// where possible, and no character is left out. Continuations are aligned with the line's first
/// word.
pub(crate) fn folded(text: &str, column: usize) -> Vec<String> {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let start =
        format!("{}{CONTINUATION}", " ".repeat(if indent < column / 2 { indent } else { 0 }));
    let mut pieces = vec![String::new()];
    let mut used = 0;
    // The byte after the last space at which a piece may end.
    let mut end_of_word = None;
    let mut buffer = [0; 4];
    for character in text.chars() {
        let width = screen::columns(character.encode_utf8(&mut buffer));
        let Some(piece) = pieces.last_mut() else { break };
        if used + width > column {
            let rest = end_of_word.take().map(|at| piece.split_off(at)).unwrap_or_default();
            let next = format!("{start}{rest}");
            used = screen::columns(&next);
            pieces.push(next);
        }
        let Some(piece) = pieces.last_mut() else { break };
        piece.push(character);
        used += width;
        if character == ' ' && used > column / 2 {
            end_of_word = Some(piece.len());
        }
    }
    pieces
}

fn rows(before: Option<&Entry>, after: Option<&Entry>) -> Vec<Row> {
    let (old, new) = (lines_of(before), lines_of(after));
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let diff = TextDiff::configure().timeout(COMPARING).diff_slices(&old, &new);
    let mut rows = Vec::new();
    let (mut removed, mut added): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let flush = |rows: &mut Vec<Row>, removed: &mut Vec<String>, added: &mut Vec<String>| {
        rows.extend(paired(std::mem::take(removed), std::mem::take(added)));
    };
    for change in diff.iter_all_changes() {
        let text = change.value().to_owned();
        match change.tag() {
            ChangeTag::Delete => removed.push(text),
            ChangeTag::Insert => added.push(text),
            ChangeTag::Equal => {
                flush(&mut rows, &mut removed, &mut added);
                rows.push(Row::Same(text));
            }
        }
    }
    flush(&mut rows, &mut removed, &mut added);
    without_far_context(rows)
}

/// Pairs a member's line before the change with its line after it; lines of members that only one
/// side has stand alone.
fn paired(old: Vec<String>, new: Vec<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut new = std::collections::VecDeque::from(new);
    for line in old {
        let name = member_of(&line).map(str::to_owned);
        let place = new.iter().position(|now| member_of(now) == name.as_deref());
        // A line that names no member is a bracket or part of a text: pair it only with the next
        // line.
        match place.filter(|&place| name.is_some() || place == 0) {
            Some(place) => {
                rows.extend(new.drain(..place).map(|now| Row::Changed(None, Some(now))));
                rows.push(Row::Changed(Some(line), new.pop_front()));
            }
            None => rows.push(Row::Changed(Some(line), None)),
        }
    }
    rows.extend(new.into_iter().map(|now| Row::Changed(None, Some(now))));
    rows
}

/// The name of the member on a line, with its indent.
fn member_of(line: &str) -> Option<&str> {
    let end = line.find("\": ")?;
    line.trim_start().starts_with('"').then(|| line.get(..end)).flatten()
}

/// Replaces unchanged lines that are far from any change with a count of them.
fn without_far_context(rows: Vec<Row>) -> Vec<Row> {
    let changed: Vec<usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| matches!(row, Row::Changed(..)))
        .map(|(index, _)| index)
        .collect();
    let is_near = |index: usize| {
        let after = changed.partition_point(|&at| at < index);
        let near = |at: Option<&usize>| at.is_some_and(|&at| at.abs_diff(index) <= CONTEXT);
        near(changed.get(after)) || after > 0 && near(changed.get(after - 1))
    };
    let mut kept = Vec::new();
    let mut skipped = 0;
    for (index, row) in rows.into_iter().enumerate() {
        if is_near(index) || changed.is_empty() {
            if skipped > 0 {
                kept.push(Row::Gap(skipped));
                skipped = 0;
            }
            kept.push(row);
        } else {
            skipped += 1;
        }
    }
    if skipped > 0 {
        kept.push(Row::Gap(skipped));
    }
    kept
}

/// An entry's JSON in canonical form, one value per line; a string with line breaks is shown as
/// several quoted strings.
fn lines_of(entry: Option<&Entry>) -> Vec<String> {
    let Some(entry) = entry else { return Vec::new() };
    let Some(text) = canonical_of(entry) else {
        return entry.raw().lines().map(quoted).collect();
    };
    let Ok(document) = Document::parse(&text) else {
        return entry.raw().lines().map(quoted).collect();
    };
    let mut lines = Vec::new();
    write(document.root(), 0, "", "", &mut lines);
    lines
}

/// The whole entry with its members in canonical order. In schemas, arrays that are sets are sorted
/// as well.
fn canonical_of(entry: &Entry) -> Option<String> {
    let document = entry.document().ok()?;
    let root = document.root();
    if !root.is_object() {
        return Some(canonical_text(root, Position::Plain));
    }
    let members: Vec<String> = root
        .members()
        .map(|(name, value)| {
            let is_schema =
                matches!(name.as_str().as_deref(), Some("inputSchema" | "outputSchema"));
            let position = if is_schema { Position::Schema } else { Position::Plain };
            format!("{}:{}", name.raw(), canonical_text(value, position))
        })
        .collect();
    let text = format!("{{{}}}", members.join(","));
    let document = Document::parse(&text).ok()?;
    // Sort the members of the entry itself; the sets below it are already sorted.
    Some(canonical_text(document.root(), Position::Plain))
}

fn write(node: Node<'_>, depth: usize, label: &str, comma: &str, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    match node.kind() {
        Kind::Object if node.members().next().is_some() => {
            lines.push(format!("{indent}{label}{{"));
            let last = node.members().count();
            for (index, (name, value)) in node.members().enumerate() {
                let label = format!("{}: ", quoted(&name.as_str().unwrap_or_default()));
                write(value, depth + 1, &label, if index + 1 < last { "," } else { "" }, lines);
            }
            lines.push(format!("{indent}}}{comma}"));
        }
        Kind::Array if node.items().any(|item| item.is_object() || item.is_array()) => {
            lines.push(format!("{indent}{label}["));
            let last = node.items().count();
            for (index, item) in node.items().enumerate() {
                write(item, depth + 1, "", if index + 1 < last { "," } else { "" }, lines);
            }
            lines.push(format!("{indent}]{comma}"));
        }
        Kind::Array => {
            let items: Vec<String> = node.items().map(scalar).collect();
            lines.push(format!("{indent}{label}[{}]{comma}", items.join(", ")));
        }
        Kind::String => text(node, &indent, label, comma, lines),
        _ => lines.push(format!("{indent}{label}{}{comma}", scalar(node))),
    }
}

fn scalar(node: Node<'_>) -> String {
    match node.kind() {
        Kind::String => quoted(&node.as_str().unwrap_or_default()),
        _ => node.raw().to_owned(),
    }
}

/// Quotes a server's string. Escapes every character that could end the quotation, break the line,
/// imitate the column separator or hide.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut marks = 0;
    let mut buffer = [0; 4];
    for character in text.chars() {
        let is_mark = screen::columns(character.encode_utf8(&mut buffer)) == 0;
        marks = if is_mark { marks + 1 } else { 0 };
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            SEPARATOR => out.extend(character.escape_unicode()),
            _ if is_hidden(character) || marks > MAX_MARKS => {
                out.extend(character.escape_unicode());
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// Shows a string with line breaks as separate lines, each in its own quotation marks.
fn text(node: Node<'_>, indent: &str, label: &str, comma: &str, lines: &mut Vec<String>) {
    let text = node.as_str().unwrap_or_default();
    let mut parts = text.split_inclusive('\n').peekable();
    let first = parts.next().unwrap_or_default();
    if parts.peek().is_none() {
        lines.push(format!("{indent}{label}{}{comma}", quoted(first)));
        return;
    }
    lines.push(format!("{indent}{}", label.trim_end()));
    lines.push(format!("{indent}  {}", quoted(first)));
    while let Some(part) = parts.next() {
        let end = if parts.peek().is_none() { comma } else { "" };
        lines.push(format!("{indent}  {}{end}", quoted(part)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::surface::{EntryId, EntryType};

    fn entry(raw: &str) -> Entry {
        Entry::from_raw(EntryId::new(EntryType::Tool, "t"), raw).unwrap()
    }

    #[test]
    fn changed_lines_are_side_by_side_and_far_ones_are_counted() {
        let old = entry(r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":"x"}"#);
        let new = entry(r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":"y"}"#);
        let rows = rows(Some(&old), Some(&new));
        assert!(matches!(rows[0], Row::Gap(4)));
        assert!(rows.contains(&Row::Changed(
            Some("  \"f\": \"x\"".to_owned()),
            Some("  \"f\": \"y\"".to_owned())
        )));
    }

    #[test]
    fn a_member_is_paired_with_itself_after_others_were_added_before_it() {
        let old = entry(r#"{"d":"one","z":1}"#);
        let new = entry(r#"{"a":1,"b":2,"d":"two","z":1}"#);
        let rows = rows(Some(&old), Some(&new));
        let line = |text: &str| Some(text.to_owned());
        assert!(
            rows.contains(&Row::Changed(line("  \"d\": \"one\","), line("  \"d\": \"two\","))),
            "{rows:#?}"
        );
        assert!(rows.contains(&Row::Changed(None, line("  \"a\": 1,"))), "{rows:#?}");
    }

    #[test]
    fn hidden_characters_are_escaped_and_nothing_is_left_out() {
        let long = "w ".repeat(400);
        let new = entry(&format!("{{\"d\":\"a\u{202e}b\\u001b[2J {long}\\nsecond\"}}"));
        let text = rows(None, Some(&new))
            .iter()
            .flat_map(|row| row.lines(40))
            .collect::<Vec<_>>()
            .join("\n");
        assert!(text.contains("\\u{202e}") && text.contains("second"));
        assert!(!text.contains('\u{202e}'));
        assert_eq!(text.matches('w').count(), 400);
    }

    fn shown(raw: &str, column: usize) -> Vec<String> {
        let rows = rows(None, Some(&entry(raw)));
        let lines = rows.iter().flat_map(|row| row.lines(column));
        lines.map(|line| anstream::adapter::strip_str(&line).to_string()).collect()
    }

    #[test]
    fn text_of_a_server_cannot_pretend_to_be_json_or_a_column() {
        let lines = shown(r#"{"d":"Reads.\n\",\n\"readOnlyHint\": true │ \\"}"#, 60);
        let padding = " ".repeat(60);
        let expected = [
            "{",
            "  \"d\":",
            "    \"Reads.\\n\"",
            "    \"\\\",\\n\"",
            "    \"\\\"readOnlyHint\\\": true \\u{2502} \\\\\"",
            "}",
        ];
        let expected: Vec<String> =
            expected.iter().map(|line| format!("{padding} │ {line}")).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn columns_hold_whatever_the_width_of_the_letters() {
        let wide = entry(r#"{"d":"字字字字字字字字字字 e\u0301e\u0301 ✅"}"#);
        let plain = entry(r#"{"d":"x"}"#);
        let column = 17;
        for row in rows(Some(&wide), Some(&plain)) {
            for line in row.lines(column) {
                let line = anstream::adapter::strip_str(&line).to_string();
                let left = line.split('│').next().unwrap();
                assert_eq!(screen::columns(left), column + 1, "{line:?}");
            }
        }
    }

    #[test]
    fn a_folded_line_is_marked_so_that_its_end_is_not_taken_for_a_line() {
        let padding = " ".repeat(40);
        let raw = format!(r#"{{"d":"{padding}\"evil\": true"}}"#);
        let lines = shown(&raw, 30);
        let right = |line: &String| line.split('│').nth(1).unwrap().to_owned();
        let continued: Vec<String> =
            lines.iter().map(right).filter(|line| line.contains("evil")).collect();
        assert!(continued.iter().all(|line| line.trim_start().starts_with("↳ ")), "{lines:#?}");
        assert!(!continued.is_empty(), "{lines:#?}");
    }

    #[test]
    fn another_order_or_spelling_shows_nothing() {
        let old = entry(
            r#"{"name":"t","inputSchema":{"required":["a","b"],"maximum":1.0,"type":"object"}}"#,
        );
        let new = entry(
            r#"{"inputSchema":{"type":"object","maximum":1,"required":["b","a"]},"name":"t"}"#,
        );
        let rows = rows(Some(&old), Some(&new));
        assert!(rows.iter().all(|row| matches!(row, Row::Same(_))), "{rows:#?}");
        // Outside of schemas, the order of an array is significant.
        let (old, new) = (entry(r#"{"x":["a","b"]}"#), entry(r#"{"x":["b","a"]}"#));
        let rows = super::rows(Some(&old), Some(&new));
        assert!(rows.iter().any(|row| matches!(row, Row::Changed(..))), "{rows:#?}");
    }

    #[test]
    fn lines_are_broken_at_words_and_no_character_is_lost() {
        let text = "    \"one two three four five six seven eight\"";
        let pieces = folded(text, 24);
        assert_eq!(pieces, ["    \"one two three four ", "    ↳ five six seven ", "    ↳ eight\""]);
        let joined: String = pieces.iter().map(|piece| piece.replace("    ↳ ", "")).collect();
        assert_eq!(joined, text);
    }

    #[test]
    fn in_a_narrow_terminal_the_sides_stand_one_below_the_other() {
        let (old, new) = (entry(r#"{"d":"old"}"#), entry(r#"{"d":"new"}"#));
        let rows = rows(Some(&old), Some(&new));
        let lines = rows.iter().flat_map(|row| row.stacked(30));
        let lines: Vec<String> =
            lines.map(|line| anstream::adapter::strip_str(&line).to_string()).collect();
        assert_eq!(lines, ["  {", "-   \"d\": \"old\"", "+   \"d\": \"new\"", "  }"]);
    }

    #[test]
    fn marks_do_not_pile_up_over_the_lines_around() {
        let shown = quoted(&format!("e{}", "\u{301}".repeat(5)));
        assert_eq!(shown, format!("\"e{}\\u{{301}}\\u{{301}}\"", "\u{301}".repeat(3)));
    }
}
