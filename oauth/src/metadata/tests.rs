use super::*;

fn resource() -> ResourceUrl {
    ResourceUrl::new(&"https://a.example/mcp".parse().unwrap()).unwrap()
}

fn sound() -> ServerMetadata {
    ServerMetadata::read(
        br#"{"issuer":"https://as.example","authorization_endpoint":"https://as.example/auth",
            "token_endpoint":"https://as.example/token","code_challenge_methods_supported":["plain","S256"],
            "grant_types_supported":["authorization_code"],"unknown":{"a":[1]}}"#,
    )
    .unwrap()
}

fn refused(change: impl FnOnce(&mut ServerMetadata)) -> &'static str {
    let mut metadata = sound();
    change(&mut metadata);
    metadata.check("https://as.example", &resource()).unwrap_err().code()
}

#[test]
fn a_sound_document_is_taken() {
    assert!(sound().check("https://as.example", &resource()).is_ok());
}

#[test]
fn a_document_of_another_issuer_is_refused_also_where_only_a_slash_differs() {
    for issuer in ["https://as.example/", "https://AS.example", "https://evil.example"] {
        let error = sound().check(issuer, &resource()).unwrap_err();
        assert_eq!(error.code(), "metadata_issuer_mismatch", "{issuer}");
    }
}

#[test]
fn without_s256_there_is_no_sign_in() {
    assert_eq!(refused(|metadata| metadata.challenge_methods = vec!["plain".into()]), "no_pkce");
    assert_eq!(refused(|metadata| metadata.challenge_methods = Vec::new()), "no_pkce");
}

#[test]
fn endpoints_that_point_inward_or_are_not_encrypted_are_refused() {
    let inward = "http://127.0.0.1/latest";
    let plain = "http://as.example/token";
    assert_eq!(refused(|metadata| metadata.token_endpoint = inward.into()), "bad_address");
    assert_eq!(refused(|metadata| metadata.token_endpoint = plain.into()), "bad_address");
    assert_eq!(refused(|metadata| metadata.authorization_endpoint = plain.into()), "bad_address");
    assert_eq!(
        refused(|metadata| metadata.registration_endpoint = Some(inward.into())),
        "bad_address"
    );
    assert_eq!(
        refused(|metadata| metadata.revocation_endpoint = Some(inward.into())),
        "bad_address"
    );
}

#[test]
fn a_server_without_the_code_grant_is_refused() {
    assert_eq!(
        refused(|metadata| metadata.grant_types = Some(vec!["client_credentials".into()])),
        "no_code_grant"
    );
}

#[test]
fn a_document_that_could_be_read_in_two_ways_is_not_read() {
    for text in [
        r#"{"issuer":"a","issuer":"b","authorization_endpoint":"x","token_endpoint":"y"}"#,
        r#"{"issuer":7,"authorization_endpoint":"x","token_endpoint":"y"}"#,
        r#"{"issuer":"a","authorization_endpoint":"x"}"#,
        r#"{"issuer":"a","authorization_endpoint":"x","token_endpoint":"y","scopes_supported":"s"}"#,
        r#"{"issuer":"a","authorization_endpoint":"x","token_endpoint":"y","client_id_metadata_document_supported":"true"}"#,
        "[]",
        "",
    ] {
        assert!(ServerMetadata::read(text.as_bytes()).is_err(), "{text}");
    }
    assert!(ResourceMetadata::read(br#"{"resource":"a","resource":"b"}"#).is_err());
    assert!(ResourceMetadata::read(br#"{"authorization_servers":["a"]}"#).is_err());
}

#[test]
fn lists_are_read_up_to_the_limit() {
    let with = |count: usize| {
        let all = vec!["\"https://as.example\""; count].join(",");
        ResourceMetadata::read(
            format!(r#"{{"resource":"https://a.example","authorization_servers":[{all}]}}"#)
                .as_bytes(),
        )
    };
    assert_eq!(with(100).unwrap().authorization_servers.len(), 100);
    assert!(with(101).is_err());
}

#[test]
fn scopes_come_from_the_challenge_then_from_the_resource() {
    let listed = ResourceMetadata { scopes: vec!["b".into()], ..ResourceMetadata::default() };
    let server = sound();
    assert_eq!(scopes_to_ask(&["a".into()], Some(&listed), &server), ["a"]);
    assert_eq!(scopes_to_ask(&[], Some(&listed), &server), ["b"]);
    assert!(scopes_to_ask(&[], None, &server).is_empty());
    let offline = ServerMetadata { scopes: vec!["offline_access".into()], ..server };
    assert_eq!(scopes_to_ask(&[], Some(&listed), &offline), ["b", "offline_access"]);
}
