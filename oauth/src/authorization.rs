//! The part of a sign-in that goes through a browser: the authorization request and its response.

use crate::challenge::scopes;
use crate::client::Discovery;
use crate::dpop::DpopKey;
use crate::error::SignInError;
use crate::reading::plain_code;
use crate::registration::RegisteredClient;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};
use wire::ServerText;

/// The longest response that is read.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// The longest authorization code that is accepted.
const MAX_CODE_BYTES: usize = 8 * 1024;
/// The random bytes of a sign-in: 32 for `state`, 32 for the PKCE verifier.
pub const RANDOM_BYTES: usize = 64;

/// The parameters of one sign-in.
#[derive(Debug)]
pub struct Begin<'a> {
    /// Where the browser is redirected afterwards.
    pub redirect_uri: &'a str,
    /// Requested instead of the discovered scopes, unless empty.
    pub scopes: &'a [String],
    pub random: [u8; RANDOM_BYTES],
    /// The key to bind tokens to, if the server supports that.
    pub dpop: Option<DpopKey>,
}

/// A sign-in that was started.
#[derive(Debug)]
pub struct Begun {
    /// The address to open in the person's browser.
    pub url: String,
    pub pending: Pending,
}

/// The values that must be remembered until the browser returns. They are secret and can be used
/// only once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pending {
    pub(crate) state: Secret,
    pub(crate) verifier: Secret,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) client: RegisteredClient,
    pub(crate) dpop: Option<DpopKey>,
    pub(crate) found: Discovery,
}

/// A code that can be redeemed once.
#[derive(Debug)]
pub struct Code {
    pub(crate) code: Secret,
    pub(crate) pending: Pending,
}

/// Builds the authorization request for the browser.
pub fn begin(
    found: &Discovery,
    client: &RegisteredClient,
    begin: Begin<'_>,
) -> Result<Begun, SignInError> {
    let (state, verifier) = begin.random.split_at(RANDOM_BYTES / 2);
    let state = Secret::new(URL_SAFE_NO_PAD.encode(state));
    let verifier = Secret::new(URL_SAFE_NO_PAD.encode(verifier));
    let scopes = if begin.scopes.is_empty() { &found.scopes } else { begin.scopes };
    let endpoint = &found.server.authorization_endpoint;
    let mut url = Url::parse(endpoint).map_err(|_| SignInError::BadAddress {
        name: "authorization_endpoint",
        url: ServerText::line(endpoint),
        problem: "it is not a URL that can be used",
    })?;
    {
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", begin.redirect_uri)
            .append_pair("state", state.expose())
            .append_pair("code_challenge", &challenge_of(&verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
        // OpenID Connect grants no offline access without it.
        if scopes.iter().any(|scope| scope == "offline_access") {
            query.append_pair("prompt", "consent");
        }
        if let Some(key) = &begin.dpop {
            query.append_pair("dpop_jkt", &key.thumbprint());
        }
    }
    let pending = Pending {
        state,
        verifier,
        redirect_uri: begin.redirect_uri.to_owned(),
        scopes: scopes.to_vec(),
        client: client.clone(),
        dpop: begin.dpop,
        found: found.clone(),
    };
    Ok(Begun { url: url.into(), pending })
}

fn challenge_of(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()))
}

impl Pending {
    /// Reads the response that the browser brings back: the query of the redirect address.
    ///
    /// The order matters: a response that does not belong to this sign-in must not have any effect,
    /// not even as an error.
    pub fn accept(self, query: &str) -> Result<Code, SignInError> {
        if query.len() > MAX_ANSWER_BYTES {
            return Err(SignInError::BadAnswer("it is too long"));
        }
        let answer = Answer::read(query)?;
        let state = answer.state.ok_or(SignInError::StateMismatch)?;
        if !self.is_state(&state) {
            return Err(SignInError::StateMismatch);
        }
        match answer.issuer {
            Some(found) if found != self.found.server.issuer => {
                return Err(SignInError::IssuerMismatch {
                    expected: ServerText::line(&self.found.server.issuer),
                    found: ServerText::line(&found),
                });
            }
            None if self.found.server.answers_name_issuer => {
                return Err(SignInError::IssuerMissing);
            }
            Some(_) | None => {}
        }
        if let Some(error) = answer.error {
            let code = plain_code(&error).unwrap_or_else(|| "an unreadable error".to_owned());
            return Err(SignInError::Denied { code });
        }
        let code = answer.code.filter(|code| !code.is_empty() && code.len() <= MAX_CODE_BYTES);
        let code = code.ok_or(SignInError::BadAnswer("it has no code, or one that is too long"))?;
        Ok(Code { code: Secret::new(code), pending: self })
    }

    /// Whether a response is for this sign-in, without consuming it.
    pub fn is_for(&self, query: &str) -> bool {
        let state = Answer::read(query).ok().and_then(|answer| answer.state);
        state.is_some_and(|state| self.is_state(&state))
    }

    /// Compares hashes, so that the time it takes does not reveal how much of the text was right.
    fn is_state(&self, state: &str) -> bool {
        Sha256::digest(state.as_bytes()) == Sha256::digest(self.state.expose().as_bytes())
    }

    pub fn issuer(&self) -> &str {
        &self.found.server.issuer
    }
}

/// The parameters of a response that are used. A repeated parameter makes the response ambiguous.
#[derive(Default)]
struct Answer {
    state: Option<String>,
    code: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
}

impl Answer {
    fn read(query: &str) -> Result<Answer, SignInError> {
        let mut answer = Answer::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "state" => &mut answer.state,
                "code" => &mut answer.code,
                "iss" => &mut answer.issuer,
                "error" => &mut answer.error,
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return Err(SignInError::BadAnswer("a parameter is there twice"));
            }
        }
        Ok(answer)
    }
}

/// The scopes to request after a server asked for more: those already granted and the new ones.
/// Returns `None` if all of them were already granted, so that asking again would change nothing.
pub fn stepped_up(granted: &[String], wanted: &[String]) -> Option<Vec<String>> {
    let mut all = granted.to_vec();
    all.extend(wanted.iter().filter(|scope| !granted.contains(scope)).cloned());
    (all.len() > granted.len()).then_some(all)
}

/// The scopes in a token response, or the requested ones if it contains none.
pub(crate) fn granted(answered: Option<&str>, asked: &[String]) -> Vec<String> {
    answered.and_then(scopes).filter(|scopes| !scopes.is_empty()).unwrap_or_else(|| asked.to_vec())
}

#[cfg(test)]
mod tests;
