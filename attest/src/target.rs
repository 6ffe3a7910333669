//! What a document is checked for: a host, a program on this machine, or nothing that is known.

use crate::digest::Digest;
use crate::host::Host;

/// The server that is about to be used.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A remote one, by the host that it was reached at.
    Remote(&'a Host),
    /// One that is started here: what would be started, and what the operator's configuration binds the server to.
    Local { program: &'a Program, binding: Option<&'a Binding> },
    /// Nobody said which.
    Unknown,
}

/// A program as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    pub package: Option<Package>,
    /// The digests of the program's file, made with what the document and the configuration name theirs by.
    pub file: Vec<Digest>,
}

/// A package as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// The digest of its archive, as the registry or the lock file has it.
    pub integrity: Option<Digest>,
}

/// What the operator binds a server to that is started here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// This package, in this version, with this archive.
    Package { name: String, version: String, integrity: Digest },
    /// This file.
    File(Digest),
}

/// Whether a program is what a binding or a digest asks for.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Same,
    Other,
}

impl Program {
    pub(crate) fn is_bound(&self, binding: &Binding) -> Match {
        let is_same = match binding {
            Binding::Package { name, version, integrity } => {
                self.package.as_ref().is_some_and(|found| {
                    found.name == *name
                        && found.version == *version
                        && found.integrity.as_ref() == Some(integrity)
                })
            }
            Binding::File(digest) => self.file.contains(digest),
        };
        if is_same { Match::Same } else { Match::Other }
    }

    /// Whether the package's archive or the program's file has this digest.
    pub(crate) fn has_digest(&self, digest: &Digest) -> Match {
        let package = self.package.as_ref().and_then(|package| package.integrity.as_ref());
        let is_same = self.file.iter().chain(package).any(|known| known == digest);
        if is_same { Match::Same } else { Match::Other }
    }
}
