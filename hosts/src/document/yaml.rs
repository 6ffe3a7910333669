//! YAML, from the events of `saphyr-parser`, which count characters rather than bytes.

use super::{List, MAX_DEPTH, Map, Member, Node, Style, SyntaxError, Value};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use std::ops::Range;

pub(super) fn parse(text: &str) -> Result<Option<Node>, SyntaxError> {
    let mut builder = Builder { text, offsets: Offsets::of(text), open: Vec::new(), root: None };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| wrong(&error))?;
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                return Err(SyntaxError::SeveralDocuments);
            }
        }
        builder.take(event, span)?;
    }
    Ok(builder.root)
}

fn wrong(error: &ScanError) -> SyntaxError {
    let marker = error.marker();
    let what = error.info().to_owned();
    SyntaxError::Wrong { line: marker.line(), column: marker.col() + 1, what }
}

/// The byte offset of each character; `None` if every character is one byte.
struct Offsets(Option<Vec<usize>>);

impl Offsets {
    fn of(text: &str) -> Offsets {
        if text.is_ascii() {
            return Offsets(None);
        }
        Offsets(Some(text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()))
    }

    fn byte(&self, character: usize, text: &str) -> usize {
        match &self.0 {
            None => character.min(text.len()),
            Some(offsets) => offsets.get(character).copied().unwrap_or(text.len()),
        }
    }
}

/// A list or map whose end has not been reached.
struct Open {
    start: usize,
    style: Style,
    is_shared: bool,
    parts: Parts,
}

enum Parts {
    Items(Vec<Node>),
    Members(Vec<Member>, Option<Node>),
}

struct Builder<'t> {
    text: &'t str,
    offsets: Offsets,
    open: Vec<Open>,
    root: Option<Node>,
}

impl Builder<'_> {
    fn bytes(&self, span: Span) -> Range<usize> {
        let byte = |character| self.offsets.byte(character, self.text);
        byte(span.start.index())..byte(span.end.index())
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), SyntaxError> {
        let span = self.bytes(span);
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let is_shared = anchor != 0 || tag.is_some();
                self.scalar(&value, style, span, is_shared);
            }
            Event::Alias(_) => {
                let value = Value::Other(self.slice(span.clone()));
                self.close(Node { span, value, is_shared: true });
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(span, anchor != 0 || tag.is_some(), Parts::Items(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                let parts = Parts::Members(Vec::new(), None);
                self.begin(span, anchor != 0 || tag.is_some(), parts)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn slice(&self, span: Range<usize>) -> String {
        self.text.get(span).unwrap_or_default().to_owned()
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, mut span: Range<usize>, is_shared: bool) {
        let spelled = self.text.get(span.clone()).unwrap_or_default();
        // The reported end may be after a comment. If the text itself does not show the end, or
        // spans several lines with their own rules for white space, treat the part as opaque.
        let length = match style {
            ScalarStyle::Plain => spelled.starts_with(value).then_some(value.len()),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => quoted_length(spelled),
            ScalarStyle::Literal | ScalarStyle::Folded => None,
        };
        span.end = span.start + length.unwrap_or(spelled.trim_end().len());
        let is_word = style == ScalarStyle::Plain && !is_text(value);
        let value = match length {
            Some(_) if !is_word => Value::Text(value.to_owned()),
            _ => Value::Other(value.to_owned()),
        };
        self.close(Node { span, value, is_shared });
    }

    fn begin(
        &mut self,
        span: Range<usize>,
        is_shared: bool,
        parts: Parts,
    ) -> Result<(), SyntaxError> {
        if self.open.len() > MAX_DEPTH {
            return Err(SyntaxError::TooDeep);
        }
        let is_flow = self.text.get(span.start..).is_some_and(|rest| rest.starts_with(['[', '{']));
        let style = if is_flow { Style::Flow } else { Style::Lines };
        self.open.push(Open { start: span.start, style, is_shared, parts });
        Ok(())
    }

    fn end(&mut self, span: Range<usize>) {
        let Some(open) = self.open.pop() else { return };
        let (value, last) = match open.parts {
            Parts::Items(items) => {
                let last = items.last().map(|item| item.span.end);
                (Value::List(List { items, style: open.style }), last)
            }
            Parts::Members(members, _) => {
                let last =
                    members.last().map(|member| member.node.span.end.max(member.key_span.end));
                (Value::Map(Map { members, style: open.style, is_dotted: false }), last)
            }
        };
        // The end of a block collection is only known from what follows, and the reported end of a
        // flow collection may be too late.
        let end = match open.style {
            Style::Flow => span.start + 1,
            Style::Lines => last.unwrap_or(open.start),
        };
        self.close(Node { span: open.start..end, value, is_shared: open.is_shared });
    }

    fn close(&mut self, node: Node) {
        match self.open.last_mut().map(|open| &mut open.parts) {
            None => self.root = Some(node),
            Some(Parts::Items(items)) => items.push(node),
            Some(Parts::Members(members, waiting)) => match waiting.take() {
                None => *waiting = Some(node),
                Some(key) => {
                    let name = match &key.value {
                        Value::Text(text) | Value::Other(text) => text.clone(),
                        // A key that is not a scalar is not a member name.
                        Value::List(_) | Value::Map(_) => String::new(),
                    };
                    members.push(Member { key: name, key_span: key.span, node });
                }
            },
        }
    }
}

/// The length of a quoted text, including its quotes.
fn quoted_length(spelled: &str) -> Option<usize> {
    let quote = spelled.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut characters = spelled.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote == '"' {
            characters.next();
        } else if c == quote {
            if quote == '"' || characters.peek().is_none_or(|(_, next)| *next != quote) {
                return Some(at + 1);
            }
            characters.next();
        }
    }
    None
}

/// Whether a plain scalar is a text in every version of YAML, and not null, a boolean or a number.
fn is_text(word: &str) -> bool {
    const WORDS: &[&str] =
        &["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan"];
    let lower = word.to_ascii_lowercase();
    let number = lower.trim_start_matches(['+', '-']);
    let is_hexadecimal = number
        .strip_prefix("0x")
        .is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
    let is_decimal = number.contains(|c: char| c.is_ascii_digit())
        && number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && number.chars().all(|c| c.is_ascii_digit() || "._:oe+-tz".contains(c));
    !(WORDS.contains(&lower.as_str()) || is_hexadecimal || is_decimal)
}
