mod sign_in;

use super::*;
use crate::Sandbox;
use crate::secret::SecretName;
use policy::{Risk, Trust};

const FOLDER: &str = "/etc/holdpoint";

fn read(text: &str) -> GatewaySettings {
    GatewaySettings::read(text, Path::new(FOLDER)).unwrap_or_else(|mistakes| {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("refused: {text}\n{}", mistakes.join("\n"))
    })
}

fn mistakes(text: &str) -> Vec<String> {
    let refused = GatewaySettings::read(text, Path::new(FOLDER)).unwrap_err();
    refused.iter().map(ToString::to_string).collect()
}

/// Checks that the file is accepted, and refused with exactly one mistake once `old` is replaced by
/// `new`.
#[track_caller]
fn twins(good: &str, old: &str, new: &str, expected: &str) {
    read(good);
    assert!(good.contains(old), "{old}");
    let found = mistakes(&good.replace(old, new));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains(expected), "{}\n  does not contain\n{expected}", found[0]);
}

const FILES: &str =
    "[[server]]\nid = \"files\"\ntrust = \"internal\"\ncommand = [\"files-server\", \"/srv\"]\n";
const ISSUES: &str =
    "[[server]]\nid = \"issues\"\ntrust = \"verified\"\nurl = \"https://issues.example.com/mcp\"\n";
const ISSUER: &str = "[[auth.issuer]]\nissuer = \"https://idp.example.com\"\naudience = \"https://mcp.example.com\"\njwks_uri = \"https://idp.example.com/jwks\"\n";
const PUBLIC: &str = "[gateway]\nlisten = \"0.0.0.0:8420\"\npublic_url = \"https://mcp.example.com\"\ntls = { cert = \"file:c.pem\", key = \"file:k.pem\" }\n[auth.keys]\nenabled = true\n";

fn id(text: &str) -> ServerId {
    text.parse().unwrap()
}

#[test]
fn an_empty_file_listens_on_loopback_and_warns_that_nothing_works() {
    let settings = read("");
    assert_eq!(settings.front.listen.to_string(), "127.0.0.1:8420");
    assert_eq!(settings.front.public_url.as_str(), "http://127.0.0.1:8420");
    assert_eq!(settings.front.limits.body_bytes, 4_194_304);
    assert_eq!(settings.front.limits.call_max_seconds, 600);
    assert_eq!(settings.store_loss, StoreLoss::Refuse);
    assert_eq!(settings.warnings().len(), 3, "{:?}", settings.warnings());
    assert!(settings.warnings()[0].contains("every request is refused"));
    let complete =
        read(&format!("[auth.keys]\nenabled = true\n[policy]\nfiles = [\"p.cedar\"]\n{FILES}"));
    assert_eq!(complete.warnings(), Vec::<String>::new());
}

#[test]
fn a_server_has_the_cautious_defaults() {
    let settings = read("[[server]]\nid = \"x\"\nurl = \"https://x.example.com/mcp\"\n");
    let server = &settings.servers[&id("x")];
    assert_eq!((server.trust, server.risk), (Trust::Unknown, Risk::High));
    assert_eq!(server.allowed_tools, None);
    assert!(server.serves(None) && server.serves(Some("acme")));
    let Reach::Url(url) = &server.reach else { panic!() };
    assert!(!url.allow_private);
    assert_eq!(url.credentials, Credentials::None);
    let settings = read(FILES);
    let Reach::Command(command) = &settings.servers[&id("files")].reach else { panic!() };
    assert_eq!(command.instance, Instance::Principal);
    assert_eq!((command.max_instances, command.idle_seconds), (50, 300));
}

