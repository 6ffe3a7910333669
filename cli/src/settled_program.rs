//! The program path that is written into hosts' files. A program that a package manager fetched may
//! be deleted at any time, so it is first copied to `~/.local/bin/holdpoint`, and that path is
//! written.

use crate::arguments::Options;
use crate::commands::wiring::short;
use crate::failure::Failure;
use crate::hosting::PROGRAM;
use crate::screen;
use memchr::memmem;
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// Identifies a file as this program and gives its version, without running the file. It is only
/// ever read from files.
#[used]
static RELEASE: &[u8] = concat!("holdpoint release <", env!("CARGO_PKG_VERSION"), ">").as_bytes();
/// The text before the version, in two halves: otherwise a search would find this pattern instead
/// of the mark.
const MARK: [&str; 2] = ["holdpoint rel", "ease <"];
/// The largest file that is searched.
const MAX_PROGRAM_BYTES: u64 = 256 * 1024 * 1024;
/// The longest version text.
const MAX_VERSION_BYTES: usize = 64;

/// Folders that npm, pnpm, bun and uv own and may empty.
const PACKAGE_FOLDERS: [&str; 4] = ["node_modules", "_npx", "archive-v0", "environments-v2"];

/// Whether a program is in a folder of a package manager.
pub(crate) fn is_in_package_folder(program: &Path) -> bool {
    let real = program.canonicalize();
    let folders = real.as_deref().unwrap_or(program).components();
    let is_managed = |name: &OsStr| PACKAGE_FOLDERS.iter().any(|folder| name == *folder);
    let in_uv_cache = std::env::var_os("UV_CACHE_DIR")
        .and_then(|cache| Path::new(&cache).canonicalize().ok())
        .is_some_and(|cache| real.as_deref().unwrap_or(program).starts_with(cache));
    in_uv_cache
        || folders
            .into_iter()
            .any(|part| matches!(part, Component::Normal(name) if is_managed(name)))
}

/// The program path to write into files, and whether the program must be copied there first.
#[derive(Debug)]
pub(crate) struct SettledProgram {
    pub(crate) path: PathBuf,
    copy_from: Option<PathBuf>,
}

impl SettledProgram {
    /// Finds this program, or its future place in `~/.local/bin`. Writes nothing.
    pub(crate) fn find() -> Result<SettledProgram, Failure> {
        let running = std::env::current_exe()?;
        if !is_in_package_folder(&running) {
            return Ok(SettledProgram { path: running, copy_from: None });
        }
        let home = std::env::home_dir()
            .ok_or_else(|| Failure::usage("no home directory is known: set HOME"))?;
        let path = home.join(".local/bin").join(PROGRAM);
        let copy_from = match found_at(&path)? {
            Found::Nothing => Some(running),
            Found::Release(version) if is_newer(env!("CARGO_PKG_VERSION"), &version) => {
                refuse_link(&path, &version)?;
                Some(running)
            }
            Found::Release(_) => None,
            Found::Other => {
                return Err(Failure::usage(format!(
                    "`{}` is another program, and this one lies in a folder of a package manager: \
                     move the other one, or name the program that hosts are to start with `--program`",
                    path.display()
                )));
            }
        };
        Ok(SettledProgram { path, copy_from })
    }

    /// Copies the program to its place, atomically.
    pub(crate) fn place(&self, options: &Options) -> Result<(), Failure> {
        let Some(from) = &self.copy_from else { return Ok(()) };
        let failed = |error: io::Error| {
            Failure::internal(format!("`{}` could not be written: {error}", self.path.display()))
        };
        copy_by_rename(from, &self.path).map_err(failed)?;
        if !options.quiet && !options.json {
            let (version, path) = (env!("CARGO_PKG_VERSION"), short(&self.path));
            screen::say(format!("holdpoint {version} copied to {path}"));
        }
        Ok(())
    }
}

/// Refuses to replace a symbolic link: it belongs to the program that made it, such as `uv tool`.
fn refuse_link(path: &Path, version: &str) -> Result<(), Failure> {
    if !path.is_symlink() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "`{}` is a link to holdpoint {version}, and this is {}: update it with what installed it, \
         for example `uv tool upgrade holdpoint`",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )))
}

/// The kind of file at a path.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A release of this program, with its version.
    Release(String),
    Other,
}

fn found_at(path: &Path) -> io::Result<Found> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return Ok(Found::Nothing);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Other),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() || file.metadata()?.len() > MAX_PROGRAM_BYTES {
        return Ok(Found::Other);
    }
    Ok(version_in(&mut file)?.map_or(Found::Other, Found::Release))
}

