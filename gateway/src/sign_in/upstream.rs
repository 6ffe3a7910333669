//! Signs a person in at the authorization server of a server, and out again.

use super::Asked;
use super::account::{day, row};
use super::cookies::Person;
use super::grants::{StoredGrant, grant_name};
use super::page::{self, Escaped};
use super::records::{after, name_of, random};
use super::refused::SignInRefusal;
use crate::identity::WrittenIdentity;
use crate::node::Node;
use crate::reply::Reply;
use crate::resources::Shared;
use contract::time::Timestamp;
use engine::recorder::now;
use gate::server::ServerId;
use oauth::{
    ApplicationType, Begin, Challenge, ClientAuth, DpopKey, Pending, Reaching, RegisteredClient,
    Registration, Secret, SignInError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use settings::gateway::{
    Credentials, GatewaySettings, Reach, ServerSettings, UrlSettings, UserGrantSettings, WebOrigin,
};
use std::sync::Arc;
use store::{SignIn, SignInKind};

/// How long a person may take at the authorization server.
const PENDING_SECONDS: u64 = 600;

/// A sign-in in progress, as stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredPending {
    person: WrittenIdentity,
    server: String,
    pending: Pending,
}

impl From<SignInError> for SignInRefusal {
    fn from(error: SignInError) -> SignInRefusal {
        match error {
            SignInError::Denied { .. } => SignInRefusal::UpstreamDenied,
            SignInError::StateMismatch => SignInRefusal::State,
            SignInError::IssuerMismatch { .. } | SignInError::IssuerMissing => {
                SignInRefusal::Issuer
            }
            error => SignInRefusal::UpstreamAnswer(Box::new(error)),
        }
    }
}

/// The settings of a server that people sign in to; `None` for any other.
pub(super) fn person_reach(reach: &Reach) -> Option<(&UrlSettings, &UserGrantSettings)> {
    let Reach::Url(url) = reach else { return None };
    let Credentials::User(user) = &url.credentials else { return None };
    Some((url, user))
}

/// The OAuth client that signs people in to a server and refreshes their tokens.
pub(super) fn client_of(
    url: &UrlSettings,
    user: &UserGrantSettings,
) -> Result<oauth::Client, String> {
    let ca = user.ca.as_ref().or(url.ca.as_ref());
    let authorities = ca.map(|ca| ca.read(|name| std::env::var(name).ok()));
    let authorities = authorities.transpose().map_err(|error| error.to_string())?;
    Ok(oauth::Client::new(Reaching {
        allow_private: user.allow_private || url.allow_private,
        authorities: authorities.map(String::into_bytes),
    }))
}

/// The redirect addresses for servers' authorization servers.
pub(super) fn redirect_uris(settings: &GatewaySettings, public_url: &WebOrigin) -> Vec<String> {
    let servers = settings.servers.values().filter(|server| person_reach(&server.reach).is_some());
    servers.map(|server| redirect_uri(public_url, &server.id)).collect()
}

fn redirect_uri(public_url: &WebOrigin, server: &ServerId) -> String {
    format!("{public_url}/oauth/callback/{server}")
}

/// The name of a sign-in in progress, derived from the `state` that comes back in the browser.
fn pending_name(query: &str) -> Option<store::SignInName> {
    let mut states =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "state");
    let state = states.next().map(|(_, state)| state)?;
    name_of(&["pending", &state]).ok()
}

