//! The URL of a streamable HTTP endpoint, read once and carried as parts.

use http::Uri;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest URL that is read.
const MAX_URL_BYTES: usize = 8 * 1024;

/// An `https` URL, or an `http` one (which is only ever used for loopback addresses).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    text: String,
    secure: bool,
    host: String,
    port: u16,
    path_and_query: String,
}

/// Why a text is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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

impl EndpointUrl {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host's name or address; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host with its port, an IPv6 address in brackets.
    pub fn host_and_port(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => format!("[{}]:{}", self.host, self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    pub(crate) fn without_query(&self) -> EndpointUrl {
        let before = |text: &str| text.split('?').next().unwrap_or_default().to_owned();
        EndpointUrl {
            text: before(&self.text),
            path_and_query: before(&self.path_and_query),
            ..self.clone()
        }
    }

    pub(crate) fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// What the `Host` header says: the port only where it is not the scheme's own.
    pub(crate) fn authority(&self) -> String {
        let host = match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => format!("[{}]", self.host),
            _ => self.host.clone(),
        };
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
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
        if text.contains('#') {
            return Err(BadUrl::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| BadUrl::NotAUrl)?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BadUrl::Scheme),
        };
        let authority = uri.authority().ok_or(BadUrl::NotAUrl)?;
        if authority.as_str().contains('@') {
            return Err(BadUrl::Credentials);
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        // `host:` and `host:99999` are read as a host without a port, which would connect elsewhere than it says.
        let port_text = authority.as_str().rsplit_once(']').map_or(authority.as_str(), |(_, r)| r);
        if host.is_empty() || (port_text.contains(':') && authority.port_u16().is_none()) {
            return Err(BadUrl::NotAUrl);
        }
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let path_and_query = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(EndpointUrl {
            text: text.to_owned(),
            secure,
            host: host.to_ascii_lowercase(),
            port,
            path_and_query,
        })
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
        assert_eq!((url.path_and_query(), url.authority().as_str()), ("/mcp?x=1", "example.com"));
        let url: EndpointUrl = "http://[::1]:3001".parse().unwrap();
        assert_eq!((url.host(), url.port()), ("::1", 3001));
        assert_eq!((url.path_and_query(), url.authority().as_str()), ("/", "[::1]:3001"));
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        let check = |text: &str, expected| {
            assert_eq!(text.parse::<EndpointUrl>(), Err(expected), "{text}");
        };
        check("example.com/mcp", BadUrl::NotAUrl);
        check("/mcp", BadUrl::Scheme);
        check("ftp://example.com/", BadUrl::Scheme);
        check("https://user:secret@example.com/", BadUrl::Credentials);
        check("https://example.com/#a", BadUrl::Fragment);
        check("https://example.com:99999/", BadUrl::NotAUrl);
        check("https://[::1]:x/", BadUrl::NotAUrl);
        check("https:///mcp", BadUrl::NotAUrl);
        check(&format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES)), BadUrl::TooLong);
    }

    #[test]
    fn a_url_at_the_limit_is_read() {
        let head = "https://example.com/";
        let text = format!("{head}{}", "a".repeat(MAX_URL_BYTES - head.len()));
        assert!(text.parse::<EndpointUrl>().is_ok());
        assert_eq!(format!("{text}a").parse::<EndpointUrl>(), Err(BadUrl::TooLong));
    }
}
