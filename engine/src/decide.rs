//! Decides on one request: a pure function of the call, the principal, the situation and the clock.
//!
//! INVARIANT: there is one path for every surface. `run` builds it with fewer checks than a
//! gateway; neither has a second copy of any check.

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

/// The decision on a request.
#[derive(Debug, Clone)]
#[must_use]
pub enum Ruling {
    Allow,
    /// A contract changed, and a person must decide.
    Hold(Arc<Standing>),
    /// Not allowed, whatever the contract is.
    Deny(Denial),
}

impl Ruling {
    /// The recorded reason of a refusal; `None` if the request is allowed.
    pub fn reason(&self) -> Option<ReasonCode> {
        match self {
            Ruling::Allow => None,
            Ruling::Hold(standing) => standing.reason.map(ReasonCode::Drift),
            Ruling::Deny(Denial { reason, recorded, .. }) => Some(recorded.unwrap_or(*reason)),
        }
    }
}

/// A ruling, with the policy that it is based on.
#[derive(Debug, Clone)]
#[must_use]
pub struct Decided {
    pub ruling: Ruling,
    pub policy: Option<Arc<str>>,
    /// Whose approval the call needs, if any. Without it the call is denied.
    pub needs_approval: Option<Approver>,
    /// The approval that the call proceeds with.
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
    /// A ruling without a policy.
    fn from(ruling: Ruling) -> Decided {
        Decided::new(ruling, None)
    }
}

/// Why a request is denied, with a sentence that says what a person can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The reason shown to the client.
    pub reason: ReasonCode,
    pub message: String,
    /// The reason in the receipt, if the client must not learn it.
    pub recorded: Option<ReasonCode>,
    /// The policy that denies it.
    pub policy: Option<Arc<str>>,
    /// Whether the client must not learn that the target exists: neither the server nor the reason
    /// is revealed.
    pub is_hidden: bool,
    /// The place where an argument broke a rule.
    pub violation: Option<Box<ArgumentViolation>>,
    /// When a rate-limited call may be made again.
    pub retry_after: Option<Duration>,
    /// The id of the requested approval.
    pub approval_id: Option<Box<str>>,
    /// Where the person can sign in to make the call possible.
    pub sign_in: Option<Box<str>>,
}

/// Which argument breaks which rule. Never contains the value.
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

    /// The denial of something that does not exist, or that the caller could never use: both look
    /// the same.
    pub fn unknown(call: &Call<'_>, recorded: ReasonCode) -> Denial {
        let what = match call.kind {
            Method::Use(EntryType::Prompt) => "prompt",
            Method::Use(EntryType::Resource | EntryType::Template) => "resource",
            Method::Use(_) => "tool",
            Method::Handshake | Method::List(_) | Method::Ping | Method::Other => "server",
        };
        let message =
            format!("○ holdpoint — there is no such {what}; check the list for the right name");
        let denial = Denial::new(ReasonCode::UnknownTool, message);
        Denial { recorded: Some(recorded), is_hidden: true, ..denial }
    }
}

/// Everything that a check may examine.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub call: &'a Call<'a>,
    pub principal: &'a Principal,
    pub situation: &'a Situation,
    /// The tools of which this session already had a call held by the call.
    pub held_tools: &'a HeldTools,
    /// The time of the decision, used for rates and expiry.
    pub now: Instant,
}

/// The result of one check.
#[derive(Debug)]
#[must_use]
pub enum Answer {
    Continue,
    /// Continue, because of a policy.
    Permitted {
        policy: Option<Arc<str>>,
    },
    /// Continue if a member of one of these groups approves this exact call.
    NeedsApproval {
        policy: Option<Arc<str>>,
        groups: Vec<String>,
    },
    /// Continue if the person at the client allows this exact call.
    NeedsPerson,
    Hold(Arc<Standing>),
    Deny(Denial),
}

impl Answer {
    fn deny(reason: ReasonCode, message: impl Into<String>) -> Answer {
        Answer::Deny(Denial::new(reason, message))
    }
}

