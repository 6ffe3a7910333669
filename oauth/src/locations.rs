//! Where metadata is located, and which addresses may be used: path insertion (RFC 8414 §3.1, RFC
//! 9728 §3.1), which resources are the same, and which addresses a server may name.

use crate::error::SignInError;
use url::{Host, Url};
use wire::{EndpointUrl, PlainUrl, ServerText};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The MCP server that a sign-in is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUrl {
    url: Url,
    is_loopback: bool,
}

impl ResourceUrl {
    pub fn new(endpoint: &EndpointUrl) -> Result<ResourceUrl, SignInError> {
        let url = plain("url", endpoint.as_str())?;
        Ok(ResourceUrl { is_loopback: is_loopback(&url), url })
    }

    /// Whether the server itself is on this machine. Only then may its metadata name addresses on
    /// this machine.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// The resource's identifier if it has no metadata: its address without the query, and without
    /// a path of just `/`.
    pub fn identifier(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        let text = url.to_string();
        if url.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
    }

    /// The possible locations of the metadata, in the order in which they are tried.
    pub fn metadata(&self) -> Vec<String> {
        let at_path = inserted(&self.url, RESOURCE);
        let at_root = origin(&self.url) + RESOURCE;
        if at_path == at_root { vec![at_root] } else { vec![at_path, at_root] }
    }

    /// The issuer used if there is no resource metadata, as in revision 2025-03-26.
    pub fn legacy_issuer(&self) -> String {
        origin(&self.url)
    }

    /// Whether a document at `location` may say that tokens for this server are for `resource`.
    ///
    /// It may name this server's own address. It may name a parent of it (same origin, fewer path
    /// segments) only if the document is at the parent's own well-known location, where the parent
    /// speaks for itself. Otherwise one server could request tokens that another one accepts.
    pub fn is_named_by(&self, resource: &str, location: &str) -> bool {
        let Ok(named) = plain("resource", resource) else { return false };
        if origin(&named) != origin(&self.url) {
            return false;
        }
        let query_fits = named.query().is_none() || named.query() == self.url.query();
        let (own, other) = (segments(&self.url), segments(&named));
        if own == other {
            return query_fits;
        }
        let is_parent = named.query().is_none() && own.starts_with(&other);
        is_parent && same_text(&inserted(&named, RESOURCE), location)
    }

    /// An address named by metadata, if it may be used: https, or plain http on this machine for a
    /// server on this machine.
    pub fn named(&self, name: &'static str, text: &str) -> Result<EndpointUrl, SignInError> {
        let bad = |problem| SignInError::BadAddress { name, url: ServerText::line(text), problem };
        let url = plain(name, text)?;
        if is_loopback(&url) && !self.is_loopback {
            return Err(bad("it is on this machine, and the server is not"));
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) => {}
            _ => return Err(bad("it is not https")),
        }
        text.parse().map_err(|_| bad("it is not a URL that can be used"))
    }
}

/// The possible locations of an authorization server's metadata, in the order in which they are
/// tried.
pub fn of_issuer(issuer: &str) -> Result<Vec<String>, SignInError> {
    let url = plain("issuer", issuer)?;
    if url.query().is_some() {
        let problem = "an issuer has no query";
        return Err(SignInError::BadAddress {
            name: "issuer",
            url: ServerText::line(issuer),
            problem,
        });
    }
    let mut places = vec![inserted(&url, SERVER), inserted(&url, OPENID)];
    let path = url.path().trim_end_matches('/');
    if !path.is_empty() {
        places.push(format!("{}{path}{OPENID}", origin(&url)));
    }
    Ok(places)
}

fn plain(name: &'static str, text: &str) -> Result<Url, SignInError> {
    let bad = |problem| SignInError::BadAddress { name, url: ServerText::line(text), problem };
    let endpoint: EndpointUrl =
        text.parse().map_err(|_| bad("it is not a URL that can be used"))?;
    let plain: PlainUrl = endpoint.as_str().parse().map_err(|_| bad("it is ambiguous"))?;
    Ok(plain.url)
}

/// The scheme, host and port; the port is omitted if it is the scheme's default.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Inserts a well-known path between the host and the path.
fn inserted(url: &Url, well_known: &str) -> String {
    format!("{}{well_known}{}", origin(url), url.path().trim_end_matches('/'))
}

fn segments(url: &Url) -> Vec<&str> {
    url.path().split('/').filter(|segment| !segment.is_empty()).collect()
}

fn same_text(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
        None => false,
    }
}

#[cfg(test)]
mod tests;