impl Asked<'_> {
    /// The client, URL and sign-in settings of a server that people sign in to.
    pub(super) fn person_server(
        &self,
        server: &ServerId,
    ) -> Result<(oauth::Client, String, UserGrantSettings), SignInRefusal> {
        let settings = self.node.shared.settings();
        let found = settings.servers.get(server).ok_or(SignInRefusal::NoSuchServer)?;
        let (url, user) = person_reach(&found.reach).ok_or(SignInRefusal::NoSuchServer)?;
        let client = client_of(url, user).map_err(SignInRefusal::Upstream)?;
        Ok((client, url.url.as_str().to_owned(), user.clone()))
    }

    /// Starts a sign-in at a server's authorization server. Returns the address for the browser.
    pub(super) async fn to_upstream(
        &self,
        person: &Person,
        server: &ServerId,
        now: Timestamp,
    ) -> Result<String, SignInRefusal> {
        let (client, url, user) = self.person_server(server)?;
        let endpoint = url.parse();
        let endpoint =
            endpoint.map_err(|error: wire::BadUrl| SignInRefusal::Upstream(error.to_string()))?;
        let challenge: Option<Challenge> = client.challenge(&endpoint).await?;
        let found = client.discover(&endpoint, challenge.as_ref()).await?;
        let redirect_uri = redirect_uri(&self.public_url, server);
        let can_be_read = self.public_url.is_secure() && !self.public_url.is_loopback();
        let registered = client
            .register(
                &found,
                &Registration {
                    known: self.known_client(&user).await?,
                    metadata_document: can_be_read.then(|| self.url("/oauth/client.json")),
                    redirect_uri: redirect_uri.clone(),
                    client_name: format!("Holdpoint gateway at {}", self.public_url.authority()),
                    application_type: ApplicationType::Web,
                    may_register: user.register,
                },
            )
            .await?;
        let begun = oauth::begin(
            &found,
            &registered,
            Begin {
                redirect_uri: &redirect_uri,
                scopes: &user.scopes,
                random: random()?,
                // Each sign-in has its own key, sealed and stored with its tokens.
                dpop: found.uses_dpop().then(DpopKey::generate).transpose()?,
            },
        )?;
        let name = pending_name(begun.url.split_once('?').map_or("", |(_, query)| query));
        let stored = StoredPending {
            person: person.identity.clone(),
            server: server.to_string(),
            pending: begun.pending,
        };
        let sign_ins = &self.node.shared.sign_ins;
        let named = (SignInKind::Pending, name.ok_or(SignInRefusal::State)?);
        let times = (now, after(now, PENDING_SECONDS));
        let record = sign_ins.record(named, &person.principal(), times, &stored)?;
        sign_ins.with_store(move |store| store.put_sign_in(&record)).await?;
        Ok(begun.url)
    }

    /// The client that was registered manually.
    async fn known_client(
        &self,
        user: &UserGrantSettings,
    ) -> Result<Option<RegisteredClient>, SignInRefusal> {
        let Some(name) = &user.client else { return Ok(None) };
        let shared = &self.node.shared;
        let wrong =
            |error: String| SignInRefusal::Upstream(format!("`credentials.client`: {error}"));
        let reader =
            shared.secrets(&shared.settings()).map_err(|error| wrong(error.to_string()))?;
        let read = reader.read(name).await.map_err(|error| wrong(error.to_string()))?;
        let issuer = user.issuer.as_ref().map(|issuer| issuer.as_str().to_owned());
        Ok(Some(match (read.expose().split_once(':'), issuer) {
            (None, issuer) => {
                RegisteredClient { issuer, ..RegisteredClient::public(read.expose().to_owned()) }
            }
            (Some((id, secret)), Some(issuer)) => RegisteredClient {
                auth: ClientAuth::Basic,
                ..RegisteredClient::confidential(
                    id.to_owned(),
                    Secret::new(secret.to_owned()),
                    issuer,
                )
            },
            (Some(_), None) => {
                return Err(wrong("a client with a secret needs `issuer`".to_owned()));
            }
        }))
    }

    /// The redirect target of a server's authorization server.
    pub(super) async fn upstream_callback(
        &self,
        server: &ServerId,
    ) -> Result<Reply, SignInRefusal> {
        let person = self.person().ok_or(SignInRefusal::State)?;
        let now = now();
        let name = pending_name(self.query()).ok_or(SignInRefusal::State)?;
        let sign_ins = &self.node.shared.sign_ins;
        let record = sign_ins
            .with_store(move |store| {
                let record = store.sign_in(SignInKind::Pending, &name)?;
                // INVARIANT: of two requests with the same response, only one proceeds.
                let was_there = store.remove_sign_in(SignInKind::Pending, &name)?;
                Ok(record.filter(|record| was_there && now < record.expires_at))
            })
            .await?;
        let record = record.ok_or(SignInRefusal::State)?;
        let stored: StoredPending = sign_ins.open(&record).ok_or(SignInRefusal::State)?;
        let is_same = stored.person.principal() == person.principal();
        if stored.server != server.as_str() || !is_same {
            // The response to one person's sign-in came in another person's browser.
            return Err(SignInRefusal::OtherPerson);
        }
        let (client, _, _) = self.person_server(server)?;
        let code = stored.pending.accept(self.query())?;
        let grant = client.redeem(code, now).await?;
        let stored = StoredGrant { person: stored.person, server: stored.server, grant };
        let record = sign_ins.grant_record(&stored, now)?;
        let replaced = sign_ins
            .with_store(move |store| {
                let before = store.sign_in(SignInKind::Grant, &record.name)?;
                store.put_sign_in(&record)?;
                Ok(before)
            })
            .await?;
        self.forget_tokens(server.as_str());
        if let Some(replaced) = replaced.and_then(|record| sign_ins.open::<StoredGrant>(&record)) {
            let _ = client.revoke(&replaced.grant, now).await;
        }
        let data = json!({"issuer": stored.grant.issuer, "scopes": stored.grant.scopes});
        let recorder = &self.node.shared.recorder;
        recorder.event(server.as_str(), "sign_in.done", Some(&person.principal()), &data);
        let sentence = format!(
            "Applications that you use through this gateway can now use {server} with your account. If the application does not go on by itself, repeat what you asked it to do."
        );
        Ok(page::done(&format!("Signed in to {server}"), &sentence))
    }

    /// The list of servers that a person signed in to, for the account page.
    pub(super) async fn servers_part(&self, person: &Person) -> Result<String, SignInRefusal> {
        let settings = self.node.shared.settings();
        if redirect_uris(&settings, &self.public_url).is_empty() {
            return Ok(String::new());
        }
        let (sign_ins, owner) = (&self.node.shared.sign_ins, person.principal());
        let records =
            sign_ins.with_store(move |store| store.sign_ins_of(SignInKind::Grant, &owner)).await?;
        let is_current = |stored: &StoredGrant| {
            let server = stored.server.parse().ok().and_then(|id| settings.servers.get(&id));
            server
                .and_then(|server| person_reach(&server.reach))
                .is_none_or(|(url, user)| stored.is_for(url, user))
        };
        let signed_in: Vec<(&SignIn, StoredGrant)> = records
            .iter()
            .filter_map(|record| Some((record, sign_ins.open_grant(record)?)))
            .filter(|(_, stored)| is_current(stored))
            .collect();
        let there = signed_in.iter().map(|(record, stored)| {
            let told = format!(
                "<span><strong>{}</strong><br><small>{} · since {}</small></span>",
                Escaped(&stored.server),
                Escaped(&stored.grant.issuer),
                day(record.at)
            );
            row(person, &told, ("server", &stored.server), &stored.server)
        });
        let others = self
            .usable_servers(person)
            .into_iter()
            .filter(|id| signed_in.iter().all(|(_, stored)| stored.server != id.as_str()));
        let others = others.map(|id| {
            format!(
                "<li><span><strong>{id}</strong><br><small>not signed in</small></span><form method=\"post\" action=\"/sign-in/{id}\">\
                 <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\"><button aria-label=\"Sign in to {id}\">Sign in</button></form></li>",
                id = Escaped(id.as_str()),
                csrf = Escaped(&person.csrf),
            )
        });
        let rows: Vec<String> = there.chain(others).collect();
        let rows = match rows.is_empty() {
            true => "<p class=\"soft\">None.</p>".to_owned(),
            false => format!("<ul class=\"rows\">{}</ul>", rows.concat()),
        };
        Ok(format!("<h2>Servers with your own account</h2>{rows}"))
    }

    /// The servers that people sign in to and that some policy could let this person use.
    pub(super) fn usable_servers(&self, person: &Person) -> Vec<ServerId> {
        let identity = person.identity.clone().read(policy::IdentityProof::Token);
        let Some(caller) = identity.map(policy::Caller::new) else { return Vec::new() };
        let settings = self.node.shared.settings();
        let authorizer = &self.node.shared.authorizer;
        let is_usable = |server: &&Arc<ServerSettings>| {
            person_reach(&server.reach).is_some()
                && server.serves(caller.identity().org.as_deref())
                && authorizer.could_use(&caller, &server.id)
        };
        settings.servers.values().filter(is_usable).map(|server| server.id.clone()).collect()
    }

    /// Ends a person's access to a server.
    pub(super) async fn end_server(
        &self,
        person: &Person,
        server: &str,
    ) -> Result<(), SignInRefusal> {
        let principal = person.principal();
        let name = grant_name(&principal, server)?;
        let sign_ins = &self.node.shared.sign_ins;
        let record = sign_ins
            .with_store(move |store| {
                let record = store.sign_in(SignInKind::Grant, &name)?;
                store.remove_sign_in(SignInKind::Grant, &name)?;
                Ok(record)
            })
            .await?;
        self.forget_tokens(server);
        let Some(record) = record else { return Ok(()) };
        self.node.shared.revoke_tokens(&record, "person").await;
        Ok(())
    }

    /// Makes this node read people's tokens for a server again, so that the change applies to later
    /// calls. Other nodes read it from the store.
    fn forget_tokens(&self, server: &str) {
        let id: Option<ServerId> = server.parse().ok();
        let catalog = self.node.catalog();
        if let Some(known) = id.and_then(|id| catalog.servers.get(&id)) {
            known.server.broker.forget_people();
        }
    }
}

