//! The token and revocation endpoints. Clients have no secret; they prove themselves by the PKCE
//! verifier.

use super::Asked;
use super::cookies::is_revoked;
use super::family::{Family, RefreshToken};
use super::form::Form;
use super::records::{after, open, seal};
use super::refused::SignInRefusal;
use super::request::verifies;
use crate::identity::{MintedToken, WrittenIdentity};
use crate::reply::{self, Reply};
use crate::sealed::Purpose;
use bytes::Bytes;
use contract::time::Timestamp;
use engine::recorder::now;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use settings::gateway::ProxySettings;

/// The prefix of refresh tokens.
const REFRESH_PREFIX: &str = "hpr_";
/// How long a used code is remembered: longer than a code is valid.
const USED_CODE_SECONDS: u64 = 600;

/// The content of an authorization code, before it is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuthorizationCode {
    /// Also identifies the family of tokens that begins with it.
    pub(super) id: String,
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) scopes: Vec<String>,
    pub(super) resource: String,
    pub(super) identity: WrittenIdentity,
    pub(super) at: i64,
    pub(super) expires_at: i64,
}

impl Asked<'_> {
    pub(super) async fn token(&self, form: &Form) -> Result<Reply, SignInRefusal> {
        let proxy = self.proxy().ok_or(SignInRefusal::UnknownClient)?;
        match form.needed("grant_type")? {
            "authorization_code" => self.redeem(form, &proxy, now()).await,
            "refresh_token" => self.refresh(form, &proxy, now()).await,
            _ => Err(SignInRefusal::GrantType),
        }
    }

    async fn redeem(
        &self,
        form: &Form,
        proxy: &ProxySettings,
        now: Timestamp,
    ) -> Result<Reply, SignInRefusal> {
        let sign_ins = &self.node.shared.sign_ins;
        let sealed = form.needed("code")?;
        let code: Option<AuthorizationCode> =
            open(&sign_ins.sealer, Purpose::AuthorizationCode, sealed);
        let code = code.filter(|code| now.0 < code.expires_at).ok_or(SignInRefusal::Code)?;
        if form.needed("client_id")? != code.client_id {
            return Err(SignInRefusal::OtherClient);
        }
        if form.needed("redirect_uri")? != code.redirect_uri {
            return Err(SignInRefusal::OtherRedirect);
        }
        if !verifies(form.get("code_verifier").unwrap_or_default(), &code.challenge) {
            return Err(SignInRefusal::Verifier);
        }
        check_resource(form, &code.resource)?;
        // The operator may have removed the client since.
        self.client(&code.client_id, proxy).await?;
        if is_revoked(&code.identity, Timestamp(code.at), &self.node.authenticator().revoked()) {
            return Err(SignInRefusal::Revoked);
        }
        let name = code.id.parse().map_err(|_| SignInRefusal::Code)?;
        let principal = code.identity.principal();
        if !sign_ins.use_up(name, &principal, now, after(now, USED_CODE_SECONDS)).await? {
            // One of the two holders of the code is an attacker: end everything that was issued for
            // it.
            sign_ins.end_family(&code.id, proxy, now).await?;
            self.note(
                "oauth.tokens.revoked",
                &principal,
                &json!({"client_id": code.client_id, "reason": "oauth_code_replayed"}),
            );
            return Err(SignInRefusal::CodeReplayed);
        }
        let family = Family {
            identity: code.identity,
            client_id: code.client_id,
            resource: code.resource,
            scopes: code.scopes,
            signed_in_at: code.at,
            generation: 0,
        };
        sign_ins.begin_family(&code.id, &family, proxy, now).await?;
        let data = json!({"client_id": family.client_id, "resource": family.resource});
        self.note("oauth.tokens.issued", &principal, &data);
        self.give(&code.id, &family, proxy, now)
    }

    async fn refresh(
        &self,
        form: &Form,
        proxy: &ProxySettings,
        now: Timestamp,
    ) -> Result<Reply, SignInRefusal> {
        let sign_ins = &self.node.shared.sign_ins;
        let token = self.refresh_token(form.needed("refresh_token")?);
        let token = token.ok_or(SignInRefusal::RefreshToken)?;
        if form.needed("client_id")? != token.client_id {
            return Err(SignInRefusal::OtherClient);
        }
        self.client(&token.client_id, proxy).await?;
        let family = match sign_ins.rotate(&token, now).await {
            Ok(family) => family,
            Err(SignInRefusal::RefreshReused) => {
                if let Some(family) = sign_ins.end_family(&token.family, proxy, now).await? {
                    let data =
                        json!({"client_id": token.client_id, "reason": "oauth_refresh_reused"});
                    self.note("oauth.tokens.revoked", &family.identity.principal(), &data);
                }
                return Err(SignInRefusal::RefreshReused);
            }
            Err(refusal) => return Err(refusal),
        };
        let revoked = self.node.authenticator().revoked();
        if is_revoked(&family.identity, Timestamp(family.signed_in_at), &revoked)
            || family.identity.issuer != proxy.issuer
        {
            sign_ins.end_family(&token.family, proxy, now).await?;
            return Err(SignInRefusal::Revoked);
        }
        check_resource(form, &family.resource)?;
        self.give(&token.family, &family, proxy, now)
    }

    fn refresh_token(&self, text: &str) -> Option<RefreshToken> {
        let sealer = &self.node.shared.sign_ins.sealer;
        open(sealer, Purpose::RefreshToken, text.strip_prefix(REFRESH_PREFIX)?)
    }

    fn give(
        &self,
        id: &str,
        family: &Family,
        proxy: &ProxySettings,
        now: Timestamp,
    ) -> Result<Reply, SignInRefusal> {
        let sealer = &self.node.shared.sign_ins.sealer;
        let access = family.access_token(id, proxy, now).seal(sealer)?;
        let refresh = seal(sealer, Purpose::RefreshToken, &family.refresh_token(id))?;
        let body = json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": proxy.access_seconds,
            "refresh_token": format!("{REFRESH_PREFIX}{refresh}"),
            "scope": family.scopes.join(" "),
        });
        Ok(reply::json(StatusCode::OK, [Bytes::from(body.to_string())]))
    }

    /// RFC 7009. An unknown token gets the same response as a revoked one.
    pub(super) async fn revoke(&self, form: &Form) -> Result<Reply, SignInRefusal> {
        let proxy = self.proxy().ok_or(SignInRefusal::UnknownClient)?;
        let (token, client_id) = (form.needed("token")?, form.needed("client_id")?);
        let sign_ins = &self.node.shared.sign_ins;
        let family = match self.refresh_token(token) {
            Some(refresh) if refresh.client_id == client_id => Some(refresh.family),
            Some(_) => return Err(SignInRefusal::OtherClient),
            None => match MintedToken::open(&sign_ins.sealer, token) {
                Some(access) if access.identity.client_id.as_deref() == Some(client_id) => {
                    Some(access.family)
                }
                Some(_) => return Err(SignInRefusal::OtherClient),
                None => None,
            },
        };
        if let Some(id) = family
            && let Some(family) = sign_ins.end_family(&id, &proxy, now()).await?
        {
            let data = json!({"client_id": client_id, "reason": "client"});
            self.note("oauth.tokens.revoked", &family.identity.principal(), &data);
        }
        Ok(reply::empty(StatusCode::OK))
    }
}

/// RFC 8707 §2.2: the resource may be repeated, but must be the same.
fn check_resource(form: &Form, resource: &str) -> Result<(), SignInRefusal> {
    match form.get("resource") {
        Some(named) if named != resource => Err(SignInRefusal::Target),
        Some(_) | None => Ok(()),
    }
}
