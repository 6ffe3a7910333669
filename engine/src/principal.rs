//! The principal of a request, as seen by every check and every receipt.

use contract::time::Timestamp;
use ledger::record::ActorType;
use policy::{Caller, Identity};
use std::borrow::Cow;

/// The identity that makes a session's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub actor: ActorType,
    /// The principal's name: for `run`, the user of the machine.
    pub subject: String,
    /// Other names of the same principal, such as the account behind `USER`. A revocation of any of
    /// them applies to it.
    pub aliases: Vec<String>,
    /// The client's name for itself.
    pub client_id: Option<String>,
    pub org_id: Option<String>,
    /// The identity that policies examine; `None` for `run`, which has none.
    pub caller: Option<Caller>,
    /// When its session started. Later revocations apply to it.
    pub since: Timestamp,
    /// The session of `run`. At the gateway, each request names its session.
    pub session: Option<u64>,
}

impl Principal {
    /// The user of this machine, whose agent makes the calls.
    pub fn local_user(subject: String, aliases: Vec<String>, since: Timestamp) -> Principal {
        let actor = ActorType::Agent;
        let (client_id, org_id, caller, session) = (None, None, None, None);
        Principal { actor, subject, aliases, client_id, org_id, caller, since, session }
    }

    /// A caller of the gateway with a verified identity.
    pub fn verified(caller: Caller, since: Timestamp) -> Principal {
        let Identity { subject, actor_type, client_id, org, .. } = caller.identity();
        let actor = match actor_type {
            policy::ActorType::User => ActorType::User,
            policy::ActorType::Agent => ActorType::Agent,
            policy::ActorType::System => ActorType::System,
        };
        Principal {
            actor,
            subject: subject.clone(),
            aliases: Vec::new(),
            client_id: client_id.clone(),
            org_id: org.clone(),
            caller: Some(caller),
            since,
            session: None,
        }
    }

    /// The same principal in a given session.
    #[must_use]
    pub fn in_session(self, session: u64) -> Principal {
        Principal { session: Some(session), ..self }
    }

    /// The same principal with another client name. A client named by a verified identity takes
    /// precedence.
    #[must_use]
    pub fn with_client(&self, client_id: Option<String>) -> Principal {
        match self.caller {
            Some(_) => self.clone(),
            None => Principal { client_id, ..self.clone() },
        }
    }

    /// The principal's unique name: the subject, with its issuer if it has one.
    pub fn whole_name(&self) -> Cow<'_, str> {
        match &self.caller {
            None => Cow::Borrowed(&self.subject),
            Some(caller) => {
                let Identity { issuer, subject, .. } = caller.identity();
                Cow::Owned(policy::principal_id(issuer, subject))
            }
        }
    }

    /// Whether an incident that names this name applies to the principal.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().any(|own| own == name) || self.whole_name() == name
    }

    /// Every name under which the principal can be revoked.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.subject].into_iter().chain(&self.aliases).map(String::as_str)
    }
}
