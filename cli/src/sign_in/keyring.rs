//! Stores tokens in the system's keyring or, if there is none, only in the memory of this process.
//! Never in a file.

use super::SignInTarget;
use engine::sign_in::{Vault, VaultError};
use keyring_core::{Entry, Error};
use oauth::Grant;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The service name that the system's keyring program shows for the entries.
const SERVICE: &str = "holdpoint";
/// How long the keyring's service may take to respond at all.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for another process that is signing in: as long as a user may take, and a
/// little more.
const LOCK_PATIENCE: Duration = Duration::from_secs(6 * 60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Where the tokens of a sign-in are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    Keyring,
    Process,
}

impl Keeping {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Keeping::Keyring => "the tokens are in the keyring of this system",
            Keeping::Process => {
                "there is no keyring here: the tokens are only kept in this process; the next one has to sign in again"
            }
        }
    }
}

/// The storage for a server's tokens.
pub(crate) fn open_vault(home: &Path, target: &SignInTarget) -> (Arc<dyn Vault>, Keeping) {
    match *HAS_KEYRING {
        true => {
            let lock = home.join("sign-ins").join(format!("{}.lock", target.key));
            let label = format!("Holdpoint: sign-in to {}", target.endpoint.url.host());
            (Arc::new(KeyringVault { user: target.key.clone(), label, lock }), Keeping::Keyring)
        }
        false => (Arc::new(ProcessVault::default()), Keeping::Process),
    }
}

/// The tokens of a sign-in by its name in the keyring; `None` without a keyring.
pub(crate) fn keyring_vault(home: &Path, key: &str) -> Option<KeyringVault> {
    let lock = home.join("sign-ins").join(format!("{key}.lock"));
    let label = "Holdpoint: sign-in".to_owned();
    HAS_KEYRING.then(|| KeyringVault { user: key.to_owned(), label, lock })
}

/// Whether the system's keyring can be used. Probed once, with a short timeout.
static HAS_KEYRING: LazyLock<bool> = LazyLock::new(|| {
    let (answer, answered) = channel();
    std::thread::spawn(move || {
        let _ = answer.send(connect());
    });
    matches!(answered.recv_timeout(PATIENCE), Ok(Ok(())))
});

/// A key that the user stored in the keyring under this name; `None` without a keyring or such a
/// key.
pub(crate) fn read_keyring(name: &str) -> Option<String> {
    if !*HAS_KEYRING {
        return None;
    }
    Entry::new(SERVICE, name).and_then(|entry| entry.get_password()).ok()
}

fn connect() -> Result<(), Error> {
    #[cfg(all(unix, not(target_os = "macos")))]
    let store = zbus_secret_service_keyring_store::Store::new()?;
    #[cfg(target_os = "macos")]
    let store = apple_native_keyring_store::keychain::Store::new()?;
    #[cfg(windows)]
    let store = windows_native_keyring_store::Store::new()?;
    keyring_core::set_default_store(store);
    // A service that cannot be read counts as missing.
    match Entry::new(SERVICE, "probe")?.get_secret() {
        Ok(_) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The tokens of one server, stored in the keyring.
pub(crate) struct KeyringVault {
    user: String,
    /// The label in the system's keyring program. Only the Secret Service has labels.
    #[cfg_attr(
        not(all(unix, not(target_os = "macos"))),
        allow(dead_code, reason = "other keyrings show the service and the user")
    )]
    label: String,
    lock: PathBuf,
}

impl fmt::Debug for KeyringVault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("KeyringVault").field(&self.user).finish()
    }
}

impl KeyringVault {
    fn entry(&self) -> Result<Entry, VaultError> {
        #[cfg(all(unix, not(target_os = "macos")))]
        let entry = {
            let label = std::collections::HashMap::from([("label", self.label.as_str())]);
            Entry::new_with_modifiers(SERVICE, &self.user, &label)
        };
        #[cfg(not(all(unix, not(target_os = "macos"))))]
        let entry = Entry::new(SERVICE, &self.user);
        entry.map_err(failed)
    }
}

/// The kind of the error, never its text: it may repeat the secret.
#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn failed(error: Error) -> VaultError {
    VaultError(
        match error {
            Error::NoStorageAccess(_) => "it is locked, or refuses access",
            Error::TooLong(..) => "the tokens are too long for it",
            Error::NoEntry => "it has no such entry",
            Error::BadEncoding(_) | Error::BadDataFormat(..) => "what it has cannot be read",
            _ => "it failed",
        }
        .to_owned(),
    )
}

impl Vault for KeyringVault {
    fn load(&self) -> Result<Option<Grant>, VaultError> {
        let kept = match self.entry()?.get_secret() {
            Ok(kept) => Zeroizing::new(kept),
            Err(Error::NoEntry) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Tokens that cannot be parsed come from another version: a new sign-in replaces them.
        Ok(serde_json::from_slice(&kept).ok())
    }

    fn save(&self, grant: &Grant) -> Result<(), VaultError> {
        let unwritable = |_| VaultError("the tokens cannot be written".to_owned());
        let text = Zeroizing::new(serde_json::to_vec(grant).map_err(unwritable)?);
        match self.entry()?.set_secret(&text) {
            // Some keyrings limit the size of an entry. Without the access token, the next process
            // refreshes.
            Err(Error::TooLong(..)) if grant.can_refresh() => {
                let short = Grant { access_token: None, ..grant.clone() };
                let text = Zeroizing::new(serde_json::to_vec(&short).map_err(unwritable)?);
                self.entry()?.set_secret(&text).map_err(failed)
            }
            outcome => outcome.map_err(failed),
        }
    }

    fn delete(&self) -> Result<(), VaultError> {
        match self.entry()?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    fn lock(&self) -> Result<Box<dyn Send>, VaultError> {
        lock_file(&self.lock).map(|file| Box::new(file) as Box<dyn Send>)
    }
}

/// Holds a lock on a file until the file is dropped.
pub(super) fn lock_file(path: &Path) -> Result<File, VaultError> {
    let failed = |error: std::io::Error| VaultError(format!("`{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut opening = OpenOptions::new();
    let file = opening.create(true).truncate(false).write(true).open(path).map_err(failed)?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if since.elapsed() > LOCK_PATIENCE => {
                return Err(VaultError("another process is signing in".to_owned()));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// The tokens of one server, kept for the lifetime of this process.
#[derive(Default)]
struct ProcessVault(Mutex<Option<Grant>>);

impl fmt::Debug for ProcessVault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProcessVault")
    }
}

impl ProcessVault {
    fn put(&self, grant: Option<Grant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = grant;
    }
}

impl Vault for ProcessVault {
    fn load(&self) -> Result<Option<Grant>, VaultError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&self, grant: &Grant) -> Result<(), VaultError> {
        self.put(Some(grant.clone()));
        Ok(())
    }

    fn delete(&self) -> Result<(), VaultError> {
        self.put(None);
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Send>, VaultError> {
        Ok(Box::new(()))
    }
}
