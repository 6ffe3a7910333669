//! Calls that wait for approval by another person: parked, shown, granted or refused, and used
//! once.
//!
//! The store holds hashes of what an approval is bound to, and authenticates grants. The arguments
//! are only in this node's memory: approvers see them here, and when the node is gone, so is the
//! request. A grant outlives it.
//!
//! INVARIANT: a call only proceeds through [`store::ApprovalStore::take_approval`], for exactly the
//! call that was shown, and is only sent after [`store::ApprovalStore::use_approval`], which
//! succeeds for one taker at most.

use crate::admin::name_of;
use crate::authorizer::PolicyAuthorizer;
use crate::webhook::Webhook;
use contract::canonical::{Position, canonical};
use contract::hash::EntryHash;
use contract::json::Document;
use contract::time::Timestamp;
use contract::trip::trip;
use engine::decide::{
    ApprovalAnswer, ApprovalDesk, ApprovalGrant, ApprovalRequest, ApprovalUse, ResumeCall,
    TakenApproval,
};
use engine::recorder::{Recorder, now};
use gate::server::ServerId;
use ledger::record::StepUp;
use policy::{Caller, Identity};
use ring::hmac;
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{
    ApprovalDecision, ApprovalId, ApprovalState, ArgsHash, By, CallApproval, CallBinding, Refusal,
    Spent, Store, StoreError, Taken,
};

/// The most bytes of arguments that are held on one node.
pub(crate) const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;

/// The most calls, and bytes of arguments, that are held for one caller. A single call may be
/// larger.
const MAX_HELD_CALLS_PER_CALLER: usize = 64;
const MAX_HELD_BYTES_PER_CALLER: usize = 4 * 1024 * 1024;
/// How often an identical call may be parked while an approval of it could still be valid.
const MAX_REPEATS: u32 = 64;

