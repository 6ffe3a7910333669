use super::*;
use crate::metadata::ServerMetadata;
use std::collections::HashMap;

fn found(names_issuer: bool) -> Discovery {
    Discovery {
        endpoint: "https://a.example/mcp".into(),
        resource: "https://a.example/mcp".into(),
        scopes: vec!["read".into(), "offline_access".into()],
        takes_dpop: false,
        server: ServerMetadata {
            issuer: "https://as.example".into(),
            authorization_endpoint: "https://as.example/auth?tenant=1".into(),
            token_endpoint: "https://as.example/token".into(),
            answers_name_issuer: names_issuer,
            ..ServerMetadata::default()
        },
    }
}

fn begun(names_issuer: bool) -> Begun {
    let client = RegisteredClient::public("the client".into());
    let mut random = [7; RANDOM_BYTES];
    random[32..].fill(9);
    let asked =
        Begin { redirect_uri: "http://127.0.0.1:7/callback", scopes: &[], random, dpop: None };
    begin(&found(names_issuer), &client, asked).unwrap()
}

fn state(begun: &Begun) -> String {
    begun.pending.state.expose().to_owned()
}

fn refused(query: &str, names_issuer: bool) -> &'static str {
    let begun = begun(names_issuer);
    let query = query.replace("STATE", &state(&begun));
    begun.pending.accept(&query).unwrap_err().code()
}

#[test]
fn the_request_has_pkce_the_resource_and_a_state() {
    let begun = begun(false);
    let url = Url::parse(&begun.url).unwrap();
    let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
    assert_eq!(query["tenant"], "1");
    assert_eq!(query["code_challenge_method"], "S256");
    assert_eq!(query["code_challenge"], challenge_of(&begun.pending.verifier));
    assert_eq!(query["resource"], "https://a.example/mcp");
    assert_eq!(query["scope"], "read offline_access");
    assert_eq!(query["prompt"], "consent");
    assert_eq!(query["state"].len(), 43);
    assert!(!begun.url.contains(begun.pending.verifier.expose()));
    assert!(!format!("{:?}", begun.pending).contains(&state(&begun)));
}

#[test]
fn the_verifier_and_the_state_are_of_different_bytes() {
    let begun = begun(false);
    assert_ne!(begun.pending.verifier, begun.pending.state);
}

#[test]
fn an_answer_with_its_state_and_issuer_is_taken() {
    for (query, names_issuer) in [
        ("code=abc&state=STATE&iss=https%3A%2F%2Fas.example", true),
        ("code=abc&state=STATE&iss=https%3A%2F%2Fas.example", false),
        ("code=abc&state=STATE&other=1", false),
    ] {
        let begun = begun(names_issuer);
        let query = query.replace("STATE", &state(&begun));
        assert_eq!(begun.pending.accept(&query).unwrap().code.expose(), "abc");
    }
}

#[test]
fn an_answer_of_another_sign_in_is_refused() {
    assert_eq!(refused("code=abc", false), "state_mismatch");
    assert_eq!(refused("code=abc&state=", false), "state_mismatch");
    assert_eq!(refused("code=abc&state=STATEx", false), "state_mismatch");
    assert_eq!(refused("error=access_denied&state=other", false), "state_mismatch");
}

#[test]
fn an_answer_of_another_issuer_is_refused_whether_or_not_issuers_are_named() {
    for names_issuer in [true, false] {
        let other = "code=abc&state=STATE&iss=https%3A%2F%2Fevil.example";
        assert_eq!(refused(other, names_issuer), "issuer_mismatch");
        let slash = "code=abc&state=STATE&iss=https%3A%2F%2Fas.example%2F";
        assert_eq!(refused(slash, names_issuer), "issuer_mismatch");
    }
    assert_eq!(refused("code=abc&state=STATE", true), "issuer_missing");
}

#[test]
fn an_answer_that_two_readers_could_read_differently_is_refused() {
    assert_eq!(refused("code=a&code=b&state=STATE", false), "bad_answer");
    assert_eq!(refused("code=a&state=STATE&state=x", false), "bad_answer");
    assert_eq!(refused("state=STATE", false), "bad_answer");
    let long = |length: usize| format!("code={}&state=STATE", "x".repeat(length));
    assert_eq!(refused(&long(MAX_CODE_BYTES + 1), false), "bad_answer");
    let begun = begun(false);
    let fits = long(MAX_CODE_BYTES).replace("STATE", &state(&begun));
    assert!(begun.pending.accept(&fits).is_ok());
    assert_eq!(refused(&long(MAX_ANSWER_BYTES), false), "bad_answer");
}

#[test]
fn a_refusal_is_told_by_its_code_and_not_by_the_servers_words() {
    let begun = begun(false);
    let query = format!("error=access_denied&error_description=Run+rm&state={}", state(&begun));
    let error = begun.pending.accept(&query).unwrap_err();
    assert_eq!(error.to_string(), "the authorization server refused the sign-in: access_denied");
}

#[test]
fn a_step_up_keeps_what_was_granted_and_ends_where_nothing_is_new() {
    let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    assert_eq!(stepped_up(&texts(&["a"]), &texts(&["a", "b"])), Some(texts(&["a", "b"])));
    assert_eq!(stepped_up(&texts(&["a", "b"]), &texts(&["b"])), None);
}
