//! A signed list of signers and documents that are no longer valid, with its own expiry.

use crate::body::{Object, SIGNATURE};
use crate::denial::{Clause, Denial, Reason};
use crate::digest::AttestationDigest;
use crate::key::Signed;
use crate::key_id::KeyId;
use crate::limits::{MAX_REVOCATION_LIST_BYTES, MAX_REVOCATION_LIST_DAYS, MAX_REVOKED};
use crate::shape::{self, Fields, Moment, ShapeError};
use crate::trust::TrustRoot;
use contract::time::Timestamp;
use std::collections::BTreeSet;

/// Distinguishes a revocation list from a document.
pub(crate) const TYPE: &str = "mcp-attestation-revocations";
pub(crate) const MEMBERS: [&str; 8] =
    ["v", "type", "issued", "expires", "signers", "documents", "signerKeyId", SIGNATURE];

const LONGEST_MILLISECONDS: i64 = MAX_REVOCATION_LIST_DAYS * 24 * 60 * 60 * 1_000;

/// A verified list.
#[derive(Debug)]
pub struct RevocationList {
    body: ListBody,
}

/// The signed part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListBody {
    issued: Moment,
    expires: Moment,
    signers: BTreeSet<KeyId>,
    documents: BTreeSet<AttestationDigest>,
    pub(crate) signer: Option<KeyId>,
}

/// Why a list is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RevocationError {
    #[error("not a revocation list: {0}")]
    Shape(#[from] ShapeError),
    #[error("the revocation list is not signed")]
    Unsigned,
    #[error("the revocation list's signer `{0}` is not in the trust root, or may not revoke")]
    SignerNotTrusted(KeyId),
    #[error("the revocation list's signer was trusted until {0}")]
    SignerExpired(Timestamp),
    #[error("the revocation list's signature does not verify")]
    BadSignature,
    #[error("the revocation list was issued in the future, at {0}")]
    NotYetIssued(Timestamp),
    #[error("the revocation list was good until {0}: a newer one is needed")]
    Stale(Timestamp),
}

impl RevocationError {
    /// The denial of a server for this reason: without a valid list, no server is cleared.
    pub fn to_denial(&self) -> Denial {
        Denial::by(Clause::D, Reason::FetchFailed, self)
    }
}

impl RevocationList {
    /// Parses a list, and accepts it only if a signer of the trust root that may revoke has signed
    /// it and it has not expired.
    pub fn verify(
        bytes: &[u8],
        root: &TrustRoot,
        now: Timestamp,
    ) -> Result<RevocationList, RevocationError> {
        let (body, signature) = read(bytes)?;
        let (Some(key_id), Some(signature)) = (&body.signer, signature) else {
            return Err(RevocationError::Unsigned);
        };
        let signer = root.find(key_id).filter(|signer| signer.may_revoke());
        let signer = signer.ok_or_else(|| RevocationError::SignerNotTrusted(key_id.clone()))?;
        if let Some(end) = signer.not_after().filter(|end| *end < now) {
            return Err(RevocationError::SignerExpired(end));
        }
        match signer.public_key().check_text(&body.canonical(), &signature) {
            Signed::Yes => {}
            Signed::No => return Err(RevocationError::BadSignature),
        }
        if body.issued.at > now {
            return Err(RevocationError::NotYetIssued(body.issued.at));
        }
        if body.expires.at < now {
            return Err(RevocationError::Stale(body.expires.at));
        }
        Ok(RevocationList { body })
    }

    /// When the list was made. The later of two lists counts; the caller should not go back to an
    /// older one.
    pub fn issued(&self) -> Timestamp {
        self.body.issued.at
    }

    /// When the list expires.
    pub fn expires(&self) -> Timestamp {
        self.body.expires.at
    }

    /// Clause (d). An expired list says nothing about today, so it cannot clear a server.
    pub(crate) fn check_signer(&self, key_id: &KeyId, now: Timestamp) -> Result<(), Denial> {
        if self.expires() < now {
            return Err(RevocationError::Stale(self.expires()).to_denial());
        }
        if self.body.signers.contains(key_id) {
            let detail = format!("the signer `{key_id}` was revoked");
            return Err(Denial::by(Clause::D, Reason::SignerRevoked, detail));
        }
        Ok(())
    }

    pub(crate) fn check_document(&self, digest: &AttestationDigest) -> Result<(), Denial> {
        if self.body.documents.contains(digest) {
            let detail = format!("the document {digest} was revoked");
            return Err(Denial::by(Clause::F, Reason::AttestationRevoked, detail));
        }
        Ok(())
    }
}