impl Shared {
    /// Revokes the tokens of a removed record at their issuer, and records it.
    async fn revoke_tokens(&self, record: &SignIn, reason: &str) {
        let Some(stored) = self.sign_ins.open::<StoredGrant>(record) else { return };
        let settings = self.settings();
        let reach = stored.server.parse().ok().and_then(|id: ServerId| settings.servers.get(&id));
        let reach = reach.and_then(|server| person_reach(&server.reach));
        let client = reach.and_then(|(url, user)| client_of(url, user).ok());
        let revoked = match &client {
            Some(client) => match client.revoke(&stored.grant, now()).await {
                Ok(true) => "revoked",
                Ok(false) => "not_offered",
                Err(error) => {
                    (self.remark)(&format!(
                        "`{}`: a token could not be revoked: {error}",
                        stored.server
                    ));
                    "failed"
                }
            },
            None => "not_offered",
        };
        let data = json!({"reason": reason, "upstream": revoked});
        let principal = stored.person.principal();
        self.recorder.event(&stored.server, "sign_in.ended", Some(&principal), &data);
    }
}

impl Node {
    /// Applies revocations: ends the revoked callers' access to servers.
    pub(crate) fn end_revoked_sign_ins(self: &Arc<Self>) {
        let sign_ins = Arc::clone(&self.shared.sign_ins);
        if !sign_ins.take_revoked(&self.authenticator().revoked()) {
            return;
        }
        let node = Arc::clone(self);
        self.shared.runtime.spawn(async move {
            let own = Arc::clone(&sign_ins);
            let ended = sign_ins.with_store(move |store| {
                let mut ended = Vec::new();
                for record in store.sign_ins(SignInKind::Grant)? {
                    let is_gone = own.open::<StoredGrant>(&record).is_some()
                        && own.open_grant(&record).is_none();
                    // Of several nodes, only the one that removes the record notifies the
                    // authorization server.
                    if is_gone && store.remove_sign_in(SignInKind::Grant, &record.name)? {
                        ended.push(record);
                    }
                }
                Ok(ended)
            });
            match ended.await {
                Ok(ended) => {
                    for record in ended {
                        node.shared.revoke_tokens(&record, "revoked").await;
                    }
                }
                Err(error) => node
                    .remark(&format!("sign-ins of revoked people could not be removed: {error}")),
            }
        });
    }
}
