//! People who sign in to a server with their own accounts (`credentials = { mode = "user" }`), and
//! what can go wrong.

use super::PUBLIC_URL;
use super::browser::{Browser, Scene, field, goes_on, location, parameter, with};
use super::proofs::Proof;
use crate::stage::{Stage, answer_with, until};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// The authorization server of the MCP server.
pub(super) struct Issuer {
    address: SocketAddr,
    pub(super) played: Arc<Mutex<Played>>,
}

#[derive(Debug, Default)]
pub(super) struct Played {
    /// Members of its metadata with false values.
    pub(super) lies: Vec<(&'static str, Value)>,
    /// The lifetime of access tokens.
    pub(super) lifetime: Option<u64>,
    /// The forms received by the token endpoint.
    pub(super) forms: Vec<BTreeMap<String, String>>,
    pub(super) revoked: Vec<String>,
    /// The valid refresh tokens.
    pub(super) refreshable: Vec<String>,
    pub(super) issued: Vec<String>,
    /// The documents with which clients registered.
    registered: Vec<Value>,
    /// If set, binds tokens to the key of the proof in the token request, and requires this nonce
    /// in it.
    pub(super) nonce: Option<&'static str>,
    /// The keys that tokens are bound to, by token.
    pub(super) bound: BTreeMap<String, String>,
}

impl Issuer {
    async fn open() -> Issuer {
        let played = Arc::new(Mutex::new(Played::default()));
        let own = played.clone();
        let address = answer_with(move |request| {
            let played = own.clone();
            async move { respond(&played, request).await }
        })
        .await;
        Issuer { address, played }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn lie(&self, name: &'static str, value: Value) {
        self.played.lock().unwrap().lies = vec![(name, value)];
    }

    /// The number of refresh requests.
    pub(super) fn refreshes(&self) -> usize {
        let played = self.played.lock().unwrap();
        played.forms.iter().filter(|form| form["grant_type"] == "refresh_token").count()
    }
}

async fn respond(
    played: &Mutex<Played>,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let form = || -> BTreeMap<String, String> {
        url::form_urlencoded::parse(&body).into_owned().collect()
    };
    let url = format!("http://{}", parts.headers["host"].to_str().unwrap());
    let mut played = played.lock().unwrap();
    let (status, answer) = match parts.uri.path() {
        "/.well-known/oauth-authorization-server" => {
            let mut metadata = json!({
                "issuer": url,
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"),
                "revocation_endpoint": format!("{url}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
                "token_endpoint_auth_methods_supported": ["none"],
            });
            for (name, value) in &played.lies {
                metadata[*name] = value.clone();
            }
            (200, metadata)
        }
        "/register" => {
            let document: Value = serde_json::from_slice(&body).unwrap();
            played.registered.push(document.clone());
            (201, json!({"client_id": "c", "redirect_uris": document["redirect_uris"]}))
        }
        "/register/elsewhere" => {
            (201, json!({"client_id": "c", "redirect_uris": ["https://evil.example/cb"]}))
        }
        "/moved" => (302, json!({})),
        "/token" => match prove(&played, &parts, &url) {
            Ok(key) => issue(&mut played, form(), key),
            Err(refusal) => return *refusal,
        },
        "/revoke" => {
            played.revoked.push(form()["token"].clone());
            (200, json!({}))
        }
        _ => (404, json!({})),
    };
    let response = http::Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("location", "/register");
    response.body(Full::new(Bytes::from(answer.to_string()))).unwrap()
}

/// The key of a request's proof, if tokens are bound to keys.
fn prove(
    played: &Played,
    parts: &http::request::Parts,
    url: &str,
) -> Result<Option<String>, Box<http::Response<Full<Bytes>>>> {
    let Some(wanted) = played.nonce else { return Ok(None) };
    let proof = Proof::read(&parts.headers);
    assert_eq!((&*proof.claim("htm"), proof.claim("htu")), ("POST", format!("{url}/token")));
    assert!(proof.claims.get("ath").is_none());
    if proof.claim("nonce") == wanted {
        return Ok(Some(proof.key));
    }
    let response = http::Response::builder().status(400).header("dpop-nonce", wanted);
    let body = json!({"error": "use_dpop_nonce"}).to_string();
    let response = response.header("content-type", "application/json");
    Err(Box::new(response.body(Full::new(body.into())).unwrap()))
}

/// The account is part of the code and of every token, so that a test can see whose token reaches
/// the server.
fn issue(played: &mut Played, form: BTreeMap<String, String>, key: Option<String>) -> (u16, Value) {
    let number = played.forms.len();
    let account = match form["grant_type"].as_str() {
        "authorization_code" => Some(form["code"].clone()),
        _ => {
            let shown = &form["refresh_token"];
            let known = played.refreshable.iter().position(|known| known == shown);
            let known = known.filter(|_| played.bound.get(shown) == key.as_ref());
            known.map(|index| {
                let used = played.refreshable.remove(index);
                used.split('.').nth(1).unwrap().to_owned()
            })
        }
    };
    played.forms.push(form);
    let Some(account) = account else { return (400, json!({"error": "invalid_grant"})) };
    let (access, refresh) =
        (format!("canary-access.{account}.{number}"), format!("canary-refresh.{account}.{number}"));
    played.refreshable.push(refresh.clone());
    played.issued.extend([access.clone(), refresh.clone()]);
    let kind = if key.is_some() { "DPoP" } else { "Bearer" };
    if let Some(key) = key {
        played.bound.extend([(access.clone(), key.clone()), (refresh.clone(), key)]);
    }
    let lifetime = played.lifetime.unwrap_or(3_600);
    let answer = json!({
        "access_token": access, "token_type": kind, "expires_in": lifetime, "refresh_token": refresh,
    });
    (200, answer)
}

/// A gateway in front of a server that requires each person's own account.
pub(super) struct Accounts {
    pub(super) scene: Scene,
    pub(super) issuer: Issuer,
}

impl Accounts {
    pub(super) async fn open() -> Accounts {
        Accounts::with("").await
    }

    /// The same with additional lines in `[gateway]`.
    pub(super) async fn with(gateway: &str) -> Accounts {
        Accounts::with_credentials(gateway, "credentials = { mode = \"user\" }\n").await
    }

    async fn with_credentials(gateway: &str, credentials: &str) -> Accounts {
        let issuer = Issuer::open().await;
        let scene = Scene::with((gateway, "", credentials)).await;
        let server = scene.stage.upstream();
        let accounts = Accounts { scene, issuer };
        accounts.describe(&json!({
            "resource": format!("http://{server}/mcp"),
            "authorization_servers": [accounts.issuer.url()],
        }));
        accounts.scene.stage.script.lock().unwrap().accepts = Some(vec!["canary-access".into()]);
        accounts
    }

    /// Sets the server's metadata on its authorization.
    pub(super) fn describe(&self, metadata: &Value) {
        let mut script = self.scene.stage.script.lock().unwrap();
        let place = "/.well-known/oauth-protected-resource/mcp".to_owned();
        script.documents.insert(place, metadata.clone());
    }

    pub(super) fn bearer(&self, person: &str) -> String {
        format!("Bearer {}", self.scene.authority.token(person, "read"))
    }

    /// A person's call without a session, from a client that cannot show URLs.
    pub(super) async fn call(&self, person: &str) -> Value {
        self.call_with(person, json!({}), json!({})).await
    }

    /// The same from a client with these capabilities and additional parameters.
    pub(super) async fn call_with(
        &self,
        person: &str,
        capabilities: Value,
        further: Value,
    ) -> Value {
        self.call_at(&self.scene.stage, person, capabilities, further).await
    }

    /// The same at a given node.
    pub(super) async fn call_at(
        &self,
        stage: &Stage,
        person: &str,
        capabilities: Value,
        further: Value,
    ) -> Value {
        let authorization = self.bearer(person);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("authorization", authorization.as_str()),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "reports__read_report"),
        ];
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let mut params =
            json!({"name": "reports__read_report", "arguments": {"path": "a"}, "_meta": meta});
        for (name, value) in further.as_object().unwrap() {
            params[name] = value.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = stage.send("POST", "/mcp", &headers, &body.to_string()).await;
        if answer.status == 401 { json!({"status": 401}) } else { answer.json() }
    }

    /// The link in the refusal of a person's call.
    pub(super) async fn link(&self, person: &str) -> String {
        let refused = self.call(person).await;
        let data = &refused["error"]["data"];
        assert_eq!(data["reason"], "credential_unavailable", "{refused}");
        let link = data["sign_in"].as_str().unwrap_or_else(|| panic!("no link: {refused}"));
        link.strip_prefix(PUBLIC_URL).unwrap().to_owned()
    }

    /// A person's browser, signed in to the gateway.
    pub(super) async fn browser(&self, person: &str) -> Browser {
        let mut browser = Browser::default();
        let asked = browser.get(&self.scene.stage, "/account").await;
        let answer = self.scene.answer(&location(&asked), person, &json!({}));
        assert_eq!(browser.get(&self.scene.stage, &answer).await.status, 303);
        browser
    }

    /// Follows a link as a person. Returns where the browser is redirected.
    pub(super) async fn follow(&self, browser: &mut Browser, link: &str) -> crate::stage::Answer {
        let page = browser.get(&self.scene.stage, link).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let form = [("link", field(&page.body, "link")), ("csrf", field(&page.body, "csrf"))];
        let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, &**value)).collect();
        browser.post(&self.scene.stage, "/sign-in/reports", &with(&form, &[])).await
    }

