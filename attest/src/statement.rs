//! A file that may be a document or a revocation list, for commands that show it without verifying
//! it.

use crate::denial::Denial;
use crate::document::{SignatureState, UnverifiedAttestation};
use crate::key::{PublicKey, Signed};
use crate::key_id::KeyId;
use crate::limits::MAX_REVOCATION_LIST_BYTES;
use crate::revocation::{self, ListBody};
use crate::shape::{self, Fields};
use crate::{AttestationDigest, ShapeError};
use contract::time::Timestamp;

/// A signed statement, or one that is about to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Attestation(Box<UnverifiedAttestation>),
    Revocations(UnverifiedRevocationList),
}

/// A list that was parsed but not verified. Everything it returns is a claim, not a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedRevocationList {
    body: ListBody,
    signature: Option<String>,
}

impl Statement {
    /// Parses a list if the file declares itself one, and a document otherwise.
    pub fn parse(bytes: &[u8]) -> Result<Statement, Denial> {
        if is_list(bytes).map_err(Denial::invalid)? {
            let (body, signature) = revocation::read(bytes).map_err(Denial::invalid)?;
            return Ok(Statement::Revocations(UnverifiedRevocationList { body, signature }));
        }
        UnverifiedAttestation::parse(bytes).map(Box::new).map(Statement::Attestation)
    }
}

fn is_list(bytes: &[u8]) -> Result<bool, ShapeError> {
    let document = shape::read(bytes, MAX_REVOCATION_LIST_BYTES)?;
    let fields = Fields::of(document.root(), "a document")?;
    Ok(fields.has_text("type", revocation::TYPE))
}

impl UnverifiedRevocationList {
    pub fn issued(&self) -> Timestamp {
        self.body.issued()
    }

    pub fn expires(&self) -> Timestamp {
        self.body.expires()
    }

    /// The keys that the list revokes.
    pub fn signers(&self) -> impl ExactSizeIterator<Item = &KeyId> {
        self.body.signers()
    }

    /// The documents that the list revokes.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = &AttestationDigest> {
        self.body.documents()
    }

    /// The claimed signer.
    pub fn signer(&self) -> Option<&KeyId> {
        self.body.signer.as_ref()
    }

    pub fn is_signed(&self) -> bool {
        self.body.signer.is_some() && self.signature.is_some()
    }

    /// Checks the signature against one key. This does not show whether the key may revoke.
    pub fn signature_by(&self, key: &PublicKey) -> SignatureState {
        let (Some(_), Some(signature)) = (&self.body.signer, &self.signature) else {
            return SignatureState::Missing;
        };
        match key.check_text(&self.body.canonical(), signature) {
            Signed::Yes => SignatureState::Verifies,
            Signed::No => SignatureState::DoesNotVerify,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{
        SIGNER, baseline, key, revocations, revoker_key, signed, signed_by, signer,
    };
    use serde_json::json;

    fn parse(statement: &serde_json::Value) -> Result<Statement, Denial> {
        Statement::parse(statement.to_string().as_bytes())
    }

    #[test]
    fn a_list_is_told_from_a_document() {
        let document = signed(&baseline());
        assert!(matches!(parse(&document), Ok(Statement::Attestation(_))));
        let list = revocations(&json!({ "signers": [SIGNER], "documents": ["ab".repeat(32)] }));
        let Ok(Statement::Revocations(unsigned)) = parse(&list) else { panic!("no list") };
        assert!(!unsigned.is_signed());
        assert_eq!(unsigned.signature_by(&revoker_key().public_key()), SignatureState::Missing);
        let list = signed_by(&list, &revoker_key());
        let Ok(Statement::Revocations(list)) = parse(&list) else { panic!("no list") };
        assert_eq!(list.signers().collect::<Vec<_>>(), [&signer()]);
        assert_eq!(list.documents().len(), 1);
        assert_eq!(list.expires().to_string(), "2026-11-17T00:00:00Z");
        assert_eq!(list.signature_by(&revoker_key().public_key()), SignatureState::Verifies);
        assert_eq!(list.signature_by(&key().public_key()), SignatureState::DoesNotVerify);
    }

    #[test]
    fn what_is_neither_is_refused() {
        let broken = revocations(&json!({ "signers": null }));
        for statement in [json!({}), json!([]), json!({ "type": "other" }), broken] {
            assert!(parse(&statement).is_err(), "{statement}");
        }
    }
}
