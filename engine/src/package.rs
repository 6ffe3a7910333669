//! Finds the package that a server was started from, using its command and the records that the
//! installer left. Nothing is run or fetched, and an ambiguous result counts as none.
//!
//! A program of the same user can change the records, and what a process reports about itself. So
//! this detects an upgrade or a mix-up, but not a forgery.

mod command;
mod processes;
mod surroundings;

use crate::process::ServerGroup;
use attest::{
    InstallRecord, MAX_INSTALL_RECORD_BYTES, MAX_PACKAGE_MANIFEST_BYTES, NoPlace, Package,
    PackageSighting, Place, UnknownPackage, identify,
};
use command::Way;
use processes::Member;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use wire::StdioLaunch;

/// Why it is unknown which package a server was started from.
#[derive(Debug, thiserror::Error)]
enum NotObserved {
    #[error(
        "`{program}` does not belong to an installed package and starts none in a known way; bind its file with `program_digest`"
    )]
    NoPackage { program: String },
    #[error("`{program}` was not started from a file that is named with its folder")]
    NoScript { program: String },
    #[error("`{option}` may make `{program}` load something else; start the package without it")]
    Option { program: String, option: String },
    #[error(
        "`{name}` in the environment may make the server load something else; start it without"
    )]
    Variable { name: String },
    #[error(
        "`{}` may make the server load something else; start the server in another folder, or the package's own file",
        .path.display()
    )]
    Settings { path: PathBuf },
    #[error(
        "`{program}` has the name of an interpreter or a launcher and may be something else; name it without a folder, or the program itself"
    )]
    Interpreter { program: String },
    #[error(
        "the process {id} holds the server's pipes and runs no file of the package `{name}`; start the package's own file"
    )]
    OtherSpeaker { id: u32, name: String },
    #[error("`{}`: {error}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("paths like `{}` are not looked through", .path.display())]
    Path { path: PathBuf },
    #[error("`{}`: {error}", .path.display())]
    Place {
        path: PathBuf,
        #[source]
        error: NoPlace,
    },
    #[error("`{}`: {error}", .folder.display())]
    Unknown {
        folder: PathBuf,
        #[source]
        error: UnknownPackage,
    },
    #[error("the server's processes cannot be seen here ({0}); start the package's own file")]
    Processes(#[source] io::Error),
    #[error(
        "none of the server's processes reports that it runs a file of the package `{name}` on the server's pipes (a process that sets its own title does not report it); start the package's own file"
    )]
    NotRunning { name: String },
    #[error(
        "a launcher finds the package `{name}`, and what it runs is seen only while `holdpoint run` runs it"
    )]
    NotLookedThrough { name: String },
    #[error("the server's processes run several copies of the package `{name}`")]
    SeveralCopies { name: String },
    #[error("the version `{asked}` was asked for, and `{found}` is installed")]
    OtherVersion { asked: String, found: String },
    #[error("it was {first} at the first check and is now {now}; restart the server")]
    Replaced { first: Box<Package>, now: Box<Package> },
}

/// Finds the package of one server, as often as requested.
#[derive(Debug)]
pub struct PackageFinder {
    state: FinderState,
    group: Option<ServerGroup>,
    /// The folder that the server was started in.
    directory: PathBuf,
}

#[derive(Debug)]
enum FinderState {
    /// The command says where the package is, or what to search for.
    Named(Way),
    /// The first sighting, which is what runs.
    Seen(Sighted),
    /// The package will not become known.
    Unknown(NotObserved),
}

/// A package, and the file of it that is run.
#[derive(Debug)]
struct Sighted {
    file: PathBuf,
    package: Package,
}

impl PackageFinder {
    /// For a server started with this command. `file` is where its program was found, and `group`
    /// its processes.
    pub fn new(file: &Path, launch: &StdioLaunch, group: Option<ServerGroup>) -> PackageFinder {
        let ours: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        match command::way_of(file, launch, &ours) {
            Ok((way, surroundings)) => PackageFinder {
                state: FinderState::Named(way),
                group,
                directory: surroundings.directory,
            },
            Err(error) => PackageFinder {
                state: FinderState::Unknown(error),
                group,
                directory: PathBuf::new(),
            },
        }
    }

    /// Whether a launcher finds the package, so that only a running process shows which one it is.
    pub fn is_launched(&self) -> bool {
        matches!(self.state, FinderState::Named(Way::Launched { .. }))
    }

    /// Looks once, at the start. A package that a launcher still has to fetch is found later. In
    /// all other cases, what is unknown now stays unknown: a record that appears next to a running
    /// server may have been written by the server.
    pub fn begin(&mut self) {
        if let FinderState::Named(Way::File(file)) = &self.state {
            self.state = sight(file).map_or_else(FinderState::Unknown, FinderState::Seen);
        }
    }

