//! Arguments that are also sent as headers, as in revision 2026-07-28: `x-mcp-header` in a tool's
//! input schema names the header `Mcp-Param-…` that its caller copies an argument into.
//!
//! Neither side is trusted: the schema is the server's, and the arguments are whatever a model
//! wrote. Both reach a header only as a validated token or as an encoded value.

use super::limits::{MAX_PARAMETER_HEADER_BYTES, MAX_PARAMETER_HEADERS, MAX_PARAMETER_NAME_BYTES};
use super::names;
use crate::envelope::members;
use contract::json::{Document, Node};
use http::{HeaderName, HeaderValue};
use std::collections::HashSet;
use std::fmt;

/// The prefix of all such headers.
pub(crate) const PREFIX: &str = "mcp-param-";

const ANNOTATION: &str = "x-mcp-header";
/// The largest absolute value of an integer that every JSON reader parses exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// Keywords whose values are data rather than schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];
/// Keywords whose values map arbitrary names to schemas.
const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "dependentRequired",
];

/// Which of a tool's arguments are sent in which headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MirroredParameters {
    parameters: Vec<Mirrored>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirrored {
    /// The member names on the path to the argument.
    path: Vec<Box<str>>,
    header: HeaderName,
}

/// Why a tool cannot be called as its definition requires. Contains nothing that the server wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAnnotation {
    #[error("the input schema is not one JSON object")]
    NoSchema,
    #[error(
        "an `x-mcp-header` is not the name of a header, or longer than {MAX_PARAMETER_NAME_BYTES} bytes"
    )]
    NotAName,
    #[error("two parameters have the same `x-mcp-header`")]
    Repeated,
    #[error("an `x-mcp-header` is on a parameter that is not a string, an integer or a boolean")]
    NotPrimitive,
    #[error("an `x-mcp-header` is at a place that holds no argument")]
    OutOfReach,
    #[error("more than {MAX_PARAMETER_HEADERS} parameters have an `x-mcp-header`")]
    TooMany,
}

/// Why the arguments of a call cannot be copied into headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unmirrored {
    #[error("an argument that is mirrored in a header appears twice")]
    Ambiguous,
    #[error(
        "an argument that is mirrored in a header is not a string, a boolean or a whole number between -(2^53 - 1) and 2^53 - 1"
    )]
    NotRepresentable,
    #[error("the arguments that are mirrored in headers are too long")]
    TooLong,
}

/// A header made from an argument.
#[derive(Clone, PartialEq, Eq)]
pub struct ParameterHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

impl ParameterHeader {
    /// In lower case, because header names are case-insensitive.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    pub fn value(&self) -> &[u8] {
        self.value.as_bytes()
    }
}

impl fmt::Debug for ParameterHeader {
    /// The value is an argument, so it is not shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ParameterHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MirroredParameters {
    /// Reads the definition of a tool as raw JSON. An HTTP client must refuse a tool whose
    /// annotations break any rule.
    pub fn of_tool(definition: &str) -> Result<MirroredParameters, BadAnnotation> {
        // Most tools have no annotations. The name may also be written with escapes.
        if !definition.contains(ANNOTATION) && !definition.contains("\\u") {
            return Ok(MirroredParameters::default());
        }
        let document = Document::parse(definition).map_err(|_| BadAnnotation::NoSchema)?;
        let Some(schema) = document.root().get("inputSchema") else {
            return Ok(MirroredParameters::default());
        };
        let mut reading = Reading::default();
        reading.schema(schema, &mut Vec::new(), true)?;
        Ok(MirroredParameters { parameters: reading.found })
    }

    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// The names of the headers that the definition requires.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|mirrored| mirrored.header.as_str())
    }

    /// The headers for a call, from its `arguments` as raw JSON. An argument that is absent or null
    /// gets no header.
    pub fn headers(&self, arguments: Option<&[u8]>) -> Result<Vec<ParameterHeader>, Unmirrored> {
        let Some(arguments) = arguments else { return Ok(Vec::new()) };
        let mut headers = Vec::new();
        let mut bytes = 0_usize;
        for Mirrored { path, header } in &self.parameters {
            let Some(value) = value_at(arguments, path)? else { continue };
            let Some(text) = text_of(value)? else { continue };
            let value = names::header_value(&text).ok_or(Unmirrored::TooLong)?;
            bytes = bytes.saturating_add(header.as_str().len()).saturating_add(value.len());
            if bytes > MAX_PARAMETER_HEADER_BYTES {
                return Err(Unmirrored::TooLong);
            }
            headers.push(ParameterHeader { name: header.clone(), value });
        }
        Ok(headers)
    }
}

