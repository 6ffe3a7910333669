//! The destinations of receipts, parsed once from what the operator wrote.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use wire::{BadUrl, PlainUrl};

/// The longest address that is accepted.
const MAX_URL_BYTES: usize = 2 * 1024;
const OTLP_PORT: u16 = 4318;
const SYSLOG_PORT: u16 = 514;
const SYSLOG_TLS_PORT: u16 = 6514;
/// The paths of OTLP/HTTP for logs and for spans, appended to the path of the address.
const LOGS_PATH: &str = "/v1/logs";
const TRACES_PATH: &str = "/v1/traces";
/// Headers that control where a request ends and what it contains.
const OWN_HEADERS: [&str; 6] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// Why a header cannot be sent to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    #[error("not a header's name")]
    Name,
    #[error("a header that is not yours to set")]
    Own,
    #[error("the value cannot be sent in a header")]
    Value,
}

/// Adds a header for every request to a collector. Its value is a credential.
pub fn add_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), BadHeader> {
    let name: HeaderName = name.parse().map_err(|_| BadHeader::Name)?;
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err(BadHeader::Own);
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| BadHeader::Value)?;
    value.set_sensitive(true);
    headers.append(name, value);
    Ok(())
}

/// Why a text does not name a collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDestination {
    #[error("not an address; expected something like `{0}`")]
    NotAnAddress(&'static str),
    #[error("a user name or password in the address is not accepted: name it as a header")]
    Credentials,
    #[error("the address must end with its path: a secret belongs in a header")]
    Query,
    #[error("syslog takes a host and a port, no path")]
    Path,
    #[error("a header is only sent over https, or to this machine")]
    HeaderInClear,
    #[error("the address is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
}

/// A host with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => write!(formatter, "[{}]:{}", self.host, self.port),
            _ => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

/// An OTLP/HTTP collector.
#[derive(Debug, Clone)]
pub struct Otlp {
    pub(super) is_secure: bool,
    pub(super) address: Address,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
}

impl Otlp {
    /// Parses `http(s)://host[:port][/path]` for receipts; `headers` are sent with every request.
    pub fn new(text: &str, headers: HeaderMap) -> Result<Otlp, BadDestination> {
        Otlp::at(text, headers, LOGS_PATH)
    }

    /// Like [`Otlp::new`], for spans.
    pub fn for_traces(text: &str, headers: HeaderMap) -> Result<Otlp, BadDestination> {
        Otlp::at(text, headers, TRACES_PATH)
    }

    fn at(text: &str, mut headers: HeaderMap, signal: &str) -> Result<Otlp, BadDestination> {
        const EXAMPLE: &str = "https://collector.example.com:4318";
        let plain = read(text, EXAMPLE)?;
        let is_secure = match plain.url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(BadDestination::NotAnAddress(EXAMPLE)),
        };
        let path = plain.url.path().to_owned();
        let address = Address { host: plain.host, port: plain.port.unwrap_or(OTLP_PORT) };
        if !is_secure && !headers.is_empty() && !is_this_machine(&address.host) {
            return Err(BadDestination::HeaderInClear);
        }
        // They are credentials and must not be printed.
        headers.values_mut().for_each(|value| value.set_sensitive(true));
        let base = path.trim_end_matches('/');
        let path = if base.ends_with(signal) { base.to_owned() } else { format!("{base}{signal}") };
        Ok(Otlp { is_secure, address, path, headers })
    }
}

impl fmt::Display for Otlp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(formatter, "otlp {scheme}://{}{}", self.address, self.path)
    }
}

/// The transport to a syslog receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Udp,
    Tcp,
    Tls,
}

/// A receiver of RFC 5424 messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syslog {
    pub(super) transport: Transport,
    pub(super) address: Address,
}

impl FromStr for Syslog {
    type Err = BadDestination;

