//! One visit: a package is installed without running its code, started in a sandbox without a network, and listed twice;
//! a remote server is listed twice over https.

use super::cause::{Cause, CauseKind, Step};
use super::package::Registries;
use super::target::{PackageWay, Target};
use super::{Manifest, NotListed, Observation, Outcome};
use crate::subject::PackageRegistry;
use contract::surface::{Surface, SurfaceReader};
use contract::time::Timestamp;
use engine::confinement::{
    ConfineError, Confiner, ConfinerParts, Folders, InstallCode, InstallError, InstallRules,
    KnownPackages,
};
use sandbox::{EgressSwitch, NetworkPolicy};
use settings::{Parsed, Sandbox, Text, Whole};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::dialer::Dialer;
use wire::process::Environment;
use wire::{HttpEndpoint, ObserveError, ObserveLimits, Progress, StdioLaunch, Upstream};

/// The limits on time and size for the steps of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitLimits {
    /// The time to install a package.
    pub install: Duration,
    /// The time from the start of a server to its last list. It is started and listed twice.
    pub list: Duration,
    /// The size of an installed package.
    pub package_bytes: u64,
}

impl Default for VisitLimits {
    fn default() -> Self {
        let (install, list) = (Duration::from_secs(240), Duration::from_secs(60));
        VisitLimits { install, list, package_bytes: 2 << 30 }
    }
}

/// The memory limit of a visited server.
pub const MEMORY_BYTES: u64 = 2 << 30;
/// The limit on processes and threads of a visited server.
pub const PROCESSES: u64 = 128;

/// Shared by all visits.
#[derive(Debug)]
pub struct Visitor {
    folders: VisitFolders,
    /// This program's path: it confines the programs that it starts.
    helper: PathBuf,
    install_code: InstallCode,
    limits: VisitLimits,
    sources: PackageSources,
    dialer: Arc<Dialer>,
    known: Arc<KnownPackages>,
}

/// Where packages are installed from; `None` for the public registry at its public addresses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PackageSources {
    npm: Option<Text>,
    python: Option<Text>,
}

impl PackageSources {
    /// Uses the registries that the operator names. If private addresses are allowed, the public
    /// registries count as named too: a network may have a mirror under their names.
    pub fn named(npm: Option<&str>, pypi: Option<&str>, allow_private: bool) -> PackageSources {
        let usual = Registries::default();
        let source = |named: Option<&str>, usual: &str, path: &str| {
            let host = named.or(allow_private.then_some(usual))?.trim_end_matches('/');
            Text::try_from(format!("{host}{path}")).ok()
        };
        PackageSources {
            npm: source(npm, &usual.npm, "/"),
            python: source(pypi, &usual.pypi, "/simple"),
        }
    }
}

/// The temporary folders of visits.
#[derive(Debug, Clone)]
pub struct VisitFolders {
    /// The homes of visited servers.
    pub homes: PathBuf,
    /// Installed packages.
    pub packages: PathBuf,
}

impl VisitFolders {
    pub fn in_data(data: &Path) -> VisitFolders {
        let crawl = data.join("crawl");
        VisitFolders { homes: crawl.join("homes"), packages: crawl.join("packages") }
    }

