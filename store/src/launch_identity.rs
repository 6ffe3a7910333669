//! Recognizes servers that are launched the same way, by a keyed hash over everything that decides
//! what is started or reached.
//!
//! INVARIANT: two launches with the same hash start the same program with the same words and
//! variables, or reach the same address with the same headers. A launch with an unknown part has no
//! hash.

use crate::authenticate::launch_hash;
use crate::key::Key;
use crate::launch_key::LaunchKey;
use contract::origin::find_package;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The longest file name extension that makes a word look like a file.
const MAX_ENDING: usize = 8;

/// The keyed hash of a launch, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaunchHash(String);

impl LaunchHash {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of file that has a server's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryFile {
    /// The user's own file.
    User,
    /// A project's file, or a file of unknown kind.
    Project,
}

/// Identifies launches of the same server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchIdentity {
    pub hash: LaunchHash,
    pub file: EntryFile,
}

/// A program with everything that it is started with.
#[derive(Debug, Clone, Copy)]
pub struct StartedProgram<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// The program as named in the entry.
    pub name: &'a str,
    pub arguments: &'a [OsString],
    pub folder: &'a Path,
    /// The variables that the host's entry sets, with the values that the gate was started with.
    pub variables: &'a BTreeMap<String, Option<OsString>>,
}

impl StartedProgram<'_> {
    /// The program's file as a full path.
    fn file(&self) -> PathBuf {
        self.folder.join(self.program)
    }

    /// The folder, if the meaning of an argument depends on it.
    fn meant_folder(&self) -> Option<&Path> {
        let words: Vec<String> =
            self.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let package =
            find_package(self.name, &words).filter(|package| package.registry != "script");
        let named = package.as_ref().map_or(&[][..], |package| package.words());
        let is_relative = |word: &String| is_relative(word, self.folder, named.contains(word));
        words.iter().any(is_relative).then_some(self.folder)
    }
}

impl LaunchKey {
    pub fn hash_program(&self, started: &StartedProgram<'_>) -> LaunchHash {
        let file = started.file();
        let mut parts: Vec<&[u8]> = vec![b"program", bytes(file.as_os_str())];
        let count = started.arguments.len().to_string();
        parts.push(count.as_bytes());
        parts.extend(started.arguments.iter().map(|word| bytes(word)));
        match started.meant_folder() {
            Some(folder) => parts.extend([&b"in"[..], bytes(folder.as_os_str())]),
            None => parts.push(b"anywhere"),
        }
        for (name, value) in started.variables {
            parts.push(name.as_bytes());
            match value {
                Some(value) => parts.extend([&b"set"[..], bytes(value)]),
                None => parts.push(b"unset"),
            }
        }
        self.hash_parts(&parts)
    }

    /// The hash of an address and its headers, independent of their order.
    pub fn hash_address(&self, url: &str, headers: &[(&str, &[u8])]) -> LaunchHash {
        let mut headers = headers.to_vec();
        headers.sort_unstable();
        let mut parts: Vec<&[u8]> = vec![b"address", url.as_bytes()];
        parts.extend(headers.into_iter().flat_map(|(name, value)| [name.as_bytes(), value]));
        self.hash_parts(&parts)
    }

    fn hash_parts(&self, parts: &[&[u8]]) -> LaunchHash {
        LaunchHash(hex::encode(launch_hash(&Key::from_bytes(*self.bytes()), parts)))
    }
}

fn bytes(text: &OsStr) -> &[u8] {
    text.as_encoded_bytes()
}

/// Whether a word, or the value of an option, may be a path relative to the folder. In doubt, it
/// counts as one: then fewer launches count as the same.
fn is_relative(word: &str, folder: &Path, names_package: bool) -> bool {
    let value = word.split_once('=').map(|(_, value)| value);
    [Some(word), value].into_iter().flatten().any(|text| {
        is_relative_path(text, folder) || !names_package && looks_like_a_relative_path(text)
    })
}

/// Whether a text is certainly a path relative to the folder.
fn is_relative_path(text: &str, folder: &Path) -> bool {
    let is_dotted = matches!(text, "." | "..") || text.contains("./") || text.contains(".\\");
    if is_elsewhere(text) {
        return false;
    }
    is_dotted || !text.starts_with('-') && folder.join(text).exists()
}

fn looks_like_a_relative_path(text: &str) -> bool {
    !is_elsewhere(text)
        && !text.starts_with('-')
        && (text.contains(['/', '\\']) || has_ending(text))
}

/// Whether a text is empty, an absolute path, or a URL.
fn is_elsewhere(text: &str) -> bool {
    text.is_empty()
        || text.contains("://")
        || text.starts_with("~/")
        || Path::new(text).is_absolute() && !text.contains(":.")
}

/// Whether a text ends in a file name extension, like `data.sqlite`.
fn has_ending(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(name, ending)| {
        !name.is_empty()
            && ending.len() <= MAX_ENDING
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests;