    /// The URL with which the authorization server redirects the browser back.
    pub(super) fn back(&self, asked: &str, account: &str, changed: &[(&str, &str)]) -> String {
        let (state, iss) = (parameter(asked, "state").unwrap(), self.issuer.url());
        let all = [("code", account), ("state", state.as_str()), ("iss", iss.as_str())];
        format!("/oauth/callback/reports?{}", with(&all, changed))
    }

    /// Signs a person in to the server with a link.
    pub(super) async fn sign_in(&self, person: &str, account: &str) -> Browser {
        let link = self.link(person).await;
        let mut browser = self.browser(person).await;
        let asked = goes_on(&self.follow(&mut browser, &link).await.body);
        let done = browser.get(&self.scene.stage, &self.back(&asked, account, &[])).await;
        assert!(done.body.contains("Signed in to reports"), "{}", done.body);
        browser
    }

    /// The accounts whose tokens the server received with calls.
    pub(super) fn shown(&self) -> Vec<String> {
        let script = self.scene.stage.script.lock().unwrap();
        let calls = script.asked.iter().filter(|(method, ..)| method == "tools/call");
        calls
            .map(|(_, headers, _)| {
                let value = headers["authorization"].to_str().unwrap();
                value.split('.').nth(1).unwrap_or(value).to_owned()
            })
            .collect()
    }

