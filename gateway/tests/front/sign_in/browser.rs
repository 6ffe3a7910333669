//! A simulated browser, and a gateway with an identity provider to sign in at.

use crate::authority::Authority;
use crate::stage::{Answer, Setting, Stage};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use store::{By, IncidentStore, RevokedKind};

pub(crate) const CLIENT: &str = "editor";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:9/callback";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Keeps cookies, and follows no redirects. Each has its own address, which a proxy reports to the
/// gateway: refusals are recorded once per second, address and code, so a test can find those of
/// its own browser.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    cookies: BTreeMap<String, String>,
    address: Ipv4Addr,
}

impl Default for Browser {
    fn default() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0));
        Browser { cookies: BTreeMap::new(), address: Ipv4Addr::from(first + number) }
    }
}

impl Browser {
    /// The same browser with a different address.
    pub(crate) fn moved(&self) -> Browser {
        Browser { cookies: self.cookies.clone(), ..Browser::default() }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn cookies(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    pub(crate) async fn get(&mut self, stage: &Stage, path: &str) -> Answer {
        self.get_with(stage, path, &[]).await
    }

    /// The same with additional headers.
    pub(crate) async fn get_with(
        &mut self,
        stage: &Stage,
        path: &str,
        further: &[(&str, &str)],
    ) -> Answer {
        let (cookies, address) = (self.cookies(), self.address());
        let own = [("cookie", cookies.as_str()), ("x-forwarded-for", address.as_str())];
        let answer = stage.send("GET", path, &[&own, further].concat(), "").await;
        self.keep(&answer);
        answer
    }

    pub(crate) async fn post(&mut self, stage: &Stage, path: &str, body: &str) -> Answer {
        self.post_with(stage, path, &[], body).await
    }

    pub(crate) async fn post_with(
        &mut self,
        stage: &Stage,
        path: &str,
        further: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (cookies, address) = (self.cookies(), self.address());
        let own = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("cookie", cookies.as_str()),
            ("x-forwarded-for", address.as_str()),
        ];
        let answer = stage.send("POST", path, &[&own, further].concat(), body).await;
        self.keep(&answer);
        answer
    }

    fn keep(&mut self, answer: &Answer) {
        for set in answer.headers.get_all("set-cookie") {
            let set = set.to_str().unwrap();
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            match set.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
    }
}

pub(crate) fn location(answer: &Answer) -> String {
    answer.headers["location"].to_str().unwrap().to_owned()
}

/// A parameter of a URL's query.
pub(crate) fn parameter(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    let mut found =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known == name);
    found.next().map(|(_, value)| value.into_owned())
}

/// The fields that a page's form sends.
pub(crate) struct Form {
    pub(crate) transaction: String,
    pub(crate) csrf: String,
}

pub(crate) fn form_of(html: &str) -> Form {
    Form { transaction: field(html, "transaction"), csrf: field(html, "csrf") }
}

/// The value of the first field with this name.
pub(crate) fn field(html: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let rest = html.split_once(&start).unwrap_or_else(|| panic!("no {name} in {html}")).1;
    rest.split('"').next().unwrap().to_owned()
}

/// The address that a page forwards to by itself.
pub(crate) fn goes_on(html: &str) -> String {
    let rest = html.split_once("content=\"0;url=").unwrap_or_else(|| panic!("{html}")).1;
    rest.split('"').next().unwrap().replace("&amp;", "&")
}

pub(crate) struct Scene {
    pub(crate) authority: Authority,
    pub(crate) stage: Stage,
    /// The gateway's client at the identity provider.
    _client: tempfile::NamedTempFile,
}

impl Scene {
    /// `proxy` contains additional lines for `[oauth_proxy]`.
    pub(crate) async fn open(proxy: &str) -> Scene {
        Scene::with_server(proxy, "").await
    }

    /// The same with additional lines in the server's table.
    pub(crate) async fn with_server(proxy: &str, server: &str) -> Scene {
        Scene::with(("", proxy, server)).await
    }

    /// The same with additional lines in `[gateway]`.
    pub(crate) async fn with((gateway, proxy, server): (&str, &str, &str)) -> Scene {
        let authority = Authority::open().await;
        let client = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(client.path(), "gateway:canary-client-secret").unwrap();
        let gateway = format!(
            "public_url = \"https://mcp.example.com\"\ntls = {{ terminated_by = [\"127.0.0.1\"] }}\n{gateway}{}client = \"file:{}\"\n[oauth_proxy]\n{proxy}[[oauth_proxy.client]]\nid = \"{CLIENT}\"\nname = \"Editor\"\nredirect_uris = [\"http://127.0.0.1/callback\"]\n",
            authority.issuer(),
            client.path().display(),
        );
        let setting = Setting { gateway: &gateway, server, ..Setting::default() };
        let stage = Stage::open(setting).await;
        Scene { authority, stage, _client: client }
    }

