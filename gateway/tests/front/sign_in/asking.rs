//! Clients of revision 2026-07-28 that show URLs: a call that needs a sign-in asks for it, and the
//! retry succeeds.

use super::PUBLIC_URL;
use super::accounts::Accounts;
use super::browser::goes_on;
use crate::stage::until;
use serde_json::{Value, json};

const AT_ONCE: &str = "limits = { approval_wait_seconds = 0 }\n";
const WAITS: &str = "limits = { approval_wait_seconds = 30 }\n";

fn shows_urls() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// The response to a call: the link for the client to show, and the state to return.
struct Question {
    link: String,
    state: String,
}

impl Question {
    fn read(answer: &Value) -> Question {
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required", "{answer}");
        let asked = &result["inputRequests"]["sign_in"];
        assert_eq!(asked["method"], "elicitation/create", "{answer}");
        let params = asked["params"].as_object().unwrap();
        // Exactly the members of this revision's schema.
        assert_eq!(params.keys().collect::<Vec<_>>(), ["mode", "message", "url"]);
        assert_eq!(params["mode"], "url");
        let link = params["url"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap().to_owned();
        Question { link, state: result["requestState"].as_str().unwrap().to_owned() }
    }

    /// The parameters of the retry.
    fn answered(&self, action: &str) -> Value {
        json!({"requestState": self.state, "inputResponses": {"sign_in": {"action": action}}})
    }
}

impl Accounts {
    async fn ask(&self, person: &str) -> Question {
        Question::read(&self.call_with(person, shows_urls(), json!({})).await)
    }

    async fn retry(&self, person: &str, retry: Value) -> Value {
        self.call_with(person, shows_urls(), retry).await
    }

    /// Opens a link as a person, and signs in to the server.
    async fn go(&self, person: &str, link: &str, account: &str) {
        let mut browser = self.browser(person).await;
        let asked = goes_on(&self.follow(&mut browser, link).await.body);
        let done = browser.get(&self.scene.stage, &self.back(&asked, account, &[])).await;
        assert_eq!(done.status, 200, "{}", done.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_asks_for_the_sign_in_and_its_retry_goes_on() {
    let accounts = Accounts::with(AT_ONCE).await;
    let question = accounts.ask("ada").await;
    let decision = accounts.scene.stage.decisions().pop().unwrap();
    let reasons = &decision["decision"]["reason_codes"];
    assert_eq!(*reasons, json!(["credential_unavailable"]), "{decision}");
    // The client was faster than the person: it is asked again, with a link that works too.
    let again = Question::read(&accounts.retry("ada", question.answered("accept")).await);
    assert_ne!(again.link, question.link);
    // It is also asked again if it does not answer the question.
    let unsaid = json!({"requestState": question.state});
    Question::read(&accounts.retry("ada", unsaid).await);
    // The person declines: the client gets an error, and is not asked again.
    for action in ["decline", "cancel"] {
        let refused = accounts.retry("ada", question.answered(action)).await;
        assert_eq!(refused["error"]["code"], 1013, "{refused}");
        assert!(refused["error"]["data"]["sign_in"].is_string(), "{refused}");
    }
    accounts.go("ada", &again.link, "ada-there").await;
    let made = accounts.retry("ada", question.answered("accept")).await;
    assert_eq!(made["result"]["content"][0]["text"], "read_report a", "{made}");
    // The server gets the original call.
    {
        let script = accounts.scene.stage.script.lock().unwrap();
        let (_, headers, sent) =
            script.asked.iter().rfind(|(name, ..)| name == "tools/call").unwrap();
        assert!(headers["authorization"].to_str().unwrap().contains("ada-there"));
        let params = sent["params"].as_object().unwrap();
        assert!(!params.contains_key("requestState") && !params.contains_key("inputResponses"));
        assert_eq!(params["arguments"], json!({"path": "a"}));
    }
    // The link can only be used once.
    let mut ada = accounts.browser("ada").await;
    assert_eq!(accounts.follow(&mut ada, &again.link).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_waits_for_the_person_who_is_at_the_link() {
    let accounts = Accounts::with(WAITS).await;
    let question = accounts.ask("ada").await;
    // The client repeats the call at once, and the person signs in meanwhile.
    let retried = accounts.retry("ada", question.answered("accept"));
    let signs_in = accounts.go("ada", &question.link, "ada-there");
    let (made, ()) = futures_util::future::join(retried, signs_in).await;
    assert_eq!(made["result"]["content"][0]["text"], "read_report a", "{made}");
}

/// The state is bound to the caller, the tool and its arguments. Another caller cannot use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_counts_for_its_own_caller_and_call_only() {
    let accounts = Accounts::with(AT_ONCE).await;
    let question = accounts.ask("ada").await;
    let check = async |what: &str, person: &str, changed: Value| {
        let mut retry = question.answered("accept");
        for (name, value) in changed.as_object().unwrap() {
            retry[name] = value.clone();
        }
        let refused = accounts.retry(person, retry).await;
        assert_eq!(refused["error"]["code"], -32602, "{what}: {refused}");
        assert!(refused["error"].get("data").is_none(), "{what}: {refused}");
    };
    let forged = "A".repeat(question.state.len());
    let attempts = [
        ("another person", "eve", json!({})),
        ("other arguments", "ada", json!({"arguments": {"path": "b"}})),
        ("no arguments", "ada", json!({"arguments": {}})),
        ("a forged state", "ada", json!({"requestState": forged})),
        ("a link as a state", "ada", json!({"requestState": question.link})),
        ("no text", "ada", json!({"requestState": {"a": 1}})),
    ];
    // Before any sign-in, when no tool of the server is known, and afterwards.
    for (what, person, changed) in attempts.clone() {
        check(what, person, changed).await;
    }
    accounts.go("ada", &question.link, "ada-there").await;
    until("ada's call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    for (what, person, changed) in attempts {
        check(what, person, changed).await;
    }
    let before = accounts.shown().len();
    // A person with their own sign-in cannot use another person's state either.
    accounts.sign_in("eve", "eve-there").await;
    check("eve, who is signed in", "eve", json!({})).await;
    assert_eq!(accounts.shown().len(), before, "nothing of it reached the server");
    // A revoked person's state is no longer valid.
    accounts.scene.revoke_principal("ada").await;
    until("ada is refused", async || {
        accounts.retry("ada", question.answered("accept")).await["status"] == 401
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_show_no_urls_get_the_error() {
    let accounts = Accounts::with(AT_ONCE).await;
    for capabilities in [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}}}),
        json!({"elicitation": {"url": true}}),
        json!({"elicitation": "url"}),
    ] {
        let refused = accounts.call_with("ada", capabilities.clone(), json!({})).await;
        assert_eq!(refused["error"]["code"], 1013, "{capabilities}: {refused}");
        assert!(refused["error"]["data"]["sign_in"].is_string(), "{capabilities}: {refused}");
    }
    // A client that is already answering the server gets an error: it could not answer both.
    let answering = json!({"inputResponses": {"name": {"action": "accept"}}});
    let refused = accounts.retry("ada", answering).await;
    assert_eq!(refused["error"]["code"], 1013, "{refused}");
    // Lists cannot ask (only calls, prompts and resources can), and a static key is not a person.
    let session = accounts.scene.stage.begin("/mcp", "ada").await;
    let key = accounts.scene.stage.call("ada", &session, "reports__read_report", &json!({})).await;
    assert!(key["error"]["data"].get("sign_in").is_none(), "{key}");
}
