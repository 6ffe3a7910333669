//! `[oauth_proxy]`: makes the gateway an authorization server in front of an identity provider, for
//! clients that need one.

use super::front::readable;
use super::issuer::IssuerSettings;
use super::mistake::{Mistakes, Place};
use super::redirect_uri::RedirectUri;
use super::tables::{ProxyClientTable, ProxyTable};
use crate::secret::SecretName;
use std::collections::BTreeMap;
use std::path::Path;
use url::Host;

const DAY_SECONDS: u64 = 86_400;
/// The most redirect URIs of one client.
pub const MAX_REDIRECT_URIS: usize = 64;

/// How clients sign in through the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// The `[[auth.issuer]]` that people sign in through.
    pub issuer: String,
    /// The clients that the operator registered, by id.
    pub clients: BTreeMap<String, ProxyClient>,
    pub client_hosts: ClientHosts,
    /// The lifetime of an access token.
    pub access_seconds: u64,
    /// How long a client stays signed in without involving a person.
    pub refresh_seconds: u64,
    /// How long a person's consent is remembered.
    pub consent_seconds: u64,
    /// Whether client-id metadata documents may be at private addresses.
    pub allow_private: bool,
    /// Certificate authorities for the documents' hosts, instead of the system's.
    pub ca: Option<SecretName>,
}

/// A client that the operator registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyClient {
    /// The name shown to people.
    pub name: String,
    pub redirect_uris: Vec<RedirectUri>,
}

/// The hosts whose client-id metadata documents are accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ClientHosts {
    #[default]
    None,
    /// Only these hosts.
    Named(Vec<String>),
    /// Every host that can be reached.
    Any,
}

impl ClientHosts {
    pub fn allow(&self, host: &str) -> bool {
        match self {
            ClientHosts::None => false,
            ClientHosts::Named(hosts) => hosts.iter().any(|known| known == host),
            ClientHosts::Any => true,
        }
    }

    pub fn is_none(&self) -> bool {
        *self == ClientHosts::None
    }
}

/// Why the rules for OAuth proxies (MUST 6 of the gateway profile) do not apply to a gateway that
/// is not one.
pub const NO_PROXY_RATIONALE: &str = "`[oauth_proxy]` is not configured, so the gateway is a resource server only: it issues no tokens, registers no clients, sends no browser to a client, and accepts only tokens that your issuers made for it";

pub(super) fn read(
    table: Option<&ProxyTable>,
    issuers: &[IssuerSettings],
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<ProxySettings> {
    let table = table?;
    let place = Place::top().key("oauth_proxy");
    let issuer = issuer(table, issuers, &place, mistakes);
    let clients = clients(&table.client, &place.key("client"), mistakes);
    let client_hosts = client_hosts(table, &place.key("client_hosts"), mistakes);
    if table.client.is_empty() && table.client_hosts.is_empty() {
        mistakes.add(
            &place,
            "no client could sign in: add an `[[oauth_proxy.client]]`, or name the hosts whose client-id metadata documents are accepted in `client_hosts`",
        );
    }
    let ca = match &table.ca {
        Some(ca) => Some(readable(ca, folder, &place.key("ca"), mistakes)?),
        None => None,
    };
    Some(ProxySettings {
        issuer: issuer?,
        clients,
        client_hosts,
        access_seconds: table.access_seconds.map_or(600, |seconds| seconds.0),
        refresh_seconds: table.refresh_days.map_or(30, |days| days.0) * DAY_SECONDS,
        consent_seconds: table.consent_days.map_or(90, |days| days.0) * DAY_SECONDS,
        allow_private: table.allow_private,
        ca,
    })
}

/// The issuer that people sign in through: the configured one, or else the only one that has a
/// client.
fn issuer(
    table: &ProxyTable,
    issuers: &[IssuerSettings],
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<String> {
    let place = place.key("issuer");
    let mut usable = issuers.iter().filter(|issuer| issuer.sign_in.is_some());
    let Some(named) = table.issuer.as_deref() else {
        return match (usable.next(), usable.next()) {
            (Some(only), None) => Some(only.issuer.clone()),
            (Some(_), Some(_)) => {
                let problem =
                    "missing: several issuers have a `client`; name the one that people sign in at";
                mistakes.add(&place, problem);
                None
            }
            (None, _) => {
                let problem = "people cannot sign in: set `client` on the `[[auth.issuer]]` that they sign in at";
                mistakes.add(&place, problem);
                None
            }
        };
    };
    if usable.any(|issuer| issuer.issuer == named) {
        return Some(named.to_owned());
    }
    let problem = match issuers.iter().any(|issuer| issuer.issuer == named) {
        true => {
            "this issuer has no `client`, so people cannot sign in there: set it on its `[[auth.issuer]]`"
        }
        false => "is not configured: type the `issuer` of an `[[auth.issuer]]`",
    };
    mistakes.add(&place, problem);
    None
}

fn clients(
    tables: &[ProxyClientTable],
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> BTreeMap<String, ProxyClient> {
    let mut clients = BTreeMap::new();
    for (index, table) in tables.iter().enumerate() {
        let place = place.index(index);
        let Some(id) = table.id.as_deref() else {
            mistakes.add(&place.key("id"), "missing: type the id that the client sends");
            continue;
        };
        let is_plain = id.len() <= 256 && id.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || id.contains("://") {
            let problem = "type one word; ids that are URLs are read from the document at that URL, for hosts in `client_hosts`";
            mistakes.add(&place.key("id"), problem);
        }
        let name = table.name.as_deref().unwrap_or(id).to_owned();
        let redirect_uris = redirect_uris(table, &place.key("redirect_uris"), mistakes);
        if clients.insert(id.to_owned(), ProxyClient { name, redirect_uris }).is_some() {
            mistakes.add(&place.key("id"), "configured twice: keep one of them");
        }
    }
    clients
}

fn redirect_uris(
    table: &ProxyClientTable,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Vec<RedirectUri> {
    let mut read = Vec::new();
    for (index, text) in table.redirect_uris.iter().enumerate() {
        match text.parse() {
            Ok(uri) => read.push(uri),
            Err(error) => mistakes.add(&place.index(index), format!("{error}")),
        }
    }
    if table.redirect_uris.is_empty() || table.redirect_uris.len() > MAX_REDIRECT_URIS {
        let problem = format!(
            "list 1 to {MAX_REDIRECT_URIS} addresses that the client may be sent back to, such as `http://127.0.0.1/callback`"
        );
        mistakes.add(place, problem);
    }
    read
}

fn client_hosts(table: &ProxyTable, place: &Place, mistakes: &mut Mistakes<'_>) -> ClientHosts {
    let mut hosts = Vec::new();
    for (index, text) in table.client_hosts.iter().enumerate() {
        if &**text == "*" {
            return ClientHosts::Any;
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        match Host::parse(text) {
            Ok(host) if host.to_string() == **text && text.bytes().all(is_plain) => {
                hosts.push(text.to_string());
            }
            _ => mistakes.add(
                &place.index(index),
                "type a host, such as `claude.ai`, or `*` for every public host",
            ),
        }
    }
    match hosts.is_empty() {
        true => ClientHosts::None,
        false => ClientHosts::Named(hosts),
    }
}
