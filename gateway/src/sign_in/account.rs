//! The page on which a person sees which applications act in their name, and can end that.

use super::Asked;
use super::authorize::Consent;
use super::cookies::{Person, Transaction, TransactionPurpose};
use super::family::Family;
use super::form::Form;
use super::page::{self, Escaped};
use super::refused::SignInRefusal;
use crate::reply::Reply;
use contract::time::Timestamp;
use engine::recorder::now;
use http::StatusCode;
use serde_json::json;
use store::{SignIn, SignInKind, SignInName};

const PATH: &str = "/account";

impl Asked<'_> {
    pub(super) async fn account(&self) -> Result<Reply, SignInRefusal> {
        let Some(person) = self.person() else { return self.sign_in_first(PATH).await };
        let consents = self.consents(&person).await?;
        let rows = |rows: Vec<String>, none: &str| match rows.is_empty() {
            true => format!("<p class=\"soft\">{none}</p>"),
            false => format!("<ul class=\"rows\">{}</ul>", rows.concat()),
        };
        let applications = consents.iter().map(|(record, consent)| {
            let told = format!(
                "<span><strong>{}</strong><br><small>{} · since {}</small></span>",
                Escaped(&consent.client_name),
                Escaped(&consent.client_id),
                day(record.at)
            );
            row(&person, &told, ("application", record.name.as_str()), &consent.client_name)
        });
        let content = format!(
            "<h1>Your sign-ins at {gateway}</h1><p>You are signed in as <strong>{shown}</strong>.</p>\
             <h2>Applications that act in your name</h2>{applications}\
             {servers}\
             <form method=\"post\" action=\"/account/sign-out\"><input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
             <div class=\"deeds\"><button name=\"browser\" value=\"yes\">Sign out of this page</button></div></form>",
            gateway = Escaped(self.public_url.authority()),
            shown = Escaped(&person.shown),
            applications = rows(applications.collect(), "None."),
            servers = self.servers_part(&person).await?,
            csrf = Escaped(&person.csrf),
        );
        Ok(page::page(StatusCode::OK, "Your sign-ins", &content))
    }

    /// Lets the person sign in to the gateway first, and then continue at a path.
    pub(super) async fn sign_in_first(&self, path: &str) -> Result<Reply, SignInRefusal> {
        let settings = self.node.shared.settings();
        let named = settings.oauth_proxy.as_ref().map(|proxy| proxy.issuer.as_str());
        let mut usable = settings.auth.issuers.iter().filter(|issuer| issuer.sign_in.is_some());
        let first = usable.next().map(|issuer| issuer.issuer.as_str());
        self.sign_in_at(named.or(first).ok_or(SignInRefusal::Issuer)?, path).await
    }

    /// Like [`Asked::sign_in_first`], at a given issuer.
    pub(super) async fn sign_in_at(
        &self,
        issuer: &str,
        path: &str,
    ) -> Result<Reply, SignInRefusal> {
        let issuer = self.issuer(issuer)?;
        let purpose = TransactionPurpose::Return { path: path.to_owned() };
        let transaction = Transaction::begin(purpose, now())?;
        self.go_to_provider(transaction, &issuer, false).await
    }

    async fn consents(&self, person: &Person) -> Result<Vec<(SignIn, Consent)>, SignInRefusal> {
        let (sign_ins, principal) = (&self.node.shared.sign_ins, person.principal());
        let owner = principal.clone();
        let records = sign_ins
            .with_store(move |store| store.sign_ins_of(SignInKind::Consent, &owner))
            .await?;
        let current = records.into_iter().filter(|record| now() < record.expires_at);
        let opened = current.filter_map(|record| {
            let consent: Consent = sign_ins.open(&record)?;
            (consent.principal == principal).then_some((record, consent))
        });
        Ok(opened.collect())
    }

    /// Ends what the person chose on that page.
    pub(super) async fn sign_out(&self, form: &Form) -> Result<Reply, SignInRefusal> {
        let person = self.person().ok_or(SignInRefusal::Csrf)?;
        person.check_csrf(form.get("csrf"))?;
        if let Some(name) = form.get("application") {
            self.end_application(&person, name).await?;
        }
        if let Some(server) = form.get("server") {
            self.end_server(&person, server).await?;
        }
        if form.get("browser").is_some() {
            let reply =
                page::done("Signed out", "This browser is signed out of the gateway’s pages.");
            return Ok(page::with_cookies(reply, [Person::forget()?]));
        }
        Ok(page::redirect(PATH))
    }

    /// Deletes a consent, and ends the tokens that the client got through it.
    async fn end_application(&self, person: &Person, name: &str) -> Result<(), SignInRefusal> {
        let found = self.consents(person).await?;
        let found = found.into_iter().find(|(record, _)| record.name.as_str() == name);
        let Some((record, consent)) = found else { return Ok(()) };
        let sign_ins = &self.node.shared.sign_ins;
        let (owner, name) = (person.principal(), record.name.clone());
        let families = sign_ins
            .with_store(move |store| {
                store.remove_sign_in(SignInKind::Consent, &name)?;
                store.sign_ins_of(SignInKind::Family, &owner)
            })
            .await?;
        if let Some(proxy) = self.proxy() {
            let is_meant = |record: &SignIn| {
                let family: Option<Family> = sign_ins.open(record);
                family.is_some_and(|family| family.client_id == consent.client_id)
            };
            let meant: Vec<SignInName> =
                families.into_iter().filter(is_meant).map(|record| record.name).collect();
            for family in meant {
                sign_ins.end_family(family.as_str(), &proxy, now()).await?;
            }
        }
        let data = json!({"client_id": consent.client_id});
        self.note("oauth.consent.withdrawn", &person.principal(), &data);
        Ok(())
    }
}

/// A row with a button that ends the entry.
pub(super) fn row(person: &Person, told: &str, (name, value): (&str, &str), what: &str) -> String {
    format!(
        "<li>{told}<form method=\"post\" action=\"/account/sign-out\">\
         <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\"><input type=\"hidden\" name=\"{name}\" value=\"{value}\">\
         <button aria-label=\"Remove {what}\">Remove</button></form></li>",
        csrf = Escaped(&person.csrf),
        value = Escaped(value),
        what = Escaped(what),
    )
}

/// The date of a moment, in UTC.
pub(super) fn day(at: Timestamp) -> String {
    at.to_string().split('T').next().unwrap_or_default().to_owned()
}