#[test]
fn what_is_written_is_what_is_read() {
    let settings = read(&format!(
        "{PUBLIC}{ISSUER}actor_type_claim = \"actor\"\n[policy]\nfiles = [\"policies/*.cedar\", \"/abs/a.cedar\"]\nentities = \"entities.json\"\n\
         {FILES}risk = \"medium\"\ntool_risk = {{ write_file = \"critical\" }}\norgs = [\"acme\"]\nenv = {{ TOKEN = \"file:token\" }}\ninstance = \"shared\"\n\
         {ISSUES}credentials = {{ mode = \"vault\", secret = \"env:T\" }}\nheaders = {{ X-Team = \"env:TEAM\" }}\nforward_headers = [\"X-Request-Id\"]\nnames = {{ search = \"find\" }}\n\
         [[toolset]]\nid = \"support\"\ntools = [\"issues__search\", \"files__a__b\"]\n"
    ));
    assert_eq!(settings.policy.files, ["/etc/holdpoint/policies/*.cedar", "/abs/a.cedar"]);
    assert_eq!(
        settings.policy.entities.as_deref(),
        Some(Path::new("/etc/holdpoint/entities.json"))
    );
    let Transport::Tls { cert, client_ca, .. } = &settings.front.transport else { panic!() };
    assert_eq!(*cert, SecretName::File("/etc/holdpoint/c.pem".to_owned()));
    assert_eq!(*client_ca, None);
    let issuer = &settings.auth.issuers[0];
    assert_eq!(issuer.issuer, "https://idp.example.com");
    assert_eq!(issuer.claims.actor_type.as_deref(), Some("actor"));
    assert_eq!(issuer.claims.groups, None);
    let files = &settings.servers[&id("files")];
    assert_eq!(files.risk_of("write_file"), Risk::Critical);
    assert_eq!(files.risk_of("read_file"), Risk::Medium);
    assert!(files.serves(Some("acme")));
    assert!(!files.serves(Some("other")) && !files.serves(None));
    let Reach::Command(command) = &files.reach else { panic!() };
    assert_eq!(command.env["TOKEN"], SecretName::File("/etc/holdpoint/token".to_owned()));
    let issues = &settings.servers[&id("issues")];
    assert_eq!(issues.shown_name("search"), "issues__find");
    assert_eq!(issues.shown_name("close"), "issues__close");
    let Reach::Url(url) = &issues.reach else { panic!() };
    let secret = SecretName::Env("T".to_owned());
    let (header, scheme) = ("Authorization".to_owned(), Some("Bearer".to_owned()));
    assert_eq!(url.credentials, Credentials::Secret { secret, header, scheme });
    assert!(url.forward_headers.contains("x-request-id"));
    let support = &settings.toolsets[&id("support")];
    assert!(support.tools[&id("files")].contains("a__b"));
}

#[test]
fn a_public_address_needs_tls_and_authentication() {
    let tls = "tls = { cert = \"file:c.pem\", key = \"file:k.pem\" }\n";
    twins(PUBLIC, tls, "", "would cross the network in clear");
    twins(PUBLIC, "enabled = true", "enabled = false", "no caller could prove who it is");
    twins(PUBLIC, "public_url = \"https://mcp.example.com\"\n", "", "tokens are issued for it");
    let proxied = PUBLIC.replace(tls, "tls = { terminated_by = [\"10.0.0.0/8\"] }\n");
    twins(&proxied, "[\"10.0.0.0/8\"]", "[]", "name the proxies");
    twins(&proxied, "10.0.0.0/8", "10.0.0.0/99", "type an address or a range");
    let by_certificate = PUBLIC
        .replace("enabled = true", "enabled = false")
        .replace("key = \"file:k.pem\" }", "key = \"file:k.pem\", client_ca = \"file:ca.pem\" }");
    assert!(read(&by_certificate).front.has_client_ca());
    let by_issuer = format!("{}{ISSUER}", PUBLIC.replace("enabled = true", "enabled = false"));
    read(&by_issuer);
    let admin = "[gateway]\nadmin_listen = \"127.0.0.1:8421\"\n[auth.keys]\nenabled = true\n";
    twins(admin, "127.0.0.1", "10.0.0.4", "`gateway.admin_listen`: 10.0.0.4:8421 can be reached");
    // Metrics contain no tool names or arguments, so an operator may publish them.
    read("[gateway]\nmetrics_listen = \"10.0.0.4:9100\"\n");
}

