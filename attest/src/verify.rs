//! Verification: clauses (a) to (h) in order, of which the first failing one decides.
//!
//! INVARIANT: only one place creates a [`VerifiedAttestation`], after the last clause.

use crate::body::Body;
use crate::denial::{Clause, Denial, Reason};
use crate::digest::AttestationDigest;
use crate::document::UnverifiedAttestation;
use crate::key::{KeyFingerprint, Signed};
use crate::key_id::KeyId;
use crate::revocation::{RevocationError, RevocationList};
use crate::scheme::{Clearance, Dominance, Scheme};
use crate::shape;
use crate::target::{Binding, Match, Target};
use crate::trust::{Signer, TrustRoot};
use contract::hash::EntryHash;
use contract::time::Timestamp;
use std::collections::BTreeMap;

/// What a document must satisfy.
#[derive(Debug, Clone)]
pub struct Requirement<'a> {
    scheme: &'a Scheme,
    required: Clearance,
    target: Target<'a>,
    now: Timestamp,
    revocations: Option<Result<&'a RevocationList, &'a RevocationError>>,
}

/// The scheme has no level with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the scheme `{scheme}` has no level `{name}`: it has {known}")]
pub struct UnknownLevel {
    scheme: String,
    name: String,
    known: String,
}

impl<'a> Requirement<'a> {
    /// Requires a level of this scheme, for this server, at this time.
    pub fn new(
        scheme: &'a Scheme,
        required: &str,
        target: Target<'a>,
        now: Timestamp,
    ) -> Result<Requirement<'a>, UnknownLevel> {
        let level = scheme.level(shape::trim(required)).ok_or_else(|| {
            let known: Vec<&str> = scheme.levels().iter().map(crate::scheme::Level::name).collect();
            UnknownLevel {
                scheme: scheme.id().to_owned(),
                name: required.to_owned(),
                known: known.join(", "),
            }
        })?;
        Ok(Requirement { scheme, required: level, target, now, revocations: None })
    }

    /// Also applies a revocation list.
    pub fn with_revocations(self, revocations: &'a RevocationList) -> Requirement<'a> {
        Requirement { revocations: Some(Ok(revocations)), ..self }
    }

    /// Also applies a revocation list that may be invalid. If it is, no server is cleared, and
    /// clause (d) says why.
    pub fn with_revocation_outcome(
        self,
        outcome: &'a Result<RevocationList, RevocationError>,
    ) -> Requirement<'a> {
        Requirement { revocations: Some(outcome.as_ref()), ..self }
    }

    pub fn required(&self) -> &Clearance {
        &self.required
    }
}

/// The attestation of exactly the server that is about to be used, by a trusted signer, at the
/// required level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedAttestation {
    identity: AttestedIdentity,
    publisher: String,
    version: String,
    clearance: Clearance,
    required: Clearance,
    /// The signed bytes. The digest is computed from them on demand, because it is rarely needed.
    body: Vec<u8>,
    valid_until: Option<Timestamp>,
    tool_clearance: BTreeMap<String, Clearance>,
    tool_digests: BTreeMap<String, String>,
}

/// The part that stays the same for the same server. Pins are anchored to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttestedIdentity {
    pub id: String,
    pub signer: KeyId,
    /// The key itself: a different key under the same name is a different signer.
    pub key: KeyFingerprint,
}

/// Whether the publisher vouches for a tool's contract.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vouched {
    /// The contract is exactly the one that the publisher signed.
    Yes,
    /// The document does not name the tool.
    NotNamed,
}

/// Parses and verifies a document.
pub fn verify(
    bytes: &[u8],
    root: &TrustRoot,
    requirement: &Requirement<'_>,
) -> Result<VerifiedAttestation, Denial> {
    UnverifiedAttestation::parse(bytes)?.verify(root, requirement)
}

