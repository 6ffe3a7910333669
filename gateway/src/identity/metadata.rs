//! Tells clients where to get tokens: the challenge in a refusal, and the RFC 9728 document that it
//! points to.

use super::caller::{AuthenticationFault, Unauthenticated};
use http::{HeaderValue, StatusCode};
use serde_json::json;
use settings::gateway::{IssuerSettings, WebOrigin};

/// The path of a resource's metadata, before the resource's own path.
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The resource of a request: an MCP path, or the admin API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource<'a> {
    /// With its path, such as `/servers/files/mcp`.
    Mcp {
        path: &'a str,
    },
    Admin,
}

impl Resource<'_> {
    pub fn path(&self) -> &str {
        match self {
            Resource::Mcp { path } => path,
            Resource::Admin => "/admin",
        }
    }

    /// The exact URL, which is the audience of tokens for it.
    pub fn url(&self, public_url: &WebOrigin) -> String {
        format!("{public_url}{}", self.path())
    }
}

/// The metadata of a resource, which names the issuers of its tokens. If the gateway issues tokens,
/// it is named first.
pub fn protected_resource_metadata(
    resource: Resource<'_>,
    public_url: &WebOrigin,
    issuers: &[IssuerSettings],
    issues_tokens: bool,
) -> serde_json::Value {
    // The gateway's own tokens are not valid for the admin API.
    let own = (issues_tokens && resource != Resource::Admin).then_some(public_url.as_str());
    let servers: Vec<&str> =
        own.into_iter().chain(issuers.iter().map(|issuer| issuer.issuer.as_str())).collect();
    json!({
        "resource": resource.url(public_url),
        "authorization_servers": servers,
        "bearer_methods_supported": ["header"],
        "resource_name": "Holdpoint",
    })
}

impl Unauthenticated {
    pub(super) fn new(
        fault: AuthenticationFault,
        resource: Resource<'_>,
        public_url: &WebOrigin,
    ) -> Unauthenticated {
        let (status, error) = match fault {
            AuthenticationFault::NoCredentials => (StatusCode::UNAUTHORIZED, None),
            AuthenticationFault::BadHeader => (StatusCode::BAD_REQUEST, Some("invalid_request")),
            AuthenticationFault::Revoked
            | AuthenticationFault::CertificateAtAdmin
            | AuthenticationFault::Token(_)
            | AuthenticationFault::Key(_)
            | AuthenticationFault::Certificate(_) => {
                (StatusCode::UNAUTHORIZED, Some("invalid_token"))
            }
        };
        let mut challenge = format!(
            "Bearer resource_metadata=\"{public_url}{METADATA_PATH}{}\"",
            quotable(resource.path())
        );
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{error}\""));
        }
        let challenge = HeaderValue::from_str(&challenge)
            .unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        Unauthenticated { fault, status, challenge }
    }
}

/// A path without characters that would end the surrounding quotes.
fn quotable(path: &str) -> String {
    path.chars().filter(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\')).collect()
}
