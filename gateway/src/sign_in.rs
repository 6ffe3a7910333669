//! People's sign-ins with a browser: to the gateway through their identity provider, for clients
//! that ask the gateway for tokens (the OAuth proxy), and to servers that need each person's own
//! account.
//!
//! INVARIANT: nothing here reads or answers a call. Tokens that it issues are for a single URL of
//! this gateway, and data that it stores is first sealed with the key that nodes share.

mod account;
mod authorize;
mod callback;
mod client;
mod client_document;
mod cookies;
mod family;
mod form;
mod grants;
mod link;
mod page;
mod provider;
mod records;
mod refused;
mod request;
mod token;
mod upstream;

use crate::node::Node;
use crate::reply::{self, Reply};
use bytes::Bytes;
use form::Form;
use gate::server::ServerId;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use refused::SignInRefusal;
use serde_json::json;
use settings::gateway::{ProxySettings, WebOrigin};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use grants::PersonGrants;
pub(crate) use link::{INPUT_REQUEST, as_elicitation, as_input_required, shows_urls};
pub(crate) use records::SignIns;
pub(crate) use refused::REFUSED_EVENT;

/// The largest body of a request.
const MAX_BODY_BYTES: usize = 64 * 1024;
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// The routes of sign-ins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInRoute {
    /// The metadata document of RFC 8414.
    Metadata,
    Authorize,
    Consent,
    /// The identity provider's redirect target.
    Callback,
    Token,
    Revoke,
    /// The gateway's own client ID metadata document, for servers' authorization servers.
    ClientDocument,
    /// A link with which a person signs in to a server.
    Link(ServerId),
    /// The redirect target of a server's authorization server.
    UpstreamCallback(ServerId),
    Account,
    SignOut,
}

impl SignInRoute {
    pub(crate) fn of(path: &str) -> Option<SignInRoute> {
        match path {
            "/.well-known/oauth-authorization-server" => return Some(SignInRoute::Metadata),
            "/oauth/authorize" => return Some(SignInRoute::Authorize),
            "/oauth/consent" => return Some(SignInRoute::Consent),
            "/oauth/callback" => return Some(SignInRoute::Callback),
            "/oauth/token" => return Some(SignInRoute::Token),
            "/oauth/revoke" => return Some(SignInRoute::Revoke),
            "/oauth/client.json" => return Some(SignInRoute::ClientDocument),
            "/account" => return Some(SignInRoute::Account),
            "/account/sign-out" => return Some(SignInRoute::SignOut),
            _ => {}
        }
        if let Some(server) = path.strip_prefix("/oauth/callback/") {
            return server.parse().ok().map(SignInRoute::UpstreamCallback);
        }
        path.strip_prefix("/sign-in/")?.parse().ok().map(SignInRoute::Link)
    }

    /// Whether the route exists only with the OAuth proxy.
    fn is_proxys(&self) -> bool {
        matches!(
            self,
            SignInRoute::Metadata
                | SignInRoute::Authorize
                | SignInRoute::Consent
                | SignInRoute::Token
                | SignInRoute::Revoke
        )
    }

    /// Whether a browser displays the response.
    fn is_shown(&self) -> bool {
        match self {
            SignInRoute::Metadata
            | SignInRoute::Token
            | SignInRoute::Revoke
            | SignInRoute::ClientDocument => false,
            SignInRoute::Authorize
            | SignInRoute::Consent
            | SignInRoute::Callback
            | SignInRoute::Link(_)
            | SignInRoute::UpstreamCallback(_)
            | SignInRoute::Account
            | SignInRoute::SignOut => true,
        }
    }

    fn is_posted(&self) -> bool {
        matches!(
            self,
            SignInRoute::Consent | SignInRoute::Token | SignInRoute::Revoke | SignInRoute::SignOut
        )
    }
}

/// A request from a browser or a client.
pub(super) struct Asked<'a> {
    node: &'a Arc<Node>,
    parts: &'a Parts,
    public_url: WebOrigin,
}

impl Asked<'_> {
    fn query(&self) -> &str {
        self.parts.uri.query().unwrap_or_default()
    }

    fn proxy(&self) -> Option<ProxySettings> {
        self.node.shared.settings().oauth_proxy.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.public_url)
    }

    /// Records a person's action in the ledger.
    fn note(&self, name: &str, person: &str, data: &serde_json::Value) {
        self.node.shared.recorder.event("gateway", name, Some(person), data);
    }
}

