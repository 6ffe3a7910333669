//! Which credentials servers get in place of the caller's token, and which requests are refused
//! instead of passed on.

use crate::authority::{Authority, Issuing, SERVER_AUDIENCE};
use crate::stage::{Answer, EVERYTHING, Setting, Stage, tool, until};
use crate::traces::{Taken, collector};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::time::Duration;

/// The gateway's client at the authorization server. Tests share one environment, so the secret is
/// in a file.
const CLIENT: &str = "gateway:canary-client-secret";

/// An age identity, and a file encrypted for it with the `age` program: `ISSUES=canary-of-age-1`.
const AGE_KEY: &str = "AGE-SECRET-KEY-1YY2VZHYQ5KD785J6PC9JD0KU6NH5AZJNN8NEPC5JNS0P8ZQRFJFQ52QYLL";
const AGE_FILE: &str = "-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSAwYitlWE5pOElkZ0E5THNF
TDErRk9lOHVjMzlFOXhhOXR0RXc4ZXJNSEcwCjJoSitBWlhKRjFuOGhSKzB4Q3cz
UktxdEppOERiWDB4TDJWRnZZU1NUWTAKLS0tIDh3RVhOaTlIM2l2WCswMDlIN1Jn
WjZkNFZtYTBadnZxcHpNWVIxYzFVeU0K8YH6hIWvCYtpGgWGbhiMPthNLZ4UfYv2
9F0g8ww84DDey6N2S02OMx3IKPdwyWqvkPGLBrLDMg==
-----END AGE ENCRYPTED FILE-----
";

struct Scene {
    authority: Authority,
    stage: Stage,
    /// The requests to a collector of spans.
    spans: Taken,
    _files: tempfile::TempDir,
}

