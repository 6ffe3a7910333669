//! The authorization endpoint: checks a client's request, and asks the person before the browser is
//! redirected anywhere.

use super::Asked;
use super::client_document::DocumentUrl;
use super::cookies::{Person, Transaction, TransactionPurpose};
use super::form::Form;
use super::page::{self, ConsentPage};
use super::records::{after, name_of};
use super::refused::SignInRefusal;
use super::request::{self, AuthorizationRequest, RequestHead};
use crate::reply::Reply;
use crate::sealed::SealError;
use contract::time::Timestamp;
use engine::recorder::now;
use serde::{Deserialize, Serialize};
use serde_json::json;
use settings::gateway::{IssuerSettings, ProxySettings, RedirectUri};
use std::sync::Arc;
use store::{SignInKind, SignInName};
use url::Url;

/// A person's consent that a client acts for them, with what the person was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Consent {
    pub(super) principal: String,
    pub(super) client_id: String,
    pub(super) client_name: String,
    redirect_uri: String,
    scopes: Vec<String>,
    resource: String,
}

impl Consent {
    /// Whether a request asks for nothing beyond what the person was shown. The port of a loopback
    /// address may differ.
    fn covers(&self, request: &AuthorizationRequest) -> bool {
        let same_redirect =
            match (self.redirect_uri.parse::<RedirectUri>(), request.redirect_uri.parse()) {
                (Ok(shown), Ok(asked)) => shown.allows(&asked),
                _ => false,
            };
        same_redirect
            && self.client_id == request.client_id
            && self.resource == request.resource
            && request.scopes.iter().all(|scope| self.scopes.contains(scope))
    }
}

/// The name of the record of a person's consent to a client.
pub(super) fn consent_name(principal: &str, client_id: &str) -> Result<SignInName, SealError> {
    name_of(&["consent", principal, client_id])
}

