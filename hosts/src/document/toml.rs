//! TOML, with the positions from `toml_edit`. Its own serialization is not used.

use super::{List, MAX_DEPTH, Map, Member, Node, Style, SyntaxError, Value, position};
use std::ops::Range;
use toml_edit::{Document, Item, Key, Table};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        let what = error.message().lines().collect::<Vec<_>>().join(", ");
        SyntaxError::Wrong { line, column, what }
    })?;
    table(document.as_table(), text, 0..text.len(), 0)
}

fn table(table: &Table, text: &str, span: Range<usize>, depth: usize) -> Result<Node, SyntaxError> {
    if depth > MAX_DEPTH {
        return Err(SyntaxError::TooDeep);
    }
    let names = table.iter().map(|(name, _)| name);
    let members = names.filter_map(|name| table.get_key_value(name));
    let members =
        members.map(|(key, item)| member(key, item, text, depth)).collect::<Result<_, _>>()?;
    let value = Value::Map(Map { members, style: Style::Lines, is_dotted: table.is_dotted() });
    Ok(Node { span, value, is_shared: false })
}

fn member(key: &Key, item: &Item, text: &str, depth: usize) -> Result<Member, SyntaxError> {
    let key_span = key.span().unwrap_or_default();
    let node = match item {
        Item::Table(inner) => table(inner, text, inner.span().unwrap_or_default(), depth + 1)?,
        Item::ArrayOfTables(tables) => {
            let items = tables
                .iter()
                .map(|inner| table(inner, text, inner.span().unwrap_or_default(), depth + 2));
            let value =
                Value::List(List { items: items.collect::<Result<_, _>>()?, style: Style::Lines });
            Node { span: tables.span().unwrap_or_default(), value, is_shared: false }
        }
        Item::Value(inner) => value(inner, text, depth + 1)?,
        Item::None => Node { span: 0..0, value: Value::Other(String::new()), is_shared: false },
    };
    Ok(Member { key: key.get().to_owned(), key_span, node })
}

fn value(value: &toml_edit::Value, text: &str, depth: usize) -> Result<Node, SyntaxError> {
    if depth > MAX_DEPTH {
        return Err(SyntaxError::TooDeep);
    }
    let span = value.span().unwrap_or_default();
    let value = match value {
        toml_edit::Value::String(string) => Value::Text(string.value().clone()),
        toml_edit::Value::Array(array) => {
            let items = array.iter().map(|item| self::value(item, text, depth + 1));
            Value::List(List { items: items.collect::<Result<_, _>>()?, style: Style::Flow })
        }
        toml_edit::Value::InlineTable(inner) => {
            let names = inner.iter().map(|(name, _)| name);
            let members = names.filter_map(|name| inner.get_key_value(name));
            let members = members.map(|(key, item)| member(key, item, text, depth));
            Value::Map(Map {
                members: members.collect::<Result<_, _>>()?,
                style: Style::Flow,
                is_dotted: inner.is_dotted(),
            })
        }
        toml_edit::Value::Integer(_)
        | toml_edit::Value::Float(_)
        | toml_edit::Value::Boolean(_)
        | toml_edit::Value::Datetime(_) => {
            Value::Other(text.get(span.clone()).unwrap_or_default().to_owned())
        }
    };
    Ok(Node { span, value, is_shared: false })
}
