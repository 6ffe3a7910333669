//! The link with which a person signs in to a server. It is bound to one person, who must first
//! sign in to the gateway: otherwise a victim who opens an attacker's link would connect their
//! account to the attacker's calls.

use super::Asked;
use super::authorize::place_of;
use super::form::Form;
use super::page::{self, Escaped};
use super::records::{after, open, random_id, seal};
use super::refused::SignInRefusal;
use crate::mcp::Visit;
use crate::node::Node;
use crate::reply::Reply;
use crate::sealed::Purpose;
use crate::server::GatewayServer;
use contract::hash::sha256_hex;
use engine::recorder::now;
use gate::server::ServerId;
use http::StatusCode;
use policy::IdentityProof;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// How long a link is valid.
const LINK_SECONDS: u64 = 600;

/// `URLElicitationRequiredError` of revision 2025-11-25.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The name of the sign-in among the input requests to a client of revision 2026-07-28.
pub(crate) const INPUT_REQUEST: &str = "sign_in";

/// The content of a link, before it is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Link {
    id: String,
    server: String,
    /// The gateway account that the link is for.
    issuer: String,
    subject: String,
    expires_at: i64,
}

impl Node {
    /// The link with which the caller of a request signs in to a server; `None` if it cannot.
    pub(crate) fn sign_in_link(&self, visit: &Visit, server: &GatewayServer) -> Option<String> {
        let identity = visit.caller.identity();
        let settings = self.shared.settings();
        let can_sign_in = settings
            .auth
            .issuers
            .iter()
            .any(|issuer| issuer.issuer == identity.issuer && issuer.sign_in.is_some());
        if identity.proof != IdentityProof::Token || !can_sign_in {
            return None;
        }
        let link = Link {
            id: random_id().ok()?,
            server: server.id().to_string(),
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
            expires_at: after(now(), LINK_SECONDS).0,
        };
        let sealed = seal(&self.shared.sealer, Purpose::SignInLink, &link).ok()?;
        let public_url = &settings.front.public_url;
        Some(format!("{public_url}/sign-in/{}?link={sealed}", server.id()))
    }
}

/// Whether a client with these capabilities shows URLs to its user.
pub(crate) fn shows_urls(capabilities: &[u8]) -> bool {
    let offered: Value = serde_json::from_slice(capabilities).unwrap_or_default();
    offered.pointer("/elicitation/url").is_some_and(Value::is_object)
}

fn message(server: &str) -> String {
    format!("Sign in to {server} with your own account.")
}

/// The refusal of a call, with the link in the form that a client of revision 2025-11-25 shows to
/// its user.
pub(crate) fn as_elicitation(refusal: Vec<u8>, visit: &Visit, server: &str, link: &str) -> Vec<u8> {
    let Some(session) = &visit.session else { return refusal };
    if session.version != "2025-11-25" || !shows_urls(&session.askable) {
        return refusal;
    }
    let Some(Refusal { id, mut error }) = Refusal::with_link(&refusal) else { return refusal };
    let elicitation = json!({
        "mode": "url",
        "elicitationId": sha256_hex(link.as_bytes()),
        "url": link,
        "message": message(server),
    });
    let data = error.get_mut("data").and_then(Value::as_object_mut);
    if let Some(data) = data {
        data.insert("elicitations".to_owned(), json!([elicitation]));
    }
    error.insert("code".to_owned(), URL_ELICITATION_REQUIRED.into());
    answered(id, "error", &Value::Object(error))
}

/// Replaces the refusal of a request by an input request with the link, for a client of revision
/// 2026-07-28 to show to its user. The client repeats the request with this state.
pub(crate) fn as_input_required(
    refusal: Vec<u8>,
    server: &str,
    link: &str,
    state: &str,
) -> Vec<u8> {
    let Some(Refusal { id, .. }) = Refusal::with_link(&refusal) else { return refusal };
    let params = json!({"mode": "url", "message": message(server), "url": link});
    let result = json!({
        "resultType": "input_required",
        "inputRequests": {INPUT_REQUEST: {"method": "elicitation/create", "params": params}},
        "requestState": state,
    });
    answered(id, "result", &result)
}

fn answered(id: &RawValue, name: &str, value: &Value) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{},"{name}":{value}}}"#, id.get()).into_bytes()
}

/// A refusal that keeps its id as the client wrote it.
#[derive(Deserialize)]
struct Refusal<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    error: Map<String, Value>,
}

