//! `[approval.webhook]`: the webhook that is notified of calls that wait for a person.

use super::front::readable;
use super::mistake::{Mistakes, Place};
use super::tables::WebhookTable;
use super::web_url::WebUrl;
use crate::secret::SecretName;
use std::path::Path;

/// The receiver of notifications, and how the gateway authenticates to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    pub url: WebhookUrl,
    /// The key that notifications are signed with.
    pub secret: SecretName,
    /// Where approvers reach the admin API, used for links; `None` means `gateway.public_url`.
    pub decide_at: Option<WebUrl>,
    pub allow_private: bool,
    /// Certificate authorities for its host, instead of the system's.
    pub ca: Option<SecretName>,
}

/// The address of a webhook. Such an address often contains a secret, so it may be given as a
/// secret's name instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookUrl {
    Written(WebUrl),
    Named(SecretName),
}

pub(super) fn read(
    table: Option<&WebhookTable>,
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<WebhookSettings> {
    let (table, place) = (table?, Place::top().key("approval").key("webhook"));
    let url = match &table.url {
        None => {
            let missing = "missing: type `url = \"https://chat.example.com/hooks/…\"`, or name where the address is with `env:VARIABLE` or `file:PATH`";
            mistakes.add(&place.key("url"), missing);
            None
        }
        Some(text) => match text.parse::<SecretName>() {
            Ok(name) => readable(&name, folder, &place.key("url"), mistakes).map(WebhookUrl::Named),
            Err(_) => web_url(text, &place.key("url"), mistakes).map(WebhookUrl::Written),
        },
    };
    let secret = match &table.secret {
        None => {
            let missing = "missing: notifications are signed, so that their receiver can tell them from others; name the secret with `env:VARIABLE` or `file:PATH`";
            mistakes.add(&place.key("secret"), missing);
            None
        }
        Some(secret) => readable(secret, folder, &place.key("secret"), mistakes),
    };
    let decide_at = match &table.decide_at {
        Some(text) => Some(web_url(text, &place.key("decide_at"), mistakes)?),
        None => None,
    };
    let ca = match &table.ca {
        Some(ca) => Some(readable(ca, folder, &place.key("ca"), mistakes)?),
        None => None,
    };
    let allow_private = table.allow_private;
    Some(WebhookSettings { url: url?, secret: secret?, decide_at, allow_private, ca })
}

fn web_url(text: &str, place: &Place, mistakes: &mut Mistakes<'_>) -> Option<WebUrl> {
    match text.parse() {
        Ok(url) => Some(url),
        Err(error) => {
            let error: super::BadWebUrl = error;
            mistakes.add(place, error.to_string());
            None
        }
    }
}
