//! Starts servers confined: combines the operator's settings and a launch's words into a sandbox
//! profile, runs the install step for packages, and handles the sandbox's reports.
//!
//! INVARIANT: a launch that carries a [`Confiner`] is started confined or not at all.

mod install;
mod interpreter;
mod known;
mod network;
mod paths;
mod plan;
mod record;
mod reporter;

use crate::egress_block::EgressBlock;
use crate::egress_reach;
use crate::recorder::now;
use contract::origin::{FetchedPackage, Registry};
use gate::server::ServerId;
use install::{InstallStep, Installed};
use interpreter::find_interpreter;
use ledger::record::{FsPolicy, NetPolicy, SandboxLevel};
use plan::{Plan, ProgramPlan};
use sandbox::{
    Confined, EgressSwitch, Embedder, FilePolicy, HostRule, Launch, Level, NetworkPolicy, Profile,
    Refusal,
};
use settings::Sandbox;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wire::StdioLaunch;
use wire::confinement::{ConfinedStart, Confinement};
use wire::process::Environment;

pub use install::{BadRegistry, InstallCode, InstallError, InstallRules};
pub use known::{BadTable, KnownPackage, KnownPackages, PACKAGES_FILE, TableSource};
pub use network::Network;
pub use paths::holds_credentials;
pub use plan::{NoPlan, container_opened_by};
pub use record::{ConfinementRecord, DeniedHost, LastStart, MAX_DENIED, RecordFile};
pub use reporter::Reporter;

/// Variables of our environment that every confined program gets.
const USUAL_VARIABLES: [&str; 5] = ["LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ"];

/// Why a server cannot be started confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    #[error(transparent)]
    Plan(#[from] NoPlan),
    #[error("the program `{0}` was not found")]
    NoProgram(String),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("{source}{}", way_out(.source))]
    Refused { source: Refusal },
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// What a person can do about a refusal.
fn way_out(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Level { .. } => {
            "; `holdpoint doctor` says what this system lacks. `required = false` in its `sandbox` lets it run at a lower level, and no sandbox at all is yours to choose: `run` without `--sandbox`, or `danger_unconfined = true` at the gateway"
        }
        Refusal::Workspace { .. } => "; choose a folder below your home as `workspace`",
        Refusal::Path { .. }
        | Refusal::ProgramNotFound { .. }
        | Refusal::Setup(_)
        | Refusal::TimedOut
        | Refusal::System { .. } => "",
    }
}

/// The folders in use.
#[derive(Debug, Clone)]
pub struct Folders {
    /// Holdpoint's home, which no confined program sees.
    pub home: PathBuf,
    /// The folder for installed packages. It is outside the home, because servers read from it.
    pub cache: PathBuf,
    pub user_home: Option<PathBuf>,
}

impl Folders {
    /// `$HOLDPOINT_CACHE`, or a folder in the user's cache.
    pub fn of(home: &Path) -> Folders {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let user_home = std::env::home_dir();
        let usual = || {
            let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
            let cache = cache.or_else(|| user_home.as_ref().map(|home| home.join(".cache")));
            cache.unwrap_or_else(|| PathBuf::from("/var/tmp")).join("holdpoint")
        };
        let cache = set("HOLDPOINT_CACHE").map_or_else(usual, PathBuf::from);
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Folders { home, cache, user_home }
    }
}

/// The parameters of a confiner.
pub struct ConfinerParts {
    pub server: ServerId,
    pub keys: Sandbox,
    pub folders: Folders,
    pub known: Arc<KnownPackages>,
    /// Names of environment variables that the launch sets: those of a host's entry.
    pub variables: Vec<String>,
    /// Closes all egress.
    pub switch: EgressSwitch,
    /// The path of this program.
    pub helper: PathBuf,
    pub remark: Box<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for ConfinerParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConfinerParts")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Starts one server confined.
#[derive(Debug, Clone)]
pub struct Confiner {
    server: ServerId,
    keys: Arc<Sandbox>,
    folders: Arc<Folders>,
    known: Arc<KnownPackages>,
    variables: Vec<String>,
    switch: EgressSwitch,
    helper: PathBuf,
    reporter: Arc<Reporter>,
    /// The name of its home folder among those of all confined servers.
    home_name: String,
    install_rules: InstallRules,
    /// Called for each blocked attempt to reach the network.
    on_blocked: Option<Notified>,
    /// The switch that closes the network, kept for as long as the server may run.
    block: Arc<OnceLock<Arc<EgressBlock>>>,
}

/// Receives the number of blocked attempts to reach the network.
pub type OnBlocked = dyn Fn(u64) + Send + Sync;

/// A callback for blocked attempts.
#[derive(Clone)]
struct Notified(Arc<OnBlocked>);

impl std::fmt::Debug for Notified {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Notified")
    }
}

