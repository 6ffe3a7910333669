//! `[vault]`: where secrets named `vault:MOUNT/PATH#FIELD` are stored, and how the gateway
//! authenticates there.

use super::front::readable;
use super::mistake::{Mistakes, Place};
use super::tables::{VaultAuthTable, VaultMethod, VaultTable};
use super::web_url::WebUrl;
use crate::secret::SecretName;
use crate::value::Whole;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// How long a secret is used before it is read again.
const REFRESH_SECONDS: u64 = 300;
/// The longest name of a secret, and of one part of it.
const MAX_PATH_BYTES: usize = 512;

/// A HashiCorp Vault with secrets in KV version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSettings {
    pub address: WebUrl,
    pub namespace: Option<String>,
    pub login: VaultLogin,
    pub refresh_seconds: u64,
    pub allow_private: bool,
    /// Certificate authorities for its host, instead of the system's.
    pub ca: Option<SecretName>,
}

/// How the gateway authenticates to Vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultLogin {
    Token(SecretName),
    AppRole { mount: String, role_id: String, secret_id: SecretName },
    Kubernetes { mount: String, role: String, jwt: SecretName },
}

/// A field of a secret in Vault, named `vault:MOUNT/PATH#FIELD`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VaultPath {
    pub mount: String,
    pub path: String,
    pub field: String,
}

impl FromStr for VaultPath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<VaultPath, &'static str> {
        let wrong = "type `vault:MOUNT/PATH#FIELD`, such as `vault:kv/issues#token`";
        let (place, field) = text.split_once('#').ok_or(wrong)?;
        let (mount, path) = place.split_once('/').ok_or(wrong)?;
        let is_part = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !part.is_empty() && !matches!(part, "." | "..") && part.bytes().all(is_plain)
        };
        let is_whole = text.len() <= MAX_PATH_BYTES
            && is_part(mount)
            && path.split('/').all(is_part)
            && is_part(field);
        if !is_whole {
            return Err(wrong);
        }
        let [mount, path, field] = [mount, path, field].map(str::to_owned);
        Ok(VaultPath { mount, path, field })
    }
}

impl fmt::Display for VaultPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "vault:{}/{}#{}", self.mount, self.path, self.field)
    }
}

pub(super) fn read(
    table: Option<&VaultTable>,
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<VaultSettings> {
    let (table, place) = (table?, Place::top().key("vault"));
    let address = match &table.address {
        Some(text) => text
            .parse()
            .map_err(|error: super::BadWebUrl| {
                mistakes.add(&place.key("address"), error.to_string());
            })
            .ok(),
        None => {
            mistakes.add(
                &place.key("address"),
                "missing: type `address = \"https://vault.example.com:8200\"`",
            );
            None
        }
    };
    let login = login(&table.auth, folder, &place.key("auth"), mistakes);
    let ca = match &table.ca {
        Some(ca) => Some(readable(ca, folder, &place.key("ca"), mistakes)?),
        None => None,
    };
    Some(VaultSettings {
        address: address?,
        namespace: table.namespace.as_ref().map(|text| text.to_string()),
        login: login?,
        refresh_seconds: table.refresh_seconds.map_or(REFRESH_SECONDS, |Whole(seconds)| seconds),
        allow_private: table.allow_private,
        ca,
    })
}

fn login(
    table: &VaultAuthTable,
    folder: &Path,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<VaultLogin> {
    let VaultAuthTable { method, mount, token, role_id, secret_id, role, jwt } = table;
    let written = [
        ("mount", mount.is_some()),
        ("token", token.is_some()),
        ("role_id", role_id.is_some()),
        ("secret_id", secret_id.is_some()),
        ("role", role.is_some()),
        ("jwt", jwt.is_some()),
    ];
    let used: &[&str] = match method {
        VaultMethod::Token => &["token"],
        VaultMethod::Approle => &["mount", "role_id", "secret_id"],
        VaultMethod::Kubernetes => &["mount", "role", "jwt"],
    };
    for (key, is_set) in written {
        if is_set && !used.contains(&key) {
            mistakes.add(&place.key(key), "does not belong to this method: remove it");
        } else if !is_set && used.contains(&key) && key != "mount" {
            mistakes.add(&place.key(key), "missing: this method of signing in needs it");
        }
    }
    let mut secret = |key: &str, written: &Option<SecretName>| {
        readable(written.as_ref()?, folder, &place.key(key), mistakes)
    };
    let mount = |usual: &str| mount.as_deref().unwrap_or(usual).trim_matches('/').to_owned();
    match method {
        VaultMethod::Token => Some(VaultLogin::Token(secret("token", token)?)),
        VaultMethod::Approle => Some(VaultLogin::AppRole {
            mount: mount("approle"),
            secret_id: secret("secret_id", secret_id)?,
            role_id: role_id.as_ref()?.to_string(),
        }),
        VaultMethod::Kubernetes => Some(VaultLogin::Kubernetes {
            mount: mount("kubernetes"),
            jwt: secret("jwt", jwt)?,
            role: role.as_ref()?.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::VaultPath;

    #[test]
    fn a_secret_of_vault_is_named_by_mount_path_and_field() {
        let named: VaultPath = "kv/teams/issues#token".parse().unwrap();
        assert_eq!(
            [named.mount.as_str(), named.path.as_str(), named.field.as_str()],
            ["kv", "teams/issues", "token"]
        );
        assert_eq!(named.to_string(), "vault:kv/teams/issues#token");
        for text in
            ["kv#token", "kv/a", "/a#t", "kv/#t", "kv/../sys#t", "kv/a?x=1#t", "kv/a#", "kv/a b#t"]
        {
            assert!(text.parse::<VaultPath>().is_err(), "{text}");
        }
        let long = |bytes: usize| format!("kv/{}#t", "p".repeat(bytes - 5));
        assert!(long(512).parse::<VaultPath>().is_ok());
        assert!(long(513).parse::<VaultPath>().is_err());
    }
}
