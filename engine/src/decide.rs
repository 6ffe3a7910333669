//! Decides on one request: a pure function of the call, the principal, the situation and the clock.
//!
//! INVARIANT: there is one path for every surface. `run` builds it with fewer checks than a gateway; neither has a second
//! copy of any check.

mod approval;
mod authorization;
mod checks;

pub use approval::{
    ApprovalAnswer, ApprovalDesk, ApprovalGrant, ApprovalRequest, ApprovalUse, Approver,
    AwaitedApproval, ResumeCall, TakenApproval,
};
pub use authorization::{Authorization, Authorizer, Unauthorized};
pub use checks::{
    ArgumentRules, PathArguments, PreflightLimits, UrlArguments, rate_time, unix_seconds,
};

use crate::anomaly::Anomalies;
use crate::call::{Call, Method, Subject};
use crate::principal::Principal;
use crate::reason::ReasonCode;
use crate::situation::Situation;
use attest::ToolAllowlist;
use checks::{
    AdmissionCheck, AllowlistCheck, AnomalyCheck, ApprovalCheck, ArgumentCheck, AuthorizationCheck,
    DriftCheck, IncidentCheck, InventoryCheck, MirrorCheck, PreflightCheck, RateCheck,
};
use contract::surface::EntryType;
use gate::view::{HeldTools, Standing};
use policy::preflight::RateLimiter;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was decided on a request.
#[derive(Debug, Clone)]
#[must_use]
pub enum Ruling {
    Allow,
    /// A contract moved, and a person decides.
    Hold(Arc<Standing>),
    /// Not allowed, whatever the contract says.
    Deny(Denial),
}

impl Ruling {
    /// Why the request is refused, as it is recorded; `None` if it is allowed.
    pub fn reason(&self) -> Option<ReasonCode> {
        match self {
            Ruling::Allow => None,
            Ruling::Hold(standing) => standing.reason.map(ReasonCode::Drift),
            Ruling::Deny(Denial { reason, recorded, .. }) => Some(recorded.unwrap_or(*reason)),
        }
    }
}

/// A ruling, and the policy that it rests on.
#[derive(Debug, Clone)]
#[must_use]
pub struct Decided {
    pub ruling: Ruling,
    pub policy: Option<Arc<str>>,
    /// Whose approval the call needs, if it needs one. Without it the call is denied.
    pub needs_approval: Option<Approver>,
    /// Who approved the call.
    pub grant: Option<Arc<ApprovalGrant>>,
    /// The approval that the call waits for.
    pub parked: Option<AwaitedApproval>,
}

impl Decided {
    fn new(ruling: Ruling, policy: Option<Arc<str>>) -> Decided {
        Decided { ruling, policy, needs_approval: None, grant: None, parked: None }
    }
}

impl From<Ruling> for Decided {
    /// No policy was asked.
    fn from(ruling: Ruling) -> Decided {
        Decided::new(ruling, None)
    }
}

/// Why a request is denied, with a sentence that tells a person what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What the client is told.
    pub reason: ReasonCode,
    pub message: String,
    /// What the receipt says, where the client must not learn it.
    pub recorded: Option<ReasonCode>,
    /// The policy that denies it.
    pub policy: Option<Arc<str>>,
    /// The client must not learn that there is such a thing: it is told neither the server nor the reason.
    pub is_hidden: bool,
    /// Where an argument broke a rule.
    pub violation: Option<Box<ArgumentViolation>>,
    /// When a call that was one too many may be made.
    pub retry_after: Option<Duration>,
    /// The approval that was asked for.
    pub approval_id: Option<Box<str>>,
    /// Where the person signs in, so that the call can be made.
    pub sign_in: Option<Box<str>>,
}

/// Which argument breaks which rule. It never has the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentViolation {
    /// A JSON Pointer into the arguments.
    pub pointer: String,
    pub rule: &'static str,
}

impl Denial {
    pub fn new(reason: ReasonCode, message: impl Into<String>) -> Denial {
        let message = message.into();
        Denial {
            reason,
            message,
            recorded: None,
            policy: None,
            is_hidden: false,
            violation: None,
            retry_after: None,
            approval_id: None,
            sign_in: None,
        }
    }

    /// The denial of something that does not exist, or that the caller could never use: the two look the same.
    pub fn unknown(call: &Call<'_>, recorded: ReasonCode) -> Denial {
        let what = match call.kind {
            Method::Use(EntryType::Prompt) => "prompt",
            Method::Use(EntryType::Resource | EntryType::Template) => "resource",
            Method::Use(_) => "tool",
            Method::Handshake | Method::List(_) | Method::Ping | Method::Other => "server",
        };
        let message =
            format!("○ holdpoint — there is no such {what}; look at the list for the right name");
        let denial = Denial::new(ReasonCode::UnknownTool, message);
        Denial { recorded: Some(recorded), is_hidden: true, ..denial }
    }
}