/// A launch that is ready to be confined.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub profile: Profile,
    pub launch: Launch,
}

/// How a server will be confined, as far as that is known before anything is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub level: Level,
    pub files: FilePolicy,
    pub network: Network,
}

impl Outline {
    /// The form used in receipts.
    pub fn receipt(&self) -> ledger::record::Sandbox {
        let fs_policy = match self.files {
            FilePolicy::WorkspaceOnly => FsPolicy::WorkspaceOnly,
            FilePolicy::ReadOnly => FsPolicy::ReadOnly,
            FilePolicy::None => FsPolicy::None,
        };
        let net_policy = match self.network.policy {
            NetworkPolicy::Allowlist => NetPolicy::Allowlist,
            NetworkPolicy::BlockAll => NetPolicy::BlockAll,
            NetworkPolicy::None => NetPolicy::None,
        };
        let level = match self.level {
            Level::Full => SandboxLevel::Full,
            Level::Partial => SandboxLevel::Partial,
            Level::None => SandboxLevel::None,
        };
        ledger::record::Sandbox { fs_policy, level, net_policy }
    }
}

impl Confiner {
    pub fn new(parts: ConfinerParts) -> Confiner {
        let ConfinerParts { server, keys, folders, known, variables, switch, helper, remark } =
            parts;
        let record = RecordFile::of(&folders.home, &server);
        let home_name = server.to_string();
        Confiner {
            reporter: Arc::new(Reporter::new(server.clone(), record, remark)),
            server,
            keys: Arc::new(keys),
            folders: Arc::new(folders),
            known,
            variables,
            switch,
            helper,
            home_name,
            install_rules: InstallRules::default(),
            on_blocked: None,
            block: Arc::default(),
        }
    }

    /// Sets the callback for blocked attempts to reach the network.
    pub fn telling(self, on_blocked: Arc<OnBlocked>) -> Confiner {
        Confiner { on_blocked: Some(Notified(on_blocked)), ..self }
    }

    /// Sets other rules for installing packages.
    #[must_use]
    pub fn installing(self, install_rules: InstallRules) -> Confiner {
        Confiner { install_rules, ..self }
    }

    /// Closes and opens the network with this switch.
    pub fn close_with(&self, block: Arc<EgressBlock>) {
        let switch = self.switch.clone();
        block.tell(Box::new(move |is_closed| match is_closed {
            true => switch.close(),
            false => switch.open(),
        }));
        let _ = self.block.set(block);
    }

    pub fn reporter(&self) -> &Arc<Reporter> {
        &self.reporter
    }

    /// Uses a separate home, so that no caller can read what another caller's process stored.
    pub fn for_instance(&self, instance: &str) -> Confiner {
        let hash = contract::hash::sha256_hex(instance.as_bytes());
        let hash = hash.get(..16).unwrap_or_default();
        Confiner { home_name: format!("{}-{hash}", self.server), ..self.clone() }
    }

    /// Determines how a launch will be confined.
    pub fn outline(&self, launch: &StdioLaunch) -> Result<Outline, NoPlan> {
        let words = words_of(launch);
        let plan = Plan::of(&launch.program.to_string_lossy(), &words)?;
        Ok(self.outline_of(launch, &plan))
    }

