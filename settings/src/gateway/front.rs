//! `[gateway]`: the listen addresses, how connections are protected, and limits.

use super::mistake::{Mistakes, Place};
use super::peers::{self, PeerSettings};
use super::tables::{AddressRange, FrontTable, LimitsTable, ListenAddress, TlsTable};
use super::web_url::WebOrigin;
use crate::secret::SecretName;
use crate::value::{Parsed, Text};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// The gateway's listen address if its file does not set one.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);

/// The gateway's network interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontSettings {
    pub listen: SocketAddr,
    /// Where the admin API and the console are served, if not on `listen`.
    pub admin_listen: Option<SocketAddr>,
    pub metrics_listen: Option<SocketAddr>,
    /// How other nodes reach this one, if there are several.
    pub peers: Option<PeerSettings>,
    pub public_url: WebOrigin,
    pub transport: Transport,
    pub limits: GatewayLimits,
    /// Additional origins, besides `public_url`, whose pages may make requests.
    pub allowed_origins: Vec<WebOrigin>,
}

/// How the connections on `listen` and `admin_listen` are protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP, only from this machine.
    Loopback,
    Tls {
        cert: SecretName,
        key: SecretName,
        client_ca: Option<SecretName>,
    },
    /// Plain HTTP, only from these proxies, whose forwarding headers are trusted.
    TerminatedBy(Vec<AddressRange>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayLimits {
    pub body_bytes: usize,
    pub sessions: usize,
    /// The time limit without progress.
    pub call_timeout_seconds: u64,
    pub call_max_seconds: u64,
    /// How long a call that needs approval waits before the gateway responds.
    pub approval_wait_seconds: u64,
    /// How long an approval is valid, counted from the request for it.
    pub approval_ttl_seconds: u64,
    /// The most pending calls of one caller.
    pub calls_per_caller: usize,
    /// The most pending calls of one server, over all callers.
    pub calls_per_server: usize,
}

impl FrontSettings {
    /// The address for admin requests.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_listen.unwrap_or(self.listen)
    }

    /// Whether callers can authenticate with certificates.
    pub fn has_client_ca(&self) -> bool {
        matches!(&self.transport, Transport::Tls { client_ca: Some(_), .. })
    }
}

/// Whether callers can authenticate, and whether that could be determined.
pub(super) struct Authentication {
    pub(super) is_configured: bool,
}

