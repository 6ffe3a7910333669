//! JSON as hosts write it: comments and trailing commas are accepted, but nothing looser.

use super::{List, MAX_DEPTH, Map, Member, Node, Style, SyntaxError, Value};
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

pub(super) fn parse(text: &str) -> Result<Option<Node>, SyntaxError> {
    // Refuse what only some parsers accept: a host that reads it differently would start another
    // program.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        SyntaxError::Wrong {
            line: error.line_display(),
            column: error.column_display(),
            what: error.kind().to_string().to_lowercase(),
        }
    })?;
    parsed.value.as_ref().map(|value| node(value, text, 0)).transpose()
}

fn node(value: &ast::Value<'_>, text: &str, depth: usize) -> Result<Node, SyntaxError> {
    if depth > MAX_DEPTH {
        return Err(SyntaxError::TooDeep);
    }
    let span = value.range().start..value.range().end;
    let spelled = || Value::Other(text.get(span.clone()).unwrap_or_default().to_owned());
    let value = match value {
        ast::Value::StringLit(string) => Value::Text(string.value.clone().into_owned()),
        ast::Value::NumberLit(_) | ast::Value::BooleanLit(_) | ast::Value::NullKeyword(_) => {
            spelled()
        }
        ast::Value::Array(array) => {
            let items = array.elements.iter().map(|item| node(item, text, depth + 1));
            Value::List(List { items: items.collect::<Result<_, _>>()?, style: Style::Flow })
        }
        ast::Value::Object(object) => {
            let members = object.properties.iter().map(|property| {
                let range = property.name.range();
                Ok(Member {
                    key: property.name.as_str().to_owned(),
                    key_span: range.start..range.end,
                    node: node(&property.value, text, depth + 1)?,
                })
            });
            Value::Map(Map {
                members: members.collect::<Result<_, _>>()?,
                style: Style::Flow,
                is_dotted: false,
            })
        }
    };
    Ok(Node { span, value, is_shared: false })
}
