//! `peer_listen` and `peer_address`: how the nodes of a gateway reach each other.

use super::mistake::{Mistakes, Place};
use crate::value::Text;
use std::fmt;
use std::net::SocketAddr;

/// The longest address of a node, in bytes.
const MAX_ADDRESS_BYTES: usize = 300;

/// How other nodes reach this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSettings {
    pub listen: SocketAddr,
    /// The address that other nodes connect to; `None` means the listen address.
    pub address: Option<PeerAddress>,
}

/// A host and a port, or the variable that contains them: on some platforms only the process knows
/// its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerAddress {
    Written(String),
    Env(String),
}

/// Why a node's own address is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPeerAddress(String);

impl fmt::Display for NoPeerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NoPeerAddress {}

impl PeerAddress {
    /// The host and the port.
    pub fn read(
        &self,
        variable: impl FnOnce(&str) -> Option<String>,
    ) -> Result<String, NoPeerAddress> {
        match self {
            PeerAddress::Written(address) => Ok(address.clone()),
            PeerAddress::Env(name) => {
                let value = variable(name).unwrap_or_default();
                check(&value).map_err(|problem| {
                    NoPeerAddress(format!(
                        "`gateway.peer_address`: the variable `{name}`: {problem}"
                    ))
                })?;
                Ok(value)
            }
        }
    }
}

pub(super) fn read(
    listen: Option<SocketAddr>,
    address: Option<&Text>,
    mistakes: &mut Mistakes<'_>,
) -> Option<PeerSettings> {
    let place = Place::top().key("gateway");
    let Some(listen) = listen else {
        if address.is_some() {
            mistakes.add(
                &place.key("peer_address"),
                "counts only with `peer_listen`: add that, or remove this",
            );
        }
        return None;
    };
    let address = match address.map(|text| &**text) {
        None => None,
        Some(text) => match text.strip_prefix("env:") {
            Some(name) if !name.is_empty() => Some(PeerAddress::Env(name.to_owned())),
            _ => {
                if let Err(problem) = check(text) {
                    mistakes.add(&place.key("peer_address"), problem);
                }
                Some(PeerAddress::Written(text.to_owned()))
            }
        },
    };
    if address.is_none() && listen.ip().is_unspecified() {
        mistakes.add(
            &place.key("peer_listen"),
            format!(
                "other nodes cannot connect to {}: set `gateway.peer_address` to the host and port that they can, or listen on one address",
                listen.ip()
            ),
        );
    }
    Some(PeerSettings { listen, address })
}

/// Checks that a text is a host and a port.
fn check(text: &str) -> Result<(), &'static str> {
    let is_host = |host: &str| {
        !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte))
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && is_port(port) && text.len() <= MAX_ADDRESS_BYTES => {
            Ok(())
        }
        _ => Err("type a host and a port, such as `10.0.0.4:8422`, or `env:VARIABLE`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for right in ["10.0.0.4:8422", "node-0.nodes:8422", "[fd00::4]:8422"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        let longest = format!("{}:8422", "a".repeat(MAX_ADDRESS_BYTES - 5));
        assert_eq!(check(&longest), Ok(()));
        for wrong in [
            "",
            "10.0.0.4",
            ":8422",
            "a:0",
            "a:70000",
            "a b:1",
            "http://a:1/",
            &format!("a{longest}"),
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_variable_is_read_and_checked() {
        let named = PeerAddress::Env("WHERE".to_owned());
        assert_eq!(named.read(|_| Some("a:1".to_owned())), Ok("a:1".to_owned()));
        assert!(named.read(|_| None).is_err());
        assert!(named.read(|_| Some("nowhere".to_owned())).is_err());
    }
}