    /// The client's request, with some parameters changed.
    pub(crate) fn request(&self, changed: &[(&str, &str)]) -> String {
        let all = [
            ("response_type", "code"),
            ("client_id", CLIENT),
            ("redirect_uri", REDIRECT),
            ("state", "s1"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        format!("/oauth/authorize?{}", with(&all, changed))
    }

    /// Consents as a person. Returns the request to the identity provider.
    pub(crate) async fn agree(&self, browser: &mut Browser) -> String {
        let page = browser.get(&self.stage, &self.request(&[])).await;
        let form = form_of(&page.body);
        let allow = format!("transaction={}&csrf={}&decision=allow", form.transaction, form.csrf);
        let answer = browser.post(&self.stage, "/oauth/consent", &allow).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        goes_on(&answer.body)
    }

    /// The identity provider's response to a request: the person signed in, with additional claims.
    pub(crate) fn answer(&self, asked: &str, sub: &str, claims: &Value) -> String {
        self.answer_as(asked, sub, claims, &self.authority.url())
    }

    pub(crate) fn answer_as(&self, asked: &str, sub: &str, claims: &Value, iss: &str) -> String {
        let mut stands_for = json!({"sub": sub, "nonce": parameter(asked, "nonce").unwrap()});
        for (name, value) in claims.as_object().unwrap() {
            stands_for[name] = value.clone();
        }
        let code = URL_SAFE_NO_PAD.encode(stands_for.to_string());
        let state = parameter(asked, "state").unwrap();
        format!(
            "/oauth/callback?{}",
            with(&[("code", &code), ("state", &state), ("iss", iss)], &[])
        )
    }

    /// Consents and signs in as a person. Returns the client's code.
    pub(crate) async fn sign_in(&self, browser: &mut Browser, sub: &str) -> String {
        let asked = self.agree(browser).await;
        let answer = browser.get(&self.stage, &self.answer(&asked, sub, &json!({}))).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        let to = location(&answer);
        assert!(to.starts_with(REDIRECT), "{to}");
        parameter(&to, "code").unwrap()
    }

    pub(crate) fn code_form(&self, code: &str, changed: &[(&str, &str)]) -> String {
        let all = [
            ("grant_type", "authorization_code"),
            ("client_id", CLIENT),
            ("redirect_uri", REDIRECT),
            ("code", code),
            ("code_verifier", VERIFIER),
        ];
        with(&all, changed)
    }

    pub(crate) async fn token(&self, form: &str) -> Answer {
        Browser::default().post(&self.stage, "/oauth/token", form).await
    }

    pub(crate) async fn redeem(&self, code: &str) -> Value {
        let answer = self.token(&self.code_form(code, &[])).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.headers["cache-control"], "no-store");
        answer.json()
    }

    pub(crate) async fn refresh(&self, token: &str) -> Answer {
        let form =
            [("grant_type", "refresh_token"), ("client_id", CLIENT), ("refresh_token", token)];
        self.token(&with(&form, &[])).await
    }

    pub(crate) async fn tokens(&self, sub: &str) -> Value {
        let code = self.sign_in(&mut Browser::default(), sub).await;
        self.redeem(&code).await
    }

    /// Lists tools with a token. Returns the HTTP status.
    pub(crate) async fn call(&self, token: &str, path: &str) -> u16 {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("authorization", &format!("Bearer {token}")),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ];
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        self.stage.send("POST", path, &headers, &body.to_string()).await.status
    }

    pub(crate) async fn revoke_principal(&self, sub: &str) {
        let home = store::Home::open(&self.stage.home).unwrap();
        let store = store::open(&home, &store::Location::Sqlite).unwrap();
        let mut store = store::Witnessed::new(store, &home);
        let by = By { name: "olga", at: engine::recorder::now() };
        store.revoke(RevokedKind::Principal, sub, by).unwrap();
    }

    /// The codes, with their causes, with which requests from a browser's address were refused
    /// according to the ledger. A page of another origin is refused before its request is parsed.
    pub(crate) fn refused(&self, browser: &Browser) -> Vec<String> {
        let told = [self.events("oauth.refused"), self.events("auth.refused")].concat();
        let own = told.iter().filter(|event| event["data"]["source"] == browser.address());
        own.map(|event| {
            let reason = event["data"]["reason"].as_str().unwrap();
            let cause = event["data"]["cause"].as_str();
            cause.map_or_else(|| reason.to_owned(), |cause| format!("{reason}: {cause}"))
        })
        .collect()
    }

    /// The events with this name.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        let lines = self.stage.receipts().into_iter();
        lines.filter(|line| line["event"] == name || line["name"] == name).collect()
    }
}

/// The parameters with some changed; those with an empty value are left out.
pub(crate) fn with(all: &[(&str, &str)], changed: &[(&str, &str)]) -> String {
    let mut pairs: Vec<String> = Vec::new();
    let encoded =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    for (name, value) in all {
        let changed = changed.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let value = changed.unwrap_or(value);
        if !value.is_empty() {
            pairs.push(format!("{name}={}", encoded(value)));
        }
    }
    for (name, value) in
        changed.iter().filter(|(name, _)| !all.iter().any(|(known, _)| known == name))
    {
        pairs.push(format!("{name}={}", encoded(value)));
    }
    pairs.join("&")
}
