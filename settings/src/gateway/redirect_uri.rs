//! The addresses that an OAuth client may be redirected to. They are compared as text, so a text
//! that two URL parsers could take for different addresses is refused beforehand.

use std::fmt;
use std::str::FromStr;
use url::{Host, Url};

/// The longest redirect URI that is accepted.
pub const MAX_REDIRECT_URI_BYTES: usize = 2_048;

/// Schemes that a browser handles itself, or that do not lead to an application.
const REFUSED_SCHEMES: [&str; 17] = [
    "about",
    "blob",
    "chrome",
    "chrome-extension",
    "data",
    "file",
    "filesystem",
    "ftp",
    "intent",
    "javascript",
    "mailto",
    "resource",
    "tel",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];

/// Why a text is refused as a redirect URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRedirectUri {
    #[error(
        "not a redirect URI: type something like `https://app.example.com/callback` or `http://127.0.0.1/callback`"
    )]
    NotAUrl,
    #[error("a redirect URI has no fragment: remove `#…`")]
    Fragment,
    #[error("a user name or password in a redirect URI is not accepted")]
    Credentials,
    #[error("a redirect URI is compared whole: `*` is not accepted in its host")]
    Wildcard,
    #[error("use `https://`: `http://` is accepted for 127.0.0.1, [::1] and localhost only")]
    NotSecure,
    #[error("this scheme does not lead to an application")]
    Scheme,
}

/// The kind of a redirect URI's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedirectKind {
    /// A web site.
    Web,
    /// A program on the person's own machine, at any port (RFC 8252 §7.3).
    Loopback,
    /// A program that the system starts for this scheme (RFC 8252 §7.1).
    PrivateScheme,
}

/// A redirect URI with its original text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RedirectUri {
    text: String,
    kind: RedirectKind,
    /// Shown to people: the host, or the scheme if there is no host.
    place: String,
}

impl RedirectUri {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn kind(&self) -> RedirectKind {
        self.kind
    }

    /// The host of the URI, or its scheme if that starts a program.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether a client that registered this URI may be redirected to the other one: they are
    /// equal, or differ only in the port of a loopback address.
    pub fn allows(&self, asked: &RedirectUri) -> bool {
        if self.text == asked.text {
            return true;
        }
        match (self.kind, asked.kind) {
            (RedirectKind::Loopback, RedirectKind::Loopback) => {
                without_port(&self.text) == without_port(&asked.text)
            }
            _ => false,
        }
    }
}

/// A loopback address without its port: the host, and everything after the port.
fn without_port(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("http://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at_checked(end)?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    Some((host, behind))
}

impl FromStr for RedirectUri {
    type Err = BadRedirectUri;

    fn from_str(text: &str) -> Result<RedirectUri, BadRedirectUri> {
        // `url` repairs spaces, tabs and backslashes; browsers and other parsers may repair them
        // differently.
        let is_plain = text.len() <= MAX_REDIRECT_URI_BYTES
            && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if !is_plain {
            return Err(BadRedirectUri::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| BadRedirectUri::NotAUrl)?;
        if text.contains('#') {
            return Err(BadRedirectUri::Fragment);
        }
        let scheme = url.scheme();
        // The scheme must be in lower case, with both slashes if there is a host, so that nothing
        // was repaired.
        if !text.starts_with(&format!("{scheme}:")) {
            return Err(BadRedirectUri::NotAUrl);
        }
        let (kind, place) = match scheme {
            "http" | "https" => web(text, &url)?,
            scheme if REFUSED_SCHEMES.contains(&scheme) => return Err(BadRedirectUri::Scheme),
            scheme => (RedirectKind::PrivateScheme, format!("{scheme}:")),
        };
        Ok(RedirectUri { text: text.to_owned(), kind, place })
    }
}

fn web(text: &str, url: &Url) -> Result<(RedirectKind, String), BadRedirectUri> {
    let prefix = format!("{}://", url.scheme());
    let authority = text.strip_prefix(&prefix).ok_or(BadRedirectUri::NotAUrl)?;
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(BadRedirectUri::Credentials);
    }
    let host = url.host().ok_or(BadRedirectUri::NotAUrl)?;
    let shown = host.to_string();
    if shown.contains('*') {
        return Err(BadRedirectUri::Wildcard);
    }
    // Use the host as written: `127.1` and `0x7f.1` are other spellings of an address that would
    // compare as different.
    let written = match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        Some(_) if authority.ends_with(']') => authority,
        Some(_) => return Err(BadRedirectUri::NotAUrl),
        None => authority,
    };
    if written != shown {
        return Err(BadRedirectUri::NotAUrl);
    }
    let is_loopback = match &host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => *address == std::net::Ipv4Addr::LOCALHOST,
        Host::Ipv6(address) => *address == std::net::Ipv6Addr::LOCALHOST,
    };
    match (url.scheme(), is_loopback) {
        ("http", true) => Ok((RedirectKind::Loopback, shown)),
        ("http", false) => Err(BadRedirectUri::NotSecure),
        _ => Ok((RedirectKind::Web, shown)),
    }
}

