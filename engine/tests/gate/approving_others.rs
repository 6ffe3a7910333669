//! Calls that proceed with another person's approval, which is used up between the decision and the
//! dispatch.

use crate::stage::{Arrived, Setting, Stage, lines_in, wait_for};
use contract::time::Timestamp;
use engine::decide::{
    ApprovalAnswer, ApprovalDesk, ApprovalGrant, ApprovalRequest, ApprovalUse, ResumeCall,
    TakenApproval,
};
use ledger::record::StepUp;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

/// A desk that has a grant for every call, and examines the ledger and the server when one is to be
/// used up.
#[derive(Debug)]
struct Desk {
    says: ApprovalUse,
    around: OnceLock<(PathBuf, Arrived)>,
    /// How many calls had been decided on, and how many the server had received, each time.
    seen: Mutex<Vec<(usize, usize)>>,
}

impl ApprovalDesk for Desk {
    fn ask(&self, _: &ApprovalRequest<'_>) -> ApprovalAnswer {
        let at = Timestamp(7);
        let taken = Some(TakenApproval { id: "a1".to_owned(), server: "s1".to_owned(), at });
        let by = "bob".to_owned();
        ApprovalAnswer::Granted(ApprovalGrant { by, at, step_up: StepUp::None, taken })
    }

    fn use_up(&self, taken: &TakenApproval) -> ApprovalUse {
        assert_eq!((taken.id.as_str(), taken.at), ("a1", Timestamp(7)));
        let (receipts, server) = self.around.get().expect("a stage");
        let decided = lines_in(receipts, |_| true).into_iter().filter(is_decision).count();
        let sent = server.texts().iter().filter(|text| text.contains("tools/call")).count();
        self.seen.lock().expect("a lock").push((decided, sent));
        self.says
    }

    fn watch(&self, _: &str, _: ResumeCall) {}
}

fn is_decision(line: &Value) -> bool {
    line["record"] == "decision" && line["mcp"]["method"] == "tools/call"
}

fn stage(says: ApprovalUse) -> (Stage, Arc<Desk>) {
    let desk = Arc::new(Desk { says, around: OnceLock::new(), seen: Mutex::default() });
    let stage = Stage::greeted(Setting { desk: Some(desk.clone()), ..Setting::default() });
    desk.around.set((stage.home.receipts_path(), stage.server.clone())).expect("set once");
    stage.list(1);
    (stage, desk)
}

fn call(id: u64) -> Vec<u8> {
    let params = json!({"name": "add", "arguments": {"a": id}});
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    message.to_string().into_bytes()
}

#[test]
fn a_grant_is_used_up_when_its_decision_is_written_and_before_its_call_is_sent() {
    let (stage, desk) = stage(ApprovalUse::Used);
    // Two requests that are read together: each is written, used up and sent separately.
    for id in [5, 6] {
        stage.session.client_said(&call(id), true);
    }
    stage.session.client_paused();
    for id in [5, 6] {
        let answer = stage.answer(&json!(id));
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(*desk.seen.lock().expect("a lock"), [(1, 0), (2, 1)]);
}

#[test]
fn a_call_whose_grant_cannot_be_used_up_is_not_made() {
    let (stage, desk) = stage(ApprovalUse::Lost);
    stage.client_says(&call(5));
    let refused = stage.answer(&json!(5));
    let error = &refused["error"];
    let said = (&error["code"], &error["data"]["reason"]);
    assert_eq!(said, (&json!(1014), &json!("approval_required")), "{refused}");
    assert!(error["message"].as_str().expect("words").contains("could not be used"), "{refused}");
    assert_eq!(*desk.seen.lock().expect("a lock"), [(1, 0)]);
    assert!(stage.calls_at_server().is_empty());
    // The decision stands, and its outcome says that nothing resulted from it.
    let decision = stage.ledger().into_iter().find(is_decision).expect("a decision");
    let is_outcome =
        |line: &Value| line["record"] == "outcome" && line["receipt_id"] == decision["receipt_id"];
    let outcome = wait_for("an outcome", || stage.ledger().into_iter().find(is_outcome));
    assert_eq!(outcome["outcome"]["status"], "error", "{outcome}");
}