impl Scene {
    /// A gateway whose server has these credentials; `CLIENT` and `SECRET` in them stand for files.
    async fn open(credentials: &str, more: &str, policies: &str) -> Scene {
        let authority = Authority::open().await;
        let files = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("file:{}", path.display())
        };
        let credentials = credentials
            .replace("CLIENT", &write("client", CLIENT))
            .replace("SECRET", &write("secret", "canary-static-secret"))
            .replace("REVOCATION_ENDPOINT", &format!("{}/revoke", authority.url()))
            .replace("TOKEN_ENDPOINT", &format!("{}/token", authority.url()))
            .replace("ENCRYPTED", &write("secrets.age", AGE_FILE).replace("file:", "age:"));
        let vault = format!(
            "[vault]\naddress = \"{}\"\nauth = {{ method = \"approle\", role_id = \"gateway\", secret_id = \"{}\" }}\n",
            authority.url(),
            write("secret-id", "canary-secret-id"),
        );
        let age = format!("[age]\nidentity = \"{}\"\n", write("age.key", AGE_KEY));
        let (collector, spans) = collector(200).await;
        let traces = format!("[traces]\notlp = \"http://{collector}\"\n");
        let gateway = format!("{}{vault}{age}{traces}", authority.issuer());
        let more = more.replace("SECRET", &write("secret", "canary-static-secret"));
        let server = format!("credentials = {{ {credentials} }}\n{more}");
        let stage = Stage::open(Setting {
            principals: &[("ada", &[]), ("eve", &[])],
            admins: &[("olga", &[])],
            gateway: &gateway,
            server: &server,
            policies,
            tools: vec![tool("read_report", "Reads."), tool("write_report", "Writes.")],
        })
        .await;
        Scene { authority, stage, spans, _files: files }
    }

    async fn exchanging() -> Scene {
        let credentials = format!(
            "mode = \"exchange\", token_endpoint = \"TOKEN_ENDPOINT\", audience = \"{SERVER_AUDIENCE}\", scopes = [\"read\"], client = \"CLIENT\""
        );
        Scene::open(&credentials, "", EVERYTHING).await
    }

    /// Begins a session with this token, and calls a tool in it.
    async fn call_with(&self, token: &str, more: &[(&str, &str)], arguments: &Value) -> Value {
        self.call_tool("read_report", token, more, arguments).await
    }

    async fn call_tool(
        &self,
        tool: &str,
        token: &str,
        more: &[(&str, &str)],
        arguments: &Value,
    ) -> Value {
        let authorization = format!("Bearer {token}");
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend_from_slice(more);
        let session = self.begin(&headers).await;
        headers.push(("mcp-session-id", &session));
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": format!("reports__{tool}"), "arguments": arguments,
        }});
        self.post(&headers, &body).await.json()
    }

    async fn begin(&self, headers: &[(&str, &str)]) -> String {
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let answer = self.post(headers, &initialize).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
    }

    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.stage.post("/mcp", "ada", headers, &body.to_string()).await
    }

    async fn call(&self, token: &str) -> Value {
        self.call_with(token, &[], &json!({"path": "a"})).await
    }

    /// The `authorization` headers that the server got with one method.
    fn shown(&self, method: &str) -> Vec<String> {
        let script = self.stage.script.lock().unwrap();
        let of_method = script.asked.iter().filter(|(asked, _, _)| asked == method);
        of_method
            .map(|(_, headers, _)| {
                let value = headers.get("authorization").map(|value| value.to_str().unwrap());
                value.unwrap_or_default().to_owned()
            })
            .collect()
    }

    /// The newest decision on a call.
    fn decision(&self) -> Value {
        let is_call = |line: &&Value| line["mcp"]["method"] == "tools/call";
        self.stage.decisions().iter().rfind(is_call).unwrap().clone()
    }

    fn is_anything_shown_with(&self, token: &str) -> bool {
        let script = self.stage.script.lock().unwrap();
        script.asked.iter().any(|(_, headers, body)| {
            headers.values().any(|value| value.to_str().unwrap_or("").contains(token))
                || body.to_string().contains(token)
        })
    }
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("no refusal: {answer}"))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_token_is_exchanged_and_never_reaches_the_server() {
    let scene = Scene::exchanging().await;
    let token = scene.authority.token("ada", "read");
    assert_eq!(text(&scene.call(&token).await), "read_report a");
    assert_eq!(text(&scene.call(&token).await), "read_report a");
    let played = scene.authority.played.lock().unwrap();
    let [form] = played.forms.as_slice() else { panic!("{}", played.forms.len()) };
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["subject_token"], token);
    assert_eq!(form["audience"], SERVER_AUDIENCE);
    assert_eq!(form["scope"], "read");
    assert_eq!(
        form["authorization"],
        format!("Basic {}", STANDARD.encode("gateway:canary%2Dclient%2Dsecret"))
    );
    let issued = format!("Bearer {}", played.issued[0]);
    drop(played);
    for method in ["initialize", "tools/list", "tools/call"] {
        let shown = scene.shown(method);
        assert!(!shown.is_empty() && shown.iter().all(|one| *one == issued), "{method}");
    }
    assert!(!scene.is_anything_shown_with(&token));
    let handling = &scene.decision()["token_handling"];
    let expected = json!({"mode": "exchanged", "source": "exchange", "audience": SERVER_AUDIENCE, "passthrough_detected": false});
    assert_eq!(*handling, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchanged_token_is_taken_back_with_its_principal_and_no_other_is() {
    let credentials = format!(
        "mode = \"exchange\", token_endpoint = \"TOKEN_ENDPOINT\", revocation_endpoint = \"REVOCATION_ENDPOINT\", audience = \"{SERVER_AUDIENCE}\", client = \"CLIENT\""
    );
    let scene = Scene::open(&credentials, "", EVERYTHING).await;
    let [ada, eve] = ["ada", "eve"].map(|sub| scene.authority.token(sub, "read"));
    assert_eq!(text(&scene.call(&ada).await), "read_report a");
    assert_eq!(text(&scene.call(&eve).await), "read_report a");
    let issued = scene.authority.played.lock().unwrap().issued.clone();
    let authorization = format!("Bearer {}", scene.stage.key("admin olga"));
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let value = format!("{}|ada", scene.authority.url());
    let body = json!({"kind": "principal", "value": value}).to_string();
    let revoked = scene.stage.send("POST", "/admin/v1/incident/revoke", &headers, &body).await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let taken_back = || scene.authority.played.lock().unwrap().revoked.clone();
    until("the token to be taken back", async || !taken_back().is_empty()).await;
    let [form] = taken_back().try_into().unwrap();
    assert_eq!((&form["token"], &*form["token_type_hint"]), (&issued[0], "access_token"));
    assert!(form["authorization"].starts_with("Basic "), "{form:?}");
    // The caller's own token is refused, and the other caller continues with its existing token.
    let headers = [("authorization", format!("Bearer {ada}"))];
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, &**value)).collect();
    until("the caller to be refused", async || {
        scene.post(&headers, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await.status
            == 401
    })
    .await;
    assert_eq!(text(&scene.call(&eve).await), "read_report a");
    assert_eq!(scene.authority.played.lock().unwrap().issued.len(), 2);
    // All tokens of a revoked server are revoked, and the next call obtains a new one.
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let body = json!({"kind": "server", "value": "reports"}).to_string();
    let revoked = scene.stage.send("POST", "/admin/v1/incident/revoke", &headers, &body).await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    until("the other token to be taken back", async || taken_back().len() == 2).await;
    assert_eq!(taken_back()[1]["token"], issued[1]);
    assert_eq!(text(&scene.call(&eve).await), "read_report a");
    assert_eq!(scene.authority.played.lock().unwrap().issued.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_of_one_person_share_neither_token_nor_session() {
    let scene = Scene::exchanging().await;
    let [few, many] = ["read", "read write"].map(|scope| scene.authority.token("ada", scope));
    scene.call(&few).await;
    scene.call(&many).await;
    scene.call(&few).await;
    let issued = scene.authority.played.lock().unwrap().issued.clone();
    assert_eq!(issued.len(), 2, "one for each inbound token");
    assert_eq!(scene.shown("initialize").len(), 2, "each has a session of its own with the server");
    let [one, two] = [&issued[0], &issued[1]].map(|token| format!("Bearer {token}"));
    assert_eq!(scene.shown("tools/call"), [one.clone(), two, one]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_that_can_be_exchanged_there_is_no_credential() {
    let scene = Scene::exchanging().await;
    // Another caller has already caused the server to be observed.
    scene.call(&scene.authority.token("ada", "read")).await;
    let key = scene.stage.key("eve").to_owned();
    let refused = scene.call(&key).await;
    assert_eq!(
        (reason(&refused), &refused["error"]["code"]),
        ("credential_unavailable", &json!(1013))
    );
    assert_eq!(scene.decision()["decision"]["reason_codes"], json!(["credential_unavailable"]));
    assert_eq!(scene.authority.played.lock().unwrap().forms.len(), 1);
    assert!(!scene.is_anything_shown_with(&key));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_that_is_down_or_wrong_stops_calls_until_it_is_right() {
    let scene = Scene::exchanging().await;
    scene.call(&scene.authority.token("ada", "read")).await;
    for (issuing, expected) in [
        (Issuing::Status(503), "credential_unavailable"),
        (Issuing::Status(400), "credential_unavailable"),
        (Issuing::For("https://other.example"), "credential_unavailable"),
        (Issuing::SubjectToken, "passthrough_blocked"),
    ] {
        scene.authority.played.lock().unwrap().issuing = issuing.clone();
        // A token that the server would accept as well, if it got to see it.
        let token = scene.authority.token_for_both("ada");
        let before = scene.shown("tools/call").len();
        let refused = scene.call(&token).await;
        assert_eq!(reason(&refused), expected, "{issuing:?}");
        assert_eq!(scene.shown("tools/call").len(), before, "{issuing:?}");
        assert!(!scene.is_anything_shown_with(&token), "{issuing:?}");
        assert!(!refused.to_string().contains(&token), "{issuing:?}");
        scene.authority.played.lock().unwrap().issuing = Issuing::Right(300);
        let again = scene.authority.token("ada", "read");
        assert_eq!(text(&scene.call(&again).await), "read_report a", "{issuing:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_the_server_refuses_is_renewed_once() {
    let scene = Scene::exchanging().await;
    let token = scene.authority.token("ada", "read");
    scene.call(&token).await;
    // The server forgets the first token, as after a restart or a revocation, and accepts any later
    // one.
    let first = scene.authority.played.lock().unwrap().issued[0].clone();
    let signature = |token: &str| token.rsplit_once('.').unwrap().1.to_owned();
    scene.stage.script.lock().unwrap().accepts = Some(vec!["Bearer nothing".to_owned()]);
    let refused = scene.call(&token).await;
    assert_eq!(reason(&refused), "credential_unavailable");
    let forms = scene.authority.played.lock().unwrap().forms.len();
    assert_eq!(forms, 2, "it was renewed once");
    // A server that refuses everything does not make the gateway request a token for every call.
    for _ in 0..5 {
        assert_eq!(reason(&scene.call(&token).await), "credential_unavailable");
    }
    assert!(scene.authority.played.lock().unwrap().forms.len() <= 3);
    let newest = scene.authority.played.lock().unwrap().issued.last().unwrap().clone();
    assert_ne!(signature(&newest), signature(&first));
    scene.stage.script.lock().unwrap().accepts = Some(vec![signature(&newest)]);
    assert_eq!(text(&scene.call(&token).await), "read_report a");
    assert!(!scene.is_anything_shown_with(&token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_ends_is_replaced_before_it_does() {
    let scene = Scene::exchanging().await;
    scene.authority.played.lock().unwrap().issuing = Issuing::Right(2);
    let token = scene.authority.token("ada", "read");
    scene.call(&token).await;
    tokio::time::sleep(Duration::from_millis(1_700)).await;
    assert_eq!(text(&scene.call(&token).await), "read_report a");
    assert_eq!(scene.authority.played.lock().unwrap().issued.len(), 2);
    assert_eq!(scene.shown("initialize").len(), 1, "the session goes on with the newer token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_for_on_behalf_of_a_caller_that_may_not_call() {
    let credentials = format!(
        "mode = \"exchange\", token_endpoint = \"TOKEN_ENDPOINT\", audience = \"{SERVER_AUDIENCE}\", client = \"CLIENT\""
    );
    let policies =
        "@id(\"one\")\npermit(principal, action == Action::\"reports__read_report\", resource);";
    let scene = Scene::open(&credentials, "", policies).await;
    scene.call(&scene.authority.token("ada", "read")).await;
    let forms = || scene.authority.played.lock().unwrap().forms.len();
    assert_eq!(forms(), 1);
    let token = scene.authority.token("ada", "read");
    for path in ["a", token.as_str()] {
        let refused = scene.call_tool("write_report", &token, &[], &json!({"path": path})).await;
        assert_eq!(reason(&refused), "unknown_tool", "also where the token is in the arguments");
    }
    assert_eq!(forms(), 1);
    text(&scene.call(&token).await);
    assert_eq!(forms(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_credentials_are_the_gateways_own_and_shared() {
    let credentials = format!(
        "mode = \"client_credentials\", token_endpoint = \"TOKEN_ENDPOINT\", audience = \"{SERVER_AUDIENCE}\", client = \"CLIENT\", client_auth = \"post\""
    );
    let scene = Scene::open(&credentials, "", EVERYTHING).await;
    scene.call(&scene.authority.token("ada", "read")).await;
    scene.call(scene.stage.key("eve")).await;
    let played = scene.authority.played.lock().unwrap();
    let [form] = played.forms.as_slice() else { panic!("{}", played.forms.len()) };
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(form["client_secret"], "canary-client-secret");
    assert!(!form.contains_key("subject_token"));
    drop(played);
    assert_eq!(scene.decision()["token_handling"]["source"], "client_credentials");
}

/// A caller that sends the token that the gateway uses for all callers must not make it unavailable
/// to them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_a_caller_brings_does_not_block_one_that_callers_share() {
    let credentials = format!(
        "mode = \"client_credentials\", token_endpoint = \"TOKEN_ENDPOINT\", audience = \"{SERVER_AUDIENCE}\", client = \"CLIENT\""
    );
    let scene = Scene::open(&credentials, "", EVERYTHING).await;
    let shared = scene.authority.token_for(SERVER_AUDIENCE, 300);
    scene.authority.played.lock().unwrap().issuing = Issuing::This(shared.clone());
    let token = scene.authority.token("ada", "read");
    let header = format!("reports {shared}");
    let more = [("holdpoint-upstream-authorization", header.as_str())];
    let answer = scene.call_with(&token, &more, &json!({"path": "a"})).await;
    assert!(answer.get("result").is_some(), "{answer}");
    let answer = scene.call(scene.stage.key("eve")).await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert!(scene.shown("tools/call").iter().all(|shown| *shown == format!("Bearer {shared}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_token_goes_to_its_server_with_its_request_alone() {
    let credentials = format!("mode = \"bound\", audience = \"{SERVER_AUDIENCE}\"");
    let scene = Scene::open(&credentials, "", EVERYTHING).await;
    let token = scene.authority.token("ada", "read");
    let bound = scene.authority.token_for(SERVER_AUDIENCE, 300);
    let other = scene.authority.token_for("https://files.example/mcp", 300);
    let header = "holdpoint-upstream-authorization";
    let (ours, theirs) = (format!("reports {bound}"), format!("files {other}"));
    let answer =
        scene.call_with(&token, &[(header, &ours), (header, &theirs)], &json!({"path": "a"})).await;
    assert_eq!(text(&answer), "read_report a");
    assert_eq!(scene.shown("tools/call"), [format!("Bearer {bound}")]);
    assert!(!scene.is_anything_shown_with(&token) && !scene.is_anything_shown_with(&other));
    let handling = &scene.decision()["token_handling"];
    assert_eq!((&handling["mode"], &handling["source"]), (&json!("none"), &json!("bound")));

    let calls = scene.shown("tools/call").len();
    let expired = scene.authority.token_for(SERVER_AUDIENCE, -120);
    for (name, headers) in [
        ("nothing is kept of an earlier request", vec![]),
        ("another audience", vec![format!("reports {other}")]),
        ("an expired one", vec![format!("reports {expired}")]),
        ("not a JWT", vec!["reports opaque".to_owned()]),
        ("two for one server", vec![ours.clone(), ours.clone()]),
        ("one for another server only", vec![format!("files {bound}")]),
    ] {
        let headers: Vec<_> = headers.iter().map(|value| (header, value.as_str())).collect();
        let refused = scene.call_with(&token, &headers, &json!({"path": "a"})).await;
        assert_eq!(reason(&refused), "credential_unavailable", "{name}");
    }
    // Still valid within the allowed clock difference.
    let late = format!("reports {}", scene.authority.token_for(SERVER_AUDIENCE, -30));
    text(&scene.call_with(&token, &[(header, &late)], &json!({"path": "a"})).await);
    let in_body = scene.call_with(&token, &[(header, &ours)], &json!({"path": bound})).await;
    assert_eq!(reason(&in_body), "passthrough_blocked");
    assert_eq!(scene.shown("tools/call").len(), calls + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_vault_is_shown_and_read_again_after_it_was_rotated() {
    let credentials =
        "mode = \"vault\", secret = \"vault:kv/teams/reports#token\", header = \"Authorization\"";
    let scene = Scene::open(credentials, "", EVERYTHING).await;
    let set = |value: &str| {
        let mut played = scene.authority.played.lock().unwrap();
        played.secrets.insert("teams/reports".to_owned(), json!({"token": value, "other": 7}));
    };
    let token = scene.authority.token("ada", "read");
    let missing = scene.call(&token).await;
    assert!(missing["error"].is_object(), "{missing}");
    set("canary-vault-1");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(text(&scene.call(&token).await), "read_report a");
    assert_eq!(scene.shown("tools/call"), ["Bearer canary-vault-1"]);
    assert_eq!(scene.decision()["token_handling"]["mode"], "vault");
    let reads = |scene: &Scene| {
        let played = scene.authority.played.lock().unwrap();
        let is_read = |request: &&String| *request == "GET /v1/kv/data/teams/reports";
        played.vault_requests.iter().filter(is_read).count()
    };
    let before = reads(&scene);
    scene.call(&token).await;
    assert_eq!(reads(&scene), before, "it is not read for each call");
    // Vault forgets the gateway's token, the secret is rotated, and the server only accepts the new
    // one.
    set("canary-vault-2");
    scene.authority.played.lock().unwrap().vault_tokens.clear();
    scene.stage.script.lock().unwrap().accepts = Some(vec!["canary-vault-2".to_owned()]);
    assert_eq!(text(&scene.call(&token).await), "read_report a");
    assert_eq!(scene.shown("tools/call").last().unwrap(), "Bearer canary-vault-2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_a_file_that_age_encrypted_is_shown_and_a_damaged_file_is_not() {
    let credentials = "mode = \"vault\", secret = \"ENCRYPTED#ISSUES\"";
    let scene = Scene::open(credentials, "", EVERYTHING).await;
    let token = scene.authority.token("ada", "read");
    let answer = scene.call(&token).await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(scene.shown("tools/call"), ["Bearer canary-of-age-1"]);
    assert_eq!(scene.decision()["token_handling"]["mode"], "vault");
    let missing =
        Scene::open("mode = \"vault\", secret = \"ENCRYPTED#OTHER\"", "", EVERYTHING).await;
    let answer = missing.call(&missing.authority.token("ada", "read")).await;
    // Without a credential, the server is not even asked for its tools.
    assert!(answer.get("error").is_some(), "{answer}");
    assert!(missing.stage.script.lock().unwrap().asked.is_empty());
    let remarks = std::fs::read_to_string(missing.stage.home.join("remarks.log")).unwrap();
    assert!(remarks.contains("it has no line that begins with this name"), "{remarks}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_token_is_not_passed_on_in_any_form() {
    let more = "forward_headers = [\"X-Note\"]\n";
    let scene = Scene::open("mode = \"vault\", secret = \"SECRET\"", more, EVERYTHING).await;
    let token = scene.authority.token("ada", "read");
    let other = scene.authority.token("ada", "read");
    text(&scene.call(&token).await);
    let percent =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let escaped =
        |text: &str| -> String { text.bytes().map(|byte| format!("\\u{byte:04x}")).collect() };
    type Form<'f> = &'f dyn Fn(&str) -> String;
    let forms: [(&str, Form<'_>); 6] = [
        ("as it is", &str::to_owned),
        ("in a sentence", &|token| format!("use {token} there")),
        ("base64", &|token| STANDARD.encode(format!("ada:{token}"))),
        ("base64url", &|token| URL_SAFE_NO_PAD.encode(format!("x{token}"))),
        ("percent", &percent),
        ("its signature alone", &|token| token.rsplit_once('.').unwrap().1.to_owned()),
    ];
    let calls = || scene.shown("tools/call").len();
    for (name, form) in forms {
        let before = calls();
        let refused = scene.call_with(&token, &[], &json!({"path": form(&token)})).await;
        assert_eq!(reason(&refused), "passthrough_blocked", "{name}");
        assert!(!refused.to_string().contains(&token), "{name}");
        let decision = scene.decision();
        assert_eq!(
            decision["token_handling"],
            json!({"mode": "blocked", "source": null, "audience": null, "passthrough_detected": false}),
            "{name}"
        );
        assert_eq!(decision["decision"]["result"], "deny", "{name}");
        let refused = scene.call_with(&token, &[("x-note", &form(&token))], &json!({})).await;
        assert_eq!(reason(&refused), "passthrough_blocked", "{name}, in a header");
        assert_eq!(calls(), before, "{name}");
        // Someone else's token is an argument like any other.
        let twin = scene
            .call_with(&token, &[("x-note", &form(&other))], &json!({"path": form(&other)}))
            .await;
        assert!(text(&twin).contains("read_report"), "{name}");
    }
    // JSON escapes in the raw body.
    let authorization = format!("Bearer {token}");
    let session = scene.begin(&[("authorization", &authorization)]).await;
    let headers = [("authorization", authorization.as_str()), ("mcp-session-id", &session)];
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"reports__read_report","arguments":{{"path":"{}"}}}}}}"#,
        escaped(&token)
    );
    let refused = scene.stage.post("/mcp", "ada", &headers, &body).await.json();
    assert_eq!(reason(&refused), "passthrough_blocked");
    // A header that is not forwarded may have any value.
    text(&scene.call_with(&token, &[("x-other", &token)], &json!({"path": "a"})).await);
    assert!(!scene.is_anything_shown_with(&token));
    // The same for a caller with a static key.
    let key = scene.stage.key("eve").to_owned();
    let refused = scene.call_with(&key, &[], &json!({"path": STANDARD.encode(&key)})).await;
    assert_eq!(reason(&refused), "passthrough_blocked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_the_callers_own_token_is_not_shown() {
    // The operator configured a caller's key as the server's secret by mistake.
    let scene = Scene::open("mode = \"vault\", secret = \"SECRET\"", "", EVERYTHING).await;
    let key = scene.stage.key("eve").to_owned();
    text(&scene.call(scene.stage.key("ada")).await);
    std::fs::write(scene._files.path().join("secret"), &key).unwrap();
    let mut refused = scene.call(&key).await;
    // The secret is read again at once when the server rejects it.
    scene.stage.script.lock().unwrap().accepts = Some(vec!["another".to_owned()]);
    refused = match refused.get("error") {
        Some(_) => refused,
        None => scene.call(&key).await,
    };
    assert!(refused["error"].is_object());
    assert!(!scene.is_anything_shown_with(&key), "{refused}");
}

/// Everything that the gateway writes or answers, as one text: the home with its receipts, logs and
/// database, messages to its operator, metrics, admin responses, and Debug output.
async fn everything_told(scene: &Scene, answers: &[Value]) -> Vec<u8> {
    let mut told = format!("{answers:?} {:?}", scene.stage.node).into_bytes();
    let admin = format!("Bearer {}", scene.stage.key("admin olga"));
    for path in [
        "/metrics",
        "/healthz",
        "/admin/v1/servers",
        "/admin/v1/servers/reports",
        "/admin/v1/inventory",
        "/admin/v1/receipts",
        "/admin/v1/openapi.json",
        "/admin/v1/stats",
    ] {
        let answer = scene.stage.send("GET", path, &[("authorization", &admin)], "").await;
        told.extend(format!("{path} {answer:?}").into_bytes());
    }
    // Spans of calls, with the headers of the export requests.
    until("spans are sent", async || !scene.spans.lock().unwrap().is_empty()).await;
    told.extend(format!("{:?}", scene.spans.lock().unwrap()).into_bytes());
    // The home also contains the gateway's standard error.
    let mut folders = vec![scene.stage.home.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().filter_map(Result::ok) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => told.extend(std::fs::read(entry.path()).unwrap_or_default()),
            }
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_token_and_no_secret_is_told_anywhere() {
    let grant = |mode: &str| {
        format!(
            "mode = \"{mode}\", token_endpoint = \"TOKEN_ENDPOINT\", audience = \"{SERVER_AUDIENCE}\", client = \"CLIENT\""
        )
    };
    let modes = [
        grant("exchange"),
        grant("client_credentials"),
        format!("mode = \"bound\", audience = \"{SERVER_AUDIENCE}\""),
        "mode = \"vault\", secret = \"SECRET\"".to_owned(),
        "mode = \"vault\", secret = \"vault:kv/reports#token\"".to_owned(),
        "mode = \"vault\", secret = \"ENCRYPTED#ISSUES\"".to_owned(),
    ];
    for credentials in modes {
        let scene =
            Scene::open(&credentials, "headers = { X-Team = \"SECRET\" }\n", EVERYTHING).await;
        let token = scene.authority.token("ada", "read");
        let bound = scene.authority.token_for(SERVER_AUDIENCE, 300);
        let vault = json!({"token": "canary-vault-secret"});
        scene.authority.played.lock().unwrap().secrets.insert("reports".to_owned(), vault);
        let header = format!("reports {bound}");
        let more = [("holdpoint-upstream-authorization", header.as_str())];
        let mut answers = Vec::new();
        let mut call = async |token: &str, path: &str| {
            answers.push(scene.call_with(token, &more, &json!({"path": path})).await);
        };
        call(&token, "a").await;
        call(scene.stage.key("eve"), "a").await;
        // Every kind of failure: a token in the arguments, a server and an authorization server
        // that refuse, a forged token.
        call(&token, &token).await;
        call(&token, &bound).await;
        scene.stage.script.lock().unwrap().accepts = Some(vec!["nothing".to_owned()]);
        call(&token, "a").await;
        scene.authority.played.lock().unwrap().issuing = Issuing::Status(400);
        scene.authority.played.lock().unwrap().vault_tokens.clear();
        call(&scene.authority.token("ada", "other"), "a").await;
        let forged = format!("{token}x");
        let authorization = format!("Bearer {forged}");
        let refused = scene.post(&[("authorization", &authorization)], &json!({})).await;
        answers.push(json!(format!("{refused:?}")));
        assert!(
            answers.iter().any(|answer| answer["result"].is_object()),
            "{credentials}: {answers:?}"
        );
        let told = everything_told(&scene, &answers).await;
        assert!(told.len() > 10_000, "the places were looked at");
        let mut canaries = vec![
            token.clone(),
            bound,
            scene.stage.key("eve").to_owned(),
            scene.stage.key("admin olga").to_owned(),
            "canary-client-secret".to_owned(),
            "canary-static-secret".to_owned(),
            "canary-secret-id".to_owned(),
            "canary-vault-secret".to_owned(),
            "hvs.token-".to_owned(),
            "canary-of-age-1".to_owned(),
            AGE_KEY.to_owned(),
        ];
        canaries.extend(scene.authority.played.lock().unwrap().issued.iter().cloned());
        for canary in canaries {
            // The signature is the secret part of a token; the rest may appear.
            let secret = canary.rsplit('.').next().unwrap();
            let found = memmem(&told, secret.as_bytes());
            assert!(!found, "{credentials}: {}…", &canary[..12]);
        }
    }
}

fn memmem(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