    fn has_reason(&self, reason: &str) -> bool {
        let events = self.scene.events("oauth.refused");
        events.iter().any(|event| event["data"]["reason"] == reason)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_signs_in_its_own_person_once_and_each_call_has_its_callers_account() {
    let accounts = Accounts::open().await;
    let stage = &accounts.scene.stage;
    let link = accounts.link("ada").await;
    // Another person who opens the link is refused, which is recorded; a browser that is not signed
    // in has to sign in first.
    let mut eve = accounts.browser("eve").await;
    let forwarded = eve.get(stage, &link).await;
    assert_eq!(forwarded.status, 403, "{}", forwarded.body);
    assert!(forwarded.body.contains("The link is for another person."), "{}", forwarded.body);
    let told = accounts.scene.events("sign_in.forwarded_link");
    assert!(told[0]["by"].as_str().unwrap().ends_with("|eve"), "{told:?}");
    let stranger = Browser::default().get(stage, &link).await;
    assert!(location(&stranger).starts_with(&accounts.scene.authority.url()));
    // Eve's own form cannot be used with it either.
    let own = accounts.link("eve").await;
    let page = eve.get(stage, &own).await;
    let form = [("link", parameter(&link, "link").unwrap()), ("csrf", field(&page.body, "csrf"))];
    let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, &**value)).collect();
    let taken = eve.post(stage, "/sign-in/reports", &with(&form, &[])).await;
    assert_eq!(taken.status, 403, "{}", taken.body);

