//! Parses a client's request to the authorization endpoint. Pure.

use super::form::Form;
use super::refused::SignInRefusal;
use crate::catalog::Scope;
use crate::front::Route;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use settings::gateway::{RedirectUri, WebOrigin};
use sha2::{Digest, Sha256};

/// The scope of every client: to make any call, in the person's name, that the policies permit that
/// person.
pub(super) const SCOPE: &str = "mcp";
/// Accepted from clients that ask for it, although every client may refresh its tokens.
const OFFLINE: &str = "offline_access";
/// The length of a SHA-256 hash in base64url.
const CHALLENGE_CHARACTERS: usize = 43;
/// RFC 7636 §4.1.
const VERIFIER_CHARACTERS: std::ops::RangeInclusive<usize> = 43..=128;
const MAX_STATE_BYTES: usize = 1_024;

/// The parameters that determine where errors are sent. The browser is not redirected before both
/// are known to be the client's.
#[derive(Debug)]
pub(super) struct RequestHead<'f> {
    pub(super) client_id: &'f str,
    pub(super) redirect_uri: RedirectUri,
}

impl<'f> RequestHead<'f> {
    pub(super) fn read(form: &'f Form) -> Result<RequestHead<'f>, SignInRefusal> {
        let client_id = form.needed("client_id")?;
        let redirect_uri = form.needed("redirect_uri")?.parse()?;
        Ok(RequestHead { client_id, redirect_uri })
    }
}

/// A request that may be shown to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuthorizationRequest {
    pub(super) client_id: String,
    /// The client's own name for itself.
    pub(super) client_name: String,
    pub(super) redirect_uri: String,
    pub(super) state: Option<String>,
    pub(super) challenge: String,
    pub(super) scopes: Vec<String>,
    /// The exact URL that the tokens are for.
    pub(super) resource: String,
}

impl AuthorizationRequest {
    /// Parses the rest of a request whose client and redirect address are verified.
    pub(super) fn read(
        form: &Form,
        head: &RequestHead<'_>,
        client_name: &str,
        public_url: &WebOrigin,
    ) -> Result<AuthorizationRequest, SignInRefusal> {
        if form.needed("response_type")? != "code"
            || form.get("response_mode").is_some_and(|mode| mode != "query")
        {
            return Err(SignInRefusal::ResponseType);
        }
        let challenge = form.get("code_challenge").ok_or(SignInRefusal::Pkce)?;
        let is_challenge = challenge.len() == CHALLENGE_CHARACTERS
            && URL_SAFE_NO_PAD.decode(challenge).is_ok_and(|hash| hash.len() == 32);
        // Without a method, RFC 7636 means `plain`, which an attacker who saw the request can
        // satisfy.
        if !is_challenge || form.get("code_challenge_method") != Some("S256") {
            return Err(SignInRefusal::Pkce);
        }
        let state = state_of(form)?;
        Ok(AuthorizationRequest {
            client_id: head.client_id.to_owned(),
            client_name: client_name.to_owned(),
            redirect_uri: head.redirect_uri.as_str().to_owned(),
            state,
            challenge: challenge.to_owned(),
            scopes: scopes(form.get("scope"))?,
            resource: resource(form.get("resource"), public_url)?,
        })
    }

    /// The redirect address with a code or an error.
    pub(super) fn answer(&self, public_url: &WebOrigin, parameters: &[(&str, &str)]) -> String {
        answer(&self.redirect_uri, self.state.as_deref(), public_url, parameters)
    }
}

/// The client's `state`, which is returned unchanged.
pub(super) fn state_of(form: &Form) -> Result<Option<String>, SignInRefusal> {
    match form.get("state") {
        Some(state) if state.len() > MAX_STATE_BYTES => {
            Err(SignInRefusal::BadRequest("`state` is too long"))
        }
        state => Ok(state.map(str::to_owned)),
    }
}

/// A redirect address with these parameters appended, the client's `state`, and the issuer of the
/// response (RFC 9207).
pub(super) fn answer(
    redirect_uri: &str,
    state: Option<&str>,
    public_url: &WebOrigin,
    parameters: &[(&str, &str)],
) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    query.append_pair("iss", public_url.as_str());
    if let Some(state) = state {
        query.append_pair("state", state);
    }
    let between = if redirect_uri.contains('?') { '&' } else { '?' };
    format!("{redirect_uri}{between}{}", query.finish())
}

/// The granted scopes. RFC 6749 §3.3 lets a server ignore scopes that it does not know.
pub(super) fn scopes(asked: Option<&str>) -> Result<Vec<String>, SignInRefusal> {
    let Some(asked) = asked else { return Ok(vec![SCOPE.to_owned()]) };
    let is_known = asked.split(' ').any(|scope| [SCOPE, OFFLINE].contains(&scope));
    if is_known { Ok(vec![SCOPE.to_owned()]) } else { Err(SignInRefusal::Scope) }
}

/// The resource of the tokens (RFC 8707): an MCP path of this gateway, `/mcp` by default. Never the
/// admin API: a client must not approve what it was held for.
pub(super) fn resource(
    asked: Option<&str>,
    public_url: &WebOrigin,
) -> Result<String, SignInRefusal> {
    let Some(asked) = asked else { return Ok(format!("{public_url}/mcp")) };
    let path = asked.strip_prefix(public_url.as_str()).ok_or(SignInRefusal::Target)?;
    match Route::of(path) {
        Some(Route::Mcp { scope: Scope::All | Scope::Server(_) | Scope::Set(_), .. }) => {
            Ok(asked.to_owned())
        }
        _ => Err(SignInRefusal::Target),
    }
}

/// Whether a verifier matches the hash that the client sent before.
pub(super) fn verifies(verifier: &str, challenge: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_verifier =
        VERIFIER_CHARACTERS.contains(&verifier.len()) && verifier.bytes().all(is_plain);
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    is_verifier && super::cookies::same(&hash, challenge).is_some()
}

#[cfg(test)]
mod tests;
