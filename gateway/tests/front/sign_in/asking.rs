//! Clients of revision 2026-07-28 that show URLs: a call that needs a sign-in asks for it, and the retry goes on.

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

/// What a call was answered with: the link that the client shows, and the state that it gives back.
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
        // What the revision's schema has, and nothing of the one before.
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

    /// The person opens a link and signs in to the server.
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
    // The client was quicker than the person: it is asked again, with a link that works as well.
    let again = Question::read(&accounts.retry("ada", question.answered("accept")).await);
    assert_ne!(again.link, question.link);
    // Without an answer to the question it is asked again too.
    let unsaid = json!({"requestState": question.state});
    Question::read(&accounts.retry("ada", unsaid).await);
    // The person does not want to: the client is told, and not asked for ever.
    for action in ["decline", "cancel"] {
        let refused = accounts.retry("ada", question.answered(action)).await;
        assert_eq!(refused["error"]["code"], 1013, "{refused}");
        assert!(refused["error"]["data"]["sign_in"].is_string(), "{refused}");
    }
    accounts.go("ada", &again.link, "ada-there").await;
    let made = accounts.retry("ada", question.answered("accept")).await;
    assert_eq!(made["result"]["content"][0]["text"], "read_report a", "{made}");
    // The server gets the call as it was made at first.
    {
        let script = accounts.scene.stage.script.lock().unwrap();
        let (_, headers, sent) =
            script.asked.iter().rfind(|(name, ..)| name == "tools/call").unwrap();
        assert!(headers["authorization"].to_str().unwrap().contains("ada-there"));
        let params = sent["params"].as_object().unwrap();
        assert!(!params.contains_key("requestState") && !params.contains_key("inputResponses"));
        assert_eq!(params["arguments"], json!({"path": "a"}));
    }
    // The link counted once.
    let mut ada = accounts.browser("ada").await;
    assert_eq!(accounts.follow(&mut ada, &again.link).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_waits_for_the_person_who_is_at_the_link() {
    let accounts = Accounts::with(WAITS).await;
    let question = accounts.ask("ada").await;
    // The client makes the call again at once, and the person signs in meanwhile.
    let retried = accounts.retry("ada", question.answered("accept"));
    let signs_in = accounts.go("ada", &question.link, "ada-there");
    let (made, ()) = futures_util::future::join(retried, signs_in).await;
    assert_eq!(made["result"]["content"][0]["text"], "read_report a", "{made}");
}

/// The state is bound to the caller, the tool and its arguments. A caller who has someone else's gets nothing for it.
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
    // Before anyone has signed in, when no tool of the server is known, and after.
    for (what, person, changed) in attempts.clone() {
        check(what, person, changed).await;
    }
    accounts.go("ada", &question.link, "ada-there").await;
    until("ada's call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    for (what, person, changed) in attempts {
        check(what, person, changed).await;
    }
    let before = accounts.shown().len();
    // A person with a sign-in of their own gets nothing for another's state either.
    accounts.sign_in("eve", "eve-there").await;
    check("eve, who is signed in", "eve", json!({})).await;
    assert_eq!(accounts.shown().len(), before, "nothing of it reached the server");
    // A revoked person's state ends with them.
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
    // A client that is in the middle of answering the server is told with an error: it could not answer both.
    let answering = json!({"inputResponses": {"name": {"action": "accept"}}});
    let refused = accounts.retry("ada", answering).await;
    assert_eq!(refused["error"]["code"], 1013, "{refused}");
    // Lists cannot ask (only calls, prompts and resources can), and a key is no person.
    let session = accounts.scene.stage.begin("/mcp", "ada").await;
    let key = accounts.scene.stage.call("ada", &session, "reports__read_report", &json!({})).await;
    assert!(key["error"]["data"].get("sign_in").is_none(), "{key}");
}