    let mut ada = accounts.browser("ada").await;
    let asked = goes_on(&accounts.follow(&mut ada, &link).await.body);
    assert_eq!(parameter(&asked, "resource"), Some(format!("http://{}/mcp", stage.upstream())));
    assert_eq!(parameter(&asked, "code_challenge_method").as_deref(), Some("S256"));
    let callback = "https://mcp.example.com/oauth/callback/reports";
    assert_eq!(parameter(&asked, "redirect_uri").as_deref(), Some(callback));
    let again = accounts.follow(&mut ada, &link).await;
    assert_eq!(again.status, 400);
    assert!(accounts.has_reason("sign_in_link_used"));
    let done = ada.get(stage, &accounts.back(&asked, "ada-there", &[])).await;
    assert_eq!(done.status, 200, "{}", done.body);

    until("ada's call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    assert!(accounts.call("eve").await["error"]["data"]["sign_in"].is_string());
    accounts.sign_in("eve", "eve-there").await;
    until("eve's call is made", async || accounts.call("eve").await.get("result").is_some()).await;
    for _ in 0..3 {
        let before = accounts.shown().len();
        accounts.call("ada").await;
        accounts.call("eve").await;
        assert_eq!(accounts.shown()[before..], ["ada-there", "eve-there"]);
    }
    let decision = stage.decisions().pop().unwrap();
    let handling = &decision["token_handling"];
    assert_eq!((&handling["mode"], &handling["source"]), (&json!("exchanged"), &json!("user")));
    // A static key is not a person, whatever its subject.
    let session = stage.begin("/mcp", "ada").await;
    let key = stage.call("ada", &session, "reports__read_report", &json!({})).await;
    assert_eq!(key["error"]["data"]["reason"], "credential_unavailable", "{key}");
    assert!(key["error"]["data"].get("sign_in").is_none(), "{key}");
    // Neither the store nor the ledger nor the log contains it in clear text.
    let text = stage.all_text();
    assert!(text.contains("sign_in.done"));
    assert!(!text.contains("canary-access") && !text.contains("canary-refresh"));
}

/// A client of revision 2025-11-25 gets the link in the form that it shows to its user by itself,
/// if it supports that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_shows_urls_is_given_the_link_as_an_elicitation() {
    let accounts = Accounts::open().await;
    let (stage, authorization) = (&accounts.scene.stage, accounts.bearer("ada"));
    let begin = async |path: &str, version: &str, capabilities: Value| {
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let headers = [("authorization", authorization.as_str())];
        let answer = stage.post(path, "ada", &headers, &body.to_string()).await;
        answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
    };
    let ask = async |path: &str, session: &str, method: &str, params: Value| {
        let headers = [("authorization", authorization.as_str()), ("mcp-session-id", session)];
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        stage.post(path, "ada", &headers, &body.to_string()).await.json()
    };
    let shows_urls = json!({"elicitation": {"form": {}, "url": {}}});
    for (path, method, params) in [
        ("/mcp", "tools/call", json!({"name": "reports__read_report", "arguments": {}})),
        ("/servers/reports/mcp", "tools/list", json!({})),
    ] {
        let session = begin(path, "2025-11-25", shows_urls.clone()).await;
        let asked = ask(path, &session, method, params.clone()).await;
        let error = &asked["error"];
        assert_eq!((&asked["id"], &error["code"]), (&json!(7), &json!(-32042)), "{asked}");
        let data = &error["data"];
        let elicitation = &data["elicitations"][0];
        assert_eq!((&elicitation["mode"], &elicitation["url"]), (&json!("url"), &data["sign_in"]));
        assert!(elicitation["elicitationId"].is_string() && elicitation["message"].is_string());
        assert_eq!(data["reason"], "credential_unavailable");
        // Other clients get the ordinary refusal: they do not know that error code.
        for (version, capabilities) in [
            ("2025-11-25", json!({"elicitation": {}})),
            ("2025-11-25", json!({})),
            ("2025-06-18", shows_urls.clone()),
        ] {
            let session = begin(path, version, capabilities).await;
            let asked = ask(path, &session, method, params.clone()).await;
            assert_eq!(asked["error"]["code"], 1013, "{version}: {asked}");
            assert!(asked["error"]["data"]["sign_in"].is_string(), "{version}: {asked}");
            assert!(asked["error"]["data"].get("elicitations").is_none());
        }
    }
    // Without a session, that error code is never sent.
    let modern = accounts.call_with("ada", shows_urls, json!({})).await;
    assert_eq!(modern["result"]["resultType"], "input_required", "{modern}");
    // The link works.
    accounts.sign_in("ada", "ada-there").await;
    until("the call is made", async || accounts.call("ada").await.get("result").is_some()).await;
}

