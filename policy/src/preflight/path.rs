//! Paths in arguments must stay inside the workspace, however a server might interpret the text.
//!
//! A text has several readings: unchanged, percent-decoded, with backslashes as separators, with
//! look-alikes of `.`, `/`, `\` and `~` replaced, without invisible characters, and any combination
//! of these. Each reading must stay inside. So a file that is really called `a%20b` or `a\b`
//! passes, and `..%2f` does not.

use contract::hidden::is_hidden;
use std::collections::HashSet;
use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

/// The longest path that is checked.
pub const MAX_PATH_BYTES: usize = 4_096;
/// The most readings of one text: only a deliberately misleading text has more.
const MAX_READINGS: usize = 64;

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    #[error("is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    #[error("is not a text")]
    NotText,
    #[error("has a control character")]
    Control,
    #[error("leads out of the workspace")]
    Outside,
    #[error("begins with a home folder, a variable, a drive or a share")]
    OtherRoot,
    #[error("is a URL, not a path")]
    Url,
    #[error("has a part of dots and spaces that servers read in different ways")]
    Dots,
    #[error("can be read in too many ways")]
    Readings,
    #[error("leads out of the workspace by a link")]
    Link,
}

/// Why a folder cannot be a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadWorkspace {
    #[error("write the whole path, from `/` on, without `..`")]
    NotAbsolute,
    #[error("a workspace is a folder below `/`, not all of it")]
    Everything,
}

/// The folder that paths must stay in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    path: String,
    parts: Vec<String>,
}

impl FromStr for Workspace {
    type Err = BadWorkspace;

    fn from_str(path: &str) -> Result<Workspace, BadWorkspace> {
        Workspace::new(path)
    }
}

impl fmt::Display for Workspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)
    }
}

impl Workspace {
    pub fn new(path: &str) -> Result<Workspace, BadWorkspace> {
        let mut parts = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(BadWorkspace::NotAbsolute);
                }
            }
        }
        match (path.starts_with('/'), parts.is_empty()) {
            (false, _) => Err(BadWorkspace::NotAbsolute),
            (true, true) => Err(BadWorkspace::Everything),
            (true, false) => Ok(Workspace { path: format!("/{}", parts.join("/")), parts }),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// Checks every reading of a path. A path that does not start with `/` is relative to the
    /// workspace.
    pub fn check(&self, text: &str) -> Result<(), PathFault> {
        self.readings(text).map(drop)
    }

    /// Like [`Self::check`], and returns all readings, each of which stays in the workspace.
    pub fn readings(&self, text: &str) -> Result<HashSet<String>, PathFault> {
        if text.len() > MAX_PATH_BYTES {
            return Err(PathFault::TooLong);
        }
        let mut known = HashSet::new();
        let mut waiting = vec![text.to_owned()];
        while let Some(reading) = waiting.pop() {
            if known.contains(&reading) {
                continue;
            }
            if known.len() >= MAX_READINGS {
                return Err(PathFault::Readings);
            }
            self.check_reading(&reading)?;
            waiting.extend(other_readings(&reading)?);
            known.insert(reading);
        }
        Ok(known)
    }

    fn check_reading(&self, text: &str) -> Result<(), PathFault> {
        if text.chars().any(char::is_control) {
            return Err(PathFault::Control);
        }
        check_beginning(text)?;
        let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let inside = match text.starts_with('/') {
            false => parts.as_slice(),
            true => {
                let has_root = self.parts.iter().zip(&parts).all(|(ours, theirs)| ours == theirs);
                let inside = parts.get(self.parts.len()..).filter(|_| has_root);
                inside.ok_or(PathFault::Outside)?
            }
        };
        let mut depth = 0_usize;
        for part in inside {
            match *part {
                ".." => depth = depth.checked_sub(1).ok_or(PathFault::Outside)?,
                "~" => return Err(PathFault::OtherRoot),
                part if is_almost_dots(part) => return Err(PathFault::Dots),
                _ => depth += 1,
            }
        }
        Ok(())
    }
}

/// Refuses texts that start anywhere but in the workspace or at the root.
fn check_beginning(text: &str) -> Result<(), PathFault> {
    let is_share = text.starts_with("//") || text.starts_with("\\\\");
    let is_home = text.starts_with('~');
    if is_share || is_home || is_variable(text) {
        return Err(PathFault::OtherRoot);
    }
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(()) };
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+.-".contains(letter));
    let is_drive = is_scheme && scheme.len() == 1;
    let has_slash = rest.starts_with('/') || rest.starts_with('\\');
    match is_scheme {
        true if is_drive => Err(PathFault::OtherRoot),
        true if has_slash || is_known_scheme(scheme) => Err(PathFault::Url),
        true | false => Ok(()),
    }
}

