//! Finds the package that a file belongs to, and the archive it was installed from, as recorded by
//! the installer.
//!
//! A record says what was installed, not whether the files were changed since. Anything ambiguous
//! counts as unknown: a record that cannot be read unambiguously, one without the package, or two
//! records that differ.

mod bun;
mod npm;
mod place;
mod pnpm;

pub use place::{NoPlace, Place};

use crate::digest::Digest;
use crate::limits::{MAX_INSTALL_RECORD_BYTES, MAX_PACKAGE_MANIFEST_BYTES, MAX_TEXT_BYTES};
use crate::target::Package;
use contract::json::{Document, Node, ReadError};

/// A file in which an installer records what it installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstallRecord {
    /// What npm put into `node_modules`.
    NpmTree,
    /// What npm was supposed to put there.
    NpmProject,
    Pnpm,
    Bun,
}

impl InstallRecord {
    pub const ALL: [InstallRecord; 4] = [
        InstallRecord::NpmTree,
        InstallRecord::NpmProject,
        InstallRecord::Pnpm,
        InstallRecord::Bun,
    ];

    /// Its path in the installation folder.
    pub const fn path(self) -> &'static str {
        match self {
            InstallRecord::NpmTree => "node_modules/.package-lock.json",
            InstallRecord::NpmProject => "package-lock.json",
            InstallRecord::Pnpm => "node_modules/.pnpm/lock.yaml",
            InstallRecord::Bun => "bun.lock",
        }
    }

    /// The record of the package at a place.
    pub fn read(
        self,
        bytes: &[u8],
        place: &Place,
        manifest: &Manifest,
    ) -> Result<Recorded, RecordError> {
        if bytes.len() > MAX_INSTALL_RECORD_BYTES {
            return Err(RecordError::TooLong);
        }
        let recorded = match self {
            InstallRecord::NpmTree | InstallRecord::NpmProject => npm::read(bytes, place),
            InstallRecord::Pnpm => pnpm::read(bytes, place, manifest),
            InstallRecord::Bun => bun::read(bytes, place, manifest),
        }?;
        if recorded.version != manifest.version {
            let (recorded, found) = (recorded.version, manifest.version.clone());
            return Err(RecordError::OtherVersion { recorded, found });
        }
        Ok(recorded)
    }
}

/// The record of one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub version: String,
    pub integrity: Digest,
}

/// Why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("it has more than {MAX_INSTALL_RECORD_BYTES} bytes")]
    TooLong,
    #[error("{0}")]
    Json(#[from] ReadError),
    #[error("invalid or ambiguous YAML: {0}")]
    Yaml(String),
    #[error("it has no `packages` in a known format")]
    UnknownForm,
    #[error("it does not have the package")]
    NotThere,
    #[error("its entry for the package has an unknown format")]
    UnknownEntry,
    #[error(
        "it says that the package was patched: what is installed is not the registry's archive"
    )]
    Patched,
    #[error("it has a package called `{recorded}` there")]
    OtherName { recorded: String },
    #[error("it has the version `{recorded}`, and `package.json` says `{found}`")]
    OtherVersion { recorded: String, found: String },
    #[error("it has no `integrity` for the package, or none by SHA-256, SHA-384 or SHA-512")]
    NoIntegrity,
}

/// What a package declares about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub name: String,
    pub version: String,
}

impl Manifest {
    /// Reads a `package.json`.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        if bytes.len() > MAX_PACKAGE_MANIFEST_BYTES {
            return Err(ManifestError::TooLong);
        }
        let document = Document::parse_bytes(bytes)?;
        let text = |member| {
            let text = document.root().get(member).and_then(Node::as_str);
            text.filter(|text| is_plain(text))
                .map(String::from)
                .ok_or(ManifestError::Missing { member })
        };
        Ok(Manifest { name: text("name")?, version: text("version")? })
    }
}

/// Why a `package.json` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("it has more than {MAX_PACKAGE_MANIFEST_BYTES} bytes")]
    TooLong,
    #[error("{0}")]
    Json(#[from] ReadError),
    #[error("it has no `{member}` that could be one")]
    Missing { member: &'static str },
}

/// Why the package of a program, or the archive it was installed from, is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPackage {
    #[error("`package.json`: {0}")]
    Manifest(#[from] ManifestError),
    #[error("it is in the folder of `{folder}`, but `package.json` names `{name}`")]
    OtherName { folder: String, name: String },
    #[error(
        "no installer left a record of it: `{}`, `{}`, `{}` and `{}` are read",
        InstallRecord::NpmTree.path(),
        InstallRecord::NpmProject.path(),
        InstallRecord::Pnpm.path(),
        InstallRecord::Bun.path()
    )]
    NoRecord,
    #[error("`{}`: {error}", .record.path())]
    Record {
        record: InstallRecord,
        #[source]
        error: RecordError,
    },
    #[error("`{}` and `{}` name different archives", .0.path(), .1.path())]
    Disagree(InstallRecord, InstallRecord),
}

/// Identifies the package at a place by its `package.json` and every record present. All of them
/// must agree.
pub fn identify(
    place: &Place,
    manifest: &[u8],
    records: &[(InstallRecord, Vec<u8>)],
) -> Result<Package, UnknownPackage> {
    let manifest = Manifest::parse(manifest)?;
    if manifest.name != place.name() {
        let (folder, name) = (place.name().to_owned(), manifest.name);
        return Err(UnknownPackage::OtherName { folder, name });
    }
    let mut first: Option<(InstallRecord, Recorded)> = None;
    for (record, bytes) in records {
        let recorded = record
            .read(bytes, place, &manifest)
            .map_err(|error| UnknownPackage::Record { record: *record, error })?;
        match &first {
            Some((other, known)) if *known != recorded => {
                return Err(UnknownPackage::Disagree(*other, *record));
            }
            Some(_) => {}
            None => first = Some((*record, recorded)),
        }
    }
    let (_, Recorded { version, integrity }) = first.ok_or(UnknownPackage::NoRecord)?;
    Ok(Package { name: manifest.name, version, integrity })
}

/// Whether a name or a version is safe to display: no white space, no control characters, and
/// bounded in length.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
}

/// The digest of an archive in the notation of installers: one or more digests, of which the
/// strongest is used.
fn integrity(text: &str) -> Result<Digest, RecordError> {
    let is_spelled = |word: &&str| word.contains('-');
    let words = text.split_ascii_whitespace().filter(is_spelled);
    let known: Vec<Digest> = words.filter_map(|word| Digest::parse(word).ok()).collect();
    let strongest = known.iter().map(Digest::algorithm).max();
    let mut counting = known.into_iter().filter(|digest| Some(digest.algorithm()) == strongest);
    match (counting.next(), counting.next()) {
        (Some(digest), None) => Ok(digest),
        _ => Err(RecordError::NoIntegrity),
    }
}

/// Splits `name@version`.
fn split_version(text: &str) -> Option<(&str, &str)> {
    let (name, version) = text.rsplit_once('@')?;
    (!name.is_empty() && is_plain(version)).then_some((name, version))
}

#[cfg(test)]
mod tests;