/// Why a decision has no effect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided {
    #[error("no call waits under this id: it was decided or has expired, or its node is gone")]
    Unknown,
    #[error("you may not decide on your own call, nor on one of a key that you made")]
    Own,
    #[error("only a member of {0} may decide on this call")]
    NotInGroup(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A waiting call as held in memory.
struct HeldCall {
    identity: Identity,
    server: ServerId,
    tool: String,
    contract: EntryHash,
    groups: Vec<String>,
    policy: Option<String>,
    arguments: Vec<u8>,
    input_responses: Option<Vec<u8>>,
    parked_at: Timestamp,
    expires_at: Timestamp,
    waiters: Vec<ResumeCall>,
    decided: Option<Decided>,
}

impl HeldCall {
    /// The bytes that the call counts against the memory limits.
    fn bytes(&self) -> usize {
        self.arguments.len() + self.input_responses.as_ref().map_or(0, Vec::len)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    Granted,
    Refused,
}

/// A waiting call as an approver sees it.
#[derive(Debug, Clone)]
pub(crate) struct ShownCall {
    pub(crate) id: String,
    pub(crate) principal: String,
    pub(crate) server: ServerId,
    pub(crate) tool: String,
    pub(crate) contract: EntryHash,
    pub(crate) groups: Vec<String>,
    pub(crate) policy: Option<String>,
    pub(crate) parked_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// The arguments as they would be sent.
    pub(crate) arguments: String,
    /// The caller's answers to questions of the server, if the call carries any.
    pub(crate) input_responses: Option<String>,
}

/// How long calls wait, and how long an approval is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApprovalTimes {
    pub(crate) wait: Duration,
    pub(crate) ttl: Duration,
}

pub(crate) struct Approvals {
    store: Mutex<Box<dyn Store>>,
    held: Arc<Mutex<HashMap<String, HeldCall>>>,
    key: hmac::Key,
    times: ApprovalTimes,
    authorizer: Arc<PolicyAuthorizer>,
    recorder: Arc<Recorder>,
    runtime: tokio::runtime::Handle,
    webhook: Option<Webhook>,
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Approvals").field("times", &self.times).finish_non_exhaustive()
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Approvals {
    /// `secret` is shared by all nodes, so that a grant is valid on each of them.
    pub(crate) fn new(
        store: Box<dyn Store>,
        secret: &[u8; 32],
        times: ApprovalTimes,
        authorizer: Arc<PolicyAuthorizer>,
        recorder: Arc<Recorder>,
        runtime: tokio::runtime::Handle,
    ) -> Approvals {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = hmac::sign(&root, b"holdpoint approvals 1");
        Approvals {
            store: Mutex::new(store),
            held: Arc::default(),
            key: hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()),
            times,
            authorizer,
            recorder,
            runtime,
            webhook: None,
        }
    }

    /// Sends notifications of waiting calls to a webhook.
    pub(crate) fn notifying(self, webhook: Option<Webhook>) -> Approvals {
        Approvals { webhook, ..self }
    }

    /// How many notifications failed; `None` if there is no webhook.
    pub(crate) fn webhook_failures(&self) -> Option<u64> {
        self.webhook.as_ref().map(Webhook::failures)
    }

    /// Everything that an approval of this call is bound to.
    fn binding(&self, request: &ApprovalRequest<'_>, identity: &Identity) -> CallBinding {
        let mut context = hmac::Context::with_key(&self.key);
        let mut part = |bytes: &[u8]| {
            context.update(&(bytes.len() as u64).to_le_bytes());
            context.update(bytes);
        };
        part(&self.authorizer.digest());
        for raw in [request.arguments, request.input_responses] {
            part(&raw.map_or_else(Vec::new, canonical_or_raw));
        }
        // A grant is only valid if the same policy would ask the same people: the caller may come
        // back with a weaker identity, for which other people would have to decide.
        for group in request.groups {
            part(group.as_bytes());
        }
        part(request.policy.unwrap_or_default().as_bytes());
        let mut args_hash = ArgsHash([0; 32]);
        args_hash.0.copy_from_slice(context.sign().as_ref());
        CallBinding {
            principal: name_of(identity),
            server: request.server.clone(),
            tool: request.tool.to_owned(),
            contract_hash: EntryHash::from_bytes(request.contract),
            args_hash,
        }
    }

    /// The ids that approvals of this call may have, for the time window in which a still valid one
    /// was parked. A retry needs no id, on any node.
    fn names(&self, call: &CallBinding, window: i64) -> impl Iterator<Item = ApprovalId> {
        let mut root = hmac::Context::with_key(&self.key);
        for text in [&call.principal, call.server.as_str(), &call.tool] {
            root.update(&(text.len() as u64).to_le_bytes());
            root.update(text.as_bytes());
        }
        root.update(call.contract_hash.as_bytes());
        root.update(&call.args_hash.0);
        root.update(&window.to_le_bytes());
        (0..MAX_REPEATS).filter_map(move |repeat| {
            let mut context = root.clone();
            context.update(&repeat.to_le_bytes());
            let tag = context.sign();
            format!("a{}", hex::encode(tag.as_ref().get(..12)?)).parse().ok()
        })
    }

    fn ttl_milliseconds(&self) -> i64 {
        i64::try_from(self.times.ttl.as_millis()).unwrap_or(i64::MAX)
    }

    fn ask_for(
        &self,
        request: &ApprovalRequest<'_>,
        identity: &Identity,
    ) -> Result<ApprovalAnswer, StoreError> {
        match self.find_or_park(request, identity) {
            // Another node parked the same call in the meantime: look again.
            Err(StoreError::Refused(Refusal::Taken { .. })) => self.find_or_park(request, identity),
            answer => answer,
        }
    }

    fn find_or_park(
        &self,
        request: &ApprovalRequest<'_>,
        identity: &Identity,
    ) -> Result<ApprovalAnswer, StoreError> {
        let at = now();
        let call = self.binding(request, identity);
        let window = at.0 / self.ttl_milliseconds().max(1);
        let mut store = lock(&self.store);
        let mut free = None;
        for window in [window - 1, window] {
            free = None;
            for id in self.names(&call, window) {
                let Some(found) = store.approval(&id)? else {
                    free = Some(id);
                    break;
                };
                match self.look_at(&mut **store, &found, &call, at)? {
                    Some(ApprovalAnswer::Waits { id }) => {
                        self.hold(&id, request, identity, &found);
                        return Ok(ApprovalAnswer::Waits { id });
                    }
                    Some(answer) => return Ok(answer),
                    None => {}
                }
            }
        }
        let Some(id) = free else {
            let why = "it was asked for too often within a short time";
            return Ok(ApprovalAnswer::Unavailable { why });
        };
        let bytes = [request.arguments, request.input_responses].into_iter().flatten();
        if !self.has_room_for(identity, bytes.map(<[u8]>::len).sum()) {
            return Ok(ApprovalAnswer::Unavailable { why: "too many calls wait for approval" });
        }
        store.expire_approvals(at)?;
        let expires_at = Timestamp(at.0.saturating_add(self.ttl_milliseconds()));
        store.park_call(&id, &call, at, expires_at)?;
        drop(store);
        let parked = CallApproval {
            id: id.clone(),
            call,
            state: ApprovalState::Parked,
            parked_at: at,
            expires_at,
            decided: None,
            mfa: false,
            taken_at: None,
        };
        self.hold(id.as_str(), request, identity, &parked);
        let data = json!({
            "approval_id": id.as_str(), "tool": request.tool, "groups": request.groups,
            "principal": identity.subject,
        });
        self.recorder.event(request.server.as_str(), "approval.parked", None, &data);
        if let Some(webhook) = &self.webhook
            && let Some(call) = lock(&self.held).get(id.as_str())
        {
            webhook.notify(&shown(id.as_str(), call));
        }
        Ok(ApprovalAnswer::Waits { id: id.to_string() })
    }

    /// The consequence of an earlier approval for the call; `None` if that approval is over.
    fn look_at(
        &self,
        store: &mut dyn Store,
        found: &CallApproval,
        call: &CallBinding,
        at: Timestamp,
    ) -> Result<Option<ApprovalAnswer>, StoreError> {
        let id = found.id.to_string();
        Ok(match found.state {
            ApprovalState::Parked if found.expires_at > at => Some(ApprovalAnswer::Waits { id }),
            ApprovalState::Granted if found.expires_at > at => {
                match store.take_approval(&found.id, call, at)? {
                    Taken::Taken(taken) => {
                        self.forget(&id);
                        if found.taken_at.is_some() {
                            let (server, data) = (call.server.as_str(), json!({"approval_id": id}));
                            self.recorder.event(server, "approval.reclaimed", None, &data);
                        }
                        let step_up = if taken.mfa { StepUp::Mfa } else { StepUp::None };
                        let signed = taken
                            .decided
                            .unwrap_or_else(|| store::Signed { by: String::new(), at });
                        let taken = taken.taken_at.map(|at| TakenApproval {
                            id,
                            server: call.server.to_string(),
                            at,
                        });
                        let grant = ApprovalGrant { by: signed.by, at: signed.at, step_up, taken };
                        Some(ApprovalAnswer::Granted(grant))
                    }
                    // Another call has taken the approval, or it is not an approval of this call.
                    Taken::Not(_) | Taken::OtherCall | Taken::Unknown => None,
                    Taken::Doubted => {
                        let data = json!({"approval_id": id});
                        self.recorder.event(call.server.as_str(), "approval.doubted", None, &data);
                        None
                    }
                }
            }
            ApprovalState::Refused => {
                let is_news = lock(&self.held)
                    .get(&id)
                    .is_some_and(|held| held.decided == Some(Decided::Refused));
                self.forget(&id);
                is_news.then_some(ApprovalAnswer::Refused)
            }
            ApprovalState::Parked
            | ApprovalState::Granted
            | ApprovalState::Used
            | ApprovalState::Expired => None,
        })
    }

    /// Whether another call of this caller may be held. No caller can use up the room of all
    /// others.
    fn has_room_for(&self, identity: &Identity, bytes: usize) -> bool {
        let held = lock(&self.held);
        let total: usize = held.values().map(HeldCall::bytes).sum();
        let own = held.values().filter(|held| {
            (&held.identity.issuer, &held.identity.subject) == (&identity.issuer, &identity.subject)
        });
        let (calls, own_bytes) =
            own.fold((0, 0), |(calls, sum), held| (calls + 1, sum + held.bytes()));
        total + bytes <= MAX_HELD_BYTES
            && calls < MAX_HELD_CALLS_PER_CALLER
            && (calls == 0 || own_bytes + bytes <= MAX_HELD_BYTES_PER_CALLER)
    }

    /// Holds the call in memory, where approvers can see it.
    fn hold(
        &self,
        id: &str,
        request: &ApprovalRequest<'_>,
        identity: &Identity,
        parked: &CallApproval,
    ) {
        let at = now();
        let mut held = lock(&self.held);
        held.retain(|_, held| held.expires_at > at);
        held.entry(id.to_owned()).or_insert_with(|| HeldCall {
            identity: identity.clone(),
            server: request.server.clone(),
            tool: request.tool.to_owned(),
            contract: parked.call.contract_hash,
            groups: request.groups.to_vec(),
            policy: request.policy.map(str::to_owned),
            arguments: request.arguments.map(<[u8]>::to_vec).unwrap_or_default(),
            input_responses: request.input_responses.map(<[u8]>::to_vec),
            parked_at: parked.parked_at,
            expires_at: parked.expires_at,
            waiters: Vec::new(),
            decided: None,
        });
    }

    /// Drops a call that is finished.
    fn forget(&self, id: &str) {
        lock(&self.held).remove(id);
    }

    /// The calls held here that this person may decide on, oldest first.
    pub(crate) fn waiting_for(&self, caller: &Caller) -> Vec<ShownCall> {
        let at = now();
        let held = lock(&self.held);
        let open = held.iter().filter(|(_, held)| held.decided.is_none() && held.expires_at > at);
        let mut shown: Vec<ShownCall> = open
            .filter(|(_, held)| is_shown_to(caller.identity(), held))
            .filter(|(_, held)| is_member(caller.identity(), &held.groups))
            .map(|(id, held)| shown(id, held))
            .collect();
        shown.sort_by(|left, right| (left.parked_at, &left.id).cmp(&(right.parked_at, &right.id)));
        shown
    }

    /// Records a person's decision on a call, and continues the call.
    pub(crate) fn decide(
        &self,
        id: &str,
        decision: ApprovalDecision,
        caller: &Caller,
    ) -> Result<ShownCall, Undecided> {
        let approver = caller.identity();
        let (decided_on, of_key) = {
            let held = lock(&self.held);
            let call = held
                .get(id)
                .filter(|held| held.decided.is_none() && is_shown_to(approver, held))
                .ok_or(Undecided::Unknown)?;
            if call.identity.subject == approver.subject {
                return Err(Undecided::Own);
            }
            if !is_member(approver, &call.groups) {
                return Err(Undecided::NotInGroup(call.groups.join(" or ")));
            }
            let is_key = call.identity.proof == policy::IdentityProof::Key;
            (shown(id, call), is_key.then(|| call.identity.subject.clone()))
        };
        let name = name_of(approver);
        let approval: ApprovalId = id.parse().map_err(|_| Undecided::Unknown)?;
        {
            let mut store = lock(&self.store);
            if let Some(subject) = of_key {
                let keys = store.api_keys()?;
                let mut owners = keys.iter().filter(|key| key.key.sub == subject);
                if owners.any(|key| [&approver.subject, &name].contains(&&key.created.by)) {
                    return Err(Undecided::Own);
                }
            }
            store.decide_call(&approval, decision, By { name: &name, at: now() }).map_err(
                |error| match error {
                    StoreError::Refused(Refusal::OwnCall { .. }) => Undecided::Own,
                    error => Undecided::Store(error),
                },
            )?;
        }
        let (event, decided) = match decision {
            ApprovalDecision::Grant { .. } => ("approval.granted", Decided::Granted),
            ApprovalDecision::Refuse => ("approval.refused", Decided::Refused),
        };
        let data = json!({"approval_id": id, "step_up": approver.mfa.then_some("mfa")});
        self.recorder.event(decided_on.server.as_str(), event, Some(&name), &data);
        self.go_on(id, decided);
        Ok(decided_on)
    }

    /// Continues a call after a decision. A retry may already have used the grant.
    fn go_on(&self, id: &str, decided: Decided) {
        let waiters = lock(&self.held).get_mut(id).map(|call| {
            call.decided = Some(decided);
            std::mem::take(&mut call.waiters)
        });
        waiters.into_iter().flatten().for_each(|resume| resume());
    }

    /// Continues calls held here that were decided at another node. To be called when the store has
    /// changed.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        // Also if nothing waits here: a database that is put back later must not look like the
        // newest state.
        lock(&self.store).grant_count()?;
        let open: Vec<String> = {
            let held = lock(&self.held);
            let open = held.iter().filter(|(_, held)| held.decided.is_none());
            open.map(|(id, _)| id.clone()).collect()
        };
        for id in open {
            let Ok(name) = id.parse::<ApprovalId>() else { continue };
            let found = lock(&self.store).approval(&name)?;
            match found.map(|found| found.state) {
                Some(ApprovalState::Granted | ApprovalState::Used) => {
                    self.go_on(&id, Decided::Granted);
                }
                Some(ApprovalState::Refused) => self.go_on(&id, Decided::Refused),
                Some(ApprovalState::Parked | ApprovalState::Expired) | None => {}
            }
        }
        Ok(())
    }

    /// The server of a call that is held here.
    pub(crate) fn server_of(&self, id: &str) -> Option<ServerId> {
        lock(&self.held).get(id).map(|held| held.server.clone())
    }
}

