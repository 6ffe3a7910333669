//! One sign-in from discovery through the browser to the tokens.

use super::callback::{Brought, Callback, Listening};
use super::page::Page;
use super::{Recording, SignInTarget, browser};
use crate::screen;
use engine::recorder::now;
use engine::sign_in::{AskPerson, Asking, SignInEvent};
use oauth::{
    ApplicationType, Begin, Begun, Challenge, Client, DpopKey, Grant, Registration, SignInError,
    begin,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long the user may take in the browser.
const PERSON_PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Signs a user in with their browser.
#[derive(Debug)]
pub(crate) struct BrowserSignIn {
    pub(super) target: SignInTarget,
    pub(super) client: Client,
    pub(super) is_quiet: bool,
    pub(super) witness: Arc<Recording>,
}

impl AskPerson for BrowserSignIn {
    fn sign_in<'a>(&'a self, challenge: Option<Challenge>, scopes: Vec<String>) -> Asking<'a> {
        Box::pin(self.run(challenge, scopes))
    }
}

impl BrowserSignIn {
    async fn run(
        &self,
        challenge: Option<Challenge>,
        scopes: Vec<String>,
    ) -> Result<Grant, SignInError> {
        let url = &self.target.endpoint.url;
        let challenge = match challenge {
            Some(challenge) => Ok(Some(challenge)),
            None => self.client.challenge(url).await,
        };
        let found = match challenge {
            Ok(challenge) => self.client.discover(url, challenge.as_ref()).await?,
            // The server may require a sign-in for calls only; then its metadata says so.
            Err(SignInError::NotAsked) => match self.client.discover(url, None).await {
                Err(SignInError::NoAuthorizationServer) => return Err(SignInError::NotAsked),
                found => found?,
            },
            Err(error) => return Err(error),
        };
        let callback = Callback::open(self.target.callback_port).await.map_err(|_| {
            SignInError::BadAnswer("this machine has no free port to listen on for it")
        })?;
        let redirect_uri = callback.redirect_uri();
        let client = self.client.register(&found, &self.registration(&redirect_uri)).await?;
        let mut random = [0; oauth::authorization::RANDOM_BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| SignInError::NoRandomness(error.to_string()))?;
        let scopes = match scopes.as_slice() {
            [] => scopes,
            more => oauth::metadata::scopes_to_ask(more, None, &found.server),
        };
        let dpop = found.uses_dpop().then(DpopKey::generate).transpose()?;
        let asked = Begin { redirect_uri: &redirect_uri, scopes: &scopes, random, dpop };
        let Begun { url, pending } = begin(&found, &client, asked)?;
        self.show(&url, pending.issuer());
        let mut listening = callback.listen(pending.clone());
        let (query, show) = self.answer(&mut listening).await?;
        let outcome = match pending.accept(&query) {
            Ok(code) => self.client.redeem(code, now()).await,
            Err(error) => Err(error),
        };
        let host = self.target.endpoint.url.host();
        let page = match &outcome {
            Ok(_) => Page::signed_in(host),
            Err(error) => Page::refused(host, &error.to_string()),
        };
        listening.deliver(show, page).await;
        outcome
    }

    fn registration(&self, redirect_uri: &str) -> Registration {
        let known = self.target.client.clone();
        // If the client id is the address of a client metadata document, send it as such: servers
        // without support for these documents do not accept it as a registered id.
        let document = known.as_ref().map(|client| client.id.clone());
        let document = document.filter(|id| id.starts_with("https://"));
        Registration {
            known: known.filter(|_| document.is_none()),
            metadata_document: document,
            redirect_uri: redirect_uri.to_owned(),
            client_name: "Holdpoint".to_owned(),
            application_type: ApplicationType::Native,
            may_register: true,
        }
    }

    /// Shows the user where to sign in.
    fn show(&self, url: &str, issuer: &str) {
        let (id, host) = (&self.target.id, self.target.endpoint.url.host());
        let is_opened = browser::open(url);
        if self.is_quiet && is_opened {
            return;
        }
        let begun = match is_opened {
            true => "your browser opens to sign in",
            false => "sign in with a browser on this computer",
        };
        screen::remark(format!(
            "holdpoint: `{id}` ({host}) asks for a sign-in at {}: {begun}. If no page opens, open this link:",
            screen::readable(issuer)
        ));
        screen::remark(format!("  {url}"));
    }

    /// Waits for the response to this sign-in.
    async fn answer(
        &self,
        listening: &mut Listening,
    ) -> Result<(String, oneshot::Sender<Page>), SignInError> {
        let waiting = async {
            loop {
                match listening.brought.recv().await {
                    Some(Brought::Answer { query, show }) => return Some((query, show)),
                    Some(Brought::Stray) => {
                        self.witness.record(&SignInEvent::Refused { code: "state_mismatch" });
                    }
                    None => return None,
                }
            }
        };
        match timeout(PERSON_PATIENCE, waiting).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(SignInError::BadAnswer("too many requests came that were none")),
            Err(_) => Err(SignInError::BadAnswer("none came within five minutes")),
        }
    }
}
