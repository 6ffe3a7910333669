//! Test 5: whether a gateway that proxies OAuth can be used as a confused deputy by a client that
//! no person consented to.

use super::config::OauthConfig;
use super::hooks::{self, Authorized};
use super::profile::{check, holds, unseen};
use super::report::{CheckReport, Outcome};
use wire::EndpointUrl;

const HOSTILE: &str = "https://attacker.example";
/// A challenge without a known verifier, so that no code can be redeemed.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Redirect addresses that resemble a registered one but are not registered.
fn crafted(registered: &str) -> Vec<(&'static str, String)> {
    let (scheme, rest) = registered.split_once("://").unwrap_or(("https", registered));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    vec![
        ("another site", format!("{HOSTILE}/callback")),
        ("the registered one as a prefix", format!("{registered}.attacker.example/x")),
        ("a longer path", format!("{registered}/../other")),
        ("the host as a user name", format!("{scheme}://{authority}@attacker.example{behind}")),
        ("the host as a subdomain", format!("{scheme}://{host}.attacker.example{behind}")),
        ("a fragment", format!("{registered}#x")),
        ("another query", format!("{registered}?next={HOSTILE}")),
        ("a backslash", format!("{scheme}://{authority}\\@attacker.example{behind}")),
        ("another scheme", format!("javascript://{authority}{behind}")),
    ]
}

/// Checks a gateway that claims not to proxy OAuth: it must not publish an authorization server.
pub(super) async fn not_configured(url: &EndpointUrl) -> Vec<CheckReport> {
    let name = "the gateway issues no tokens";
    vec![match hooks::has_authorization_server(url).await {
        Ok(false) => unseen(
            name,
            "it has no metadata of an authorization server (RFC 8414), and no `oauth` is configured",
        ),
        Ok(true) => check(
            name,
            Outcome::Fail,
            "it publishes metadata of an authorization server: configure `oauth`, so that it can be tested",
        ),
        Err(why) => check(name, Outcome::Fail, why),
    }]
}

pub(super) async fn checks(oauth: &OauthConfig) -> Vec<CheckReport> {
    let request = Request { oauth, challenge: Some(CHALLENGE), method: Some("S256") };
    let mut checks = vec![request.known_client().await];
    for (what, redirect) in crafted(&oauth.redirect_uri) {
        checks.push(request.crafted_redirect(what, &redirect).await);
    }
    for (name, client) in [
        (
            "a client that is named by a stranger's document fails",
            "https://attacker.example/client.json",
        ),
        (
            "a client whose document is on the gateway's own machine fails",
            "http://127.0.0.1:1/client.json",
        ),
        ("a client with an invented id fails", "csp-suite-unknown-client"),
    ] {
        checks.push(request.unknown_client(name, client).await);
    }
    let without = Request { challenge: None, method: None, ..request };
    checks.push(without.no_code("without PKCE there is no code").await);
    let plain = Request { method: Some("plain"), ..request };
    checks.push(plain.no_code("PKCE cannot be weakened to `plain`").await);
    checks
}

#[derive(Clone, Copy)]
struct Request<'a> {
    oauth: &'a OauthConfig,
    challenge: Option<&'a str>,
    method: Option<&'a str>,
}

impl Request<'_> {
    async fn send(&self, client: &str, redirect: &str) -> Result<Authorized, String> {
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", redirect),
            ("state", "csp-suite"),
        ];
        parameters.extend(self.challenge.map(|challenge| ("code_challenge", challenge)));
        parameters.extend(self.method.map(|method| ("code_challenge_method", method)));
        hooks::authorize(&self.oauth.authorize, &parameters).await
    }

    /// Asks as the registered client, from a browser without a session: the gateway must answer
    /// with a consent page that cannot be framed.
    async fn known_client(&self) -> CheckReport {
        let name = "a registered client needs consent first, on a page that cannot be framed";
        match self.send(&self.oauth.client_id, &self.oauth.redirect_uri).await {
            Ok(Authorized { status: 200, policy, frame_options, .. }) => {
                let policy = policy.unwrap_or_default();
                let is_unframed = policy.contains("frame-ancestors 'none'")
                    || frame_options.is_some_and(|told| told.eq_ignore_ascii_case("deny"));
                holds(name, is_unframed, "status 200, no redirect")
            }
            // It redirects to one of its own pages, to sign in before it asks for consent. What
            // that page does cannot be seen from here.
            Ok(Authorized { status, location: Some(location), .. }) => {
                let end = self.oauth.authorize.find("://").map_or(0, |at| at + 3);
                let host = self.oauth.authorize.get(end..).and_then(|rest| rest.split('/').next());
                let is_own = location.starts_with('/')
                    || location.split('/').nth(2).is_some_and(|other| Some(other) == host);
                let detail = format!("status {status} before anyone agreed");
                holds(name, is_own && !location.contains("code="), detail)
            }
            Ok(Authorized { status, .. }) => check(name, Outcome::Fail, format!("status {status}")),
            Err(why) => check(name, Outcome::Fail, why),
        }
    }

    async fn crafted_redirect(&self, what: &str, redirect: &str) -> CheckReport {
        let name = "a redirect URI that is not registered fails";
        match self.send(&self.oauth.client_id, redirect).await {
            Ok(Authorized { status, location, .. }) => {
                let is_refused = status >= 400 && location.is_none();
                holds(name, is_refused, format!("{what}: status {status}"))
            }
            Err(why) => check(name, Outcome::Fail, format!("{what}: {why}")),
        }
    }

    async fn unknown_client(&self, name: &'static str, client: &str) -> CheckReport {
        match self.send(client, &self.oauth.redirect_uri).await {
            Ok(Authorized { status, location, .. }) => {
                holds(name, status >= 400 && location.is_none(), format!("status {status}"))
            }
            Err(why) => check(name, Outcome::Fail, why),
        }
    }

    async fn no_code(&self, name: &'static str) -> CheckReport {
        match self.send(&self.oauth.client_id, &self.oauth.redirect_uri).await {
            Ok(Authorized { status, location, .. }) => {
                let told = location.as_deref().is_some_and(|to| to.contains("error="));
                holds(name, status >= 400 || told, format!("status {status}"))
            }
            Err(why) => check(name, Outcome::Fail, why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crafted_redirects_are_like_the_registered_one_and_none_is_it() {
        let registered = "http://127.0.0.1:9/callback";
        let all = crafted(registered);
        assert!(all.iter().all(|(_, redirect)| redirect != registered));
        assert!(all.iter().any(|(_, to)| to == "http://127.0.0.1:9@attacker.example/callback"));
        assert!(all.iter().any(|(_, to)| to == "http://127.0.0.1.attacker.example/callback"));
    }
}
