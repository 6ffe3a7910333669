//! The tokens in a request: the caller's own, and those that it sent for servers.

use super::passthrough::Needles;
use super::unavailable::Unavailable;
use crate::principal::Principal;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The header with which a caller sends a token for one server, as `SERVER TOKEN`. It may be
/// repeated.
pub const BOUND_HEADER: &str = "holdpoint-upstream-authorization";
/// The most of these headers that are read per request.
const MAX_BOUND: usize = 16;
/// The longest token in one.
const MAX_BOUND_BYTES: usize = 16 * 1024;

/// Distinguishes one caller's credential from another's: the SHA-256 of the token that it is
/// derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerKey(pub [u8; 32]);

/// The tokens in a request. They are shared with the request rather than copied.
#[derive(Debug, Clone, Default)]
pub struct Inbound {
    /// `Bearer …`, marked as sensitive.
    authorization: Option<HeaderValue>,
    key: Option<CallerKey>,
    /// Whether the caller's credential is an access token, which can be exchanged.
    is_token: bool,
    needles: Option<Arc<Needles>>,
    bound: Vec<HeaderValue>,
    /// The principal that makes the request. Credentials obtained for it are dropped when the
    /// principal is revoked.
    principal: Option<Arc<Principal>>,
}

impl Inbound {
    /// A caller's credential, from this header and with this hash.
    pub fn of(
        authorization: Option<&HeaderValue>,
        key: CallerKey,
        is_token: bool,
        needles: Option<Arc<Needles>>,
    ) -> Inbound {
        let authorization = authorization.cloned().map(sensitive);
        let (key, bound, principal) = (Some(key), Vec::new(), None);
        Inbound { authorization, key, is_token, needles, bound, principal }
    }

    /// Sets the principal that makes the request.
    #[must_use]
    pub fn owned_by(self, principal: Arc<Principal>) -> Inbound {
        Inbound { principal: Some(principal), ..self }
    }

    pub(super) fn principal(&self) -> Option<&Arc<Principal>> {
        self.principal.as_ref()
    }

    /// Adds the tokens that the caller sent for servers.
    #[must_use]
    pub fn with_bound<'a>(self, headers: impl Iterator<Item = &'a HeaderValue>) -> Inbound {
        // Keep one more than allowed, so that an excess is detected.
        let bound = headers.take(MAX_BOUND + 1).cloned().map(sensitive).collect();
        Inbound { bound, ..self }
    }

    /// A copy without the tokens that belong to this one request.
    #[must_use]
    pub fn unbound(&self) -> Inbound {
        Inbound { bound: Vec::new(), ..self.clone() }
    }

    pub(super) fn key(&self) -> Option<CallerKey> {
        self.key
    }

    /// The caller's access token, if it has one.
    pub(super) fn exchangeable(&self) -> Option<&str> {
        let value = self.authorization.as_ref().filter(|_| self.is_token)?;
        Some(value.to_str().ok()?.split_once(' ')?.1.trim_start_matches(' '))
    }

    /// The token sent for a server.
    pub(super) fn bound_token(&self, server: &str) -> Result<&str, Unavailable> {
        if self.bound.len() > MAX_BOUND {
            return Err(Unavailable::BadBoundHeader);
        }
        let mut found = None;
        for value in &self.bound {
            let (named, token) = read_bound(value).ok_or(Unavailable::BadBoundHeader)?;
            if named == server && found.replace(token).is_some() {
                return Err(Unavailable::BadBoundHeader);
            }
        }
        found.ok_or(Unavailable::NotSent)
    }

    pub(super) fn bound_key(&self, server: &str) -> Option<CallerKey> {
        let token = self.bound_token(server).ok()?;
        Some(CallerKey(Sha256::digest(token.as_bytes()).into()))
    }

    /// Whether any of these tokens occurs in outgoing data, in any form in which a server could
    /// read it.
    pub fn occurs_in(&self, outgoing: &[u8]) -> bool {
        self.needles.as_ref().is_some_and(|needles| needles.occur_in(outgoing))
            || self.bound.iter().any(|value| {
                let token =
                    read_bound(value).map_or(value.as_bytes(), |(_, token)| token.as_bytes());
                Needles::of(token).occur_in(outgoing)
            })
    }

    /// Whether a credential of the gateway contains the caller's own token, which is not allowed.
    pub fn is_in_credential(&self, shown: &HeaderValue) -> bool {
        self.own_token_occurs_in(shown.as_bytes())
    }

    pub(crate) fn own_token_occurs_in(&self, bytes: &[u8]) -> bool {
        self.needles.as_ref().is_some_and(|needles| needles.occur_in(bytes))
    }
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

fn read_bound(value: &HeaderValue) -> Option<(&str, &str)> {
    let (server, token) = value.to_str().ok()?.trim_matches(' ').split_once(' ')?;
    let token = token.trim_start_matches(' ');
    let is_whole = !server.is_empty()
        && (1..=MAX_BOUND_BYTES).contains(&token.len())
        && !token.contains([' ', ',', '\t']);
    is_whole.then_some((server, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&str]) -> Inbound {
        let values: Vec<HeaderValue> =
            values.iter().map(|value| HeaderValue::from_str(value).unwrap()).collect();
        Inbound::default().with_bound(values.iter())
    }

    #[test]
    fn a_token_is_for_the_server_that_its_header_names() {
        let inbound = sent(&["issues aaa.bbb.ccc", "files  ddd.eee.fff"]);
        assert_eq!(inbound.bound_token("issues").unwrap(), "aaa.bbb.ccc");
        assert_eq!(inbound.bound_token("files").unwrap(), "ddd.eee.fff");
        assert!(matches!(inbound.bound_token("other"), Err(Unavailable::NotSent)));
        assert!(matches!(sent(&[]).bound_token("issues"), Err(Unavailable::NotSent)));
        for bad in
            [vec!["issues a.b.c", "issues d.e.f"], vec!["issues"], vec!["issues a b"], vec![""]]
        {
            let inbound = sent(&bad);
            let refused = inbound.bound_token("issues");
            assert!(matches!(refused, Err(Unavailable::BadBoundHeader)), "{bad:?}");
        }
    }

    #[test]
    fn the_headers_and_their_tokens_are_bounded() {
        let many = |count: usize| -> Vec<String> {
            (0..count).map(|number| format!("s{number} a.b.c")).collect()
        };
        let names = |all: &[String]| sent(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(names(&many(MAX_BOUND)).bound_token("s1").is_ok());
        assert!(names(&many(MAX_BOUND + 1)).bound_token("s1").is_err());
        let long = |bytes: usize| format!("s {}", "x".repeat(bytes));
        assert!(sent(&[&long(MAX_BOUND_BYTES)]).bound_token("s").is_ok());
        assert!(sent(&[&long(MAX_BOUND_BYTES + 1)]).bound_token("s").is_err());
    }

    #[test]
    fn nothing_of_a_token_is_in_debug_output() {
        let header = HeaderValue::from_static("Bearer canary-canary");
        let inbound = Inbound::of(Some(&header), CallerKey([0; 32]), true, None)
            .with_bound([HeaderValue::from_static("issues canary-canary")].iter());
        assert!(!format!("{inbound:?}").contains("canary"), "{inbound:?}");
    }
}
