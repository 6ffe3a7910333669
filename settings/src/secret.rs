//! The names of secrets. A configuration or a command line says where a secret is stored, and never
//! contains its value.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Read;
use std::str::FromStr;

/// The largest secret that is read.
pub const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Where a secret is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub enum SecretName {
    /// `env:VARIABLE`
    Env(String),
    /// `file:PATH`
    File(String),
    /// `vault:PATH#FIELD`
    Vault(String),
    /// `age:PATH` or `age:PATH#NAME`
    Age(String),
    /// `keyring:NAME`
    Keyring(String),
}

/// Why a secret could not be read. The error never contains its value, nor a text that is not a
/// valid name: it may be the value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("a secret cannot be given directly; expected `env:VARIABLE` or `file:PATH`")]
    NotAName,
    #[error("the variable `{0}` is not set")]
    NoVariable(String),
    #[error("`{path}`: {source}")]
    NoFile { path: String, source: std::io::Error },
    #[error("longer than {MAX_SECRET_BYTES} bytes")]
    TooLong,
    #[error("`{0}:` cannot be read here; use `env:VARIABLE` or `file:PATH`")]
    NotReadHere(&'static str),
}

impl FromStr for SecretName {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<SecretName, SecretError> {
        let (kind, name) = text.split_once(':').ok_or(SecretError::NotAName)?;
        let name = Some(name).filter(|name| !name.is_empty()).ok_or(SecretError::NotAName)?;
        match kind {
            "env" => Ok(SecretName::Env(name.to_owned())),
            "file" => Ok(SecretName::File(name.to_owned())),
            "vault" => Ok(SecretName::Vault(name.to_owned())),
            "age" => Ok(SecretName::Age(name.to_owned())),
            "keyring" => Ok(SecretName::Keyring(name.to_owned())),
            _ => Err(SecretError::NotAName),
        }
    }
}

/// The name, as written.
impl fmt::Display for SecretName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            SecretName::Env(name) => ("env", name),
            SecretName::File(path) => ("file", path),
            SecretName::Vault(path) => ("vault", path),
            SecretName::Age(path) => ("age", path),
            SecretName::Keyring(name) => ("keyring", name),
        };
        write!(formatter, "{kind}:{name}")
    }
}

impl TryFrom<String> for SecretName {
    type Error = SecretError;

    fn try_from(text: String) -> Result<SecretName, SecretError> {
        text.parse()
    }
}

impl SecretName {
    /// Refuses a name whose place this program cannot read.
    pub fn check_readable(&self) -> Result<(), SecretError> {
        match self {
            SecretName::Env(_) | SecretName::File(_) => Ok(()),
            SecretName::Vault(_) => Err(SecretError::NotReadHere("vault")),
            SecretName::Age(_) => Err(SecretError::NotReadHere("age")),
            SecretName::Keyring(_) => Err(SecretError::NotReadHere("keyring")),
        }
    }

    /// Reads the secret, without a file's trailing line break. `variable` looks up an environment
    /// variable.
    pub fn read(
        &self,
        variable: impl FnOnce(&str) -> Option<String>,
    ) -> Result<String, SecretError> {
        let value = match self {
            SecretName::Env(name) => {
                variable(name).ok_or_else(|| SecretError::NoVariable(name.clone()))?
            }
            SecretName::File(path) => {
                let wrong = |source| SecretError::NoFile { path: path.clone(), source };
                let file = std::fs::File::open(path).map_err(wrong)?;
                let mut text = String::new();
                file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text).map_err(wrong)?;
                text
            }
            SecretName::Vault(_) => return Err(SecretError::NotReadHere("vault")),
            SecretName::Age(_) => return Err(SecretError::NotReadHere("age")),
            SecretName::Keyring(_) => return Err(SecretError::NotReadHere("keyring")),
        };
        if value.len() as u64 > MAX_SECRET_BYTES {
            return Err(SecretError::TooLong);
        }
        Ok(value.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_named_and_never_given() {
        for (text, expected) in [
            ("env:TOKEN", Some(SecretName::Env("TOKEN".to_owned()))),
            ("file:/t", Some(SecretName::File("/t".to_owned()))),
            ("vault:kv/files#token", Some(SecretName::Vault("kv/files#token".to_owned()))),
            ("age:secrets.age#TOKEN", Some(SecretName::Age("secrets.age#TOKEN".to_owned()))),
            ("keyring:files", Some(SecretName::Keyring("files".to_owned()))),
            ("env:", None),
            ("Bearer x", None),
            ("https://x", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
        let refused = "s3cret".parse::<SecretName>().unwrap_err().to_string();
        assert!(!refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn a_secret_is_read_up_to_its_bound() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |name: &str| name.parse::<SecretName>().unwrap().read(|_| None);
        let source = format!("file:{}", file.path().display());
        let write = |length: u64| {
            std::fs::write(file.path(), "x".repeat(usize::try_from(length).unwrap())).unwrap();
        };
        std::fs::write(file.path(), "Bearer x\n").unwrap();
        assert_eq!(read(&source).unwrap(), "Bearer x");
        write(MAX_SECRET_BYTES);
        assert!(read(&source).is_ok());
        write(MAX_SECRET_BYTES + 1);
        assert!(matches!(read(&source), Err(SecretError::TooLong)));
        assert!(matches!(read("env:NONE"), Err(SecretError::NoVariable(_))));
        assert!(matches!(read("file:/no/such/file"), Err(SecretError::NoFile { .. })));
        assert!(matches!(read("vault:kv#x"), Err(SecretError::NotReadHere("vault"))));
        let name: SecretName = "env:TOKEN".parse().unwrap();
        assert_eq!(name.read(|name| Some(format!("{name} value"))).unwrap(), "TOKEN value");
    }
}
