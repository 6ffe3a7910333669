//! Edits a text at given positions. Everything between them stays unchanged.

use crate::document::{List, Map, Member, Node, Style, Syntax};
use crate::inverse::is_plain;
use crate::render;
use std::ops::Range;

/// One change: the text at `span` is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

/// Whether an empty map in braces contains more than white space. That content must be kept.
pub(crate) fn has_comment(map: &str) -> bool {
    map.strip_prefix('{').is_some_and(|inside| !inside.trim_end_matches('}').trim().is_empty())
}

/// The text being edited, and the changes so far.
#[derive(Debug)]
pub(crate) struct Editor<'t> {
    text: &'t str,
    syntax: Syntax,
    edits: Vec<Edit>,
}

impl<'t> Editor<'t> {
    pub(crate) fn new(text: &'t str, syntax: Syntax) -> Editor<'t> {
        Editor { text, syntax, edits: Vec::new() }
    }

    pub(crate) fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The number of changes so far.
    pub(crate) fn count(&self) -> usize {
        self.edits.len()
    }

    /// The changes made after the first `count`.
    pub(crate) fn since(&self, count: usize) -> &[Edit] {
        self.edits.get(count..).unwrap_or_default()
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        self.edits.is_empty()
    }

    /// The text at a position.
    pub(crate) fn at(&self, span: Range<usize>) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    pub(crate) fn replace(&mut self, span: Range<usize>, text: impl Into<String>) {
        self.edits.push(Edit { span, text: text.into() });
    }

    /// The position of a member's name and value.
    pub(crate) fn member_span(member: &Member) -> Range<usize> {
        member.key_span.start..member.node.span.end
    }

    /// Whether there is a comment between a member's name and its value. It must stay there,
    /// because it is not kept elsewhere.
    pub(crate) fn has_comment_inside(&self, member: &Member) -> bool {
        !is_plain(self.at(member.key_span.end..member.node.span.start))
    }

    /// The separator between a member and one added after it.
    pub(crate) fn separator(&self, map: &Map, member: &Member) -> String {
        let prefix = self.line_prefix(member.key_span.start);
        match map.style {
            Style::Flow if prefix.trim().is_empty() && !self.is_on_first_line(member) => {
                format!(",{}{prefix}", self.newline(member.key_span.start))
            }
            Style::Flow => ", ".to_owned(),
            Style::Lines => {
                format!("{}{}", self.newline(member.key_span.start), self.continued(prefix))
            }
        }
    }

    /// Adds members after a given one.
    pub(crate) fn insert_behind(&mut self, map: &Map, member: &Member, added: &str) {
        let at = match map.style {
            Style::Flow => member.node.span.end,
            // After a comment on the same line, which belongs to the existing member.
            Style::Lines => self.line_end(member.node.span.end),
        };
        let text = format!("{}{added}", self.separator(map, member));
        self.replace(at..at, text);
    }

    /// Adds a member at the start of a map.
    pub(crate) fn insert_first(&mut self, node: &Node, map: &Map, added: &str) {
        match map.members.first() {
            Some(first) => {
                let at = first.key_span.start;
                let text = match map.style {
                    Style::Flow => format!("{added}, "),
                    Style::Lines => {
                        let prefix = self.continued(self.line_prefix(at));
                        format!("{added}{}{prefix}", self.newline(at))
                    }
                };
                self.replace(at..at, text);
            }
            None if has_comment(self.at(node.span.clone())) => {
                let at = node.span.start + 1;
                self.replace(at..at, added);
            }
            None => self.replace(node.span.clone(), render::map(&[added.to_owned()])),
        }
    }

    /// Removes a member together with its separator.
    pub(crate) fn remove(&mut self, map: &Map, member: &Member) {
        let index = map.members.iter().position(|other| other.key_span == member.key_span);
        let previous =
            index.and_then(|index| index.checked_sub(1)).and_then(|at| map.members.get(at));
        let next = index.and_then(|index| map.members.get(index + 1));
        let own = Editor::member_span(member);
        let span = match (map.style, previous, next) {
            (Style::Flow, Some(previous), _) => previous.node.span.end..own.end,
            (Style::Flow, None, Some(next)) => own.start..next.key_span.start,
            (Style::Flow, None, None) => own.start..self.behind_comma(own.end),
            (Style::Lines, _, _) => {
                let line = self.line_start(own.start);
                let is_whole =
                    self.continued(self.line_prefix(own.start)) == self.line_prefix(own.start);
                match next {
                    // The first member of a list item is on the same line as the item's dash.
                    Some(next) if !is_whole => own.start..next.key_span.start,
                    _ if line > 0 => self.before_newline(line)..own.end,
                    _ => own.start..self.behind_newline(own.end),
                }
            }
        };
        self.replace(span, "");
    }

    /// Inserts words at the start of a list.
    pub(crate) fn insert_words(&mut self, node: &Node, list: &List, words: &[String]) {
        let Some(first) = list.items.first() else {
            // Right after the bracket, so that anything else inside is kept.
            let at = node.span.start + 1;
            self.replace(at..at, render::strings(words));
            return;
        };
        match list.style {
            Style::Flow => {
                let inside = self.at(node.span.start + 1..first.span.start);
                let is_space = inside.trim().is_empty() && inside.contains('\n');
                let space = if is_space { inside } else { " " };
                let at = first.span.start;
                self.replace(at..at, format!("{},{space}", render::strings(words)));
            }
            Style::Lines => {
                let at = self.dash(first);
                let indent =
                    format!("{}{}", self.newline(at), self.continued(self.line_prefix(at)));
                let words: Vec<String> = words
                    .iter()
                    .map(|word| format!("- {}{indent}", render::string(word)))
                    .collect();
                self.replace(at..at, words.concat());
            }
        }
    }

    /// Appends an item to a list.
    pub(crate) fn append_item(&mut self, node: &Node, list: &List, item: &str) {
        let Some(last) = list.items.last() else {
            let at = node.span.start + 1;
            self.replace(at..at, item);
            return;
        };
        match list.style {
            Style::Flow => {
                let at = last.span.end;
                self.replace(at..at, format!(", {item}"));
            }
            Style::Lines => {
                let dash = self.dash(last);
                let prefix = self.continued(self.line_prefix(dash));
                let at = self.line_end(last.span.end);
                self.replace(at..at, format!("{}{prefix}- {item}", self.newline(dash)));
            }
        }
    }

    /// Removes an item of a list together with its separator.
    pub(crate) fn remove_item(&mut self, list: &List, number: usize) {
        let Some(item) = list.items.get(number) else { return };
        let span = match (list.style, number.checked_sub(1).and_then(|at| list.items.get(at))) {
            (Style::Flow, Some(previous)) => previous.span.end..item.span.end,
            (Style::Flow, None) => item.span.start..self.behind_comma(item.span.end),
            (Style::Lines, _) => {
                let line = self.line_start(self.dash(item));
                self.before_newline(line)..item.span.end
            }
        };
        self.replace(span, "");
    }

    /// Removes the first items of a list.
    pub(crate) fn remove_words(&mut self, list: &List, count: usize) {
        let (Some(first), Some(last)) =
            (list.items.first(), count.checked_sub(1).and_then(|at| list.items.get(at)))
        else {
            return;
        };
        let start = |item: &Node| match list.style {
            Style::Flow => item.span.start,
            Style::Lines => self.dash(item),
        };
        let span = match list.items.get(count) {
            Some(next) => start(first)..start(next),
            None if list.style == Style::Flow => first.span.start..self.behind_comma(last.span.end),
            None => start(first)..last.span.end,
        };
        let text = if list.items.len() == count && list.style == Style::Lines { "[]" } else { "" };
        self.replace(span, text);
    }

    /// The edited text. Returns `None` if two changes overlap.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for edit in &self.edits {
            out.push_str(self.text.get(at..edit.span.start)?);
            out.push_str(&edit.text);
            at = edit.span.end.max(edit.span.start);
        }
        out.push_str(self.text.get(at..)?);
        Some(out)
    }

    /// The line ending to use here: that of the previous line, so that removing a line removes
    /// exactly what was inserted.
    fn newline(&self, at: usize) -> &'static str {
        let before = self.at(0..self.line_start(at));
        let ending = if before.is_empty() { self.at(at..self.behind_newline(at)) } else { before };
        if ending.ends_with("\r\n") { "\r\n" } else { "\n" }
    }

    fn line_start(&self, at: usize) -> usize {
        self.at(0..at).rfind('\n').map_or(0, |newline| newline + 1)
    }

    fn line_prefix(&self, at: usize) -> &'t str {
        self.at(self.line_start(at)..at)
    }

    fn is_on_first_line(&self, member: &Member) -> bool {
        self.line_start(member.key_span.start) == 0
    }

    /// The prefix of a continuation line: the same, but without a list's dash.
    fn continued(&self, prefix: &str) -> String {
        match self.syntax {
            Syntax::Yaml => prefix.replace(|c: char| c != ' ', " "),
            Syntax::Json | Syntax::Toml => prefix.to_owned(),
        }
    }

    fn line_end(&self, at: usize) -> usize {
        let rest = self.at(at..self.text.len());
        let line = rest.find('\n').map_or(rest, |newline| rest.get(..newline).unwrap_or(rest));
        at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// The position before the line break that ends the previous line.
    fn before_newline(&self, line_start: usize) -> usize {
        let before = self.at(0..line_start);
        let without = before.strip_suffix('\n').unwrap_or(before);
        without.strip_suffix('\r').unwrap_or(without).len()
    }

    fn behind_newline(&self, at: usize) -> usize {
        let end = self.line_end(at);
        let rest = self.at(end..self.text.len());
        end + rest.find('\n').map_or(0, |newline| newline + 1)
    }

    fn behind_comma(&self, at: usize) -> usize {
        let rest = self.at(at..self.text.len());
        let trimmed = rest.trim_start();
        if trimmed.starts_with(',') { at + rest.len() - trimmed.len() + 1 } else { at }
    }

    /// The position of a list item's dash.
    fn dash(&self, item: &Node) -> usize {
        let before = self.at(0..item.span.start);
        before.trim_end().strip_suffix('-').map_or(item.span.start, str::len)
    }
}