/// Collects the annotations of a schema.
#[derive(Default)]
struct Reading {
    found: Vec<Mirrored>,
    names: HashSet<HeaderName>,
}

impl Reading {
    /// Reads a schema. An annotation is allowed only if nothing but `properties` leads to it.
    fn schema(
        &mut self,
        schema: Node<'_>,
        path: &mut Vec<Box<str>>,
        is_reached: bool,
    ) -> Result<(), BadAnnotation> {
        for (keyword, value) in schema.members() {
            let keyword = keyword.as_str().unwrap_or_default();
            match &*keyword {
                ANNOTATION if !is_reached || path.is_empty() => {
                    return Err(BadAnnotation::OutOfReach);
                }
                ANNOTATION => self.annotation(schema, value, path)?,
                "properties" => {
                    for (name, property) in value.members() {
                        path.push(name.as_str().unwrap_or_default().into());
                        self.schema(property, path, is_reached)?;
                        path.pop();
                    }
                }
                keyword if DATA.contains(&keyword) => {}
                keyword if NAMED.contains(&keyword) => {
                    for (_, named) in value.members() {
                        self.schema(named, path, false)?;
                    }
                }
                _ => {
                    self.schema(value, path, false)?;
                    for item in value.items() {
                        self.schema(item, path, false)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        schema: Node<'_>,
        name: Node<'_>,
        path: &[Box<str>],
    ) -> Result<(), BadAnnotation> {
        if self.found.len() == MAX_PARAMETER_HEADERS {
            return Err(BadAnnotation::TooMany);
        }
        let name = name.as_str().unwrap_or_default();
        if name.is_empty() || name.len() > MAX_PARAMETER_NAME_BYTES || !name.bytes().all(is_token) {
            return Err(BadAnnotation::NotAName);
        }
        let header = HeaderName::from_bytes(format!("{PREFIX}{name}").as_bytes())
            .map_err(|_| BadAnnotation::NotAName)?;
        if !schema.get("type").is_some_and(is_primitive) {
            return Err(BadAnnotation::NotPrimitive);
        }
        // Header names are case-insensitive, and this type stores them in lower case.
        if !self.names.insert(header.clone()) {
            return Err(BadAnnotation::Repeated);
        }
        self.found.push(Mirrored { path: path.to_vec(), header });
        Ok(())
    }
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a `type` only allows values that a header can represent; null is represented by no
/// header.
fn is_primitive(kind: Node<'_>) -> bool {
    let is_one = |kind: Node<'_>| ["string", "integer", "boolean"].iter().any(|t| kind.is_text(t));
    if kind.is_array() {
        let mut kinds = kind.items();
        return kind.items().any(is_one) && kinds.all(|kind| is_one(kind) || kind.is_text("null"));
    }
    is_one(kind)
}

/// The raw value at a path of member names.
fn value_at<'a>(arguments: &'a [u8], path: &[Box<str>]) -> Result<Option<&'a [u8]>, Unmirrored> {
    let mut value = arguments;
    for name in path {
        let mut named = members(value).filter(|(known, _)| **known == **name);
        let Some((_, found)) = named.next() else { return Ok(None) };
        // INVARIANT: the header has the value that every reader of the body finds there.
        if named.next().is_some() {
            return Err(Unmirrored::Ambiguous);
        }
        value = found;
    }
    Ok(Some(value))
}

/// The text of a value in a header; `None` for null.
fn text_of(value: &[u8]) -> Result<Option<String>, Unmirrored> {
    let document = Document::parse_bytes(value).map_err(|_| Unmirrored::NotRepresentable)?;
    let value = document.root();
    if value.is_null() {
        return Ok(None);
    }
    let boolean = value.as_bool().map(|value| value.to_string());
    let text = value.as_str().map(std::borrow::Cow::into_owned).or(boolean);
    let text = text.or_else(|| whole_number(value.as_number()?));
    text.map(Some).ok_or(Unmirrored::NotRepresentable)
}

/// An integer in decimal digits, however it is spelled. Returns `None` if it has a fraction or is
/// out of the safe range.
fn whole_number(token: &str) -> Option<String> {
    let (sign, token) = token.strip_prefix('-').map_or(("", token), |rest| ("-", rest));
    let (mantissa, exponent) = match token.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (token, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    let zeros = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    let power = 10_u64.checked_pow(u32::try_from(zeros).ok()?)?;
    let number = significant.parse::<u64>().ok()?.checked_mul(power)?;
    (number <= MAX_SAFE_INTEGER).then(|| format!("{sign}{number}"))
}

#[cfg(test)]
mod tests;
