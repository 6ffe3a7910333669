//! `holdpoint sign-in` and `holdpoint sign-out`: the user's own account at a remote server.

use crate::arguments::Options;
use crate::arguments::sign_in::{SignInCommand, SignOutCommand};
use crate::failure::{Exit, Failure};
use crate::relaunch;
use crate::screen::{self, DIM, GREEN, YELLOW, styled};
use crate::sign_in::{
    Keeping, KnownSignIn, KnownSignIns, Recording, SignInTarget, keyring_vault, open_vault,
};
use crate::target::{Workplace, read_address, server_id, unknown_server};
use engine::origin::Origin;
use engine::recorder::{Recorder, now};
use engine::sign_in::{AskPerson, SignInEvent, Vault};
use gate::server::ServerId;
use oauth::{Client, Grant, Reaching, SignInError};
use serde::Serialize;
use std::future::Future;
use std::sync::Arc;
use store::receipts::Receipts;
use store::{Launch, LaunchKey, Store};
use wire::{EndpointUrl, HttpEndpoint, Upstream};

/// The document of `sign-in --json` and `sign-out --json`.
#[derive(Serialize)]
struct SignInsDocument {
    sign_ins: Vec<SignInDocument>,
}

#[derive(Serialize)]
struct SignInDocument {
    server: String,
    host: String,
    issuer: String,
    /// signed_in or signed_out
    state: &'static str,
    /// The scopes that the user granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
    /// Whether the authorization server revoked the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<bool>,
}

pub(crate) fn sign_in(command: &SignInCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open_to_record(options)?;
    let (id, endpoint) = addressed(command, &workplace)?;
    let target = SignInTarget::of(&id, &endpoint, &command.client, &workplace.launch_key)?;
    let home = workplace.home.path();
    let (vault, keeping) = open_vault(home, &target);
    if keeping == Keeping::Process {
        return Err(Failure::usage(format!(
            "there is no keyring here, and tokens are kept nowhere else: `holdpoint run --server {id} --url … --sign-in` \
             signs in for as long as it runs"
        )));
    }
    let recording = Recording::new(home, &target, keeping);
    let recorder = recorder(&workplace)?;
    recording.record_to(recorder.clone());
    let person = target.person(options.quiet, recording.clone());
    // Access the keyring outside of the runtime: the keyring has its own.
    let _lock = vault.lock().map_err(Failure::internal)?;
    let former = vault.load().map_err(Failure::internal)?;
    let outcome = match wait(person.sign_in(None, Vec::new()))? {
        Ok(grant) => {
            vault.save(&grant).map_err(Failure::internal)?;
            let (issuer, scopes) = (grant.issuer.clone(), grant.scopes.clone());
            recording.record(&SignInEvent::Completed { issuer, scopes });
            // The new sign-in replaces the former one.
            if let Some(former) = former {
                let _ = wait(target.oauth().revoke(&former, now()))?;
            }
            Ok(grant)
        }
        Err(error) => {
            recording.record(&SignInEvent::Refused { code: error.code() });
            Err(failure(&id, &error))
        }
    };
    recorder.finish();
    report(&id, &target, &outcome?, options)
}

fn report(
    id: &ServerId,
    target: &SignInTarget,
    grant: &Grant,
    options: &Options,
) -> Result<Exit, Failure> {
    let (host, issuer) = (target.endpoint.url.host(), grant.issuer.as_str());
    if options.json {
        let document = SignInDocument {
            server: id.to_string(),
            host: host.to_owned(),
            issuer: issuer.to_owned(),
            state: "signed_in",
            scopes: Some(grant.scopes.clone()),
            revoked: None,
        };
        screen::print_json(&SignInsDocument { sign_ins: vec![document] })?;
        return Ok(Exit::Fine);
    }
    screen::say(format!(
        "{} signed in to {host} at {}; {}",
        styled(GREEN, "✓"),
        screen::readable(issuer),
        Keeping::Keyring.words()
    ));
    if !grant.can_refresh() {
        screen::say(styled(
            YELLOW,
            "The server gave no refresh token: the sign-in ends when its access token does.",
        ));
    }
    screen::say(styled(DIM, format!("To end it: holdpoint sign-out {id}")));
    Ok(Exit::Fine)
}

pub(crate) fn sign_out(command: &SignOutCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let home = workplace.home.path();
    let known = KnownSignIns::read(home);
    let chosen: Vec<KnownSignIn> = match &command.server {
        None => known.all().to_vec(),
        Some(id) => known.of(id).into_iter().cloned().collect(),
    };
    if let (Some(id), true) = (&command.server, chosen.is_empty()) {
        return Err(Failure::usage(format!("`{id}` is not signed in to")));
    }
    let recorder = recorder(&workplace)?;
    let mut sign_ins = Vec::new();
    for sign_in in &chosen {
        sign_ins.push(end(sign_in, &known, &workplace, &recorder, options)?);
    }
    recorder.finish();
    if options.json {
        screen::print_json(&SignInsDocument { sign_ins })?;
    } else if sign_ins.is_empty() {
        screen::say("No server is signed in to.");
    }
    Ok(Exit::Fine)
}

