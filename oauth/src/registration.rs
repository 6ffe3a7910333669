//! Determines the client to use at an authorization server: one registered there, one with a
//! metadata document that the server reads, or one that registers itself (RFC 7591).

use crate::error::SignInError;
use crate::metadata::ServerMetadata;
use crate::reading::{Problem, object};
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::ServerText;

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    None,
    Basic,
    Post,
}

/// A client that an authorization server knows. INVARIANT: it is used only at its own issuer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredClient {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub secret: Option<Secret>,
    pub auth: ClientAuth,
    /// The issuer that it belongs to; `None` for a public client that may be used anywhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub issuer: Option<String>,
}

impl RegisteredClient {
    /// A client without a secret.
    pub fn public(id: String) -> RegisteredClient {
        RegisteredClient { id, secret: None, auth: ClientAuth::None, issuer: None }
    }

    /// A client with a secret, which is sent only to this issuer.
    pub fn confidential(id: String, secret: Secret, issuer: String) -> RegisteredClient {
        let (secret, issuer) = (Some(secret), Some(issuer));
        RegisteredClient { id, secret, auth: ClientAuth::Basic, issuer }
    }
}

/// The type of application that registers: its redirect URIs are loopback addresses or web pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationType {
    Native,
    Web,
}

/// The ways in which a client can become known to an authorization server.
#[derive(Debug, Clone)]
pub struct Registration {
    /// A manually registered client.
    pub known: Option<RegisteredClient>,
    /// The address of this client's own metadata document.
    pub metadata_document: Option<String>,
    pub redirect_uri: String,
    pub client_name: String,
    pub application_type: ApplicationType,
    /// Whether it may register itself as a last resort.
    pub may_register: bool,
}

/// How a client becomes known to an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    Known(RegisteredClient),
    /// The client must be registered with this document.
    Register(Vec<u8>),
}

impl Registration {
    /// Chooses the way for a server. Registration is the last resort, because every sign-in leaves
    /// a client behind there.
    pub fn choose(&self, server: &ServerMetadata) -> Result<Way, SignInError> {
        if let Some(known) = &self.known {
            return checked(known, server).map(Way::Known);
        }
        if let Some(document) = &self.metadata_document
            && server.takes_metadata_documents
        {
            return Ok(Way::Known(RegisteredClient {
                issuer: Some(server.issuer.clone()),
                ..RegisteredClient::public(document.clone())
            }));
        }
        match server.registration_endpoint {
            Some(_) if self.may_register => Ok(Way::Register(self.document(server))),
            Some(_) | None => Err(SignInError::NoRegistration),
        }
    }