/// The cause of a refused sign-in, the server's metadata, and a false member of its authorization
/// server's metadata.
type Lie = (&'static str, Value, Option<(&'static str, Value)>);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lies_about_its_authorization_is_refused_with_its_cause() {
    let accounts = Accounts::open().await;
    let (stage, issuer) = (&accounts.scene.stage, accounts.issuer.url());
    let own = format!("http://{}/mcp", stage.upstream());
    let metadata = |resource: &str, issuer: &str| json!({"resource": resource, "authorization_servers": [issuer]});
    let ada = accounts.browser("ada").await;
    let lies: [Lie; 12] = [
        ("resource_mismatch", metadata("https://payroll.example/mcp", &issuer), None),
        ("address_refused", metadata(&own, "https://10.0.0.1"), None),
        ("bad_address", metadata(&own, "http://169.254.169.254"), None),
        (
            "metadata_issuer_mismatch",
            metadata(&own, &issuer),
            Some(("issuer", json!("https://honest.example"))),
        ),
        (
            "no_pkce",
            metadata(&own, &issuer),
            Some(("code_challenge_methods_supported", json!(["plain"]))),
        ),
        (
            "address_refused",
            metadata(&own, &issuer),
            Some(("registration_endpoint", json!("https://192.168.0.1/register"))),
        ),
        (
            "bad_address",
            metadata(&own, &issuer),
            Some(("token_endpoint", json!("http://as.example/token"))),
        ),
        (
            "bad_address",
            metadata(&own, &issuer),
            Some(("authorization_endpoint", json!("javascript:alert(1)"))),
        ),
        ("no_registration", metadata(&own, &issuer), Some(("registration_endpoint", Value::Null))),
        ("unusable_answer", json!({"resource": 7}), None),
        (
            "unusable_answer",
            metadata(&own, &issuer),
            Some(("registration_endpoint", json!(format!("{issuer}/register/elsewhere")))),
        ),
        (
            "redirect_refused",
            metadata(&own, &issuer),
            Some(("registration_endpoint", json!(format!("{issuer}/moved")))),
        ),
    ];
    for (index, (cause, described, lie)) in lies.into_iter().enumerate() {
        accounts.describe(&described);
        accounts.issuer.played.lock().unwrap().lies = lie.into_iter().collect();
        let link = accounts.link("ada").await;
        let mut ada = ada.moved();
        let answer = accounts.follow(&mut ada, &link).await;
        assert_eq!(answer.status, 502, "{index} {cause}: {}", answer.body);
        assert!(!answer.body.contains("http-equiv"), "nobody is sent anywhere: {}", answer.body);
        let refused = accounts.scene.refused(&ada);
        assert_eq!(refused, [format!("sign_in_upstream: {cause}")], "{index}: {}", answer.body);
    }
    assert!(
        accounts.issuer.played.lock().unwrap().registered.is_empty(),
        "no redirect is followed"
    );
    assert!(accounts.issuer.played.lock().unwrap().forms.is_empty(), "no code was redeemed");
    assert!(accounts.shown().is_empty());
}

