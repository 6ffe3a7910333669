//! The OAuth proxy: a person consents, a client gets tokens for one URL, and nobody else gets any.

#[path = "sign_in/accounts.rs"]
mod accounts;
#[path = "sign_in/asking.rs"]
mod asking;
#[path = "sign_in/browser.rs"]
mod browser;
#[path = "sign_in/documents.rs"]
mod documents;
#[path = "sign_in/proofs.rs"]
mod proofs;

use crate::stage::{Answer, Setting, Stage, until};
use browser::{Browser, CHALLENGE, CLIENT, REDIRECT, Scene, VERIFIER, location, parameter};
use serde_json::{Value, json};

const PUBLIC_URL: &str = "https://mcp.example.com";

#[tokio::test]
async fn a_person_agrees_once_and_the_client_gets_tokens_for_one_url() {
    let scene = Scene::open("").await;
    let mut ada = Browser::default();
    let page = ada.get(&scene.stage, &scene.request(&[])).await;
    assert_eq!(page.status, 200);
    assert!(page.headers.get("location").is_none(), "nobody is redirected before they agreed");
    for told in ["Allow Editor", "127.0.0.1", REDIRECT, "https://mcp.example.com/mcp", "30 days"] {
        assert!(page.body.contains(told), "{told}: {}", page.body);
    }
    let code = scene.sign_in(&mut ada, "ada").await;
    let tokens = scene.redeem(&code).await;
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!((tokens["expires_in"].clone(), tokens["scope"].clone()), (json!(600), json!("mcp")));
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(scene.call(token, "/mcp").await, 200);
    let decision = scene.stage.decisions().pop().unwrap();
    assert_eq!(decision["principal"]["sub"], "ada");
    assert_eq!(decision["principal"]["client_id"], CLIENT);
    for path in ["/servers/reports/mcp", "/t/acme/mcp", "/admin/v1/servers"] {
        assert_eq!(scene.call(token, path).await, 401, "{path}");
    }
    // The second time, the person is known and has consented: there is nothing to ask.
    let again = ada.get(&scene.stage, &scene.request(&[])).await;
    assert_eq!(again.status, 303);
    assert!(location(&again).starts_with(&scene.authority.url()), "{}", location(&again));
    // A different browser or a different request is asked.
    let other = Browser::default().get(&scene.stage, &scene.request(&[])).await;
    assert_eq!(other.status, 200);
    let wider = [("resource", "https://mcp.example.com/servers/reports/mcp")];
    assert_eq!(ada.get(&scene.stage, &scene.request(&wider)).await.status, 200);
    let events = scene.events("oauth.consent.given");
    assert_eq!(events[0]["data"]["client_id"], CLIENT);
    assert_eq!(events[0]["by"], format!("{}|ada", scene.authority.url()));
}

