//! The calls that wait for the person who asks, and what that person says to them.

use super::AdminVisit;
use super::access::Access;
use super::refusal::AdminError;
use crate::approvals::{ShownCall, Undecided};
use serde_json::{Value, json};
use store::ApprovalDecision;

impl AdminVisit {
    /// The calls that wait on this node and that the caller may decide on, with their arguments.
    pub(super) fn approvals(&self, access: &Access) -> Result<Value, AdminError> {
        self.need_user()?;
        let waiting = self.node.shared.approvals.waiting_for(&self.caller);
        let permitted = waiting.iter().filter(|call| access.has(&call.server));
        let waiting: Vec<Value> = permitted.map(document).collect();
        Ok(json!({"approvals": waiting}))
    }

    pub(super) fn decide_call(
        &self,
        access: &Access,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<Value, AdminError> {
        self.need_user()?;
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

fn document(call: &ShownCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
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
    })
}