#[test]
fn tls_is_whole_or_not_there() {
    twins(PUBLIC, ", key = \"file:k.pem\"", "", "`gateway.tls.key`: missing");
    twins(PUBLIC, "cert = \"file:c.pem\", ", "", "`gateway.tls.cert`: missing");
    let both = "key = \"file:k.pem\", terminated_by = [\"10.0.0.1\"]";
    twins(PUBLIC, "key = \"file:k.pem\"", both, "either a proxy ends TLS or the gateway does");
    twins(PUBLIC, "file:k.pem", "vault:kv/tls#key", "is read before Vault can be reached");
    twins(PUBLIC, "file:k.pem", "-----BEGIN PRIVATE KEY-----", "cannot be given directly");
}

#[test]
fn addresses_and_urls_are_of_the_right_form() {
    let good = "[gateway]\nlisten = \"127.0.0.1:8420\"\nadmin_listen = \"127.0.0.1:8421\"\npublic_url = \"https://mcp.example.com\"\nallowed_origins = [\"https://app.example.com\"]\n";
    twins(good, "\"127.0.0.1:8420\"", "\"localhost\"", "type an IP address and a port");
    twins(good, "8421", "8420", "is `gateway.listen` already");
    twins(good, "https://mcp", "http://mcp", "`gateway.public_url`: use `https://`");
    twins(good, "mcp.example.com", "mcp.example.com/path", "remove the path");
    twins(good, "https://app.example.com", "*", "without `*`");
    read("[gateway]\npublic_url = \"http://localhost:8420\"\n");
    let good = "[gateway]\npeer_listen = \"10.0.0.4:8422\"\npeer_address = \"node-1:8422\"\n";
    twins(good, "10.0.0.4:8422", "127.0.0.1:8420", "is `gateway.listen` already");
    twins(good, "node-1:8422", "node-1", "`gateway.peer_address`: type a host and a port");
    twins(good, "peer_listen = \"10.0.0.4:8422\"", "", "counts only with `peer_listen`");
    let good = "[gateway]\npeer_listen = \"10.0.0.4:8422\"\n";
    twins(good, "10.0.0.4", "0.0.0.0", "set `gateway.peer_address`");
}

#[test]
fn limits_and_store_are_checked() {
    let good = "[gateway]\nstore = \"postgres://ada@db.example.com/hp\"\nstore_loss = \"continue:30\"\nlimits = { body_bytes = 4096, call_timeout_seconds = 10, call_max_seconds = 20 }\n";
    assert!(read(good).warnings().iter().any(|warning| warning.contains("30 seconds")));
    twins(good, "4096", "1", "expected a whole number from 1024");
    twins(
        good,
        "call_max_seconds = 20",
        "call_max_seconds = 5",
        "shorter than `call_timeout_seconds`",
    );
    twins(good, "ada@", "ada:s3cret@", "a password does not belong here");
    assert!(!mistakes(&good.replace("ada@", "ada:s3cret@"))[0].contains("s3cret"));
    twins(good, "postgres://ada@db.example.com/hp", "mysql://x", "type `sqlite`");
    twins(good, "continue:30", "continue:forever", "type `refuse`");
    twins("[gateway]\nstore = \"sqlite\"\n", "sqlite", "sqlite:/srv/home", "named with `--home`");
    let relative = read("[gateway]\nstore = \"file:address\"\n");
    assert_eq!(relative.store.as_deref(), Some("file:/etc/holdpoint/address"));
}

#[test]
fn issuers_are_secure_named_once_and_have_an_audience_of_their_own() {
    let good = format!("{PUBLIC}{ISSUER}groups_claim = \"groups\"\n");
    twins(&good, "https://idp.example.com/jwks", "http://idp.example.com/jwks", "use `https://`");
    twins(&good, "issuer = \"https://idp", "issuer = \"http://idp", "`auth.issuer[0].issuer`: use");
    read(&good.replace("https://idp.example.com", "http://127.0.0.1:9000"));
    twins(
        &good,
        "audience = \"https://mcp.example.com\"\n",
        "",
        "a token that was issued for another service",
    );
    twins(
        &good,
        "audience = \"https://mcp.example.com\"",
        "audience = \"https://mcp.example.com/admin\"",
        "must not open an MCP path",
    );
    twins(&good, "jwks_uri = \"https://idp.example.com/jwks\"\n", "", "jwks_uri`: missing");
    twins(&good, "\"groups\"", "\"sub\"", "`sub` has a meaning of its own");
    twins(&good, ISSUER, &format!("{ISSUER}{ISSUER}"), "configured twice");
}