/// A client registered manually at one authorization server, and a server that now names a
/// different one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registered_client_is_used_at_its_own_issuer_only() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "gateway:canary-secret-there").unwrap();
    let credentials = format!(
        "credentials = {{ mode = \"user\", client = \"file:{}\", issuer = \"https://honest.example\" }}\n",
        secret.path().display()
    );
    let accounts = Accounts::with_credentials("", &credentials).await;
    let mut ada = accounts.browser("ada").await;
    let link = accounts.link("ada").await;
    let answer = accounts.follow(&mut ada, &link).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert_eq!(accounts.scene.refused(&ada), ["sign_in_upstream: issuer_changed"]);
    let played = accounts.issuer.played.lock().unwrap();
    assert!(played.forms.is_empty() && played.registered.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_link_cannot_be_framed_forged_or_answered_from_elsewhere() {
    let accounts = Accounts::open().await;
    let (scene, stage) = (&accounts.scene, &accounts.scene.stage);
    let link = accounts.link("ada").await;
    let (ada, mut eve) = (accounts.browser("ada").await, accounts.browser("eve").await);
    let mut framed = ada.moved();
    let answer = framed.get_with(stage, &link, &[("sec-fetch-dest", "iframe")]).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert_eq!(scene.refused(&framed), ["oauth_framed"]);
    let page = ada.moved().get(stage, &link).await;
    assert_eq!(page.headers["x-frame-options"], "DENY");
    let own = eve.get(stage, &accounts.link("eve").await).await;
    // The attacker's token in the victim's form, no token, and the victim's form on another site's
    // page.
    let form = |csrf: &str| with(&[("link", &field(&page.body, "link")), ("csrf", csrf)], &[]);
    for csrf in [field(&own.body, "csrf"), String::new()] {
        let mut forged = ada.moved();
        let answer = forged.post(stage, "/sign-in/reports", &form(&csrf)).await;
        assert_eq!(answer.status, 403, "{}", answer.body);
        assert_eq!(scene.refused(&forged), ["oauth_csrf"], "{csrf}");
    }
    let mut crossed = ada.moved();
    let (origin, form) = ([("origin", "https://evil.example")], form(&field(&page.body, "csrf")));
    assert_eq!(crossed.post_with(stage, "/sign-in/reports", &origin, &form).await.status, 403);
    assert_eq!(scene.refused(&crossed), ["not_ours"]);
    assert!(accounts.issuer.played.lock().unwrap().registered.is_empty());
    // None of this has used up the link.
    accounts.follow(&mut ada.moved(), &link).await;
    assert_eq!(accounts.issuer.played.lock().unwrap().registered.len(), 1);
}

/// The link is only given with a receipt: a refusal because nothing can be recorded stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_be_recorded_is_not_turned_into_a_link() {
    let accounts = Accounts::open().await;
    let (stage, authorization) = (&accounts.scene.stage, accounts.bearer("ada"));
    let shows_urls = json!({"elicitation": {"form": {}, "url": {}}});
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": shows_urls,
        "clientInfo": {"name": "t", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let headers = [("authorization", authorization.as_str())];
    let begun = stage.post("/servers/reports/mcp", "ada", &headers, &body.to_string()).await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap();
    let ask = async |method: &str, params: Value| {
        let headers = [("authorization", authorization.as_str()), ("mcp-session-id", session)];
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        stage.post("/servers/reports/mcp", "ada", &headers, &body.to_string()).await.json()
    };
    let call = async || ask("tools/call", json!({"name": "read_report", "arguments": {}})).await;
    assert_eq!(call().await["error"]["code"], -32042);
    // End the thread that writes receipts, in this gateway only.
    contract::trip::arm(&format!("disk:{}", stage.home.display()));
    let is_recorded = async || call().await["error"]["code"] == -32042;
    until("nothing is recorded any more", async || !is_recorded().await).await;
    let modern = accounts.call_with("ada", shows_urls.clone(), json!({})).await;
    for refused in [call().await, ask("tools/list", json!({})).await, modern] {
        let error = &refused["error"];
        assert_eq!(
            (&error["code"], error["data"].get("sign_in")),
            (&json!(-32012), None),
            "{refused}"
        );
        assert_eq!(error["data"]["reason"], "ledger_unavailable", "{refused}");
        assert!(error["data"].get("elicitations").is_none(), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_the_servers_issuer_counts_once_for_the_person_who_asked() {
    let accounts = Accounts::open().await;
    let stage = &accounts.scene.stage;
    let begin = async |browser: &mut Browser| {
        let link = accounts.link("ada").await;
        goes_on(&accounts.follow(browser, &link).await.body)
    };
    let mut ada = accounts.browser("ada").await;
    let mut eve = accounts.browser("eve").await;
    // Injection: an attacker makes the victim's browser complete the attacker's sign-in, or vice
    // versa.
    let asked = begin(&mut ada).await;
    let injected = eve.get(stage, &accounts.back(&asked, "eve-there", &[])).await;
    assert_eq!(injected.status, 403, "{}", injected.body);
    assert_eq!(accounts.scene.refused(&eve), ["sign_in_other_person"]);
    let asked = begin(&mut ada).await;
    let mut other_browser = Browser::default();
    let unknown = other_browser.get(stage, &accounts.back(&asked, "x", &[])).await;
    assert_eq!(unknown.status, 400, "{}", unknown.body);
    assert_eq!(accounts.scene.refused(&other_browser), ["oauth_state"]);
    // A mix-up, an unknown state, a response with two codes, and a refusal.
    for (changed, reason) in [
        (("iss", "https://evil.example"), "oauth_issuer"),
        (("iss", ""), "oauth_issuer"),
        (("state", "0000"), "oauth_state"),
        (("x=1&code", "other"), "sign_in_upstream: bad_answer"),
        (("x=1&error", "access_denied"), "sign_in_upstream_denied"),
    ] {
        let mut ada = ada.moved();
        let asked = begin(&mut ada).await;
        let answer = ada.get(stage, &accounts.back(&asked, "ada-there", &[changed])).await;
        assert!((400..=502).contains(&answer.status), "{changed:?}: {}", answer.body);
        assert_eq!(accounts.scene.refused(&ada), [reason], "{changed:?}");
        // A refused sign-in is over: the correct response is no longer valid either, unless the
        // state was not its own.
        if changed.0 != "state" {
            let mut late = ada.moved();
            let answer = late.get(stage, &accounts.back(&asked, "ada-there", &[])).await;
            assert_eq!(answer.status, 400, "{changed:?}: {}", answer.body);
            assert_eq!(accounts.scene.refused(&late), ["oauth_state"], "{changed:?}");
        }
    }
    assert!(accounts.issuer.played.lock().unwrap().forms.is_empty(), "no code was redeemed");
    // Replay.
    let asked = begin(&mut ada).await;
    let back = accounts.back(&asked, "ada-there", &[]);
    assert_eq!(ada.get(stage, &back).await.status, 200);
    let mut again = ada.moved();
    assert_eq!(again.get(stage, &back).await.status, 400);
    assert_eq!(accounts.scene.refused(&again), ["oauth_state"]);
    let played = accounts.issuer.played.lock().unwrap();
    assert_eq!(played.forms.len(), 1);
    assert!(played.forms[0]["code_verifier"].len() >= 43);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_ends_is_refreshed_once_for_many_calls_and_taken_back_with_its_person() {
    let accounts = Accounts::open().await;
    // Every token has expired by the time it arrives.
    accounts.issuer.played.lock().unwrap().lifetime = Some(0);
    let mut ada = accounts.sign_in("ada", "ada-there").await;
    until("the call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    // The next token lasts, and eight calls need it at once.
    accounts.issuer.played.lock().unwrap().lifetime = Some(3_600);
    let before = accounts.issuer.refreshes();
    let calls = (0..8).map(|_| accounts.call("ada"));
    for answer in futures_util::future::join_all(calls).await {
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(accounts.issuer.refreshes(), before + 1);
    // If the server rejects the token anyway, it is refreshed once more.
    let newest = accounts.issuer.played.lock().unwrap().issued.clone();
    let newest = newest.iter().rfind(|token| token.starts_with("canary-access")).unwrap().clone();
    let wanted = newest.rsplit_once('.').unwrap().0.to_owned();
    let number: usize = newest.rsplit('.').next().unwrap().parse().unwrap();
    accounts.scene.stage.script.lock().unwrap().accepts =
        Some(vec![format!("{wanted}.{}", number + 1)]);
    let answer = accounts.call("ada").await;
    assert!(answer.get("result").is_some(), "{answer}");
    accounts.scene.stage.script.lock().unwrap().accepts = Some(vec!["canary-access".into()]);
    // The person ends the access, and the tokens are revoked at their issuer.
    let page = ada.get(&accounts.scene.stage, "/account").await;
    let form = format!("csrf={}&server=reports", field(&page.body, "csrf"));
    assert_eq!(ada.post(&accounts.scene.stage, "/account/sign-out", &form).await.status, 303);
    accounts.link("ada").await;
    assert_eq!(accounts.issuer.played.lock().unwrap().revoked.len(), 2);
    let ended = accounts.scene.events("sign_in.ended");
    assert_eq!(ended[0]["data"], json!({"reason": "person", "upstream": "revoked"}), "{ended:?}");
    // An incident ends the access.
    accounts.sign_in("ada", "ada-there").await;
    accounts.scene.revoke_principal("ada").await;
    until("the tokens are revoked", async || {
        accounts.issuer.played.lock().unwrap().revoked.len() == 4
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_ended_at_its_issuer_asks_the_person_again() {
    let accounts = Accounts::open().await;
    accounts.issuer.played.lock().unwrap().lifetime = Some(0);
    accounts.sign_in("ada", "ada-there").await;
    accounts.issuer.played.lock().unwrap().refreshable.clear();
    until("the sign-in is asked for", async || {
        accounts.call("ada").await["error"]["data"]["sign_in"].is_string()
    })
    .await;
    let ended = accounts.scene.events("sign_in.ended");
    assert_eq!(ended[0]["data"]["reason"], "grant_ended", "{ended:?}");
}

/// The gateway as a client of authorization servers that support metadata documents: it does not
/// register there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_is_known_by_its_own_document_where_documents_are_read() {
    let accounts = Accounts::open().await;
    accounts.issuer.lie("client_id_metadata_document_supported", json!(true));
    let mut ada = accounts.browser("ada").await;
    let link = accounts.link("ada").await;
    let asked = goes_on(&accounts.follow(&mut ada, &link).await.body);
    let document = "https://mcp.example.com/oauth/client.json";
    assert_eq!(parameter(&asked, "client_id").as_deref(), Some(document));
    assert!(accounts.issuer.played.lock().unwrap().registered.is_empty());
    let told = accounts.scene.stage.send("GET", "/oauth/client.json", &[], "").await.json();
    assert_eq!(told["client_id"], document);
    assert_eq!(told["redirect_uris"], json!(["https://mcp.example.com/oauth/callback/reports"]));
}

/// The operator changes the server's address: tokens for the old one are not sent to the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_for_a_server_are_not_shown_at_another_address() {
    let accounts = Accounts::open().await;
    let stage = &accounts.scene.stage;
    let mut ada = accounts.sign_in("ada", "ada-there").await;
    until("the call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let own = seen.clone();
    let elsewhere = answer_with(move |request| {
        let shown = request.headers().get("authorization").map(|value| format!("{value:?}"));
        own.lock().unwrap().push(shown.unwrap_or_default());
        async { http::Response::builder().status(401).body(Full::default()).unwrap() }
    })
    .await;
    let old = format!("http://{}/mcp", stage.upstream());
    stage.reload(&old, &format!("http://{elsewhere}/mcp")).await;
    let refused = accounts.call("ada").await;
    assert!(refused["error"]["data"]["sign_in"].is_string(), "{refused}");
    let page = ada.get(stage, "/account").await;
    assert!(page.body.contains("not signed in"), "{}", page.body);
    assert!(seen.lock().unwrap().iter().all(|shown| !shown.contains("canary")), "{seen:?}");
}
