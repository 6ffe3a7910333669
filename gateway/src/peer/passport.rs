//! What a node states about the caller of a forwarded request: its identity, how it was proved, and
//! until when it is valid. The connection proves that a node made the statement.

use crate::identity::{Authenticated, CredentialHash, Proof, WrittenIdentity};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::time::Timestamp;
use http::{HeaderName, HeaderValue};
use policy::{Caller, IdentityProof};
use serde::{Deserialize, Serialize};

/// The node that the request is addressed to. A process that took over another node's address must
/// not answer in its place.
pub(crate) const RELAY_TO: HeaderName = HeaderName::from_static("holdpoint-relay-to");
/// The caller of the request.
pub(crate) const RELAY_FOR: HeaderName = HeaderName::from_static("holdpoint-relay-for");
/// Why the request was forwarded.
pub(crate) const RELAY_AS: HeaderName = HeaderName::from_static("holdpoint-relay-as");

/// Why a request was forwarded. INVARIANT: a request is forwarded at most twice, to the owner of
/// its session and from there to the owner of a process, so that it cannot loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayKind {
    /// The node owns the session.
    Session,
    /// The node owns the caller's process of the server.
    Instance,
    /// The node has its own receipts.
    Receipts,
    /// The node may have calls that wait for approval.
    Approvals,
    /// The node may have streams of a caller whose process sent a message. Not a request of a
    /// caller.
    Told,
}

impl RelayKind {
    const ALL: [RelayKind; 5] = [
        RelayKind::Session,
        RelayKind::Instance,
        RelayKind::Receipts,
        RelayKind::Approvals,
        RelayKind::Told,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            RelayKind::Session => "session",
            RelayKind::Instance => "instance",
            RelayKind::Receipts => "receipts",
            RelayKind::Approvals => "approvals",
            RelayKind::Told => "told",
        }
    }

    pub(crate) fn named(text: &str) -> Option<RelayKind> {
        RelayKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    identity: WrittenIdentity,
    credential: String,
    proof: WrittenProof,
    expires_at: Option<i64>,
    since: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum WrittenProof {
    Key {},
    Token { issuer: String, key_id: String, key_fingerprint: String },
    Minted { family: String },
    Certificate {},
}

/// The statement about a caller; `None` if it cannot be encoded.
pub(crate) fn write(found: &Authenticated) -> Option<HeaderValue> {
    let written = Written {
        identity: WrittenIdentity::of(found.caller.identity()),
        credential: hex::encode(found.credential.0),
        proof: match &found.proof {
            Proof::Key => WrittenProof::Key {},
            Proof::Token { issuer, key_id, key_fingerprint } => WrittenProof::Token {
                issuer: issuer.clone(),
                key_id: key_id.clone(),
                key_fingerprint: hex::encode(key_fingerprint),
            },
            Proof::Minted { family } => WrittenProof::Minted { family: family.clone() },
            Proof::Certificate => WrittenProof::Certificate {},
        },
        expires_at: found.expires_at.map(|at| at.0),
        since: found.since.0,
    };
    let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&written).ok()?);
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads exactly what [`write`] writes.
pub(crate) fn read(text: &str) -> Option<Authenticated> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let written: Written = serde_json::from_slice(&bytes).ok()?;
    let (proof, proved_by) = match written.proof {
        WrittenProof::Key {} => (Proof::Key, IdentityProof::Key),
        WrittenProof::Token { issuer, key_id, key_fingerprint } => {
            let key_fingerprint = hash(&key_fingerprint)?;
            (Proof::Token { issuer, key_id, key_fingerprint }, IdentityProof::Token)
        }
        WrittenProof::Minted { family } => (Proof::Minted { family }, IdentityProof::Token),
        WrittenProof::Certificate {} => (Proof::Certificate, IdentityProof::Certificate),
    };
    Some(Authenticated {
        caller: Caller::new(written.identity.read(proved_by)?),
        credential: CredentialHash(hash(&written.credential)?),
        proof,
        expires_at: written.expires_at.map(Timestamp),
        since: Timestamp(written.since),
    })
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::{ActorType, Identity};

    #[test]
    fn a_caller_arrives_as_it_was_verified() {
        let token = Proof::Token {
            issuer: "https://idp".to_owned(),
            key_id: "k1".to_owned(),
            key_fingerprint: [3; 32],
        };
        let ways = [
            (Proof::Key, IdentityProof::Key, None),
            (token, IdentityProof::Token, Some(Timestamp(1_800_000_000_000))),
            (Proof::Minted { family: "f1".to_owned() }, IdentityProof::Token, None),
            (Proof::Certificate, IdentityProof::Certificate, None),
        ];
        for (proof, proved_by, expires_at) in ways {
            let identity = Identity {
                issuer: "https://idp".to_owned(),
                subject: "ädä\n".to_owned(),
                actor_type: ActorType::User,
                client_id: Some("app".to_owned()),
                org: Some("acme".to_owned()),
                groups: vec!["a".to_owned(), "b".to_owned()],
                clearance: None,
                mfa: true,
                proof: proved_by,
            };
            let caller = Caller::new(identity);
            let credential = CredentialHash([9; 32]);
            let since = Timestamp(i64::MIN);
            let found = Authenticated { caller, credential, proof, expires_at, since };
            let header = write(&found).unwrap();
            assert!(header.is_sensitive());
            assert_eq!(read(header.to_str().unwrap()), Some(found));
        }
        for wrong in ["", "e30", "bnVsbA", "not base64!"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_reason_to_forward_has_a_name() {
        for kind in RelayKind::ALL {
            assert_eq!(RelayKind::named(kind.as_str()), Some(kind));
        }
        assert_eq!(RelayKind::named("other"), None);
    }
}
