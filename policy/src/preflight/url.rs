//! URLs in arguments may only lead to configured hosts, and must be spelled in a way that every
//! parser interprets the same.
//!
//! The text is not repaired: anything that a lenient parser would have to guess at is refused. So
//! the host that is compared is the host that any client connects to.

use contract::hidden::is_hidden;
use std::fmt;
use std::str::FromStr;

/// The longest URL that is checked.
pub const MAX_URL_BYTES: usize = 8 * 1024;
/// How many times a URL inside a URL may be encoded.
const MAX_DECODINGS: usize = 4;

/// Why a URL is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    #[error("is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    #[error("is not a text")]
    NotText,
    #[error("is not a URL of the form `https://host/…`")]
    NotAUrl,
    #[error("has a scheme other than `https` and `http`")]
    Scheme,
    #[error("has a user name, or a mark of one, before its host ends")]
    UserInformation,
    #[error("has a host that is not written in plain letters, digits, dots and dashes")]
    Host,
    #[error("has a port that is not a plain number")]
    Port,
    #[error("has a character that readers of URLs treat in different ways")]
    Character,
    #[error("leads to a host that is not allowed")]
    NotAllowed,
    #[error("has a URL in it that leads to a host that is not allowed")]
    Embedded,
}

/// Why a text does not name a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAllowedHost {
    #[error(
        "write a host, such as `api.example.com`, `*.example.com`, `api.example.com:8443` or `http://localhost:3000`"
    )]
    NotAHost,
    #[error(
        "`*` stands for the names below a domain of two parts or more, such as `*.example.com`"
    )]
    Wildcard,
}

/// A host that URLs may lead to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllowedHost {
    is_secure: bool,
    /// In lower case, and without the `*.` of a wildcard.
    host: String,
    is_wildcard: bool,
    port: u16,
}

impl FromStr for AllowedHost {
    type Err = BadAllowedHost;

    fn from_str(text: &str) -> Result<AllowedHost, BadAllowedHost> {
        let (is_secure, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) => return Err(BadAllowedHost::NotAHost),
            None => (true, text),
        };
        let (host, port) = host_and_port(rest).map_err(|_| BadAllowedHost::NotAHost)?;
        let (is_wildcard, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, host.as_str()),
        };
        if is_wildcard && !name.contains('.') {
            return Err(BadAllowedHost::Wildcard);
        }
        if !is_plain_host(name) {
            return Err(BadAllowedHost::NotAHost);
        }
        let port = port.unwrap_or(usual_port(is_secure));
        Ok(AllowedHost { is_secure, host: name.to_owned(), is_wildcard, port })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AllowedHost { is_secure, host, is_wildcard, port } = self;
        let scheme = if *is_secure { "https" } else { "http" };
        let star = if *is_wildcard { "*." } else { "" };
        write!(formatter, "{scheme}://{star}{host}:{port}")
    }
}

impl AllowedHost {
    fn is_met_by(&self, target: &Target) -> bool {
        let has_name = match self.is_wildcard {
            false => target.host == self.host,
            true => target.host.strip_suffix(&self.host).is_some_and(|name| name.ends_with('.')),
        };
        has_name && target.is_secure == self.is_secure && target.port == self.port
    }
}

/// The destination of a URL.
struct Target {
    is_secure: bool,
    host: String,
    port: u16,
}

/// Checks a URL, and every URL inside it that a server might follow.
pub fn check_url(text: &str, allowed: &[AllowedHost]) -> Result<(), UrlFault> {
    if text.len() > MAX_URL_BYTES {
        return Err(UrlFault::TooLong);
    }
    let (target, rest) = target(text)?;
    if !allowed.iter().any(|allowed| allowed.is_met_by(&target)) {
        return Err(UrlFault::NotAllowed);
    }
    check_rest(rest, allowed)
}

