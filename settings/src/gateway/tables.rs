//! The tables of `gateway.toml` as written. Their meaning, and which combinations are refused, is
//! defined with the typed settings that are made from them.
#![expect(
    unreachable_pub,
    reason = "the macros that define the public tables of `holdpoint.toml` define these"
)]

use crate::keys::{
    Admission, Anomaly, DriftScope, Export, FirstUsePolicy, Guard, Origin, Preflight, Receipts,
    Relist, Shield, tables, words,
};
use crate::network::{JudgeKeys, Network};
use crate::sandbox::Sandbox;
use crate::secret::SecretName;
use crate::value::{Parsed, Text, Whole};
use attest::Digest;
use gate::posture::Posture;
use policy::{Risk, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// A day, the longest time that a limit in this file may have.
const DAY: u64 = 86_400;

tables! {
    /// The whole file.
    GatewayFile {
        gateway: FrontTable,
        auth: AuthTable,
        policy: PolicyTable,
        admission: Admission,
        relist: Relist,
        guard: Guard,
        shield: Shield,
        origin: Origin,
        receipts: Receipts,
        export: Export,
        traces: TracesTable,
        anomaly: Anomaly,
        network: Network,
        judge: JudgeKeys,
        egress: Option<EgressTable>,
        vault: Option<VaultTable>,
        age: Option<AgeTable>,
        approval: ApprovalTable,
        oauth_proxy: Option<ProxyTable>,
        server: Vec<ServerTable>,
        toolset: Vec<ToolsetTable>,
    }
    FrontTable {
        listen: Option<Parsed<ListenAddress>>,
        admin_listen: Option<Parsed<ListenAddress>>,
        metrics_listen: Option<Parsed<ListenAddress>>,
        peer_listen: Option<Parsed<ListenAddress>>,
        peer_address: Option<Text>,
        public_url: Option<Text>,
        store: Option<Text>,
        posture: Option<Posture>,
        first_use: FirstUsePolicy,
        drift_scope: DriftScope,
        recheck_seconds: Option<Whole<0, { 7 * DAY }>>,
        tls: Option<TlsTable>,
        limits: LimitsTable,
        store_loss: Option<Parsed<StoreLoss>>,
        allowed_origins: Vec<Text>,
    }
    TlsTable {
        cert: Option<SecretName>,
        key: Option<SecretName>,
        client_ca: Option<SecretName>,
        terminated_by: Option<Vec<Parsed<AddressRange>>>,
    }
    LimitsTable {
        body_bytes: Option<Whole<1_024, { 1 << 30 }>>,
        sessions: Option<Whole<1, 1_000_000>>,
        call_timeout_seconds: Option<Whole<1, DAY>>,
        call_max_seconds: Option<Whole<1, DAY>>,
        approval_wait_seconds: Option<Whole<0, 300>>,
        approval_ttl_seconds: Option<Whole<10, DAY>>,
        calls_per_caller: Option<Whole<1, 1_000_000>>,
        calls_per_server: Option<Whole<1, 1_000_000>>,
    }
    AuthTable {
        issuer: Vec<IssuerTable>,
        keys: KeysTable,
    }
    IssuerTable {
        issuer: Option<Text>,
        audience: Option<Text>,
        jwks_uri: Option<Text>,
        actor_type_claim: Option<Text>,
        groups_claim: Option<Text>,
        org_claim: Option<Text>,
        clearance_claim: Option<Text>,
        allow_private: bool,
        ca: Option<SecretName>,
        client: Option<SecretName>,
        client_auth: Option<ClientAuth>,
        sign_in_scopes: Option<Vec<String>>,
    }
    ProxyTable {
        issuer: Option<Text>,
        client_hosts: Vec<Text>,
        access_seconds: Option<Whole<60, 3_600>>,
        refresh_days: Option<Whole<1, 365>>,
        consent_days: Option<Whole<1, 365>>,
        allow_private: bool,
        ca: Option<SecretName>,
        client: Vec<ProxyClientTable>,
    }
    ProxyClientTable {
        id: Option<Text>,
        name: Option<Text>,
        redirect_uris: Vec<Text>,
    }
    KeysTable {
        enabled: bool,
    }
    PolicyTable {
        files: Vec<Text>,
        entities: Option<Text>,
    }
    TracesTable {
        otlp: Option<Text>,
        otlp_headers: BTreeMap<String, SecretName>,
    }
    EgressTable {
        proxy: Option<Text>,
    }
    VaultTable {
        address: Option<Text>,
        namespace: Option<Text>,
        auth: VaultAuthTable,
        refresh_seconds: Option<Whole<1, DAY>>,
        allow_private: bool,
        ca: Option<SecretName>,
    }
    AgeTable {
        identity: Option<SecretName>,
    }
    ApprovalTable {
        webhook: Option<WebhookTable>,
    }
    WebhookTable {
        url: Option<Text>,
        secret: Option<SecretName>,
        decide_at: Option<Text>,
        allow_private: bool,
        ca: Option<SecretName>,
    }
    VaultAuthTable {
        method: VaultMethod,
        mount: Option<Text>,
        token: Option<SecretName>,
        role_id: Option<Text>,
        secret_id: Option<SecretName>,
        role: Option<Text>,
        jwt: Option<SecretName>,
    }
    ServerTable {
        id: Option<Text>,
        command: Option<Vec<String>>,
        url: Option<Text>,
        trust: Option<Parsed<Trust>>,
        risk: Option<Parsed<Risk>>,
        tool_risk: BTreeMap<String, Parsed<Risk>>,
        allowed_tools: Option<Vec<String>>,
        names: BTreeMap<String, String>,
        required_clearance: Option<Text>,
        orgs: Option<Vec<Text>>,
        env: BTreeMap<String, SecretName>,
        instance: Option<Instance>,
        max_instances: Option<Whole<1, 10_000>>,
        idle_seconds: Option<Whole<1, DAY>>,
        danger_unconfined: Option<bool>,
        sandbox: Option<Sandbox>,
        preflight: Option<Preflight>,
        credentials: Option<CredentialsTable>,
        headers: BTreeMap<String, SecretName>,
        forward_headers: Vec<String>,
        ca: Option<SecretName>,
        allow_private: Option<bool>,
        recheck_seconds: Option<Whole<0, { 7 * DAY }>>,
        attestation: Option<Text>,
        program_digest: Option<Parsed<Digest>>,
        package: Option<Text>,
        version: Option<Text>,
        integrity: Option<Parsed<Digest>>,
    }
    CredentialsTable {
        mode: Option<CredentialMode>,
        secret: Option<SecretName>,
        header: Option<Text>,
        scheme: Option<String>,
        token_endpoint: Option<Text>,
        revocation_endpoint: Option<Text>,
        audience: Option<Text>,
        resource: Option<Text>,
        scopes: Option<Vec<String>>,
        client: Option<SecretName>,
        client_auth: Option<ClientAuth>,
        register: Option<bool>,
        issuer: Option<Text>,
        allow_private: Option<bool>,
        ca: Option<SecretName>,
    }
    ToolsetTable {
        id: Option<Text>,
        tools: Vec<String>,
    }
}

words! {
    /// Which calls share one process of a server.
    Instance {
        /// The calls of one session.
        Session,
        /// The calls of one caller.
        #[default]
        Principal,
        /// All calls: the operator states that the server keeps no state between calls.
        Shared,
    }
    /// How the gateway authenticates to Vault.
    VaultMethod { #[default] Token, Approle, Kubernetes, }
    /// How the gateway's client authenticates to an authorization server.
    ClientAuth {
        /// `Authorization: Basic …`.
        #[default]
        Basic,
        /// `client_id` and `client_secret` in the body.
        Post,
    }
    /// The source of the credentials for an upstream.
    CredentialMode {
        #[default]
        None,
        Vault,
        Exchange,
        #[serde(rename = "client_credentials")]
        ClientCredentials,
        User,
        Bound,
    }
}

impl GatewayFile {
    /// A file in which every table is present, used to enumerate all keys.
    pub(super) fn with_every_table() -> GatewayFile {
        GatewayFile {
            gateway: FrontTable { tls: Some(TlsTable::default()), ..FrontTable::default() },
            auth: AuthTable { issuer: vec![IssuerTable::default()], ..AuthTable::default() },
            egress: Some(EgressTable::default()),
            vault: Some(VaultTable::default()),
            age: Some(AgeTable::default()),
            approval: ApprovalTable { webhook: Some(WebhookTable::default()) },
            oauth_proxy: Some(ProxyTable {
                client: vec![ProxyClientTable::default()],
                ..ProxyTable::default()
            }),
            server: vec![ServerTable {
                sandbox: Some(Sandbox::default()),
                preflight: Some(Preflight::default()),
                credentials: Some(CredentialsTable::default()),
                ..ServerTable::default()
            }],
            toolset: vec![ToolsetTable::default()],
            ..GatewayFile::default()
        }
    }
}

/// An address and port to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ListenAddress, &'static str> {
        let wrong = "type an IP address and a port, such as `127.0.0.1:8420` or `[::1]:8420`";
        text.parse().map(ListenAddress).map_err(|_| wrong)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What to do while the store is unreachable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreLoss {
    #[default]
    Refuse,
    /// Continue with the last known state for this many seconds.
    Continue { seconds: u32 },
}

/// The longest time that a gateway may continue without its store.
const MAX_CONTINUE_SECONDS: u32 = 3_600;

impl FromStr for StoreLoss {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<StoreLoss, &'static str> {
        let wrong = "type `refuse`, or `continue:30` for at most 3600 seconds";
        if text == "refuse" {
            return Ok(StoreLoss::Refuse);
        }
        let seconds = text.strip_prefix("continue:").ok_or(wrong)?;
        let seconds: u32 = seconds.parse().map_err(|_| wrong)?;
        let is_within = (1..=MAX_CONTINUE_SECONDS).contains(&seconds);
        if is_within { Ok(StoreLoss::Continue { seconds }) } else { Err(wrong) }
    }
}

impl fmt::Display for StoreLoss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLoss::Refuse => formatter.write_str("refuse"),
            StoreLoss::Continue { seconds } => write!(formatter, "continue:{seconds}"),
        }
    }
}

