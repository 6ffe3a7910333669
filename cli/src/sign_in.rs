//! Signs in to servers that require it, with the user's browser and the system's keyring. This is
//! the only case in which the local gate holds a credential, and only if `--sign-in` is given.

mod browser;
mod callback;
mod flow;
mod keyring;
mod known;
mod page;

pub(crate) use keyring::{Keeping, keyring_vault, open_vault, read_keyring};
pub(crate) use known::{KnownSignIn, KnownSignIns};

use crate::approver;
use crate::arguments::UpstreamArguments;
use crate::arguments::sign_in::SignInClientArguments;
use crate::failure::Failure;
use crate::screen;
use crate::target::{Reach, Workplace};
use engine::recorder::{Recorder, now};
use engine::sign_in::{AskPerson, PersonalSignIn, Remedy, SignInEvent, Witness};
use flow::BrowserSignIn;
use gate::server::ServerId;
use oauth::{Client, Reaching, RegisteredClient, Secret};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use store::LaunchKey;
use wire::{HttpEndpoint, Upstream};

/// The parameters of a sign-in to one server.
#[derive(Debug, Clone)]
pub(crate) struct SignInTarget {
    pub(crate) id: ServerId,
    pub(crate) endpoint: HttpEndpoint,
    /// Stands for the server's address in the keyring and in file names, where the address must not
    /// appear.
    pub(crate) key: String,
    pub(crate) client: Option<RegisteredClient>,
    pub(crate) callback_port: u16,
}

impl SignInTarget {
    pub(crate) fn of(
        id: &ServerId,
        endpoint: &HttpEndpoint,
        arguments: &SignInClientArguments,
        key: &LaunchKey,
    ) -> Result<SignInTarget, Failure> {
        if endpoint.headers.iter().any(|(name, _)| name == http::header::AUTHORIZATION) {
            return Err(Failure::usage(
                "`--sign-in` obtains the `Authorization` header itself: leave out `--header Authorization=…`",
            ));
        }
        Ok(SignInTarget {
            id: id.clone(),
            endpoint: endpoint.clone(),
            key: key_of(endpoint.url.as_str(), key),
            client: client_of(arguments)?,
            callback_port: arguments.callback_port.unwrap_or(0),
        })
    }

    pub(crate) fn oauth(&self) -> Client {
        let allow_private = self.endpoint.allow_private;
        Client::new(Reaching { allow_private, authorities: None })
    }

    /// A sign-in that asks the user in the browser.
    pub(crate) fn person(&self, is_quiet: bool, witness: Arc<Recording>) -> BrowserSignIn {
        BrowserSignIn { target: self.clone(), client: self.oauth(), is_quiet, witness }
    }
}

/// The name of an address in the keyring: a keyed hash, since an address may hold a secret.
pub(crate) fn key_of(url: &str, key: &LaunchKey) -> String {
    key.hash_address(url, &[("sign-in", b"1")]).as_str().chars().take(32).collect()
}

fn client_of(arguments: &SignInClientArguments) -> Result<Option<RegisteredClient>, Failure> {
    let Some(id) = &arguments.client_id else { return Ok(None) };
    let client = match &arguments.client_secret {
        None => RegisteredClient {
            issuer: arguments.issuer.clone(),
            ..RegisteredClient::public(id.clone())
        },
        Some(source) => {
            let secret = source.read(|name| std::env::var(name).ok());
            let secret =
                secret.map_err(|error| Failure::usage(format!("`--client-secret`: {error}")))?;
            let Some(issuer) = arguments.issuer.clone() else {
                return Err(Failure::usage(
                    "`--client-secret` needs `--issuer URL`: a secret is shown to its own authorization server only",
                ));
            };
            RegisteredClient::confidential(id.clone(), Secret::new(secret), issuer)
        }
    };
    Ok(Some(client))
}

/// Records the events of a sign-in in the receipts, once there are any, and remembers that the
/// sign-in exists.
#[derive(Debug)]
pub(crate) struct Recording {
    home: PathBuf,
    target: SignInTarget,
    keeping: Keeping,
    recorder: OnceLock<Arc<Recorder>>,
}

impl Recording {
    pub(crate) fn new(home: &Path, target: &SignInTarget, keeping: Keeping) -> Arc<Recording> {
        let (home, target, recorder) = (home.to_owned(), target.clone(), OnceLock::new());
        Arc::new(Recording { home, target, keeping, recorder })
    }

    pub(crate) fn record_to(&self, recorder: Arc<Recorder>) {
        let _ = self.recorder.set(recorder);
    }

    pub(crate) fn record(&self, event: &SignInEvent) {
        if let (SignInEvent::Completed { issuer, .. }, Keeping::Keyring) = (event, self.keeping) {
            KnownSignIns::remember(&self.home, self.known(issuer));
        }
        if let Some(recorder) = self.recorder.get() {
            let server = self.target.id.as_str();
            recorder.event(server, event.name(), Some(&approver::name()), &event.data());
        }
    }

    /// The record of the sign-in, without any secret.
    fn known(&self, issuer: &str) -> KnownSignIn {
        let SignInTarget { id, endpoint, key, .. } = &self.target;
        KnownSignIn {
            id: id.to_string(),
            key: key.clone(),
            host: endpoint.url.host().to_owned(),
            issuer: issuer.to_owned(),
            since: now().0,
            allow_private: endpoint.allow_private,
        }
    }
}

impl Reach {
    /// Signs in every request to the server, if that is asked for or was done before.
    pub(crate) fn signed_in(
        mut self,
        id: &ServerId,
        arguments: &UpstreamArguments,
        workplace: &Workplace,
        is_quiet: bool,
    ) -> Result<Reach, Failure> {
        let Upstream::Http(endpoint) = &mut self.upstream else { return Ok(self) };
        let is_asked_for = arguments.sign_in.sign_in;
        let home = workplace.home.path();
        let known = KnownSignIns::read(home);
        if !is_asked_for && known.of(id).is_none() {
            return Ok(self);
        }
        let client = &arguments.sign_in.client;
        let target = SignInTarget::of(id, endpoint, client, &workplace.launch_key)?;
        // A server whose address has changed is not signed in.
        if !is_asked_for && known.of(id).is_some_and(|known| known.key != target.key) {
            return Ok(self);
        }
        let (vault, keeping) = open_vault(home, &target);
        if keeping == Keeping::Process && !is_quiet {
            screen::remark(format!("holdpoint: {}", keeping.words()));
        }
        let recording = Recording::new(home, &target, keeping);
        let person: Box<dyn AskPerson> = Box::new(target.person(is_quiet, recording.clone()));
        let told = recording.clone();
        let witness: Witness = Box::new(move |event| told.record(event));
        let remedy = match keeping {
            Keeping::Keyring => Remedy::Command(format!("holdpoint sign-in {id}")),
            Keeping::Process => Remedy::AskAgain,
        };
        let personal = PersonalSignIn::new(target.oauth(), vault, person, remedy, witness);
        endpoint.authorizer = Some(Arc::new(personal));
        self.sign_in = Some(recording);
        Ok(self)
    }
}
