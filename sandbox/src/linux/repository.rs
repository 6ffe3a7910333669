//! Finds what git runs from a folder, or enters by itself: the work trees of submodules, the
//! configured hooks folder, and included configuration files. It only reads. Programs that can
//! write to a repository are not restricted by its contents.

use crate::refusal::Refusal;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The most submodules that are examined, including nested ones.
const MAX_MODULES: usize = 256;
const MAX_TEXT_BYTES: u64 = 1 << 20;
const MAX_INDEX_BYTES: u64 = 512 << 20;
/// How many parent folders are searched for the repository that a folder belongs to.
const MAX_LEVELS: usize = 64;

/// A work tree, and the folder that its `.git` is or refers to.
struct Repository {
    top: PathBuf,
    git: PathBuf,
}

impl Repository {
    fn at(top: &Path) -> Option<Repository> {
        let git = top.join(".git");
        let metadata = fs::metadata(&git).ok()?;
        let git = if metadata.is_dir() {
            git
        } else {
            let text = text_of(&git)?;
            top.join(text.strip_prefix("gitdir:")?.trim())
        };
        // An empty folder that serves as a placeholder is not a repository.
        git.join("HEAD").is_file().then(|| Repository { top: top.to_owned(), git })
    }

    /// The folder with the configuration, which the work trees of one repository share.
    fn shared(&self) -> PathBuf {
        let shared = text_of(&self.git.join("commondir"));
        shared.map_or_else(|| self.git.clone(), |path| self.git.join(path.trim()))
    }

    /// The paths of its submodules. The index determines what git enters; `.gitmodules` may list
    /// more.
    fn modules(&self) -> Result<BTreeSet<PathBuf>, Refusal> {
        let mut found = BTreeSet::new();
        let hash = self.hash_bytes();
        let mut indexes = vec![self.git.join("index")];
        let others = fs::read_dir(&self.git).into_iter().flatten().flatten();
        let is_shared =
            |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"sharedindex.");
        indexes.extend(others.filter(|it| is_shared(&it.file_name())).map(|it| it.path()));
        for index in indexes {
            let Some(bytes) = bytes_of(&index, MAX_INDEX_BYTES) else { continue };
            let why = "it is an index of git that cannot be read, so the submodules are not known";
            let entries = index::links(&bytes, hash)
                .ok_or_else(|| Refusal::Path { path: index, why: why.to_owned() })?;
            found.extend(entries);
        }
        let text = text_of(&self.top.join(".gitmodules")).unwrap_or_default();
        let named = settings(&text).filter(|setting| setting.key == "path");
        found.extend(named.map(|setting| PathBuf::from(setting.value)));
        let is_inside =
            |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
        Ok(found.into_iter().filter(is_inside).collect())
    }

    /// The length of object hashes.
    fn hash_bytes(&self) -> usize {
        let text = text_of(&self.shared().join("config")).unwrap_or_default();
        let is_long = settings(&text).any(|setting| {
            setting.section == "extensions"
                && setting.key == "objectformat"
                && setting.value.eq_ignore_ascii_case("sha256")
        });
        if is_long { 32 } else { 20 }
    }

    /// Records what its configuration makes git run or read: the hooks folder and included files.
    fn note_named(&self, folder: &Path, found: &mut RunByGit) {
        let shared = self.shared();
        for of in [&shared, &self.git] {
            for file in ["config", "config.worktree"] {
                let text = text_of(&of.join(file)).unwrap_or_default();
                for Setting { section, key, value } in settings(&text) {
                    let (path, is_folder) = match (section.as_str(), key.as_str()) {
                        ("core", "hookspath") => (self.top.join(value), true),
                        ("include" | "includeif", "path") => (of.join(value), false),
                        _ => continue,
                    };
                    let Some(path) = below(folder, &path) else { continue };
                    match (path.exists(), is_folder) {
                        (true, _) => found.kept.insert(path),
                        (false, true) => found.empty.insert(path),
                        (false, false) => continue,
                    };
                }
            }
        }
    }
}

/// The items inside a folder that must not change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RunByGit {
    /// The `.git` of submodules, hooks folders and included files.
    pub(super) kept: BTreeSet<PathBuf>,
    /// Folders in which nothing may be created: those of submodules that are not checked out, and
    /// hooks folders without hooks. They may not exist.
    pub(super) empty: BTreeSet<PathBuf>,
}