pub(super) fn read(
    table: &FrontTable,
    authentication: &Authentication,
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<FrontSettings> {
    let place = Place::top().key("gateway");
    let address = |written: Option<Parsed<ListenAddress>>| written.map(|Parsed(address)| address.0);
    let listen = address(table.listen).unwrap_or(DEFAULT_LISTEN);
    let (admin_listen, metrics_listen) =
        (address(table.admin_listen), address(table.metrics_listen));
    let peers = peers::read(address(table.peer_listen), table.peer_address.as_ref(), mistakes);
    let named = [
        ("listen", Some(listen)),
        ("admin_listen", admin_listen),
        ("metrics_listen", metrics_listen),
        ("peer_listen", peers.as_ref().map(|peers| peers.listen)),
    ];
    check_addresses(&named, &place, mistakes);
    let transport = transport(table.tls.as_ref(), folder, &place.key("tls"), mistakes);
    let has_client_ca = matches!(&transport, Some(Transport::Tls { client_ca: Some(_), .. }));
    for (key, address) in named.iter().take(2) {
        let Some(address) = address.filter(|address| !address.ip().is_loopback()) else { continue };
        if table.tls.is_none() && !mistakes.is_unreadable(&place.key("tls")) {
            mistakes.add(
                &place.key(key),
                format!(
                    "{address} can be reached from other machines, so tokens and results would cross the network in clear: set `gateway.tls` to `{{ cert = \"file:…\", key = \"file:…\" }}` or `{{ terminated_by = [\"10.0.0.0/8\"] }}`, or listen on 127.0.0.1"
                ),
            );
        }
        if !authentication.is_configured
            && !has_client_ca
            && !mistakes.is_unreadable(&Place::top().key("auth"))
        {
            mistakes.add(
                &place.key(key),
                format!(
                    "{address} can be reached from other machines, and no caller could prove who it is: add an `[[auth.issuer]]`, or `[auth.keys]` with `enabled = true`"
                ),
            );
        }
    }
    let public_url = public_url(table.public_url.as_ref(), listen, &place, mistakes);
    let allowed_origins = origins(&table.allowed_origins, &place, mistakes);
    let limits = limits(&table.limits, &place.key("limits"), mistakes);
    let (transport, public_url) = (transport?, public_url?);
    Some(FrontSettings {
        listen,
        admin_listen,
        metrics_listen,
        peers,
        public_url,
        transport,
        limits,
        allowed_origins,
    })
}

fn check_addresses(
    named: &[(&str, Option<SocketAddr>)],
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) {
    for (at, (key, address)) in named.iter().enumerate() {
        let taken = named.iter().take(at).find(|(_, other)| {
            address.is_some_and(|address| address.port() != 0 && *other == Some(address))
        });
        if let (Some((other, _)), Some(address)) = (taken, address) {
            let problem = format!("{address} is `gateway.{other}` already: choose another port");
            mistakes.add(&place.key(key), problem);
        }
    }
}

fn transport(
    table: Option<&TlsTable>,
    folder: &Path,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<Transport> {
    let Some(TlsTable { cert, key, client_ca, terminated_by }) = table else {
        return Some(Transport::Loopback);
    };
    if mistakes.is_unreadable(place) {
        return None;
    }
    let mut secret = |name: &str, secret: &Option<SecretName>| {
        secret.as_ref().map(|secret| readable(secret, folder, &place.key(name), mistakes))
    };
    let (cert, key, client_ca) =
        (secret("cert", cert), secret("key", key), secret("client_ca", client_ca));
    match (cert, key, client_ca, terminated_by) {
        (Some(cert), Some(key), client_ca, None) => {
            Some(Transport::Tls { cert: cert?, key: key?, client_ca: client_ca.flatten() })
        }
        (None, None, None, Some(ranges)) if !ranges.is_empty() => {
            Some(Transport::TerminatedBy(ranges.iter().map(|Parsed(range)| *range).collect()))
        }
        (None, None, None, Some(_)) => {
            mistakes.add(
                &place.key("terminated_by"),
                "name the proxies that may connect, such as `[\"10.0.0.0/8\"]`",
            );
            None
        }
        (_, _, _, Some(_)) => {
            mistakes.add(
                &place.key("terminated_by"),
                "either a proxy ends TLS or the gateway does: keep `terminated_by`, or `cert` and `key`",
            );
            None
        }
        (cert, key, _, None) => {
            for (name, is_missing) in [("cert", cert.is_none()), ("key", key.is_none())] {
                if is_missing {
                    let place = place.key(name);
                    mistakes.add(&place, format!("missing: type `{name} = \"file:…\"` (PEM)"));
                }
            }
            None
        }
    }
}

/// A secret's name with its path resolved against the file's folder, if this program can read the
/// secret.
pub(super) fn readable(
    secret: &SecretName,
    folder: &Path,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<SecretName> {
    match secret {
        SecretName::Env(_) => Some(secret.clone()),
        SecretName::File(path) => {
            Some(SecretName::File(folder.join(path).to_string_lossy().into_owned()))
        }
        SecretName::Vault(_) => {
            mistakes.add(
                place,
                "is read before Vault can be reached; use `env:VARIABLE` or `file:PATH`",
            );
            None
        }
        SecretName::Age(_) => {
            mistakes.add(
                place,
                "`age:` is for credentials of servers and their `env`; use `env:VARIABLE` or `file:PATH`",
            );
            None
        }
        SecretName::Keyring(_) => {
            mistakes.add(
                place,
                "`keyring:` is not available in this version; use `env:VARIABLE` or `file:PATH`",
            );
            None
        }
    }
}

fn public_url(
    written: Option<&Text>,
    listen: SocketAddr,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<WebOrigin> {
    let place = place.key("public_url");
    match written {
        Some(text) => match text.parse() {
            Ok(origin) => Some(origin),
            Err(error) => {
                mistakes.add(&place, format!("{error}"));
                None
            }
        },
        None if listen.ip().is_loopback() => Some(WebOrigin::of_listener(listen)),
        None => {
            mistakes.add(
                &place,
                "missing: type the URL that callers use, such as `https://mcp.example.com`; tokens are issued for it",
            );
            None
        }
    }
}

fn origins(written: &[Text], place: &Place, mistakes: &mut Mistakes<'_>) -> Vec<WebOrigin> {
    let mut origins = Vec::new();
    for (index, text) in written.iter().enumerate() {
        match text.parse() {
            Ok(origin) => origins.push(origin),
            Err(error) => mistakes.add(
                &place.key("allowed_origins").index(index),
                format!("{error}; origins are listed one by one, without `*`"),
            ),
        }
    }
    origins
}

fn limits(table: &LimitsTable, place: &Place, mistakes: &mut Mistakes<'_>) -> GatewayLimits {
    let limits = GatewayLimits {
        body_bytes: table.body_bytes.map_or(4 << 20, crate::value::Whole::to_usize),
        sessions: table.sessions.map_or(10_000, crate::value::Whole::to_usize),
        call_timeout_seconds: table.call_timeout_seconds.map_or(60, |seconds| seconds.0),
        call_max_seconds: table.call_max_seconds.map_or(600, |seconds| seconds.0),
        approval_wait_seconds: table.approval_wait_seconds.map_or(25, |seconds| seconds.0),
        approval_ttl_seconds: table.approval_ttl_seconds.map_or(900, |seconds| seconds.0),
        calls_per_caller: table.calls_per_caller.map_or(256, crate::value::Whole::to_usize),
        calls_per_server: table.calls_per_server.map_or(4_096, crate::value::Whole::to_usize),
    };
    if limits.call_timeout_seconds > limits.call_max_seconds {
        mistakes.add(
            &place.key("call_max_seconds"),
            format!(
                "{} is shorter than `call_timeout_seconds` ({}): a call would end before it times out",
                limits.call_max_seconds, limits.call_timeout_seconds
            ),
        );
    }
    limits
}