#[test]
fn ids_are_valid_unique_and_leave_the_separator_alone() {
    twins(FILES, "\"files\"", "\"my__files\"", "not a server id");
    twins(FILES, "\"files\"", "\"files_\"", "ends in `_`");
    twins(FILES, "\"files\"", "\"Files\"", "not a server id");
    twins(FILES, "id = \"files\"\n", "", "`server[0].id`: missing");
    let two = format!("{FILES}{}", FILES.replace("\"files\"", "\"more\""));
    twins(&two, "\"more\"", "\"files\"", "another server has this id");
}

#[test]
fn a_server_is_reached_in_exactly_one_way() {
    let command = "command = [\"files-server\", \"/srv\"]\n";
    twins(FILES, command, "", "`server.files`: has neither `command` nor `url`");
    let both = format!("{command}url = \"https://x.example.com/mcp\"\n");
    twins(FILES, command, &both, "remove one of them");
    twins(FILES, "[\"files-server\", \"/srv\"]", "[]", "names no program");
    twins(FILES, "[\"files-server\", \"/srv\"]", "\"files-server\"", "`server.files.command`: ");
    twins(ISSUES, "https://issues", "http://issues", "use `https://`");
    read(&ISSUES.replace("https://issues.example.com", "http://127.0.0.1:9"));
    twins(FILES, command, &format!("{command}allow_private = true\n"), "servers with a `url`");
    twins(
        FILES,
        command,
        &format!("{command}credentials = {{ mode = \"none\" }}\n"),
        "servers with a `url`",
    );
    twins(ISSUES, "trust", "env = { T = \"env:T\" }\ntrust", "servers with a `command`");
    twins(ISSUES, "trust", "instance = \"shared\"\ntrust", "servers with a `command`");
    twins(ISSUES, "trust", "danger_unconfined = true\ntrust", "servers with a `command`");
}

#[test]
fn a_command_without_trust_is_confined_unless_the_operator_says_otherwise() {
    let sandbox = |text: &str| match &read(text).servers[&id("files")].reach {
        Reach::Command(command) => command.sandbox.as_deref().cloned(),
        Reach::Url(_) => unreachable!("it has a command"),
    };
    for trust in ["community", "unknown"] {
        let confined = FILES.replace("\"internal\"", &format!("\"{trust}\""));
        assert_eq!(sandbox(&confined), Some(Sandbox::default()), "{trust}");
        let open = format!("\"{trust}\"\ndanger_unconfined = true");
        let open = FILES.replace("\"internal\"", &open);
        assert_eq!(sandbox(&open), None, "{trust}");
        assert!(read(&open).warnings().iter().any(|warning| warning.contains("unconfined")));
    }
    assert_eq!(sandbox(&FILES.replace("trust = \"internal\"\n", "")), Some(Sandbox::default()));
    assert_eq!(sandbox(FILES), None);
    let asked = "\"internal\"\nsandbox = { fs = \"read_only\" }";
    let asked = sandbox(&FILES.replace("\"internal\"", asked)).unwrap();
    assert_eq!(asked.files(), sandbox::FilePolicy::ReadOnly);
    read(&ISSUES.replace("verified", "unknown"));
    // An invalid trust value is one mistake, not two.
    twins(FILES, "\"internal\"", "\"inhouse\"", "`inhouse` is not one of internal, verified");
}

#[test]
fn a_sandbox_that_contradicts_itself_is_refused() {
    let with = |line: &str| format!("trust = \"internal\"\n{line}\n");
    for (line, expected) in [
        ("sandbox = { net = \"block_all\", net_allow = [\"a.example\"] }", "allows none"),
        ("sandbox = { fs = \"everything\" }", "`everything` is not one of workspace_only"),
        ("sandbox = { net_allow = [\"*\"] }", "`*` is not the name of a host"),
        ("sandbox = { workspace = \"work\" }", "`work` is not an absolute path"),
        ("sandbox = { requird = true }", "did you mean `server.sandbox.required`?"),
        ("sandbox = {}\ndanger_unconfined = true", "`sandbox` asks for one"),
    ] {
        twins(FILES, "trust = \"internal\"\n", &with(line), expected);
    }
    twins(ISSUES, "trust", "sandbox = {}\ntrust", "servers with a `command`");
}

