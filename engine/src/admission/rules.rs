//! Reads the trust root and the scheme that the configuration names, and creates the admission
//! checker.

use super::{Checker, CleanProgram, LocalServer, Source, Subject, Terms};
use crate::package::PackageFinder;
use crate::process::ServerGroup;
use crate::program::digests_of;
use crate::stdio::handover::Handover;
use attest::{
    Binding, DEFAULT_CACHE_SECONDS, Flavor, Host, MAX_SCHEME_BYTES, MAX_TRUST_ROOT_BYTES, Program,
    Scheme, TrustRoot,
};
use settings::{Admission as AdmissionKeys, Parsed, Text, Whole};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use wire::Upstream;

/// Why the admission configuration cannot be used. The message is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("{what} `{}`: {source}", path.display())]
    Unreadable { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the trust root `{}`: {problem}", path.display())]
    TrustRoot { path: PathBuf, problem: String },
    #[error("`{name}` is neither a built-in scheme ({known}) nor a file")]
    NoScheme { name: String, known: String },
    #[error("the scheme `{name}`: {problem}")]
    Scheme { name: String, problem: String },
    #[error("the required level: {0}")]
    Level(String),
    #[error("{0}")]
    Other(String),
}

/// The rules for admitting a server.
#[derive(Debug)]
pub struct AdmissionRules {
    pub terms: Terms,
    pub max_age: Duration,
    /// The operator's own attestation file, used instead of what the server publishes.
    pub attestation: Option<PathBuf>,
    /// What the program must match, if configured.
    pub bindings: Vec<Binding>,
}

impl AdmissionRules {
    /// The rules in these keys. `None` if no attestation is required. Relative paths are resolved
    /// against `folder`.
    pub fn of(keys: &AdmissionKeys, folder: &Path) -> Result<Option<AdmissionRules>, RulesError> {
        let file = |name: &Option<Text>| name.as_deref().map(|name| folder.join(name));
        let (Some(trust_root), Some(required)) = (file(&keys.trust_root), &keys.required) else {
            return Ok(None);
        };
        let required = required.to_string();
        AdmissionRules::requiring(
            &trust_root,
            required,
            None,
            file(&keys.attestation),
            keys,
            folder,
        )
        .map(Some)
    }

    /// Like [`Self::of`], with values from a command line instead of some keys.
    pub fn requiring(
        trust_root: &Path,
        required: String,
        flavor: Option<Flavor>,
        attestation: Option<PathBuf>,
        keys: &AdmissionKeys,
        folder: &Path,
    ) -> Result<AdmissionRules, RulesError> {
        let scheme = find_scheme(keys.scheme.as_deref().unwrap_or("default"))?;
        let configured = keys.flavor.map(|Parsed(flavor)| flavor);
        let flavor = flavor.or(configured).unwrap_or(Flavor::Enclaved);
        let root = Arc::new(read_trust_root(trust_root)?);
        root.check_scheme(&scheme).map_err(|error| RulesError::Other(error.to_string()))?;
        let terms = Terms::new(root, scheme, required, flavor)
            .map_err(|error| RulesError::Level(error.to_string()))?;
        let terms = match keys.revocations.as_deref() {
            Some(list) => terms.with_revocations(folder.join(list)),
            None => terms,
        };
        let max_age = keys.cache_seconds.map_or(DEFAULT_CACHE_SECONDS, |Whole(seconds)| seconds);
        let max_age = Duration::from_secs(max_age);
        let bindings = keys.bindings().map_err(|missing| RulesError::Other(missing.to_owned()))?;
        Ok(AdmissionRules { terms, max_age, attestation, bindings })
    }
}

/// A program: its file, and whether it is running.
#[derive(Debug)]
pub struct Started {
    pub file: PathBuf,
    pub stage: Stage,
}

#[derive(Debug)]
pub enum Stage {
    /// It runs as these processes, if they are known.
    Running(Option<ServerGroup>),
    /// The checker starts it once it is admitted.
    Later { handover: Handover, start_timeout: Duration },
    /// Another part of the gate starts it as needed once it is admitted.
    Elsewhere { start_timeout: Duration },
}