pub(crate) fn read(bytes: &[u8]) -> Result<(ListBody, Option<String>), ShapeError> {
    let document = shape::read(bytes, MAX_REVOCATION_LIST_BYTES)?;
    let fields = Fields::of(document.root(), "a revocation list")?;
    Ok((ListBody::read(fields)?, fields.signature()?))
}

impl ListBody {
    /// Lists are parsed strictly: a member unknown to this version could revoke something.
    pub(crate) fn read(fields: Fields<'_>) -> Result<ListBody, ShapeError> {
        fields.only(&MEMBERS)?;
        if !fields.is_spelled("v", "1") {
            return Err(ShapeError::Unexpected { member: "v", expected: "1" });
        }
        if fields.required_text("type")? != TYPE {
            return Err(ShapeError::Unexpected { member: "type", expected: TYPE });
        }
        let bad_id = |member| ShapeError::Unexpected { member, expected: "the id of a key" };
        let mut signers = BTreeSet::new();
        for id in fields.required_texts("signers", MAX_REVOKED)? {
            signers.insert(KeyId::parse(&id).map_err(|_| bad_id("signers"))?);
        }
        let mut documents = BTreeSet::new();
        for text in fields.required_texts("documents", MAX_REVOKED)? {
            let expected = "a list of documents' digests, each 64 hexadecimal digits in lower case";
            let digest = AttestationDigest::parse(&text);
            documents
                .insert(digest.ok_or(ShapeError::Unexpected { member: "documents", expected })?);
        }
        let required = |member| fields.moment(member)?.ok_or(ShapeError::Missing { member });
        let (issued, expires) = (required("issued")?, required("expires")?);
        if expires.at <= issued.at {
            return Err(ShapeError::Unexpected { member: "expires", expected: "after `issued`" });
        }
        if expires.at.0.saturating_sub(issued.at.0) > LONGEST_MILLISECONDS {
            let expected = "at most 31 days after `issued`";
            return Err(ShapeError::Unexpected { member: "expires", expected });
        }
        let signer = fields.text("signerKeyId")?;
        let signer = signer.map(|id| KeyId::parse(&id).map_err(|_| bad_id("signerKeyId")));
        Ok(ListBody { issued, expires, signers, documents, signer: signer.transpose()? })
    }

    pub(crate) fn issued(&self) -> Timestamp {
        self.issued.at
    }

    pub(crate) fn expires(&self) -> Timestamp {
        self.expires.at
    }

    pub(crate) fn signers(&self) -> impl ExactSizeIterator<Item = &KeyId> {
        self.signers.iter()
    }

    pub(crate) fn documents(&self) -> impl ExactSizeIterator<Item = &AttestationDigest> {
        self.documents.iter()
    }

    pub(crate) fn canonical(&self) -> Vec<u8> {
        let texts = |texts: &mut dyn Iterator<Item = &str>| -> Vec<String> {
            texts.map(str::to_owned).collect()
        };
        let mut out = Object::new(256);
        let documents = texts(&mut self.documents.iter().map(AttestationDigest::as_str));
        out.list("documents", &documents);
        out.text("expires", &self.expires.text);
        out.text("issued", &self.issued.text);
        out.optional("signerKeyId", self.signer.as_ref().map(KeyId::as_str));
        out.list("signers", &texts(&mut self.signers.iter().map(KeyId::as_str)));
        out.text("type", TYPE);
        out.raw("v", b"1");
        out.finish()
    }

    /// The list as a readable document, without its signature.
    pub(crate) fn document(&self) -> serde_json::Map<String, serde_json::Value> {
        let signers: Vec<&str> = self.signers.iter().map(KeyId::as_str).collect();
        let documents: Vec<&str> = self.documents.iter().map(AttestationDigest::as_str).collect();
        let mut out = serde_json::Map::new();
        out.insert("v".to_owned(), 1.into());
        out.insert("type".to_owned(), TYPE.into());
        out.insert("issued".to_owned(), self.issued.text.as_str().into());
        out.insert("expires".to_owned(), self.expires.text.as_str().into());
        out.insert("signers".to_owned(), signers.into());
        out.insert("documents".to_owned(), documents.into());
        out.insert("signerKeyId".to_owned(), self.signer.as_ref().map(KeyId::as_str).into());
        out
    }
}

#[cfg(test)]
mod tests;
