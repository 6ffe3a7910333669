use super::*;

fn read(value: &str) -> Option<Challenge> {
    Challenge::read([value.as_bytes()])
}

#[test]
fn the_parameters_of_a_bearer_challenge_are_read() {
    let challenge = read(
        r#"Bearer realm="a, b=\"c\"", resource_metadata="https://a.example/.well-known/x", scope="read  write read", error=invalid_token"#,
    )
    .unwrap();
    assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a.example/.well-known/x"));
    assert_eq!(challenge.scopes, ["read", "write"]);
    assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
    assert!(!challenge.is_dpop);
}

#[test]
fn the_own_challenge_is_found_among_others_and_over_several_headers() {
    for values in [
        vec!["Negotiate", "Basic realm=\"x\", Bearer scope=\"a\""],
        vec!["Negotiate abc==, bearer scope=a"],
        vec!["Basic", "Bearer scope = \"a\""],
        vec!["Bearer", "DPoP algs=\"ES256\", scope=\"a\""],
    ] {
        let challenge = Challenge::read(values.iter().map(|value| value.as_bytes())).unwrap();
        assert_eq!(challenge.scopes, ["a"], "{values:?}");
    }
    assert!(read("DPoP algs=\"ES256\"").unwrap().is_dpop);
    assert_eq!(read("Basic realm=\"x\""), None);
    assert_eq!(read(""), None);
}

#[test]
fn what_two_readers_could_read_differently_is_no_challenge() {
    for value in [
        "Bearer scope=\"a\", scope=\"b\"",
        "Bearer scope=\"a\", SCOPE=\"b\"",
        "Bearer scope=\"a",
        "Bearer scope=\"a\" error=\"b\"",
        "scope=\"a\"",
        "Bearer scope=\"a\u{7f}\"",
        "Bearer scope=\"a\\",
        "Bearer \"a\"",
        "Bearer scope=\"caf\u{e9}\"",
    ] {
        assert_eq!(read(value), None, "{value}");
    }
    assert_eq!(Challenge::read([&b"Bearer realm=\"\xff\""[..]]), None);
}

#[test]
fn what_is_wanted_follows_from_the_status_and_the_error() {
    let wanted = |value: &str, status| read(value).unwrap().wanted(status);
    assert_eq!(wanted("Bearer", 401), Some(Wanted::Token));
    assert_eq!(wanted("DPoP error=\"use_dpop_nonce\"", 401), Some(Wanted::Nonce));
    assert_eq!(wanted("Bearer error=\"insufficient_scope\"", 403), Some(Wanted::MoreScopes));
    assert_eq!(wanted("Bearer error=\"insufficient_scope\"", 401), Some(Wanted::Token));
    assert_eq!(wanted("Bearer", 403), None);
}

#[test]
fn challenges_are_read_up_to_the_limits() {
    let of_length = |length: usize| {
        let beginning = "Bearer realm=\"";
        format!("{beginning}{}\"", "x".repeat(length - beginning.len() - 1))
    };
    assert!(read(&of_length(MAX_CHALLENGE_BYTES)).is_some());
    assert_eq!(read(&of_length(MAX_CHALLENGE_BYTES + 1)), None);
    let with = |count: usize| {
        let all: Vec<String> = (0..count).map(|number| format!("p{number}=x")).collect();
        read(&format!("Bearer {}", all.join(", ")))
    };
    assert!(with(MAX_PARAMETERS).is_some());
    assert_eq!(with(MAX_PARAMETERS + 1), None);
    let scopes_of = |count: usize| {
        let all: Vec<String> = (0..count).map(|number| format!("s{number}")).collect();
        scopes(&all.join(" "))
    };
    assert_eq!(scopes_of(MAX_SCOPES).unwrap().len(), MAX_SCOPES);
    assert_eq!(scopes_of(MAX_SCOPES + 1), None);
}
