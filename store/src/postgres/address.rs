//! Where a PostgreSQL database is and how to reach it: a `postgres://` URL, parsed with the
//! restrictions that Holdpoint puts on connections.
//!
//! The address may contain a password, which must not appear in any output.

use contract::percent::percent_decoded;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The longest address that is accepted.
pub(crate) const MAX_ADDRESS_BYTES: usize = 4_096;
/// The default PostgreSQL schema of Holdpoint's tables.
const USUAL_SCHEMA: &str = "holdpoint";
/// The longest name that PostgreSQL does not truncate.
const MAX_SCHEMA_BYTES: usize = 63;
/// The socket folder of Debian's PostgreSQL and most others.
const USUAL_SOCKET: &str = "/var/run/postgresql";
/// The idle time after which TCP keepalive probes the server.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// How long sent bytes may stay unacknowledged.
const TCP_PATIENCE: Duration = Duration::from_secs(15);

/// What is wrong with an address. The address is not repeated: it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("a PostgreSQL address starts with `postgres://`")]
    NotPostgres,
    #[error("a PostgreSQL address is at most {MAX_ADDRESS_BYTES} bytes long")]
    TooLong,
    #[error(
        "the PostgreSQL address cannot be read: expected `postgres://USER@HOST:PORT/DATABASE?OPTION=VALUE`, with `%` forms for special characters"
    )]
    Malformed,
    #[error(
        "`sslmode` of a PostgreSQL address is `disable`, `require` or `verify-full` (the last two are the same: certificates are always verified)"
    )]
    SslMode,
    #[error("a unix socket has no TLS: leave `sslmode` out of the PostgreSQL address")]
    SocketWithTls,
    #[error(
        "`schema` of a PostgreSQL address is a name of lower-case letters, digits and `_`, at most {MAX_SCHEMA_BYTES}"
    )]
    Schema,
    #[error("the PostgreSQL address names no database: add `/NAME`")]
    NoDatabase,
}

/// How the connection is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Not encrypted: only on this machine, or with `sslmode=disable`.
    Plain,
    /// TLS with a certificate verified for the host that was named.
    Verified {
        /// A file of certificates to trust instead of the system's.
        roots: Option<PathBuf>,
    },
}

/// A PostgreSQL database, and the schema in it.
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    pub(super) encryption: Encryption,
    pub(super) schema: String,
    place: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Address").field(&self.place).finish()
    }
}

impl fmt::Display for Address {
    /// Displays the address without its password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.place)
    }
}

impl Address {
    pub fn parse(url: &str) -> Result<Address, AddressError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(AddressError::NotPostgres);
        }
        if url.len() > MAX_ADDRESS_BYTES {
            return Err(AddressError::TooLong);
        }
        let own = OwnOptions::taken_from(url)?;
        let mut config: Config = own.rest.parse().map_err(|_| AddressError::Malformed)?;
        if config.get_dbname().is_none() {
            return Err(AddressError::NoDatabase);
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host(if cfg!(unix) { USUAL_SOCKET } else { "localhost" });
        }
        let encryption = own.encryption(&config)?;
        config.ssl_mode(match encryption {
            Encryption::Plain => SslMode::Disable,
            Encryption::Verified { .. } => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("holdpoint");
        }
        config.keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(TCP_PATIENCE);
        let schema = own.schema.unwrap_or_else(|| USUAL_SCHEMA.to_owned());
        let place = place(&config, &schema);
        Ok(Address { config, encryption, schema, place })
    }

    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }
}

/// The URL options that Holdpoint handles itself, and the URL without them.
#[derive(Debug, Default)]
struct OwnOptions {
    rest: String,
    schema: Option<String>,
    ssl_mode: Option<String>,
    roots: Option<PathBuf>,
}

impl OwnOptions {
    fn taken_from(url: &str) -> Result<OwnOptions, AddressError> {
        let (before, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = OwnOptions::default();
        let mut others = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=').ok_or(AddressError::Malformed)? {
                ("schema", name) => own.schema = Some(schema_named(name)?),
                ("sslmode", mode) => own.ssl_mode = Some(mode.to_owned()),
                ("sslrootcert", path) => {
                    let path = percent_decoded(path).ok_or(AddressError::Malformed)?;
                    own.roots = Some(path.into());
                }
                _ => others.push(option),
            }
        }
        own.rest = if others.is_empty() {
            before.to_owned()
        } else {
            format!("{before}?{}", others.join("&"))
        };
        Ok(own)
    }

    fn encryption(&self, config: &Config) -> Result<Encryption, AddressError> {
        let verified = || Encryption::Verified { roots: self.roots.clone() };
        match self.ssl_mode.as_deref() {
            Some("disable") => Ok(Encryption::Plain),
            Some("require" | "verify-full") if has_socket(config) => {
                Err(AddressError::SocketWithTls)
            }
            Some("require" | "verify-full") => Ok(verified()),
            Some(_) => Err(AddressError::SslMode),
            None if stays_here(config) => Ok(Encryption::Plain),
            None if has_socket(config) => Err(AddressError::SocketWithTls),
            None => Ok(verified()),
        }
    }
}

fn is_socket(host: &Host) -> bool {
    #[cfg(unix)]
    if matches!(host, Host::Unix(_)) {
        return true;
    }
    let _ = host;
    false
}

fn has_socket(config: &Config) -> bool {
    config.get_hosts().iter().any(is_socket)
}

/// Whether every host in the address is this machine.
fn stays_here(config: &Config) -> bool {
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(is_here) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

/// Checks the schema name. It is inserted into SQL unquoted, so it must need no quotes.
fn schema_named(name: &str) -> Result<String, AddressError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    // PostgreSQL reserves these names.
    let is_free = !name.starts_with("pg_") && name != "public" && name != "information_schema";
    if starts_well && is_free && name.bytes().all(is_plain) && name.len() <= MAX_SCHEMA_BYTES {
        Ok(name.to_owned())
    } else {
        Err(AddressError::Schema)
    }
}

fn place(config: &Config, schema: &str) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    let hosts = if hosts.is_empty() {
        config.get_hostaddrs().iter().map(IpAddr::to_string).collect()
    } else {
        hosts
    };
    let database = config.get_dbname().unwrap_or_default();
    let shown_schema =
        if schema == USUAL_SCHEMA { String::new() } else { format!("?schema={schema}") };
    format!("postgres://{user}{}/{database}{shown_schema}", hosts.join(","))
}

#[cfg(test)]
mod tests;
