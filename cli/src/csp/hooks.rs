//! Actions that only an operator can take: commands that mint tokens, print receipts and switch
//! incident mode.

use super::config::{Hook, PrincipalConfig};
use http::HeaderName;
use http::header::{CONTENT_SECURITY_POLICY, X_FRAME_OPTIONS};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::time::Duration;
use tokio::process::Command;
use wire::EndpointUrl;
use wire::attestation::FetchLimits;
use wire::service::{ServiceAddress, ServiceRequest};
use zeroize::Zeroizing;

/// How long a command may run.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a command and returns its output.
pub(super) async fn run(command: &[String]) -> Result<String, String> {
    let Some((program, words)) = command.split_first() else {
        return Err("a command is empty".to_owned());
    };
    let ran = Command::new(program).args(words).kill_on_drop(true).output();
    let output = match tokio::time::timeout(PATIENCE, ran).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("`{program}`: {error}")),
        Err(_) => return Err(format!("`{program}` did not end within {} s", PATIENCE.as_secs())),
    };
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("`{program}` ended with {}", output.status)),
    }
}

pub(super) async fn token(principal: &PrincipalConfig) -> Result<Zeroizing<String>, String> {
    let text = match (&principal.token, &principal.command) {
        (Some(name), _) => {
            name.read(|variable| std::env::var(variable).ok()).map_err(|error| error.to_string())?
        }
        (None, Some(command)) => run(command).await?,
        (None, None) => return Err("set `token` or `command`".to_owned()),
    };
    Ok(Zeroizing::new(text.trim().to_owned()))
}

/// The response of an authorization endpoint.
#[derive(Debug)]
pub(super) struct Authorized {
    pub(super) status: u16,
    /// The redirect target.
    pub(super) location: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) frame_options: Option<String>,
}

const LIMITS: FetchLimits = FetchLimits { bytes: 1024 * 1024, patience: PATIENCE };

/// Asks an authorization endpoint for a code.
pub(super) async fn authorize(
    endpoint: &str,
    parameters: &[(&str, &str)],
) -> Result<Authorized, String> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    let query = pairs.collect::<Vec<_>>().join("&");
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    let url: EndpointUrl = format!("{endpoint}{separator}{query}")
        .parse()
        .map_err(|error| format!("`oauth.authorize`: {error}"))?;
    let service = ServiceAddress::new(url, true, None).map_err(|error| error.to_string())?;
    let sent = service.exchange(ServiceRequest::default(), LIMITS).await;
    let answer = sent.map_err(|error| error.to_string())?;
    let header = |name: HeaderName| {
        answer.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    Ok(Authorized {
        status: answer.status.as_u16(),
        policy: header(CONTENT_SECURITY_POLICY),
        frame_options: header(X_FRAME_OPTIONS),
        location: answer.location,
    })
}

/// Whether a gateway publishes authorization server metadata (RFC 8414).
pub(super) async fn has_authorization_server(gateway: &EndpointUrl) -> Result<bool, String> {
    let text = gateway.as_str();
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text.get(start..).and_then(|rest| rest.find('/')).map_or(text.len(), |at| start + at);
    let origin = text.get(..end).unwrap_or(text);
    let url = format!("{origin}/.well-known/oauth-authorization-server");
    let url: EndpointUrl = url.parse().map_err(|error: wire::BadUrl| error.to_string())?;
    let service = ServiceAddress::new(url, true, None).map_err(|error| error.to_string())?;
    let sent = service.exchange(ServiceRequest::default(), LIMITS).await;
    let answer = sent.map_err(|error| error.to_string())?;
    Ok(answer.status.is_success() && serde_json::from_slice::<Value>(&answer.body).is_ok())
}

/// The receipts that a command prints: one JSON value per line, an array, or an object with an
/// array `receipts`.
pub(super) async fn receipts(hook: &Hook) -> Result<Vec<Value>, String> {
    let text = run(&hook.command).await?;
    let whole: Option<Value> = serde_json::from_str(&text).ok();
    let list = match whole {
        Some(Value::Array(list)) => list,
        Some(Value::Object(mut document)) => match document.remove("receipts") {
            Some(Value::Array(list)) => list,
            _ => vec![Value::Object(document)],
        },
        _ => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    };
    match list.is_empty() && !text.trim().is_empty() {
        true => Err("what the command prints is not JSON".to_owned()),
        false => Ok(list),
    }
}