fn target(text: &str) -> Result<(Target, &str), UrlFault> {
    let (scheme, rest) = text.split_once(':').ok_or(UrlFault::NotAUrl)?;
    let is_secure = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return Err(UrlFault::Scheme),
    };
    let rest = rest.strip_prefix("//").ok_or(UrlFault::NotAUrl)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).ok_or(UrlFault::NotAUrl)?;
    // Some parsers end the user information at the last `@` in this whole text.
    let has_sign = authority.contains('@') || !rest.starts_with('/') && rest.contains('@');
    if has_sign {
        return Err(UrlFault::UserInformation);
    }
    let (host, port) = host_and_port(authority)?;
    if !is_plain_host(&host) {
        return Err(UrlFault::Host);
    }
    let port = port.unwrap_or(usual_port(is_secure));
    Ok((Target { is_secure, host, port }, rest))
}

fn usual_port(is_secure: bool) -> u16 {
    if is_secure { 443 } else { 80 }
}

/// The host in lower case, and the port.
fn host_and_port(authority: &str) -> Result<(String, Option<u16>), UrlFault> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or(UrlFault::Host)?;
            // An address must have its canonical spelling.
            let read: core::net::Ipv6Addr = address.parse().map_err(|_| UrlFault::Host)?;
            if read.to_string() != address.to_ascii_lowercase() {
                return Err(UrlFault::Host);
            }
            let port = match port {
                "" => None,
                port => Some(port.strip_prefix(':').ok_or(UrlFault::Host)?),
            };
            (format!("[{address}]"), port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (authority.to_owned(), None),
        },
    };
    let port = port.map(|port| {
        let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
        let number: Option<u16> = port.parse().ok().filter(|_| is_plain);
        number.ok_or(UrlFault::Port)
    });
    Ok((host.to_ascii_lowercase(), port.transpose()?))
}

/// A name of plain labels, an address of four plain numbers, or a bracketed address that was
/// already parsed. `127.1`, `0x7f000001` and `2130706433` are addresses to some parsers and names
/// to others.
fn is_plain_host(host: &str) -> bool {
    if host.starts_with('[') && host.ends_with(']') {
        return true;
    }
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return false;
    }
    let last = host.rsplit('.').next().unwrap_or("");
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !is_number {
        return true;
    }
    host.parse::<core::net::Ipv4Addr>().is_ok_and(|address| address.to_string() == host)
}

/// Checks the path, the query and the fragment.
fn check_rest(rest: &str, allowed: &[AllowedHost]) -> Result<(), UrlFault> {
    if rest.chars().any(|letter| letter == '\\' || letter == ' ' || is_hidden(letter)) {
        return Err(UrlFault::Character);
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let path = rest.get(..end).unwrap_or("").to_ascii_lowercase();
    let is_split = ["%00", "%0a", "%0d", "%5c"].iter().any(|form| path.contains(form));
    if is_split || rest.contains("%00") {
        return Err(UrlFault::Character);
    }
    // A path starting with `//host` is a URL to a server that redirects to its path.
    if path.starts_with("//") || path.starts_with("/%2f") {
        return Err(UrlFault::Embedded);
    }
    let mut text = rest.to_owned();
    for _ in 0..MAX_DECODINGS {
        check_embedded(&text, allowed)?;
        match contract::percent::percent_decoded(&text) {
            Some(decoded) if decoded != text => text = decoded,
            Some(_) | None => return Ok(()),
        }
    }
    Err(UrlFault::Embedded)
}

/// Checks for a URL inside a URL, which a server might follow.
fn check_embedded(text: &str, allowed: &[AllowedHost]) -> Result<(), UrlFault> {
    let lower = text.to_ascii_lowercase();
    for scheme in ["http:", "https:"] {
        for (at, _) in lower.match_indices(scheme) {
            let inner = text.get(at..).unwrap_or("");
            let end = inner.find(['&', ' ', '"', '\'', '<', '>', ')']).unwrap_or(inner.len());
            let found = target(inner.get(..end).unwrap_or("")).ok();
            let is_allowed = found.is_some_and(|(target, _)| {
                allowed.iter().any(|allowed| allowed.is_met_by(&target))
            });
            if !is_allowed {
                return Err(UrlFault::Embedded);
            }
        }
    }
    // `?next=//host`, which browsers treat as a URL.
    let is_relative = ["=//", "=/\\", "=\\\\"].iter().any(|form| lower.contains(form));
    if is_relative { Err(UrlFault::Embedded) } else { Ok(()) }
}
