//! Why a server or a tool is not admitted: the deciding clause, the reason as a code, and a
//! description.

use crate::key_id::KeyId;
use crate::scheme::Clearance;
use std::fmt;

/// The admission rules in the order in which they are checked. The first one that fails decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clause {
    /// The document is readable and declares `mcp-server`.
    A,
    /// The document names a signer and has a signature.
    B,
    /// The signer is in the trust root.
    C,
    /// The signer's key is valid now.
    D,
    /// The signer is approved for the document's level.
    E,
    /// The signature verifies, and the document is valid now.
    F,
    /// The level is at least the required one.
    G,
    /// The document is issued for this server.
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

/// The closed list of reasons. Programs rely on these codes.
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

/// The denial of a server or a tool.
///
/// The detail is for a person who reviews it: it may quote the document, which was not accepted, so
/// it must not be included in a response to a client.
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

    /// A source could not be reached, or its response was neither a document nor a statement that
    /// there is none.
    pub fn fetch_failed(detail: impl fmt::Display) -> Denial {
        Denial::new(None, Reason::FetchFailed, detail)
    }

    /// The deciding clause, if any.
    pub fn clause(&self) -> Option<Clause> {
        self.clause
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// A description of the problem, for a person who reviews it.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The level that the document asserts, if the scheme has it.
    pub fn clearance(&self) -> Option<&Clearance> {
        self.clearance.as_ref()
    }

    /// The signer that the document names, if the trust root has it.
    pub fn signer(&self) -> Option<&KeyId> {
        self.signer.as_ref()
    }
}