/// Whether a scheme works without slashes. A file may be called `notes: today`.
fn is_known_scheme(scheme: &str) -> bool {
    const SCHEMES: [&str; 20] = [
        "about",
        "blob",
        "data",
        "dict",
        "expect",
        "file",
        "ftp",
        "glob",
        "gopher",
        "http",
        "https",
        "jar",
        "javascript",
        "ldap",
        "phar",
        "php",
        "smb",
        "view-source",
        "zip",
        "zlib",
    ];
    SCHEMES.contains(&scheme.to_ascii_lowercase().as_str())
}

/// Whether a text contains a variable: `$HOME/…`, `${HOME}`, `$(…)`, `` `…` ``, `%APPDATA%`. A file
/// may be called `$id.tsx`.
fn is_variable(text: &str) -> bool {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_uppercase() || first == '_')
            && letters.all(|letter| {
                letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'
            })
    };
    if let Some(rest) = text.strip_prefix('$') {
        let name = rest.split(['/', '\\']).next().unwrap_or("");
        return rest.starts_with(['{', '(']) || is_name(name) || rest.starts_with("env:");
    }
    let quoted = text.strip_prefix('%').and_then(|rest| rest.split_once('%'));
    quoted.is_some_and(|(name, _)| is_name(&name.to_ascii_uppercase().replace(['(', ')'], "")))
        || text.starts_with('`')
}

/// Parts that some systems treat as `..`: `.. `, `...`, `. .`, `..;x`.
fn is_almost_dots(part: &str) -> bool {
    let name = part.split(';').next().unwrap_or("");
    let dots = name.chars().filter(|letter| *letter == '.').count();
    dots >= 2 && name.chars().all(|letter| letter == '.' || letter == ' ')
}

/// The texts that result from undoing one of the tricks.
fn other_readings(text: &str) -> Result<Vec<String>, PathFault> {
    let mut found = Vec::new();
    if text.contains('%') {
        found.push(percent_decoded(text)?);
    }
    if text.contains('\\') {
        found.push(text.replace('\\', "/"));
    }
    if !text.is_ascii() {
        found.push(text.chars().filter(|letter| !is_hidden(*letter)).collect());
        found.push(folded(text));
    }
    found.retain(|reading| reading != text);
    Ok(found)
}

/// Decodes `%2e` and `%u002e`. Other text is unchanged. Bytes that are not UTF-8 are refused: they
/// are a spelling in which one reader sees a dot and another does not.
fn percent_decoded(text: &str) -> Result<String, PathFault> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let hex = |range: std::ops::Range<usize>| {
            let digits = after.get(range).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
        };
        let wide = after.starts_with(['u', 'U']).then(|| hex(1..5)).flatten();
        if let Some(letter) = wide.and_then(char::from_u32) {
            bytes.extend_from_slice(letter.to_string().as_bytes());
            rest = after.get(5..).unwrap_or("");
        } else if let Some(byte) = hex(0..2).and_then(|byte| u8::try_from(byte).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or("");
        } else {
            bytes.push(b'%');
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).map_err(|_| PathFault::Readings)
}

/// The text with look-alikes of `.`, `/`, `\`, `~` and `:` replaced.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\u{2024}' | '\u{3002}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}' | '\u{a4f8}'
            | '\u{06d4}' | '\u{0701}' | '\u{0702}' => folded.push('.'),
            '\u{2025}' | '\u{fe30}' | '\u{a4fa}' => folded.push_str(".."),
            '\u{2026}' | '\u{fe19}' => folded.push_str("..."),
            '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{ff0f}' | '\u{2571}' | '\u{27cb}'
            | '\u{2cc6}' | '\u{3033}' | '\u{4e3f}' | '\u{2f03}' | '\u{1735}' | '\u{2041}'
            | '\u{31d3}' | '\u{29f6}' => folded.push('/'),
            '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}' | '\u{ff3c}' | '\u{27cd}'
            | '\u{4e36}' | '\u{31d4}' | '\u{2f02}' | '\u{2572}' => folded.push('\\'),
            '\u{02dc}' | '\u{223c}' | '\u{ff5e}' | '\u{2053}' | '\u{301c}' => folded.push('~'),
            '\u{ff1a}' | '\u{a789}' | '\u{2236}' | '\u{fe55}' | '\u{fe13}' => folded.push(':'),
            '\u{ff05}' | '\u{fe6a}' | '\u{066a}' => folded.push('%'),
            '\u{ff04}' | '\u{fe69}' => folded.push('$'),
            '\u{ff01}'..='\u{ff5d}' => {
                let ascii = u32::from(letter) - 0xfee0;
                folded.push(char::from_u32(ascii).unwrap_or(letter));
            }
            letter => folded.push(letter),
        }
    }
    folded
}