#[test]
fn what_this_version_lacks_is_refused_and_not_ignored() {
    let with = |line: &str| format!("trust = \"internal\"\n{line}\n");
    let line = with("env = { T = \"keyring:files\" }");
    let expected = "`keyring:` is not available in this version";
    twins(FILES, "trust = \"internal\"\n", &line, expected);
    twins("", "", "[egress]\nproxy = \"http://proxy:3128\"\n", "not available in this version");
}

#[test]
fn preflight_rules_say_all_that_they_need() {
    let good = FILES.replace(
        "trust = \"internal\"\n",
        "trust = \"internal\"\npreflight = { unknown_fields = \"allow\", path_args = [\"path\", \"/edits/*/path\"], workspace = \"/srv/work\", url_args = [\"url\"], net_allow = [\"*.example.com\"], rate = \"60/min\", quota = \"1000/day\", per = \"principal-tool\" }\n",
    );
    let preflight = read(&good).servers[&id("files")].preflight.clone();
    let (places, workspace) = preflight.paths().unwrap();
    assert_eq!((places.len(), workspace.as_str()), (2, "/srv/work"));
    assert_eq!(preflight.urls().unwrap().1.len(), 1);
    assert_eq!(preflight.throttle().unwrap().quota.unwrap().calls, 1_000);
    twins(&good, ", workspace = \"/srv/work\"", "", "preflight.workspace`: missing");
    twins(&good, ", net_allow = [\"*.example.com\"]", "", "preflight.net_allow`: missing");
    twins(
        &good,
        "path_args = [\"path\", \"/edits/*/path\"], ",
        "",
        "preflight.path_args`: missing",
    );
    twins(&good, "\"/srv/work\"", "\"/\"", "a folder below `/`");
    twins(&good, "*.example.com", "*.com", "`*` stands for the names below");
    twins(&good, "60/min", "60/day", "such as `60/min`");
    twins(&good, "1000/day", "1000/hour", "such as `1000/day`");
    twins(&good, "rate = \"60/min\", quota = \"1000/day\", ", "", "set one of them, or remove it");
    twins(&good, "unknown_fields", "schema = true, unknown_fields", "a gateway always checks");
}

#[test]
fn credentials_say_what_is_sent() {
    let good = format!(
        "{ISSUES}headers = {{ X-Team = \"env:T\" }}\ncredentials = {{ mode = \"vault\", secret = \"env:T\", header = \"X-Api-Key\", scheme = \"\" }}\n"
    );
    let Reach::Url(url) = &read(&good).servers[&id("issues")].reach.clone() else { panic!() };
    let Credentials::Secret { header, scheme, .. } = &url.credentials else { panic!() };
    assert_eq!((header.as_str(), scheme), ("X-Api-Key", &None));
    twins(&good, ", secret = \"env:T\"", "", "credentials.secret`: missing");
    twins(&good, "\"env:T\", header", "\"s3cret\", header", "cannot be given directly");
    twins(&good, "X-Api-Key", "Host", "cannot carry a secret");
    twins(&good, "X-Api-Key", "X-Team", "set by `credentials` already");
    twins(&good, "scheme = \"\"", "scheme = \"a b\"", "is not one word");
    twins(&good, "mode = \"vault\", ", "", "credentials.mode`: missing");
    twins(&good, "scheme = \"\"", "audience = \"x\"", "does not belong to this mode");
    twins(&good, "\"vault\"", "\"none\"", "`none` sends nothing");
    twins(&good, "{ X-Team", "{ Mcp-Session-Id", "is not a header's name that can be set");
}

