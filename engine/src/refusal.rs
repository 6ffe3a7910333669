//! Refusals as JSON-RPC errors. They contain no unaccepted text.

use crate::decide::{ArgumentViolation, Denial};
use crate::reason::ReasonCode;
use gate::view::Standing;
use gate::words::AGENT_STOPS;
use serde_json::{Value, json};

/// How long a client should wait after making too many requests at once.
const RETRY_AFTER_MILLISECONDS: u64 = 1_000;

/// An error response.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub reason: ReasonCode,
    message: String,
    data: Value,
}

impl Refusal {
    /// A refusal because a contract changed.
    pub fn held(
        standing: &Standing,
        server: &str,
        tool: Option<&str>,
        receipt_id: &str,
    ) -> Refusal {
        let reason = standing.reason.unwrap_or(gate::reason::Reason::ContractDrift);
        let data = standing.data(server, tool, Some(receipt_id));
        Refusal { reason: ReasonCode::Drift(reason), message: standing.message().to_owned(), data }
    }

    pub fn denied(denial: &Denial, server: &str, receipt_id: &str) -> Refusal {
        let server = (!denial.is_hidden).then_some(server);
        let mut refusal =
            Refusal::of(denial.reason, denial.message.clone(), server, Some(receipt_id));
        if let Value::Object(members) = &mut refusal.data {
            if let Some(violation) = &denial.violation {
                let ArgumentViolation { pointer, rule } = &**violation;
                members.insert("pointer".to_owned(), pointer.as_str().into());
                members.insert("rule".to_owned(), (*rule).into());
            }
            if let Some(id) = &denial.approval_id {
                members.insert("approval_id".to_owned(), (&**id).into());
            }
            if let Some(url) = &denial.sign_in {
                members.insert("sign_in".to_owned(), (&**url).into());
            }
            if let Some(wait) = denial.retry_after {
                let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
                members.insert("retry_after_ms".to_owned(), milliseconds.into());
            }
        }
        refusal
    }

    /// A refusal because of a fault of the server, of the gate, or in the message.
    pub fn fault(reason: ReasonCode, message: impl Into<String>, server: &str) -> Refusal {
        Refusal::of(reason, message.into(), Some(server), None)
    }

    fn of(
        reason: ReasonCode,
        message: String,
        server: Option<&str>,
        receipt_id: Option<&str>,
    ) -> Refusal {
        let mut data = json!({"reason": reason.as_str()});
        if let Value::Object(members) = &mut data {
            if let Some(server) = server {
                members.insert("server".to_owned(), server.into());
            }
            if let Some(id) = receipt_id {
                members.insert("receipt_id".to_owned(), id.into());
            }
            if reason == ReasonCode::RateLimited {
                members.insert("retry_after_ms".to_owned(), RETRY_AFTER_MILLISECONDS.into());
            }
        }
        Refusal { reason, message: with_stop(reason, message), data }
    }

    /// For a request that was sent before its server was stopped: it may have been carried out.
    pub fn after_dispatch(self) -> Refusal {
        let rest = self.message.strip_prefix("○ holdpoint — ").unwrap_or(&self.message);
        let message = format!(
            "○ holdpoint — the request had reached the server before the server was stopped; its answer is not shown. Now: {rest}"
        );
        Refusal { message, ..self }
    }

    /// The complete message without a line feed. `id` is the request's original id.
    pub fn to_message(&self, id: &[u8]) -> Vec<u8> {
        let error = json!({"code": self.reason.code(), "message": self.message, "data": self.data});
        [
            br#"{"jsonrpc":"2.0","id":"#.as_slice(),
            id,
            br#","error":"#,
            error.to_string().as_bytes(),
            b"}",
        ]
        .concat()
    }
}

/// Adds what the agent must do if only a person can resolve it. A hold already says so.
fn with_stop(reason: ReasonCode, message: String) -> String {
    if !reason.needs_person() {
        return message;
    }
    let end = if message.ends_with('.') { "" } else { "." };
    format!("{message}{end} {AGENT_STOPS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_has_to_settle_tells_the_agent_to_stop() {
        let said = |reason| Refusal::fault(reason, "○ holdpoint — no", "calc").message;
        for reason in [
            ReasonCode::Admission(attest::Reason::FetchFailed),
            ReasonCode::KillSwitch,
            ReasonCode::SessionQuarantined,
            ReasonCode::UpstreamUnreachable,
            ReasonCode::Internal,
            ReasonCode::LedgerUnavailable,
        ] {
            let expected = "○ holdpoint — no. Agent: stop, tell your user, and run nothing.";
            assert_eq!(said(reason), expected, "{reason}");
        }
        for reason in [ReasonCode::UnknownTool, ReasonCode::RateLimited, ReasonCode::TooDeep] {
            assert_eq!(said(reason), "○ holdpoint — no", "{reason}");
        }
    }
}