/// One check that a request must pass.
pub trait Check: Send + Sync + std::fmt::Debug {
    fn check(&self, question: &Question<'_>) -> Answer;
}

/// Which methods a check applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concerns {
    Everything,
    /// Everything except the handshake and `ping`, which are forwarded even while a server is
    /// stopped.
    Server,
    ListsAndUses,
    /// Uses, and requests that continue one.
    Uses,
    ToolCalls,
    /// Tool calls, for a check that counts the calls it lets through.
    CountedToolCalls,
    /// Uses, for a check that counts those it lets through.
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

/// The checks that a request passes through, in order. The first one that does not continue
/// decides.
#[derive(Debug)]
pub struct Path {
    checks: Vec<(Concerns, Box<dyn Check>)>,
    authorizer: Option<Arc<dyn Authorizer>>,
    desk: Option<Arc<dyn ApprovalDesk>>,
    asks_person: bool,
}

impl Path {
    /// The path for one server on one machine. With `allowed: None` every tool passes the
    /// allowlist; under the enclaved flavor the caller passes an empty allowlist for a server that
    /// has none.
    pub fn for_one_server(limits: PreflightLimits, allowed: Option<Arc<ToolAllowlist>>) -> Path {
        // This is the only place that determines the order of checks and the methods they apply to.
        let allowlist = allowed.map(|allowed| -> (Concerns, Box<dyn Check>) {
            // Before admission, so that a tool off the list is refused as such, whether or not the
            // server is admitted.
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

    /// Adds throttling and quarantine for sessions that trip an anomaly rule. This check follows
    /// incident mode, and precedes everything that could reveal more to a quarantined session.
    #[must_use]
    pub fn watched_by(mut self, anomalies: Arc<Anomalies>) -> Path {
        let check: Box<dyn Check> = Box::new(AnomalyCheck { anomalies });
        let behind_incident = 2 + usize::from(self.authorizer.is_some());
        self.checks.insert(behind_incident, (Concerns::CountedUses, check));
        self
    }

    /// Adds rate limits. They precede the check of arguments, so that calls refused because of
    /// their arguments count too.
    #[must_use]
    pub fn throttled_by(mut self, limiter: Arc<RateLimiter>) -> Path {
        self.checks.push((Concerns::CountedToolCalls, Box::new(RateCheck { limiter })));
        self
    }

    /// Adds the check of arguments against the approved definition and the configured rules.
    #[must_use]
    pub fn checking_arguments(mut self, rules: ArgumentRules) -> Path {
        self.checks.push((Concerns::ToolCalls, Box::new(ArgumentCheck { rules })));
        self
    }

    /// Requires the person at the client to allow each call of these tools.
    #[must_use]
    pub fn asking_person_for(mut self, tools: BTreeSet<String>) -> Path {
        self.checks.push((Concerns::ToolCalls, Box::new(ApprovalCheck { tools })));
        self.asks_person = true;
        self
    }

    /// Whether there are calls that the person at the client must allow.
    pub fn asks_person(&self) -> bool {
        self.asks_person
    }

    /// Adds the gateway's authorization check before all others: whether this principal may make
    /// this request.
    #[must_use]
    pub fn authorized_by(mut self, authorizer: Arc<dyn Authorizer>) -> Path {
        let check = Box::new(AuthorizationCheck { authorizer: authorizer.clone() });
        self.checks.insert(0, (Concerns::Server, check));
        self.authorizer = Some(authorizer);
        self
    }

    /// Sets the desk where approvals of single calls are requested.
    #[must_use]
    pub fn approved_by(mut self, desk: Arc<dyn ApprovalDesk>) -> Path {
        self.desk = Some(desk);
        self
    }

    /// The desk where approvals are requested, if there is one.
    pub fn desk(&self) -> Option<&Arc<dyn ApprovalDesk>> {
        self.desk.as_ref()
    }

    /// Decides who sees what in a list; `None` if everyone sees all of it.
    pub fn authorizer(&self) -> Option<&Arc<dyn Authorizer>> {
        self.authorizer.as_ref()
    }

    /// Predicts the decision on a request that will be decided on again later, without counting it.
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

    /// Decides on a request. The only effect is that calls are counted; the caller records the
    /// ruling.
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
                // INVARIANT: the caller never stands in for another person whose approval is
                // required.
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
