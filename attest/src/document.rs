//! A document before verification. None of its contents is trusted yet.

use crate::body::{ADDED_MEMBERS, Body, MCP_SERVER, MEMBERS, SIGNATURE};
use crate::denial::Denial;
use crate::digest::{AttestationDigest, Digest};
use crate::key::{PublicKey, Signed};
use crate::key_id::KeyId;
use crate::limits::MAX_DOCUMENT_BYTES;
use crate::shape::{self, Fields, Moment, ShapeError};
use contract::hash::EntryHash;

/// A document that was parsed but not verified. Everything it returns is a claim, not a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedAttestation {
    pub(crate) body: Body,
    pub(crate) signature: Option<String>,
    unsigned_members: Vec<String>,
}

/// The state of a signature, independent of the rest of the document.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureState {
    /// There is no signature, or the document names no signer.
    Missing,
    Verifies,
    DoesNotVerify,
}

impl UnverifiedAttestation {
    /// Parses a document. A document that cannot be read unambiguously fails the first clause.
    pub fn parse(bytes: &[u8]) -> Result<UnverifiedAttestation, Denial> {
        UnverifiedAttestation::read(bytes).map_err(Denial::invalid)
    }

    fn read(bytes: &[u8]) -> Result<UnverifiedAttestation, ShapeError> {
        let document = shape::read(bytes, MAX_DOCUMENT_BYTES)?;
        let fields = Fields::of(document.root(), "a document")?;
        let body = Body::read(fields)?;
        let is_signed = |name: &str| {
            MEMBERS.contains(&name)
                || name == SIGNATURE
                || (body.added.is_some() && ADDED_MEMBERS.contains(&name))
        };
        let names = document.root().members().filter_map(|(name, _)| name.as_str());
        let unsigned = names.filter(|name| !is_signed(name)).map(std::borrow::Cow::into_owned);
        let unsigned_members = unsigned.collect();
        Ok(UnverifiedAttestation { body, signature: fields.signature()?, unsigned_members })
    }

    /// Checks the signature against one key. This does not show whether the key may vouch for
    /// anything.
    pub fn signature_by(&self, key: &PublicKey) -> SignatureState {
        let (Some(_), Some(signature)) = (&self.body.signer, &self.signature) else {
            return SignatureState::Missing;
        };
        match self.check_signature(key, signature, &self.body.canonical()) {
            Signed::Yes => SignatureState::Verifies,
            Signed::No => SignatureState::DoesNotVerify,
        }
    }

    pub(crate) fn check_signature(&self, key: &PublicKey, signature: &str, body: &[u8]) -> Signed {
        match key.check_text(body, signature) {
            Signed::Yes => Signed::Yes,
            Signed::No => match self.body.canonical_of_reference() {
                Some(body) => key.check_text(&body, signature),
                None => Signed::No,
            },
        }
    }

    /// The version of the document format, 1 or 2.
    pub fn document_version(&self) -> u8 {
        self.body.document_version()
    }

    pub fn id(&self) -> &str {
        &self.body.id
    }

    pub fn publisher(&self) -> &str {
        &self.body.publisher
    }

    /// The server's version.
    pub fn version(&self) -> &str {
        &self.body.version
    }

    /// The level as written in the document.
    pub fn clearance(&self) -> &str {
        &self.body.clearance
    }

    pub fn capabilities(&self) -> &[String] {
        &self.body.capabilities
    }

    pub fn is_for_mcp_server(&self) -> bool {
        self.body.capabilities.iter().any(|capability| capability == MCP_SERVER)
    }

    pub fn net_allowed_hosts(&self) -> &[String] {
        &self.body.hosts
    }

    pub fn verification(&self) -> Option<&str> {
        self.body.verification.as_deref()
    }

    pub fn signer(&self) -> Option<&KeyId> {
        self.body.signer.as_ref()
    }

    pub fn is_signed(&self) -> bool {
        self.body.signer.is_some() && self.signature.is_some()
    }

    pub fn not_before(&self) -> Option<&str> {
        self.moment(|added| added.not_before.as_ref())
    }

    pub fn expires(&self) -> Option<&str> {
        self.moment(|added| added.expires.as_ref())
    }

    fn moment(&self, of: impl Fn(&crate::body::Added) -> Option<&Moment>) -> Option<&str> {
        self.body.added.as_ref().and_then(of).map(|moment| moment.text.as_str())
    }

    pub fn package_digest(&self) -> Option<&Digest> {
        self.body.added.as_ref().and_then(|added| added.package_digest.as_ref())
    }

    /// Tools with a level of their own, as written in the document.
    pub fn tool_clearances(&self) -> impl Iterator<Item = (&str, &str)> {
        let tables = self.body.added.iter().map(|added| &added.tool_clearance);
        tables.flatten().map(|(tool, level)| (tool.as_str(), level.as_str()))
    }

    /// Tools with the entry hash that the publisher vouches for.
    pub fn tool_digests(&self) -> impl Iterator<Item = (&str, EntryHash)> {
        let tables = self.body.added.iter().map(|added| &added.tool_digests);
        tables.flatten().filter_map(|(tool, hash)| Some((tool.as_str(), hash.parse().ok()?)))
    }

    /// Members that no signature covers. They are ignored, because an attacker may have added them.
    pub fn unsigned_members(&self) -> &[String] {
        &self.unsigned_members
    }

    /// The digest by which a revocation list identifies this document.
    pub fn digest(&self) -> AttestationDigest {
        AttestationDigest::of(&self.body.canonical())
    }

    /// The bytes that are signed.
    pub fn canonical_body(&self) -> Vec<u8> {
        self.body.canonical()
    }
}

#[cfg(test)]
mod tests;
