//! The ids of servers in the directory: `npm:NAME`, `pypi:NAME`, or the name assigned by a
//! registry.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest id, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// The id of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubjectId(String);

/// The text is not the id of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a server's id is `npm:NAME`, `pypi:NAME` or a registry's name: up to {MAX_ID_BYTES} letters, digits and `@/._:~-`"
)]
pub struct BadSubject;

/// The registry of a server's package, according to its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageRegistry {
    Npm,
    Pypi,
}

impl PackageRegistry {
    pub const fn as_str(self) -> &'static str {
        match self {
            PackageRegistry::Npm => "npm",
            PackageRegistry::Pypi => "pypi",
        }
    }
}

impl SubjectId {
    pub fn package(registry: PackageRegistry, name: &str) -> Result<SubjectId, BadSubject> {
        format!("{}:{name}", registry.as_str()).parse()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The registry and name of a package, if the id names one.
    pub fn as_package(&self) -> Option<(PackageRegistry, &str)> {
        let (registry, name) = self.0.split_once(':')?;
        match registry {
            "npm" => Some((PackageRegistry::Npm, name)),
            "pypi" => Some((PackageRegistry::Pypi, name)),
            _ => None,
        }
    }

    /// The id encoded as one segment of a URL path.
    pub fn encoded(&self) -> String {
        encode_segment(&self.0)
    }
}

/// Encodes any text as one segment of a URL path.
pub fn encode_segment(text: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b'@')
        .remove(b':');
    // Browsers treat these two as path navigation, and they have no other encoding.
    match text {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        text => percent_encoding::utf8_percent_encode(text, KEPT).to_string(),
    }
}

/// Reverses [`encode_segment`].
pub fn decode_segment(text: &str) -> Option<String> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

impl FromStr for SubjectId {
    type Err = BadSubject;

    fn from_str(text: &str) -> Result<SubjectId, BadSubject> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"@/._:~-".contains(&byte);
        let is_id = (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(is_known);
        let has_name = match text.split_once(':') {
            Some(("npm", name)) => is_npm_name(name),
            Some(("pypi", name)) => is_plain_name(name),
            Some(_) => false,
            None => true,
        };
        (is_id && has_name).then(|| SubjectId(text.to_owned())).ok_or(BadSubject)
    }
}

/// Whether an installer would take the name for a package, and not for an option, a path or a
/// repository (`owner/name`).
fn is_npm_name(name: &str) -> bool {
    match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_plain_name(scope) && is_plain_name(name)),
        None => is_plain_name(name),
    }
}

fn is_plain_name(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    name.bytes().all(is_known) && !name.is_empty() && !name.starts_with(['-', '.', '~'])
}

impl TryFrom<String> for SubjectId {
    type Error = BadSubject;

    fn try_from(text: String) -> Result<SubjectId, BadSubject> {
        text.parse()
    }
}

impl From<SubjectId> for String {
    fn from(id: SubjectId) -> String {
        id.0
    }
}

impl fmt::Display for SubjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_packages_and_of_registries_are_read() {
        let id: SubjectId = "npm:@scope/name".parse().unwrap();
        assert_eq!(id.as_package(), Some((PackageRegistry::Npm, "@scope/name")));
        assert_eq!(id.encoded(), "npm:@scope%2Fname");
        assert_eq!(decode_segment(&id.encoded()).as_deref(), Some("npm:@scope/name"));
        let id: SubjectId = "io.github.acme/weather".parse().unwrap();
        assert_eq!(id.as_package(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "npm:",
            "cargo:x",
            "npm:a:b",
            "a b",
            "a\u{e9}",
            "a\n",
            "<script>",
            "a?b",
            // Names that an installer would take for an option, a path or a repository.
            "npm:-g",
            "npm:../x",
            "npm:./x",
            "npm:/etc/x",
            "npm:~/x",
            "npm:owner/name",
            "npm:@a",
            "npm:@a/../b",
            "npm:a@1",
            "pypi:-r",
            "pypi:a/b",
            "pypi:.",
            "pypi:@a/b",
        ] {
            assert_eq!(text.parse::<SubjectId>(), Err(BadSubject), "{text}");
        }
        assert!("a".repeat(MAX_ID_BYTES).parse::<SubjectId>().is_ok());
        assert!("a".repeat(MAX_ID_BYTES + 1).parse::<SubjectId>().is_err());
    }

    #[test]
    fn no_name_of_a_tool_becomes_a_step_in_a_path() {
        for name in ["..", ".", "a/b", "a?b#c", "\u{202e}x", "100%"] {
            let encoded = encode_segment(name);
            assert!(encoded != ".." && encoded != "." && !encoded.contains(['/', '?', '#']));
            assert_eq!(decode_segment(&encoded).as_deref(), Some(name));
        }
    }
}