impl UnverifiedAttestation {
    /// Verifies the document. The first failing clause decides.
    pub fn verify(
        self,
        root: &TrustRoot,
        requirement: &Requirement<'_>,
    ) -> Result<VerifiedAttestation, Denial> {
        let Requirement { scheme, required, target, now, revocations } = requirement;
        let clearance = scheme.level(&self.body.clearance).ok_or_else(|| {
            let name = &self.body.clearance;
            Denial::invalid(format_args!("the scheme `{}` has no level `{name}`", scheme.id()))
        })?;
        let claims = Claims { clearance: &clearance, signer: None };
        let tool_clearance = claims.judge(tool_levels(&self.body, scheme, &clearance))?;
        claims.judge(check_capability(&self))?;
        let (key_id, signature) = claims.judge(check_signedness(&self))?;
        let signer = claims.judge(root.find(key_id).ok_or_else(|| {
            let detail = format!("the signer `{key_id}` is not in the trust root");
            Denial::by(Clause::C, Reason::SignerNotTrusted, detail)
        }))?;
        let claims = Claims { signer: Some(signer), ..claims };
        claims.judge(signer.check_validity(*now))?;
        let revocations = match revocations {
            Some(Ok(list)) => Some(*list),
            Some(Err(error)) => return claims.judge(Err(error.to_denial())),
            None => None,
        };
        if let Some(list) = revocations {
            claims.judge(list.check_signer(key_id, *now))?;
        }
        claims.judge(root.check_approval(signer, scheme, &clearance))?;
        let body = self.body.canonical();
        claims.judge(match self.check_signature(signer.public_key(), signature, &body) {
            Signed::Yes => Ok(()),
            Signed::No => {
                let detail = format!("the signature is not one of `{key_id}` over this document");
                Err(Denial::by(Clause::F, Reason::BadSignature, detail))
            }
        })?;
        claims.judge(check_freshness(&self.body, *now))?;
        if let Some(list) = revocations {
            claims.judge(list.check_document(&AttestationDigest::of(&body)))?;
        }
        if clearance.against(required) == Dominance::Below {
            let detail = format!("the level {clearance} is below the required {required}");
            let denial = Denial::by(Clause::G, Reason::BelowRequired, detail);
            return claims.judge(Err(denial));
        }
        claims.judge(check_target(&self.body, *target))?;
        let valid_until = valid_until(&self.body, signer, revocations);
        let identity = AttestedIdentity {
            id: self.body.id,
            signer: signer.key_id().clone(),
            key: signer.fingerprint().clone(),
        };
        Ok(VerifiedAttestation {
            identity,
            publisher: self.body.publisher,
            version: self.body.version,
            clearance,
            required: required.clone(),
            body,
            valid_until,
            tool_clearance,
            tool_digests: self.body.added.map(|added| added.tool_digests).unwrap_or_default(),
        })
    }
}

/// The facts established about a document so far, to be included in a denial.
#[derive(Clone, Copy)]
struct Claims<'a> {
    clearance: &'a Clearance,
    signer: Option<&'a Signer>,
}

impl Claims<'_> {
    fn judge<T>(self, outcome: Result<T, Denial>) -> Result<T, Denial> {
        let signer = self.signer.map(Signer::key_id);
        outcome.map_err(|denial| denial.claiming(Some(self.clearance), signer))
    }
}

/// The levels of single tools. A tool's level may be lower than its server's, but not higher.
fn tool_levels(
    body: &Body,
    scheme: &Scheme,
    clearance: &Clearance,
) -> Result<BTreeMap<String, Clearance>, Denial> {
    let mut levels = BTreeMap::new();
    for (tool, name) in body.added.iter().flat_map(|added| &added.tool_clearance) {
        let level = scheme.level(shape::trim(name)).ok_or_else(|| {
            let scheme = scheme.id();
            Denial::invalid(format_args!("`toolClearance`: `{scheme}` has no level `{name}`"))
        })?;
        if clearance.against(&level) == Dominance::Below {
            return Err(Denial::invalid(format_args!(
                "`toolClearance`: `{tool}` has the level {level}, above the server's {clearance}"
            )));
        }
        levels.insert(tool.clone(), level);
    }
    Ok(levels)
}

fn check_capability(document: &UnverifiedAttestation) -> Result<(), Denial> {
    if document.is_for_mcp_server() {
        return Ok(());
    }
    let detail = "`capabilities` does not have `mcp-server`";
    Err(Denial::by(Clause::A, Reason::NotMcpServer, detail))
}

fn check_signedness(document: &UnverifiedAttestation) -> Result<(&KeyId, &str), Denial> {
    let missing = match (&document.body.signer, &document.signature) {
        (Some(signer), Some(signature)) => return Ok((signer, signature)),
        (None, _) => "`signerKeyId` is missing",
        (Some(_), None) => "`signature` is missing",
    };
    Err(Denial::by(Clause::B, Reason::Unsigned, missing))
}

/// Checks the document's own validity period. It is part of clause (f): outside of it the signature
/// is worthless.
fn check_freshness(body: &Body, now: Timestamp) -> Result<(), Denial> {
    let Some(added) = &body.added else { return Ok(()) };
    if let Some(start) = added.not_before.as_ref().filter(|start| now < start.at) {
        let detail = format!("the document counts from {} on", start.text);
        return Err(Denial::by(Clause::F, Reason::AttestationNotYetValid, detail));
    }
    if let Some(end) = added.expires.as_ref().filter(|end| end.at < now) {
        let detail = format!("the document counted until {}", end.text);
        return Err(Denial::by(Clause::F, Reason::AttestationExpired, detail));
    }
    Ok(())
}

