//! Secrets that are read while the gateway runs: from the environment, from a file, from Vault.

use super::unavailable::Unavailable;
use super::vault::Vault;
use settings::gateway::VaultPath;
use settings::{SecretError, SecretName};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long a secret of the environment or of a file is used before it is read again: a file may have been replaced.
const LOCAL_FRESH: Duration = Duration::from_secs(60);
/// How long a secret goes on to be used while it cannot be read again.
const MAX_STALE: Duration = Duration::from_secs(3_600);

/// A secret, which is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(value: String) -> Secret {
        Secret(Zeroizing::new(value))
    }

    /// The secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

/// How long a secret is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretLifetime {
    /// Then it is read again.
    pub(super) fresh: Duration,
    /// While it cannot be read again, it is used for so long.
    pub(super) stale: Duration,
}

/// Reads secrets by their names.
#[derive(Debug, Clone, Default)]
pub struct SecretReader {
    vault: Option<Arc<Vault>>,
}

impl SecretReader {
    pub fn new(vault: Option<Arc<Vault>>) -> SecretReader {
        SecretReader { vault }
    }

    /// Whether a secret can be read, as far as that can be told without reaching anything.
    pub fn check(&self, name: &SecretName) -> Result<(), SecretError> {
        match name {
            SecretName::Env(_) | SecretName::File(_) => read_local(name).map(|_| ()),
            SecretName::Vault(_) if self.vault.is_some() => Ok(()),
            SecretName::Vault(_) => Err(SecretError::NotReadHere("vault")),
            SecretName::Keyring(_) => Err(SecretError::NotReadHere("keyring")),
        }
    }

    pub async fn read(&self, name: &SecretName) -> Result<Secret, Unavailable> {
        match name {
            SecretName::Env(_) | SecretName::File(_) | SecretName::Keyring(_) => {
                Ok(read_local(name)?)
            }
            SecretName::Vault(path) => {
                let vault = self.vault.as_ref().ok_or(Unavailable::NoVault)?;
                let path: VaultPath = path.parse().map_err(|problem| Unavailable::Unusable {
                    place: "vault".to_owned(),
                    problem,
                })?;
                vault.read(&path).await
            }
        }
    }

    pub(super) fn lifetime(&self, name: &SecretName) -> SecretLifetime {
        let fresh = match (name, &self.vault) {
            (SecretName::Vault(_), Some(vault)) => vault.refresh(),
            _ => LOCAL_FRESH,
        };
        SecretLifetime { fresh, stale: fresh + MAX_STALE }
    }
}

/// A secret that is not in Vault.
pub(super) fn read_local(name: &SecretName) -> Result<Secret, SecretError> {
    name.read(|variable| std::env::var(variable).ok()).map(Secret::new)
}
