//! Before and after beside each other: every changed line in full, the server's words quoted as they are, hidden
//! characters escaped.

use crate::report;
use crate::screen::{self, DIM, GREEN, RED, styled};
use contract::json::{Document, Kind, Node};
use contract::surface::Entry;
use gate::words::{escape_hidden, is_hidden};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Unchanged lines that are kept around a change.
const CONTEXT: usize = 2;
/// The comparison of lines is only for the eye: past this it is cut short, and more lines count as changed.
const COMPARING: Duration = Duration::from_millis(500);
/// Tabs and narrow terminals aside, a column is never narrower than this.
const MIN_COLUMN: usize = 16;

/// The lines of one entry beside the lines of another.
pub(crate) fn show(before: Option<&Entry>, after: Option<&Entry>) {
    let column = (screen::width().saturating_sub(3) / 2).max(MIN_COLUMN);
    let heading = |text: &str| format!("{text:<column$}");
    screen::say(styled(DIM, format!("{} │ {}", heading("before (approved)"), "now")));
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
            Row::Same(text) => beside(Some(text), Some(text), column, None),
            Row::Changed(before, after) => {
                beside(before.as_deref(), after.as_deref(), column, Some((RED, GREEN)))
            }
            Row::Gap(count) => {
                vec![styled(
                    DIM,
                    format!(
                        "{:<column$} │",
                        format!("… {} as before", report::count(*count, "line", "lines"))
                    ),
                )]
            }
        }
    }
}

fn beside(
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
            let padding = " ".repeat(column.saturating_sub(left.chars().count()));
            match styles {
                None => styled(DIM, format!("{left}{padding} │ {right}")),
                Some((old, new)) => {
                    format!("{}{padding} │ {}", styled(old, left), styled(new, right))
                }
            }
        })
        .collect()
}

/// A text in pieces that fit a column.
fn folded(text: &str, column: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(column).map(|piece| piece.iter().collect()).collect()
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

/// An entry's JSON, a value a line, long texts a line of theirs a line.
fn lines_of(entry: Option<&Entry>) -> Vec<String> {
    let Some(entry) = entry else { return Vec::new() };
    let Ok(document) = Document::parse(entry.raw()) else {
        return entry.raw().lines().map(escape_hidden).collect();
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
                let label = format!("{}: ", quoted(name));
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
        Kind::String => quoted(node),
        _ => node.raw().to_owned(),
    }
}

fn quoted(node: Node<'_>) -> String {
    format!("\"{}\"", escape_hidden(&node.as_str().unwrap_or_default()))
}

/// A string with line breaks is shown as the lines that a reader of it would see.
fn text(node: Node<'_>, indent: &str, label: &str, comma: &str, lines: &mut Vec<String>) {
    let text = node.as_str().unwrap_or_default();
    if !text.contains('\n') {
        lines.push(format!("{indent}{label}{}{comma}", quoted(node)));
        return;
    }
    lines.push(format!("{indent}{label}\""));
    for line in text.split('\n') {
        let shown: String = line
            .chars()
            .map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() })
            .collect();
        lines.push(format!("{indent}  {shown}"));
    }
    lines.push(format!("{indent}\"{comma}"));
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
        assert!(text.contains("\\u{202e}") && text.contains("\\u{1b}") && text.contains("second"));
        assert!(!text.contains('\u{202e}'));
        assert_eq!(text.matches('w').count(), 400);
    }
}