#[test]
fn a_token_is_asked_for_at_an_endpoint_for_one_audience() {
    let good = format!(
        "{ISSUES}credentials = {{ mode = \"exchange\", token_endpoint = \"https://idp.example.com/token\", audience = \"https://issues.example.com/mcp\", scopes = [\"read\"], client = \"env:CLIENT\" }}\n"
    );
    let Reach::Url(url) = &read(&good).servers[&id("issues")].reach.clone() else { panic!() };
    let Credentials::Grant(grant) = &url.credentials else { panic!() };
    assert_eq!(
        (grant.kind, grant.scopes.as_slice()),
        (GrantKind::Exchange, &["read".to_owned()][..])
    );
    assert!(url.credentials.is_per_caller());
    let own = read(&good.replace("\"exchange\"", "\"client_credentials\""));
    let Reach::Url(url) = &own.servers[&id("issues")].reach else { panic!() };
    assert!(!url.credentials.is_per_caller());
    let endpoint = ", token_endpoint = \"https://idp.example.com/token\"";
    twins(&good, endpoint, "", "credentials.token_endpoint`: missing");
    twins(&good, "https://idp", "http://idp", "use `https://`");
    let audience = ", audience = \"https://issues.example.com/mcp\"";
    twins(&good, audience, "", "credentials.audience`: missing");
    twins(&good, ", client = \"env:CLIENT\"", "", "credentials.client`: missing");
    twins(&good, "env:CLIENT", "id:secret", "cannot be given directly");
    twins(&good, "[\"read\"]", "[\"a b\"]", "each one word");
    twins(
        &good,
        "client =",
        "secret = \"env:T\", client =",
        "secret`: does not belong to this mode",
    );
    let many = |count: usize| format!("[{}]", vec!["\"s\""; count].join(", "));
    let most = good.replace("[\"read\"]", &many(64));
    twins(&most, &many(64), &many(65), "at most 64 scopes");
}

#[test]
fn a_bound_token_is_for_the_servers_url_unless_another_audience_is_named() {
    let audience = |text: &str| {
        let Reach::Url(url) = &read(text).servers[&id("issues")].reach.clone() else { panic!() };
        let Credentials::Bound { audience } = &url.credentials else { panic!() };
        audience.clone()
    };
    let plain = format!("{ISSUES}credentials = {{ mode = \"bound\" }}\n");
    assert_eq!(audience(&plain), "https://issues.example.com/mcp");
    let named = plain.replace("\"bound\"", "\"bound\", audience = \"api://issues\"");
    assert_eq!(audience(&named), "api://issues");
    twins(&plain, "\"bound\"", "\"bound\", secret = \"env:T\"", "does not belong to this mode");
}

#[test]
fn secrets_in_vault_need_a_vault() {
    const VAULT: &str = "[vault]\naddress = \"https://vault.example.com:8200\"\nauth = { method = \"approle\", role_id = \"gateway\", secret_id = \"env:SECRET_ID\" }\n";
    let secret = "credentials = { mode = \"vault\", secret = \"vault:kv/issues#token\" }\n";
    let good = format!("{VAULT}{ISSUES}{secret}");
    let vault = read(&good).vault.expect("a vault");
    assert!(matches!(&vault.login, VaultLogin::AppRole { mount, .. } if mount == "approle"));
    assert_eq!(vault.refresh_seconds, 300);
    twins(&good, VAULT, "", "no Vault is configured: add `[vault]`");
    twins(&good, "kv/issues#token", "kv/../sys#token", "type `vault:MOUNT/PATH#FIELD`");
    twins(&good, "https://vault", "http://vault", "use `https://`");
    twins(&good, "role_id = \"gateway\", ", "", "vault.auth.role_id`: missing");
    twins(&good, "env:SECRET_ID", "hvs.secret", "cannot be given directly");
    twins(&good, "role_id", "token = \"env:T\", role_id", "token`: does not belong to this method");
    twins(&good, "env:SECRET_ID", "vault:kv/a#b", "is read before Vault can be reached");
    let started = format!("{VAULT}{FILES}env = {{ TOKEN = \"vault:kv/files#token\" }}\n");
    read(&started);
    twins(&started, VAULT, "", "no Vault is configured");
    let header = format!("{VAULT}{ISSUES}headers = {{ X-Key = \"env:K\" }}\n");
    twins(&header, "env:K", "vault:kv/issues#key", "is read before Vault can be reached");
    for auth in [
        "{ token = \"env:VAULT_TOKEN\" }",
        "{ method = \"kubernetes\", role = \"gateway\", jwt = \"file:/var/run/secrets/token\" }",
    ] {
        let start = VAULT.find("{ method").unwrap();
        read(&format!("{}{auth}\n{ISSUES}{secret}", &VAULT[..start]));
    }
}

