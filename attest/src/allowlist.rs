//! The tools of a server that may be used: a closed list, compared byte for byte, regardless of
//! what the server lists.

use crate::denial::{Denial, Reason};
use crate::limits::{MAX_TEXT_BYTES, MAX_TOOLS};
use std::collections::HashSet;

/// The only tools that may be used.
#[derive(Debug)]
pub struct ToolAllowlist {
    names: HashSet<Box<str>>,
}

/// Why names do not form a valid allowlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowlistError {
    #[error("a tool's name has 1 to {MAX_TEXT_BYTES} bytes")]
    Name,
    #[error("more than {MAX_TOOLS} tools")]
    TooMany,
}

impl ToolAllowlist {
    /// Creates a list from names. An empty list is valid: no tool may be used.
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<ToolAllowlist, AllowlistError> {
        let mut list = HashSet::new();
        for name in names {
            if name.is_empty() || name.len() > MAX_TEXT_BYTES {
                return Err(AllowlistError::Name);
            }
            list.insert(Box::from(name));
            if list.len() > MAX_TOOLS {
                return Err(AllowlistError::TooMany);
            }
        }
        Ok(ToolAllowlist { names: list })
    }

    /// Checks whether a tool may be used. Nothing is trimmed, folded or normalized: one different
    /// byte means a different tool.
    pub fn check(&self, tool: &str) -> Result<(), Denial> {
        if self.names.contains(tool) {
            return Ok(());
        }
        let detail = "the tool is not on the list of those that may be used on this server";
        Err(Denial::new(None, Reason::ToolNotAdmitted, detail))
    }

    /// The number of tools on the list.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_admitted() {
        let list = ToolAllowlist::new(["search", "read"]).unwrap();
        assert_eq!(list.check("search"), Ok(()));
        for name in ["", "Search", "search ", "sear", "searchread", "write"] {
            assert_eq!(list.check(name).unwrap_err().reason(), Reason::ToolNotAdmitted, "{name}");
        }
        assert!(ToolAllowlist::new([]).unwrap().check("search").is_err());
    }

    #[test]
    fn a_list_ends_at_its_limits() {
        let long = "a".repeat(MAX_TEXT_BYTES);
        assert_eq!(ToolAllowlist::new([long.as_str()]).unwrap().check(&long), Ok(()));
        let longer = "a".repeat(MAX_TEXT_BYTES + 1);
        assert_eq!(ToolAllowlist::new([longer.as_str()]).unwrap_err(), AllowlistError::Name);
        assert_eq!(ToolAllowlist::new([""]).unwrap_err(), AllowlistError::Name);
        let names: Vec<String> = (0..=MAX_TOOLS).map(|number| format!("t{number}")).collect();
        let most = names.iter().take(MAX_TOOLS).map(String::as_str);
        assert_eq!(ToolAllowlist::new(most).unwrap().len(), MAX_TOOLS);
        let more = names.iter().map(String::as_str);
        assert_eq!(ToolAllowlist::new(more).unwrap_err(), AllowlistError::TooMany);
    }
}