impl Node {
    /// Answers a sign-in request from a browser or a client.
    pub(crate) async fn respond_sign_in<B>(
        self: Arc<Self>,
        route: SignInRoute,
        parts: Parts,
        body: B,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let settings = self.shared.settings();
        let has_people = settings.auth.issuers.iter().any(|issuer| issuer.sign_in.is_some());
        if !has_people || (route.is_proxys() && settings.oauth_proxy.is_none()) {
            return reply::empty(StatusCode::NOT_FOUND);
        }
        let is_link_post = matches!(route, SignInRoute::Link(_)) && parts.method == Method::POST;
        let expected = if route.is_posted() || is_link_post { Method::POST } else { Method::GET };
        if parts.method != expected {
            return reply::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let public_url = settings.front.public_url.clone();
        let asked = Asked { node: &self, parts: &parts, public_url };
        if route.is_shown() && is_framed(&parts) {
            return asked.refuse(&route, &SignInRefusal::Framed);
        }
        let form = match expected == Method::POST {
            true => match read_form(&parts, body).await {
                Ok(form) => form,
                Err(refusal) => return asked.refuse(&route, &refusal),
            },
            false => Form::default(),
        };
        let answered = match &route {
            SignInRoute::Metadata => Ok(asked.server_metadata()),
            SignInRoute::Authorize => asked.authorize().await,
            SignInRoute::Consent => asked.consent(&form).await,
            SignInRoute::Callback => asked.callback().await,
            SignInRoute::Token => asked.token(&form).await,
            SignInRoute::Revoke => asked.revoke(&form).await,
            SignInRoute::ClientDocument => Ok(asked.client_document()),
            SignInRoute::Link(server) if is_link_post => asked.follow_link(server, &form).await,
            SignInRoute::Link(server) => asked.show_link(server).await,
            SignInRoute::UpstreamCallback(server) => asked.upstream_callback(server).await,
            SignInRoute::Account => asked.account().await,
            SignInRoute::SignOut => asked.sign_out(&form).await,
        };
        answered.unwrap_or_else(|refusal| asked.refuse(&route, &refusal))
    }
}

impl Asked<'_> {
    /// The authorization server metadata for clients (RFC 8414).
    fn server_metadata(&self) -> Reply {
        let takes_documents = self.proxy().is_some_and(|proxy| !proxy.client_hosts.is_none());
        let document = json!({
            "issuer": self.public_url.as_str(),
            "authorization_endpoint": self.url("/oauth/authorize"),
            "token_endpoint": self.url("/oauth/token"),
            "revocation_endpoint": self.url("/oauth/revoke"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": [request::SCOPE],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": takes_documents,
        });
        reply::json(StatusCode::OK, [Bytes::from(document.to_string())])
    }

    /// The gateway's client metadata for servers' authorization servers.
    fn client_document(&self) -> Reply {
        let settings = self.node.shared.settings();
        let redirects = upstream::redirect_uris(&settings, &self.public_url);
        let document = json!({
            "client_id": self.url("/oauth/client.json"),
            "client_name": format!("Holdpoint gateway at {}", self.public_url.authority()),
            "client_uri": self.public_url.as_str(),
            "redirect_uris": redirects,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        reply::json(StatusCode::OK, [Bytes::from(document.to_string())])
    }
}

/// Whether a browser is loading a page into another one (Fetch Metadata). The page's headers forbid
/// frames anyway; refusing here also records the attempt.
fn is_framed(parts: &Parts) -> bool {
    const FRAMES: [&str; 5] = ["embed", "fencedframe", "frame", "iframe", "object"];
    let shown_in = parts.headers.get("sec-fetch-dest").and_then(|value| value.to_str().ok());
    shown_in.is_some_and(|shown_in| FRAMES.contains(&shown_in))
}

async fn read_form<B>(parts: &Parts, body: B) -> Result<Form, SignInRefusal>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let media_type = parts.headers.get(http::header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(SignInRefusal::BadRequest("the body has to be a form"));
    }
    let read = tokio::time::timeout(BODY_PATIENCE, Limited::new(body, MAX_BODY_BYTES).collect());
    let unread = SignInRefusal::BadRequest("the body is too long, or did not arrive");
    let Ok(Ok(bytes)) = read.await else { return Err(unread) };
    Form::read(&bytes.to_bytes())
}
