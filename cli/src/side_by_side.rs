//! Shows an entry before and after a change in two columns: every changed line in full, the server's text quoted.
//!
//! INVARIANT: the text of a server cannot look like a line, a column or JSON of ours. Strings are quoted and escaped, a
//! string with line breaks is one quoted string a line, a folded line is marked, and columns are measured in the cells
//! that a terminal uses.

use crate::report;
use crate::screen::{self, DIM, GREEN, RED, styled};
use contract::json::{Kind, Node};
use contract::surface::Entry;
use gate::words::is_hidden;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Unchanged lines that are kept around a change.
const CONTEXT: usize = 2;
/// The comparison of lines is only for the eye: past this it is cut short, and more lines count as changed.
const COMPARING: Duration = Duration::from_millis(500);
/// A column is never narrower than this.
const MIN_COLUMN: usize = 16;
/// The line between the columns.
const SEPARATOR: char = '│';
/// Begins each further piece of a line that is longer than its column.
const CONTINUATION: &str = "↳ ";
/// Marks that a letter may carry; a stack of more would cover the lines around it.
const MAX_MARKS: usize = 3;

/// The lines of two entries, side by side.
pub(crate) fn show(before: Option<&Entry>, after: Option<&Entry>) {
    let column = (screen::width().saturating_sub(3) / 2).max(MIN_COLUMN);
    let heading = |text: &str| format!("{text:<column$}");
    screen::say(styled(DIM, format!("{} {SEPARATOR} now", heading("before (approved)"))));
    for row in rows(before, after) {
        for line in row.lines(column) {
            screen::say(line);
        }
    }
}

/// One line of each side. `None` on both sides is a gap.
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
}

fn two_columns(
    left: Option<&str>,
    right: Option<&str>,
    column: usize,
    styles: Option<(anstyle::Style, anstyle::Style)>,
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
                    format!("{}{padding} {SEPARATOR} {}", styled(old, left), styled(new, right))
                }
            }
        })
        .collect()
}

/// A line in pieces that fit a column, by the cells that a terminal uses for them.
pub(crate) fn folded(text: &str, column: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    let mut buffer = [0; 4];
    for character in text.chars() {
        let width = screen::columns(character.encode_utf8(&mut buffer));
        if used + width > column {
            pieces.push(CONTINUATION.to_owned());
            used = screen::columns(CONTINUATION);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
        used += width;
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
        let count = removed.len().max(added.len());
        let (mut old, mut new) =
            (std::mem::take(removed).into_iter(), std::mem::take(added).into_iter());
        rows.extend((0..count).map(|_| Row::Changed(old.next(), new.next())));
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

/// Leaves out unchanged lines that are far from any change, and says how many.
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

/// An entry's JSON with one value a line; a string with line breaks is shown as several quoted strings.
fn lines_of(entry: Option<&Entry>) -> Vec<String> {
    let Some(entry) = entry else { return Vec::new() };
    let Ok(document) = entry.document() else {
        return entry.raw().lines().map(quoted).collect();
    };
    let mut lines = Vec::new();
    write(document.root(), 0, "", "", &mut lines);
    lines
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

/// A string of a server in quotation marks. What could end the quotation, break the line, forge the separator of the
/// columns or hide is escaped.
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

/// A string with line breaks is shown as the lines that a reader of it would see, each in quotation marks of its own.
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
    fn changed_lines_stand_beside_each_other_and_far_ones_are_counted() {
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
        assert!(continued.iter().all(|line| line.starts_with(" ↳ ")), "{lines:#?}");
        assert!(!continued.is_empty(), "{lines:#?}");
    }

    #[test]
    fn marks_do_not_pile_up_over_the_lines_around() {
        let shown = quoted(&format!("e{}", "\u{301}".repeat(5)));
        assert_eq!(shown, format!("\"e{}\\u{{301}}\\u{{301}}\"", "\u{301}".repeat(3)));
    }
}
