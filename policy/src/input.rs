//! Converts the JSON arguments of a call into the typed `context.input` that policies read.

use crate::typing::{InputMember, InputShape, InputType};
use cedar_policy::{Context, RestrictedExpression};
use contract::decimal::Decimal;
use contract::json::{Document, Node, ReadError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why arguments do not fit the accepted type. Each of these denies the call if a policy reads the
/// input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("the arguments cannot be read: {0}")]
    Unreadable(#[from] ReadError),
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    #[error("`{path}` is not {expected}")]
    WrongType { path: String, expected: &'static str },
    #[error("`{path}` is required and missing")]
    Missing { path: String },
    #[error("`{path}` is a number that policies cannot compare exactly")]
    NumberRange { path: String },
}

/// The context for a call. `None` counts as `{}`. Members without a type are omitted.
pub(crate) fn context_of(shape: &InputShape, input: Option<&[u8]>) -> Result<Context, InputError> {
    let document = Document::parse_bytes(input.unwrap_or(b"{}"))?;
    let root = document.root();
    if !root.is_object() {
        return Err(InputError::NotAnObject);
    }
    let record = record(&shape.members, root, &mut Vec::new())?;
    context_with(record)
}

/// The context for policies that do not read the input.
pub(crate) fn empty_context() -> Context {
    Context::empty()
}

fn context_with(record: RestrictedExpression) -> Result<Context, InputError> {
    Context::from_pairs([("input".to_owned(), record)]).map_err(|_| InputError::NotAnObject)
}

fn record(
    members: &BTreeMap<Arc<str>, InputMember>,
    object: Node<'_>,
    path: &mut Vec<String>,
) -> Result<RestrictedExpression, InputError> {
    let mut fields = Vec::with_capacity(members.len());
    for (name, member) in members {
        path.push(name.to_string());
        match object.get(name) {
            Some(value) if !value.is_null() || member.required => {
                fields.push((name.to_string(), expression(&member.of, value, path)?));
            }
            _ if member.required => return Err(InputError::Missing { path: path.join(".") }),
            _ => {}
        }
        path.pop();
    }
    RestrictedExpression::new_record(fields).map_err(|_| InputError::NotAnObject)
}

fn expression(
    of: &InputType,
    value: Node<'_>,
    path: &mut Vec<String>,
) -> Result<RestrictedExpression, InputError> {
    let wrong = |expected| InputError::WrongType { path: path.join("."), expected };
    match of {
        InputType::String => {
            let text = value.as_str().ok_or_else(|| wrong("a string"))?;
            Ok(RestrictedExpression::new_string(text.into_owned()))
        }
        InputType::Bool => {
            Ok(RestrictedExpression::new_bool(value.as_bool().ok_or_else(|| wrong("a boolean"))?))
        }
        InputType::Long => {
            let number = Decimal::parse(value.as_number().ok_or_else(|| wrong("an integer"))?);
            if !number.is_integer() {
                return Err(wrong("an integer"));
            }
            let long = number.to_i128().and_then(|number| i64::try_from(number).ok());
            long.map(RestrictedExpression::new_long)
                .ok_or_else(|| InputError::NumberRange { path: path.join(".") })
        }
        InputType::Decimal => {
            let text = decimal_text(value.as_number().ok_or_else(|| wrong("a number"))?);
            text.map(RestrictedExpression::new_decimal)
                .ok_or_else(|| InputError::NumberRange { path: path.join(".") })
        }
        InputType::Set(element) => {
            if !value.is_array() {
                return Err(wrong("an array"));
            }
            let items: Result<Vec<_>, _> =
                value.items().map(|item| expression(element, item, path)).collect();
            Ok(RestrictedExpression::new_set(items?))
        }
        InputType::Record(members) => {
            if !value.is_object() {
                return Err(wrong("an object"));
            }
            record(members, value, path)
        }
    }
}

/// The number in Cedar's decimal notation, if it fits: at most four digits after the point, and an
/// `i64` of ten-thousandths.
fn decimal_text(spelling: &str) -> Option<String> {
    let (mantissa, exponent) = spelling.split_once(['e', 'E']).unwrap_or((spelling, "0"));
    let exponent = exponent.parse::<i64>().ok()?.checked_add(4)?;
    let scaled = Decimal::parse(&format!("{mantissa}e{exponent}")).to_i128()?;
    let scaled = i64::try_from(scaled).ok()?;
    let sign = if scaled < 0 { "-" } else { "" };
    let magnitude = scaled.unsigned_abs();
    Some(format!("{sign}{}.{:04}", magnitude / 10_000, magnitude % 10_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typing::type_of_schema;

    fn check(schema: &str, input: &str, expected: Result<&str, &str>) {
        let shape = type_of_schema(schema.as_bytes());
        let found = context_of(&shape, Some(input.as_bytes()));
        let found = found.map(|context| format!("{context}")).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{input}");
    }

    const SCHEMA: &str = r#"{"type":"object","required":["path"],"properties":{
        "path":{"type":"string"},"limit":{"type":"integer"},"ratio":{"type":"number"},
        "tags":{"type":"array","items":{"type":"string"}},"free":{}}}"#;

    #[test]
    fn typed_members_are_taken_and_others_left_out() {
        check(
            SCHEMA,
            r#"{"path":"/a","limit":1e2,"free":[1],"other":2,"tags":null}"#,
            Ok(r#"{input: {limit: 100, path: "/a"}}"#),
        );
        check(
            SCHEMA,
            r#"{"path":"","ratio":-0.5,"tags":["b","b"]}"#,
            Ok(r#"{input: {path: "", ratio: decimal("-0.5000"), tags: ["b"]}}"#),
        );
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        check(SCHEMA, r#"{"path":1}"#, Err("`path` is not a string"));
        check(SCHEMA, r#"{"path":null}"#, Err("`path` is not a string"));
        check(SCHEMA, r#"{}"#, Err("`path` is required and missing"));
        check(SCHEMA, r#"[]"#, Err("the arguments are not a JSON object"));
        check(SCHEMA, r#"{"path":"","limit":1.5}"#, Err("`limit` is not an integer"));
        check(SCHEMA, r#"{"path":"","tags":[1]}"#, Err("`tags` is not a string"));
        let range = Err("`limit` is a number that policies cannot compare exactly");
        check(SCHEMA, r#"{"path":"","limit":9223372036854775808}"#, range);
        check(SCHEMA, r#"{"path":"","limit":1e400}"#, range);
        let range = Err("`ratio` is a number that policies cannot compare exactly");
        check(SCHEMA, r#"{"path":"","ratio":0.00001}"#, range);
        check(SCHEMA, r#"{"path":"","ratio":922337203685477.5808}"#, range);
    }

    #[test]
    fn a_member_that_appears_twice_is_refused() {
        let shape = type_of_schema(SCHEMA.as_bytes());
        let error = context_of(&shape, Some(br#"{"path":"/a","path":"/b"}"#)).unwrap_err();
        assert!(matches!(error, InputError::Unreadable(ReadError::DuplicateMember { .. })));
    }
}
