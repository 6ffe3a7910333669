//! Checks that a trusted signer vouches for the server at the required level.

use crate::admission::{Admittance, CallRuling};
use crate::call::Method;
use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use attest::Reason;
use ledger::record::AdmissionVerdict;

#[derive(Debug)]
pub(crate) struct AdmissionCheck;

impl Check for AdmissionCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, situation, .. } = *question;
        // The gate answers a list that the server does not have without the server.
        if matches!(call.kind, Method::List(list) if situation.view.lacks(list)) {
            return Answer::Continue;
        }
        let reason = match &situation.admission {
            Admittance::NotAsked => return Answer::Continue,
            Admittance::Unknown => Reason::Unattested,
            Admittance::Known(admitted) => match admitted.rule(call, &situation.view) {
                CallRuling { verdict: AdmissionVerdict::Deny, reason, .. } => {
                    reason.unwrap_or(Reason::Unattested)
                }
                CallRuling { verdict: AdmissionVerdict::Ok | AdmissionVerdict::Warn, .. } => {
                    return Answer::Continue;
                }
            },
        };
        let message = format!("○ holdpoint — not admitted: {}. {}", why(reason), advice(reason));
        Answer::deny(ReasonCode::Admission(reason), message)
    }
}

/// Explains a denial without quoting the document, which no person has accepted.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::NotMcpServer => "the server's document is not one for an MCP server",
        Reason::Unsigned => "the server's document is not signed",
        Reason::SignerNotTrusted => {
            "the server's document is not signed by anyone in the trust root"
        }
        Reason::SignerExpired => "the signer of the server's document is no longer trusted",
        Reason::SignerRevoked => "the signer of the server's document was revoked",
        Reason::SignerNotApproved => {
            "the signer of the server's document may not vouch for its level"
        }
        Reason::BadSignature => "the signature of the server's document does not verify",
        Reason::BelowRequired => "the level in the server's document is below the required one",
        Reason::HostNotBound => "the server's document is not bound to this host or program",
        Reason::ManifestInvalid => "the server's document cannot be read in exactly one way",
        Reason::FetchFailed => "the server's document or the revocation list could not be fetched",
        Reason::Unattested => "no trusted document vouches for this server",
        Reason::AttestationExpired => "the server's document has expired",
        Reason::AttestationNotYetValid => "the server's document is not valid yet",
        Reason::AttestationRevoked => "the server's document was revoked",
        Reason::ToolDigestMismatch => "the tool is not the one that its publisher vouches for",
        Reason::ToolNotAdmitted => "the tool is not on the allowlist of this server",
    }
}

fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::FetchFailed => {
            "A person checks that both are published and can be fetched from this machine."
        }
        Reason::Unattested => {
            "A person gets the document from the server's publisher, or changes what `[admission]` of holdpoint.toml requires."
        }
        Reason::HostNotBound => {
            "A person compares what the document is bound to with this server: `holdpoint attest inspect`."
        }
        Reason::ToolNotAdmitted => {
            "A person decides whether to add it to `admission.allow_tools` in holdpoint.toml."
        }
        Reason::BelowRequired | Reason::SignerNotApproved | Reason::SignerNotTrusted => {
            "A person decides: `[admission]` of holdpoint.toml, or the options of `holdpoint run`, say what is required and who is trusted."
        }
        Reason::NotMcpServer
        | Reason::Unsigned
        | Reason::SignerExpired
        | Reason::SignerRevoked
        | Reason::BadSignature
        | Reason::ManifestInvalid
        | Reason::AttestationExpired
        | Reason::AttestationNotYetValid
        | Reason::AttestationRevoked
        | Reason::ToolDigestMismatch => {
            "A person looks at the document: `holdpoint attest inspect`, `holdpoint attest verify`."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_for_a_person_and_fits_the_reason() {
        for reason in
            [Reason::FetchFailed, Reason::Unattested, Reason::HostNotBound, Reason::Unsigned]
        {
            assert!(advice(reason).starts_with("A person "), "{reason}");
            assert!(advice(reason).ends_with('.'), "{reason}");
        }
        assert!(!advice(Reason::FetchFailed).contains("again"), "an agent would try in a loop");
        assert!(!advice(Reason::Unattested).contains("attest inspect"), "there is no document");
        assert!(!why(Reason::HostNotBound).contains("another"), "it may name no host at all");
    }
}
