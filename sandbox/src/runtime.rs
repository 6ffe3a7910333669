//! The files that a program needs to start: the executable, the targets of its links and its `#!`
//! line, and its installation folder. The profile must name everything else it needs (packages,
//! data).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// The search path if the launch has no `PATH`.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The most links and interpreters that are followed.
const MAX_STEPS: usize = 16;
const MAX_FIRST_LINE_BYTES: u64 = 4096;
const MAX_CONFIGURATION_BYTES: u64 = 64 * 1024;
/// The most entries of a folder that are examined to find out what is installed there.
const MAX_LIBRARIES: usize = 4096;

/// Finds a program like a shell: a name without `/` is searched for in the folders of `path`.
pub fn find_program(program: &OsStr, path: &OsStr, directory: Option<&Path>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let here = || directory.map(Path::to_owned).or_else(|| std::env::current_dir().ok());
    if program.as_bytes().contains(&b'/') {
        return Some(here()?.join(program)).filter(is_program);
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(is_program)
}

/// The paths that must be visible for a program to start. System folders (`/usr` and the like) are
/// omitted, because every program sees them.
///
/// `changeable` are folders whose files a confined program may have written. INVARIANT: a link, a
/// `#!` line or a `pyvenv.cfg` in one of them exposes nothing outside of them except an interpreter
/// and its installation. Otherwise a program could choose what it sees the next time it is started.
pub fn runtime_of(program: &Path, changeable: &[PathBuf]) -> Vec<PathBuf> {
    let changeable: Vec<PathBuf> = changeable
        .iter()
        .flat_map(|folder| [Some(folder.clone()), fs::canonicalize(folder).ok()])
        .flatten()
        .collect();
    let is_changeable = |path: &Path| changeable.iter().any(|folder| path.starts_with(folder));
    let mut found = BTreeSet::new();
    // Each path, with whether a possibly modified file led to it.
    let mut next = vec![(program.to_owned(), false)];
    for _ in 0..MAX_STEPS {
        let Some((path, is_claimed)) = next.pop() else { break };
        let path = without_dots(&path);
        if is_claimed && !is_changeable(&path) && !is_of_the_system(&path) {
            let Ok(real) = fs::canonicalize(&path) else { continue };
            let installation = installed_in(&real).filter(|folder| is_of_interpreter(folder));
            if installation.is_some() || is_of_the_system(&real) {
                found.extend(installation);
                found.insert(path);
                next.push((real, false));
            }
            continue;
        }
        let folder = installed_in(&path);
        let folder = folder.filter(|folder| !is_claimed || is_changeable(folder));
        found.insert(folder.unwrap_or_else(|| path.clone()));
        let is_claimed = is_changeable(&path);
        if let Ok(link) = fs::read_link(&path) {
            next.push((path.parent().unwrap_or(Path::new("/")).join(link), is_claimed));
            continue;
        }
        if let Some(base) = path.parent().and_then(virtual_environment_base) {
            next.push((base, is_claimed));
        }
        if let Ok(real) = fs::canonicalize(&path)
            && real != path
        {
            next.push((real, is_claimed));
        }
        match interpreter(&path) {
            Some(Interpreter::At(file)) => next.push((file, is_claimed)),
            // Found in our own search path. A possibly modified program may only use a common
            // interpreter.
            Some(Interpreter::Named(name, file)) => {
                next.push((file, is_claimed && !is_usual_interpreter(&name)));
            }
            None => {}
        }
    }
    found.into_iter().filter(|path| !is_of_the_system(path)).collect()
}

/// Whether a folder is an installation of Python or Node, judging by its contents.
fn is_of_interpreter(folder: &Path) -> bool {
    let is_python = || {
        let libraries = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
        libraries.take(MAX_LIBRARIES).any(|library| {
            library.file_name().as_bytes().starts_with(b"python")
                && library.path().join("os.py").is_file()
        })
    };
    let is_node = || {
        folder.join("include/node/node.h").is_file() || folder.join("lib/node_modules/npm").is_dir()
    };
    is_python() || is_node()
}

fn is_usual_interpreter(name: &OsStr) -> bool {
    const USUAL: [&str; 7] = ["bun", "deno", "java", "node", "perl", "php", "ruby"];
    let is_python = name.as_bytes().starts_with(b"python") || name.as_bytes().starts_with(b"pypy");
    is_python || USUAL.iter().any(|usual| name == *usual)
}

/// The installation folder of an executable: for `P/bin/x` it is `P`, unless that contains several
/// programs' files.
fn installed_in(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let is_bin = folder.file_name().is_some_and(|name| name == "bin");
    let prefix = folder.parent().filter(|_| is_bin).filter(|prefix| {
        let is_home =
            std::env::var_os("HOME").is_some_and(|home| Path::new(&home).starts_with(prefix));
        let is_hidden_home = prefix.file_name().is_some_and(|name| name == ".local");
        prefix.components().count() > 2 && !is_home && !is_hidden_home
    });
    Some(prefix.unwrap_or(path).to_owned())
}

/// The Python installation behind a virtual environment, from the `home` line of its `pyvenv.cfg`.
fn virtual_environment_base(bin: &Path) -> Option<PathBuf> {
    let text = beginning(&bin.parent()?.join("pyvenv.cfg"), MAX_CONFIGURATION_BYTES)?;
    let home = text.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once('=')?;
        (name.trim() == "home").then(|| value.trim().to_owned())
    })?;
    Some(Path::new(&home).join("python"))
}

/// The interpreter of a script.
enum Interpreter {
    At(PathBuf),
    /// Started by `env`, which searches for this name.
    Named(OsString, PathBuf),
}

fn interpreter(script: &Path) -> Option<Interpreter> {
    let line = beginning(script, MAX_FIRST_LINE_BYTES)?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let program = Path::new(OsStr::from_bytes(words.next()?));
    if program.file_name()? != "env" {
        return Some(Interpreter::At(program.to_owned()));
    }
    let name = OsStr::from_bytes(words.find(|word| !word.starts_with(b"-"))?);
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let file = find_program(name, &path, None)?;
    Some(Interpreter::Named(name.to_owned(), file))
}

/// The first bytes of a regular file. `None` for anything else: reading a pipe would block.
fn beginning(path: &Path, at_most: u64) -> Option<Vec<u8>> {
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(at_most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The folders that every program sees.
pub(crate) const SYSTEM_FOLDERS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

pub(crate) fn is_of_the_system(path: &Path) -> bool {
    SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// Removes `.` and `..` from a path textually.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
