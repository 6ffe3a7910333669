//! The sign-in of the person at this machine: the only case in which the local gate holds a
//! credential.
//!
//! Tokens are refreshed before they expire, by one process at a time, because a server that rotates
//! refresh tokens ends a grant whose old token is used twice. A person is asked if there is no
//! sign-in at the start of a session, and if the server wants more scopes. A sign-in that ends
//! during a session results in a refusal that says what to type, unless it can only be stored in
//! this process. [`Vault`] and [`AskPerson`] determine where tokens are stored and how a person is
//! asked.

use crate::recorder::now;
use oauth::challenge::Wanted;
use oauth::token::Freshness;
use oauth::{Challenge, Client, Grant, SignInError};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;
use wire::authorizer::{Authorizer, Credential, CredentialRefusal, Obtaining, Withheld};

/// How often a person is asked for more scopes in one session.
const MAX_STEP_UPS: usize = 3;
/// How often a person is asked to sign in during one session if sign-ins cannot be stored
/// elsewhere.
const MAX_ASKS: usize = 3;
/// The delay after a failed refresh, and the longest interval between checks of the clock.
const RETRY: Duration = Duration::from_secs(30);

/// Why a sign-in could not be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("the keyring: {0}")]
pub struct VaultError(pub String);

/// Stores the tokens of one server. Its functions block.
pub trait Vault: Send + Sync + fmt::Debug {
    fn load(&self) -> Result<Option<Grant>, VaultError>;
    fn save(&self, grant: &Grant) -> Result<(), VaultError>;
    fn delete(&self) -> Result<(), VaultError>;
    /// Waits until no other process of this home changes the sign-in, and excludes others until the
    /// result is dropped.
    fn lock(&self) -> Result<Box<dyn Send>, VaultError>;
}

/// A sign-in that a person must complete.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<Grant, SignInError>> + Send + 'a>>;

/// Asks the person at this machine to sign in.
pub trait AskPerson: Send + Sync + fmt::Debug {
    /// `scopes` are the scopes to request, if they are known.
    fn sign_in<'a>(&'a self, challenge: Option<Challenge>, scopes: Vec<String>) -> Asking<'a>;
}

/// An event of a sign-in. Contains no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInEvent {
    Completed {
        issuer: String,
        scopes: Vec<String>,
    },
    Refused {
        code: &'static str,
    },
    /// The authorization server no longer refreshes it.
    Ended {
        code: &'static str,
    },
    SignedOut {
        is_revoked: bool,
    },
}

impl SignInEvent {
    pub fn name(&self) -> &'static str {
        match self {
            SignInEvent::Completed { .. } => "sign_in.complete",
            SignInEvent::Refused { .. } => "sign_in.refuse",
            SignInEvent::Ended { .. } => "sign_in.end",
            SignInEvent::SignedOut { .. } => "sign_in.out",
        }
    }

    pub fn data(&self) -> serde_json::Value {
        match self {
            SignInEvent::Completed { issuer, scopes } => {
                serde_json::json!({"issuer": issuer, "scopes": scopes.join(" ")})
            }
            SignInEvent::Refused { code } | SignInEvent::Ended { code } => {
                serde_json::json!({"reason": code})
            }
            SignInEvent::SignedOut { is_revoked } => serde_json::json!({"revoked": is_revoked}),
        }
    }
}

/// Receives the events of a sign-in.
pub type Witness = Box<dyn Fn(&SignInEvent) + Send + Sync>;

/// What to do after a sign-in has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// What a person should type. The sign-in is stored where all processes find it.
    Command(String),
    /// The person is asked again during the session, because another process could not pass on its
    /// sign-in.
    AskAgain,
}

/// The sign-in of one server, shared by all requests to it.
pub struct PersonalSignIn {
    client: Client,
    vault: Arc<dyn Vault>,
    person: Box<dyn AskPerson>,
    remedy: Remedy,
    witness: Witness,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    grant: Option<Grant>,
    credential: Option<Arc<Credential>>,
    /// The credential obtained after the server refused the previous one. If it is refused as well,
    /// only a person can help.
    second_try: Option<Arc<Credential>>,
    asks: usize,
    step_ups: usize,
}

