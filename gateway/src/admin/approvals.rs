//! Lists the calls that wait for the caller's decision, and decides on them.

use super::access::Access;
use super::peers::{PeerAnswers, merged_calls};
use super::refusal::AdminError;
use super::{AdminInput, AdminVisit};
use crate::approvals::{ShownCall, Undecided};
use crate::peer::RelayKind;
use crate::webhook::is_ticket_for;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use store::ApprovalDecision;

impl AdminVisit {
    /// The waiting calls on any node that the caller may decide on, with their arguments.
    pub(super) async fn approvals(self, access: Access) -> Result<Value, AdminError> {
        self.need_user()?;
        let waiting = self.node.shared.approvals.waiting_for(&self.caller);
        let permitted = waiting.iter().filter(|call| access.has(&call.server));
        let own = json!({"approvals": permitted.map(document).collect::<Vec<Value>>()});
        let others = self.ask_peers(RelayKind::Approvals, Method::GET).await;
        Ok(merged_calls(&own, others))
    }

    /// Checks the ticket of a link in a notification: it is only valid for this decision on this
    /// call. The person who follows it is identified and needs permission like any other.
    pub(super) fn check_ticket(
        &self,
        input: &AdminInput,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<(), AdminError> {
        let Some(ticket) = input.query("ticket") else { return Ok(()) };
        let act = match decision {
            ApprovalDecision::Grant { .. } => "grant",
            ApprovalDecision::Refuse => "refuse",
        };
        match is_ticket_for(&self.node.shared.sealer, ticket, id, act) {
            true => Ok(()),
            false => Err(AdminError::Denied { reason: "bad_ticket", server: None }),
        }
    }

    /// Decides on a call here, or lets the node decide that holds the call and so has its
    /// arguments.
    pub(super) async fn decide_call(
        self,
        access: Access,
        id: String,
        decision: ApprovalDecision,
    ) -> Result<Value, AdminError> {
        self.need_user()?;
        if self.node.shared.approvals.server_of(&id).is_none() {
            let others = self.clone().ask_peers(RelayKind::Approvals, Method::POST).await;
            if let Some(decided) = decided_elsewhere(others) {
                return decided;
            }
        }
        self.blocking(move |visit| visit.decide_here(&access, &id, decision)).await
    }

    fn decide_here(
        &self,
        access: &Access,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<Value, AdminError> {
        let approvals = &self.node.shared.approvals;
        if let Some(server) = approvals.server_of(id).filter(|server| !access.has(server)) {
            return Err(AdminError::Denied { reason: "forbidden", server: Some(server) });
        }
        let decided = approvals.decide(id, decision, &self.caller);
        match decided {
            Ok(call) => Ok(json!({
                "id": call.id, "server": call.server, "tool": call.tool, "principal": call.principal,
            })),
            Err(error @ Undecided::Unknown) => Err(AdminError::Conflict(error.to_string())),
            Err(Undecided::Own | Undecided::NotInGroup(_)) => {
                Err(AdminError::Denied { reason: "forbidden", server: None })
            }
            Err(Undecided::Store(error)) => Err(error.into()),
        }
    }
}

/// The other nodes' answers to a decision; `None` if no node was asked. A node that does not hold
/// the call answers with a conflict, so every other answer takes precedence.
fn decided_elsewhere(others: PeerAnswers) -> Option<Result<Value, AdminError>> {
    let PeerAnswers { answered, missing } = others;
    let rank = |status: StatusCode| match status {
        StatusCode::OK => 0,
        StatusCode::CONFLICT => 2,
        _ => 1,
    };
    let best = answered.into_iter().min_by_key(|(_, status, _)| rank(*status));
    match best {
        Some((_, StatusCode::OK, document)) => Some(Ok(document)),
        Some((_, status, document)) if status != StatusCode::CONFLICT => {
            Some(Err(AdminError::Elsewhere { status, document }))
        }
        Some(_) | None if missing.is_empty() => None,
        Some(_) | None => {
            let missing: Vec<&str> = missing.iter().map(|address| &**address).collect();
            Some(Err(AdminError::Conflict(format!(
                "no call waits under this id on the nodes that answer; these did not: {}",
                missing.join(", ")
            ))))
        }
    }
}

fn document(call: &ShownCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
    let responses = (call.input_responses.as_deref())
        .map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
    json!({
        "id": call.id,
        "server": call.server,
        "tool": call.tool,
        "principal": call.principal,
        "contract_hash": call.contract,
        "groups": call.groups,
        "policy_id": call.policy,
        "parked_at": call.parked_at.to_string(),
        "expires_at": call.expires_at.to_string(),
        "arguments": arguments,
        "input_responses": responses,
    })
}