impl ApprovalDesk for Approvals {
    fn ask(&self, request: &ApprovalRequest<'_>) -> ApprovalAnswer {
        let Some(caller) = &request.principal.caller else {
            return ApprovalAnswer::Unavailable { why: "the caller has no verified identity" };
        };
        self.ask_for(request, caller.identity())
            .unwrap_or(ApprovalAnswer::Unavailable { why: "the store of approvals cannot be used" })
    }

    fn use_up(&self, taken: &TakenApproval) -> ApprovalUse {
        trip("approval", b"recorded");
        let spent = match taken.id.parse() {
            Ok(id) => lock(&self.store).use_approval(&id, taken.at, now()),
            Err(_) => Ok(Spent::NotHeld),
        };
        trip("approval", b"used");
        match spent {
            Ok(Spent::Spent) => ApprovalUse::Used,
            Ok(Spent::Doubted) => {
                let data = json!({"approval_id": taken.id});
                self.recorder.event(&taken.server, "approval.doubted", None, &data);
                ApprovalUse::Lost
            }
            Ok(Spent::NotHeld) | Err(_) => ApprovalUse::Lost,
        }
    }

    fn watch(&self, id: &str, resume: ResumeCall) {
        let resume: Arc<ResumeCall> = Arc::new(resume);
        let is_decided = {
            let mut held = lock(&self.held);
            match held.get_mut(id).filter(|held| held.decided.is_none()) {
                Some(held) => {
                    let waiter = resume.clone();
                    held.waiters.push(Box::new(move || waiter()));
                    false
                }
                None => true,
            }
        };
        if is_decided {
            return resume();
        }
        let wait = self.times.wait;
        // Resuming a call that has already continued has no effect: it waits for nothing.
        self.runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            resume();
        });
    }
}

