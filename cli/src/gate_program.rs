//! The program that a host's entry starts: whether it exists, and whether it is this program or
//! only has the same name.

use hosts::{Server, WiringState};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The program that a host's entry starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// This program, or a copy of it.
    Gate,
    /// Another program with the same name.
    Other,
    Nothing,
}

pub(crate) fn started(server: &Server) -> Started {
    // A program that a package manager fetches cannot be compared: trust what the entry says.
    if matches!(server.state, WiringState::Wired { is_fetched: true, .. }) {
        return Started::Gate;
    }
    match named(server).and_then(|(program, folders)| find(program, folders)) {
        Some(found) if is_this_program(&found) => Started::Gate,
        Some(_) => Started::Other,
        None => Started::Nothing,
    }
}

/// The program of an entry, by name or path, and the `PATH` that the entry itself sets.
pub(crate) type Named<'s> = (&'s str, Option<&'s str>);

/// `None` where the entry does not start the gate itself.
pub(crate) fn named(server: &Server) -> Option<Named<'_>> {
    let WiringState::Wired { program, is_fetched: false, variables, .. } = &server.state else {
        return None;
    };
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
    Some((program.as_str(), path))
}

/// Finds the program of an entry the way its host would.
pub(crate) fn find(program: &str, folders: Option<&str>) -> Option<PathBuf> {
    if is_name(program) {
        let folders = folders.map(OsString::from).or_else(|| std::env::var_os("PATH"))?;
        return find_in(program, &folders);
    }
    let path = Path::new(program);
    path.is_file().then(|| path.to_owned())
}

/// Whether a program is given by name only, without a folder.
pub(crate) fn is_name(program: &str) -> bool {
    Path::new(program).components().count() == 1
}

/// Whether a file is the program that runs now, or a copy of it. The name alone proves nothing, and
/// running the file to find out would start an unknown program.
pub(crate) fn is_this_program(path: &Path) -> bool {
    let Ok(ours) = std::env::current_exe() else { return false };
    match (path.canonicalize(), ours.canonicalize()) {
        (Ok(path), Ok(ours)) => path == ours || has_same_bytes(&path, &ours).unwrap_or(false),
        _ => false,
    }
}

fn has_same_bytes(one: &Path, other: &Path) -> std::io::Result<bool> {
    const PIECE: u64 = 1024 * 1024;
    if std::fs::metadata(one)?.len() != std::fs::metadata(other)?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    loop {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        (&mut one).take(PIECE).read_to_end(&mut left)?;
        (&mut other).take(PIECE).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

/// Finds a program by its name in the folders of `PATH`.
pub(crate) fn find_in(name: &str, folders: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
