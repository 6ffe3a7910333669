//! The trust root: which signers are trusted, for which levels and until when.
//!
//! INVARIANT: a trust root is read once and never changes. It cannot be extended, taken apart or
//! copied, so a process that holds one for its lifetime holds exactly what the operator wrote.

use crate::denial::{Clause, Denial, Reason};
use crate::key::{BadKey, KeyFingerprint, PublicKey};
use crate::key_id::{BadKeyId, KeyId};
use crate::limits::{MAX_LEVELS, MAX_PEM_BYTES, MAX_SIGNERS, MAX_TRUST_ROOT_BYTES};
use crate::scheme::{Clearance, Scheme};
use crate::shape::{self, Fields, ShapeError};
use contract::json::Node;
use contract::time::Timestamp;

/// The trusted signers.
#[derive(Debug)]
pub struct TrustRoot {
    signers: Vec<Signer>,
    /// The id of the scheme that its levels belong to, if it names one.
    scheme: Option<String>,
}

/// A key that may vouch for servers.
#[derive(Debug)]
pub struct Signer {
    key_id: KeyId,
    key: PublicKey,
    fingerprint: KeyFingerprint,
    approved: Vec<String>,
    not_after: Option<Timestamp>,
    may_revoke: bool,
    description: Option<String>,
}

/// Why a text is not a valid trust root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustRootError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("signer {position}: {source}")]
    Signer { position: usize, source: SignerError },
    #[error("two signers are called `{key_id}`")]
    Ambiguous { key_id: KeyId },
    #[error("`{first}` and `{second}` are one key: revoking one would leave the other")]
    SameKey { first: KeyId, second: KeyId },
    #[error(
        "the signer `{key_id}` is approved for `{name}`, which is no level of the scheme `{scheme}`"
    )]
    UnknownLevel { key_id: KeyId, name: String, scheme: String },
}

/// Why a record is not a valid signer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    KeyId(#[from] BadKeyId),
    #[error("`publicKeyPem`: {0}")]
    Key(#[from] BadKey),
    #[error("it is approved for no level, and may not revoke: it could never count")]
    Useless,
}

impl TrustRoot {
    /// Parses `{"v": 1, "scheme"?, "signers": [{"keyId", "publicKeyPem", "approvedClearance": […],
    /// "notAfter"?, "description"?, "mayRevoke"?}]}`. The operator writes this file, so an unknown
    /// member is a mistake.
    pub fn parse(bytes: &[u8]) -> Result<TrustRoot, TrustRootError> {
        let document = shape::read(bytes, MAX_TRUST_ROOT_BYTES)?;
        let fields = Fields::of(document.root(), "a trust root")?;
        fields.only(&["v", "scheme", "signers"])?;
        if !fields.is_spelled("v", "1") {
            return Err(ShapeError::Unexpected { member: "v", expected: "1" }.into());
        }
        let records = fields.items("signers", MAX_SIGNERS)?;
        let records = records.ok_or(ShapeError::Missing { member: "signers" })?;
        let mut signers: Vec<Signer> = Vec::with_capacity(records.len());
        for (position, record) in records.into_iter().enumerate() {
            let signer = Signer::read(record)
                .map_err(|source| TrustRootError::Signer { position, source })?;
            if signers.iter().any(|known| known.key_id == signer.key_id) {
                return Err(TrustRootError::Ambiguous { key_id: signer.key_id });
            }
            if let Some(known) = signers.iter().find(|known| known.key == signer.key) {
                let first = known.key_id.clone();
                return Err(TrustRootError::SameKey { first, second: signer.key_id });
            }
            signers.push(signer);
        }
        let root = TrustRoot { signers, scheme: fields.text("scheme")? };
        if let Some(scheme) = root.scheme.as_deref().and_then(Scheme::built_in) {
            root.check_scheme(scheme)?;
        }
        Ok(root)
    }