impl fmt::Debug for PersonalSignIn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PersonalSignIn").field("vault", &self.vault).finish_non_exhaustive()
    }
}

impl State {
    /// The credential, if it need not be replaced.
    fn fresh(&self) -> Option<Arc<Credential>> {
        let is_fresh = self.grant.as_ref()?.freshness(now()) == Freshness::Fresh;
        self.credential.clone().filter(|_| is_fresh)
    }

    fn usable(&self) -> Option<Arc<Credential>> {
        let is_usable = self.grant.as_ref()?.freshness(now()) != Freshness::Ended;
        self.credential.clone().filter(|_| is_usable)
    }

    fn adopt(&mut self, grant: Grant) -> Option<Arc<Credential>> {
        self.credential = grant.credential().map(Arc::new);
        self.grant = Some(grant);
        self.credential.clone()
    }

    fn forget(&mut self) {
        (self.grant, self.credential) = (None, None);
    }
}

/// Why there is no credential to present.
enum Missing {
    /// There is no sign-in, or it has ended.
    SignIn(String),
    /// There is one that cannot be refreshed at the moment.
    Moment(String),
}

impl PersonalSignIn {
    pub fn new(
        client: Client,
        vault: Arc<dyn Vault>,
        person: Box<dyn AskPerson>,
        remedy: Remedy,
        witness: Witness,
    ) -> PersonalSignIn {
        PersonalSignIn { client, vault, person, remedy, witness, state: Mutex::default() }
    }

    fn withheld(&self, missing: &Missing) -> Withheld {
        let remedy = match &self.remedy {
            Remedy::Command(command) => format!("A person types: {command}"),
            Remedy::AskAgain => "A person restarts this server in the client".to_owned(),
        };
        let words = match missing {
            Missing::SignIn(why) => {
                format!("○ holdpoint — this server needs you to sign in: {why}. {remedy}")
            }
            Missing::Moment(why) => format!(
                "○ holdpoint — the sign-in to this server could not be refreshed: {why}. Try again. {remedy}"
            ),
        };
        Withheld { words }
    }

    /// The stored sign-in, refreshed if it expires soon. `refused` is a grant that the server does
    /// not accept.
    async fn kept(
        &self,
        state: &mut State,
        refused: Option<&Grant>,
    ) -> Result<Arc<Credential>, Missing> {
        let _lock = self.locked().await?;
        let loaded = self.loaded().await?;
        let Some(grant) = loaded.or_else(|| state.grant.clone()) else {
            return Err(Missing::SignIn("there is no sign-in yet".to_owned()));
        };
        // Another process may have refreshed it, or a person may have signed in again.
        let is_other =
            |known: Option<&Grant>| known.is_none_or(|known| known.is_replaced_by(&grant));
        let is_good = grant.freshness(now()) == Freshness::Fresh;
        if is_good && is_other(refused) {
            return state.adopt(grant).ok_or_else(unsent);
        }
        match self.client.refresh(&grant, now()).await {
            Ok(refreshed) => {
                self.saved(&refreshed).await;
                state.adopt(refreshed).ok_or_else(unsent)
            }
            Err(error) if error.needs_sign_in() => {
                // Without a refresh token, the access token is used until the server refuses it.
                let is_refused = refused.is_some_and(|refused| !refused.is_replaced_by(&grant));
                if !is_refused && grant.freshness(now()) != Freshness::Ended && !grant.can_refresh()
                {
                    return state.adopt(grant).ok_or_else(unsent);
                }
                (self.witness)(&SignInEvent::Ended { code: error.code() });
                state.forget();
                self.deleted().await;
                Err(Missing::SignIn(error.to_string()))
            }
            Err(error) => {
                if refused.is_none() && grant.freshness(now()) == Freshness::Ending {
                    return state.adopt(grant).ok_or_else(unsent);
                }
                Err(Missing::Moment(error.to_string()))
            }
        }
    }

