//! What a document is checked for: a host, a program on this machine, or nothing that is known.

use crate::digest::Digest;
use crate::host::Host;
use std::fmt;

/// The server that is about to be used.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A remote one, by the host that it was reached at.
    Remote(&'a Host),
    /// One that is started here: what would be started, and what the operator's configuration binds the server to. All
    /// of it has to hold.
    Local { program: &'a Program, bindings: &'a [Binding] },
    /// It is unknown.
    Unknown,
}

/// A program as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    pub package: PackageSighting,
    /// The digests of the program's file, made with what the document and the configuration name theirs by.
    pub file: Vec<Digest>,
}

/// A package as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// The digest of its archive, as its installer recorded it.
    pub integrity: Digest,
}

/// The package that a program was started from, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSighting {
    Known(Package),
    /// It is unknown, for this reason.
    Unknown(String),
}

impl Default for PackageSighting {
    fn default() -> PackageSighting {
        PackageSighting::Unknown("it was not looked up".to_owned())
    }
}

impl PackageSighting {
    pub fn known(&self) -> Option<&Package> {
        match self {
            PackageSighting::Known(package) => Some(package),
            PackageSighting::Unknown(_) => None,
        }
    }
}

/// What was found, as text.
impl fmt::Display for PackageSighting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageSighting::Known(package) => write!(formatter, "its package is {package}"),
            PackageSighting::Unknown(why) => write!(formatter, "its package is not known: {why}"),
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Package { name, version, integrity } = self;
        write!(formatter, "`{name}` in version `{version}` with the integrity `{integrity}`")
    }
}

/// What the operator binds a server to that is started here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// This package, in this version, with this archive.
    Package(Package),
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
            Binding::Package(package) => self.package.known() == Some(package),
            Binding::File(digest) => self.file.contains(digest),
        };
        if is_same { Match::Same } else { Match::Other }
    }

    /// Whether the package's archive or the program's file has this digest.
    pub(crate) fn has_digest(&self, digest: &Digest) -> Match {
        let package = self.package.known().map(|package| &package.integrity);
        let is_same = self.file.iter().chain(package).any(|known| known == digest);
        if is_same { Match::Same } else { Match::Other }
    }
}