/// Everything that a check may look at.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub call: &'a Call<'a>,
    pub principal: &'a Principal,
    pub situation: &'a Situation,
    /// The tools of which this session had a call held by the call.
    pub held_tools: &'a HeldTools,
    /// When the request is decided on; rates and expiries are measured against it.
    pub now: Instant,
}

/// What one check says.
#[derive(Debug)]
#[must_use]
pub enum Answer {
    Continue,
    /// The same, because of a policy.
    Permitted {
        policy: Option<Arc<str>>,
    },
    /// The same, if a member of one of these groups approves this very call.
    NeedsApproval {
        policy: Option<Arc<str>>,
        groups: Vec<String>,
    },
    /// The same, if the person at the client allows this very call.
    NeedsPerson,
    Hold(Arc<Standing>),
    Deny(Denial),
}

impl Answer {
    fn deny(reason: ReasonCode, message: impl Into<String>) -> Answer {
        Answer::Deny(Denial::new(reason, message))
    }
}

/// One question that a request has to pass.
pub trait Check: Send + Sync + std::fmt::Debug {
    fn check(&self, question: &Question<'_>) -> Answer;
}

/// Which methods a check concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concerns {
    Everything,
    /// Everything but the handshake and `ping`, which go up even while a server is stopped.
    Server,
    ListsAndUses,
    /// Uses, and whatever goes on with one.
    Uses,
    ToolCalls,
    /// The same, by a check that counts the calls it lets through.
    CountedToolCalls,
    /// Uses, by a check that counts those it lets through.
    CountedUses,
}

impl Concerns {
    fn include(self, call: &Call<'_>) -> bool {
        let method = call.kind;
        match self {
            Concerns::Everything => true,
            Concerns::Server => match method {
                Method::Handshake | Method::Ping => false,
                Method::List(_) | Method::Use(_) | Method::Other => true,
            },
            Concerns::ListsAndUses => matches!(method, Method::List(_) | Method::Use(_)),
            Concerns::Uses | Concerns::CountedUses => {
                matches!(method, Method::Use(_)) || matches!(call.subject, Subject::Task { .. })
            }
            Concerns::ToolCalls | Concerns::CountedToolCalls => {
                matches!(method, Method::Use(EntryType::Tool))
            }
        }
    }
}

/// The checks that a request passes, in their order. The first one that does not continue decides.
#[derive(Debug)]
pub struct Path {
    checks: Vec<(Concerns, Box<dyn Check>)>,
    authorizer: Option<Arc<dyn Authorizer>>,
    desk: Option<Arc<dyn ApprovalDesk>>,
    asks_person: bool,
}

impl Path {
    /// The path in front of one server on one machine. `allowed: None` lets every tool pass the allowlist; under the enclaved
    /// flavor the caller passes an empty allowlist for a server that has none.
    pub fn for_one_server(limits: PreflightLimits, allowed: Option<Arc<ToolAllowlist>>) -> Path {
        // The one place that says which check comes when, and which methods it concerns.
        let allowlist = allowed.map(|allowed| -> (Concerns, Box<dyn Check>) {
            // Before admission: a tool off the list is refused as such, whether the server is admitted or not.
            (Concerns::ToolCalls, Box::new(AllowlistCheck { allowed }))
        });
        let mut checks: Vec<(Concerns, Box<dyn Check>)> = vec![
            (Concerns::Server, Box::new(InventoryCheck)),
            (Concerns::Uses, Box::new(IncidentCheck)),
        ];
        checks.extend(allowlist);
        checks.push((Concerns::Server, Box::new(AdmissionCheck)));
        checks.push((Concerns::ListsAndUses, Box::new(DriftCheck)));
        checks.push((Concerns::Everything, Box::new(PreflightCheck { limits })));
        checks.push((Concerns::ToolCalls, Box::new(MirrorCheck)));
        Path { checks, authorizer: None, desk: None, asks_person: false }
    }

    /// The same path, where sessions that trip an anomaly rule are throttled or quarantined. It comes behind incident mode,
    /// and before anything is looked at that could tell a quarantined session more.
    #[must_use]
    pub fn watched_by(mut self, anomalies: Arc<Anomalies>) -> Path {
        let check: Box<dyn Check> = Box::new(AnomalyCheck { anomalies });
        let behind_incident = 2 + usize::from(self.authorizer.is_some());
        self.checks.insert(behind_incident, (Concerns::CountedUses, check));
        self
    }