#[tokio::test]
async fn a_crafted_request_redirects_nobody_and_leaves_a_line() {
    let scene = Scene::open("client_hosts = [\"*\"]\n").await;
    for (what, changed, code) in [
        ("another site", ("redirect_uri", "https://evil.example/cb"), "oauth_redirect_uri"),
        ("a prefix", ("redirect_uri", "http://127.0.0.1:9/callback.evil"), "oauth_redirect_uri"),
        (
            "a host in the user name",
            ("redirect_uri", "http://127.0.0.1:9@evil.example/callback"),
            "oauth_redirect_uri",
        ),
        (
            "an open redirect",
            ("redirect_uri", "http://127.0.0.1:9/callback?next=https://evil.example"),
            "oauth_redirect_uri",
        ),
        (
            "another loopback name",
            ("redirect_uri", "http://localhost:9/callback"),
            "oauth_redirect_uri",
        ),
        ("a script", ("redirect_uri", "javascript:alert(1)"), "oauth_redirect_uri"),
        ("an invented client", ("client_id", "nobody"), "oauth_unknown_client"),
        (
            "a document on this machine",
            ("client_id", "http://127.0.0.1:9/c.json"),
            "oauth_unknown_client",
        ),
        ("the same by name", ("client_id", "https://localhost/c.json"), "oauth_unknown_client"),
        ("a document inside", ("client_id", "https://10.0.0.1/c.json"), "oauth_client_document"),
        (
            "a metadata service",
            ("client_id", "https://169.254.169.254/latest/meta-data"),
            "oauth_client_document",
        ),
        ("two of one", ("state=1&client_id", CLIENT), "oauth_repeated_parameter"),
    ] {
        let mut victim = Browser::default();
        let page = victim.get(&scene.stage, &scene.request(&[changed])).await;
        assert_eq!(page.status, 400, "{what}: {}", page.body);
        assert!(page.headers.get("location").is_none(), "{what}");
        assert!(page.headers.get("set-cookie").is_none(), "{what}");
        assert_eq!(scene.refused(&victim), [code], "{what}");
    }
    // Errors of a request with a valid redirect address are sent there, with the issuer of the
    // response.
    for (changed, error, code) in [
        (("code_challenge_method", "plain"), "invalid_request", "oauth_pkce"),
        (("code_challenge_method", ""), "invalid_request", "oauth_pkce"),
        (("code_challenge", ""), "invalid_request", "oauth_pkce"),
        (("response_type", "token"), "unsupported_response_type", "oauth_response_type"),
        (("scope", "admin"), "invalid_scope", "oauth_scope"),
        (("resource", "https://mcp.example.com/admin"), "invalid_target", "oauth_target"),
        (("resource", "https://other.example/mcp"), "invalid_target", "oauth_target"),
    ] {
        let mut victim = Browser::default();
        let answer = victim.get(&scene.stage, &scene.request(&[changed])).await;
        let to = location(&answer);
        assert!(to.starts_with(REDIRECT), "{changed:?}: {to}");
        assert_eq!(parameter(&to, "error").as_deref(), Some(error));
        assert_eq!(parameter(&to, "iss").as_deref(), Some(PUBLIC_URL));
        assert_eq!(parameter(&to, "state").as_deref(), Some("s1"));
        assert_eq!(scene.refused(&victim), [code], "{changed:?}");
    }
}

