//! The host through which a remote server was reached.

use crate::limits::MAX_TEXT_BYTES;
use crate::target::Match;
use std::fmt;

/// A host with its port if known: `a.example`, `a.example:8443`, `[::1]:8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a host: expected `a.example`, `a.example:8443` or `[::1]:8443`")]
pub struct BadHost {
    text: String,
}

impl Host {
    pub fn parse(text: &str) -> Result<Host, BadHost> {
        let bad = || BadHost { text: text.chars().take(MAX_TEXT_BYTES).collect() };
        let (name, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or_else(bad)?;
            let is_address = address
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.');
            if address.is_empty() || !is_address {
                return Err(bad());
            }
            let port =
                if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(bad)?) };
            (format!("[{}]", address.to_ascii_lowercase()), port)
        } else {
            let (name, port) =
                text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
            let is_name =
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            if name.is_empty() || !is_name {
                return Err(bad());
            }
            (name.to_ascii_lowercase(), port)
        };
        if name.len() > MAX_TEXT_BYTES {
            return Err(bad());
        }
        let port = port.map(|port| read_port(port).ok_or_else(bad)).transpose()?;
        Ok(Host { name, port })
    }

    /// Whether an entry of `netAllowedHosts` names this host, either by its name alone or with its
    /// port. There are no wildcards, and only letter case is ignored.
    pub(crate) fn compare(&self, entry: &str) -> Match {
        if self.name.eq_ignore_ascii_case(entry) {
            return Match::Same;
        }
        match (self.port, entry.rsplit_once(':')) {
            // Compared as text: `00443` is a different spelling, which another reader may take for
            // a different port.
            (Some(port), Some((name, text)))
                if port.to_string() == text && self.name.eq_ignore_ascii_case(name) =>
            {
                Match::Same
            }
            _ => Match::Other,
        }
    }
}

/// Accepts digits only; the integer parser would also accept a sign.
fn read_port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

impl std::str::FromStr for Host {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Host, BadHost> {
        Host::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, entry: &str, expected: Match) {
        assert_eq!(Host::parse(host).unwrap().compare(entry), expected, "{host} and {entry}");
    }

    #[test]
    fn an_entry_names_a_host_with_or_without_its_port() {
        check("a.example", "a.example", Match::Same);
        check("A.Example", "a.eXample", Match::Same);
        check("a.example:8443", "a.example", Match::Same);
        check("a.example:8443", "a.example:8443", Match::Same);
        check("[::1]:8443", "[::1]", Match::Same);
        check("[::1]:8443", "[::1]:8443", Match::Same);
    }

    #[test]
    fn anything_else_is_another_host() {
        check("a.example", "b.example", Match::Other);
        check("a.example", "*.example", Match::Other);
        check("a.example", "example", Match::Other);
        check("a.example", "a.example.", Match::Other);
        check("a.example", " a.example", Match::Other);
        check("a.example", "", Match::Other);
        check("a.example", "a.example:443", Match::Other);
        check("a.example:443", "a.example:8443", Match::Other);
        check("a.example:443", "a.example:+443", Match::Other);
        check("a.example:443", "a.example:00443", Match::Other);
        check("a.example:443", "https://a.example:443", Match::Other);
        check("xa.example", "a.example", Match::Other);
        check("[::1]", "[::2]", Match::Other);
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ":1",
            "a b",
            "a/b",
            "a@b",
            "a:",
            "a:x",
            "a:70000",
            "a:+1",
            "[",
            "[]",
            "[::1]x",
            "ä.example",
        ] {
            assert!(Host::parse(text).is_err(), "{text}");
        }
        assert!(Host::parse(&"a".repeat(MAX_TEXT_BYTES)).is_ok());
        assert!(Host::parse(&"a".repeat(MAX_TEXT_BYTES + 1)).is_err());
    }
}
