//! Signs checkpoints with a key in a file. A configured key management service is refused: this
//! build has no client for one.

use ledger::note::{self, BadKey, SigningKey, VerifyingKey};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Signs the texts of checkpoints.
pub trait Signer: Send + Sync + std::fmt::Debug {
    fn public_key(&self) -> &VerifyingKey;
    /// Signs a checkpoint's text, and returns the signed note.
    fn sign(&self, text: &str) -> Result<String, SignerError>;
}

/// Why nothing can be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    #[error(
        "`{0}` is a key management service, and this build has no client for one: nothing is signed until one is configured. Use `file:` or leave `signer` out for a key of this machine"
    )]
    NoService(String),
    #[error("`{0}` is not a signer: `file`, or `kms:NAME`")]
    Unknown(String),
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{}`: {source}", path.display())]
    Key { path: PathBuf, source: BadKey },
    #[error("`{}` is the key of `{name}`, and this log is `{origin}`: a log keeps its name and its key", path.display())]
    OtherLog { path: PathBuf, name: String, origin: String },
    #[error("no randomness for a new key")]
    NoRandomness,
}

/// The signer that the configuration names.
pub fn open(
    named: Option<&str>,
    keys: &Path,
    origin: &str,
) -> Result<Box<dyn Signer>, SignerError> {
    match named {
        None | Some("file") => Ok(Box::new(FileSigner::open(keys, origin)?)),
        Some(service) if service.starts_with("kms:") => {
            Err(SignerError::NoService(service.to_owned()))
        }
        Some(other) => Err(SignerError::Unknown(other.to_owned())),
    }
}

/// A key in a file that only its user can read.
#[derive(Debug)]
pub struct FileSigner {
    key: SigningKey,
}

impl FileSigner {
    /// The key of a log. Creates it if needed.
    pub fn open(keys: &Path, origin: &str) -> Result<FileSigner, SignerError> {
        let path = keys.join("log.key");
        let failed = |source| SignerError::File { path: path.clone(), source };
        let bad = |source| SignerError::Key { path: path.clone(), source };
        let key = match std::fs::read_to_string(&path) {
            Ok(text) => SigningKey::parse(&Zeroizing::new(text)).map_err(bad)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(|_| SignerError::NoRandomness)?;
                let key = SigningKey::generate(origin, seed).map_err(bad)?;
                super::publish::create_private_folder(keys).map_err(failed)?;
                super::publish::write_private(&path, key.to_text().as_bytes()).map_err(failed)?;
                key
            }
            Err(error) => return Err(failed(error)),
        };
        if key.name() != origin {
            let (name, origin) = (key.name().to_owned(), origin.to_owned());
            return Err(SignerError::OtherLog { path, name, origin });
        }
        Ok(FileSigner { key })
    }

    /// The key itself, for a witness.
    pub fn into_key(self) -> SigningKey {
        self.key
    }
}

impl Signer for FileSigner {
    fn public_key(&self) -> &VerifyingKey {
        self.key.verifying_key()
    }

    fn sign(&self, text: &str) -> Result<String, SignerError> {
        Ok(note::sign(text, &self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_belongs_to_one_log() {
        let keys = tempfile::tempdir().unwrap();
        let first = open(None, keys.path(), "a.example/log").unwrap().public_key().to_string();
        let again = open(Some("file"), keys.path(), "a.example/log").unwrap();
        assert_eq!(again.public_key().to_string(), first);
        let other = open(None, keys.path(), "b.example/log").unwrap_err().to_string();
        assert!(other.contains("keeps its name"), "{other}");
    }

    #[test]
    fn a_key_management_service_refuses_until_one_is_configured() {
        let keys = tempfile::tempdir().unwrap();
        let refused = open(Some("kms:projects/p"), keys.path(), "a.example/log").unwrap_err();
        assert!(matches!(refused, SignerError::NoService(_)));
        assert!(matches!(open(Some("hsm"), keys.path(), "x/log"), Err(SignerError::Unknown(_))));
        assert_eq!(std::fs::read_dir(keys.path()).unwrap().count(), 0);
    }
}
