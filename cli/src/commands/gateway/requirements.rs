//! What `gateway --check` says of the nine requirements of a gateway: which ones a configuration meets, and where not, why.

use settings::gateway::{GatewaySettings, Reach, Transport};

/// Arguments are checked everywhere; where paths, URLs and rates are not, the operator is told.
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

/// One line for each requirement.
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
    let is_unconfined = |reach: &Reach| matches!(reach, Reach::Command(_));
    let unconfined: Vec<String> = settings
        .servers
        .values()
        .filter(|server| is_unconfined(&server.reach))
        .map(|server| format!("`{}`", server.id))
        .collect();
    let sandbox = match unconfined.as_slice() {
        [] => "not applicable: no server is a command".to_owned(),
        named => format!(
            "not met: this version has no sandbox, and {} run with the rights of the gateway",
            named.join(", ")
        ),
    };
    let mark = |is_met: bool| if is_met { "met" } else { "not met" };
    vec![
        "1 inventory and trust: met".to_owned(),
        format!("2 authentication and transport: {} ({transport})", mark(has_identity)),
        format!("3 lists by identity: met ({policies})"),
        format!("4 authorization of each call: met ({policies})"),
        "5 no token passthrough: met (callers' tokens end here; a call with one in it is refused)".to_owned(),
        "6 OAuth proxy: not applicable (the gateway signs nobody in at another provider and keeps no tokens of people; callers bring tokens of your issuers, and servers get the secret that the file names)".to_owned(),
        preflight(settings),
        format!("8 sandbox: {sandbox}"),
        "9 receipts and incident mode: met (`holdpoint receipts`, `holdpoint incident`)".to_owned(),
    ]
}
