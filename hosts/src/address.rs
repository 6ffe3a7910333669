//! Facts about an address that do not require resolving it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The parts of a URL that decide whether and how it can be guarded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'u> {
    pub(crate) is_encrypted: bool,
    host: &'u str,
    path: &'u str,
    /// Something in it may be a secret: a query or a user name.
    pub(crate) has_credentials: bool,
}

/// Suffixes of names for nearby machines.
const NEARBY: &[&str] =
    &[".ts.net", ".local", ".lan", ".internal", ".intranet", ".corp", ".home.arpa", ".test"];

impl<'u> Parts<'u> {
    /// The parts of an `http` or `https` URL.
    pub(crate) fn of(url: &'u str) -> Option<Parts<'u>> {
        let (scheme, rest) = url.split_once("://")?;
        let is_encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let host = match place.strip_prefix('[') {
            Some(inside) => inside.split(']').next()?,
            None => place.split(':').next()?,
        };
        let has_credentials = user.is_some() || path.contains('?');
        let path = path.split(['?', '#']).next()?;
        (!host.is_empty()).then_some(Parts { is_encrypted, host, path, has_credentials })
    }

    /// Whether the address is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host.to_ascii_lowercase();
        let is_named = host == "localhost" || host.ends_with(".localhost");
        is_named || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether the address appears to be in a private network.
    pub(crate) fn is_nearby(&self) -> bool {
        let host = self.host.to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => {
                address.is_private() || address.is_link_local() || is_shared_v4(address)
            }
            Ok(IpAddr::V6(address)) => is_nearby_v6(address),
            Err(_) => {
                !self.is_loopback()
                    && (!host.contains('.') || NEARBY.iter().any(|end| host.ends_with(end)))
            }
        }
    }

    /// Whether the path is typical of the older transport.
    pub(crate) fn ends_like_events(&self) -> bool {
        self.path.trim_end_matches('/').ends_with("/sse")
    }
}

/// The shared address space of providers and overlay networks, 100.64.0.0/10.
fn is_shared_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && (64..128).contains(&second)
}

fn is_nearby_v6(address: Ipv6Addr) -> bool {
    address.is_unique_local() || address.is_unicast_link_local()
}

/// Whether a host would replace part of a text before using it.
pub(crate) fn has_variables(text: &str) -> bool {
    text.contains("${") || text.contains("{env:") || text.contains("{file:") || text.contains('$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parts(url: &str) -> Parts<'_> {
        Parts::of(url).unwrap()
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for url in
            ["http://localhost:1/mcp", "http://127.0.0.1", "http://[::1]:9/x", "http://a.localhost"]
        {
            assert!(parts(url).is_loopback(), "{url}");
        }
        for url in [
            "https://localhost.example.com",
            "https://127.0.0.1.example.com",
            "https://u@example.com",
        ] {
            assert!(!parts(url).is_loopback(), "{url}");
        }
    }

    #[test]
    fn networks_of_ones_own_are_told_by_address_and_name() {
        for url in
            ["https://10.0.0.1/", "https://tools", "https://100.100.1.2", "https://[fd00::1]/"]
        {
            assert!(parts(url).is_nearby(), "{url}");
        }
        for url in
            ["https://8.8.8.8", "https://example.com", "http://localhost", "https://[2001:db8::1]/"]
        {
            assert!(!parts(url).is_nearby(), "{url}");
        }
    }

    #[test]
    fn what_may_be_secret_is_seen() {
        assert!(parts("https://example.com/mcp?key=1").has_credentials);
        assert!(parts("https://user:word@example.com/mcp").has_credentials);
        assert!(!parts("https://example.com/mcp").has_credentials);
        assert!(parts("https://example.com/sse/").ends_like_events());
        assert!(!parts("https://example.com/mcp?x=/sse").ends_like_events());
    }

    #[test]
    fn other_schemes_are_no_addresses() {
        for url in ["ws://example.com", "example.com", "https://", "https:///mcp", ""] {
            assert_eq!(Parts::of(url), None, "{url}");
        }
    }
}
