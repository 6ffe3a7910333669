//! `holdpoint attest`: keys, signatures, verdicts and schemes of attestation documents.

mod inspect;
mod keys;
mod output;
mod passphrase;
mod schemes;
mod trust;
mod verdict;

use crate::arguments::Options;
use crate::arguments::attest::{AttestCommand, AttestSubcommand};
use crate::failure::{Exit, Failure};
use attest::{Scheme, TrustRoot};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub(crate) fn run(command: &AttestCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        AttestSubcommand::Keygen(command) => keys::generate(command, options),
        AttestSubcommand::Sign(command) => keys::sign(command, options),
        AttestSubcommand::Verify(command) => verdict::run(command, options),
        AttestSubcommand::Inspect(command) => inspect::run(command, options),
        AttestSubcommand::Schemes(command) => schemes::run(command, options),
        AttestSubcommand::Trust(command) => trust::run(command, options),
    }
}

/// Reads at most one byte more than the limit: the parser then reports that the file is too large.
fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let wrong = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path).map_err(wrong)?.take(limit).read_to_end(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}

fn read_text(path: &Path, limit: usize) -> Result<String, Failure> {
    let wrong = |_| Failure::usage(format!("`{}`: it is not text", path.display()));
    String::from_utf8(read(path, limit)?).map_err(wrong)
}

pub(crate) fn read_trust_root(path: &Path) -> Result<TrustRoot, Failure> {
    engine::admission::read_trust_root(path).map_err(Failure::usage)
}

/// A built-in scheme by name, or a scheme from a file.
pub(crate) fn find_scheme(name: &str) -> Result<Cow<'static, Scheme>, Failure> {
    engine::admission::find_scheme(name).map_err(Failure::usage)
}
