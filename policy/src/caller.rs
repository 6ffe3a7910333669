//! An identity together with the key under which its decisions are cached.

use crate::identity::{Identity, IdentityProof};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A hash over every part of an identity that policies can read. Equal keys imply equal decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdentityKey([u8; 32]);

impl IdentityKey {
    pub fn of(identity: &Identity) -> IdentityKey {
        let mut hash = Sha256::new();
        // Each part is preceded by its length, so that no two identities write the same bytes.
        let mut part = |present: bool, bytes: &[u8]| {
            hash.update([u8::from(present)]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(true, identity.issuer.as_bytes());
        part(true, identity.subject.as_bytes());
        part(true, identity.actor_type.as_str().as_bytes());
        part(true, proof_word(identity.proof).as_bytes());
        for optional in [&identity.client_id, &identity.org, &identity.clearance] {
            part(optional.is_some(), optional.as_deref().unwrap_or_default().as_bytes());
        }
        part(identity.mfa, &[]);
        part(true, &(identity.groups.len() as u64).to_le_bytes());
        for group in &identity.groups {
            part(true, group.as_bytes());
        }
        IdentityKey(hash.finalize().into())
    }

    pub(crate) fn shard(&self) -> u8 {
        self.0[0]
    }
}

pub(crate) fn proof_word(proof: IdentityProof) -> &'static str {
    match proof {
        IdentityProof::Token => "token",
        IdentityProof::Key => "key",
        IdentityProof::Certificate => "certificate",
    }
}

/// A verified identity with its key. Create it once per token, because computing the key takes a
/// hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    identity: Arc<Identity>,
    key: IdentityKey,
    principal: [u8; 32],
}

impl Caller {
    pub fn new(identity: impl Into<Arc<Identity>>) -> Caller {
        let identity = identity.into();
        let key = IdentityKey::of(&identity);
        let principal = principal_hash(&identity);
        Caller { identity, key, principal }
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn key(&self) -> IdentityKey {
        self.key
    }

    /// A hash over issuer and subject, which identifies the principal regardless of its current
    /// attributes.
    pub fn principal(&self) -> [u8; 32] {
        self.principal
    }
}

fn principal_hash(identity: &Identity) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [&identity.issuer, &identity.subject] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ActorType;

    fn identity() -> Identity {
        Identity {
            issuer: "https://idp".to_owned(),
            subject: "alice".to_owned(),
            actor_type: ActorType::User,
            client_id: None,
            org: None,
            groups: vec!["a".to_owned(), "b".to_owned()],
            clearance: None,
            mfa: false,
            proof: IdentityProof::Token,
        }
    }

    #[test]
    fn every_attribute_changes_the_key() {
        let changes: [fn(&mut Identity); 10] = [
            |identity| identity.issuer.push('x'),
            |identity| identity.subject.push('x'),
            |identity| identity.actor_type = ActorType::Agent,
            |identity| identity.client_id = Some(String::new()),
            |identity| identity.org = Some(String::new()),
            |identity| identity.clearance = Some(String::new()),
            |identity| identity.mfa = true,
            |identity| identity.proof = IdentityProof::Key,
            |identity| identity.groups = vec!["ab".to_owned()],
            |identity| identity.groups = vec!["a".to_owned()],
        ];
        let mut keys = vec![IdentityKey::of(&identity())];
        for change in changes {
            let mut changed = identity();
            change(&mut changed);
            keys.push(IdentityKey::of(&changed));
        }
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), changes.len() + 1);
        assert_eq!(IdentityKey::of(&identity()), Caller::new(identity()).key());
    }

    #[test]
    fn a_principal_is_its_issuer_and_its_subject() {
        let principal = |issuer: &str, subject: &str, mfa| {
            let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
            Caller::new(Identity { issuer, subject, mfa, ..identity() }).principal()
        };
        assert_eq!(principal("a", "bc", false), principal("a", "bc", true));
        assert_ne!(principal("a", "bc", false), principal("ab", "c", false));
    }
}
