//! Secrets that are read while the gateway runs: from the environment, from a file, from Vault.

use super::age::{self, MAX_AGE_BYTES};
use super::unavailable::Unavailable;
use super::vault::Vault;
pub use oauth::Secret;
use settings::gateway::VaultPath;
use settings::{SecretError, SecretName};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// How long a secret from the environment or a file is used before it is read again, since a file
/// may have been replaced.
const LOCAL_FRESH: Duration = Duration::from_secs(60);
/// How long a secret continues to be used while it cannot be read again.
const MAX_STALE: Duration = Duration::from_secs(3_600);

/// How long a secret is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretLifetime {
    /// After this it is read again.
    pub(super) fresh: Duration,
    /// How long it is used while it cannot be read again.
    pub(super) stale: Duration,
}

/// Reads secrets by name.
#[derive(Debug, Clone, Default)]
pub struct SecretReader {
    vault: Option<Arc<Vault>>,
    /// Decrypts age-encrypted files.
    identity: Option<SecretName>,
}

impl SecretReader {
    /// Sets the Vault to use.
    #[must_use]
    pub fn with_vault(self, vault: Arc<Vault>) -> SecretReader {
        SecretReader { vault: Some(vault), ..self }
    }

    /// Sets the identity that decrypts age-encrypted files.
    #[must_use]
    pub fn opening_with(self, identity: Option<SecretName>) -> SecretReader {
        SecretReader { identity, ..self }
    }

    /// Checks whether a secret can be read, as far as possible without any requests.
    pub fn check(&self, name: &SecretName) -> Result<(), SecretError> {
        match name {
            SecretName::Env(_) | SecretName::File(_) => read_local(name).map(|_| ()),
            SecretName::Vault(_) if self.vault.is_some() => Ok(()),
            SecretName::Vault(_) => Err(SecretError::NotReadHere("vault")),
            // The contents are checked when they are needed: a file may still be replaced with a
            // correct one.
            SecretName::Age(_) => match &self.identity {
                Some(identity) => read_local(identity).map(|_| ()),
                None => Err(SecretError::NotReadHere("age")),
            },
            SecretName::Keyring(_) => Err(SecretError::NotReadHere("keyring")),
        }
    }

    pub async fn read(&self, name: &SecretName) -> Result<Secret, Unavailable> {
        match name {
            SecretName::Env(_) | SecretName::File(_) | SecretName::Keyring(_) => {
                Ok(read_local(name)?)
            }
            SecretName::Age(path) => self.read_encrypted(path),
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

    /// The contents of an age-encrypted file: `PATH`, or `PATH#NAME` for one line of it.
    fn read_encrypted(&self, path: &str) -> Result<Secret, Unavailable> {
        let place = || format!("age:{path}");
        let identity = self.identity.as_ref().ok_or(SecretError::NotReadHere("age"))?;
        let identity = read_local(identity)?;
        let (file, name) = match path.split_once('#') {
            Some((file, name)) => (file, Some(name)),
            None => (path, None),
        };
        let wrong = |source| SecretError::NoFile { path: file.to_owned(), source };
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).map_err(wrong)?;
        opened.take(MAX_AGE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
        let read = age::read(&bytes, identity.expose(), name);
        read.map(Secret::from).map_err(|source| Unavailable::Encrypted { place: place(), source })
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