    fn document(&self, server: &ServerMetadata) -> Vec<u8> {
        let method = match preferred(server.auth_methods.as_deref()) {
            ClientAuth::None => "none",
            ClientAuth::Basic => "client_secret_basic",
            ClientAuth::Post => "client_secret_post",
        };
        let application_type = match self.application_type {
            ApplicationType::Native => "native",
            ApplicationType::Web => "web",
        };
        let document = json!({
            "client_name": self.client_name,
            "redirect_uris": [self.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": application_type,
        });
        document.to_string().into_bytes()
    }

    /// The client from the server's response to the registration.
    pub fn registered(
        &self,
        body: &[u8],
        server: &ServerMetadata,
    ) -> Result<RegisteredClient, Problem> {
        object(body, |members| {
            let id = members.needed("client_id", "it has no `client_id`")?;
            let redirects = members.texts("redirect_uris")?;
            if redirects.is_some_and(|redirects| !redirects.contains(&self.redirect_uri)) {
                return Err("the client was registered with other redirect addresses");
            }
            let secret = members.text("client_secret")?.filter(|text| !text.is_empty());
            let auth = match members.text("token_endpoint_auth_method")?.as_deref() {
                Some("none") => ClientAuth::None,
                Some("client_secret_basic") => ClientAuth::Basic,
                Some("client_secret_post") => ClientAuth::Post,
                Some(_) => {
                    return Err("the client was registered for an unknown way to prove itself");
                }
                None if secret.is_none() => ClientAuth::None,
                None => preferred(server.auth_methods.as_deref()),
            };
            if auth != ClientAuth::None && secret.is_none() {
                return Err("it has no `client_secret`");
            }
            let secret = secret.filter(|_| auth != ClientAuth::None).map(Secret::new);
            Ok(RegisteredClient { id, secret, auth, issuer: Some(server.issuer.clone()) })
        })
    }
}

fn checked(
    known: &RegisteredClient,
    server: &ServerMetadata,
) -> Result<RegisteredClient, SignInError> {
    match &known.issuer {
        Some(expected) if *expected != server.issuer => {
            return Err(SignInError::OtherIssuer {
                expected: ServerText::line(expected),
                found: ServerText::line(&server.issuer),
            });
        }
        // Otherwise a server could obtain the secret by naming another authorization server.
        None if known.secret.is_some() => return Err(SignInError::SecretWithoutIssuer),
        Some(_) | None => {}
    }
    let posts_only = server.auth_methods.as_ref().is_some_and(|methods| {
        let has = |name: &str| methods.iter().any(|method| method == name);
        has("client_secret_post") && !has("client_secret_basic")
    });
    let auth = match &known.secret {
        None => ClientAuth::None,
        Some(_) if posts_only => ClientAuth::Post,
        Some(_) => known.auth,
    };
    Ok(RegisteredClient { auth, issuer: Some(server.issuer.clone()), ..known.clone() })
}

/// This client's preferred authentication method: without a secret, since one on a user's machine
/// proves nothing.
fn preferred(methods: Option<&[String]>) -> ClientAuth {
    let Some(methods) = methods else { return ClientAuth::None };
    let has = |name: &str| methods.iter().any(|method| method == name);
    if has("none") {
        ClientAuth::None
    } else if has("client_secret_basic") {
        ClientAuth::Basic
    } else if has("client_secret_post") {
        ClientAuth::Post
    } else {
        ClientAuth::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerMetadata {
        ServerMetadata { issuer: "https://as.example".into(), ..ServerMetadata::default() }
    }

    fn registration() -> Registration {
        Registration {
            known: None,
            metadata_document: Some("https://client.example/client.json".into()),
            redirect_uri: "http://127.0.0.1:7/callback".into(),
            client_name: "Holdpoint".into(),
            application_type: ApplicationType::Native,
            may_register: true,
        }
    }

    #[test]
    fn a_metadata_document_is_used_where_the_server_takes_one_and_registration_only_else() {
        let dynamic = ServerMetadata {
            registration_endpoint: Some("https://as.example/register".into()),
            ..server()
        };
        let both = ServerMetadata { takes_metadata_documents: true, ..dynamic.clone() };
        let Ok(Way::Known(client)) = registration().choose(&both) else { panic!() };
        assert_eq!(client.id, "https://client.example/client.json");
        assert_eq!(client.issuer.as_deref(), Some("https://as.example"));
        let Ok(Way::Register(document)) = registration().choose(&dynamic) else { panic!() };
        let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(document["token_endpoint_auth_method"], "none");
        assert_eq!(document["application_type"], "native");
        let unwilling = Registration { may_register: false, ..registration() };
        assert_eq!(unwilling.choose(&dynamic).unwrap_err().code(), "no_registration");
        assert_eq!(registration().choose(&server()).unwrap_err().code(), "no_registration");
    }

    #[test]
    fn a_client_is_used_at_its_own_issuer_only() {
        let with = |known| Registration { known: Some(known), ..registration() };
        let secret = || Secret::new("s".into());
        let own = RegisteredClient::confidential("a".into(), secret(), "https://as.example".into());
        assert!(with(own.clone()).choose(&server()).is_ok());
        let other = ServerMetadata { issuer: "https://evil.example".into(), ..server() };
        assert_eq!(with(own.clone()).choose(&other).unwrap_err().code(), "issuer_changed");
        let loose = RegisteredClient { issuer: None, ..own };
        assert_eq!(with(loose).choose(&server()).unwrap_err().code(), "secret_without_issuer");
        let public = with(RegisteredClient::public("a".into()));
        let Ok(Way::Known(client)) = public.choose(&other) else { panic!() };
        assert_eq!(client.issuer.as_deref(), Some("https://evil.example"));
    }

    #[test]
    fn what_a_server_registered_has_to_fit_what_was_asked() {
        let read = |body: &str| registration().registered(body.as_bytes(), &server());
        assert_eq!(read(r#"{"client_id":"c"}"#).unwrap().auth, ClientAuth::None);
        let basic = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#;
        assert_eq!(read(basic).unwrap().auth, ClientAuth::Basic);
        for body in [
            "{}",
            r#"{"client_id":""}"#,
            r#"{"client_id":"c","redirect_uris":["https://evil.example/"]}"#,
            r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_post"}"#,
            r#"{"client_id":"c","token_endpoint_auth_method":"private_key_jwt"}"#,
        ] {
            assert!(read(body).is_err(), "{body}");
        }
    }
}
