//! `holdpoint receipts`: reads, exports, verifies and proves receipts.

use crate::arguments::Options;
use crate::arguments::receipts::{EvidenceArguments, ReceiptsCommand, ReceiptsSubcommand};
use crate::failure::{Exit, Failure};
use crate::target::home_path;
use ledger::note::Keyring;
use std::path::{Path, PathBuf};
use store::receipts::{DiskFolder, public_keys};

mod export;
mod list;
mod printing;
mod prove;
mod show;
mod verify;

pub(crate) fn run(command: &ReceiptsCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        ReceiptsSubcommand::List(command) => list::run(command, options),
        ReceiptsSubcommand::Show(command) => show::run(command, options),
        ReceiptsSubcommand::Export(command) => export::run(command, options),
        ReceiptsSubcommand::Verify(command) => verify::run(command, options),
        ReceiptsSubcommand::Prove(command) => prove::run(command, options),
    }
}

/// Like [`folder`], but `None` if the home has no receipts yet, which is not an error.
fn folder_if_any(named: Option<&Path>, options: &Options) -> Result<Option<DiskFolder>, Failure> {
    if named.is_none() && !home_path(options)?.join("receipts").exists() {
        return Ok(None);
    }
    folder(named, options).map(Some)
}

/// The named folder, or that of the home. Never creates it: these commands only read evidence.
fn folder(named: Option<&Path>, options: &Options) -> Result<DiskFolder, Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => home_path(options)?.join("receipts"),
    };
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(DiskFolder::new(&path)),
        Ok(_) => Err(Failure::usage(format!("`{}` is not a folder of receipts", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            Err(Failure::usage(format!(
                "there are no receipts yet in `{}`: they are written from the first act on",
                path.display()
            )))
        }
        Err(error) => Err(Failure::usage(format!("`{}`: {error}", path.display()))),
    }
}

/// The named keys, or those of the home.
fn keys(evidence: &EvidenceArguments, options: &Options) -> Result<Keyring, Failure> {
    let path: PathBuf = match &evidence.key {
        Some(path) => path.clone(),
        None => home_path(options)?.join("keys").join("receipts.pub"),
    };
    let has_receipts = home_path(options)?.join("receipts").exists();
    if evidence.key.is_none() && !path.exists() && !has_receipts {
        return Err(Failure::usage(format!(
            "there are no receipts yet in `{}`: they are written from the first act on, such as `holdpoint pin` or a call \
             through `holdpoint run`; to look at those of another home, name its key with `--key FILE`",
            home_path(options)?.display()
        )));
    }
    public_keys(&path).map_err(Failure::usage)
}

/// Reads a small file that the user named.
fn read_file(path: &Path, limit: u64) -> Result<String, Failure> {
    use std::io::Read;
    let named =
        |error: &dyn std::fmt::Display| Failure::usage(format!("`{}`: {error}", path.display()));
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| named(&error))?;
    file.take(limit + 1).read_to_string(&mut text).map_err(|error| named(&error))?;
    if text.len() as u64 > limit {
        return Err(named(&format!("larger than {limit} bytes")));
    }
    Ok(text)
}
