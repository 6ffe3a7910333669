//! What `gateway --check` reports on the nine requirements for gateways: which ones a configuration
//! meets, and why it does not meet the others.

use policy::Trust;
use settings::gateway::{
    ClientHosts, Credentials, GatewaySettings, NO_PROXY_RATIONALE, Reach, Transport,
};

/// Arguments are always checked. Reports servers whose paths, URLs or rates are not.
fn preflight(settings: &GatewaySettings) -> String {
    let unthrottled: Vec<String> = settings
        .servers
        .values()
        .filter(|server| server.preflight.throttle().is_none())
        .map(|server| format!("`{}`", server.id))
        .collect();
    let rates = match unthrottled.as_slice() {
        [] => "rates are".to_owned(),
        named => format!("no rate is set for {}; other rates are", named.join(", ")),
    };
    format!(
        "7 preflight: met (arguments are checked against the approved schemas; {rates} enforced)"
    )
}

/// Untrusted programs must run confined. Reports those that do not.
fn sandbox(settings: &GatewaySettings) -> String {
    let commands = settings.servers.values().filter_map(|server| match &server.reach {
        Reach::Command(command) => Some((server, command)),
        Reach::Url(_) => None,
    });
    let named = |is_meant: fn(Trust) -> bool| -> Vec<String> {
        let open = commands.clone().filter(|(_, command)| command.sandbox.is_none());
        let meant = open.filter(|(server, _)| is_meant(server.trust));
        meant.map(|(server, _)| format!("`{}`", server.id)).collect()
    };
    let is_untrusted = |trust| matches!(trust, Trust::Community | Trust::Unknown);
    let (untrusted, trusted) =
        (named(is_untrusted), named(|trust| !matches!(trust, Trust::Community | Trust::Unknown)));
    match (commands.count(), untrusted.as_slice(), trusted.as_slice()) {
        (0, _, _) => "8 sandbox: not applicable: no server is a command".to_owned(),
        (_, [], []) => "8 sandbox: met (every command runs confined)".to_owned(),
        (_, [], trusted) => format!(
            "8 sandbox: met (commands that are not trusted run confined; {} run with the rights of the gateway)",
            trusted.join(", ")
        ),
        (_, untrusted, _) => format!(
            "8 sandbox: not met: {} are not trusted and run with the rights of the gateway (`danger_unconfined`)",
            untrusted.join(", ")
        ),
    }
}

/// Callers' tokens end at the gateway. Reports servers that people sign in to instead.
fn no_passthrough(settings: &GatewaySettings) -> String {
    let servers = settings.servers.values();
    let people = servers.filter(|server| matches!(&server.reach, Reach::Url(url) if matches!(url.credentials, Credentials::User(_))));
    let named: Vec<String> = people.map(|server| format!("`{}`", server.id)).collect();
    let people = match named.as_slice() {
        [] => String::new(),
        named => format!(
            "; each person signs in to {} with an account of their own, and tokens are bound to keys where the server takes such",
            named.join(", ")
        ),
    };
    format!(
        "5 no token passthrough: met (callers' tokens end here; a call with one in it is refused{people})"
    )
}

/// The gateway signs people in for clients; otherwise reports why the requirement does not apply.
fn oauth_proxy(settings: &GatewaySettings) -> String {
    let Some(proxy) = &settings.oauth_proxy else {
        return format!("6 OAuth proxy: not applicable: {NO_PROXY_RATIONALE}");
    };
    let documents = match &proxy.client_hosts {
        ClientHosts::None => "no client-id metadata documents".to_owned(),
        ClientHosts::Named(hosts) => format!("metadata documents of {}", hosts.join(", ")),
        ClientHosts::Any => "metadata documents of any public host".to_owned(),
    };
    let clients = match proxy.clients.len() {
        1 => "1 registered client".to_owned(),
        count => format!("{count} registered clients"),
    };
    format!(
        "6 OAuth proxy: met ({clients}, {documents}; people sign in at {} and agree to each client first)",
        proxy.issuer
    )
}

/// One line per requirement.
pub(super) fn lines(settings: &GatewaySettings) -> Vec<String> {
    let front = &settings.front;
    let has_identity =
        !settings.auth.issuers.is_empty() || settings.auth.keys || front.has_client_ca();
    let transport = match &front.transport {
        Transport::Tls { .. } => "TLS ends here",
        Transport::TerminatedBy(_) => "a proxy ends TLS",
        Transport::Loopback => "plain HTTP on this machine only",
    };
    let has_policy = !settings.policy.files.is_empty();
    let policies = if has_policy { "by policy" } else { "by policy: none, so that all is denied" };
    let mark = |is_met: bool| if is_met { "met" } else { "not met" };
    vec![
        "1 inventory and trust: met".to_owned(),
        format!("2 authentication and transport: {} ({transport})", mark(has_identity)),
        format!("3 lists by identity: met ({policies})"),
        format!("4 authorization of each call: met ({policies})"),
        no_passthrough(settings),
        oauth_proxy(settings),
        preflight(settings),
        sandbox(settings),
        "9 receipts and incident mode: met (`holdpoint receipts`, `holdpoint incident`)".to_owned(),
    ]
}