/// Revokes and deletes one sign-in. It is deleted here whatever the authorization server answers.
fn end(
    sign_in: &KnownSignIn,
    known: &KnownSignIns,
    workplace: &Workplace,
    recorder: &Recorder,
    options: &Options,
) -> Result<SignInDocument, Failure> {
    let home = workplace.home.path();
    let Some(vault) = keyring_vault(home, &sign_in.key) else {
        return Err(Failure::internal("the keyring of this system cannot be reached"));
    };
    let reaching = Reaching { allow_private: sign_in.allow_private, authorities: None };
    let _lock = vault.lock().map_err(Failure::internal)?;
    let revoked = match vault.load().map_err(Failure::internal)? {
        Some(grant) => wait(Client::new(reaching).revoke(&grant, now()))?,
        None => Ok(false),
    };
    vault.delete().map_err(Failure::internal)?;
    KnownSignIns::forget(home, &sign_in.key);
    let is_revoked = matches!(revoked, Ok(true));
    let event = SignInEvent::SignedOut { is_revoked };
    recorder.event(&sign_in.id, event.name(), Some(&crate::approver::name()), &event.data());
    if !options.json {
        say_ended(sign_in, &revoked);
        let others: Vec<&str> =
            known.sharing(&sign_in.key).into_iter().filter(|id| *id != sign_in.id).collect();
        if !others.is_empty() {
            screen::say(format!("The same sign-in was used by {}.", others.join(", ")));
        }
    }
    let KnownSignIn { id: server, host, issuer, .. } = sign_in.clone();
    let (state, scopes, revoked) = ("signed_out", None, Some(is_revoked));
    Ok(SignInDocument { server, host, issuer, state, scopes, revoked })
}

fn say_ended(sign_in: &KnownSignIn, revoked: &Result<bool, SignInError>) {
    let KnownSignIn { id, host, issuer, .. } = sign_in;
    let issuer = screen::readable(issuer);
    let done = styled(GREEN, "✓");
    match revoked {
        Ok(true) => screen::say(format!(
            "{done} `{id}` is signed out of {host}: the tokens are revoked at {issuer} and deleted here"
        )),
        Ok(false) => screen::say(format!(
            "{done} `{id}` is signed out of {host}: the tokens are deleted here; {issuer} cannot revoke them, \
             they end by themselves"
        )),
        Err(error) => screen::say(format!(
            "{} `{id}` is signed out of {host}: the tokens are deleted here, but {issuer} did not revoke them: {error}",
            styled(YELLOW, "!")
        )),
    }
}

/// The server that the command names, and its address.
fn addressed(
    command: &SignInCommand,
    workplace: &Workplace,
) -> Result<(ServerId, HttpEndpoint), Failure> {
    let typed = &command.server;
    let parsed = |url: &str| -> Result<EndpointUrl, Failure> {
        url.parse().map_err(|error| Failure::usage(format!("the address: {error}")))
    };
    let endpoint = |url: EndpointUrl, allow_private| HttpEndpoint {
        url,
        headers: Vec::new(),
        allow_private,
        authorizer: None,
    };
    if typed.contains("://") || typed.starts_with("env:") {
        let endpoint = endpoint(parsed(&read_address(typed, &[])?)?, command.allow_private);
        let id = id_of(&endpoint, &workplace.launch_key)?;
        return Ok((id, endpoint));
    }
    let id: ServerId = typed.parse().map_err(Failure::usage)?;
    if let Some((_, entry)) = relaunch::entry_of(&id, workplace)
        && let Some(url) = &entry.url
    {
        let url = parsed(&read_address(url, &entry.environment)?)?;
        return Ok((id, endpoint(url, command.allow_private || entry.allow_private)));
    }
    match workplace.store.server(&id)?.and_then(|server| server.launch) {
        Some(launch @ Launch::Url { .. }) if !launch.has_secrets() => {
            let Launch::Url { url, .. } = &launch else {
                return Err(unknown_server(&id, workplace));
            };
            Ok((id, endpoint(parsed(url)?, command.allow_private)))
        }
        Some(Launch::Url { .. }) => Err(Failure::usage(format!(
            "a part of the address of `{id}` was not stored, because it may be a secret; type the address instead"
        ))),
        Some(Launch::Program { .. }) => Err(Failure::usage(format!(
            "`{id}` is a program; only servers at an address are signed in to"
        ))),
        None => Err(unknown_server(&id, workplace)),
    }
}

fn id_of(endpoint: &HttpEndpoint, key: &LaunchKey) -> Result<ServerId, Failure> {
    server_id(&Origin::of(&Upstream::Http(endpoint.clone()), key))
}

fn recorder(workplace: &Workplace) -> Result<Arc<Recorder>, Failure> {
    let receipts = Receipts::open(&workplace.home, workplace.configuration.receipts())?;
    Ok(Arc::new(Recorder::new(receipts)))
}

fn failure(id: &ServerId, error: &SignInError) -> Failure {
    match error {
        SignInError::NotAsked => Failure::usage(format!("`{id}` does not ask for a sign-in")),
        error => Failure::unreachable(format!("`{id}` is not signed in to: {error}")),
    }
}

fn wait<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(Failure::internal)?.block_on(work))
}
