use super::*;

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

fn public_url() -> WebOrigin {
    "https://mcp.example.com".parse().unwrap()
}

fn good() -> String {
    format!(
        "response_type=code&client_id=editor&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcb&code_challenge={CHALLENGE}&code_challenge_method=S256&state=s1"
    )
}

fn read(query: &str) -> Result<AuthorizationRequest, SignInRefusal> {
    let form = Form::read(query.as_bytes())?;
    let head = RequestHead::read(&form)?;
    AuthorizationRequest::read(&form, &head, "Editor", &public_url())
}

#[track_caller]
fn refused(query: &str, code: &str) {
    let refusal = read(query).expect_err(query);
    assert_eq!(refusal.code(), code, "{query}: {refusal}");
}

#[test]
fn a_request_is_for_one_path_of_this_gateway() {
    let request = read(&good()).unwrap();
    assert_eq!(request.resource, "https://mcp.example.com/mcp");
    assert_eq!(request.scopes, ["mcp"]);
    for path in ["/mcp", "/servers/files/mcp", "/sets/support/mcp", "/t/acme/mcp"] {
        let asked = format!("https://mcp.example.com{path}");
        let request = read(&format!("{}&resource={asked}", good())).unwrap();
        assert_eq!(request.resource, asked);
    }
    for asked in [
        "https://mcp.example.com/admin",
        "https://mcp.example.com/admin/v1/servers",
        "https://mcp.example.com",
        "https://mcp.example.com.evil.example/mcp",
        "https://mcp.example.com@evil.example/mcp",
        "https://issues.example.com/mcp",
        "https://mcp.example.com/mcp?x=1",
        "https://mcp.example.com/mcp/",
    ] {
        refused(&format!("{}&resource={asked}", good()), "oauth_target");
    }
}

#[test]
fn pkce_cannot_be_left_out_or_weakened() {
    for (old, new) in [
        ("&code_challenge_method=S256", ""),
        ("S256", "plain"),
        ("S256", "s256"),
        (CHALLENGE, "short"),
        (CHALLENGE, VERIFIER_TOO_LONG),
    ] {
        refused(&good().replace(old, new), "oauth_pkce");
    }
    refused(&good().replace(&format!("&code_challenge={CHALLENGE}"), ""), "oauth_pkce");
    assert!(verifies(VERIFIER, CHALLENGE));
    assert!(!verifies(CHALLENGE, CHALLENGE), "the challenge itself is no verifier");
    for verifier in ["", &VERIFIER[..42], &format!("{}!", &VERIFIER[..42]), &"a".repeat(129)] {
        assert!(!verifies(verifier, CHALLENGE), "{verifier}");
    }
}

const VERIFIER_TOO_LONG: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cMA";

#[test]
fn what_is_not_served_is_refused() {
    refused(&good().replace("=code&", "=token&"), "oauth_response_type");
    refused(&format!("{}&response_mode=fragment", good()), "oauth_response_type");
    refused(&format!("{}&scope=admin", good()), "oauth_scope");
    assert!(read(&format!("{}&scope=mcp%20offline_access%20x", good())).is_ok());
    refused(&format!("{}&client_id=other", good()), "oauth_repeated_parameter");
    refused(&good().replace("127.0.0.1", "evil.example"), "oauth_redirect_uri");
    let long = |bytes: usize| good().replace("state=s1", &format!("state={}", "x".repeat(bytes)));
    assert!(read(&long(MAX_STATE_BYTES)).is_ok());
    refused(&long(MAX_STATE_BYTES + 1), "oauth_bad_request");
}

#[test]
fn an_answer_keeps_the_redirect_address_and_names_who_answers() {
    let mut request = read(&good()).unwrap();
    assert_eq!(
        request.answer(&public_url(), &[("code", "c 1")]),
        "http://127.0.0.1:9/cb?code=c+1&iss=https%3A%2F%2Fmcp.example.com&state=s1"
    );
    request.redirect_uri = "https://app.example.com/cb?x=1".to_owned();
    request.state = None;
    assert_eq!(
        request.answer(&public_url(), &[("error", "access_denied")]),
        "https://app.example.com/cb?x=1&error=access_denied&iss=https%3A%2F%2Fmcp.example.com"
    );
}
