//! Signing in with a browser: to the gateway, through it, and to servers.

use super::*;

const CLIENT: &str = "client = \"env:OIDC_CLIENT\"\n";
const PROXY: &str = "[oauth_proxy]\nclient_hosts = [\"claude.ai\"]\n[[oauth_proxy.client]]\nid = \"editor\"\nname = \"Editor\"\nredirect_uris = [\"http://127.0.0.1/callback\", \"https://editor.example.com/cb\"]\n";

fn with_proxy() -> String {
    format!("{ISSUER}{CLIENT}{PROXY}")
}

#[test]
fn a_proxy_names_its_issuer_and_its_clients() {
    let settings = read(&with_proxy());
    let sign_in = settings.auth.issuers[0].sign_in.as_ref().unwrap();
    assert_eq!(sign_in.client, SecretName::Env("OIDC_CLIENT".to_owned()));
    assert_eq!(sign_in.scopes, ["openid"]);
    let proxy = settings.oauth_proxy.unwrap();
    assert_eq!(proxy.issuer, "https://idp.example.com");
    assert_eq!((proxy.access_seconds, proxy.refresh_seconds), (600, 30 * 86_400));
    assert_eq!(proxy.consent_seconds, 90 * 86_400);
    let client = &proxy.clients["editor"];
    assert_eq!((client.name.as_str(), client.redirect_uris.len()), ("Editor", 2));
    assert!(proxy.client_hosts.allow("claude.ai"));
    assert!(!proxy.client_hosts.allow("evil.claude.ai") && !proxy.client_hosts.allow("ai"));
    assert!(read(ISSUER).oauth_proxy.is_none());
    let any = read(&with_proxy().replace("[\"claude.ai\"]", "[\"*\"]")).oauth_proxy.unwrap();
    assert_eq!(any.client_hosts, ClientHosts::Any);
}

#[test]
fn a_proxy_without_a_way_to_sign_in_or_without_clients_is_refused() {
    let good = with_proxy();
    twins(&good, CLIENT, "", "set `client` on the `[[auth.issuer]]`");
    twins(
        &good,
        "[oauth_proxy]\n",
        "[oauth_proxy]\nissuer = \"https://other.example\"\n",
        "is not configured",
    );
    let second = ISSUER.replace("idp.example.com", "other.example.com");
    twins(
        &good,
        "[oauth_proxy]\n",
        &format!("{second}{CLIENT}[oauth_proxy]\n"),
        "several issuers have a `client`",
    );
    let named =
        good.replace("[oauth_proxy]\n", "[oauth_proxy]\nissuer = \"https://idp.example.com\"\n");
    let both = named.replace("[oauth_proxy]\n", &format!("{second}[oauth_proxy]\n"));
    twins(
        &both,
        "issuer = \"https://idp.example.com\"\nclient_hosts",
        "issuer = \"https://other.example.com\"\nclient_hosts",
        "has no `client`",
    );
    let only_hosts = format!("{ISSUER}{CLIENT}[oauth_proxy]\nclient_hosts = [\"claude.ai\"]\n");
    twins(&only_hosts, "client_hosts = [\"claude.ai\"]\n", "", "no client could sign in");
}

#[test]
fn redirect_uris_and_hosts_of_clients_are_exact() {
    let good = with_proxy();
    for (old, new, expected) in [
        ("https://editor.example.com/cb", "https://*.example.com/cb", "`*` is not accepted"),
        ("https://editor.example.com/cb", "http://editor.example.com/cb", "use `https://`"),
        ("https://editor.example.com/cb", "https://editor.example.com/cb#x", "no fragment"),
        ("https://editor.example.com/cb", "javascript:alert(1)", "does not lead to an application"),
        ("\"claude.ai\"", "\"https://claude.ai\"", "type a host"),
        ("\"claude.ai\"", "\"*.claude.ai\"", "type a host"),
        ("\"editor\"", "\"https://editor.example.com/c\"", "ids that are URLs"),
    ] {
        twins(&good, old, new, expected);
    }
    let uris = "[\"http://127.0.0.1/callback\", \"https://editor.example.com/cb\"]";
    twins(&good, uris, "[]", "list 1 to 64 addresses");
    let many = |count: usize| {
        let all: Vec<String> =
            (0..count).map(|number| format!("\"https://a.example/{number}\"")).collect();
        good.replace(uris, &format!("[{}]", all.join(",")))
    };
    read(&many(MAX_REDIRECT_URIS));
    assert!(mistakes(&many(MAX_REDIRECT_URIS + 1))[0].contains("list 1 to 64"));
    let twice =
        format!("{good}[[oauth_proxy.client]]\nid = \"other\"\nredirect_uris = [\"a.b:/c\"]\n");
    twins(&twice, "\"other\"", "\"editor\"", "configured twice");
}

#[test]
fn people_sign_in_to_a_server_only_where_they_can_sign_in_to_the_gateway() {
    let user = "credentials = { mode = \"user\", scopes = [\"read\"] }\n";
    let good = format!("{ISSUER}{CLIENT}{ISSUES}{user}");
    let settings = read(&good);
    let server = &settings.servers[&id("issues")];
    assert!(!server.has_own_credentials());
    assert_eq!(settings.recheck_interval(server), None);
    let Reach::Url(reached) = &server.reach else { panic!("no URL") };
    let Credentials::User(grant) = &reached.credentials else { panic!("another mode") };
    assert_eq!((grant.scopes.as_slice(), grant.register), (["read".to_owned()].as_slice(), true));
    twins(&good, CLIENT, "", "set `client` on an `[[auth.issuer]]`");
    twins(&good, "scopes = [\"read\"]", "audience = \"x\"", "does not belong to this mode");
    twins(&good, "\"read\"", "\"read all\"", "each one word");
    twins(ISSUER, "audience", "sign_in_scopes = [\"profile\"]\naudience", "which is not set");
}
