//! Is the server one that somebody trusted vouches for, at the level that is required?

use crate::admission::{Admittance, CallRuling};
use crate::call::{Call, Method};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use attest::Reason;
use ledger::record::AdmissionVerdict;

#[derive(Debug)]
pub struct AdmissionCheck;

impl Check for AdmissionCheck {
    /// The handshake and `ping` are no use of a server, nor is a list that it does not have.
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        match Method::of(call.method) {
            Method::Handshake | Method::Ping => return Answer::Continue,
            Method::List(list) if situation.view.lacks(list) => return Answer::Continue,
            Method::List(_) | Method::Use(_) | Method::Other => {}
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
        Answer::Deny(Denial { reason: ReasonCode::Admission(reason), message })
    }
}

/// Nothing of the document is quoted: nobody has accepted it.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::NotMcpServer => "the server's document is not one for an MCP server",
        Reason::Unsigned => "the server's document is not signed",
        Reason::SignerNotTrusted => "nobody in the trust root has signed the server's document",
        Reason::SignerExpired => "whoever vouches for the server is not trusted any more",
        Reason::SignerRevoked => "whoever vouches for the server was revoked",
        Reason::SignerNotApproved => "whoever vouches for the server may not do so at its level",
        Reason::BadSignature => "the signature of the server's document does not verify",
        Reason::BelowRequired => "the level that is vouched for is below the required one",
        Reason::HostNotBound => "the document is for another host or program",
        Reason::ManifestInvalid => "the server's document cannot be read in exactly one way",
        Reason::FetchFailed => "the server's document could not be fetched",
        Reason::Unattested => "nobody vouches for this server",
        Reason::AttestationExpired => "the server's document has expired",
        Reason::AttestationNotYetValid => "the server's document does not count yet",
        Reason::AttestationRevoked => "the server's document was revoked",
        Reason::ToolDigestMismatch => "the tool is not the one that its publisher vouches for",
        Reason::ToolNotAdmitted => "the tool is not on the list of those that may be used",
    }
}

fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::FetchFailed => "Try again, or ask whoever runs the server.",
        Reason::BelowRequired | Reason::SignerNotApproved | Reason::SignerNotTrusted => {
            "A person decides: what is required and who is trusted is in `[admission]` of holdpoint.toml, or in the options of `holdpoint run`."
        }
        _ => "A person looks at the document: holdpoint attest inspect, holdpoint attest verify.",
    }
}