/// The version embedded in a holdpoint program.
fn version_in(file: &mut impl Read) -> io::Result<Option<String>> {
    const PIECE: usize = 1024 * 1024;
    let mark = MARK.concat();
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut window: Vec<u8> = Vec::new();
    loop {
        let read = file.by_ref().take(PIECE as u64).read_to_end(&mut window)?;
        for at in finder.find_iter(&window) {
            let rest = window.get(at + mark.len()..).unwrap_or_default();
            if rest.len() < MAX_VERSION_BYTES && read > 0 {
                break;
            }
            let end = rest.iter().take(MAX_VERSION_BYTES).position(|byte| *byte == b'>');
            let version = end.and_then(|end| std::str::from_utf8(rest.get(..end)?).ok());
            if let Some(version) = version.filter(|version| numbers(version).is_some()) {
                return Ok(Some(version.to_owned()));
            }
        }
        if read == 0 {
            return Ok(None);
        }
        // A mark may span two pieces.
        let kept = window.len().saturating_sub(mark.len() + MAX_VERSION_BYTES);
        window.drain(..kept);
    }
}

/// The three numbers of a version, and the pre-release part that makes it older than the release
/// with these numbers.
fn numbers(version: &str) -> Option<([u64; 3], Option<&str>)> {
    let version = version.split('+').next().unwrap_or(version);
    let (release, before) = match version.split_once('-') {
        Some((release, before)) => (release, Some(before)),
        None => (version, None),
    };
    let mut parts = release.split('.').map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some((numbers, before))
}

fn is_newer(one: &str, other: &str) -> bool {
    let (Some((one, before)), Some((other, other_before))) = (numbers(one), numbers(other)) else {
        return false;
    };
    let order = one.cmp(&other).then_with(|| match (before, other_before) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(other)) => one.cmp(other),
    });
    order == Ordering::Greater
}

/// Copies to a temporary file and renames it: a host that starts the program meanwhile gets the old
/// or the new one.
fn copy_by_rename(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::create_dir_all(folder)?;
    let part = folder.join(format!(".{PROGRAM}.{}.part", std::process::id()));
    let written = write_program(from, &part).and_then(|()| fs::rename(&part, to));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_program(from: &Path, to: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
    let mut file = options.open(to)?;
    io::copy(&mut File::open(from)?, &mut file)?;
    file.flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_package_managers_are_recognized() {
        for path in [
            "/home/a/.npm/_npx/1f2e/node_modules/@holdpoint/linux-x64/bin/holdpoint",
            "/home/a/.cache/uv/archive-v0/Xy_1/bin/holdpoint",
            "/usr/lib/node_modules/@holdpoint/linux-x64/bin/holdpoint",
        ] {
            assert!(is_in_package_folder(Path::new(path)), "{path}");
        }
        for path in [
            "/home/a/.local/bin/holdpoint",
            "/home/a/.local/share/uv/tools/holdpoint/bin/holdpoint",
            "/home/a/.cargo/bin/holdpoint",
            "/home/a/app/.venv/bin/holdpoint",
            "/home/a/node_modules_old/holdpoint",
        ] {
            assert!(!is_in_package_folder(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn only_a_newer_version_is_newer() {
        for (one, other) in [
            ("0.2.0", "0.1.9"),
            ("0.10.0", "0.9.0"),
            ("1.0.0", "1.0.0-rc.1"),
            ("1.0.0-rc.2", "1.0.0-rc.1"),
        ] {
            assert!(is_newer(one, other) && !is_newer(other, one), "{one} {other}");
        }
        assert!(!is_newer("0.1.0", "0.1.0") && !is_newer("0.1.0+b", "0.1.0"));
        assert!(!is_newer("0.2.0", "0.1") && !is_newer("x", "0.1.0"));
    }

    #[test]
    fn a_version_is_found_wherever_it_lies_in_a_file() {
        let mark = |version: &str| format!("{}{version}>", MARK.concat());
        for before in [0, 5, 1024 * 1024 - 20, 1024 * 1024 - 3, 3 * 1024 * 1024] {
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(mark("not a version").as_bytes());
            bytes.extend_from_slice(mark("1.2.3-rc.1").as_bytes());
            let found = version_in(&mut io::Cursor::new(bytes)).unwrap();
            assert_eq!(found.as_deref(), Some("1.2.3-rc.1"), "{before}");
        }
        for bytes in [MARK.concat(), "holdpoint".to_owned(), String::new(), mark(&"1".repeat(64))] {
            assert_eq!(version_in(&mut io::Cursor::new(bytes.clone())).unwrap(), None, "{bytes}");
        }
    }

    #[test]
    fn this_program_carries_its_version() {
        assert!(RELEASE.starts_with(MARK.concat().as_bytes()));
        let program = std::env::current_exe().unwrap();
        let found = found_at(&program).unwrap();
        assert_eq!(found, Found::Release(env!("CARGO_PKG_VERSION").to_owned()));
    }

    #[test]
    fn what_is_no_release_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holdpoint");
        assert_eq!(found_at(&path).unwrap(), Found::Nothing);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(found_at(&path).unwrap(), Found::Other);
    }

    #[test]
    fn a_copy_replaces_as_one_act_and_can_be_started() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("new"), folder.path().join("bin/holdpoint"));
        fs::write(&from, "new").unwrap();
        for _ in 0..2 {
            copy_by_rename(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), "new");
        }
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o111, 0o111);
        }
    }
}