/// Clause (h): everything that the document is bound to must match, and a locally started server
/// must be bound to something.
fn check_target(body: &Body, target: Target<'_>) -> Result<(), Denial> {
    let unbound = |detail: String| Err(Denial::by(Clause::H, Reason::HostNotBound, detail));
    let digest = body.added.as_ref().and_then(|added| added.package_digest.as_ref());
    if !body.hosts.is_empty() {
        match target {
            Target::Remote(host) => {
                if !body.hosts.iter().any(|entry| host.compare(entry) == Match::Same) {
                    return unbound(format!("the document is not for the host `{host}`"));
                }
            }
            Target::Local { .. } => {
                return unbound("the document is for hosts, and the server is started here".into());
            }
            Target::Unknown => {
                return unbound("the document is for hosts, and no host is known".into());
            }
        }
    }
    match (target, digest) {
        (Target::Remote(_) | Target::Unknown, None) => Ok(()),
        (Target::Remote(_) | Target::Unknown, Some(_)) => {
            unbound("the document is for a package, and no package is known".into())
        }
        (Target::Local { bindings: [], program }, None) => unbound(format!(
            "neither the document nor the configuration says which program it is for; {}",
            program.package
        )),
        // The bindings of both the publisher and the operator must match, if present.
        (Target::Local { program, bindings }, digest) => {
            if let Some(digest) = digest
                && program.has_digest(digest) == Match::Other
            {
                let found = &program.package;
                return unbound(format!("what is started here is not {digest}; {found}"));
            }
            let mut bindings = bindings.iter();
            match bindings.find(|binding| program.is_bound(binding) == Match::Other) {
                None => Ok(()),
                Some(Binding::File(digest)) => unbound(format!(
                    "what is started here is not the file with the configured digest {digest}"
                )),
                Some(Binding::Package(package)) => unbound(format!(
                    "what is started here is not the configured package {package}; {}",
                    program.package
                )),
            }
        }
    }
}

/// How long nothing needs to be checked again, except for events that can happen at any time.
fn valid_until(
    body: &Body,
    signer: &Signer,
    revocations: Option<&RevocationList>,
) -> Option<Timestamp> {
    let expires = body.added.as_ref().and_then(|added| added.expires.as_ref());
    let ends = [
        signer.not_after(),
        expires.map(|moment| moment.at),
        revocations.map(RevocationList::expires),
    ];
    ends.into_iter().flatten().min()
}

impl VerifiedAttestation {
    /// The identity that pins are anchored to.
    pub fn identity(&self) -> &AttestedIdentity {
        &self.identity
    }

    pub fn id(&self) -> &str {
        &self.identity.id
    }

    pub fn publisher(&self) -> &str {
        &self.publisher
    }

    /// The server's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn clearance(&self) -> &Clearance {
        &self.clearance
    }

    pub fn signer(&self) -> &KeyId {
        &self.identity.signer
    }

    /// The digest by which a revocation list identifies the document.
    pub fn digest(&self) -> AttestationDigest {
        AttestationDigest::of(&self.body)
    }

    /// When this expires. A cached copy must not be used any longer.
    pub fn valid_until(&self) -> Option<Timestamp> {
        self.valid_until
    }

    /// The level of one tool: its own if the document sets one, otherwise the server's.
    pub fn tool_clearance(&self, tool: &str) -> &Clearance {
        self.tool_clearance.get(tool).unwrap_or(&self.clearance)
    }

    /// Checks that a tool has at least the required level.
    pub fn check_tool(&self, tool: &str) -> Result<(), Denial> {
        let (level, required) = (self.tool_clearance(tool), &self.required);
        if level.against(required) == Dominance::Dominates {
            return Ok(());
        }
        let detail =
            format!("the tool `{tool}` has the level {level}, below the required {required}");
        let denial = Denial::by(Clause::G, Reason::BelowRequired, detail);
        Err(denial.claiming(Some(level), Some(self.signer())))
    }

    /// The entry hash that the publisher vouches for.
    pub fn tool_digest(&self, tool: &str) -> Option<EntryHash> {
        self.tool_digests.get(tool).and_then(|hash| hash.parse().ok())
    }

    /// Checks that a tool has the contract that the publisher vouches for.
    pub fn check_digest(&self, tool: &str, found: EntryHash) -> Result<Vouched, Denial> {
        match self.tool_digest(tool) {
            None => Ok(Vouched::NotNamed),
            Some(vouched) if vouched == found => Ok(Vouched::Yes),
            Some(vouched) => {
                let detail = format!(
                    "the tool `{tool}` has the hash {found}, and the publisher vouches for {vouched}"
                );
                let denial = Denial::new(None, Reason::ToolDigestMismatch, detail);
                Err(denial.claiming(Some(&self.clearance), Some(self.signer())))
            }
        }
    }
}

#[cfg(test)]
mod tests;