    /// The same path, with calls counted. It comes before the arguments are looked at, so that calls that are refused for
    /// them count too.
    #[must_use]
    pub fn throttled_by(mut self, limiter: Arc<RateLimiter>) -> Path {
        self.checks.push((Concerns::CountedToolCalls, Box::new(RateCheck { limiter })));
        self
    }

    /// The same path, with the arguments of calls checked against the approved definition and the rules for them.
    #[must_use]
    pub fn checking_arguments(mut self, rules: ArgumentRules) -> Path {
        self.checks.push((Concerns::ToolCalls, Box::new(ArgumentCheck { rules })));
        self
    }

    /// The same path, where the person at the client has to allow each call of these tools.
    #[must_use]
    pub fn asking_person_for(mut self, tools: BTreeSet<String>) -> Path {
        self.checks.push((Concerns::ToolCalls, Box::new(ApprovalCheck { tools })));
        self.asks_person = true;
        self
    }

    /// Whether there are calls that the person at the client has to allow.
    pub fn asks_person(&self) -> bool {
        self.asks_person
    }

    /// The path at the gateway: the same checks, behind the question whether this principal may make this request at all.
    #[must_use]
    pub fn authorized_by(mut self, authorizer: Arc<dyn Authorizer>) -> Path {
        let check = Box::new(AuthorizationCheck { authorizer: authorizer.clone() });
        self.checks.insert(0, (Concerns::Server, check));
        self.authorizer = Some(authorizer);
        self
    }

    /// The same path, with a place where approvals of single calls are asked for.
    #[must_use]
    pub fn approved_by(mut self, desk: Arc<dyn ApprovalDesk>) -> Path {
        self.desk = Some(desk);
        self
    }

    /// Where approvals are asked for, if they can be.
    pub fn desk(&self) -> Option<&Arc<dyn ApprovalDesk>> {
        self.desk.as_ref()
    }

    /// Decides who sees what of a list; `None` if everybody sees all of it.
    pub fn authorizer(&self) -> Option<&Arc<dyn Authorizer>> {
        self.authorizer.as_ref()
    }

    /// What would be decided on a request that is decided on again later: it is not counted.
    pub fn foresee(
        &self,
        call: &Call<'_>,
        principal: &Principal,
        situation: &Situation,
        held_tools: &HeldTools,
        now: Instant,
    ) -> Decided {
        let question = Question { call, principal, situation, held_tools, now };
        let counts = [Concerns::CountedToolCalls, Concerns::CountedUses];
        self.ask(&question, |concerns| !counts.contains(&concerns))
    }

    /// Decides on a request. It has no effects but that calls are counted: the caller records the ruling.
    pub fn decide(
        &self,
        call: &Call<'_>,
        principal: &Principal,
        situation: &Situation,
        held_tools: &HeldTools,
        now: Instant,
    ) -> Decided {
        let question = Question { call, principal, situation, held_tools, now };
        self.ask(&question, |_| true)
    }

    fn ask(&self, question: &Question<'_>, is_asked: impl Fn(Concerns) -> bool) -> Decided {
        let call = question.call;
        let mut permitted_by = None;
        let mut needs_approval = None;
        for (concerns, check) in &self.checks {
            if !concerns.include(call) || !is_asked(*concerns) {
                continue;
            }
            match check.check(question) {
                Answer::Continue => {}
                Answer::Permitted { policy } => permitted_by = policy,
                Answer::NeedsApproval { policy, groups } => {
                    permitted_by = policy;
                    needs_approval = Some(Approver::Groups(groups));
                }
                // INVARIANT: the caller never stands in for another person who has to approve.
                Answer::NeedsPerson => {
                    needs_approval.get_or_insert(Approver::PersonAtClient);
                }
                Answer::Hold(standing) => {
                    return Decided::new(Ruling::Hold(standing), permitted_by);
                }
                Answer::Deny(denial) => {
                    let policy = denial.policy.clone().or(permitted_by);
                    return Decided::new(Ruling::Deny(denial), policy);
                }
            }
        }
        let Some(approver) = needs_approval else {
            return Decided::new(Ruling::Allow, permitted_by);
        };
        let denial = Denial::new(ReasonCode::ApprovalRequired, approver.words());
        let decided = Decided::new(Ruling::Deny(denial), permitted_by);
        Decided { needs_approval: Some(approver), ..decided }
    }
}
