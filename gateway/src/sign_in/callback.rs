//! The identity provider's redirect target. From here on, the signed-in person is known.

use super::Asked;
use super::cookies::{
    Person, TRANSACTION_SECONDS, Transaction, TransactionPurpose, is_revoked, same,
};
use super::form::Form;
use super::page;
use super::records::{after, random_id, seal};
use super::refused::SignInRefusal;
use super::request::AuthorizationRequest;
use super::token::AuthorizationCode;
use crate::identity::SignedInPerson;
use crate::reply::Reply;
use crate::sealed::Purpose;
use contract::time::Timestamp;
use engine::recorder::now;

/// How long a client may take to redeem a code.
const CODE_SECONDS: u64 = 60;

impl Asked<'_> {
    pub(super) async fn callback(&self) -> Result<Reply, SignInRefusal> {
        let form = Form::read(self.query().as_bytes())?;
        let now = now();
        let state = form.get("state").ok_or(SignInRefusal::State)?;
        let id = state.split('.').next().unwrap_or_default();
        let sign_ins = &self.node.shared.sign_ins;
        let transaction = Transaction::of(&self.parts.headers, id, &sign_ins.sealer, now);
        let transaction = transaction.ok_or(SignInRefusal::State)?;
        let leg = transaction.leg.as_ref().ok_or(SignInRefusal::State)?;
        same(&leg.state, state).ok_or(SignInRefusal::State)?;
        let Some(code) = form.get("code") else {
            return self.provider_refused(&transaction);
        };
        let issuer = self.issuer(&leg.issuer)?;
        let found = self.person_of_provider(&issuer, leg, (code, form.get("iss")), now).await?;
        let SignedInPerson { identity, shown } = found;
        // Recorded only once a person has signed in: strangers must not be able to fill the store.
        let name = id.parse().map_err(|_| SignInRefusal::State)?;
        let until = after(now, TRANSACTION_SECONDS);
        if !sign_ins.use_up(name, &identity.principal(), now, until).await? {
            return Err(SignInRefusal::StateReplayed);
        }
        let revoked = self.node.authenticator().revoked();
        // A sign-in that began before the person's revocation is not valid either.
        if is_revoked(&identity, Timestamp(transaction.begun_at), &revoked) {
            return Err(SignInRefusal::Revoked);
        }
        let person = Person { identity, shown, at: now.0, csrf: random_id()? };
        let to = match &transaction.purpose {
            TransactionPurpose::Return { path } => path.clone(),
            TransactionPurpose::Client(request) => self.issue_code(&person, request, now).await?,
        };
        let cookies = [person.cookie(&sign_ins.sealer)?, Transaction::forget(id)?];
        Ok(page::with_cookies(page::redirect(&to), cookies))
    }

    /// The identity provider refused the sign-in. Forwards the error to the waiting client.
    fn provider_refused(&self, transaction: &Transaction) -> Result<Reply, SignInRefusal> {
        let TransactionPurpose::Client(request) = &transaction.purpose else {
            return Err(SignInRefusal::ProviderDenied);
        };
        self.note_refused(&SignInRefusal::ProviderDenied);
        let to = request.answer(&self.public_url, &[("error", "access_denied")]);
        Ok(page::with_cookies(page::redirect(&to), [Transaction::forget(&transaction.id)?]))
    }

    /// Stores the consent given in this sign-in, and issues a code to the client.
    async fn issue_code(
        &self,
        person: &Person,
        request: &AuthorizationRequest,
        now: Timestamp,
    ) -> Result<String, SignInRefusal> {
        let proxy = self.proxy().ok_or(SignInRefusal::UnknownClient)?;
        self.remember_consent(&person.principal(), request, &proxy, now).await?;
        let code = AuthorizationCode {
            id: random_id()?,
            client_id: request.client_id.clone(),
            redirect_uri: request.redirect_uri.clone(),
            challenge: request.challenge.clone(),
            scopes: request.scopes.clone(),
            resource: request.resource.clone(),
            identity: person.identity.using(&request.client_id),
            at: now.0,
            expires_at: after(now, CODE_SECONDS).0,
        };
        let sealed = seal(&self.node.shared.sign_ins.sealer, Purpose::AuthorizationCode, &code)?;
        Ok(request.answer(&self.public_url, &[("code", &sealed)]))
    }
}