    /// Checks that the scheme has all levels, if the trust root says that they belong to it. To be
    /// called once for a custom scheme; a built-in one has already been checked.
    pub fn check_scheme(&self, scheme: &Scheme) -> Result<(), TrustRootError> {
        if self.scheme.as_deref() != Some(scheme.id()) {
            return Ok(());
        }
        for signer in &self.signers {
            if let Some(name) =
                signer.approved.iter().find(|name| scheme.level(shape::trim(name)).is_none())
            {
                return Err(TrustRootError::UnknownLevel {
                    key_id: signer.key_id.clone(),
                    name: name.clone(),
                    scheme: scheme.id().to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The scheme that the levels belong to. `None` if the trust root names none; the levels may
    /// then belong to any scheme.
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.as_deref()
    }

    /// Clause (e): the signer may vouch for this level, and the level belongs to the scheme that
    /// the operator meant.
    pub(crate) fn check_approval(
        &self,
        signer: &Signer,
        scheme: &Scheme,
        asserted: &Clearance,
    ) -> Result<(), Denial> {
        if let Some(meant) = self.scheme.as_deref().filter(|meant| *meant != scheme.id()) {
            let detail = format!(
                "the trust root is for the scheme `{meant}`, and the level is one of `{}`",
                scheme.id()
            );
            return Err(Denial::by(Clause::E, Reason::SignerNotApproved, detail));
        }
        signer.check_approval(scheme, asserted)
    }

    pub fn signers(&self) -> &[Signer] {
        &self.signers
    }

    pub fn find(&self, key_id: &KeyId) -> Option<&Signer> {
        self.signers.iter().find(|signer| signer.key_id == *key_id)
    }
}

impl Signer {
    fn read(node: Node<'_>) -> Result<Signer, SignerError> {
        let fields = Fields::of(node, "a signer")?;
        fields.only(&[
            "keyId",
            "publicKeyPem",
            "approvedClearance",
            "notAfter",
            "description",
            "mayRevoke",
        ])?;
        let pem = fields.long_text("publicKeyPem", MAX_PEM_BYTES)?;
        let key = PublicKey::from_pem(&pem)?;
        let approved = fields.required_texts("approvedClearance", MAX_LEVELS)?;
        let may_revoke = fields.flag("mayRevoke")?;
        if approved.is_empty() && !may_revoke {
            return Err(SignerError::Useless);
        }
        Ok(Signer {
            key_id: KeyId::parse(&fields.required_text("keyId")?)?,
            fingerprint: key.fingerprint(),
            key,
            approved,
            not_after: fields.moment("notAfter")?.map(|moment| moment.at),
            may_revoke,
            description: fields.text("description")?,
        })
    }

    pub fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    pub fn public_key(&self) -> &PublicKey {
        &self.key
    }

    pub fn fingerprint(&self) -> &KeyFingerprint {
        &self.fingerprint
    }

    /// The levels as written.
    pub fn approved_clearance(&self) -> &[String] {
        &self.approved
    }

    pub fn not_after(&self) -> Option<Timestamp> {
        self.not_after
    }

    pub fn may_revoke(&self) -> bool {
        self.may_revoke
    }

    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Clause (d): the key is valid up to and including `notAfter`.
    pub(crate) fn check_validity(&self, now: Timestamp) -> Result<(), Denial> {
        match self.not_after {
            Some(end) if end < now => Err(Denial::by(
                Clause::D,
                Reason::SignerExpired,
                format_args!("the signer `{}` was trusted until {end}", self.key_id),
            )),
            _ => Ok(()),
        }
    }

    /// Whether the level is one that the operator listed. A name unknown to the scheme matches
    /// nothing.
    fn check_approval(&self, scheme: &Scheme, asserted: &Clearance) -> Result<(), Denial> {
        let mut approved = self.approved.iter().filter_map(|name| scheme.level(shape::trim(name)));
        if approved.any(|level| level == *asserted) {
            return Ok(());
        }
        let detail =
            format!("the signer `{}` is not approved for the level {asserted}", self.key_id);
        Err(Denial::by(Clause::E, Reason::SignerNotApproved, detail))
    }
}

#[cfg(test)]
mod tests;
