//! A document or a revocation list that is about to be signed, as a person wrote it.

use crate::body::{ADDED_MEMBERS, Body, MCP_SERVER, MEMBERS, SIGNATURE};
use crate::host::Host;
use crate::key::SigningKey;
use crate::key_id::KeyId;
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_REVOCATION_LIST_BYTES};
use crate::revocation::{self, ListBody};
use crate::shape::{self, Fields, ShapeError};
use contract::time::Timestamp;
use serde_json::{Map, Value};

/// The value written for a missing `verification`: both readers of version 1 agree only if the
/// member is present.
const NOT_SAID: &str = "unverified";

/// A document or a revocation list that is not signed yet.
#[derive(Debug, Clone)]
pub struct Draft {
    body: DraftBody,
}

#[derive(Debug, Clone)]
enum DraftBody {
    Attestation(Body),
    Revocations(ListBody),
}

/// Why a draft cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("no signer is named: write `signerKeyId`, or name the key with `--key-id`")]
    NoSigner,
    #[error("`signerKeyId` is `{written}`, and the key is called `{given}`")]
    OtherSigner { written: KeyId, given: KeyId },
    #[error("`capabilities` does not have `mcp-server`: it could not be admitted")]
    NotMcpServer,
    #[error(
        "`netAllowedHosts`: `{0}` names no host: expected `a.example`, `a.example:8443` or `[::1]:8443`"
    )]
    Host(String),
    #[error(
        "`netAllowedHosts` and `packageDigest` exclude each other: a server is remote or started here"
    )]
    TwoTargets,
    #[error("`expires` is {0}, which has passed: it could not be admitted")]
    Over(Timestamp),
}

impl Draft {
    /// Parses a draft. An existing signature is dropped; a member that no signature would cover is
    /// refused.
    pub fn parse(bytes: &[u8]) -> Result<Draft, DraftError> {
        let document = shape::read(bytes, MAX_REVOCATION_LIST_BYTES)?;
        let fields = Fields::of(document.root(), "what is to be signed")?;
        if fields.text("type")?.is_some_and(|kind| kind == revocation::TYPE) {
            return Ok(Draft { body: DraftBody::Revocations(ListBody::read(fields)?) });
        }
        let body = Body::read(fields)?;
        let added: &[&str] = if body.added.is_some() { &ADDED_MEMBERS } else { &[] };
        fields.only(&[&MEMBERS, added, &[SIGNATURE]].concat())?;
        if !body.capabilities.iter().any(|capability| capability == MCP_SERVER) {
            return Err(DraftError::NotMcpServer);
        }
        // An entry that can never match would leave the document bound to no host.
        if let Some(entry) = body.hosts.iter().find(|entry| Host::parse(entry).is_err()) {
            return Err(DraftError::Host(entry.clone()));
        }
        let has_digest = body.added.as_ref().is_some_and(|added| added.package_digest.is_some());
        if has_digest && !body.hosts.is_empty() {
            return Err(DraftError::TwoTargets);
        }
        Ok(Draft { body: DraftBody::Attestation(body) })
    }

    /// Refuses a draft that would already be expired when it is signed.
    pub fn check_expiry(&self, now: Timestamp) -> Result<(), DraftError> {
        let end = match &self.body {
            DraftBody::Attestation(body) => {
                body.added.as_ref().and_then(|added| added.expires.as_ref()).map(|end| end.at)
            }
            DraftBody::Revocations(body) => Some(body.expires()),
        };
        end.filter(|end| *end < now).map_or(Ok(()), |end| Err(DraftError::Over(end)))
    }

    /// Sets the id of the key that the draft will be signed with.
    pub fn signed_as(mut self, key_id: KeyId) -> Result<Draft, DraftError> {
        let signer = match &mut self.body {
            DraftBody::Attestation(body) => &mut body.signer,
            DraftBody::Revocations(body) => &mut body.signer,
        };
        match signer {
            Some(written) if *written != key_id => {
                Err(DraftError::OtherSigner { written: written.clone(), given: key_id })
            }
            _ => {
                *signer = Some(key_id);
                Ok(self)
            }
        }
    }

    /// The signed document as readable JSON, followed by a newline.
    pub fn sign(mut self, key: &SigningKey) -> Result<String, DraftError> {
        let (signer, limit, canonical, mut document) = match &mut self.body {
            DraftBody::Attestation(body) => {
                body.verification.get_or_insert_with(|| NOT_SAID.to_owned());
                let signer = body.signer.is_some();
                (signer, MAX_DOCUMENT_BYTES, body.canonical(), attestation(body))
            }
            DraftBody::Revocations(body) => {
                let signer = body.signer.is_some();
                (signer, MAX_REVOCATION_LIST_BYTES, body.canonical(), body.document())
            }
        };
        if !signer {
            return Err(DraftError::NoSigner);
        }
        document.insert(SIGNATURE.to_owned(), key.sign_text(&canonical).into());
        let text = format!("{:#}\n", Value::Object(document));
        // No reader would accept it.
        if text.len() > limit {
            return Err(ShapeError::TooLong { limit }.into());
        }
        Ok(text)
    }
}

fn attestation(body: &Body) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |member: &str, value: Value| {
        out.insert(member.to_owned(), value);
    };
    put("v", body.document_version().into());
    put("id", body.id.as_str().into());
    put("publisher", body.publisher.as_str().into());
    put("version", body.version.as_str().into());
    put("clearance", body.clearance.as_str().into());
    put("capabilities", body.capabilities.clone().into());
    put("netAllowedHosts", body.hosts.clone().into());
    put("verification", body.verification.as_deref().into());
    if let Some(added) = &body.added {
        if let Some(moment) = &added.not_before {
            put("notBefore", moment.text.as_str().into());
        }
        if let Some(moment) = &added.expires {
            put("expires", moment.text.as_str().into());
        }
        if let Some(digest) = &added.package_digest {
            put("packageDigest", digest.to_string().into());
        }
        if !added.tool_clearance.is_empty() {
            let levels = added.tool_clearance.iter();
            let levels = levels.map(|(tool, level)| (tool.clone(), level.as_str().into()));
            put("toolClearance", Value::Object(levels.collect()));
        }
        if !added.tool_digests.is_empty() {
            let digests = added.tool_digests.iter();
            let digests = digests.map(|(tool, hash)| (tool.clone(), hash.as_str().into()));
            put("toolDigests", Value::Object(digests.collect()));
        }
    }
    put("signerKeyId", body.signer.as_ref().map(KeyId::as_str).into());
    out
}

#[cfg(test)]
mod tests;
