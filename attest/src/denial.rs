//! Why a server or a tool is not admitted: the clause that decided, the reason as a program reads it, and words.

use crate::key_id::KeyId;
use crate::scheme::Clearance;
use std::fmt;

/// The rules of admission, in the order in which they are checked. The first that fails decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clause {
    /// The document can be read and declares `mcp-server`.
    A,
    /// It names a signer and has a signature.
    B,
    /// The signer is in the trust root.
    C,
    /// The signer's key is valid now.
    D,
    /// The signer is approved for the level.
    E,
    /// The signature verifies, and the document counts now.
    F,
    /// The level is at least the required one.
    G,
    /// The document is for this server.
    H,
}

impl Clause {
    pub const ALL: [Clause; 8] =
        [Clause::A, Clause::B, Clause::C, Clause::D, Clause::E, Clause::F, Clause::G, Clause::H];

    pub const fn as_str(self) -> &'static str {
        match self {
            Clause::A => "a",
            Clause::B => "b",
            Clause::C => "c",
            Clause::D => "d",
            Clause::E => "e",
            Clause::F => "f",
            Clause::G => "g",
            Clause::H => "h",
        }
    }
}

/// The closed list of reasons. Programs hold on to the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    NotMcpServer,
    Unsigned,
    SignerNotTrusted,
    SignerExpired,
    SignerNotApproved,
    BadSignature,
    BelowRequired,
    HostNotBound,
    ManifestInvalid,
    FetchFailed,
    Unattested,
    AttestationExpired,
    AttestationNotYetValid,
    AttestationRevoked,
    SignerRevoked,
    ToolDigestMismatch,
    ToolNotAdmitted,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::NotMcpServer => "not_mcp_server",
            Reason::Unsigned => "unsigned",
            Reason::SignerNotTrusted => "signer_not_trusted",
            Reason::SignerExpired => "signer_expired",
            Reason::SignerNotApproved => "signer_not_approved",
            Reason::BadSignature => "bad_signature",
            Reason::BelowRequired => "below_required",
            Reason::HostNotBound => "host_not_bound",
            Reason::ManifestInvalid => "manifest_invalid",
            Reason::FetchFailed => "fetch_failed",
            Reason::Unattested => "unattested",
            Reason::AttestationExpired => "attestation_expired",
            Reason::AttestationNotYetValid => "attestation_not_yet_valid",
            Reason::AttestationRevoked => "attestation_revoked",
            Reason::SignerRevoked => "signer_revoked",
            Reason::ToolDigestMismatch => "tool_digest_mismatch",
            Reason::ToolNotAdmitted => "tool_not_admitted",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A server or a tool is not admitted.
///
/// The detail is for a person who reviews: it may quote the document, which was not accepted. It does not belong in
/// an answer to a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Denial {
    clause: Option<Clause>,
    reason: Reason,
    detail: String,
    clearance: Option<Clearance>,
    signer: Option<KeyId>,
}

impl Denial {
    pub(crate) fn new(clause: Option<Clause>, reason: Reason, detail: impl fmt::Display) -> Denial {
        Denial { clause, reason, detail: detail.to_string(), clearance: None, signer: None }
    }

    pub(crate) fn by(clause: Clause, reason: Reason, detail: impl fmt::Display) -> Denial {
        Denial::new(Some(clause), reason, detail)
    }

    pub(crate) fn invalid(detail: impl fmt::Display) -> Denial {
        Denial::by(Clause::A, Reason::ManifestInvalid, detail)
    }

    pub(crate) fn claiming(
        mut self,
        clearance: Option<&Clearance>,
        signer: Option<&KeyId>,
    ) -> Denial {
        self.clearance = clearance.cloned();
        self.signer = signer.cloned();
        self
    }

    /// No source has a document.
    pub fn unattested() -> Denial {
        Denial::new(None, Reason::Unattested, "the server publishes no attestation document")
    }

    /// A source could not be asked, or gave an answer that is neither a document nor its absence.
    pub fn fetch_failed(detail: impl fmt::Display) -> Denial {
        Denial::new(None, Reason::FetchFailed, detail)
    }

    /// The clause that decided, where one did.
    pub fn clause(&self) -> Option<Clause> {
        self.clause
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// What exactly was wrong, for a person who reviews.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The level that the document asserts, where the scheme knows it.
    pub fn clearance(&self) -> Option<&Clearance> {
        self.clearance.as_ref()
    }

    /// The signer that the document names, where the trust root knows it.
    pub fn signer(&self) -> Option<&KeyId> {
        self.signer.as_ref()
    }
}
