//! `directory.toml`: how a server directory is served, crawled, signed and anchored.

use crate::error::{ConfigurationError, at_line};
use crate::secret::SecretName;
use crate::value::{Text, Whole};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The directory's listen address if its file does not set one.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8440);
/// The most publishers whose keys are configured.
pub const MAX_PUBLISHERS: usize = 10_000;
/// The most API keys. Two keys of the same owner may overlap in time.
pub const MAX_API_KEYS: usize = 1_000;
/// The longest lifetime of an API key.
pub const MAX_KEY_DAYS: i64 = 90;

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DirectorySettings {
    /// The public address of the directory. The log's name is derived from it and must stay the
    /// same.
    pub public_url: Option<Text>,
    pub listen: Option<SocketAddr>,
    /// Where the directory keeps its data.
    pub data: Option<PathBuf>,
    /// How others can contact the operator: shown in requests and in `security.txt`.
    pub contact: Option<Text>,
    /// The signer of checkpoints: `file` or `kms:NAME`.
    pub signer: Option<Text>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// When this version of the API ends, as an HTTP date; sent as `Sunset`.
    pub sunset: Option<Text>,
    pub network: DirectoryNetwork,
    pub rates: DirectoryRates,
    pub key: Vec<DirectoryKey>,
    pub crawl: DirectoryCrawl,
    pub claims: DirectoryClaims,
    pub anchors: DirectoryAnchors,
    pub witness: Vec<DirectoryWitness>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DirectoryNetwork {
    /// Whether private and loopback addresses may be reached. Metadata and link-local addresses are
    /// never reached.
    pub allow_private: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DirectoryRates {
    pub anonymous_per_minute: Option<Whole<1, 100_000_000>>,
    pub keyed_per_minute: Option<Whole<1, 100_000_000>>,
}

/// An API key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryKey {
    pub owner: Text,
    pub secret: SecretName,
    /// A date; at most 90 days ahead.
    pub expires: Text,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DirectoryCrawl {
    /// The official registry, or another one with the same API.
    pub registry: Option<Text>,
    /// A file that lists servers.
    pub targets: Option<PathBuf>,
    /// How many of each package's newest releases are visited.
    pub releases: Option<Whole<1, 100>>,
    pub workers: Option<Whole<1, 2>>,
    /// Whether packages may run their install scripts, confined.
    pub install_scripts: bool,
    /// The time limit for a server's handshake and all of its lists.
    pub list_seconds: Option<Whole<1, 600>>,
    /// The time limit for installing a package.
    pub install_seconds: Option<Whole<1, 3_600>>,
    /// The largest installed package, in MiB.
    pub package_mebibytes: Option<Whole<1, 1_048_576>>,
    /// Where package descriptions are read, instead of the public registries.
    pub npm: Option<Text>,
    pub pypi: Option<Text>,
}

/// Claims of ownership.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DirectoryClaims {
    /// The resolvers for TXT records, over TCP, instead of the system's resolvers.
    pub resolvers: Vec<SocketAddr>,
    /// Keys of publishers that the operator knows.
    pub publisher: Vec<DirectoryPublisher>,
}

/// The attestation key of a server's publisher.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryPublisher {
    /// The server's id.
    pub server: Text,
    /// A file with the public key (PEM), or `ed25519:` and the key as base64.
    pub key: Text,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DirectoryAnchors {
    pub calendars: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryWitness {
    pub url: Text,
    /// The witness's public key.
    pub key: Text,
}

impl DirectorySettings {
    /// Reads a file. If it is missing, the defaults apply.
    pub fn read(path: &Path) -> Result<DirectorySettings, ConfigurationError> {
        let wrong = |problem: String| ConfigurationError { path: path.to_owned(), problem };
        match std::fs::read_to_string(path) {
            Ok(text) => DirectorySettings::parse(&text).map_err(wrong),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(DirectorySettings::default())
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    pub fn parse(text: &str) -> Result<DirectorySettings, String> {
        let settings: DirectorySettings =
            toml::from_str(text).map_err(|error| at_line(text, &error, error.message()))?;
        if settings.key.len() > MAX_API_KEYS {
            return Err(format!("`key`: more than {MAX_API_KEYS} keys"));
        }
        if settings.claims.publisher.len() > MAX_PUBLISHERS {
            return Err(format!("`claims.publisher`: more than {MAX_PUBLISHERS}"));
        }
        if let Some(url) = &settings.public_url
            && !(url.starts_with("https://") || url.starts_with("http://"))
        {
            return Err(
                "`public_url` begins with `https://`, or with `http://` for tests".to_owned()
            );
        }
        Ok(settings)
    }

    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(DEFAULT_LISTEN)
    }

    /// The public URL without a trailing slash.
    pub fn public_url(&self) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listen()),
        }
    }

    pub fn contact(&self) -> &str {
        self.contact.as_deref().unwrap_or("contact not configured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_unknown_keys_are_refused_with_their_line() {
        let text = "public_url = \"https://d.example/\"\n[rates]\nanonymous_per_minute = 5\n[[key]]\nowner = \"acme\"\nsecret = \"env:KEY\"\nexpires = \"2026-12-01\"\n";
        let settings = DirectorySettings::parse(text).unwrap();
        assert_eq!(settings.public_url(), "https://d.example");
        assert_eq!(settings.listen().port(), 8440);
        assert_eq!(settings.key.len(), 1);
        let wrong = DirectorySettings::parse("[rates]\nper_hour = 1\n").unwrap_err();
        assert!(wrong.starts_with("line 2:"), "{wrong}");
        assert!(DirectorySettings::parse("public_url = \"ftp://x\"").is_err());
        let text = "[claims]\nresolvers = [\"127.0.0.1:5353\"]\n[[claims.publisher]]\nserver = \"npm:a\"\nkey = \"a.pub\"\n";
        let claims = DirectorySettings::parse(text).unwrap().claims;
        assert_eq!((claims.resolvers.len(), claims.publisher.len()), (1, 1));
        assert!(DirectorySettings::parse("[claims]\nresolvers = [\"localhost\"]\n").is_err());
    }

    #[test]
    fn a_secret_is_named_and_never_written_down() {
        let text = "[[key]]\nowner = \"a\"\nsecret = \"hunter2\"\nexpires = \"2026-12-01\"\n";
        let wrong = DirectorySettings::parse(text).unwrap_err();
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }
}