#[tokio::test]
async fn the_consent_page_cannot_be_framed_forged_or_answered_from_elsewhere() {
    let scene = Scene::open("").await;
    let (mut ada, mut eve) = (Browser::default(), Browser::default());
    let page = ada.get(&scene.stage, &scene.request(&[])).await;
    let header = |name: &str| page.headers[name].to_str().unwrap().to_owned();
    assert!(header("content-security-policy").contains("frame-ancestors 'none'"));
    assert!(header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(header("x-frame-options"), "DENY");
    assert!(header("set-cookie").starts_with("__Host-holdpoint-sign-in-"));
    let form = browser::form_of(&page.body);
    let forged = eve.get(&scene.stage, &scene.request(&[])).await;
    let forged = browser::form_of(&forged.body);
    let allow = |form: &browser::Form| {
        format!("transaction={}&csrf={}&decision=allow", form.transaction, form.csrf)
    };
    // An attacker's form in the victim's browser, the victim's form in the attacker's, and a
    // mixture of both.
    let half = format!("transaction={}&csrf={}&decision=allow", form.transaction, forged.csrf);
    for (browser, body) in [
        (ada.clone(), allow(&forged)),
        (eve.clone(), allow(&form)),
        (Browser::default(), allow(&form)),
        (ada.clone(), half),
    ] {
        let mut browser = browser.moved();
        let answer = browser.post(&scene.stage, "/oauth/consent", &body).await;
        assert_eq!(answer.status, 403, "{}", answer.body);
        assert_eq!(scene.refused(&browser), ["oauth_csrf"]);
    }
    // A page of another site posts the form with the victim's cookies.
    let mut crossed = ada.moved();
    let origin = [("origin", "https://evil.example")];
    let answer = crossed.post_with(&scene.stage, "/oauth/consent", &origin, &allow(&form)).await;
    assert_eq!(answer.status, 403);
    assert_eq!(scene.refused(&crossed), ["not_ours"]);
    // Another site shows the page in a frame: the attempt is refused and recorded if the browser
    // reports it.
    for shown_in in ["iframe", "frame", "embed", "object", "fencedframe"] {
        let mut framed = ada.moved();
        let headers = [("sec-fetch-dest", shown_in)];
        let answer = framed.get_with(&scene.stage, &scene.request(&[]), &headers).await;
        assert_eq!(answer.status, 403, "{shown_in}: {}", answer.body);
        assert!(answer.headers.get("set-cookie").is_none() && !answer.body.contains("<form"));
        assert_eq!(scene.refused(&framed), ["oauth_framed"], "{shown_in}");
    }
    let mut alone = ada.moved();
    let headers = [("sec-fetch-dest", "document")];
    let answer = alone.get_with(&scene.stage, &scene.request(&[]), &headers).await;
    assert_eq!((answer.status, scene.refused(&alone)), (200, vec![]), "{}", answer.body);
    // A refusal is returned to the client, and recorded.
    let refused = format!("transaction={}&csrf={}&decision=refuse", form.transaction, form.csrf);
    let answer = ada.post(&scene.stage, "/oauth/consent", &refused).await;
    assert!(browser::goes_on(&answer.body).contains("error=access_denied"), "{}", answer.body);
    assert_eq!(scene.events("oauth.consent.refused").len(), 1);
}

#[tokio::test]
async fn an_answer_of_the_provider_counts_once_in_the_browser_that_asked_for_it() {
    let scene = Scene::open("").await;
    let mut ada = Browser::default();
    let asked = scene.agree(&mut ada).await;
    let ada = ada;
    let good = scene.answer(&asked, "ada", &json!({}));
    // In another browser; with a different state.
    let mut elsewhere = Browser::default();
    assert_eq!(elsewhere.get(&scene.stage, &good).await.status, 400);
    assert_eq!(scene.refused(&elsewhere), ["oauth_state"]);
    let state = parameter(&asked, "state").unwrap();
    let other = state.split_once('.').unwrap().0.to_owned() + ".0000";
    let refuse = async |answer: &str, code: &str| {
        let mut victim = ada.moved();
        let page = victim.get(&scene.stage, answer).await;
        assert_eq!(page.status, 400, "{answer}: {}", page.body);
        assert_eq!(scene.refused(&victim), [code], "{answer}");
    };
    refuse(&good.replace(&state, &other), "oauth_state").await;
    // A mix-up: the response names another issuer, or none.
    for iss in ["https://evil.example", ""] {
        refuse(&scene.answer_as(&asked, "ada", &json!({}), iss), "oauth_issuer").await;
    }
    // A code that belongs to another sign-in, another client or another issuer.
    for claims in [
        json!({"nonce": "of another sign-in"}),
        json!({"aud": "another client"}),
        json!({"aud": ["gateway", "another client"]}),
        json!({"iss": "https://evil.example"}),
        json!({"exp": 1}),
    ] {
        refuse(&scene.answer(&asked, "ada", &claims), "oauth_id_token").await;
    }
    assert_eq!(ada.moved().get(&scene.stage, &good).await.status, 303);
    refuse(&good, "oauth_state_replayed").await;
}

/// The client and a thief redeem the same code at the same moment: whichever is first, no token
/// stays valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_code_that_is_redeemed_twice_at_once_nothing_is_left() {
    let scene = Scene::open("").await;
    for _ in 0..8 {
        let code = scene.sign_in(&mut Browser::default(), "ada").await;
        let form = scene.code_form(&code, &[]);
        let both = futures_util::future::join(scene.token(&form), scene.token(&form)).await;
        let given: Vec<Value> = [both.0, both.1]
            .iter()
            .filter(|answer| answer.status == 200)
            .map(Answer::json)
            .collect();
        assert!(given.len() <= 1, "{given:?}");
        for tokens in given {
            let refreshed = scene.refresh(tokens["refresh_token"].as_str().unwrap()).await;
            assert_eq!(refreshed.status, 400, "{}", refreshed.body);
            let access = tokens["access_token"].as_str().unwrap().to_owned();
            until("the access token is refused", async || scene.call(&access, "/mcp").await == 401)
                .await;
        }
    }
}

