//! A server's `credentials`: what the gateway presents to it instead of the caller's own token.

use super::reach::{Written, is_free_header, is_token};
use crate::gateway::front::readable;
use crate::gateway::mistake::{Mistakes, Place};
use crate::gateway::tables::{ClientAuth, CredentialMode, CredentialsTable};
use crate::gateway::vault::VaultPath;
use crate::gateway::web_url::WebUrl;
use crate::secret::SecretName;

/// The most scopes that are requested.
const MAX_SCOPES: usize = 64;

/// The credential that the gateway presents to an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    None,
    /// `header: scheme secret`; the scheme may be absent.
    Secret {
        secret: SecretName,
        header: String,
        scheme: Option<String>,
    },
    /// A token for this server, issued by an authorization server.
    Grant(Box<GrantSettings>),
    /// A token that the caller obtained by signing in with a browser.
    User(Box<UserGrantSettings>),
    /// A token for this server, which the caller sends with the request in a separate header.
    Bound {
        audience: String,
    },
}

/// How a token for a server is obtained from an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSettings {
    pub kind: GrantKind,
    pub token_endpoint: WebUrl,
    /// Where tokens that an incident invalidates are revoked (RFC 7009), if the authorization
    /// server supports that.
    pub revocation_endpoint: Option<WebUrl>,
    /// The value that `aud` of the token must contain.
    pub audience: String,
    /// RFC 8707's `resource`, if the authorization server requires one.
    pub resource: Option<String>,
    pub scopes: Vec<String>,
    /// The gateway's own client, as `ID:SECRET`.
    pub client: SecretName,
    pub client_auth: ClientAuth,
    /// Whether the endpoint may be at a private address.
    pub allow_private: bool,
    /// Certificate authorities for the endpoint's host, instead of the system's.
    pub ca: Option<SecretName>,
}

/// How people sign in to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGrantSettings {
    /// The audience of the tokens: the server's URL.
    pub audience: String,
    /// The requested scopes; if empty, those that the server's metadata names.
    pub scopes: Vec<String>,
    /// The gateway's client at the server's authorization server, as `ID` or `ID:SECRET`, if it was
    /// registered manually.
    pub client: Option<SecretName>,
    /// The issuer that the client is registered at. A client's secret is sent to no other.
    pub issuer: Option<WebUrl>,
    /// Whether the gateway registers itself if the authorization server supports nothing else.
    pub register: bool,
    /// Whether the authorization server may be at a private address.
    pub allow_private: bool,
    /// Certificate authorities for the authorization server's host, instead of the system's.
    pub ca: Option<SecretName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// RFC 8693: the caller's token is exchanged for a token of the same person for this server.
    Exchange,
    /// RFC 6749 §4.4: the gateway's own token, the same for every caller.
    ClientCredentials,
}

impl Credentials {
    /// The header that carries the credential, if there is one.
    pub fn header(&self) -> Option<&str> {
        match self {
            Credentials::None => None,
            Credentials::Secret { header, .. } => Some(header),
            Credentials::Grant(_) | Credentials::User(_) | Credentials::Bound { .. } => {
                Some("Authorization")
            }
        }
    }

    /// Whether the credential depends on the caller.
    pub fn is_per_caller(&self) -> bool {
        match self {
            Credentials::None | Credentials::Secret { .. } => false,
            Credentials::Grant(grant) => grant.kind == GrantKind::Exchange,
            Credentials::User(_) | Credentials::Bound { .. } => true,
        }
    }
}

/// The keys that a mode allows, besides `mode`.
fn keys_of(mode: CredentialMode) -> &'static [&'static str] {
    const GRANT: &[&str] = &[
        "token_endpoint",
        "revocation_endpoint",
        "audience",
        "resource",
        "scopes",
        "client",
        "client_auth",
        "allow_private",
        "ca",
    ];
    match mode {
        CredentialMode::None => &[],
        CredentialMode::Vault => &["secret", "header", "scheme"],
        CredentialMode::Exchange | CredentialMode::ClientCredentials => GRANT,
        CredentialMode::Bound => &["audience"],
        CredentialMode::User => &["scopes", "client", "issuer", "register", "allow_private", "ca"],
    }
}

