//! Who makes a request, as every check and every receipt sees it.

use contract::time::Timestamp;
use ledger::record::ActorType;

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
    /// When its session began: what is revoked later concerns it.
    pub since: Timestamp,
}

impl Principal {
    /// The user of this machine, whose agent makes the calls.
    pub fn local_user(subject: String, aliases: Vec<String>, since: Timestamp) -> Principal {
        let actor = ActorType::Agent;
        Principal { actor, subject, aliases, client_id: None, org_id: None, since }
    }

    /// The same principal, behind a client that calls itself something else.
    #[must_use]
    pub fn with_client(&self, client_id: Option<String>) -> Principal {
        Principal { client_id, ..self.clone() }
    }

    /// Every name that a revocation may give for it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.subject].into_iter().chain(&self.aliases).map(String::as_str)
    }
}
