//! The first checks of a request: whether a page of another site sent it, and whether it was meant
//! for this gateway. A name that an attacker points at this machine (DNS rebinding) fails both.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};
use settings::gateway::{FrontSettings, WebOrigin};
use std::net::SocketAddr;

/// The names under which a gateway is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontNames {
    /// From `public_url` and `allowed_origins`.
    origins: Vec<WebOrigin>,
    /// In lower case, with the port unless it is the scheme's default.
    authorities: Vec<String>,
}

/// Why a request is not for this gateway. Both get status 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    #[error("a page of another origin sent this request; `allowed_origins` does not have it")]
    Origin,
    #[error("this request was sent to another host than this gateway's")]
    Host,
}

impl FrontNames {
    /// The names that are valid at a listening address. A loopback address also accepts the names
    /// of this machine.
    pub fn new(front: &FrontSettings, listen: SocketAddr) -> FrontNames {
        let mut authorities = vec![front.public_url.authority().to_owned()];
        let port = listen.port();
        if listen.ip().is_loopback() {
            let local = ["localhost", "127.0.0.1", "[::1]"];
            authorities.extend(local.iter().map(|name| format!("{name}:{port}")));
        }
        // A client may include the default port of the scheme.
        if !has_port(front.public_url.authority()) {
            let port = if front.public_url.is_secure() { 443 } else { 80 };
            authorities.push(format!("{}:{port}", front.public_url.authority()));
        }
        let mut origins = vec![front.public_url.clone()];
        origins.extend(front.allowed_origins.iter().cloned());
        FrontNames { origins, authorities }
    }

    /// The same names with the origins of newer settings.
    #[must_use]
    pub fn with_origins_of(&self, front: &FrontSettings) -> FrontNames {
        let mut origins = vec![front.public_url.clone()];
        origins.extend(front.allowed_origins.iter().cloned());
        FrontNames { origins, authorities: self.authorities.clone() }
    }

    /// The names at a separate listening address: the host of `public_url` with the other port, and
    /// the address itself.
    pub fn beside(front: &FrontSettings, listen: SocketAddr) -> FrontNames {
        let mut names = FrontNames::new(front, listen);
        let port = listen.port();
        let authority = front.public_url.authority();
        let host = match has_port(authority) {
            true => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
            false => authority,
        };
        names.authorities.push(format!("{host}:{port}"));
        if !listen.ip().is_unspecified() {
            names.authorities.push(listen.to_string());
        }
        names
    }

    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), NotOurs> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), NotOurs> {
        let mut given = headers.get_all(ORIGIN).iter();
        match (given.next(), given.next()) {
            // Programs other than browsers send no origin.
            (None, _) => Ok(()),
            (Some(origin), None) => {
                let is_known = |known: &WebOrigin| {
                    known.as_str().as_bytes().eq_ignore_ascii_case(origin.as_bytes())
                };
                if self.origins.iter().any(is_known) { Ok(()) } else { Err(NotOurs::Origin) }
            }
            (Some(_), Some(_)) => Err(NotOurs::Origin),
        }
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), NotOurs> {
        let mut given = headers.get_all(HOST).iter();
        let host = match (given.next(), given.next()) {
            (Some(host), None) => Some(host.to_str().map_err(|_| NotOurs::Host)?),
            (None, _) => None,
            (Some(_), Some(_)) => return Err(NotOurs::Host),
        };
        // HTTP/2 has the host in the URI.
        let authority = uri.authority().map(http::uri::Authority::as_str);
        let is_known =
            |name: &str| self.authorities.iter().any(|known| known.eq_ignore_ascii_case(name));
        match (host, authority) {
            (None, None) => Err(NotOurs::Host),
            (host, authority) => {
                if host.into_iter().chain(authority).all(is_known) {
                    Ok(())
                } else {
                    Err(NotOurs::Host)
                }
            }
        }
    }
}

fn has_port(authority: &str) -> bool {
    let after_address = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_address.contains(':')
}

#[cfg(test)]
mod tests;
