//! Determines who vouches for the server, and whether it may be used. The document is found,
//! verified and cached; the outcome is one value that calls are decided on.
//!
//! INVARIANT: the trust root is read before the session starts and cannot be changed: nothing that
//! a server, a client or a document says extends it. INVARIANT: a server that is not admitted
//! receives no message from the client, and none of the operator's headers or environment. Finding
//! a document may take as long as the network does, so it has its own thread.

mod clean;
mod local;
mod rules;
mod source;

pub use clean::CleanProgram;
pub use local::{LocalServer, Startable, StartedServer};
pub use rules::{
    AdmissionRules, RulesError, Stage, Started, checker_of, find_scheme, read_trust_root,
};
pub use source::Source;

use crate::call::{Call, Method};
use crate::recorder::now;
use attest::{
    Admission, AttestedIdentity, Binding, Clearance, Denial, Flavor, Host, KeyId, Program,
    Requirement, RevocationError, RevocationList, Scheme, Target, TrustRoot, UnknownLevel,
    VerifiedAttestation,
};
use contract::surface::{Anchor, EntryBody, EntryType};
use contract::time::Timestamp;
use gate::view::{Found, View};
use ledger::record::AdmissionVerdict;
use source::{Evidence, FoundDocument};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::attestation::Greeting;

/// The server to be admitted.
pub enum Subject {
    /// A remote server, by the host through which it is reached.
    Remote(Host),
    /// A program that is already running, or that another part of the gate starts.
    Local { program: Box<dyn FnMut() -> Program + Send>, bindings: Vec<Binding> },
    /// A program that the checker starts once it is admitted, and not before.
    Startable { server: Box<dyn Startable>, bindings: Vec<Binding> },
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Subject::Remote(host) => write!(formatter, "Remote({host})"),
            Subject::Local { .. } => formatter.write_str("Local"),
            Subject::Startable { .. } => formatter.write_str("Startable"),
        }
    }
}

/// What a server must provide to be admitted.
#[derive(Debug)]
pub struct Terms {
    root: Arc<TrustRoot>,
    scheme: Cow<'static, Scheme>,
    required: String,
    flavor: Flavor,
    revocations: Option<PathBuf>,
}

impl Terms {
    /// Refuses a level that the scheme does not have, because it could never be satisfied.
    pub fn new(
        root: Arc<TrustRoot>,
        scheme: Cow<'static, Scheme>,
        required: String,
        flavor: Flavor,
    ) -> Result<Terms, UnknownLevel> {
        Requirement::new(&scheme, &required, Target::Unknown, now())?;
        Ok(Terms { root, scheme, required, flavor, revocations: None })
    }

    /// Applies a revocation list, which is read again for each check.
    pub fn with_revocations(self, list: PathBuf) -> Terms {
        Terms { revocations: Some(list), ..self }
    }

    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    fn verify(&self, document: &[u8], target: Target<'_>) -> Result<VerifiedAttestation, Denial> {
        let now = now();
        let Terms { root, scheme, required, revocations, .. } = self;
        let list = match revocations {
            Some(path) => Some(read_list(path, root, now)?),
            None => None,
        };
        // `Terms::new` checked that the scheme has the level.
        let requirement =
            Requirement::new(scheme, required, target, now).map_err(Denial::fetch_failed)?;
        match &list {
            Some(list) => attest::verify(document, root, &requirement.with_revocations(list)),
            None => attest::verify(document, root, &requirement),
        }
    }
}

/// Checks a server, as often as requested.
#[derive(Debug)]
pub struct Checker {
    terms: Terms,
    subject: Subject,
    source: Source,
}

impl Checker {
    pub fn new(terms: Terms, subject: Subject, source: Source) -> Checker {
        Checker { terms, subject, source }
    }

    /// Whether the handshake may precede the check: under the open flavor a program is used in any
    /// case, and its document can only be in its handshake.
    pub fn greets_first(&self) -> bool {
        let is_in_handshake =
            matches!((&self.subject, &self.source), (Subject::Local { .. }, Source::InBand));
        is_in_handshake && self.terms.flavor == Flavor::Open
    }