    /// A sign-in that another process has stored since.
    async fn kept_elsewhere(
        &self,
        state: &mut State,
        refused: Option<&Grant>,
    ) -> Result<Arc<Credential>, Missing> {
        let is_other = |grant: &Grant| refused.is_none_or(|refused| refused.is_replaced_by(grant));
        match self.loaded().await?.filter(is_other) {
            Some(grant) => state.adopt(grant).ok_or_else(unsent),
            None => Err(Missing::SignIn("the server refuses the token, also a new one".to_owned())),
        }
    }

    /// Has the person sign in, and stores the result.
    async fn ask(
        &self,
        state: &mut State,
        challenge: Option<Challenge>,
        scopes: Vec<String>,
        refused: Option<&Grant>,
    ) -> Result<Arc<Credential>, Missing> {
        let _lock = self.locked().await?;
        // Another process may have asked in the meantime.
        if scopes.is_empty()
            && let Some(grant) = self.loaded().await?
            && grant.freshness(now()) == Freshness::Fresh
            && refused.is_none_or(|refused| refused.is_replaced_by(&grant))
        {
            return state.adopt(grant).ok_or_else(unsent);
        }
        match self.person.sign_in(challenge, scopes).await {
            Ok(grant) => {
                let (issuer, scopes) = (grant.issuer.clone(), grant.scopes.clone());
                (self.witness)(&SignInEvent::Completed { issuer, scopes });
                self.saved(&grant).await;
                state.adopt(grant).ok_or_else(unsent)
            }
            Err(error) => {
                (self.witness)(&SignInEvent::Refused { code: error.code() });
                Err(Missing::SignIn(error.to_string()))
            }
        }
    }

    async fn locked(&self) -> Result<Box<dyn Send>, Missing> {
        let vault = self.vault.clone();
        self.blocking(move || vault.lock()).await
    }

    async fn loaded(&self) -> Result<Option<Grant>, Missing> {
        let vault = self.vault.clone();
        self.blocking(move || vault.load()).await
    }

    /// Stores a sign-in. If that fails, it is used in this process only.
    async fn saved(&self, grant: &Grant) {
        let (vault, grant) = (self.vault.clone(), grant.clone());
        let _ = self.blocking(move || vault.save(&grant)).await;
    }

    async fn deleted(&self) {
        let vault = self.vault.clone();
        let _ = self.blocking(move || vault.delete()).await;
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, Missing> {
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome.map_err(|error| Missing::Moment(error.to_string())),
            Err(_) => Err(Missing::Moment("an internal error of Holdpoint".to_owned())),
        }
    }

    async fn obtained(&self) -> Result<Option<Arc<Credential>>, Missing> {
        let mut state = self.state.lock().await;
        if let Some(credential) = state.fresh() {
            return Ok(Some(credential));
        }
        match self.kept(&mut state, None).await {
            Ok(credential) => {
                // From now on a sign-in that ends is one that ends during the session.
                state.asks = state.asks.max(1);
                Ok(Some(credential))
            }
            // The server's challenge shows whether a sign-in is needed, and with which scopes.
            Err(Missing::SignIn(_)) => Ok(None),
            Err(missing) => Err(missing),
        }
    }

    /// Asks the person at the start of a session, and later only if no other process could.
    async fn ask_if_allowed(
        &self,
        state: &mut State,
        challenge: Option<Challenge>,
        refused: Option<&Grant>,
        why: String,
    ) -> Result<Arc<Credential>, Missing> {
        let most = match self.remedy {
            Remedy::Command(_) => 1,
            Remedy::AskAgain => MAX_ASKS,
        };
        if state.asks >= most {
            return Err(Missing::SignIn(why));
        }
        state.asks += 1;
        self.ask(state, challenge, Vec::new(), refused).await
    }

