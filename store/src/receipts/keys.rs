//! The keys of the ledger: one signs checkpoints, one makes the hashes of arguments.

use super::error::ReceiptsError;
use crate::home::{Home, failed};
use crate::key::{KEY_BYTES, KeyProblem, create_file, create_key, create_public_file, read_key};
use hmac::{Hmac, KeyInit, Mac};
use ledger::note::{Keyring, SigningKey};
use ledger::record::{ArgsHashKind, Digest32};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The largest key file that is read.
const MAX_KEY_FILE_BYTES: u64 = 4_096;

/// The home's signing key, for readers: nothing is created or repaired.
pub(super) fn read_signing_key(home: &Home) -> Result<SigningKey, ReceiptsError> {
    find_key(home, false)
}

/// The home's signing key, made where there is none and `may_create` says that nothing was signed yet.
///
/// INVARIANT: the caller holds the lock of the folder, so no other process makes one at the same time.
pub(super) fn signing_key(home: &Home, may_create: bool) -> Result<SigningKey, ReceiptsError> {
    let key = find_key(home, may_create)?;
    check_public_key(home, &key)?;
    Ok(key)
}

fn find_key(home: &Home, may_create: bool) -> Result<SigningKey, ReceiptsError> {
    let path = home.receipts_key_path();
    let wrong = |what: String| ReceiptsError::Key { path: path.clone(), what };
    match read_small(&path) {
        Ok(text) => {
            #[cfg(unix)]
            {
                let found = fs::metadata(&path).map_err(failed("look at", &path))?;
                if std::os::unix::fs::MetadataExt::mode(&found) & 0o077 != 0 {
                    return Err(wrong(
                        "can be read by others, so what it signed proves nothing".to_owned(),
                    ));
                }
            }
            SigningKey::parse(text.trim_end())
                .map_err(|error| wrong(format!("is not a key ({error})")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_create => {
            create(home, has_signed(home))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(wrong("is gone, and with it the key that the receipts are signed with".to_owned()))
        }
        Err(error) => Err(failed("read", &path)(error).into()),
    }
}

/// Whether the keys say that there were receipts: one half of the signing key is enough. A process that was stopped, or met a
/// full disk, between making the key and signing the first index leaves a key that signed nothing, and a note that names it.
pub(super) fn has_signed(home: &Home) -> bool {
    let public = read_small(&home.receipts_public_key_path());
    match (&public, home.receipts_key_path().exists()) {
        (Err(error), false) if error.kind() == io::ErrorKind::NotFound => false,
        (Err(_), _) => true,
        (Ok(public), _) => {
            let note = read_small(&home.receipts_key_unused_path());
            note.ok() != Some(unused_note(public))
        }
    }
}

/// What the note about a key that signed nothing yet says: which one it is.
fn unused_note(public: &str) -> String {
    format!("{}\n", contract::hash::sha256_hex(public.trim_end().as_bytes()))
}

/// Notes that an index is signed with the key.
///
/// INVARIANT: the caller holds the lock of the folder, and the index is on disk.
pub(super) fn note_signed(home: &Home) -> Result<(), ReceiptsError> {
    let path = home.receipts_key_unused_path();
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", &path)(error).into())
        }
        _ => Ok(()),
    }
}

/// Who verifies with the home's own public key has to have the one that signs. One that is gone is made again.
fn check_public_key(home: &Home, key: &SigningKey) -> Result<(), ReceiptsError> {
    let path = home.receipts_public_key_path();
    let text = format!("{}\n", key.verifying_key());
    match read_small(&path) {
        Ok(found) if found == text => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(create_public_file(&path, text.as_bytes())?)
        }
        _ => {
            let what = "is not the public half of `receipts.key`".to_owned();
            Err(ReceiptsError::Key { path, what })
        }
    }
}

