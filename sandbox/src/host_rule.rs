//! The hosts that a confined program may reach. Pure: names and addresses are only values here, and
//! nothing is resolved.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The port of a rule without one.
const TLS_PORT: u16 = 443;
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// Whether the egress proxy may connect to a resolved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Reach {
    Allowed,
    /// Only if the rule has `private:` or names this address itself.
    NeedsPermission,
    Refused,
}

/// One host that may be reached, on one port.
///
/// The syntax is `HOST`, `HOST:PORT` or `ADDRESS:PORT`. A host may start with `*.` to include every
/// name below it. A name may only be reached by TLS, and the server name in the handshake must be
/// that name; the prefix `tcp:` allows any protocol. The prefix `private:`, before that one, allows
/// a name to resolve to a private, loopback or link-local address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    host: Host,
    port: u16,
    any_protocol: bool,
    private: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    /// Every name that ends with this one and has more labels.
    Below(String),
    Address(IpAddr),
    /// The machine's own loopback, at either address, since programs use `localhost` for both.
    Loopback,
}

/// The loopback addresses of the machine's own servers.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Why a text is not a valid host rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    #[error(
        "`{0}` is not the name of a host; write for example `api.example.com` or `*.example.com:8443`"
    )]
    Host(String),
    #[error("`{0}` is not a port from 1 to 65535")]
    Port(String),
    #[error("`{0}` needs a port: an address or `tcp:` has no usual one")]
    NoPort(String),
    #[error("`{0}` allows too many names; put at least two labels behind `*.`")]
    TooWide(String),
}

impl HostRule {
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection may use any protocol. Otherwise it must be TLS, with the host's name
    /// as the server name.
    pub fn allows_any_protocol(&self) -> bool {
        self.any_protocol || self.names_address()
    }

    fn names_address(&self) -> bool {
        matches!(self.host, Host::Address(_) | Host::Loopback)
    }

    /// Whether a name may resolve to an address that is not public.
    pub fn allows_private(&self) -> bool {
        self.private || self.names_address()
    }

    /// Whether the rule includes a name, on any port.
    pub fn covers_name(&self, name: &str) -> bool {
        match &self.host {
            Host::Name(host) => host.eq_ignore_ascii_case(name),
            Host::Below(suffix) => {
                let Some(cut) = name.len().checked_sub(suffix.len()) else { return false };
                match (name.get(..cut), name.get(cut..)) {
                    (Some(front), Some(end)) => {
                        front.len() > 1 && front.ends_with('.') && end.eq_ignore_ascii_case(suffix)
                    }
                    _ => false,
                }
            }
            Host::Address(_) | Host::Loopback => false,
        }
    }

    pub fn covers_address(&self, address: IpAddr) -> bool {
        match self.host {
            Host::Address(allowed) => allowed == address,
            Host::Loopback => LOOPBACK.contains(&address),
            Host::Name(_) | Host::Below(_) => false,
        }
    }

    /// The addresses to connect to when a program connects to one that this rule includes.
    pub fn addresses_for(&self, asked: IpAddr) -> Vec<IpAddr> {
        match self.host {
            Host::Loopback => LOOPBACK.to_vec(),
            Host::Address(_) | Host::Name(_) | Host::Below(_) => vec![asked],
        }
    }

    /// The first rule that allows a name on a port.
    pub fn for_name<'a>(rules: &'a [HostRule], name: &str, port: u16) -> Option<&'a HostRule> {
        rules.iter().find(|rule| rule.port == port && rule.covers_name(name))
    }

    /// The first rule that allows an address on a port.
    pub fn for_address(rules: &[HostRule], address: IpAddr, port: u16) -> Option<&HostRule> {
        rules.iter().find(|rule| rule.port == port && rule.covers_address(address))
    }
}

/// Whether a text has the form of a DNS name in ASCII: labels of letters, digits, `-` and `_`.
pub(crate) fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_NAME_BYTES && text.split('.').all(is_label)
}

impl FromStr for HostRule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let bad = || BadRule::Host(text.to_owned());
        let (private, rest) = strip(text, "private:");
        let (any_protocol, rest) = strip(rest, "tcp:");
        let (host, port) = split_port(rest)?;
        let numeric = host.trim_start_matches('[').trim_end_matches(']');
        let host = if let Ok(address) = numeric.parse::<IpAddr>() {
            Host::Address(address)
        } else if host.eq_ignore_ascii_case("localhost") {
            // The program's own hosts file would resolve the name, but the rule means the machine's
            // loopback.
            Host::Loopback
        } else if let Some(suffix) = host.strip_prefix("*.") {
            if !is_name(suffix) {
                return Err(bad());
            }
            if !suffix.contains('.') {
                return Err(BadRule::TooWide(text.to_owned()));
            }
            Host::Below(suffix.to_ascii_lowercase())
        } else if is_name(host) && host.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            Host::Name(host.to_ascii_lowercase())
        } else {
            return Err(bad());
        };
        let port = match port {
            Some(port) => port,
            None if any_protocol || matches!(host, Host::Address(_) | Host::Loopback) => {
                return Err(BadRule::NoPort(text.to_owned()));
            }
            None => TLS_PORT,
        };
        Ok(HostRule { host, port, any_protocol, private })
    }
}

fn strip<'a>(text: &'a str, prefix: &str) -> (bool, &'a str) {
    match text.strip_prefix(prefix) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

/// Splits off the port. An IPv6 address with a port must be in brackets.
fn split_port(text: &str) -> Result<(&str, Option<u16>), BadRule> {
    let is_bare_v6 = !text.starts_with('[') && text.matches(':').count() > 1;
    let Some((host, port)) = text
        .rsplit_once(':')
        .filter(|(host, _)| !is_bare_v6 && (!host.starts_with('[') || host.ends_with(']')))
    else {
        return Ok((text, None));
    };
    match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok((host, Some(number)))
        }
        _ => Err(BadRule::Port(port.to_owned())),
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.private {
            formatter.write_str("private:")?;
        }
        if self.any_protocol {
            formatter.write_str("tcp:")?;
        }
        match &self.host {
            Host::Name(name) if self.port == TLS_PORT && !self.any_protocol => {
                return formatter.write_str(name);
            }
            Host::Below(suffix) if self.port == TLS_PORT && !self.any_protocol => {
                return write!(formatter, "*.{suffix}");
            }
            Host::Name(name) => formatter.write_str(name)?,
            Host::Below(suffix) => write!(formatter, "*.{suffix}")?,
            Host::Address(IpAddr::V4(address)) => write!(formatter, "{address}")?,
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
            Host::Loopback => formatter.write_str("localhost")?,
        }
        write!(formatter, ":{}", self.port)
    }
}

impl TryFrom<String> for HostRule {
    type Error = BadRule;

    fn try_from(text: String) -> Result<Self, BadRule> {
        text.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> String {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests;