#[test]
fn forwarded_headers_are_never_the_gateways_own() {
    let good = format!("{ISSUES}forward_headers = [\"X-Request-Id\"]\n");
    for header in [
        "Authorization",
        "Cookie",
        "DPoP",
        "Host",
        "Mcp-Session-Id",
        "X-Forwarded-For",
        "a b",
        "",
        "Origin",
    ] {
        twins(&good, "X-Request-Id", header, "cannot be forwarded");
    }
}

#[test]
fn organizations_can_be_part_of_a_path() {
    let good = format!("{ISSUES}orgs = [\"acme\", \"beta-1\"]\n");
    twins(&good, "[\"acme\", \"beta-1\"]", "[]", "no caller is served");
    twins(&good, "beta-1", "a/b", "cannot be part of a path");
    twins(&good, "beta-1", "..", "cannot be part of a path");
    twins(&good, "beta-1", "acme", "is named twice");
}

#[test]
fn tools_are_listed_renamed_and_classified_consistently() {
    let good = format!(
        "{ISSUES}allowed_tools = [\"search\", \"close\"]\ntool_risk = {{ close = \"high\" }}\nnames = {{ search = \"find\", close = \"shut\" }}\n"
    );
    assert!(read(&good).servers[&id("issues")].may_serve("close"));
    assert!(!read(&good).servers[&id("issues")].may_serve("delete"));
    twins(
        &good,
        "{ close = \"high\" }",
        "{ delete = \"high\" }",
        "`delete` is not in `allowed_tools`",
    );
    twins(&good, "\"high\"", "\"extreme\"", "`extreme` is not one of low, medium");
    twins(&good, "\"shut\"", "\"find\"", "is given to two tools");
    twins(&good, "\"shut\"", "\"a b\"", "cannot be a tool's name");
    let long = read(&good).servers[&id("issues")].clone();
    assert_eq!(long.warn_of_long_name(&"x".repeat(56)), None);
    let warning = long.warn_of_long_name(&"x".repeat(57)).unwrap();
    assert!(warning.contains("has 65 characters"), "{warning}");
}

#[test]
fn toolsets_name_configured_servers_and_allowed_tools() {
    let good = format!(
        "{ISSUES}allowed_tools = [\"search\"]\n[[toolset]]\nid = \"support\"\ntools = [\"issues__search\"]\n"
    );
    twins(&good, "issues__search", "issue__search", "did you mean `issues__search`?");
    twins(&good, "issues__search", "issues__close", "add it to that server's `allowed_tools`");
    twins(&good, "issues__search", "search", "is not `server__tool`");
    twins(&good, "[\"issues__search\"]", "[]", "has no tools");
    twins(&good, "\"support\"", "\"../x\"", "cannot be an id");
    twins(&good, "id = \"support\"\n", "", "`toolset[0].id`: missing");
    let set = "[[toolset]]\nid = \"support\"\ntools = [\"issues__search\"]\n";
    twins(&good, set, &format!("{set}{set}"), "another toolset has this id");
}