    fn outline_of(&self, launch: &StdioLaunch, plan: &Plan) -> Outline {
        let own = own_words(&words_of(launch), plan);
        let values = launch.environment.iter().map(|(_, value)| value);
        let values = values.filter_map(|value| value.to_str().map(str::to_owned));
        let words: Vec<String> = own.into_iter().chain(values).collect();
        let named = network::named_hosts(words.iter().map(String::as_str));
        let network = Network::of(&self.keys, named, self.known_hosts(launch, plan));
        let files = self.keys.files();
        let asked = Profile { files, network: network.policy, ..Profile::default() };
        let level = match self.minimum() {
            Level::Full => asked.level(),
            // It starts with a lower level if the system offers nothing better.
            Level::Partial | Level::None => asked.level().min(sandbox::support(&self.helper).level),
        };
        Outline { level, files, network }
    }

    /// The hosts in the table for the package of a launch.
    fn known_hosts(&self, launch: &StdioLaunch, plan: &Plan) -> &[HostRule] {
        match plan {
            Plan::Package(package) => {
                let (registry, name) = plan::known_as(package);
                self.known.hosts(registry, name)
            }
            Plan::Program(program) => {
                let directory = directory_of(launch);
                let script = program.script.as_ref().map(PathBuf::from);
                let script = script.map(|script| {
                    directory.as_deref().map_or(script.clone(), |it| it.join(&script))
                });
                let name = launch.program.to_string_lossy();
                let file = script.or_else(|| find_interpreter(&name, directory.as_deref()));
                // The name of a file that the server may have created itself is not trustworthy.
                let file = file.filter(|file| !self.is_changeable(file));
                if let Some(package) = file.as_deref().and_then(paths::npm_package_of) {
                    return self.known.hosts(Registry::Npm, &package);
                }
                let base = file.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
                base.map_or(&[], |name| self.known.hosts(Registry::Pypi, name))
            }
        }
    }

    /// Installs what must be installed, and determines how the launch is confined. Blocks.
    pub fn prepare(
        &self,
        launch: &StdioLaunch,
        environment: Environment,
    ) -> Result<Prepared, ConfineError> {
        let words = words_of(launch);
        let name = launch.program.to_string_lossy();
        let plan = Plan::of(&name, &words)?;
        let Outline { files, network, .. } = self.outline_of(launch, &plan);
        let directory = directory_of(launch);
        let resolve =
            |path: &settings::ConfinedPath| path.resolve(self.folders.user_home.as_deref());
        let (workspace, write) = self.writable();
        let mut packages = Vec::new();
        let (program, arguments, mut read) = match &plan {
            Plan::Package(package) => {
                let installed = self.install(package)?;
                let own = launch.arguments.iter().skip(package.arguments_at).cloned();
                let arguments = installed.arguments.into_iter().chain(own).collect();
                packages.push(installed.tree);
                (installed.program, arguments, Vec::new())
            }
            Plan::Program(plan) => {
                let file = find_interpreter(&name, directory.as_deref());
                let file = file.ok_or_else(|| ConfineError::NoProgram(name.into_owned()))?;
                let read = self.code_of(plan, &file, directory.as_deref());
                let (program, before) = own_program(file);
                let arguments = before.into_iter().chain(launch.arguments.clone()).collect();
                (program, arguments, read)
            }
        };
        read.extend(self.keys.read.iter().flatten().map(resolve));
        read.extend(paths::named_paths(&own_words(&words, &plan), directory.as_deref()));
        let is_shown =
            |path: &PathBuf| workspace.iter().chain(&write).any(|folder| path.starts_with(folder));
        read.retain(|path| !is_shown(path));
        read.dedup();
        let is_visible = |folder: &PathBuf| {
            workspace.iter().chain(&write).chain(&read).any(|shown| folder.starts_with(shown))
        };
        let directory = directory.filter(|folder| is_visible(folder) || files == FilePolicy::None);
        let home = self.own_home()?;
        let mut profile = Profile {
            files,
            network: network.policy,
            workspace,
            read,
            packages,
            write,
            home: Some(home),
            allow: network.allow,
            limits: self.keys.limits(),
            browser: self.keys.browser.unwrap_or(false),
            observe: false,
            minimum: Level::Full,
        };
        profile.minimum = self.minimum().min(profile.level());
        let environment = self.environment(launch, environment, &plan, &program);
        let program = program.into_os_string();
        Ok(Prepared { profile, launch: Launch { program, arguments, environment, directory } })
    }

