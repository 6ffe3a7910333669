//! The TOML configuration that says how the suite reaches the gateway under test.

use serde::Deserialize;
use settings::SecretName;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuiteConfig {
    pub(super) upstream: UpstreamConfig,
    /// Runs once the suite's server listens: registers the server with gateways that need it.
    pub(super) setup: Option<Hook>,
    pub(super) tools: ToolNames,
    pub(super) principal: Principals,
    pub(super) receipts: Option<Hook>,
    pub(super) approval: Option<ApprovalConfig>,
    pub(super) incident: Option<IncidentConfig>,
    pub(super) oauth: Option<OauthConfig>,
    pub(super) files: Option<SandboxConfig>,
    pub(super) network: Option<SandboxConfig>,
    /// The reasons why tests do not apply, by the number of the test.
    #[serde(default)]
    pub(super) not_applicable: BTreeMap<String, String>,
}

/// The server that the suite runs, and the credential that it expects from the gateway.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamConfig {
    pub(super) listen: SocketAddr,
    /// The audience (`aud`) of a token for it.
    pub(super) audience: Option<String>,
    /// A secret that the gateway presents instead of a token.
    pub(super) secret: Option<SecretName>,
}

/// The names under which the gateway offers the suite's tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolNames {
    /// Both callers may call it.
    pub(super) echo: String,
    /// Caller `b` may call it, caller `a` may not.
    pub(super) restricted: String,
    /// A high-risk tool; caller `b` may call it while there is no incident.
    pub(super) critical: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Principals {
    pub(super) a: PrincipalConfig,
    pub(super) b: PrincipalConfig,
}

/// Where a caller's bearer token comes from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrincipalConfig {
    pub(super) token: Option<SecretName>,
    /// Prints the token.
    pub(super) command: Option<Vec<String>>,
}

/// A command that the suite runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hook {
    pub(super) command: Vec<String>,
}

/// A call that a second person has to approve.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalConfig {
    /// Caller `b` may call it once it is approved.
    pub(super) tool: String,
    /// Waits for the call and approves it.
    pub(super) grant: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncidentConfig {
    pub(super) on: Vec<String>,
    pub(super) off: Vec<String>,
    /// Revokes the credential of caller `b`.
    pub(super) revoke: Option<Vec<String>>,
    /// The time within which the switch or revocation has to take effect.
    #[serde(default = "five")]
    pub(super) within_seconds: u64,
}

fn five() -> u64 {
    5
}

/// The gateway's OAuth proxy, if it has one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OauthConfig {
    /// Its authorization endpoint.
    pub(super) authorize: String,
    pub(super) client_id: String,
    /// A redirect address that is registered for the client.
    pub(super) redirect_uri: String,
}

/// Two kinds of calls: a sandbox must allow one and stop the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SandboxConfig {
    pub(super) tool: String,
    pub(super) inside: serde_json::Map<String, serde_json::Value>,
    /// The sandbox has to stop each of these.
    pub(super) outside: Vec<serde_json::Map<String, serde_json::Value>>,
}

impl SuiteConfig {
    pub(crate) fn read(text: &str) -> Result<SuiteConfig, String> {
        let config: SuiteConfig = toml::from_str(text).map_err(|error| described(text, &error))?;
        for (name, principal) in [("a", &config.principal.a), ("b", &config.principal.b)] {
            if principal.token.is_some() == principal.command.is_some() {
                return Err(format!("`principal.{name}`: set `token` or `command`"));
            }
        }
        let unknown = config
            .not_applicable
            .keys()
            .find(|number| !number.parse::<u8>().is_ok_and(|number| (1..=10).contains(&number)));
        match unknown {
            Some(number) => Err(format!("`not_applicable.{number}`: the tests are 1 to 10")),
            None => Ok(config),
        }
    }
}

/// Describes what is wrong with the file, and on which line. Quotes neither the line nor a value:
/// both may contain a token.
fn described(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let problem = match (message.split_once("string \""), message.rsplit_once("\", expected")) {
        (Some((kind, _)), Some((_, expected))) => format!("{kind}a string, expected{expected}"),
        (Some((kind, _)), None) => format!("{kind}a string"),
        (None, _) => message.to_owned(),
    };
    let before = error.span().and_then(|span| text.get(..span.start));
    match before.map(|before| before.matches('\n').count() + 1) {
        Some(line) => format!("line {line}: {problem}"),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_the_file_quotes_no_value_of_it() {
        for (text, expected) in [
            ("url = \"hp_canary", "line 1"),
            ("\nprincipal = \"hp_canary\"", "line 2: invalid type: a string, expected"),
            ("tokens = \"hp_canary\"", "line 1: unknown field `tokens`"),
        ] {
            let error = SuiteConfig::read(text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("canary"), "{error}");
        }
    }
}
