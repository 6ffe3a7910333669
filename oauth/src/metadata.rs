//! The two documents that a sign-in starts with: the resource's metadata (RFC 9728) and the
//! authorization server's (RFC 8414, or OpenID Connect Discovery). Only members that this client
//! uses are read.

use crate::error::SignInError;
use crate::locations::ResourceUrl;
use crate::reading::{MAX_SCOPES, object};
use serde::{Deserialize, Serialize};
use wire::ServerText;

/// The largest metadata document that is read.
pub const MAX_METADATA_BYTES: usize = 256 * 1024;

/// A server's metadata about tokens for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceMetadata {
    pub resource: String,
    pub authorization_servers: Vec<String>,
    pub scopes: Vec<String>,
    /// Whether it accepts tokens bound to this client's kind of key.
    pub takes_dpop: bool,
}

impl ResourceMetadata {
    pub fn read(bytes: &[u8]) -> Result<ResourceMetadata, &'static str> {
        object(bytes, |members| {
            let mut scopes = members.texts("scopes_supported")?.unwrap_or_default();
            scopes.truncate(MAX_SCOPES);
            Ok(ResourceMetadata {
                resource: members.needed("resource", "it has no `resource`")?,
                authorization_servers: members.texts("authorization_servers")?.unwrap_or_default(),
                scopes,
                takes_dpop: members.flag("dpop_bound_access_tokens_required")?
                    || members
                        .texts("dpop_signing_alg_values_supported")?
                        .is_some_and(|algorithms| algorithms.iter().any(|name| name == "ES256")),
            })
        })
    }
}

/// An authorization server's metadata about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub scopes: Vec<String>,
    pub grant_types: Option<Vec<String>>,
    pub auth_methods: Option<Vec<String>>,
    pub challenge_methods: Vec<String>,
    /// Whether its responses through the browser name the issuer (RFC 9207).
    pub answers_name_issuer: bool,
    /// Whether it accepts the address of a metadata document as a client id.
    pub takes_metadata_documents: bool,
    pub dpop_algorithms: Vec<String>,
}

impl ServerMetadata {
    pub fn read(bytes: &[u8]) -> Result<ServerMetadata, &'static str> {
        object(bytes, |members| {
            let texts = |name| members.texts(name).map(Option::unwrap_or_default);
            Ok(ServerMetadata {
                issuer: members.needed("issuer", "it has no `issuer`")?,
                authorization_endpoint: members
                    .needed("authorization_endpoint", "it has no `authorization_endpoint`")?,
                token_endpoint: members.needed("token_endpoint", "it has no `token_endpoint`")?,
                registration_endpoint: members.text("registration_endpoint")?,
                revocation_endpoint: members.text("revocation_endpoint")?,
                scopes: texts("scopes_supported")?,
                grant_types: members.texts("grant_types_supported")?,
                auth_methods: members.texts("token_endpoint_auth_methods_supported")?,
                challenge_methods: texts("code_challenge_methods_supported")?,
                answers_name_issuer: members
                    .flag("authorization_response_iss_parameter_supported")?,
                takes_metadata_documents: members.flag("client_id_metadata_document_supported")?,
                dpop_algorithms: texts("dpop_signing_alg_values_supported")?,
            })
        })
    }

    /// Checks that this client may sign in there: the document belongs to the issuer, its addresses
    /// may be used, and a code cannot be stolen.
    pub fn check(&self, issuer: &str, resource: &ResourceUrl) -> Result<(), SignInError> {
        // Compared as text (RFC 8414 §3.3): issuers that differ in a slash are different.
        if self.issuer != issuer {
            return Err(SignInError::MetadataIssuer {
                issuer: ServerText::line(issuer),
                found: ServerText::line(&self.issuer),
            });
        }
        resource.named("authorization_endpoint", &self.authorization_endpoint)?;
        resource.named("token_endpoint", &self.token_endpoint)?;
        for (name, endpoint) in [
            ("registration_endpoint", &self.registration_endpoint),
            ("revocation_endpoint", &self.revocation_endpoint),
        ] {
            if let Some(endpoint) = endpoint {
                resource.named(name, endpoint)?;
            }
        }
        if !self.challenge_methods.iter().any(|method| method == "S256") {
            return Err(SignInError::NoPkce);
        }
        let lists = |types: &Vec<String>| types.iter().any(|kind| kind == "authorization_code");
        if self.grant_types.as_ref().is_some_and(|types| !lists(types)) {
            return Err(SignInError::NoCodeGrant);
        }
        Ok(())
    }

    /// Whether tokens can be bound to this client's kind of key.
    pub fn offers_dpop(&self) -> bool {
        self.dpop_algorithms.iter().any(|algorithm| algorithm == "ES256")
    }
}

/// The scopes to request: those of the challenge, or otherwise those that the resource lists.
/// `offline_access` is added if the authorization server supports it, since without a refresh token
/// a sign-in expires within the hour.
pub fn scopes_to_ask(
    challenge: &[String],
    resource: Option<&ResourceMetadata>,
    server: &ServerMetadata,
) -> Vec<String> {
    const OFFLINE: &str = "offline_access";
    let mut scopes = match (challenge, resource) {
        ([], Some(resource)) => resource.scopes.clone(),
        ([], None) => Vec::new(),
        (scopes, _) => scopes.to_vec(),
    };
    let has = |scopes: &[String]| scopes.iter().any(|scope| scope == OFFLINE);
    if has(&server.scopes) && !has(&scopes) {
        scopes.push(OFFLINE.to_owned());
    }
    scopes
}

#[cfg(test)]
mod tests;