#[tokio::test]
async fn a_code_is_redeemed_once_by_the_client_that_asked_for_it() {
    let scene = Scene::open("").await;
    let mut ada = Browser::default();
    ada.get(&scene.stage, &scene.request(&[])).await;
    let code = scene.sign_in(&mut ada, "ada").await;
    for (what, changed, reason) in [
        ("another client", ("client_id", "other"), "oauth_other_client"),
        (
            "another address",
            ("redirect_uri", "http://127.0.0.1:8/callback"),
            "oauth_other_redirect",
        ),
        ("no verifier", ("code_verifier", ""), "oauth_verifier"),
        ("the challenge", ("code_verifier", CHALLENGE), "oauth_verifier"),
        ("an invented code", ("code", "invented"), "oauth_code"),
        (
            "another resource",
            ("resource", "https://mcp.example.com/servers/reports/mcp"),
            "oauth_target",
        ),
    ] {
        let mut thief = Browser::default();
        let form = scene.code_form(&code, &[changed]);
        let answer = thief.post(&scene.stage, "/oauth/token", &form).await;
        assert_eq!(answer.status, 400, "{what}");
        assert_eq!(scene.refused(&thief), [reason], "{what}");
    }
    let tokens = scene.redeem(&code).await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    assert_eq!(scene.call(&token, "/mcp").await, 200);
    let mut thief = Browser::default();
    let again = thief.post(&scene.stage, "/oauth/token", &scene.code_form(&code, &[])).await;
    assert_eq!((again.status, again.json()["error"].clone()), (400, json!("invalid_grant")));
    assert_eq!(scene.refused(&thief), ["oauth_code_replayed"]);
    // One of the two holders of the code is an attacker: the first one's tokens end too.
    until("the access token ends", async || scene.call(&token, "/mcp").await == 401).await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(scene.refresh(refresh).await.status, 400);
    let ended = scene.events("oauth.tokens.revoked");
    assert_eq!(ended[0]["data"]["reason"], "oauth_code_replayed");
}

