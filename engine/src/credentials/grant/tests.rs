//! The requests to a token endpoint, and which of its responses are accepted.

use super::*;
use settings::gateway::Credentials;

const AUDIENCE: &str = "https://issues.example.com/mcp";

fn step(grant: Grant, client_auth: ClientAuth) -> GrantStep {
    let url = "http://127.0.0.1:1/token".parse().unwrap();
    GrantStep {
        grant,
        endpoint: ServiceAddress::new(url, false, None).unwrap(),
        place: "http://127.0.0.1:1/token".to_owned(),
        client: SecretName::Env("CLIENT".to_owned()),
        client_auth,
        audience: AUDIENCE.to_owned(),
        resource: None,
        scopes: "read write".to_owned(),
    }
}

fn form(request: &ServiceRequest) -> Vec<(String, String)> {
    let Some(ServiceBody::Form(text)) = &request.body else { panic!("{request:?}") };
    let decoded =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (decoded(name), decoded(value))
    };
    text.split('&').map(pair).collect()
}

fn client() -> Secret {
    Secret::new("gate way:s3cret:with/colon".to_owned())
}

fn jwt(payload: &str) -> String {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload))
}

#[test]
fn an_exchange_has_the_callers_token_as_its_subject() {
    let request = step(Grant::Exchange, ClientAuth::Basic).request(&client(), Some("a.b.c"));
    let request = request.unwrap();
    let expected = [
        ("grant_type", EXCHANGE),
        ("subject_token", "a.b.c"),
        ("subject_token_type", ACCESS_TOKEN),
        ("requested_token_type", ACCESS_TOKEN),
        ("audience", AUDIENCE),
        ("scope", "read write"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(form(&request), expected);
    let basic = STANDARD.encode("gate%20way:s3cret%3Awith%2Fcolon");
    let (name, value) = &request.headers[0];
    assert_eq!(
        (name, value.to_str().unwrap()),
        (&AUTHORIZATION, format!("Basic {basic}").as_str())
    );
    assert!(value.is_sensitive());
    assert!(!format!("{request:?}").contains("a.b.c"), "{request:?}");
}

#[test]
fn client_credentials_have_no_subject() {
    let step = GrantStep {
        resource: Some("https://r.example".to_owned()),
        ..step(Grant::ClientCredentials, ClientAuth::Post)
    };
    let request = step.request(&client(), None).unwrap();
    assert!(request.headers.is_empty());
    let expected = [
        ("grant_type", "client_credentials"),
        ("audience", AUDIENCE),
        ("resource", "https://r.example"),
        ("scope", "read write"),
        ("client_id", "gate way"),
        ("client_secret", "s3cret:with/colon"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(form(&request), expected);
}

#[test]
fn what_a_grant_needs_is_asked_for() {
    let exchange = step(Grant::Exchange, ClientAuth::Basic);
    assert!(matches!(exchange.request(&client(), None), Err(Unavailable::NoSubject)));
    let no_secret = Secret::new("only-an-id".to_owned());
    let refused = exchange.request(&no_secret, Some("t")).unwrap_err().to_string();
    assert!(refused.contains("ID:SECRET") && !refused.contains("only-an-id"), "{refused}");
}

#[test]
fn only_a_bearer_token_for_the_server_is_taken() {
    let exchange = step(Grant::Exchange, ClientAuth::Basic);
    let right = jwt(&format!(r#"{{"aud":["{AUDIENCE}"]}}"#));
    let good = format!(
        r#"{{"access_token":"{right}","token_type":"bearer","issued_token_type":"{ACCESS_TOKEN}","expires_in":300}}"#
    );
    let issued = exchange.read(good.as_bytes()).unwrap();
    assert_eq!(
        (issued.token.expose(), issued.lifetime),
        (right.as_str(), Duration::from_secs(300))
    );
    let opaque = good.replace(&right, "opaque-token");
    assert!(exchange.read(opaque.as_bytes()).is_ok(), "whom an opaque token is for is not told");
    for (name, from, to) in [
        ("another audience", right.as_str(), jwt(r#"{"aud":"https://other.example"}"#)),
        ("no audience", right.as_str(), jwt("{}")),
        ("another type", r#""bearer""#, r#""DPoP""#.to_owned()),
        ("no type", r#""token_type":"bearer","#, String::new()),
        ("not an access token", ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:saml2".to_owned()),
        ("no token", "access_token\"", "token\"".to_owned()),
        ("an empty token", right.as_str(), String::new()),
        ("a token with a space", right.as_str(), "a b".to_owned()),
        ("too long a token", right.as_str(), "x".repeat(MAX_TOKEN_BYTES + 1)),
        ("a token that ended", "300", "0".to_owned()),
        ("a lifetime that is no number", "300", "\"300\"".to_owned()),
    ] {
        let bad = good.replace(from, &to);
        assert_ne!(bad, good, "{name}");
        assert!(exchange.read(bad.as_bytes()).is_err(), "{name}");
    }
    let longest = good.replace(&right, &"x".repeat(MAX_TOKEN_BYTES));
    assert!(exchange.read(longest.as_bytes()).is_ok());
    assert!(exchange.read(b"<html>").is_err());
}

#[test]
fn the_lifetime_is_what_is_told_and_bounded() {
    let exchange = step(Grant::Exchange, ClientAuth::Basic);
    let check = |payload: &str, told: &str, expected: Duration| {
        let token = jwt(payload);
        let answer = format!(r#"{{"access_token":"{token}","token_type":"Bearer"{told}}}"#);
        let lifetime = exchange.read(answer.as_bytes()).unwrap().lifetime;
        let apart = lifetime.abs_diff(expected);
        assert!(apart < Duration::from_secs(2), "{payload} {told}: {lifetime:?}");
    };
    let for_us = format!(r#"{{"aud":"{AUDIENCE}"}}"#);
    check(&for_us, r#","expires_in":60"#, Duration::from_secs(60));
    check(&for_us, r#","expires_in":999999999"#, MAX_LIFETIME);
    check(&for_us, "", UNTOLD_LIFETIME);
    let in_ten_minutes = crate::recorder::now().0 / 1_000 + 600;
    let ending = format!(r#"{{"aud":"{AUDIENCE}","exp":{in_ten_minutes}}}"#);
    check(&ending, "", Duration::from_secs(600));
    // The authorization server's clock may be wrong; the token's lifetime is given in seconds from
    // now.
    let skewed = format!(r#"{{"aud":"{AUDIENCE}","exp":{}}}"#, in_ten_minutes - 1_200);
    check(&skewed, r#","expires_in":600"#, Duration::from_secs(600));
}

#[test]
fn of_an_error_only_its_code_is_shown() {
    assert_eq!(error_code(br#"{"error":"invalid_grant"}"#).as_deref(), Some("invalid_grant"));
    for body in [r#"{"error":"subject a.b.C is bad"}"#, r#"{"error":7}"#, "{}", "<html>"] {
        assert_eq!(error_code(body.as_bytes()), None, "{body}");
    }
    assert!(error_code(format!(r#"{{"error":"{}"}}"#, "a".repeat(64)).as_bytes()).is_some());
    assert!(error_code(format!(r#"{{"error":"{}"}}"#, "a".repeat(65)).as_bytes()).is_none());
}

#[test]
fn settings_become_a_chain_of_one_grant() {
    let text = format!(
        "[[server]]\nid = \"a\"\nurl = \"https://a.example/mcp\"\ncredentials = {{ mode = \"exchange\", token_endpoint = \"https://idp.example/token\", audience = \"{AUDIENCE}\", client = \"env:C\" }}\n"
    );
    let settings = settings::gateway::GatewaySettings::read(&text, std::path::Path::new("/"));
    let settings = settings.unwrap();
    let settings::gateway::Reach::Url(reached) = &settings.servers.values().next().unwrap().reach
    else {
        panic!()
    };
    let Credentials::Grant(grant) = &reached.credentials else { panic!() };
    let chain = GrantChain::of(grant, &SecretReader::default()).unwrap();
    assert_eq!(chain.steps.len(), 1);
    assert_eq!(chain.steps[0].grant, Grant::Exchange);
}
