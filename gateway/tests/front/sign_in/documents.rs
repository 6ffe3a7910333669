//! Clients that are identified by the URL of their metadata document.

use super::browser::{Browser, REDIRECT, Scene, form_of, goes_on, location, parameter};
use crate::stage::answer_with;
use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// Documents at their paths: a status and a body.
type Documents = Arc<Mutex<BTreeMap<String, (u16, String)>>>;

/// Serves clients' documents, and counts the requests.
async fn publisher() -> (SocketAddr, Documents, Arc<Mutex<usize>>) {
    let (documents, asked) = (Documents::default(), Arc::new(Mutex::new(0)));
    let (own, counted) = (documents.clone(), asked.clone());
    let address = answer_with(move |request| {
        let (documents, asked) = (own.clone(), counted.clone());
        async move {
            *asked.lock().unwrap() += 1;
            let found = documents.lock().unwrap().get(request.uri().path()).cloned();
            let (status, body) = found.unwrap_or((404, String::new()));
            let response = http::Response::builder()
                .status(status)
                .header("content-type", "application/json")
                .header("location", "/client.json");
            response.body(Full::new(Bytes::from(body))).unwrap()
        }
    })
    .await;
    (address, documents, asked)
}

async fn scene() -> Scene {
    Scene::open("client_hosts = [\"127.0.0.1\"]\nallow_private = true\n").await
}

#[tokio::test]
async fn a_client_with_an_accepted_document_signs_a_person_in() {
    let (address, documents, asked) = publisher().await;
    let scene = scene().await;
    let id = format!("http://{address}/client.json");
    let document = json!({
        "client_id": id, "client_name": "Your bank", "token_endpoint_auth_method": "none",
        "redirect_uris": ["http://127.0.0.1/callback", "https://elsewhere.example/cb"],
    });
    documents.lock().unwrap().insert("/client.json".into(), (200, document.to_string()));
    let told = scene.stage.send("GET", "/.well-known/oauth-authorization-server", &[], "").await;
    assert_eq!(told.json()["client_id_metadata_document_supported"], true);

    let mut ada = Browser::default();
    let page = ada.get(&scene.stage, &scene.request(&[("client_id", &id)])).await;
    assert_eq!(page.status, 200, "{}", page.body);
    // The client chose its name; only its host is verified.
    assert!(page.body.contains("<h1>Allow 127.0.0.1 to use"), "{}", page.body);
    assert!(page.body.contains("It calls itself “Your bank”"), "{}", page.body);
    assert!(page.body.contains(&id) && page.body.contains(REDIRECT), "{}", page.body);
    let form = form_of(&page.body);
    let allow = format!("transaction={}&csrf={}&decision=allow", form.transaction, form.csrf);
    let answer = ada.post(&scene.stage, "/oauth/consent", &allow).await;
    let provider = goes_on(&answer.body);
    let back = ada.get(&scene.stage, &scene.answer(&provider, "ada", &json!({}))).await;
    let code = parameter(&location(&back), "code").unwrap();
    let form = scene.code_form(&code, &[("client_id", &id)]);
    let tokens = scene.token(&form).await.json();
    let token = tokens["access_token"].as_str().unwrap_or_else(|| panic!("{tokens}"));
    assert_eq!(scene.call(token, "/mcp").await, 200);
    assert_eq!(scene.stage.decisions().pop().unwrap()["principal"]["client_id"], id);
    let page = ada.get(&scene.stage, "/account").await;
    assert!(page.body.contains(&id), "{}", page.body);
    // Another client on the same host did not get this consent, and cannot use the other's code.
    let other = format!("http://{address}/other.json");
    let document = document.to_string().replace(&id, &other);
    documents.lock().unwrap().insert("/other.json".into(), (200, document));
    let page = ada.get(&scene.stage, &scene.request(&[("client_id", &other)])).await;
    assert_eq!(page.status, 200, "{}", page.body);
    // The page warns if the redirect leads to a different host than the client's.
    let elsewhere = [("client_id", id.as_str()), ("redirect_uri", "https://elsewhere.example/cb")];
    let page = ada.get(&scene.stage, &scene.request(&elsewhere)).await;
    assert!(page.body.contains("(elsewhere.example) differ."), "{}", page.body);
    assert_eq!(*asked.lock().unwrap(), 2, "a document is kept for a while");
}

#[tokio::test]
async fn a_document_that_cannot_be_used_names_no_client() {
    let (address, documents, _) = publisher().await;
    let scene = scene().await;
    let place = |name: &str| format!("http://{address}/{name}");
    let with_uris = |name: &str, uris: Value| {
        json!({"client_id": place(name), "redirect_uris": uris}).to_string()
    };
    let good = json!(["http://127.0.0.1/callback"]);
    for (name, status, body) in [
        ("gone", 404, String::new()),
        ("moved", 302, with_uris("moved", good.clone())),
        ("another", 200, with_uris("client.json", good.clone())),
        ("page", 200, "<html>".to_owned()),
        ("script", 200, with_uris("script", json!(["javascript:alert(1)"]))),
        (
            "secret",
            200,
            with_uris("secret", good.clone()).replacen('{', r#"{"client_secret":"x","#, 1),
        ),
        ("twice", 200, with_uris("twice", good.clone()).replacen('{', r#"{"client_id":"x","#, 1)),
        ("long", 200, with_uris("long", good.clone()) + &" ".repeat(17_000)),
    ] {
        documents.lock().unwrap().insert(format!("/{name}"), (status, body));
        let asked = scene.request(&[("client_id", &place(name))]);
        let mut victim = Browser::default();
        let page = victim.get(&scene.stage, &asked).await;
        assert_eq!(page.status, 400, "{name}: {}", page.body);
        assert!(page.headers.get("location").is_none(), "{name}");
        assert_eq!(scene.refused(&victim), ["oauth_client_document"], "{name}");
        // The token request is refused as well.
        let form = scene.code_form("x", &[("client_id", &place(name))]);
        assert_eq!(scene.token(&form).await.status, 400, "{name}");
    }
    // A redirect address that is not in the document, and a host that is not accepted.
    let body = with_uris("right", good);
    documents.lock().unwrap().insert("/right".into(), (200, body));
    let right = place("right");
    for (changed, code) in [
        (
            &[("client_id", right.as_str()), ("redirect_uri", "https://evil.example/cb")][..],
            "oauth_redirect_uri",
        ),
        (&[("client_id", "https://evil.example/client.json")], "oauth_client_host"),
    ] {
        let mut victim = Browser::default();
        assert_eq!(victim.get(&scene.stage, &scene.request(changed)).await.status, 400);
        assert_eq!(scene.refused(&victim), [code]);
    }
}
