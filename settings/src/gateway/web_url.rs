//! URLs in the gateway's configuration: `https`, or `http` if the host is a loopback address.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use url::{Host, Url};

/// The longest URL that is accepted.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Why a text is refused as a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadWebUrl {
    #[error("not a URL: type something like `https://mcp.example.com`")]
    NotAUrl,
    #[error("use `https://`: `http://` is accepted for a loopback host only")]
    NotSecure,
    #[error("a user name or password in a URL is not accepted")]
    Credentials,
    #[error("a URL here has no fragment: remove `#…`")]
    Fragment,
    #[error("only scheme, host and port are expected here: remove the path and the query")]
    NotAnOrigin,
}

/// A URL with its original text. It is `https` or leads to the machine itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebUrl {
    text: String,
    url: Url,
}

impl WebUrl {
    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether the host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }
}

impl FromStr for WebUrl {
    type Err = BadWebUrl;

    fn from_str(text: &str) -> Result<WebUrl, BadWebUrl> {
        // `url` repairs spaces, tabs and backslashes; other parsers of the same text may repair
        // them differently.
        let is_plain = text.len() <= MAX_URL_BYTES
            && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if !is_plain || !text.contains("://") {
            return Err(BadWebUrl::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| BadWebUrl::NotAUrl)?;
        if url.host().is_none() || !matches!(url.scheme(), "http" | "https") {
            return Err(BadWebUrl::NotAUrl);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadWebUrl::Credentials);
        }
        if url.fragment().is_some() {
            return Err(BadWebUrl::Fragment);
        }
        let read = WebUrl { text: text.to_owned(), url };
        if read.is_secure() || read.is_loopback() { Ok(read) } else { Err(BadWebUrl::NotSecure) }
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Scheme, host and port, in the format of a browser's `Origin` header.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebOrigin {
    serialized: String,
    /// Host and port in the format of a `Host` header: without the port if that is the scheme's
    /// default.
    authority: String,
}

impl WebOrigin {
    /// The origin of a loopback listener without a public URL.
    pub fn of_listener(listen: SocketAddr) -> WebOrigin {
        let authority = listen.to_string();
        WebOrigin { serialized: format!("http://{authority}"), authority }
    }

    /// In the format of the `Origin` header: lower case, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.serialized
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The audience of tokens for the admin API.
    pub fn admin_audience(&self) -> String {
        format!("{}/admin", self.serialized)
    }

    pub fn is_secure(&self) -> bool {
        self.serialized.starts_with("https:")
    }

    pub fn is_loopback(&self) -> bool {
        self.serialized.parse::<WebUrl>().is_ok_and(|url| url.is_loopback())
    }
}

impl FromStr for WebOrigin {
    type Err = BadWebUrl;

    fn from_str(text: &str) -> Result<WebOrigin, BadWebUrl> {
        let WebUrl { url, .. } = text.parse()?;
        if url.path() != "/" || url.query().is_some() {
            return Err(BadWebUrl::NotAnOrigin);
        }
        let serialized = url.origin().ascii_serialization();
        let authority = serialized.split_once("://").map(|(_, authority)| authority.to_owned());
        Ok(WebOrigin { authority: authority.unwrap_or_default(), serialized })
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.serialized)
    }
}

#[cfg(test)]
mod tests {
    use super::{BadWebUrl, WebOrigin, WebUrl};

    #[test]
    fn urls_are_secure_or_lead_to_the_machine_itself() {
        for text in [
            "https://idp.example.com/keys?x=1",
            "http://127.0.0.1:9/mcp",
            "http://localhost/mcp",
            "http://[::1]:8080/",
        ] {
            assert_eq!(text.parse::<WebUrl>().unwrap().as_str(), text);
        }
        for (text, expected) in [
            ("http://idp.example.com", BadWebUrl::NotSecure),
            ("http://127.0.0.1.example.com", BadWebUrl::NotSecure),
            ("http://localhost.example.com", BadWebUrl::NotSecure),
            ("ftp://127.0.0.1", BadWebUrl::NotAUrl),
            ("https:example.com", BadWebUrl::NotAUrl),
            ("https://a b", BadWebUrl::NotAUrl),
            ("https:\\\\example.com", BadWebUrl::NotAUrl),
            ("idp.example.com", BadWebUrl::NotAUrl),
            ("https://", BadWebUrl::NotAUrl),
            ("", BadWebUrl::NotAUrl),
            ("https://ada:pw@example.com", BadWebUrl::Credentials),
            ("https://example.com/#x", BadWebUrl::Fragment),
        ] {
            assert_eq!(text.parse::<WebUrl>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn origins_are_compared_as_browsers_write_them() {
        for (text, serialized, authority) in [
            ("https://MCP.example.com", "https://mcp.example.com", "mcp.example.com"),
            ("https://mcp.example.com:443/", "https://mcp.example.com", "mcp.example.com"),
            (
                "https://mcp.example.com:8443",
                "https://mcp.example.com:8443",
                "mcp.example.com:8443",
            ),
            ("http://[::1]:8420", "http://[::1]:8420", "[::1]:8420"),
        ] {
            let origin: WebOrigin = text.parse().unwrap();
            assert_eq!((origin.as_str(), origin.authority()), (serialized, authority));
        }
        let with_path = "https://mcp.example.com/x".parse::<WebOrigin>();
        assert_eq!(with_path, Err(BadWebUrl::NotAnOrigin));
        let origin: WebOrigin = "https://mcp.example.com".parse().unwrap();
        assert_eq!(origin.admin_audience(), "https://mcp.example.com/admin");
        assert!(!origin.is_loopback());
        let local = WebOrigin::of_listener("127.0.0.1:8420".parse().unwrap());
        assert_eq!(local.as_str(), "http://127.0.0.1:8420");
        assert!(local.is_loopback() && !local.is_secure());
    }
}
