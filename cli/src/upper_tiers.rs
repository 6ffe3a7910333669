//! The network and the model that are asked about changes, made from the configuration, for a
//! session and for commands.

use crate::configuration::Configuration;
use crate::screen;
use crate::sign_in::read_keyring;
use engine::upper_tiers::{Access, UpperTiers};
use settings::{SecretError, SecretName};
use store::Home;
use store::receipts::DiskFolder;

/// Starts the tiers that the operator named. A tier that cannot be used is reported and left out.
pub(crate) fn start(
    home: &Home,
    configuration: &Configuration,
    receipts: &DiskFolder,
    is_quiet: bool,
) -> UpperTiers {
    let access = access(home.path(), configuration);
    access.start(home.path(), receipts, &|words| {
        if !is_quiet {
            screen::remark(format!("holdpoint: {}", screen::readable(words)));
        }
    })
}

/// The tiers that may be asked on this machine.
pub(crate) fn access(home: &std::path::Path, configuration: &Configuration) -> Access {
    Access::here(configuration.network(), configuration.judge(), home, &read_key)
}

/// Reads a key by its name. The key is never printed and never part of an error.
pub(crate) fn read_key(name: &SecretName) -> Result<String, SecretError> {
    match name {
        SecretName::Keyring(entry) => {
            read_keyring(entry).ok_or(SecretError::NotReadHere("keyring"))
        }
        SecretName::Env(_) | SecretName::File(_) | SecretName::Vault(_) | SecretName::Age(_) => {
            name.read(|name| std::env::var(name).ok())
        }
    }
}
