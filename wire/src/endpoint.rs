//! URLs, parsed once by the `url` crate and passed on as parts.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use url::{Host, Position, SyntaxViolation, Url};

/// The longest endpoint URL that is accepted.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Why a text is refused as a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("not a URL that can be used; expected something like `https://example.com/mcp`")]
    NotAUrl,
    #[error("the URL must begin with `https://`, or with `http://` for a loopback address")]
    Scheme,
    #[error("a user name or password in the URL is not accepted; give it as a header")]
    Credentials,
    #[error("the URL must not have a fragment (`#…`)")]
    Fragment,
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
}

/// A URL with a host and without credentials that needs no repair: another parser might repair it
/// differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainUrl {
    pub url: Url,
    /// In lower case; an IPv6 address without its brackets.
    pub host: String,
    /// The port as written, even if it is the scheme's default.
    pub port: Option<u16>,
}

impl FromStr for PlainUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<PlainUrl, BadUrl> {
        let repaired = Cell::new(None);
        let note = |violation| match violation {
            SyntaxViolation::EmbeddedCredentials | SyntaxViolation::UnencodedAtSign => {
                repaired.set(Some(BadUrl::Credentials));
            }
            SyntaxViolation::Backslash
            | SyntaxViolation::C0SpaceIgnored
            | SyntaxViolation::ExpectedDoubleSlash
            | SyntaxViolation::TabOrNewlineIgnored => repaired.set(Some(BadUrl::NotAUrl)),
            // Characters of a path or query that are sent percent-encoded.
            _ => {}
        };
        let url = Url::options().syntax_violation_callback(Some(&note)).parse(text);
        let url = url.map_err(|_| BadUrl::NotAUrl)?;
        if let Some(bad) = repaired.get() {
            return Err(bad);
        }
        let host = match url.host().ok_or(BadUrl::NotAUrl)? {
            Host::Domain(name) => name.to_ascii_lowercase(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let port = match written_port(text) {
            Some(port) => Some(port.parse().map_err(|_| BadUrl::NotAUrl)?),
            None => None,
        };
        Ok(PlainUrl { url, host, port })
    }
}

/// The port as written: `url` drops a default port and an empty one.
fn written_port(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let after_address = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_address.rsplit_once(':').map(|(_, port)| port)
}

/// The URL of a streamable HTTP endpoint: `https`, or `http` (only used for loopback addresses).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    /// The original text. Pins, ids and messages use it.
    text: String,
    /// Boxed to keep types that contain an endpoint small.
    plain: Box<PlainUrl>,
    named_by: NamedBy,
}

/// Who chose a URL, which decides what addresses it may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// The user of this machine, who may reach loopback.
    Operator,
    /// A registry or a web page: only https on port 443 to public addresses, unless private ones
    /// are allowed.
    Stranger,
}

impl EndpointUrl {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Treats the URL as chosen by a third party: it reaches no loopback address unless private
    /// addresses are allowed, and never a link-local address or a metadata service.
    #[must_use]
    pub fn of_stranger(self) -> EndpointUrl {
        EndpointUrl { named_by: NamedBy::Stranger, ..self }
    }

    pub(crate) fn named_by(&self) -> NamedBy {
        self.named_by
    }

    pub fn is_secure(&self) -> bool {
        self.plain.url.scheme() == "https"
    }

