//! Who makes a request, as every check and every receipt sees it.

use contract::time::Timestamp;
use ledger::record::ActorType;
use policy::{Caller, Identity};
use std::borrow::Cow;

/// The identity behind a session's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub actor: ActorType,
    /// Who the principal is: the user of the machine for `run`.
    pub subject: String,
    /// Further names of the same principal, such as the account behind `USER`. A revocation of one concerns it too.
    pub aliases: Vec<String>,
    /// What the client calls itself.
    pub client_id: Option<String>,
    pub org_id: Option<String>,
    /// What the policies look at; `None` for `run`, which has none.
    pub caller: Option<Caller>,
    /// When its session began: what is revoked later concerns it.
    pub since: Timestamp,
    /// The session of `run`; at the gateway each request says which one it belongs to.
    pub session: Option<u64>,
}

impl Principal {
    /// The user of this machine, whose agent makes the calls.
    pub fn local_user(subject: String, aliases: Vec<String>, since: Timestamp) -> Principal {
        let actor = ActorType::Agent;
        let (client_id, org_id, caller, session) = (None, None, None, None);
        Principal { actor, subject, aliases, client_id, org_id, caller, since, session }
    }

    /// A caller of the gateway whose identity was verified.
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

    /// The same principal, in a session of its own.
    #[must_use]
    pub fn in_session(self, session: u64) -> Principal {
        Principal { session: Some(session), ..self }
    }

    /// The same principal, behind a client that calls itself something else. What a verified identity says of its client
    /// counts more than that.
    #[must_use]
    pub fn with_client(&self, client_id: Option<String>) -> Principal {
        match self.caller {
            Some(_) => self.clone(),
            None => Principal { client_id, ..self.clone() },
        }
    }

    /// The name that tells it from every other principal: the subject, with its issuer where it has one.
    pub fn whole_name(&self) -> Cow<'_, str> {
        match &self.caller {
            None => Cow::Borrowed(&self.subject),
            Some(caller) => {
                let Identity { issuer, subject, .. } = caller.identity();
                Cow::Owned(policy::principal_id(issuer, subject))
            }
        }
    }

    /// Whether an incident that names this means it.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().any(|own| own == name) || self.whole_name() == name
    }

    /// Every name that a revocation may give for it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.subject].into_iter().chain(&self.aliases).map(String::as_str)
    }
}