    /// Finds the document and verifies it. `handshake` is the server's response to `initialize` or
    /// `server/discover`, if there was one already. Otherwise, if the document is in the handshake,
    /// `greeting` is sent to the server. An admitted program is started. This waits for the network
    /// and for processes, so do not call it while holding a lock.
    pub fn check(&mut self, handshake: Option<&str>, greeting: Greeting) -> Checked {
        let began = Instant::now();
        let (outcome, found) = match &mut self.subject {
            Subject::Startable { server, bindings } if !server.is_started() => {
                local::admit(server.as_mut(), bindings, &self.source, &self.terms, greeting)
            }
            _ => self.verify(handshake, greeting),
        };
        let evidence = Evidence::of(&self.source, found.as_ref());
        let flavor = self.terms.flavor;
        let admitted = Arc::new(Admitted { outcome: flavor.decide(outcome), flavor });
        Checked { admitted, began, evidence }
    }

    fn verify(
        &mut self,
        handshake: Option<&str>,
        greeting: Greeting,
    ) -> (Result<VerifiedAttestation, Denial>, Option<FoundDocument>) {
        let found = match self.source.find(handshake, greeting) {
            Ok(Some(found)) => found,
            Ok(None) => return (Err(Denial::unattested()), None),
            Err(denial) => return (Err(denial), None),
        };
        let program;
        let target = match &mut self.subject {
            Subject::Remote(host) => Target::Remote(host),
            Subject::Local { program: observe, bindings } => {
                program = observe();
                Target::Local { program: &program, bindings }
            }
            Subject::Startable { server, bindings } => {
                program = server.running();
                Target::Local { program: &program, bindings }
            }
        };
        let outcome = self.terms.verify(&found.bytes, target);
        let outcome = match self.source.second_document(handshake, &found) {
            Some(second) => {
                outcome.and_then(|first| self.terms.verify(&second, target).map(|_| first))
            }
            None => outcome,
        };
        (outcome, Some(found))
    }
}

/// An unreadable or invalid list clears no server.
fn read_list(
    path: &std::path::Path,
    root: &TrustRoot,
    now: Timestamp,
) -> Result<RevocationList, Denial> {
    let bytes = source::read(path, attest::MAX_REVOCATION_LIST_BYTES)?;
    RevocationList::verify(&bytes, root, now).map_err(|error: RevocationError| error.to_denial())
}

/// The outcome of a check, and when the check began.
#[derive(Debug, Clone)]
pub struct Checked {
    pub admitted: Arc<Admitted>,
    pub began: Instant,
    evidence: Evidence,
}

impl Checked {
    /// Whether a call that began then may be decided on this check: the check began later, or is
    /// not too old.
    pub fn is_fresh(&self, begun: Instant, max_age: Duration) -> bool {
        self.began >= begun
            || (begun.saturating_duration_since(self.began) < max_age && !self.has_ended())
    }

    /// Whether the check also covers a server's handshake. If not, the handshake has a different
    /// document, or lacks the one that the check is based on, and nothing of it is shown before
    /// another check.
    pub(crate) fn covers(&self, handshake: &str) -> bool {
        self.evidence.covers(handshake)
    }

    /// A document that was valid when it was verified may have expired since.
    fn has_ended(&self) -> bool {
        let end = self.admitted.verified().and_then(VerifiedAttestation::valid_until);
        end.is_some_and(|end| end < now())
    }
}

/// What is known about the server's admission.
#[derive(Debug, Clone, Default)]
pub enum Admittance {
    /// No attestation is required.
    #[default]
    NotAsked,
    /// Not checked yet, so nothing of the server is used.
    Unknown,
    Known(Arc<Admitted>),
}

impl Admittance {
    /// Whether nothing of the server may be used.
    pub fn is_closed(&self) -> bool {
        match self {
            Admittance::NotAsked => false,
            Admittance::Unknown => true,
            Admittance::Known(admitted) => admitted.denied().is_some(),
        }
    }