    /// Removes what an earlier run left behind.
    pub fn clear(&self) {
        for folder in [&self.homes, &self.packages] {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Visitor {
    pub fn new(
        folders: VisitFolders,
        helper: PathBuf,
        install_code: InstallCode,
        limits: VisitLimits,
        sources: PackageSources,
        dialer: Arc<Dialer>,
    ) -> Result<Visitor, engine::confinement::BadTable> {
        let known = Arc::new(KnownPackages::read(&folders.homes)?);
        Ok(Visitor { folders, helper, install_code, limits, sources, dialer, known })
    }

    /// Visits one release of a package. Blocks for up to the time in [`VisitLimits`].
    pub fn package(
        &self,
        target: &Target,
        way: &PackageWay,
        manifest: &Manifest,
        at: Timestamp,
    ) -> Observation {
        let release = manifest.version.clone();
        let words = launch_words(target, way, release.as_deref());
        let seen = match &words {
            Some(words) => self.start(target, way, words),
            None => Err(Failed(NotListed::NotInstalled, Some(CauseKind::NoInstaller.into()))),
        };
        let (outcome, cause) = split(seen);
        Observation {
            server: target.id.clone(),
            release,
            at,
            outcome,
            cause,
            manifest: manifest.clone(),
            launch: words.unwrap_or_default(),
        }
    }

    /// Visits a remote server.
    pub fn remote(
        &self,
        target: &Target,
        url: &str,
        manifest: &Manifest,
        at: Timestamp,
    ) -> Observation {
        let seen = match self.dialer.endpoint(url) {
            Ok(url) => {
                let allow_private = self.dialer.allows_private();
                let endpoint =
                    HttpEndpoint { url, headers: Vec::new(), allow_private, authorizer: None };
                list_twice(&Upstream::Http(endpoint), self.limits.list)
            }
            Err(error) => Err(Failed(NotListed::Unreachable, Some(Cause::of_url(&error)))),
        };
        let (outcome, cause) = split(seen);
        Observation {
            server: target.id.clone(),
            release: None,
            at,
            outcome,
            cause,
            manifest: manifest.clone(),
            launch: vec![url.to_owned()],
        }
    }

    fn start(&self, target: &Target, way: &PackageWay, words: &[String]) -> Seen {
        let instance = format!("{} {}", target.id, words.join(" "));
        let instance = contract::hash::sha256_hex(instance.as_bytes());
        let instance = instance.get(..16).unwrap_or_default();
        let packages = self.folders.packages.join(instance);
        let homes = self.folders.homes.join(instance);
        let outcome = self.start_in(&packages, &homes, way, words);
        // Delete what was installed: the next release is a different package.
        for folder in [&packages, &homes] {
            let _ = std::fs::remove_dir_all(folder);
        }
        outcome
    }

    fn start_in(&self, packages: &Path, homes: &Path, way: &PackageWay, words: &[String]) -> Seen {
        let ours = || Failed(NotListed::NotInstalled, Some(CauseKind::Internal.into()));
        let work = homes.join("work");
        std::fs::create_dir_all(&work).map_err(|_| ours())?;
        std::fs::create_dir_all(packages).map_err(|_| ours())?;
        let confiner = self.confiner(packages, homes).ok_or_else(ours)?;
        let (program, arguments) = words.split_first().ok_or_else(ours)?;
        let os = |text: &String| OsString::from(text);
        let launch = StdioLaunch {
            program: program.into(),
            arguments: arguments.iter().map(os).collect(),
            environment: way.environment.iter().map(|(k, v)| (os(k), os(v))).collect(),
            directory: Some(work),
            confinement: Some(Arc::new(confiner.clone())),
        };
        if let Err(error) = confiner.prepare(&launch, Environment::Named) {
            let reason = match error {
                // The package was installed but contains no program.
                ConfineError::Install(InstallError::NoProgram { .. }) => NotListed::Silent,
                ConfineError::Install(InstallError::TooLarge { .. }) => NotListed::TooLarge,
                _ => NotListed::NotInstalled,
            };
            return Err(Failed(reason, Some(Cause::of_install(&error))));
        }
        list_twice(&Upstream::Stdio(launch), self.limits.list)
    }

    fn confiner(&self, packages: &Path, homes: &Path) -> Option<Confiner> {
        let keys = Sandbox {
            required: Some(true),
            net: Some(Parsed(NetworkPolicy::BlockAll)),
            memory_bytes: Some(Whole(MEMORY_BYTES)),
            processes: Some(Whole(PROCESSES)),
            npm_registry: self.sources.npm.clone(),
            python_index: self.sources.python.clone(),
            ..Sandbox::default()
        };
        let confiner = Confiner::new(ConfinerParts {
            server: "crawl".parse().ok()?,
            keys,
            folders: Folders {
                home: homes.to_owned(),
                cache: packages.to_owned(),
                user_home: std::env::home_dir(),
            },
            known: self.known.clone(),
            variables: Vec::new(),
            switch: EgressSwitch::default(),
            helper: self.helper.clone(),
            remark: Box::new(|_| {}),
        });
        let (code, timeout) = (self.install_code, self.limits.install);
        let max_bytes = Some(self.limits.package_bytes);
        Some(confiner.installing(InstallRules { code, timeout, max_bytes }))
    }
}

/// The command a user would type, from which the install step derives what to install.
fn launch_words(target: &Target, way: &PackageWay, release: Option<&str>) -> Option<Vec<String>> {
    let (registry, name) = target.id.as_package()?;
    let own = |text: &str| text.to_owned();
    let mut words = match registry {
        PackageRegistry::Npm => {
            let named = release.map_or_else(|| own(name), |release| format!("{name}@{release}"));
            vec![own("npx"), own("-y"), named]
        }
        PackageRegistry::Pypi => {
            let named = release.map_or_else(|| own(name), |release| format!("{name}=={release}"));
            vec![own("uvx"), own("--from"), named, own(name)]
        }
    };
    words.extend(way.arguments.iter().cloned());
    Some(words)
}

/// Why nothing was listed.
struct Failed(NotListed, Option<Cause>);

/// A capture, or why there is none.
type Seen = Result<String, Failed>;

fn split(seen: Seen) -> (Outcome, Option<Cause>) {
    match seen {
        Ok(capture) => (Outcome::Listed(capture), None),
        Err(Failed(reason, cause)) => (Outcome::NotListed(reason), cause),
    }
}

/// Lists a server twice, starting it each time. Only a contract that both listings agree on counts.
fn list_twice(upstream: &Upstream, time: Duration) -> Seen {
    let first = list_once(upstream, time)?;
    let second = list_once(upstream, time)?;
    match first.surface_hash() == second.surface_hash() {
        true => Ok(first.to_capture()),
        false => Err(Failed(NotListed::Unstable, None)),
    }
}

fn list_once(upstream: &Upstream, time: Duration) -> Result<Surface, Failed> {
    let silent = match upstream {
        Upstream::Stdio(_) => NotListed::Silent,
        Upstream::Http(_) => NotListed::Unreachable,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|_| Failed(silent, Some(CauseKind::Internal.into())))?;
    let limits =
        ObserveLimits { start_timeout: time, list_timeout: time, ..ObserveLimits::default() };
    // The step in progress, for the case of a timeout.
    let step = Mutex::new(Step::Connection);
    let progress = |progress| {
        *step.lock().unwrap_or_else(PoisonError::into_inner) = match progress {
            Progress::Starting => Step::Connection,
            Progress::Handshake => Step::Initialize,
            Progress::Listing(list, _) => Step::of_list(list),
        };
    };
    let observed = runtime.block_on(async {
        tokio::time::timeout(time, wire::observe(upstream, &limits, &progress)).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let observed = observed.map_err(|_| {
        let step = *step.lock().unwrap_or_else(PoisonError::into_inner);
        Failed(silent, Some(Cause::from(CauseKind::NoAnswer).at(step).with(time.as_secs())))
    })?;
    let observed = observed.map_err(|error| {
        let reason = match error {
            ObserveError::NeedsSignIn { .. } => NotListed::NeedsSignIn,
            ObserveError::UnreadableHandshake { .. } => NotListed::Unreadable,
            _ => silent,
        };
        Failed(reason, Some(Cause::of_listing(&error)))
    })?;
    let unreadable =
        |step| Failed(NotListed::Unreadable, Some(Cause::from(CauseKind::NotReadable).at(step)));
    let mut reader = SurfaceReader::default();
    reader.handshake(&observed.handshake).map_err(|_| unreadable(Step::Initialize))?;
    for (list, outcome) in &observed.lists {
        outcome.read_into(*list, &mut reader);
    }
    let surface = reader.finish();
    match surface.unreadable().iter().next() {
        None => Ok(surface),
        Some((list, _)) => Err(unreadable(Step::of_list(*list))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_from_where_their_releases_are_read() {
        let check = |npm, pypi, allow_private, expected: [Option<&str>; 2]| {
            let sources = PackageSources::named(npm, pypi, allow_private);
            assert_eq!([sources.npm.as_deref(), sources.python.as_deref()], expected);
        };
        check(None, None, false, [None, None]);
        let own = Some("https://npm.example.com/");
        check(own, None, false, [Some("https://npm.example.com/"), None]);
        let own = Some("https://pypi.example.com");
        check(None, own, false, [None, Some("https://pypi.example.com/simple")]);
        let public = [Some("https://registry.npmjs.org/"), Some("https://pypi.org/simple")];
        check(None, None, true, public);
    }
}
