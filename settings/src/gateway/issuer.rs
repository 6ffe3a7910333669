//! `[[auth.issuer]]`: whose tokens are accepted, for which audience, and the meaning of their
//! claims.

use super::front::readable;
use super::mistake::{Mistakes, Place};
use super::server::read_scopes;
use super::tables::{AuthTable, ClientAuth, IssuerTable};
use super::web_url::{WebOrigin, WebUrl};
use crate::secret::SecretName;
use crate::value::Text;
use std::collections::BTreeSet;
use std::path::Path;

/// An issuer of access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// Compared with `iss` byte for byte.
    pub issuer: String,
    /// Accepted as `aud` in addition to the requested URL.
    pub audience: String,
    pub jwks_uri: WebUrl,
    pub claims: ClaimNames,
    /// Whether the key set may be at a private address.
    pub allow_private: bool,
    /// Certificate authorities for the key set's host, instead of the system's.
    pub ca: Option<SecretName>,
    /// The gateway's client at this issuer, with which people sign in to the gateway in a browser.
    pub sign_in: Option<SignInSettings>,
}

/// How people sign in to the gateway through an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInSettings {
    /// The gateway's client, as `ID:SECRET`.
    pub client: SecretName,
    pub client_auth: ClientAuth,
    /// The requested scopes, including `openid`.
    pub scopes: Vec<String>,
}

/// The claims that describe a caller beyond its subject. A claim without a configured name is not
/// read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimNames {
    pub actor_type: Option<String>,
    pub groups: Option<String>,
    pub org: Option<String>,
    pub clearance: Option<String>,
}

/// Claims that the gateway reads itself, so they cannot be given another meaning.
const RESERVED_CLAIMS: [&str; 8] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "amr"];

pub(super) fn read(
    table: &AuthTable,
    public_url: Option<&WebOrigin>,
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Vec<IssuerSettings> {
    let place = Place::top().key("auth").key("issuer");
    let mut seen = BTreeSet::new();
    let mut issuers = Vec::new();
    for (index, table) in table.issuer.iter().enumerate() {
        let place = place.index(index);
        if let Some(name) = table.issuer.as_deref()
            && !seen.insert(name)
        {
            mistakes.add(&place.key("issuer"), "configured twice: keep one of them");
        }
        issuers.extend(issuer(table, public_url, folder, &place, mistakes));
    }
    issuers
}

fn issuer(
    table: &IssuerTable,
    public_url: Option<&WebOrigin>,
    folder: &Path,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<IssuerSettings> {
    let issuer = url(table.issuer.as_ref(), &place.key("issuer"), mistakes);
    let jwks_uri = url(table.jwks_uri.as_ref(), &place.key("jwks_uri"), mistakes);
    let audience = audience(table.audience.as_ref(), public_url, place, mistakes);
    let sign_in = sign_in(table, folder, place, mistakes);
    let mut claim = |key: &str, name: &Option<Text>| {
        let name = name.as_deref()?;
        if RESERVED_CLAIMS.contains(&name) {
            let problem = format!("`{name}` has a meaning of its own: name another claim");
            mistakes.add(&place.key(key), problem);
        }
        Some(name.to_owned())
    };
    let claims = ClaimNames {
        actor_type: claim("actor_type_claim", &table.actor_type_claim),
        groups: claim("groups_claim", &table.groups_claim),
        org: claim("org_claim", &table.org_claim),
        clearance: claim("clearance_claim", &table.clearance_claim),
    };
    let ca = match &table.ca {
        Some(ca) => Some(readable(ca, folder, &place.key("ca"), mistakes)?),
        None => None,
    };
    Some(IssuerSettings {
        issuer: issuer?.as_str().to_owned(),
        audience: audience?,
        jwks_uri: jwks_uri?,
        claims,
        allow_private: table.allow_private,
        ca,
        sign_in: sign_in?,
    })
}

/// Returns `None` if there is a mistake, and `Some(None)` if people do not sign in through this
/// issuer.
fn sign_in(
    table: &IssuerTable,
    folder: &Path,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<Option<SignInSettings>> {
    let Some(client) = &table.client else {
        for (key, is_set) in [
            ("client_auth", table.client_auth.is_some()),
            ("sign_in_scopes", table.sign_in_scopes.is_some()),
        ] {
            if is_set {
                mistakes.add(&place.key(key), "is about `client`, which is not set");
            }
        }
        return Some(None);
    };
    let client = readable(client, folder, &place.key("client"), mistakes)?;
    let place = place.key("sign_in_scopes");
    let mut scopes = read_scopes(table.sign_in_scopes.as_deref(), &place, mistakes);
    if !scopes.iter().any(|scope| scope == "openid") {
        scopes.insert(0, "openid".to_owned());
    }
    let client_auth = table.client_auth.unwrap_or_default();
    Some(Some(SignInSettings { client, client_auth, scopes }))
}

fn url(written: Option<&Text>, place: &Place, mistakes: &mut Mistakes<'_>) -> Option<WebUrl> {
    let Some(text) = written else {
        mistakes.add(place, "missing: type the URL that the identity provider publishes");
        return None;
    };
    text.parse().map_err(|error| mistakes.add(place, format!("{error}"))).ok()
}

fn audience(
    written: Option<&Text>,
    public_url: Option<&WebOrigin>,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<String> {
    let place = place.key("audience");
    let Some(audience) = written.map(|text| text.to_string()) else {
        let example = public_url.map_or("https://mcp.example.com", WebOrigin::as_str);
        mistakes.add(
            &place,
            format!(
                "missing: without it a token that was issued for another service would be accepted; type for example `\"{example}\"`"
            ),
        );
        return None;
    };
    let is_admin = |origin: &WebOrigin| audience.trim_end_matches('/') == origin.admin_audience();
    if public_url.is_some_and(is_admin) {
        mistakes.add(
            &place,
            "this is the audience of the admin API, whose tokens must not open an MCP path: name another one",
        );
        return None;
    }
    Some(audience)
}