impl Asked<'_> {
    pub(super) async fn authorize(&self) -> Result<Reply, SignInRefusal> {
        let proxy = self.proxy().ok_or(SignInRefusal::UnknownClient)?;
        let form = Form::read(self.query().as_bytes())?;
        let head = RequestHead::read(&form)?;
        let client = self.client(head.client_id, &proxy).await?;
        // INVARIANT: errors before this point are shown on our own page; the browser is not
        // redirected.
        client.check_redirect(&head.redirect_uri)?;
        let read = AuthorizationRequest::read(&form, &head, &client.name, &self.public_url);
        let request = match read {
            Ok(request) => request,
            Err(refusal) => return self.answer_client(&form, &head, &refusal),
        };
        let issuer = self.issuer(&proxy.issuer)?;
        let transaction =
            Transaction::begin(TransactionPurpose::Client(Box::new(request.clone())), now())?;
        if let Some(person) = self.person()
            && self.has_consented(&person, &request).await?
        {
            return self.go_to_provider(transaction, &issuer, false).await;
        }
        let host = DocumentUrl::read(&request.client_id, proxy.allow_private).map(|url| url.host);
        let shown = ConsentPage {
            transaction: &transaction,
            request: &request,
            redirect: &head.redirect_uri,
            client_host: host.as_deref(),
            gateway: self.public_url.authority(),
            provider: &place_of(&issuer.issuer),
            refresh_days: proxy.refresh_seconds / 86_400,
        };
        let cookie = transaction.cookie(&self.node.shared.sign_ins.sealer)?;
        Ok(page::with_cookies(shown.show(), [cookie]))
    }

    /// Sends an error back to the client, whose redirect address is verified.
    fn answer_client(
        &self,
        form: &Form,
        head: &RequestHead<'_>,
        refusal: &SignInRefusal,
    ) -> Result<Reply, SignInRefusal> {
        self.note_refused(refusal);
        let state = request::state_of(form)?;
        let described = refusal.to_string();
        let parameters =
            [("error", refusal.oauth_error()), ("error_description", described.as_str())];
        let redirect = head.redirect_uri.as_str();
        let to = request::answer(redirect, state.as_deref(), &self.public_url, &parameters);
        Ok(page::redirect(&to))
    }

    /// The person's response to the consent page.
    pub(super) async fn consent(&self, form: &Form) -> Result<Reply, SignInRefusal> {
        let sealer = &self.node.shared.sign_ins.sealer;
        let id = form.get("transaction").ok_or(SignInRefusal::Csrf)?;
        let transaction = Transaction::of(&self.parts.headers, id, sealer, now());
        let transaction = transaction.ok_or(SignInRefusal::Csrf)?;
        transaction.check_csrf(form.get("csrf"))?;
        let TransactionPurpose::Client(request) = transaction.purpose.clone() else {
            return Err(SignInRefusal::Csrf);
        };
        if form.get("decision") != Some("allow") {
            let data = consent_data(&request);
            self.node.shared.recorder.event("gateway", "oauth.consent.refused", None, &data);
            let to = request.answer(&self.public_url, &[("error", "access_denied")]);
            let reply = page::going_on(&to, &place_of(&request.redirect_uri));
            return Ok(page::with_cookies(reply, [Transaction::forget(id)?]));
        }
        let proxy = self.proxy().ok_or(SignInRefusal::UnknownClient)?;
        // Check again: the configuration may have changed since the page was shown.
        let client = self.client(&request.client_id, &proxy).await?;
        client.check_redirect(&request.redirect_uri.parse()?)?;
        let issuer = self.issuer(&proxy.issuer)?;
        self.go_to_provider(transaction, &issuer, true).await
    }

    /// Redirects the browser to the identity provider. INVARIANT: the values that must come back
    /// are created here, so only after consent.
    pub(super) async fn go_to_provider(
        &self,
        transaction: Transaction,
        issuer: &IssuerSettings,
        is_form: bool,
    ) -> Result<Reply, SignInRefusal> {
        let (leg, to) = self.to_provider(issuer, &transaction.id).await?;
        let transaction = Transaction { leg: Some(leg), ..transaction };
        let reply = match is_form {
            true => page::going_on(&to, &place_of(&issuer.issuer)),
            false => page::redirect(&to),
        };
        let cookie = transaction.cookie(&self.node.shared.sign_ins.sealer)?;
        Ok(page::with_cookies(reply, [cookie]))
    }

    /// The person signed in with this browser.
    pub(super) fn person(&self) -> Option<Person> {
        let revoked = self.node.authenticator().revoked();
        let sealer = &self.node.shared.sign_ins.sealer;
        Person::of(&self.parts.headers, sealer, &revoked, now())
    }

    /// An issuer that people can sign in at.
    pub(super) fn issuer(&self, name: &str) -> Result<IssuerSettings, SignInRefusal> {
        let settings = self.node.shared.settings();
        let found = settings.auth.issuers.iter().find(|issuer| issuer.issuer == name);
        found.filter(|issuer| issuer.sign_in.is_some()).cloned().ok_or(SignInRefusal::Issuer)
    }

    async fn has_consented(
        &self,
        person: &Person,
        request: &AuthorizationRequest,
    ) -> Result<bool, SignInRefusal> {
        let principal = person.principal();
        let name = consent_name(&principal, &request.client_id)?;
        let sign_ins = &self.node.shared.sign_ins;
        let found =
            sign_ins.with_store(move |store| store.sign_in(SignInKind::Consent, &name)).await?;
        let Some(record) = found.filter(|record| now() < record.expires_at) else {
            return Ok(false);
        };
        let consent: Option<Consent> = sign_ins.open(&record);
        Ok(consent.is_some_and(|consent| consent.principal == principal && consent.covers(request)))
    }

    /// Stores a person's consent, given in this browser for exactly this request.
    pub(super) async fn remember_consent(
        &self,
        principal: &str,
        request: &AuthorizationRequest,
        proxy: &ProxySettings,
        at: Timestamp,
    ) -> Result<(), SignInRefusal> {
        let consent = Consent {
            principal: principal.to_owned(),
            client_id: request.client_id.clone(),
            client_name: request.client_name.clone(),
            redirect_uri: request.redirect_uri.clone(),
            scopes: request.scopes.clone(),
            resource: request.resource.clone(),
        };
        let named = (SignInKind::Consent, consent_name(principal, &request.client_id)?);
        let times = (at, after(at, proxy.consent_seconds));
        let sign_ins = Arc::clone(&self.node.shared.sign_ins);
        let record = sign_ins.record(named, principal, times, &consent)?;
        sign_ins.with_store(move |store| store.put_sign_in(&record)).await?;
        self.note("oauth.consent.given", principal, &consent_data(request));
        Ok(())
    }
}

/// The data in receipts about a client's request.
pub(super) fn consent_data(request: &AuthorizationRequest) -> serde_json::Value {
    json!({
        "client_id": request.client_id,
        "redirect_uri": request.redirect_uri,
        "scopes": request.scopes,
        "resource": request.resource,
    })
}

/// The host of a URL, for display.
pub(super) fn place_of(url: &str) -> String {
    match Url::parse(url) {
        Ok(parsed) => {
            parsed.host_str().map_or_else(|| format!("{}:", parsed.scheme()), str::to_owned)
        }
        Err(_) => url.to_owned(),
    }
}