    async fn renewed(
        &self,
        refused: Option<&Arc<Credential>>,
        refusal: &CredentialRefusal,
    ) -> Result<Option<Arc<Credential>>, Missing> {
        let challenge = Challenge::read(refusal.challenges.iter().map(Vec::as_slice));
        let wanted = match &challenge {
            Some(challenge) => challenge.wanted(refusal.status.as_u16()),
            None => (refusal.status.as_u16() == 401).then_some(Wanted::Token),
        };
        let mut state = self.state.lock().await;
        let is_refused =
            |own: &Arc<Credential>| refused.is_some_and(|other| Arc::ptr_eq(own, other));
        if let Some(current) = state.usable().filter(|current| !is_refused(current)) {
            return Ok(Some(current));
        }
        match (wanted, challenge) {
            (None | Some(Wanted::Nonce), _) => Ok(None),
            (Some(Wanted::MoreScopes), Some(challenge)) => self.step_up(state, challenge).await,
            (Some(Wanted::Token | Wanted::MoreScopes), challenge) => {
                let grant = state.grant.clone();
                let renewed = match state.second_try.as_ref().is_some_and(is_refused) {
                    true => self.kept_elsewhere(&mut state, grant.as_ref()).await,
                    false => self.kept(&mut state, grant.as_ref()).await,
                };
                let renewed = match renewed {
                    Err(Missing::SignIn(why)) => {
                        state.forget();
                        self.ask_if_allowed(&mut state, challenge, grant.as_ref(), why).await?
                    }
                    renewed => renewed?,
                };
                state.second_try = Some(renewed.clone());
                Ok(Some(renewed))
            }
        }
    }

    async fn step_up(
        &self,
        mut state: MutexGuard<'_, State>,
        challenge: Challenge,
    ) -> Result<Option<Arc<Credential>>, Missing> {
        let granted = state.grant.as_ref().map(|grant| grant.scopes.clone()).unwrap_or_default();
        let scopes = oauth::authorization::stepped_up(&granted, &challenge.scopes);
        // Requesting the same scopes again would not help, so the server's refusal stands.
        let Some(scopes) = scopes.filter(|_| state.step_ups < MAX_STEP_UPS) else {
            return Ok(None);
        };
        state.step_ups += 1;
        self.ask(&mut state, Some(challenge), scopes, None).await.map(Some)
    }

    /// How long to wait before the grant is checked again.
    async fn pause(&self) -> Duration {
        let state = self.state.lock().await;
        let at = state
            .grant
            .as_ref()
            .filter(|grant| grant.can_refresh())
            .and_then(|grant| grant.renew_at);
        let left = at.map(|at| u64::try_from(at.saturating_sub(now().0)).unwrap_or_default());
        // The machine may be suspended, so the wait is never long.
        left.map_or(RETRY, Duration::from_millis).min(RETRY)
    }
}

fn unsent() -> Missing {
    Missing::SignIn("the token does not fit into a header".to_owned())
}

impl Authorizer for PersonalSignIn {
    fn obtain(&self) -> Obtaining<'_, Option<Arc<Credential>>> {
        Box::pin(async { self.obtained().await.map_err(|missing| self.withheld(&missing)) })
    }

    fn renew<'a>(
        &'a self,
        refused: Option<&'a Arc<Credential>>,
        refusal: CredentialRefusal,
    ) -> Obtaining<'a, Option<Arc<Credential>>> {
        Box::pin(async move {
            let renewed = self.renewed(refused, &refusal).await;
            renewed.map_err(|missing| self.withheld(&missing))
        })
    }

    fn tend(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            loop {
                sleep(self.pause().await.max(Duration::from_millis(100))).await;
                let mut state = self.state.lock().await;
                let ends = state.grant.as_ref().is_some_and(|grant| {
                    grant.can_refresh() && grant.freshness(now()) != Freshness::Fresh
                });
                if ends && self.kept(&mut state, None).await.is_err() {
                    drop(state);
                    sleep(RETRY).await;
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