#[test]
fn admission_is_whole_and_decides_what_is_served_without_a_list() {
    let good = format!(
        "[admission]\nflavor = \"enclaved\"\ntrust_root = \"trust-root.json\"\n{FILES}required_clearance = \"internal\"\n"
    );
    let server = read(&good).servers[&id("files")].clone();
    assert_eq!(server.allowed_tools, Some(BTreeSet::new()));
    assert_eq!(server.admission.required.as_deref(), Some("internal"));
    assert_eq!(server.admission.trust_root.as_deref(), Some("/etc/holdpoint/trust-root.json"));
    assert!(read(&good).warnings().iter().any(|warning| warning.contains("serves no tool")));
    let open = good.replace("enclaved", "open");
    assert_eq!(read(&open).servers[&id("files")].allowed_tools, None);
    twins(&good, "required_clearance = \"internal\"\n", "", "say which clearance");
    twins(
        &good,
        "required_clearance = \"internal\"",
        "required_clearance = \"top\"",
        "is not a level of the scheme",
    );
    twins(&open, "trust_root = \"trust-root.json\"\n", "", "set `admission.trust_root`");
    twins(
        &good,
        "flavor = \"enclaved\"\n",
        "flavor = \"enclaved\"\nallow_tools = [\"x\"]\n",
        "write `allowed_tools` in its",
    );
    twins(&good, "required_clearance", "package = \"p\"\nrequired_clearance", "together");
    let missing = mistakes("[admission]\nflavor = \"enclaved\"\n");
    assert!(missing[0].contains("`admission.trust_root`: missing"), "{missing:?}");
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    twins(
        FILES,
        "trust",
        "thrust = \"x\"\ntrust",
        "line 3: unknown key `server.files.thrust`; did you mean `server.trust`?",
    );
    twins(
        PUBLIC,
        "enabled = true",
        "enabled = true\nenable = true",
        "did you mean `auth.keys.enabled`?",
    );
    twins(PUBLIC, "listen =", "lisen = \"x\"\nlisten =", "did you mean `gateway.listen`?");
    twins(
        ISSUES,
        "trust",
        "credentials = { mod = \"none\", mode = \"none\" }\ntrust",
        "did you mean `server.credentials.mode`?",
    );
    twins("", "", "[notify]\ndesktop = true\n", "unknown key `notify`");
}

#[test]
fn a_reload_sees_which_servers_changed() {
    let before = read(&format!("{FILES}{ISSUES}"));
    let same = read(&format!("# a comment\n{ISSUES}{FILES}"));
    assert_eq!(before, same);
    assert_eq!(before.server_changes(&same), ServerChanges::default());
    let mail = ISSUES.replace("issues", "mail");
    let after = read(&format!("{FILES}risk = \"low\"\n{mail}"));
    let changes = before.server_changes(&after);
    assert_eq!(changes.added, [id("mail")]);
    assert_eq!(changes.removed, [id("issues")]);
    assert_eq!(changes.changed, [id("files")]);
    assert_eq!(before.restart_keys(&after), Vec::<&str>::new());
    let moved =
        read("[gateway]\nlisten = \"127.0.0.1:1\"\npublic_url = \"http://127.0.0.1:8420\"\n");
    assert_eq!(before.restart_keys(&moved), ["gateway.listen"]);
}

#[test]
fn the_engines_keys_are_those_of_the_file() {
    let text = format!("[gateway]\nposture = \"strict\"\n[relist]\nmax_age = 5\n{FILES}");
    let settings = read(&text);
    let keys = settings.engine_keys(&settings.servers[&id("files")]);
    assert_eq!(keys.judging(None).posture, Posture::Strict);
    assert_eq!(keys.relist.max_age, Some(crate::value::Whole(5)));
}

#[test]
fn every_mistake_of_a_very_wrong_file_is_told_at_once() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/gateway/tests"));
    let text = std::fs::read_to_string(folder.join("very_wrong.toml")).unwrap();
    let found = mistakes(&text).join("\n") + "\n";
    let path = folder.join("very_wrong.mistakes.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found, golden, "if the change is meant, refresh it with UPDATE_GOLDEN=1");
}

#[test]
fn text_that_is_not_toml_or_is_too_large_is_refused() {
    let found = mistakes("[gateway\nlisten = \n");
    assert!(found[0].starts_with("line 1: not TOML: "), "{found:?}");
    let length = usize::try_from(MAX_CONFIGURATION_BYTES).unwrap();
    read(&format!("#{}", "x".repeat(length - 1)));
    let found = mistakes(&format!("#{}", "x".repeat(length)));
    assert!(found[0].contains("larger than"), "{found:?}");
}

#[test]
fn a_flood_of_mistakes_is_cut() {
    let lines: String = (0..150).map(|number| format!("k{number} = 1\n")).collect();
    assert_eq!(mistakes(&lines).len(), 100);
}