    /// Parses `udp://host[:port]`, `tcp://…` or `tls://…`.
    fn from_str(text: &str) -> Result<Self, BadDestination> {
        const EXAMPLE: &str = "tls://logs.example.com:6514";
        let plain = read(text, EXAMPLE)?;
        let (transport, usual) = match plain.url.scheme() {
            "udp" => (Transport::Udp, SYSLOG_PORT),
            "tcp" => (Transport::Tcp, SYSLOG_PORT),
            "tls" => (Transport::Tls, SYSLOG_TLS_PORT),
            _ => return Err(BadDestination::NotAnAddress(EXAMPLE)),
        };
        if !matches!(plain.url.path(), "" | "/") {
            return Err(BadDestination::Path);
        }
        let address = Address { host: plain.host, port: plain.port.unwrap_or(usual) };
        Ok(Syslog { transport, address })
    }
}

impl fmt::Display for Syslog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        };
        write!(formatter, "syslog {scheme}://{}", self.address)
    }
}

/// Parses a host with port and path, refusing anything that could contain a secret.
fn read(text: &str, example: &'static str) -> Result<PlainUrl, BadDestination> {
    if text.len() > MAX_URL_BYTES {
        return Err(BadDestination::TooLong);
    }
    if text.contains(['?', '#']) {
        return Err(BadDestination::Query);
    }
    match text.parse::<PlainUrl>() {
        Ok(plain) if plain.port != Some(0) => Ok(plain),
        Err(BadUrl::Credentials) => Err(BadDestination::Credentials),
        Ok(_) | Err(BadUrl::NotAUrl | BadUrl::Scheme | BadUrl::Fragment | BadUrl::TooLong) => {
            Err(BadDestination::NotAnAddress(example))
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn otlp(text: &str) -> Result<String, BadDestination> {
        Otlp::new(text, HeaderMap::new()).map(|otlp| otlp.to_string())
    }

    #[test]
    fn collectors_are_read_with_their_usual_ports_and_paths() {
        for (text, expected) in [
            ("http://127.0.0.1:1", "otlp http://127.0.0.1:1/v1/logs"),
            ("https://Host", "otlp https://host:4318/v1/logs"),
            ("https://host/otlp/", "otlp https://host:4318/otlp/v1/logs"),
            ("https://host/v1/logs", "otlp https://host:4318/v1/logs"),
            ("https://[::1]:2", "otlp https://[::1]:2/v1/logs"),
            ("https://host:443", "otlp https://host:443/v1/logs"),
        ] {
            assert_eq!(otlp(text).as_deref(), Ok(expected));
        }
        for (text, expected) in [
            ("udp://host", "syslog udp://host:514"),
            ("tcp://host:601", "syslog tcp://host:601"),
            ("tls://host", "syslog tls://host:6514"),
            ("tls://host/", "syslog tls://host:6514"),
        ] {
            assert_eq!(
                text.parse::<Syslog>().map(|syslog| syslog.to_string()).as_deref(),
                Ok(expected)
            );
        }
    }

    #[test]
    fn what_could_be_misread_or_hides_a_secret_is_refused() {
        assert_eq!(otlp("https://u:p@host"), Err(BadDestination::Credentials));
        assert_eq!(otlp("https://host/?key=1"), Err(BadDestination::Query));
        for text in [
            "host:4318",
            "udp://host",
            "https://",
            "https://host:",
            "https://host:0",
            "https://host:99999",
            "",
        ] {
            assert!(matches!(otlp(text), Err(BadDestination::NotAnAddress(_))), "{text}");
        }
        assert_eq!("tls://host/x".parse::<Syslog>(), Err(BadDestination::Path));
        assert!(matches!("http://host".parse::<Syslog>(), Err(BadDestination::NotAnAddress(_))));
        let long = |length: usize| format!("https://h/{}", "a".repeat(length - "https://h/".len()));
        assert!(otlp(&long(MAX_URL_BYTES)).is_ok());
        assert_eq!(otlp(&long(MAX_URL_BYTES + 1)), Err(BadDestination::TooLong));
    }

    #[test]
    fn a_header_never_goes_out_in_clear() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("x"));
        let shown = format!("{:?}", Otlp::new("https://host", headers.clone()));
        assert!(shown.contains("Sensitive") && !shown.contains("\"x\""), "{shown}");
        let with = |text: &str| Otlp::new(text, headers.clone()).map(|_| ());
        assert_eq!(with("http://host"), Err(BadDestination::HeaderInClear));
        for text in ["https://host", "http://127.0.0.1", "http://[::1]", "http://localhost"] {
            assert_eq!(with(text), Ok(()), "{text}");
        }
    }
}