impl Written<'_> {
    pub(super) fn credentials(
        &self,
        table: &CredentialsTable,
        url: Option<&WebUrl>,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Credentials> {
        let place = self.place.key("credentials");
        let Some(mode) = table.mode else {
            if !mistakes.is_unreadable(&place.key("mode")) {
                let problem = "missing: type `none`, `vault`, `exchange`, `client_credentials`, `user` or `bound`";
                mistakes.add(&place.key("mode"), problem);
            }
            return None;
        };
        let written = [
            ("secret", table.secret.is_some()),
            ("header", table.header.is_some()),
            ("scheme", table.scheme.is_some()),
            ("token_endpoint", table.token_endpoint.is_some()),
            ("revocation_endpoint", table.revocation_endpoint.is_some()),
            ("audience", table.audience.is_some()),
            ("resource", table.resource.is_some()),
            ("scopes", table.scopes.is_some()),
            ("client", table.client.is_some()),
            ("client_auth", table.client_auth.is_some()),
            ("register", table.register.is_some()),
            ("issuer", table.issuer.is_some()),
            ("allow_private", table.allow_private.is_some()),
            ("ca", table.ca.is_some()),
        ];
        let known = keys_of(mode);
        if mode == CredentialMode::None && written.iter().any(|(_, is_set)| *is_set) {
            let problem = "`none` sends nothing: remove the other keys, or choose another mode";
            mistakes.add(&place.key("mode"), problem);
            return None;
        }
        for (key, _) in written.iter().filter(|(key, is_set)| *is_set && !known.contains(key)) {
            mistakes.add(&place.key(key), "does not belong to this mode: remove it");
        }
        match mode {
            CredentialMode::None => Some(Credentials::None),
            CredentialMode::Vault => self.secret(table, &place, mistakes),
            CredentialMode::Exchange => self.grant(table, GrantKind::Exchange, &place, mistakes),
            CredentialMode::ClientCredentials => {
                self.grant(table, GrantKind::ClientCredentials, &place, mistakes)
            }
            CredentialMode::Bound => {
                let named = table.audience.as_ref().map(|text| text.to_string());
                let audience = named.or_else(|| url.map(|url| url.as_str().to_owned()))?;
                Some(Credentials::Bound { audience })
            }
            CredentialMode::User => self.user(table, url?, &place, mistakes),
        }
    }

    fn secret(
        &self,
        table: &CredentialsTable,
        place: &Place,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Credentials> {
        let Some(secret) = &table.secret else {
            let problem = "missing: type `secret = \"vault:MOUNT/PATH#FIELD\"`, `\"env:VARIABLE\"` or `\"file:PATH\"`";
            mistakes.add(&place.key("secret"), problem);
            return None;
        };
        let secret = self.kept(secret, &place.key("secret"), mistakes)?;
        let header = table.header.as_deref().unwrap_or("Authorization").to_owned();
        let may_carry = header.eq_ignore_ascii_case("authorization") || is_free_header(&header);
        if !may_carry {
            let problem = format!("`{header}` cannot carry a secret: use `Authorization`");
            mistakes.add(&place.key("header"), problem);
        }
        let default_scheme = header.eq_ignore_ascii_case("authorization").then_some("Bearer");
        let scheme = table.scheme.as_deref().or(default_scheme).filter(|scheme| !scheme.is_empty());
        if scheme.is_some_and(|scheme| !is_token(scheme)) {
            let problem = "is not one word, such as `Bearer`; for none type `scheme = \"\"`";
            mistakes.add(&place.key("scheme"), problem);
        }
        Some(Credentials::Secret { secret, header, scheme: scheme.map(str::to_owned) })
    }

    fn user(
        &self,
        table: &CredentialsTable,
        url: &WebUrl,
        place: &Place,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Credentials> {
        if !self.has_sign_in {
            let problem = "people sign in to the gateway before they sign in to a server: set `client` on an `[[auth.issuer]]`";
            mistakes.add(&place.key("mode"), problem);
        }
        let client = match &table.client {
            Some(client) => Some(self.kept(client, &place.key("client"), mistakes)?),
            None => None,
        };
        let ca = match &table.ca {
            Some(ca) => Some(readable(ca, self.folder, &place.key("ca"), mistakes)?),
            None => None,
        };
        let issuer = match &table.issuer {
            Some(text) => match text.parse::<WebUrl>() {
                Ok(issuer) => Some(issuer),
                Err(error) => {
                    mistakes.add(&place.key("issuer"), error.to_string());
                    return None;
                }
            },
            None => None,
        };
        Some(Credentials::User(Box::new(UserGrantSettings {
            audience: url.as_str().to_owned(),
            scopes: read_scopes(table.scopes.as_deref(), &place.key("scopes"), mistakes),
            client,
            issuer,
            register: table.register.unwrap_or(true),
            allow_private: table.allow_private.unwrap_or(false),
            ca,
        })))
    }

    fn grant(
        &self,
        table: &CredentialsTable,
        kind: GrantKind,
        place: &Place,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Credentials> {
        let token_endpoint = match &table.token_endpoint {
            Some(text) => text
                .parse()
                .map_err(|error: super::super::BadWebUrl| {
                    mistakes.add(&place.key("token_endpoint"), error.to_string());
                })
                .ok(),
            None => {
                mistakes.add(
                    &place.key("token_endpoint"),
                    "missing: type the URL at which the authorization server issues tokens",
                );
                None
            }
        };
        let revocation_endpoint = match &table.revocation_endpoint {
            None => None,
            Some(text) => match text.parse::<WebUrl>() {
                Ok(url) => Some(url),
                Err(error) => {
                    mistakes.add(&place.key("revocation_endpoint"), error.to_string());
                    return None;
                }
            },
        };
        if table.audience.is_none() {
            mistakes.add(
                &place.key("audience"),
                "missing: a token is issued for one server; type what its `aud` has to name, usually the server's URL",
            );
        }
        let client = match &table.client {
            Some(client) => self.kept(client, &place.key("client"), mistakes),
            None => {
                mistakes.add(
                    &place.key("client"),
                    "missing: name the secret that has the gateway's client as `ID:SECRET`, such as `env:HOLDPOINT_CLIENT`",
                );
                None
            }
        };
        let scopes = read_scopes(table.scopes.as_deref(), &place.key("scopes"), mistakes);
        let ca = match &table.ca {
            Some(ca) => Some(readable(ca, self.folder, &place.key("ca"), mistakes)?),
            None => None,
        };
        Some(Credentials::Grant(Box::new(GrantSettings {
            kind,
            token_endpoint: token_endpoint?,
            revocation_endpoint,
            audience: table.audience.as_ref()?.to_string(),
            resource: table.resource.as_ref().map(|text| text.to_string()),
            scopes,
            client: client?,
            client_auth: table.client_auth.unwrap_or_default(),
            allow_private: table.allow_private.unwrap_or(false),
            ca,
        })))
    }

    /// A secret that is read while the gateway runs, so it may be in Vault or in an age-encrypted
    /// file.
    pub(super) fn kept(
        &self,
        secret: &SecretName,
        place: &Place,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<SecretName> {
        if let SecretName::Age(path) = secret {
            if !self.has_age {
                mistakes.add(
                    place,
                    "is encrypted with age, and no identity is configured: add `[age]` with `identity`",
                );
                return None;
            }
            let (file, name) = path
                .split_once('#')
                .map_or((path.as_str(), None), |(file, name)| (file, Some(name)));
            let file = self.folder.join(file).to_string_lossy().into_owned();
            return Some(SecretName::Age(match name {
                Some(name) => format!("{file}#{name}"),
                None => file,
            }));
        }
        let SecretName::Vault(path) = secret else {
            return readable(secret, self.folder, place, mistakes);
        };
        if let Err(problem) = path.parse::<VaultPath>() {
            mistakes.add(place, problem);
            return None;
        }
        if !self.has_vault {
            mistakes.add(place, "is in Vault, and no Vault is configured: add `[vault]`");
            return None;
        }
        Some(secret.clone())
    }
}

/// The requested scopes, in the syntax of RFC 6749 §3.3.
pub(in crate::gateway) fn read_scopes(
    written: Option<&[String]>,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Vec<String> {
    let scopes = written.unwrap_or_default().to_vec();
    let is_scope = |scope: &String| {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
        !scope.is_empty() && scope.len() <= 256 && scope.bytes().all(is_plain)
    };
    if scopes.len() > MAX_SCOPES || !scopes.iter().all(is_scope) {
        mistakes.add(place, format!("type at most {MAX_SCOPES} scopes, each one word"));
    }
    scopes
}
