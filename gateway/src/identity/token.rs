//! Parses a JWT strictly before any of it is trusted. The library that verifies the signature
//! accepts more (an `exp` with a fraction, a list as `iss`), so types are checked here.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::json::{Document, Node};
use contract::time::Timestamp;
use jsonwebtoken::Algorithm;
use policy::{ActorType, Identity, IdentityProof};
use settings::gateway::ClaimNames;
use std::borrow::Cow;
use store::{MAX_GROUPS, MAX_PRINCIPAL_BYTES};

use super::crypto::ALGORITHMS;
use super::key_set::MAX_KEY_ID_BYTES;

/// The longest token that is parsed.
pub const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The most audiences of one token.
const MAX_AUDIENCES: usize = 64;
/// The largest accepted difference between an issuer's clock and this one.
pub const CLOCK_SKEW_SECONDS: i64 = 60;
/// The latest accepted time: the end of the year 9999.
const MAX_SECONDS: i64 = 253_402_300_799;

/// Why a token is not valid. Recorded, but never shown to the caller beyond `invalid_token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TokenFault {
    #[error("the token is longer than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    #[error("not a signed JWT")]
    NotAToken,
    #[error("the token's JSON is not valid, or has a member twice")]
    NotJson,
    #[error("the algorithm is not one of the accepted ones")]
    Algorithm,
    #[error("the token names no key (`kid`)")]
    NoKeyId,
    #[error("the token has a critical header that is not understood")]
    Critical,
    #[error("the issuer is not configured")]
    UnknownIssuer,
    #[error("the issuer has no such key")]
    UnknownKey,
    #[error("the keys of the issuer cannot be fetched")]
    NoKeys,
    #[error("the signature does not verify")]
    Signature,
    #[error("the token is not for this audience")]
    Audience,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` has the wrong type or is too long")]
    WrongType(&'static str),
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
}

/// The parts of a token before verification.
pub(super) struct UnverifiedToken {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: String,
    claims: Vec<u8>,
}

impl UnverifiedToken {
    pub(super) fn parse(token: &str) -> Result<UnverifiedToken, TokenFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFault::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenFault::NotAToken);
        };
        if signature.is_empty() {
            return Err(TokenFault::NotAToken);
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::NotAToken);
        let (header, claims) = (decode(header)?, decode(claims)?);
        let header = Document::parse_bytes(&header).map_err(|_| TokenFault::NotJson)?;
        let header = header.root();
        let text = |name: &str| header.get(name).and_then(Node::as_str);
        let named = text("alg").ok_or(TokenFault::Algorithm)?;
        let algorithm = named.parse().map_err(|_| TokenFault::Algorithm)?;
        if !ALGORITHMS.contains(&algorithm) {
            return Err(TokenFault::Algorithm);
        }
        // RFC 7515: an unknown critical extension must not be ignored.
        if header.get("crit").is_some() {
            return Err(TokenFault::Critical);
        }
        let key_id = text("kid").ok_or(TokenFault::NoKeyId)?.into_owned();
        if key_id.is_empty() || key_id.len() > MAX_KEY_ID_BYTES {
            return Err(TokenFault::NoKeyId);
        }
        Ok(UnverifiedToken { algorithm, key_id, claims })
    }

    pub(super) fn claims(&self) -> Result<Claims<'_>, TokenFault> {
        let document = Document::parse_bytes(&self.claims).map_err(|_| TokenFault::NotJson)?;
        if document.root().is_object() { Ok(Claims { document }) } else { Err(TokenFault::NotJson) }
    }
}

/// The claims of a token.
pub(super) struct Claims<'t> {
    document: Document<'t>,
}

/// The result of reading the claims of a verified token.
#[derive(Debug)]
pub(super) struct ReadClaims {
    pub(super) identity: Identity,
    pub(super) audiences: Vec<String>,
    pub(super) expires: Timestamp,
    pub(super) not_before: Option<Timestamp>,
    /// A token without `iat` counts as infinitely old: any revocation of its principal invalidates
    /// it.
    pub(super) issued_at: Timestamp,
}

impl Claims<'_> {
    pub(super) fn issuer(&self) -> Result<Cow<'_, str>, TokenFault> {
        self.text("iss")?.ok_or(TokenFault::Missing("iss"))
    }

    pub(super) fn read(&self, names: &ClaimNames) -> Result<ReadClaims, TokenFault> {
        let issuer = self.issuer()?.into_owned();
        let subject = self.text("sub")?.ok_or(TokenFault::Missing("sub"))?.into_owned();
        if subject.is_empty() {
            return Err(TokenFault::WrongType("sub"));
        }
        let expires = self.moment("exp")?.ok_or(TokenFault::Missing("exp"))?;
        let not_before = self.moment("nbf")?;
        let issued_at = self.moment("iat")?.unwrap_or(Timestamp(i64::MIN));
        let client_id = match self.text("client_id")? {
            Some(client) => Some(client),
            None => self.text("azp")?,
        };
        let methods = self.list("amr", "amr", MAX_AUDIENCES)?.unwrap_or_default();
        let mut groups = match &names.groups {
            Some(name) => self.list(name, "groups", MAX_GROUPS)?.unwrap_or_default(),
            None => Vec::new(),
        };
        groups.sort_unstable();
        groups.dedup();
        let identity = Identity {
            issuer,
            subject,
            actor_type: self.actor_type(names)?,
            client_id: client_id.map(Cow::into_owned),
            org: self.named(names.org.as_deref(), "org")?,
            groups,
            clearance: self.named(names.clearance.as_deref(), "clearance")?,
            mfa: methods.iter().any(|method| method == "mfa"),
            proof: IdentityProof::Token,
        };
        let audiences = self.audiences()?;
        Ok(ReadClaims { identity, audiences, expires, not_before, issued_at })
    }

    /// A caller without a claim to be a person is an agent: people may approve, agents may not.
    fn actor_type(&self, names: &ClaimNames) -> Result<ActorType, TokenFault> {
        match self.named(names.actor_type.as_deref(), "actor_type")?.as_deref() {
            None | Some("agent") => Ok(ActorType::Agent),
            Some("user") => Ok(ActorType::User),
            Some("system") => Ok(ActorType::System),
            Some(_) => Err(TokenFault::WrongType("actor_type")),
        }
    }

    fn audiences(&self) -> Result<Vec<String>, TokenFault> {
        let audience = self.document.root().get("aud").ok_or(TokenFault::Missing("aud"))?;
        if audience.is_array() {
            let audiences = self.list("aud", "aud", MAX_AUDIENCES)?.unwrap_or_default();
            return Ok(audiences);
        }
        Ok(vec![self.text("aud")?.ok_or(TokenFault::WrongType("aud"))?.into_owned()])
    }

    /// A claim that is only compared or displayed, if it is a text of reasonable length.
    pub(super) fn plain(&self, name: &'static str) -> Option<String> {
        self.text(name).ok().flatten().map(Cow::into_owned)
    }

    fn named(&self, name: Option<&str>, kind: &'static str) -> Result<Option<String>, TokenFault> {
        let Some(name) = name else { return Ok(None) };
        let Some(node) = self.document.root().get(name) else { return Ok(None) };
        let text = node.as_str().filter(|text| !text.is_empty()).filter(|text| is_short(text));
        text.map(|text| Some(text.into_owned())).ok_or(TokenFault::WrongType(kind))
    }

    fn text(&self, name: &'static str) -> Result<Option<Cow<'_, str>>, TokenFault> {
        let Some(node) = self.document.root().get(name) else { return Ok(None) };
        let text = node.as_str().filter(|text| is_short(text));
        text.map(Some).ok_or(TokenFault::WrongType(name))
    }

    fn list(
        &self,
        name: &str,
        kind: &'static str,
        most: usize,
    ) -> Result<Option<Vec<String>>, TokenFault> {
        let Some(node) = self.document.root().get(name) else { return Ok(None) };
        if !node.is_array() || node.items().take(most + 1).count() > most {
            return Err(TokenFault::WrongType(kind));
        }
        let texts = node.items().map(|item| {
            let text = item.as_str().filter(|text| !text.is_empty()).filter(|text| is_short(text));
            text.map(Cow::into_owned).ok_or(TokenFault::WrongType(kind))
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// A time in whole seconds. A text, a fraction or an exponent is refused, since parsers differ
    /// on their meaning.
    fn moment(&self, name: &'static str) -> Result<Option<Timestamp>, TokenFault> {
        let Some(node) = self.document.root().get(name) else { return Ok(None) };
        let digits = node.as_number().filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        let seconds = digits.and_then(|digits| digits.parse().ok());
        let seconds: i64 =
            seconds.filter(|seconds| *seconds <= MAX_SECONDS).ok_or(TokenFault::WrongType(name))?;
        Ok(Some(Timestamp(seconds * 1_000)))
    }
}

fn is_short(text: &str) -> bool {
    text.len() <= MAX_PRINCIPAL_BYTES
}

impl ReadClaims {
    /// The moment from which the token is refused.
    pub(super) fn refused_from(&self) -> Timestamp {
        Timestamp(self.expires.0 + CLOCK_SKEW_SECONDS * 1_000)
    }

    pub(super) fn check_time(&self, now: Timestamp) -> Result<(), TokenFault> {
        if now >= self.refused_from() {
            return Err(TokenFault::Expired);
        }
        let skew = CLOCK_SKEW_SECONDS * 1_000;
        if self.not_before.is_some_and(|moment| now.0 < moment.0 - skew) {
            return Err(TokenFault::NotYetValid);
        }
        Ok(())
    }
}