/// A key in the place of one that signed is no key of a new home, and gets no note that says so.
fn create(home: &Home, is_replacing: bool) -> Result<SigningKey, ReceiptsError> {
    let path = home.receipts_key_path();
    let mut random = [0; 40];
    getrandom::fill(&mut random)
        .map_err(|error| failed("find randomness for", &path)(io::Error::other(error)))?;
    let (name, seed) = random.split_at(8);
    let seed: [u8; 32] = seed.try_into().unwrap_or_default();
    let wrong = |what: String| ReceiptsError::Key { path: path.clone(), what };
    let key = SigningKey::generate(&format!("holdpoint/{}", hex::encode(name)), seed)
        .map_err(|error| wrong(format!("cannot be made ({error})")))?;
    let text = format!("{}\n", key.verifying_key());
    let public = home.receipts_public_key_path();
    if !is_replacing {
        // One that was never used goes before its note does: alone it would say that there were receipts.
        let _ = fs::remove_file(&public);
        create_file(&home.receipts_key_unused_path(), unused_note(&text).as_bytes())?;
    }
    // The public key first: without it, signatures of the signing key could not be verified.
    create_public_file(&public, text.as_bytes())?;
    create_file(&path, format!("{}\n", &*key.to_text()).as_bytes())?;
    Ok(key)
}

/// The public keys of a file, as `receipts verify` takes them.
pub fn public_keys(path: &Path) -> Result<Keyring, ReceiptsError> {
    let text = read_small(path).map_err(failed("read", path))?;
    Keyring::from_text(&text).map_err(|error| ReceiptsError::Key {
        path: path.to_owned(),
        what: format!("holds no public key ({error})"),
    })
}

fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether the key for arguments can be used, for who only looks. One that is not there yet is made when it is needed.
pub fn check_args_key(home: &Home, kind: ArgsHashKind) -> Result<(), ReceiptsError> {
    if kind == ArgsHashKind::Plain {
        return Ok(());
    }
    let path = home.args_key_path();
    match read_key(&path) {
        Ok(_) | Err(KeyProblem::Missing(_)) => Ok(()),
        Err(problem) => Err(unusable(&path, &problem)),
    }
}

/// What is wrong with the key for arguments. No pin and no signature depends on it.
fn unusable(path: &Path, problem: &KeyProblem) -> ReceiptsError {
    let what = match problem {
        KeyProblem::Missing(_) => "is gone".to_owned(),
        KeyProblem::Malformed(_) => format!(
            "is not {KEY_BYTES} bytes long: put the right one back, or move it away and a new one is made; \
             hashes in older receipts can then not be compared with new ones"
        ),
        KeyProblem::Exposed(_) => {
            "can be read by others, who could find out arguments by trying: make it private \
             with `chmod 600`, or move it away and a new one is made"
                .to_owned()
        }
        KeyProblem::Unreadable(_, error) => format!("cannot be read: {error}"),
    };
    ReceiptsError::ArgsKey { path: path.to_owned(), what }
}

/// Makes the hashes of arguments that receipts carry.
pub struct ArgsKey {
    /// The state after the key was taken in. None: plain SHA-256.
    keyed: Option<Hmac<Sha256>>,
}

impl std::fmt::Debug for ArgsKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ArgsKey").field("kind", &self.kind()).finish()
    }
}

impl ArgsKey {
    pub(super) fn open(home: &Home, kind: ArgsHashKind) -> Result<ArgsKey, ReceiptsError> {
        if kind == ArgsHashKind::Plain {
            return Ok(ArgsKey { keyed: None });
        }
        let path = home.args_key_path();
        let key = match read_key(&path) {
            Err(KeyProblem::Missing(_)) => create_key(&path)?,
            found => found.map_err(|problem| unusable(&path, &problem))?,
        };
        let block: &hmac::digest::Key<Hmac<Sha256>> = &crate::authenticate::padded(&key).into();
        Ok(ArgsKey { keyed: Some(<Hmac<Sha256> as KeyInit>::new(block)) })
    }

    pub fn kind(&self) -> ArgsHashKind {
        if self.keyed.is_some() { ArgsHashKind::Keyed } else { ArgsHashKind::Plain }
    }

    /// The hash of arguments, over their bytes as they are forwarded.
    pub fn hash(&self, arguments: &[u8]) -> Digest32 {
        match &self.keyed {
            None => Digest32(Sha256::digest(arguments).into()),
            Some(keyed) => {
                let mut state = keyed.clone();
                state.update(arguments);
                Digest32(state.finalize().into_bytes().into())
            }
        }
    }
}
