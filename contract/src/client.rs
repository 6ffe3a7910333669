//! The capabilities that a client declares. A server may offer different tools depending on them,
//! so listing a server on a client's behalf must send the same ones. This module keeps nothing else
//! about a client.

use crate::canonical::{Position, canonical_text};
use crate::json::{Document, Node, ReadError};
use std::fmt;

/// The largest capabilities that are stored, measured both as received and in canonical form.
pub const MAX_CAPABILITIES_BYTES: usize = 16 * 1024;
/// The deepest nesting allowed, counting the object itself.
pub const MAX_CAPABILITIES_DEPTH: usize = 32;

/// A client's `capabilities`: one JSON object in canonical form, on one line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientCapabilities(String);

/// Why a client's capabilities are not stored.
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
    /// Reads the capabilities from the bytes that a client sent.
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
        // Numbers may be longer in canonical form, and the stored text must itself be readable
        // again.
        let text = canonical_text(root, Position::Plain);
        if text.len() > MAX_CAPABILITIES_BYTES {
            return Err(CapabilitiesError::TooLarge);
        }
        Ok(ClientCapabilities(text))
    }

    /// The capabilities as canonical JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the client declares this capability.
    pub fn declares(&self, name: &str) -> bool {
        let document = Document::parse(&self.0);
        document.is_ok_and(|document| document.root().get(name).is_some_and(|said| !said.is_null()))
    }
}

impl Default for ClientCapabilities {
    /// The capabilities of a client that declares none.
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

/// Recursion depth is bounded by the parser.
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