impl fmt::Display for RedirectUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> RedirectUri {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn redirect_uris_are_secure_or_lead_to_the_persons_own_machine() {
        for (text, kind, place) in [
            ("https://app.example.com/cb", RedirectKind::Web, "app.example.com"),
            ("https://app.example.com:8443/cb?x=1", RedirectKind::Web, "app.example.com"),
            ("http://127.0.0.1/cb", RedirectKind::Loopback, "127.0.0.1"),
            ("http://127.0.0.1:33418", RedirectKind::Loopback, "127.0.0.1"),
            ("http://[::1]:7/cb", RedirectKind::Loopback, "[::1]"),
            ("http://localhost:9/cb", RedirectKind::Loopback, "localhost"),
            ("cursor://anysphere.cursor-mcp/oauth", RedirectKind::PrivateScheme, "cursor:"),
            ("com.example.app:/cb", RedirectKind::PrivateScheme, "com.example.app:"),
        ] {
            let read = uri(text);
            assert_eq!((read.kind(), read.place()), (kind, place), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_as_another_address_is_refused() {
        for (text, expected) in [
            ("http://app.example.com/cb", BadRedirectUri::NotSecure),
            ("http://127.0.0.2/cb", BadRedirectUri::NotSecure),
            ("http://127.0.0.1.example.com/cb", BadRedirectUri::NotSecure),
            ("http://127.1/cb", BadRedirectUri::NotAUrl),
            ("http://0x7f.0.0.1/cb", BadRedirectUri::NotAUrl),
            ("https://APP.example.com/cb", BadRedirectUri::NotAUrl),
            ("HTTPS://app.example.com/cb", BadRedirectUri::NotAUrl),
            ("https:app.example.com/cb", BadRedirectUri::NotAUrl),
            ("https:/app.example.com/cb", BadRedirectUri::NotAUrl),
            ("https://app.example.com\\@evil.example/cb", BadRedirectUri::NotAUrl),
            ("https://app.example.com@evil.example/cb", BadRedirectUri::Credentials),
            ("http://127.0.0.1:80@evil.example/cb", BadRedirectUri::Credentials),
            ("https://app.example.com/cb#x", BadRedirectUri::Fragment),
            ("https://app.example.com:/cb", BadRedirectUri::NotAUrl),
            ("https://*.example.com/cb", BadRedirectUri::Wildcard),
            ("https://app.example.com/c b", BadRedirectUri::NotAUrl),
            ("https://app.example.com/cb\n", BadRedirectUri::NotAUrl),
            ("javascript:alert(1)", BadRedirectUri::Scheme),
            ("data:text/html,x", BadRedirectUri::Scheme),
            ("file:///etc/passwd", BadRedirectUri::Scheme),
            ("/cb", BadRedirectUri::NotAUrl),
            ("", BadRedirectUri::NotAUrl),
        ] {
            assert_eq!(text.parse::<RedirectUri>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn only_the_port_of_a_loopback_address_may_differ() {
        let registered = uri("http://127.0.0.1/cb");
        for asked in ["http://127.0.0.1/cb", "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb"] {
            assert!(registered.allows(&uri(asked)), "{asked}");
        }
        assert!(uri("http://[::1]:1/cb").allows(&uri("http://[::1]:2/cb")));
        for (registered, asked) in [
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb2"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb/"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb?x=1"),
            ("http://127.0.0.1/cb", "http://localhost:1/cb"),
            ("http://127.0.0.1/cb", "http://[::1]:1/cb"),
            ("https://app.example.com/cb", "https://app.example.com:8443/cb"),
            ("https://app.example.com/cb", "https://app.example.com/cb/../x"),
            ("https://app.example.com/cb", "https://app.example.com/CB"),
            ("com.example.app:/cb", "com.example.app:/cb2"),
        ] {
            assert!(!uri(registered).allows(&uri(asked)), "{registered} {asked}");
        }
    }

    #[test]
    fn a_redirect_uri_is_bounded() {
        let sized = |bytes: usize| format!("https://a/{}", "x".repeat(bytes - 10));
        assert!(sized(MAX_REDIRECT_URI_BYTES).parse::<RedirectUri>().is_ok());
        assert!(sized(MAX_REDIRECT_URI_BYTES + 1).parse::<RedirectUri>().is_err());
    }
}