    /// The package as it is on disk now, if it is still the first one seen.
    pub fn look(&mut self) -> PackageSighting {
        self.begin();
        let outcome = match &self.state {
            FinderState::Unknown(error) => return PackageSighting::Unknown(error.to_string()),
            FinderState::Seen(first) => look_again(first),
            FinderState::Named(Way::File(file)) => sight(file).map(|sighted| sighted.package),
            FinderState::Named(Way::Launched { name, version }) => {
                let found =
                    find_launched(name, version.as_deref(), self.group.as_ref(), &self.directory);
                found.map(|sighted| {
                    let package = sighted.package.clone();
                    self.state = FinderState::Seen(sighted);
                    package
                })
            }
        };
        match outcome {
            Ok(package) => PackageSighting::Known(package),
            Err(error) => PackageSighting::Unknown(error.to_string()),
        }
    }
}

fn look_again(first: &Sighted) -> Result<Package, NotObserved> {
    let now = sight(&first.file)?.package;
    if now == first.package {
        return Ok(now);
    }
    Err(NotObserved::Replaced { first: Box::new(first.package.clone()), now: Box::new(now) })
}

/// The package that a file belongs to, according to the files around it.
fn sight(file: &Path) -> Result<Sighted, NotObserved> {
    let (file, place) = place_of(file)?;
    let root = PathBuf::from(if place.root().is_empty() { "/" } else { place.root() });
    let folder = root.join(place.folder());
    let manifest = folder.join("package.json");
    let manifest = read(&manifest, MAX_PACKAGE_MANIFEST_BYTES)
        .map_err(|error| NotObserved::File { path: manifest, error })?;
    let mut records = Vec::new();
    for record in InstallRecord::ALL {
        let path = root.join(record.path());
        match read(&path, MAX_INSTALL_RECORD_BYTES) {
            Ok(bytes) => records.push((record, bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(NotObserved::File { path, error }),
        }
    }
    let package = identify(&place, &manifest, &records)
        .map_err(|error| NotObserved::Unknown { folder, error })?;
    Ok(Sighted { file, package })
}

/// The path of a file with all links resolved, and the place of its package.
fn place_of(file: &Path) -> Result<(PathBuf, Place), NotObserved> {
    let failed = |error| NotObserved::File { path: file.to_owned(), error };
    let real = file.canonicalize().map_err(failed)?;
    if !real.is_file() {
        return Err(failed(io::Error::other("it is not a file")));
    }
    match real.to_str().filter(|_| cfg!(unix)).map(Place::of) {
        Some(Ok(place)) => Ok((real, place)),
        Some(Err(error)) => Err(NotObserved::Place { path: real, error }),
        None => Err(NotObserved::Path { path: real }),
    }
}

/// The only copy of a package that the server's processes run, provided that no other process can
/// act in its place.
fn find_launched(
    name: &str,
    version: Option<&str>,
    group: Option<&ServerGroup>,
    directory: &Path,
) -> Result<Sighted, NotObserved> {
    let not_running = || NotObserved::NotRunning { name: name.to_owned() };
    let group = group.ok_or_else(|| NotObserved::NotLookedThrough { name: name.to_owned() })?;
    let (leader, pipes) = group.leader_and_pipes().ok_or_else(not_running)?;
    let members = processes::members_of(leader, pipes, processes::MAX_MEMBERS)
        .map_err(NotObserved::Processes)?;
    // A process may name any file, even a missing one. Names that are not files of the package are
    // ignored.
    let run_by = |member: &Member| {
        let (file, place) = place_of(&member.file(directory)?).ok()?;
        (member.has_pipes && place.name() == name).then_some((file, place))
    };
    let mut copy: Option<(PathBuf, Place)> = None;
    let mut running = Vec::new();
    for (member, (file, place)) in members.iter().filter_map(|m| Some((m, run_by(m)?))) {
        let is_other = |(_, known): &(PathBuf, Place)| {
            (known.root(), known.folder()) != (place.root(), place.folder())
        };
        if copy.as_ref().is_some_and(is_other) {
            return Err(NotObserved::SeveralCopies { name: name.to_owned() });
        }
        member.refuse_loading()?;
        running.push(member.id);
        copy = Some((file, place));
    }
    let (file, _) = copy.ok_or_else(not_running)?;
    if let Some(id) = processes::other_speaker(&members, leader, &running) {
        return Err(NotObserved::OtherSpeaker { id, name: name.to_owned() });
    }
    let sighted = sight(&file)?;
    match version.filter(|version| is_exact(version) && *version != sighted.package.version) {
        Some(asked) => {
            let (asked, found) = (asked.to_owned(), sighted.package.version);
            Err(NotObserved::OtherVersion { asked, found })
        }
        None => Ok(sighted),
    }
}

/// Whether a version is exact rather than a range or a tag: `1.2.3`, with an optional suffix.
fn is_exact(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    core.split('.').count() == 3 && core.split('.').all(is_number)
}

/// A file's contents, or one byte more than the limit, which the caller then refuses. Does not
/// block if the path is a pipe or a device.
fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            i32::try_from(flags).unwrap_or(0),
        );
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
