//! Revoked callers, and when each was revoked. Credentials issued, and sessions and sealed states
//! begun, before that moment are no longer valid. Later ones are checked as usual.

use super::CredentialHash;
use contract::hash::sha256_hex;
use contract::time::Timestamp;
use policy::Identity;
use std::collections::HashMap;
use store::{Revocation, RevokedKind};

/// The revocations that concern callers, indexed by what they name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RevokedCallers {
    /// By subject, or by issuer and subject.
    principals: HashMap<String, Timestamp>,
    /// By the SHA-256 of what the person typed: a key or its id.
    keys: HashMap<String, Timestamp>,
    /// By the SHA-256 of the id.
    sessions: HashMap<String, Timestamp>,
}

impl RevokedCallers {
    pub(super) fn of(all: &[Revocation]) -> RevokedCallers {
        let mut revoked = RevokedCallers::default();
        for revocation in all {
            let (named, name) = match revocation.kind {
                RevokedKind::Principal => (&mut revoked.principals, revocation.value.clone()),
                RevokedKind::Key => (&mut revoked.keys, revocation.value_sha256()),
                RevokedKind::Session => (&mut revoked.sessions, revocation.value_sha256()),
                RevokedKind::Server => continue,
            };
            let at = named.entry(name).or_insert(revocation.signed.at);
            *at = revocation.signed.at.max(*at);
        }
        revoked
    }

    /// When a principal was last revoked.
    pub(crate) fn principal(&self, identity: &Identity) -> Option<Timestamp> {
        if self.principals.is_empty() {
            return None;
        }
        let whole = policy::principal_id(&identity.issuer, &identity.subject);
        let named = [identity.subject.as_str(), whole.as_str()];
        named.iter().filter_map(|name| self.principals.get(*name)).max().copied()
    }

    /// Whether any key was revoked.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// When a key was last revoked, by itself or by its id.
    pub(super) fn key(&self, credential: CredentialHash, id: &str) -> Option<Timestamp> {
        if self.keys.is_empty() {
            return None;
        }
        let named = [hex::encode(credential.0), sha256_hex(id.as_bytes())];
        named.iter().filter_map(|name| self.keys.get(name)).max().copied()
    }

    /// Whether a revocation ends a session that the caller began at this moment.
    pub(crate) fn ends_session(&self, id: &str, began: Timestamp, identity: &Identity) -> bool {
        let is_named =
            !self.sessions.is_empty() && self.sessions.contains_key(&sha256_hex(id.as_bytes()));
        is_named || self.principal(identity).is_some_and(|at| at >= began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::{ActorType, IdentityProof};
    use store::Signed;

    fn identity(subject: &str) -> Identity {
        Identity {
            issuer: "https://idp".to_owned(),
            subject: subject.to_owned(),
            actor_type: ActorType::Agent,
            client_id: None,
            org: None,
            groups: Vec::new(),
            clearance: None,
            mfa: false,
            proof: IdentityProof::Token,
        }
    }

    fn revoked(kind: RevokedKind, value: &str, at: i64) -> Revocation {
        let signed = Signed { by: "ada".to_owned(), at: Timestamp(at) };
        Revocation { kind, value: value.to_owned(), signed }
    }

    #[test]
    fn a_principal_is_named_by_its_subject_or_with_its_issuer() {
        let all = [
            revoked(RevokedKind::Principal, "svc", 5),
            revoked(RevokedKind::Principal, "https://idp|bot", 7),
            revoked(RevokedKind::Principal, "https://other|eve", 9),
        ];
        let revoked = RevokedCallers::of(&all);
        assert_eq!(revoked.principal(&identity("svc")), Some(Timestamp(5)));
        assert_eq!(revoked.principal(&identity("bot")), Some(Timestamp(7)));
        assert_eq!(revoked.principal(&identity("eve")), None);
    }

    #[test]
    fn a_session_that_began_before_is_over_and_a_later_one_is_not() {
        let id = "sealed";
        let named = format!("sha256:{}", sha256_hex(id.as_bytes()));
        let all =
            [revoked(RevokedKind::Principal, "svc", 5), revoked(RevokedKind::Session, &named, 1)];
        let revoked = RevokedCallers::of(&all);
        let svc = identity("svc");
        assert!(revoked.ends_session("other", Timestamp(5), &svc));
        assert!(!revoked.ends_session("other", Timestamp(6), &svc));
        assert!(!revoked.ends_session("other", Timestamp(1), &identity("ada")));
        assert!(revoked.ends_session(id, Timestamp(9), &identity("ada")), "it was named itself");
    }
}
