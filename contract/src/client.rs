//! What a client says that it can do. Servers may offer other tools by it, so who looks at a server in a client's place
//! has to say the same. Nothing else of a client is in it.

use crate::canonical::{Position, canonical_text};
use crate::json::{Document, Node, ReadError};
use std::fmt;

/// The largest capabilities that are remembered, as they came and in canonical form.
pub const MAX_CAPABILITIES_BYTES: usize = 16 * 1024;
/// How deeply they may be nested, the object itself counted.
pub const MAX_CAPABILITIES_DEPTH: usize = 32;

/// A client's `capabilities`: one JSON object in canonical form, on one line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientCapabilities(String);

/// Why capabilities are not remembered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilitiesError {
    #[error("larger than {MAX_CAPABILITIES_BYTES} bytes")]
    TooLarge,
    #[error("nested deeper than {MAX_CAPABILITIES_DEPTH} levels")]
    TooDeep,
    #[error("not an object")]
    NotAnObject,
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

impl ClientCapabilities {
    /// Reads them from what a client sent.
    pub fn read(bytes: &[u8]) -> Result<ClientCapabilities, CapabilitiesError> {
        if bytes.len() > MAX_CAPABILITIES_BYTES {
            return Err(CapabilitiesError::TooLarge);
        }
        let document = Document::parse_bytes(bytes)?;
        let root = document.root();
        if !root.is_object() {
            return Err(CapabilitiesError::NotAnObject);
        }
        if !is_within(root, MAX_CAPABILITIES_DEPTH) {
            return Err(CapabilitiesError::TooDeep);
        }
        // Numbers may be longer in canonical form, and what is remembered has to be read again.
        let text = canonical_text(root, Position::Plain);
        if text.len() > MAX_CAPABILITIES_BYTES {
            return Err(CapabilitiesError::TooLarge);
        }
        Ok(ClientCapabilities(text))
    }

    /// Canonical JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the client says that it can do this.
    pub fn declares(&self, name: &str) -> bool {
        let document = Document::parse(&self.0);
        document.is_ok_and(|document| document.root().get(name).is_some_and(|said| !said.is_null()))
    }
}

impl Default for ClientCapabilities {
    /// Those of a client that can do nothing.
    fn default() -> Self {
        ClientCapabilities("{}".to_owned())
    }
}

impl fmt::Display for ClientCapabilities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for ClientCapabilities {
    type Error = CapabilitiesError;

    fn try_from(text: String) -> Result<Self, CapabilitiesError> {
        ClientCapabilities::read(text.as_bytes())
    }
}

impl From<ClientCapabilities> for String {
    fn from(capabilities: ClientCapabilities) -> String {
        capabilities.0
    }
}

/// The parser bounds the recursion.
fn is_within(node: Node<'_>, levels: usize) -> bool {
    if !node.is_object() && !node.is_array() {
        return true;
    }
    let Some(below) = levels.checked_sub(1) else { return false };
    node.items().all(|item| is_within(item, below))
        && node.members().all(|(_, value)| is_within(value, below))
}

#[cfg(test)]
mod tests;
