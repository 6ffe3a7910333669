//! The origin of a server, as it is pinned and recorded: the program that is started, or the
//! address that is contacted. Words that may be secrets are keyed hashes.

use crate::program::{digest_of, find_program};
use crate::server::driver::OriginSource;
use contract::json::ReadError;
use contract::origin::{ProgramOrigin, Redactor, address_entry};
use contract::surface::Entry;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use store::{Launch, LaunchKey, launch_path_exists};
use wire::remote::TlsKey;
use wire::{StdioLaunch, Upstream};

/// The part of how a server is reached that belongs to its surface, as stored: words that may be
/// secrets are keyed hashes.
#[derive(Debug)]
pub enum Origin {
    Program(ProgramOrigin),
    Address { url: String, has_secrets: bool },
}

/// The part of how a server is reached that is known only when it is started or contacted.
#[derive(Debug)]
pub enum Way {
    Program(PathBuf),
    Key(TlsKey),
}

impl Origin {
    pub fn of(upstream: &Upstream, key: &LaunchKey) -> Origin {
        with_redactor(upstream, key, |redactor| match upstream {
            Upstream::Stdio(launch) => {
                let (program, arguments) = words_of(launch);
                Origin::Program(ProgramOrigin::of(&program, &arguments, redactor))
            }
            Upstream::Http(endpoint) => {
                let url = redactor.address(endpoint.url.as_str());
                Origin::Address { has_secrets: url != endpoint.url.as_str(), url }
            }
        })
    }

    /// The recorded facts needed to start or reach the server in the same way again.
    pub fn launch(&self, header_names: Vec<String>) -> Launch {
        match self {
            Origin::Program(origin) => {
                let command =
                    std::iter::once(&origin.program).chain(&origin.arguments).cloned().collect();
                let directory =
                    std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned());
                Launch::Program {
                    command,
                    directory,
                    environment_names: Vec::new(),
                    has_secrets: origin.has_secrets,
                    client_capabilities: None,
                    posture: None,
                    identity: None,
                }
            }
            Origin::Address { url, has_secrets } => Launch::Url {
                url: url.clone(),
                header_names,
                has_secrets: *has_secrets,
                client_capabilities: None,
                posture: None,
                identity: None,
            },
        }
    }

    /// Produces the origin entry for the surface. The program's digest is computed in parallel with
    /// its start, and cached in the file `kept`.
    pub fn source(self, way: Way, kept: PathBuf) -> OriginSource {
        match (self, way) {
            (Origin::Program(origin), Way::Program(program)) => {
                let mut digest = Some(std::thread::spawn(move || digest_of(&program, Some(&kept))));
                let mut entry: Option<Entry> = None;
                Box::new(move || {
                    if let Some(digest) = digest.take() {
                        let digest = digest.join().ok().flatten();
                        entry = ProgramOrigin { digest, ..origin.clone() }.entry().ok();
                    }
                    entry.clone()
                })
            }
            (Origin::Address { url, .. }, Way::Key(key)) => {
                Box::new(move || address_entry(&url, key.known()).ok())
            }
            (Origin::Program(_), Way::Key(_)) | (Origin::Address { .. }, Way::Program(_)) => {
                Box::new(|| None)
            }
        }
    }
}

/// The origin of a server that was just observed, as pinned. The program's digest is cached in the
/// file `kept`.
pub fn observed_origin(
    upstream: &Upstream,
    key: &LaunchKey,
    tls_key: Option<&str>,
    kept: Option<&Path>,
) -> Result<Entry, ReadError> {
    match (Origin::of(upstream, key), upstream) {
        (Origin::Program(origin), Upstream::Stdio(launch)) => {
            let program = launch.program.to_string_lossy();
            let file = find_program(&program, launch.directory.as_deref());
            let digest = file.and_then(|file| digest_of(&file, kept));
            ProgramOrigin { digest, ..origin }.entry()
        }
        (Origin::Program(origin), Upstream::Http(_)) => origin.entry(),
        (Origin::Address { url, .. }, _) => address_entry(&url, tls_key),
    }
}

/// Calls a function with the redactor that decides which words of a launch are stored in clear.
pub fn with_redactor<T>(
    upstream: &Upstream,
    key: &LaunchKey,
    calls: impl FnOnce(&Redactor<'_>) -> T,
) -> T {
    let directory = match upstream {
        Upstream::Stdio(launch) => launch.directory.as_deref(),
        Upstream::Http(_) => None,
    };
    let hash = |word: &str| key.hash(word);
    let exists = |path: &str| launch_path_exists(path, directory);
    calls(&Redactor { exists: &exists, keyed_hash: &hash })
}

/// The program and the arguments of a launch.
pub fn words_of(launch: &StdioLaunch) -> (String, Vec<String>) {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    (text(&launch.program), launch.arguments.iter().map(text).collect())
}