    /// The host's name or address; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.plain.host
    }

    pub fn port(&self) -> u16 {
        let usual = if self.is_secure() { 443 } else { 80 };
        self.plain.port.unwrap_or(usual)
    }

    /// The host with its port; an IPv6 address is in brackets.
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", self.plain.url.host_str().unwrap_or_default(), self.port())
    }

    pub(crate) fn without_query(&self) -> EndpointUrl {
        let text = self.text.split('?').next().unwrap_or_default().to_owned();
        let mut plain = self.plain.clone();
        plain.url.set_query(None);
        EndpointUrl { text, plain, named_by: self.named_by }
    }

    pub(crate) fn path_and_query(&self) -> &str {
        &self.plain.url[Position::BeforePath..Position::AfterQuery]
    }

    /// The value of the `Host` header: it has the port only if that is not the scheme's default.
    pub(crate) fn authority(&self) -> &str {
        &self.plain.url[Position::BeforeHost..Position::AfterPort]
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for EndpointUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        if text.len() > MAX_URL_BYTES {
            return Err(BadUrl::TooLong);
        }
        let plain: PlainUrl = text.parse()?;
        if !matches!(plain.url.scheme(), "https" | "http") {
            return Err(BadUrl::Scheme);
        }
        if plain.url.fragment().is_some() {
            return Err(BadUrl::Fragment);
        }
        let url = EndpointUrl {
            text: text.to_owned(),
            plain: Box::new(plain),
            named_by: NamedBy::Operator,
        };
        // The path and query must be valid in a request line.
        url.path_and_query().parse::<http::uri::PathAndQuery>().map_err(|_| BadUrl::NotAUrl)?;
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read() {
        let url: EndpointUrl = "https://Example.com/mcp?x=1".parse().unwrap();
        assert!(url.is_secure());
        assert_eq!((url.host(), url.port()), ("example.com", 443));
        assert_eq!((url.path_and_query(), url.authority()), ("/mcp?x=1", "example.com"));
        let url: EndpointUrl = "http://[::1]:3001".parse().unwrap();
        assert_eq!((url.host(), url.port()), ("::1", 3001));
        assert_eq!((url.path_and_query(), url.authority()), ("/", "[::1]:3001"));
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        let check = |text: &str, expected| {
            assert_eq!(text.parse::<EndpointUrl>(), Err(expected), "{text}");
        };
        check("example.com/mcp", BadUrl::NotAUrl);
        check("/mcp", BadUrl::NotAUrl);
        check("localhost:3000/mcp", BadUrl::NotAUrl);
        check("ftp://example.com/", BadUrl::Scheme);
        check("https://user:secret@example.com/", BadUrl::Credentials);
        check("https://example.com/#a", BadUrl::Fragment);
        check("https://example.com:99999/", BadUrl::NotAUrl);
        check("https://[::1]:x/", BadUrl::NotAUrl);
        check("https:///mcp", BadUrl::NotAUrl);
        check("https://example.com:/", BadUrl::NotAUrl);
        check("https:\\\\example.com/", BadUrl::NotAUrl);
        check(" https://example.com/", BadUrl::NotAUrl);
        check("https://exa\tmple.com/", BadUrl::NotAUrl);
        check("https://b\u{fc}cher.example/", BadUrl::NotAUrl);
        check("https://@example.com/", BadUrl::Credentials);
        check(&format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES)), BadUrl::TooLong);
    }

    #[test]
    fn a_url_at_the_limit_is_read() {
        let head = "https://example.com/";
        let text = format!("{head}{}", "a".repeat(MAX_URL_BYTES - head.len()));
        assert!(text.parse::<EndpointUrl>().is_ok());
        assert_eq!(format!("{text}a").parse::<EndpointUrl>(), Err(BadUrl::TooLong));
    }

    /// Pins and ids are derived from the text, so every spelling must be preserved.
    #[test]
    fn a_url_is_named_as_it_was_given_and_asked_as_it_reads() {
        let check = |text: &str, place: &str, path: &str| {
            let url: EndpointUrl = text.parse().unwrap();
            assert_eq!(url.as_str(), text);
            assert_eq!((url.host_and_port().as_str(), url.path_and_query()), (place, path));
        };
        check("https://Example.com", "example.com:443", "/");
        check("HTTPS://example.com:443/Mcp?", "example.com:443", "/Mcp?");
        check("http://[::1]:80/a/../b", "[::1]:80", "/b");
        check("http://127.1/mcp", "127.0.0.1:80", "/mcp");
        check(
            "https://example.com./a%2fb?k=v%20w&q={x}",
            "example.com.:443",
            "/a%2fb?k=v%20w&q={x}",
        );
        check("https://xn--bcher-kva.example/b\u{fc}", "xn--bcher-kva.example:443", "/b%C3%BC");
    }

    #[test]
    fn a_port_is_known_as_it_is_written() {
        let port = |text: &str| text.parse::<PlainUrl>().unwrap().port;
        assert_eq!(port("https://example.com:443/a:1"), Some(443));
        assert_eq!(port("https://example.com/a:1?b:2"), None);
        assert_eq!(port("udp://[::1]"), None);
        assert_eq!(port("udp://[::1]:514"), Some(514));
    }
}