    /// What we provide to the sandbox.
    pub fn embedder(&self) -> Embedder {
        let (reporter, on_blocked) = (self.reporter.clone(), self.on_blocked.clone());
        Embedder {
            helper: self.helper.clone(),
            never_visible: vec![self.folders.home.clone()],
            reach: egress_reach,
            events: Arc::new(move |event| {
                reporter.hear(&event);
                if let (sandbox::Event::Blocked(blocked), Some(Notified(notify))) =
                    (&event, &on_blocked)
                {
                    notify(blocked.count);
                }
            }),
            switch: self.switch.clone(),
        }
    }

    fn minimum(&self) -> Level {
        match self.keys.required {
            Some(true) | None => Level::Full,
            Some(false) => Level::Partial,
        }
    }

    /// Installs a package if necessary. Blocks.
    fn install(&self, package: &FetchedPackage) -> Result<Installed, InstallError> {
        let step = InstallStep {
            cache: &self.folders.cache,
            rules: self.install_rules,
            keys: &self.keys,
            minimum: self.minimum(),
            embedder: &self.embedder(),
            user_home: self.folders.user_home.as_deref(),
            say: &|sentence| self.reporter.remark(sentence),
        };
        step.ensure(package)
    }

    /// The workspace, and the other paths that the server may write to.
    fn writable(&self) -> (Option<PathBuf>, Vec<PathBuf>) {
        let resolve =
            |path: &settings::ConfinedPath| path.resolve(self.folders.user_home.as_deref());
        let write = self.keys.write.iter().flatten().map(resolve).collect();
        (self.keys.workspace.as_ref().map(resolve), write)
    }

    /// Whether the server could have replaced this path with another file or a link.
    fn is_changeable(&self, path: &Path) -> bool {
        let (workspace, write) = self.writable();
        let real = path.parent().and_then(|folder| folder.canonicalize().ok());
        workspace.iter().chain(&write).any(|folder| {
            let is_in = |path: &Path| {
                path.starts_with(folder)
                    || folder.canonicalize().is_ok_and(|folder| path.starts_with(folder))
            };
            is_in(path) || real.as_deref().is_some_and(is_in)
        })
    }

    /// The paths that must be visible to run a code file. Empty if the server may have replaced it
    /// with a link to other folders of the user.
    fn code_root(&self, file: &Path) -> Option<PathBuf> {
        let real = file.canonicalize().ok()?;
        let is_kept = !self.is_changeable(file) || self.is_changeable(&real);
        is_kept.then(|| paths::code_root(&real, self.folders.user_home.as_deref()))
    }

    /// The code that a program runs, in addition to its own runtime.
    fn code_of(&self, plan: &ProgramPlan, file: &Path, directory: Option<&Path>) -> Vec<PathBuf> {
        let (workspace, write) = self.writable();
        let changeable: Vec<PathBuf> = workspace.into_iter().chain(write).collect();
        let within = |name: &str| directory.map_or_else(|| PathBuf::from(name), |it| it.join(name));
        let mut read = Vec::new();
        if let Some(project) = plan.project.as_deref().map(&within) {
            let python = project.join(".venv/bin/python");
            read.extend(sandbox::runtime_of(&python, &changeable));
            if !self.is_changeable(&project) {
                read.push(project);
            }
        }
        let script = plan.script.as_deref().map(&within).filter(|script| script.is_file());
        match (script, &plan.module) {
            (Some(script), _) => read.extend(self.code_root(&script)),
            (None, Some(module)) => {
                let top = module.split('.').next().unwrap_or(module);
                let is_here = within(top).is_dir() || within(&format!("{top}.py")).is_file();
                read.extend(directory.filter(|_| is_here).map(Path::to_owned));
            }
            // The program itself may be a script of a package.
            (None, None) if paths::npm_package_of(file).is_some() => {
                read.extend(self.code_root(file));
            }
            (None, None) => {}
        }
        read.retain(|path| path.exists());
        read
    }

