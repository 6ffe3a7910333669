//! Reads members of authorization servers' JSON documents with the strict parser of `contract`: a
//! repeated member makes a document invalid.

use crate::secret::Secret;
use contract::json::{Document, Node};

/// The most scopes accepted from one place.
pub(crate) const MAX_SCOPES: usize = 100;
/// The most items accepted in any other list, and the longest text.
const MAX_ITEMS: usize = 100;
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A description of the fault in a document.
pub(crate) type Problem = &'static str;

/// One JSON object.
pub(crate) struct Members<'d>(Node<'d>);

/// Parses a document and passes its members to `read`.
pub(crate) fn object<T>(
    bytes: &[u8],
    read: impl FnOnce(&Members<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let document = Document::parse_bytes(bytes).map_err(|_| "it is not valid JSON")?;
    let root = document.root();
    if !root.is_object() {
        return Err("it is not a JSON object");
    }
    read(&Members(root))
}

impl Members<'_> {
    /// A member; null counts as absent.
    fn get(&self, name: &str) -> Option<Node<'_>> {
        self.0.get(name).filter(|node| !node.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let text = node.as_str().ok_or("a member that has to be a text is not")?;
        match text.len() <= MAX_TEXT_BYTES {
            true => Ok(Some(text.into_owned())),
            false => Err("a text in it is too long"),
        }
    }

    pub(crate) fn needed(&self, name: &str, missing: Problem) -> Result<String, Problem> {
        self.text(name)?.filter(|text| !text.is_empty()).ok_or(missing)
    }

    /// A list of texts; `None` if the member is absent.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Problem> {
        let Some(node) = self.get(name) else { return Ok(None) };
        if !node.is_array() {
            return Err("a member that has to be a list is not");
        }
        let mut texts = Vec::new();
        for item in node.items() {
            let text = item.as_str().ok_or("an item that has to be a text is not")?;
            if texts.len() == MAX_ITEMS || text.len() > MAX_TEXT_BYTES {
                return Err("a list in it is too long");
            }
            texts.push(text.into_owned());
        }
        Ok(Some(texts))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        let Some(node) = self.get(name) else { return Ok(false) };
        node.as_bool().ok_or("a member that has to be true or false is not")
    }

    /// A token, which may be longer than other texts.
    pub(crate) fn token(&self, name: &str) -> Result<Option<Secret>, Problem> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let text = node.as_str().ok_or("a token in it is not a text")?;
        crate::token::checked(text.into_owned()).map(Some)
    }

    /// A nonnegative integer. Some servers write it as a text.
    pub(crate) fn whole(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let wrong = "a member that has to be a whole number is not";
        let text = node.as_str();
        let number = node.as_number().or(text.as_deref()).ok_or(wrong)?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = Some(number).filter(|_| is_plain).and_then(|number| number.parse().ok());
        number.map(Some).ok_or(wrong)
    }
}

/// The error code of RFC 6749 §5.2. The server chose the text, so it is shown only if it looks like
/// a code.
pub(crate) fn error_code(body: &[u8]) -> Option<String> {
    let code = object(body, |members| members.text("error")).ok()??;
    plain_code(&code)
}

/// The code, if it looks like one.
pub(crate) fn plain_code(code: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    ((1..=64).contains(&code.len()) && code.bytes().all(is_plain)).then(|| code.to_owned())
}