impl Refusal<'_> {
    /// A refusal that names where to sign in. Other refusals, such as that of a call that could not
    /// be recorded, do not match.
    fn with_link(refusal: &[u8]) -> Option<Refusal<'_>> {
        let read: Refusal<'_> = serde_json::from_slice(refusal).ok()?;
        read.error.get("data")?.get("sign_in")?;
        Some(read)
    }
}

impl Asked<'_> {
    /// The page behind a link. It does not use up the link, because programs that preview links
    /// also load it.
    pub(super) async fn show_link(&self, server: &ServerId) -> Result<Reply, SignInRefusal> {
        let form = Form::read(self.query().as_bytes())?;
        let sealed = form.get("link").ok_or(SignInRefusal::Link)?;
        let link = self.link(sealed, server)?;
        let Some(person) = self.person() else {
            let path = format!("/sign-in/{server}?link={sealed}");
            return self.sign_in_at(&link.issuer, &path).await;
        };
        self.check_person(&link, &person.identity.issuer, &person.identity.subject)?;
        let (_, url, _) = self.person_server(server)?;
        let content = format!(
            "<h1>Sign in to {server}?</h1>\
             <p>You are signed in to this gateway as <strong>{shown}</strong>. Applications that you use through it will then act with <em>your</em> account at <strong>{place}</strong>, until you sign out.</p>\
             <dl><div><dt>Server</dt><dd><strong>{server}</strong><small>{url}</small></dd></div>\
             <div><dt>The gateway keeps</dt><dd>the tokens of this sign-in, encrypted. You can remove them at <a href=\"/account\">your sign-ins</a>.</dd></div></dl>\
             <form method=\"post\" action=\"/sign-in/{server}\"><input type=\"hidden\" name=\"link\" value=\"{link}\"><input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
             <div class=\"deeds\"><button class=\"main\">Continue to {place}</button><a class=\"button\" href=\"/account\">Cancel</a></div></form>",
            server = Escaped(server.as_str()),
            shown = Escaped(&person.shown),
            place = Escaped(&place_of(&url)),
            url = Escaped(&url),
            link = Escaped(sealed),
            csrf = Escaped(&person.csrf),
        );
        Ok(page::page(StatusCode::OK, &format!("Sign in to {server}"), &content))
    }

    /// Continues: uses up the link, and redirects the browser to the server's authorization server.
    pub(super) async fn follow_link(
        &self,
        server: &ServerId,
        form: &Form,
    ) -> Result<Reply, SignInRefusal> {
        let person = self.person().ok_or(SignInRefusal::Csrf)?;
        person.check_csrf(form.get("csrf"))?;
        let now = now();
        // Without a link, the person started on the page of their own sign-ins, whose form is bound
        // to them.
        if let Some(sealed) = form.get("link") {
            let link = self.link(sealed, server)?;
            self.check_person(&link, &person.identity.issuer, &person.identity.subject)?;
            let name = link.id.parse().map_err(|_| SignInRefusal::Link)?;
            let sign_ins = &self.node.shared.sign_ins;
            if !sign_ins.use_up(name, &person.principal(), now, after(now, LINK_SECONDS)).await? {
                return Err(SignInRefusal::LinkUsed);
            }
        } else if !self.usable_servers(&person).contains(server) {
            return Err(SignInRefusal::NoSuchServer);
        }
        let to = self.to_upstream(&person, server, now).await?;
        Ok(page::going_on(&to, &place_of(&to)))
    }

    fn link(&self, sealed: &str, server: &ServerId) -> Result<Link, SignInRefusal> {
        let link: Option<Link> = open(&self.node.shared.sealer, Purpose::SignInLink, sealed);
        let counts = |link: &Link| link.server == server.as_str() && now().0 < link.expires_at;
        link.filter(counts).ok_or(SignInRefusal::Link)
    }

    fn check_person(&self, link: &Link, issuer: &str, subject: &str) -> Result<(), SignInRefusal> {
        if link.issuer == issuer && link.subject == subject {
            return Ok(());
        }
        let person = policy::principal_id(issuer, subject);
        let data = json!({
            "server": link.server,
            "link_of": policy::principal_id(&link.issuer, &link.subject),
        });
        self.note("sign_in.forwarded_link", &person, &data);
        Err(SignInRefusal::OtherPerson)
    }
}