/// A range of addresses, such as `10.0.0.0/8`, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: std::net::IpAddr,
    prefix: u8,
}

impl AddressRange {
    pub fn contains(&self, address: std::net::IpAddr) -> bool {
        use std::net::IpAddr::{V4, V6};
        match (self.network, address.to_canonical()) {
            (V4(network), V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            (V6(network), V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            (V4(_), V6(_)) | (V6(_), V4(_)) => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<AddressRange, &'static str> {
        let wrong = "type an address or a range, such as `10.0.0.7` or `10.0.0.0/8`";
        let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
        let network: std::net::IpAddr = address.parse().map_err(|_| wrong)?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            "" if !text.contains('/') => most,
            digits => digits.parse().ok().filter(|prefix| *prefix <= most).ok_or(wrong)?,
        };
        Ok(AddressRange { network, prefix })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, StoreLoss};

    #[test]
    fn ranges_contain_their_addresses_and_no_others() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "fe80::1", true),
        ] {
            let range: AddressRange = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), expected, "{range} {address}");
        }
        for text in ["10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "fd00::/129", "", "all"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn going_on_without_a_store_is_bounded() {
        assert_eq!("refuse".parse(), Ok(StoreLoss::Refuse));
        assert_eq!("continue:30".parse(), Ok(StoreLoss::Continue { seconds: 30 }));
        for text in ["continue", "continue:", "continue:0", "continue:3601", "continue:-1", "x"] {
            assert!(text.parse::<StoreLoss>().is_err(), "{text}");
        }
    }
}