#[tokio::test]
async fn a_refresh_token_counts_once_and_one_that_comes_back_ends_the_sign_in() {
    let scene = Scene::open("").await;
    let tokens = scene.tokens("ada").await;
    let first = tokens["refresh_token"].as_str().unwrap().to_owned();
    let next = scene.refresh(&first).await.json();
    let second = next["refresh_token"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let token = next["access_token"].as_str().unwrap().to_owned();
    assert_eq!(scene.call(&token, "/mcp").await, 200);
    let other = format!("grant_type=refresh_token&client_id=other&refresh_token={second}");
    assert_eq!(scene.token(&other).await.status, 400);
    let reused = scene.refresh(&first).await;
    assert_eq!((reused.status, reused.json()["error"].clone()), (400, json!("invalid_grant")));
    assert_eq!(scene.refresh(&second).await.status, 400, "the sign-in has ended");
    until("the access token ends", async || scene.call(&token, "/mcp").await == 401).await;
    assert_eq!(scene.events("oauth.tokens.revoked")[0]["data"]["reason"], "oauth_refresh_reused");
}

#[tokio::test]
async fn a_client_a_person_and_an_incident_can_each_end_it() {
    let scene = Scene::open("").await;
    let ends = async |tokens: &Value| {
        let token = tokens["access_token"].as_str().unwrap().to_owned();
        until("the access token ends", async || scene.call(&token, "/mcp").await == 401).await;
        let refresh = tokens["refresh_token"].as_str().unwrap();
        assert_eq!(scene.refresh(refresh).await.status, 400);
    };
    let one = scene.tokens("ada").await;
    let form = |token: &str, client: &str| format!("token={token}&client_id={client}");
    let refresh = one["refresh_token"].as_str().unwrap();
    let stolen =
        Browser::default().post(&scene.stage, "/oauth/revoke", &form(refresh, "other")).await;
    assert_eq!(stolen.status, 400);
    let gone = Browser::default().post(&scene.stage, "/oauth/revoke", &form(refresh, CLIENT)).await;
    assert_eq!(gone.status, 200);
    ends(&one).await;
    // Ended by the person, on the page of their own sign-ins.
    let mut ada = Browser::default();
    ada.get(&scene.stage, &scene.request(&[])).await;
    let code = scene.sign_in(&mut ada, "ada").await;
    let two = scene.redeem(&code).await;
    let page = ada.get(&scene.stage, "/account").await;
    assert!(page.body.contains("Editor"), "{}", page.body);
    let csrf = browser::field(&page.body, "csrf");
    let application = browser::field(&page.body, "application");
    let body = format!("csrf={csrf}&application={application}");
    assert_eq!(Browser::default().post(&scene.stage, "/account/sign-out", &body).await.status, 403);
    let wrong = format!("csrf=0&application={application}");
    assert_eq!(ada.post(&scene.stage, "/account/sign-out", &wrong).await.status, 403);
    assert_eq!(ada.post(&scene.stage, "/account/sign-out", &body).await.status, 303);
    ends(&two).await;
    assert_eq!(ada.get(&scene.stage, &scene.request(&[])).await.status, 200, "the consent is gone");
    // Ended by an incident.
    let mut ada = Browser::default();
    ada.get(&scene.stage, &scene.request(&[])).await;
    let code = scene.sign_in(&mut ada, "ada").await;
    let three = scene.redeem(&code).await;
    scene.revoke_principal("ada").await;
    ends(&three).await;
    let known = ada.get(&scene.stage, "/account").await;
    assert_eq!(known.status, 303, "the browser is not signed in any more");
}

#[tokio::test]
async fn metadata_names_what_is_served_and_a_gateway_without_a_proxy_serves_none_of_it() {
    let scene = Scene::open("").await;
    let told = scene.stage.send("GET", "/.well-known/oauth-authorization-server", &[], "").await;
    let told = told.json();
    assert_eq!(told["issuer"], PUBLIC_URL);
    assert_eq!(told["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(told["token_endpoint_auth_methods_supported"], json!(["none"]));
    assert!(told.get("registration_endpoint").is_none());
    let resource = "/.well-known/oauth-protected-resource/mcp";
    let resource = scene.stage.send("GET", resource, &[], "").await.json();
    assert_eq!(resource["authorization_servers"][0], PUBLIC_URL);
    let plain = Stage::open(Setting::default()).await;
    for (method, path) in [
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/oauth/authorize"),
        ("POST", "/oauth/token"),
        ("GET", "/account"),
        ("GET", "/sign-in/reports"),
    ] {
        assert_eq!(plain.send(method, path, &[], "").await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_provider_whose_metadata_points_elsewhere_is_not_sent_the_gateways_secret() {
    let scene = Scene::open("").await;
    scene.authority.played.lock().unwrap().token_endpoint =
        Some("http://10.0.0.1/token".to_owned());
    let mut ada = Browser::default();
    let page = ada.get(&scene.stage, &scene.request(&[])).await;
    let form = browser::form_of(&page.body);
    let allow = format!("transaction={}&csrf={}&decision=allow", form.transaction, form.csrf);
    let answer = ada.post(&scene.stage, "/oauth/consent", &allow).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert_eq!(scene.refused(&ada), ["oauth_provider"]);
}

#[tokio::test]
async fn no_token_of_the_gateway_is_in_its_home() {
    let scene = Scene::open("").await;
    let tokens = scene.tokens("ada").await;
    let next = scene.refresh(tokens["refresh_token"].as_str().unwrap()).await.json();
    let text = scene.stage.all_text();
    for token in [&tokens["access_token"], &tokens["refresh_token"], &next["refresh_token"]] {
        let token = token.as_str().unwrap();
        assert!(!text.contains(&token[8..40]), "a token is in clear");
    }
    assert!(!text.contains(VERIFIER) && !text.contains("canary-client-secret"));
}