    pub fn verified(&self) -> Option<&VerifiedAttestation> {
        match self {
            Admittance::NotAsked | Admittance::Unknown => None,
            Admittance::Known(admitted) => admitted.verified(),
        }
    }
}

/// The result of admission for a server.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted {
    outcome: Admission,
    flavor: Flavor,
}

/// The result of admission for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRuling<'a> {
    pub verdict: AdmissionVerdict,
    /// Why the verdict is not `ok`.
    pub reason: Option<attest::Reason>,
    pub signer: Option<&'a KeyId>,
    pub clearance: Option<&'a Clearance>,
}

impl Admitted {
    /// The name of the event that records it.
    pub fn event(&self) -> &'static str {
        self.outcome.event()
    }

    pub fn verified(&self) -> Option<&VerifiedAttestation> {
        match &self.outcome {
            Admission::Allowed(verified) => Some(verified),
            Admission::Warned(_) | Admission::Denied(_) => None,
        }
    }

    /// The anchor of the server's identity, if a signer vouches for it.
    pub fn anchor(&self) -> Option<Anchor> {
        self.verified().map(|verified| anchor_of(verified.identity()))
    }

    /// Why nothing of the server is used.
    pub fn denied(&self) -> Option<&Denial> {
        match &self.outcome {
            Admission::Denied(denial) => Some(denial),
            Admission::Allowed(_) | Admission::Warned(_) => None,
        }
    }

    /// Why the server is denied, or would be under the stricter flavor.
    pub fn failure(&self) -> Option<&Denial> {
        match &self.outcome {
            Admission::Denied(denial) | Admission::Warned(denial) => Some(denial),
            Admission::Allowed(_) => None,
        }
    }

    /// The result for one call. A tool may have its own level, and a contract that the publisher
    /// vouches for.
    pub fn rule<'a>(&'a self, call: &Call<'_>, view: &View) -> CallRuling<'a> {
        let (signer, clearance, failed) = match &self.outcome {
            Admission::Allowed(verified) => {
                let failed = check_tool(verified, call, view).err();
                (Some(verified.signer()), Some(verified.clearance()), failed)
            }
            Admission::Warned(denial) | Admission::Denied(denial) => {
                (denial.signer(), denial.clearance(), Some(denial.reason()))
            }
        };
        let verdict = match (failed, self.flavor) {
            (None, Flavor::Open | Flavor::Enclaved) => AdmissionVerdict::Ok,
            (Some(_), Flavor::Open) => AdmissionVerdict::Warn,
            (Some(_), Flavor::Enclaved) => AdmissionVerdict::Deny,
        };
        CallRuling { verdict, reason: failed, signer, clearance }
    }
}

fn check_tool(
    verified: &VerifiedAttestation,
    call: &Call<'_>,
    view: &View,
) -> Result<(), attest::Reason> {
    let tool = call.target.filter(|target| target.entry_type == EntryType::Tool);
    let (Method::Use(_), Some(tool)) = (call.kind, tool) else { return Ok(()) };
    verified.check_tool(tool.key).map_err(|denial| denial.reason())?;
    let found = match view.find(tool) {
        Found::Unchanged(body) => Some(body.entry_hash()),
        Found::Changed(standing) => standing.after.as_ref().map(EntryBody::entry_hash),
        Found::Unknown => None,
    };
    let Some(found) = found else { return Ok(()) };
    match verified.check_digest(tool.key, found) {
        Ok(attest::Vouched::Yes | attest::Vouched::NotNamed) => Ok(()),
        Err(denial) => Err(denial.reason()),
    }
}

/// The anchor of a server's identity. A different key under the same name is a different signer.
pub(crate) fn anchor_of(identity: &AttestedIdentity) -> Anchor {
    let AttestedIdentity { id, signer, key } = identity;
    Anchor { attested_id: id.clone(), signer: format!("{signer} {key}") }
}

#[cfg(test)]
mod tests;
