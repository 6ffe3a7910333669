//! A gateway on another machine, reached through its admin API.

use crate::arguments::GatewayArguments;
use crate::failure::Failure;
use serde_json::Value;
use std::time::Duration;
use wire::EndpointUrl;
use wire::api::ApiAddress;
use wire::attestation::{FetchError, FetchLimits};

/// The largest response, and the longest to wait for it: a release starts the server.
const LIMITS: FetchLimits = FetchLimits { bytes: 64 << 20, patience: Duration::from_secs(120) };

#[derive(Debug)]
pub(crate) struct RemoteGateway {
    url: String,
    key: String,
    api: ApiAddress,
    runtime: tokio::runtime::Runtime,
}

impl RemoteGateway {
    /// The gateway that the arguments name, if any.
    pub(crate) fn of(arguments: &GatewayArguments) -> Result<Option<RemoteGateway>, Failure> {
        let (Some(url), Some(key)) = (&arguments.gateway, &arguments.key) else { return Ok(None) };
        let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("`--gateway`: {error}"));
        let address: EndpointUrl = format!("{}{}", url.trim_end_matches('/'), gateway::ADMIN_PATH)
            .parse()
            .map_err(|error| wrong(&error))?;
        let secret = key.read(|name| std::env::var(name).ok());
        let secret = secret.map_err(|error| Failure::usage(format!("`--key`: {error}")))?;
        let api = ApiAddress::new(address, secret.trim()).map_err(|error| wrong(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Some(RemoteGateway { url: url.clone(), key: key.to_string(), api, runtime }))
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(http::Method::GET, path, None)
    }

    pub(crate) fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        self.send(http::Method::POST, path, body)
    }

    /// The arguments that name this gateway on a command line.
    pub(crate) fn words(&self) -> [String; 4] {
        ["--gateway".to_owned(), self.url.clone(), "--key".to_owned(), self.key.clone()]
    }

    fn send(
        &self,
        method: http::Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let body = body.map(|body| body.to_string().into_bytes());
        let answered = self.runtime.block_on(self.api.send(method, path, body, LIMITS));
        let (status, document) = answered.map_err(|error: FetchError| {
            Failure::unreachable(format!("the gateway at {}: {error}", self.url))
        })?;
        let document: Value = serde_json::from_slice(&document).map_err(|_| {
            Failure::unreachable(format!(
                "{} answers with status {status} and no JSON: is it a Holdpoint gateway?",
                self.url
            ))
        })?;
        match status.as_u16() {
            200 => Ok(document),
            code => Err(self.refused(code, &document)),
        }
    }

    /// A refusal by the gateway in plain words, with the exit code that the command has without a
    /// gateway.
    fn refused(&self, code: u16, document: &Value) -> Failure {
        let text = |name: &str| document.pointer(name).and_then(Value::as_str).unwrap_or_default();
        let (reason, message) =
            (crate::screen::readable(text("/error/reason")), text("/error/message"));
        let message = crate::screen::readable(message);
        let place = &self.url;
        match code {
            401 => Failure::denied(
                "unauthenticated",
                format!(
                    "{place} does not accept this key for its admin API: make one with `holdpoint key create --admin`"
                ),
            ),
            403 => Failure::denied(
                "forbidden",
                format!("{place} refuses: {message} ({reason}); a policy has to permit the action"),
            ),
            400 | 404 | 405 | 413 => Failure::usage(format!("{place}: {message}")),
            // A call that waits for a person is not a change of a server.
            409 if reason == "conflict" => Failure::held(format!("{message} ({reason})")),
            409 => Failure::held(format!("{message} ({reason}); review again: holdpoint review")),
            502 => Failure::unreachable(format!("{place}: {message}")),
            _ => Failure::internal(format!("{place}: {message}")),
        }
    }
}
