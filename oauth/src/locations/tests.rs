use super::*;

fn resource(url: &str) -> ResourceUrl {
    ResourceUrl::new(&url.parse().unwrap()).unwrap()
}

#[test]
fn metadata_of_a_resource_is_looked_for_at_its_path_and_at_the_root() {
    let places = resource("https://a.example:8443/x/mcp?k=v").metadata();
    assert_eq!(
        places,
        [
            "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp",
            "https://a.example:8443/.well-known/oauth-protected-resource",
        ]
    );
    assert_eq!(
        resource("https://a.example/").metadata(),
        ["https://a.example/.well-known/oauth-protected-resource"]
    );
}

#[test]
fn metadata_of_an_issuer_is_looked_for_in_three_places() {
    assert_eq!(
        of_issuer("https://a.example/t/1").unwrap(),
        [
            "https://a.example/.well-known/oauth-authorization-server/t/1",
            "https://a.example/.well-known/openid-configuration/t/1",
            "https://a.example/t/1/.well-known/openid-configuration",
        ]
    );
    assert_eq!(of_issuer("https://a.example/").unwrap().len(), 2);
    assert!(of_issuer("https://a.example/?x").is_err());
    assert!(of_issuer("https://user@a.example").is_err());
}

#[test]
fn the_identifier_has_no_query_and_no_lone_slash() {
    assert_eq!(resource("https://A.example/").identifier(), "https://a.example");
    assert_eq!(resource("https://a.example/mcp/?x=1").identifier(), "https://a.example/mcp/");
}

#[test]
fn a_document_speaks_for_the_server_itself_or_for_the_parent_at_whose_place_it_lies() {
    let own = resource("https://a.example/tenant/mcp");
    let elsewhere = "https://a.example/anything";
    assert!(own.is_named_by("https://a.example/tenant/mcp", elsewhere));
    assert!(own.is_named_by("https://a.example:443/tenant/mcp/", elsewhere));
    let root = "https://a.example/.well-known/oauth-protected-resource";
    assert!(own.is_named_by("https://a.example", root));
    assert!(own.is_named_by("https://a.example/tenant", &format!("{root}/tenant")));
    // A tenant must not request tokens for the whole host, nor for another tenant.
    assert!(!own.is_named_by("https://a.example", elsewhere));
    assert!(!own.is_named_by("https://a.example", &format!("{root}/tenant/mcp")));
    assert!(!own.is_named_by("https://a.example/other", &format!("{root}/other")));
    assert!(!own.is_named_by("https://a.example/ten", &format!("{root}/ten")));
    assert!(!own.is_named_by("https://b.example/tenant/mcp", elsewhere));
    assert!(!own.is_named_by("http://a.example/tenant/mcp", elsewhere));
    assert!(!own.is_named_by("https://a.example/tenant/mcp?as=other", elsewhere));
    assert!(!own.is_named_by("a.example", elsewhere));
}

#[test]
fn metadata_of_a_remote_server_names_no_address_on_this_machine() {
    let remote = resource("https://a.example/mcp");
    assert!(remote.named("x", "https://b.example/token").is_ok());
    for inward in [
        "http://b.example/token",
        "https://localhost/token",
        "http://127.0.0.1:80/token",
        "https://[::1]/token",
        "https://[::ffff:127.0.0.1]/token",
        "https://x.localhost/token",
        "https://2130706433/token",
        "file:///etc/passwd",
        "https://user:pw@b.example/token",
        "https://b.example/token#x",
        "javascript:alert(1)",
        "",
    ] {
        let error = remote.named("x", inward).unwrap_err();
        assert_eq!(error.code(), "bad_address", "{inward}");
    }
    let local = resource("http://127.0.0.1:8080/mcp");
    assert!(local.named("x", "http://localhost:9/token").is_ok());
    assert!(local.named("x", "http://b.example/token").is_err());
}
