//! Finds the files of hosts, and reads them.

use crate::document::Syntax;
use crate::launches::{FoundLaunch, GuardedLaunch};
use crate::rewrite::{self, Manner, Server, TextError, WiringState};
use crate::surroundings::{Surroundings, System};
use crate::table::{Base, HOSTS, Host, OTHER, Place, Scope};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file that is read. Hosts store more than servers in their files.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// The most files that a `*` may match.
const MAX_MATCHES: usize = 256;
/// The most directory entries that are compared with it.
const MAX_SCANNED: usize = 10_000;

/// A path at which a host may have a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub host: &'static Host,
    pub scope: Scope,
    /// Contains a `*` if several names are possible.
    pub path: PathBuf,
    /// Whether this is the host's main file, whose servers are identified by name alone.
    is_main: bool,
}

/// A file that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub host: &'static Host,
    pub scope: Scope,
    pub path: PathBuf,
    pub syntax: Syntax,
    pub(crate) apart: Option<String>,
    /// Ids of servers in other files.
    pub(crate) taken: BTreeSet<String>,
}

/// Why a file that was named explicitly cannot be processed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`{}`: {source}", path.display())]
    NotFound { path: PathBuf, source: io::Error },
    #[error("cannot tell whether `{}` is JSON, TOML or YAML: rename it, or name the host", path.display())]
    UnknownSyntax { path: PathBuf },
    #[error("`{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot be read: {0}")]
    File(#[from] io::Error),
    #[error("is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    #[error("is not a regular file")]
    NotAFile,
    #[error("is not UTF-8 text")]
    NotText,
    #[error("is invalid or ambiguous: {0}")]
    Text(#[from] TextError),
}

/// Every path that is checked, whether or not a file exists there.
pub fn candidates(surroundings: &Surroundings) -> Vec<Candidate> {
    let mut found = Vec::new();
    for host in HOSTS {
        let mut is_main = true;
        for place in host.places {
            for (path, scope) in paths(place, surroundings) {
                let is_user = scope == Scope::User;
                found.push(Candidate { host, scope, path, is_main: is_main && is_user });
                is_main = is_main && !is_user;
            }
        }
    }
    found
}

fn paths(place: &Place, surroundings: &Surroundings) -> Vec<(PathBuf, Scope)> {
    let is_windows = surroundings.system == System::Windows;
    let base = match &place.base {
        Base::Home => Some(surroundings.home.clone()),
        Base::Application => Some(surroundings.application_data()),
        Base::WindowsLocal => is_windows.then(|| surroundings.local_application_data()),
        Base::Configuration => (!is_windows).then(|| surroundings.configuration()),
        Base::WindowsApplication => is_windows.then(|| surroundings.application_data()),
        Base::Variable { name, otherwise } => {
            Some(surroundings.variable(name).unwrap_or_else(|| join(&surroundings.home, otherwise)))
        }
        Base::File { name } => surroundings.variable(name),
        Base::Project => {
            let projects = surroundings.projects.iter();
            return projects.map(|project| (join(project, place.path), Scope::Project)).collect();
        }
    };
    base.map(|base| (join(&base, place.path), Scope::User)).into_iter().collect()
}

/// Joins a path component by component, so that it uses the system's separators.
fn join(base: &Path, path: &str) -> PathBuf {
    path.split('/')
        .filter(|part| !part.is_empty())
        .fold(base.to_owned(), |base, part| base.join(part))
}

/// The existing files of the given hosts, or of all hosts, without duplicates.
pub fn locate(surroundings: &Surroundings, only: &[&'static Host]) -> Vec<Config> {
    let mut found: Vec<Config> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for candidate in candidates(surroundings) {
        for path in matches(&candidate.path) {
            let Some(syntax) = syntax_of(&path) else { continue };
            // Two hosts may read the same file, by one path or through a link.
            let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if !seen.insert(real) {
                continue;
            }
            let Candidate { host, scope, is_main, .. } = candidate;
            let apart = (!is_main).then(|| path.to_string_lossy().into_owned());
            found.push(Config { host, scope, path, syntax, apart, taken: BTreeSet::new() });
        }
    }
    found.retain(|config| only.is_empty() || only.contains(&config.host));
    found
}

/// Assigns the ids of unwired servers so that they are unique across files: they must differ from
/// the ids written in any file and from those assigned earlier. `others` are files that are not
/// being changed. An unreadable file has no ids.
pub fn keep_apart(configs: Vec<Config>, others: &[Config]) -> Vec<Config> {
    let written = |config: &Config| -> BTreeSet<String> {
        let servers = config.servers().unwrap_or_default().into_iter();
        let has_id =
            |server: &Server| matches!(server.state, WiringState::Wired { has_id: true, .. });
        servers.filter(has_id).map(|server| server.id).collect()
    };
    let all: Vec<(PathBuf, BTreeSet<String>)> =
        configs.iter().chain(others).map(|config| (config.path.clone(), written(config))).collect();
    let mut given = BTreeSet::new();
    let apart = |mut config: Config| {
        let elsewhere = all.iter().filter(|(path, _)| *path != config.path);
        config.taken = elsewhere.flat_map(|(_, ids)| ids).chain(&given).cloned().collect();
        given.extend(config.servers().unwrap_or_default().into_iter().map(|server| server.id));
        config
    };
    configs.into_iter().map(apart).collect()
}

pub(crate) fn syntax_of(path: &Path) -> Option<Syntax> {
    Syntax::of_name(&path.file_name()?.to_string_lossy())
}

/// The files that match a path with one `*`.
pub(crate) fn matches(path: &Path) -> Vec<PathBuf> {
    let parts: Vec<_> = path.components().collect();
    let Some(star) = parts.iter().position(|part| part.as_os_str() == "*") else {
        return if path.is_file() { vec![path.to_owned()] } else { Vec::new() };
    };
    let folder: PathBuf = parts.iter().take(star).collect();
    let rest: PathBuf = parts.iter().skip(star + 1).collect();
    let Ok(names) = fs::read_dir(folder) else { return Vec::new() };
    let names = names.filter_map(Result::ok);
    let mut found = first_files(names.map(|name| {
        if rest.as_os_str().is_empty() { name.path() } else { name.path().join(&rest) }
    }));
    found.sort();
    found
}

fn first_files(names: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    names.take(MAX_SCANNED).filter(|path| path.is_file()).take(MAX_MATCHES).collect()
}

impl Config {
    /// Whether this is the host's main file, whose servers are identified by name alone.
    pub fn is_main(&self) -> bool {
        self.scope == Scope::User && self.apart.is_none()
    }

    /// Whether the host reads servers that use HTTP from this file.
    pub fn takes_http(&self) -> bool {
        self.host.http.is_some()
    }

    /// A file that a person named. If it is one of a known host's files, it belongs to that host.
    pub fn named(
        path: &Path,
        host: Option<&'static Host>,
        surroundings: &Surroundings,
    ) -> Result<Config, ConfigError> {
        let not_found = |source| ConfigError::NotFound { path: path.to_owned(), source };
        let path = std::path::absolute(path).map_err(not_found)?;
        let metadata = fs::metadata(&path).map_err(not_found)?;
        if !metadata.is_file() {
            return Err(ConfigError::NotAFile { path });
        }
        let same = |config: &Config| {
            config.path == path
                || matches!((fs::canonicalize(&config.path), fs::canonicalize(&path)), (Ok(a), Ok(b)) if a == b)
        };
        let known = locate(surroundings, &[]).into_iter().find(same);
        if let Some(known) = known.filter(|known| host.is_none_or(|host| host == known.host)) {
            return Ok(known);
        }
        let Some(syntax) = syntax_of(&path).or_else(|| guess(&path)) else {
            return Err(ConfigError::UnknownSyntax { path });
        };
        let host = host.or_else(|| host_of_name(&path)).unwrap_or(&OTHER);
        let apart = Some(path.to_string_lossy().into_owned());
        Ok(Config { host, scope: Scope::User, path, syntax, apart, taken: BTreeSet::new() })
    }

    pub(crate) fn manner(&self) -> Manner<'_> {
        let apart = self.apart.as_deref();
        Manner {
            host: self.host,
            syntax: self.syntax,
            apart,
            program: "",
            home: None,
            own_home: None,
            sandbox: None,
            taken: Some(&self.taken),
        }
    }

    /// The servers in the file.
    pub fn servers(&self) -> Result<Vec<Server>, ReadError> {
        let text = text_of(read_bytes(&self.path)?)?;
        Ok(rewrite::servers(&text, &self.manner())?)
    }
}

impl Config {
    /// How every server in the file, except gateways, is started or reached. Values that may be
    /// secrets are omitted.
    pub fn launches(&self) -> Result<Vec<FoundLaunch>, ReadError> {
        let text = text_of(read_bytes(&self.path)?)?;
        Ok(rewrite::launches(&text, &self.manner())?)
    }

    /// How the server with this id is started or reached behind its gate, according to the file's
    /// current content.
    pub fn guarded_launch(&self, id: &str) -> Result<Option<GuardedLaunch>, ReadError> {
        let text = text_of(read_bytes(&self.path)?)?;
        Ok(rewrite::guarded_launch(&text, &self.manner(), id)?)
    }
}

/// The host whose files have this name, in any folder: for example in another project, or in a copy
/// of one.
fn host_of_name(path: &Path) -> Option<&'static Host> {
    const GENERAL: &[&str] =
        &["mcp.json", "settings.json", "config.yaml", "config.toml", "config.json", "default.json"];
    let is_its = |host: &&Host| {
        host.places.iter().filter(|place| !place.path.contains('*')).any(|place| {
            let name = place.path.rsplit('/').next().unwrap_or_default();
            let is_telling = !name.is_empty() && !GENERAL.contains(&name);
            is_telling && path.ends_with(name)
                || place.path.contains('/') && path.ends_with(place.path)
        })
    };
    HOSTS.iter().find(is_its)
}

/// Guesses the syntax from the first character that is not white space or a comment: JSON starts
/// with a brace.
fn guess(path: &Path) -> Option<Syntax> {
    let text = text_of(read_bytes(path).ok()?).ok()?;
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '/']).then_some(Syntax::Json)
}

pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let file = fs::File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge);
    }
    Ok(bytes)
}

pub(crate) fn text_of(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|_| ReadError::NotText)
}

#[cfg(test)]
mod tests;