    /// The folder that the server uses as its home.
    fn own_home(&self) -> Result<PathBuf, ConfineError> {
        let path = self.folders.home.join("sandbox").join("homes").join(&self.home_name);
        match create_private(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(ConfineError::File { path, source }),
        }
    }

    fn environment(
        &self,
        launch: &StdioLaunch,
        environment: Environment,
        plan: &Plan,
        program: &Path,
    ) -> Vec<(OsString, OsString)> {
        let ours = |name: &str| Some((OsString::from(name), std::env::var_os(name)?));
        let mut all: Vec<(OsString, OsString)> =
            USUAL_VARIABLES.iter().filter_map(|name| ours(name)).collect();
        all.push(("PATH".into(), path_with(program)));
        // The folder of a package is read-only.
        all.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        // Some packages, such as mcp-server-fetch, run `npm install` while in use. That fails
        // inside the sandbox, and must fail quickly: by default npm retries for a minute.
        all.push(("npm_config_fetch_retries".into(), "0".into()));
        if matches!(plan, Plan::Program(ProgramPlan { project: Some(_), .. })) {
            let offline = ["UV_NO_SYNC", "UV_OFFLINE"].map(|name| (name.into(), "1".into()));
            all.extend(offline);
        }
        match environment {
            // A server that is not admitted yet gets none of the operator's variables.
            Environment::Clean => {}
            Environment::Whole | Environment::Named => {
                let named = self.keys.env.iter().flatten().map(|name| &**name);
                let named = named.chain(self.variables.iter().map(String::as_str));
                all.extend(named.filter_map(ours));
                all.extend(launch.environment.iter().cloned());
            }
        }
        all
    }
}

impl Confinement for Confiner {
    fn confine(&self, launch: &StdioLaunch, environment: Environment) -> io::Result<ConfinedStart> {
        let refused = |error: ConfineError| io::Error::other(error);
        let Prepared { profile, launch } = self.prepare(launch, environment).map_err(refused)?;
        let Confined { command, watch } = sandbox::confine(&profile, &launch, &self.embedder())
            .map_err(|source| refused(ConfineError::Refused { source }))?;
        let start = LastStart {
            at_ms: now().0,
            level: watch.level(),
            files: profile.files,
            network: profile.network,
            keys: Some(Sandbox::clone(&self.keys)),
        };
        // Only `status` reads this, so a failure is ignored.
        let _ = RecordFile::of(&self.folders.home, &self.server).note_start(start);
        Ok(ConfinedStart { command, guard: Box::new(watch) })
    }
}

fn words_of(launch: &StdioLaunch) -> Vec<String> {
    launch.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The words for the server itself, without those that tell its launcher what to run.
fn own_words(words: &[String], plan: &Plan) -> Vec<String> {
    match plan {
        Plan::Package(package) => words.get(package.arguments_at..).unwrap_or_default().to_vec(),
        Plan::Program(program) => {
            let is_code = |word: &&String| program.script.as_ref() != Some(word);
            words.iter().filter(is_code).cloned().collect()
        }
    }
}

/// A program that is a script of an npm package is run by Node at its real path, because a link to
/// it would be broken inside.
fn own_program(file: PathBuf) -> (PathBuf, Vec<OsString>) {
    let real = file.canonicalize().ok().filter(|real| paths::npm_package_of(real).is_some());
    match (real, find_interpreter("node", None)) {
        (Some(real), Some(node)) if interpreter::is_node_script(&real) => (node, vec![real.into()]),
        (Some(real), _) => (real, Vec::new()),
        (None, _) => (file, Vec::new()),
    }
}

fn directory_of(launch: &StdioLaunch) -> Option<PathBuf> {
    launch.directory.clone().or_else(|| std::env::current_dir().ok())
}

/// Our search path, preceded by the folder of a program, because a script starts its interpreter by
/// name.
fn path_with(program: &Path) -> OsString {
    let ours = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter();
    let all = folders.chain(std::env::split_paths(&ours));
    std::env::join_paths(all).unwrap_or(ours)
}

/// Creates a folder and its parents, accessible only to this user.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests;