/// Whether a person may see a call: members of an organization only see calls of that organization.
fn is_shown_to(approver: &Identity, held: &HeldCall) -> bool {
    approver.org.is_none() || approver.org == held.identity.org
}

fn is_member(approver: &Identity, groups: &[String]) -> bool {
    groups.iter().any(|group| approver.groups.contains(group))
}

/// The canonical form, so that a different order of members does not make a different call.
/// Arguments that cannot be parsed are compared as bytes.
fn canonical_or_raw(raw: &[u8]) -> Vec<u8> {
    let document = Document::parse_bytes(raw);
    document.map_or_else(|_| raw.to_vec(), |document| canonical(document.root(), Position::Plain))
}

fn shown(id: &str, held: &HeldCall) -> ShownCall {
    ShownCall {
        id: id.to_owned(),
        principal: name_of(&held.identity),
        server: held.server.clone(),
        tool: held.tool.clone(),
        contract: held.contract,
        groups: held.groups.clone(),
        policy: held.policy.clone(),
        parked_at: held.parked_at,
        expires_at: held.expires_at,
        arguments: String::from_utf8_lossy(&held.arguments).into_owned(),
        input_responses: (held.input_responses.as_deref())
            .map(|raw| String::from_utf8_lossy(raw).into_owned()),
    }
}
