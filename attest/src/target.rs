//! What a document is checked against: a host, a program on this machine, or nothing known.

use crate::digest::Digest;
use crate::host::Host;
use std::fmt;

/// The server that is about to be used.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A remote server, by the host through which it was reached.
    Remote(&'a Host),
    /// A server that is started here: the program that would be started, and everything that the
    /// operator's configuration binds the server to. All bindings must match.
    Local { program: &'a Program, bindings: &'a [Binding] },
    /// The server is unknown.
    Unknown,
}

/// A program as found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    pub package: PackageSighting,
    /// The digests of the program's file, with the algorithms that the document and the
    /// configuration use.
    pub file: Vec<Digest>,
}

/// A package as found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// The digest of its archive as recorded by the installer.
    pub integrity: Digest,
}

/// The package that a program was started from, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSighting {
    Known(Package),
    /// Unknown, with the reason.
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

/// Describes the finding.
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

/// What the operator binds a locally started server to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// This package in this version with this archive.
    Package(Package),
    /// This program file.
    File(Digest),
}

/// Whether a program matches a binding or a digest.
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
