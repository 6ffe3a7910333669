//! The serialized form of a verified identity, for what the gateway seals or sends to another node.

use policy::{ActorType, Identity, IdentityProof};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenIdentity {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    actor_type: String,
    pub(crate) client_id: Option<String>,
    org: Option<String>,
    groups: Vec<String>,
    clearance: Option<String>,
    mfa: bool,
}

impl WrittenIdentity {
    pub(crate) fn of(identity: &Identity) -> WrittenIdentity {
        WrittenIdentity {
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
            actor_type: identity.actor_type.as_str().to_owned(),
            client_id: identity.client_id.clone(),
            org: identity.org.clone(),
            groups: identity.groups.clone(),
            clearance: identity.clearance.clone(),
            mfa: identity.mfa,
        }
    }

    /// The same identity, using this client.
    pub(crate) fn using(&self, client_id: &str) -> WrittenIdentity {
        WrittenIdentity { client_id: Some(client_id.to_owned()), ..self.clone() }
    }

    /// Identifies the person: issuer and subject.
    pub(crate) fn principal(&self) -> String {
        policy::principal_id(&self.issuer, &self.subject)
    }

    /// Returns `None` for anything that [`WrittenIdentity::of`] did not write.
    pub(crate) fn read(self, proof: IdentityProof) -> Option<Identity> {
        let actor_type = [ActorType::Agent, ActorType::User, ActorType::System]
            .into_iter()
            .find(|known| known.as_str() == self.actor_type)?;
        Some(Identity {
            issuer: self.issuer,
            subject: self.subject,
            actor_type,
            client_id: self.client_id,
            org: self.org,
            groups: self.groups,
            clearance: self.clearance,
            mfa: self.mfa,
            proof,
        })
    }
}