/// Creates the checker for the attestation that the operator names or the server publishes.
pub fn checker_of(
    rules: AdmissionRules,
    upstream: &Upstream,
    started: Option<Started>,
) -> Result<Checker, RulesError> {
    let AdmissionRules { terms, attestation, bindings, .. } = rules;
    let file = attestation.map(Source::File);
    let (subject, source) = match (upstream, started) {
        (Upstream::Http(endpoint), _) => {
            let host = Host::parse(&endpoint.url.host_and_port())
                .map_err(|error| RulesError::Other(error.to_string()))?;
            (Subject::Remote(host), Source::Published(endpoint.clone()))
        }
        (Upstream::Stdio(launch), Some(Started { file, stage })) => {
            let become_with = std::env::current_exe().ok();
            let subject = match stage {
                Stage::Running(group) => {
                    let finder = PackageFinder::new(&file, launch, group);
                    Subject::Local { program: observed(file, finder), bindings }
                }
                Stage::Later { handover, start_timeout } => {
                    let launch = launch.clone();
                    let server =
                        LocalServer::new(launch, file, become_with, start_timeout, handover);
                    Subject::Startable { server: Box::new(server), bindings }
                }
                Stage::Elsewhere { start_timeout } => {
                    let server =
                        CleanProgram::new(launch.clone(), file, become_with, start_timeout);
                    Subject::Startable { server: Box::new(server), bindings }
                }
            };
            (subject, Source::InBand)
        }
        (Upstream::Stdio(_), None) => {
            let program = Box::new(Program::default);
            (Subject::Local { program, bindings }, Source::InBand)
        }
    };
    Ok(Checker::new(terms, subject, file.unwrap_or(source)))
}

/// Observes the digest of a program's file, and its package. Both are first read while the program
/// starts, because the content at that time is what runs. The package's record is read again each
/// time, because it may be replaced while the server runs.
fn observed(path: PathBuf, mut finder: PackageFinder) -> Box<dyn FnMut() -> Program + Send> {
    let mut reading = Some(std::thread::spawn(move || {
        finder.begin();
        (digests_of(&path), finder)
    }));
    let mut finder = None;
    let mut program = Program::default();
    Box::new(move || {
        if let Some(Ok((file, begun))) = reading.take().map(JoinHandle::join) {
            program.file = file.unwrap_or_default();
            finder = Some(begun);
        }
        if let Some(finder) = &mut finder {
            program.package = finder.look();
        }
        program.clone()
    })
}

pub fn read_trust_root(path: &Path) -> Result<TrustRoot, RulesError> {
    let bytes = read("the trust root", path, MAX_TRUST_ROOT_BYTES)?;
    TrustRoot::parse(&bytes).map_err(|error| RulesError::TrustRoot {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// A built-in scheme by name, or one from a file.
pub fn find_scheme(name: &str) -> Result<Cow<'static, Scheme>, RulesError> {
    if let Some(scheme) = Scheme::built_in(name) {
        return Ok(Cow::Borrowed(scheme));
    }
    let path = Path::new(name);
    if !path.is_file() {
        let known: Vec<&str> = Scheme::built_ins().iter().map(Scheme::id).collect();
        return Err(RulesError::NoScheme { name: name.to_owned(), known: known.join(", ") });
    }
    match Scheme::parse(&read("the scheme", path, MAX_SCHEME_BYTES)?) {
        Ok(scheme) => Ok(Cow::Owned(scheme)),
        Err(error) => Err(RulesError::Scheme { name: name.to_owned(), problem: error.to_string() }),
    }
}

/// Reads up to one byte more than the limit; the parser then reports that the file is too large.
fn read(what: &'static str, path: &Path, limit: usize) -> Result<Vec<u8>, RulesError> {
    let wrong = |source| RulesError::Unreadable { what, path: path.to_owned(), source };
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path).map_err(wrong)?.take(limit).read_to_end(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}