/// What git runs from this folder or enters in it, whether the folder is a repository or part of
/// one.
pub(super) fn run_by_git(folder: &Path) -> Result<RunByGit, Refusal> {
    let mut found = RunByGit::default();
    let above = folder.ancestors().take(MAX_LEVELS).find_map(Repository::at);
    let mut next: Vec<Repository> = above.into_iter().collect();
    let mut count = 0;
    while let Some(repository) = next.pop() {
        repository.note_named(folder, &mut found);
        // Some users store the repository of a work tree next to it, under another name.
        let own = [repository.git.clone(), repository.shared()];
        let own = own.iter().filter_map(|path| below(folder, path));
        found.kept.extend(own.filter(|path| !path.starts_with(folder.join(".git"))));
        for path in repository.modules()? {
            let module = repository.top.join(path);
            if !module.starts_with(folder) || module == folder {
                continue;
            }
            count += 1;
            if count > MAX_MODULES {
                let why = format!("it has more than {MAX_MODULES} submodules");
                return Err(Refusal::Path { path: folder.to_owned(), why });
            }
            if fs::symlink_metadata(module.join(".git")).is_err() {
                found.empty.insert(module);
                continue;
            }
            next.extend(Repository::at(&module));
            found.kept.insert(module.join(".git"));
        }
    }
    Ok(found)
}

/// Returns the path if it is inside the folder.
fn below(folder: &Path, path: &Path) -> Option<PathBuf> {
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
    (plain.starts_with(folder) && plain != folder).then_some(plain)
}

/// One setting of a git configuration.
struct Setting {
    /// In lower case, without the subsection.
    section: String,
    key: String,
    value: String,
}

/// The settings in a file, as far as their values are on one line.
fn settings(text: &str) -> impl Iterator<Item = Setting> {
    let mut section = String::new();
    text.lines().filter_map(move |line| {
        let mut line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            // A setting may follow on the same line.
            let (head, rest) = head.split_once(']')?;
            let name = head.split(|c: char| c.is_whitespace() || c == '"' || c == '.').next()?;
            section = name.to_ascii_lowercase();
            line = rest.trim();
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';']))?;
        let value = value.split(['#', ';']).next().unwrap_or_default();
        let value = value.trim().trim_matches('"').to_owned();
        let key = key.trim().to_ascii_lowercase();
        (!value.is_empty()).then(|| Setting { section: section.clone(), key, value })
    })
}

fn text_of(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes_of(path, MAX_TEXT_BYTES)?).into_owned())
}

fn bytes_of(path: &Path, at_most: u64) -> Option<Vec<u8>> {
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(at_most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Parses the git index, versions 2 to 4, as far as needed to find submodule entries.
pub(crate) mod index {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    const SUBMODULE: u32 = 0o160_000;
    const EXTENDED: u16 = 0x4000;
    /// The length of the fields before an entry's hash; flags and the name follow it.
    const BEFORE_HASH: usize = 40;
    const MODE_AT: usize = 24;

    /// The paths of the submodule entries, in an index whose hashes have this many bytes. Returns
    /// `None` if it is not a valid index.
    pub(crate) fn links(bytes: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
        let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
        let (b"DIRC", version @ 2..=4) = (bytes.get(..4)?, word(4)?) else { return None };
        let count = word(8)?;
        let (mut at, mut found, mut name) = (12, Vec::new(), Vec::new());
        for _ in 0..count {
            let start = at;
            let mode = word(start + MODE_AT)?;
            let flags_at = start + BEFORE_HASH + hash;
            let flags = u16::from_be_bytes(*bytes.get(flags_at..)?.first_chunk::<2>()?);
            at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
            if version == 4 {
                let (dropped, after) = number(bytes, at)?;
                name.truncate(name.len().checked_sub(dropped)?);
                at = after;
            } else {
                name.clear();
            }
            let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
            name.extend_from_slice(bytes.get(at..at + length)?);
            at += length + 1;
            if version < 4 {
                // Each entry is padded with zeros to a multiple of eight bytes.
                let end = start + (at - start).next_multiple_of(8);
                if bytes.get(at..end)?.iter().any(|byte| *byte != 0) {
                    return None;
                }
                at = end;
            }
            // Git writes no other kinds of entry. An entry without a name refers to a shared index.
            if !matches!(mode >> 12, 0o4 | 0o10 | 0o12 | 0o16) {
                return None;
            }
            if mode == SUBMODULE {
                found.push(PathBuf::from(OsString::from_vec(name.clone())));
            }
        }
        // The checksum follows.
        (bytes.len() >= at + hash).then_some(found)
    }

    /// A variable-length number, and the position after it.
    fn number(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
        let mut byte = *bytes.get(at)?;
        at += 1;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *bytes.get(at)?;
            at += 1;
            value =
                value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some((value, at))
    }
}

#[cfg(test)]
mod tests;
