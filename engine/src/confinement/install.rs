//! The install step: installs a package into a separate folder per package and version, with an
//! installer that is confined too. The installer sees no secrets, has a temporary home, and reaches
//! only the registry. Install scripts run under the same rules.

mod registry;

use super::interpreter::{find_interpreter, is_node_script};
use crate::program::find_program;
use contract::hash::sha256_hex;
use contract::origin::{FetchedPackage, Registry};
use registry::PackageSource;
use sandbox::{Confined, Embedder, HostRule, Launch, Level, NetworkPolicy, Profile, Refusal};
use serde::{Deserialize, Serialize};
use settings::Sandbox;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use registry::BadRegistry;

/// How a package is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallRules {
    pub code: InstallCode,
    /// The timeout for an installer.
    pub timeout: Duration,
    /// The largest size of a package's folder. It is checked every half second while an installer
    /// runs, and at the end.
    pub max_bytes: Option<u64>,
}

/// Whether a package's code runs during its installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallCode {
    /// Install scripts run, confined like the installer.
    Confined,
    /// No install scripts (`--ignore-scripts`), and no packages that must be built (wheels only).
    Never,
}

impl Default for InstallRules {
    fn default() -> Self {
        let timeout = Duration::from_secs(600);
        InstallRules { code: InstallCode::Confined, timeout, max_bytes: None }
    }
}

const LOOK: Duration = Duration::from_millis(20);
/// The interval for checking the size of a folder.
const MEASURE: Duration = Duration::from_millis(500);
/// The most files counted in a folder; a folder with more counts as too large.
const MAX_TREE_FILES: u64 = 500_000;
/// How much of an installer's output is shown.
const MAX_SAID_BYTES: usize = 2048;
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Why a package could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("`{installer}` was not found, and it is needed to install `{package}`")]
    NoInstaller { installer: &'static str, package: String },
    #[error(transparent)]
    Registry(#[from] BadRegistry),
    #[error("`{package}` could not be installed confined: {source}")]
    Confine { package: String, source: Refusal },
    #[error("`{package}` could not be installed: {said}")]
    Failed { package: String, said: String },
    #[error("installing `{package}` took longer than {} seconds", after.as_secs())]
    TimedOut { package: String, after: Duration },
    #[error(
        "`{package}` grew larger than {bytes} bytes, or {MAX_TREE_FILES} files, while it was installed"
    )]
    TooLarge { package: String, bytes: u64 },
    #[error("`{package}` has no program `{program}`")]
    NoProgram { package: String, program: String },
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// An installed package.
#[derive(Debug, Clone)]
pub(super) struct Installed {
    /// The folder to show to the server.
    pub(super) tree: PathBuf,
    pub(super) program: PathBuf,
    /// The arguments that precede the server's own.
    pub(super) arguments: Vec<OsString>,
}

/// The record written next to an installed package.
#[derive(Debug, Serialize, Deserialize)]
struct TreeReceipt {
    requirements: Vec<String>,
    version: Option<String>,
}

/// The parameters of the install step.
pub(super) struct InstallStep<'a> {
    pub(super) cache: &'a Path,
    pub(super) rules: InstallRules,
    pub(super) keys: &'a Sandbox,
    pub(super) minimum: Level,
    pub(super) embedder: &'a Embedder,
    pub(super) user_home: Option<&'a Path>,
    /// Reports progress, because installing may take long.
    pub(super) say: &'a (dyn Fn(&str) + Sync),
}

impl InstallStep<'_> {
    /// Returns the installed package. Blocks while it is being installed, also by another process.
    pub(super) fn ensure(&self, package: &FetchedPackage) -> Result<Installed, InstallError> {
        let tree = self.tree_of(package);
        let above = tree.parent().unwrap_or(self.cache);
        let in_file = |path: &Path| {
            let path = path.to_owned();
            move |source| InstallError::File { path, source }
        };
        super::create_private(above).map_err(in_file(above))?;
        // INVARIANT: once code of a package has run in its folder, we write nothing there. The code
        // could have replaced one of our files with a link to a file of the user.
        let (lock_path, receipt_path) = (beside(&tree, "lock"), beside(&tree, "json"));
        let lock = File::create(&lock_path).map_err(in_file(&lock_path))?;
        lock.lock().map_err(in_file(&lock_path))?;
        if !receipt_path.is_file() || !tree.is_dir() {
            (self.say)(&format!("installing `{}`, confined", package.requirements.join(" ")));
            for (path, removed) in [
                (&receipt_path, fs::remove_file(&receipt_path)),
                (&tree, fs::remove_dir_all(&tree)),
            ] {
                match removed {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(in_file(path)(error));
                    }
                    _ => {}
                }
            }
            super::create_private(&tree).map_err(in_file(&tree))?;
            let version = match package.registry {
                Registry::Npm => self.install_npm(package, &tree)?,
                Registry::Pypi => self.install_python(package, &tree)?,
            };
            let receipt = TreeReceipt { requirements: package.requirements.clone(), version };
            let text = serde_json::to_string(&receipt).unwrap_or_default();
            fs::write(&receipt_path, text).map_err(in_file(&receipt_path))?;
        }
        match package.registry {
            Registry::Npm => npm_program(package, &tree),
            Registry::Pypi => python_program(package, &tree),
        }
    }

    /// One folder per set of requirements, with a readable name.
    fn tree_of(&self, package: &FetchedPackage) -> PathBuf {
        let all = package.requirements.join("\n");
        let python = package.python.as_deref().unwrap_or_default();
        // A folder installed without install scripts differs from one that they completed.
        let code = match self.rules.code {
            InstallCode::Confined => "",
            InstallCode::Never => "\nno install code",
        };
        let hash = sha256_hex(format!("{all}\n\n{python}{code}").as_bytes());
        let first = package.requirements.first().map_or("", String::as_str);
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || "@.=-_".contains(c) { c } else { '+' };
        let name: String = first.chars().map(plain).take(80).collect();
        let hash = hash.get(..12).unwrap_or_default();
        self.cache.join("packages").join(package.registry.as_str()).join(format!("{name}-{hash}"))
    }

    fn install_npm(
        &self,
        package: &FetchedPackage,
        tree: &Path,
    ) -> Result<Option<String>, InstallError> {
        let source = PackageSource::npm(self.keys, self.user_home)?;
        let npm = find_program("npm", None).ok_or_else(|| InstallError::NoInstaller {
            installer: "npm",
            package: package.name.clone(),
        })?;
        let manifest = tree.join("package.json");
        fs::write(&manifest, "{\"private\":true}\n")
            .map_err(|source| InstallError::File { path: manifest, source })?;
        let mut arguments: Vec<OsString> = ["install", "--no-audit", "--no-fund", "--no-progress"]
            .into_iter()
            .chain(["--no-update-notifier", "--loglevel=error", "--omit=dev"])
            .chain(
                match self.rules.code {
                    InstallCode::Confined => [].as_slice(),
                    InstallCode::Never => &["--ignore-scripts"],
                }
                .iter()
                .copied(),
            )
            .chain(["--"])
            .map(OsString::from)
            .collect();
        arguments.extend(package.requirements.iter().map(OsString::from));
        let mut variables = vec![
            ("npm_config_registry", source.url.clone()),
            // By default npm retries an unreachable registry for a minute without any output.
            ("npm_config_fetch_retry_mintimeout", "500".to_owned()),
            ("npm_config_fetch_retry_maxtimeout", "2000".to_owned()),
        ];
        if Path::new(CERTIFICATES).is_file() {
            variables.push(("npm_config_cafile", CERTIFICATES.to_owned()));
        }
        self.run(package, tree, &npm, arguments, variables, &source.hosts, Vec::new())?;
        let manifest = read_manifest(&tree.join("node_modules").join(&package.name));
        Ok(manifest.and_then(|manifest| Some(manifest.get("version")?.as_str()?.to_owned())))
    }

    fn install_python(
        &self,
        package: &FetchedPackage,
        tree: &Path,
    ) -> Result<Option<String>, InstallError> {
        let source = PackageSource::python(self.keys)?;
        let wanted = match &package.python {
            Some(named) if named.contains('/') => named.clone(),
            Some(version) => format!("python{version}"),
            None => "python3".to_owned(),
        };
        let python = find_interpreter(&wanted, None).ok_or_else(|| InstallError::NoInstaller {
            installer: "python3",
            package: package.name.clone(),
        })?;
        let mut variables = vec![
            ("UV_DEFAULT_INDEX", source.url.clone()),
            ("PIP_INDEX_URL", source.url.clone()),
            ("UV_PYTHON_DOWNLOADS", "never".to_owned()),
            ("UV_LINK_MODE", "copy".to_owned()),
            ("PIP_NO_INPUT", "1".to_owned()),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1".to_owned()),
        ];
        if Path::new(CERTIFICATES).is_file() {
            variables.extend([
                ("SSL_CERT_FILE", CERTIFICATES.to_owned()),
                ("PIP_CERT", CERTIFICATES.to_owned()),
            ]);
        }
        let venv = tree.join("venv");
        let inner = venv.join("bin/python");
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let wheels_only: &[&str] = match self.rules.code {
            InstallCode::Confined => &[],
            InstallCode::Never => &["--only-binary", ":all:"],
        };
        let requirements = package.requirements.iter().map(OsString::from);
        let requirements = words(wheels_only).into_iter().chain(requirements);
        let read = sandbox::runtime_of(&python, &[]);
        let run = |program: &Path, arguments: Vec<OsString>| {
            let (variables, read) = (variables.clone(), read.clone());
            self.run(package, tree, program, arguments, variables, &source.hosts, read)
        };
        match find_program("uv", None) {
            Some(uv) => {
                let mut first = words(&["venv", "--no-project", "--python"]);
                first.extend([python.clone().into(), venv.clone().into()]);
                run(&uv, first)?;
                let mut second = words(&["pip", "install", "--python"]);
                second.push(inner.into());
                run(&uv, second.into_iter().chain(requirements).collect())?;
            }
            None => {
                let mut first = words(&["-m", "venv"]);
                first.push(venv.clone().into());
                run(&python, first)?;
                let second = words(&["-m", "pip", "install", "--quiet"]);
                run(&inner, second.into_iter().chain(requirements).collect())?;
            }
        }
        Ok(None)
    }

    /// Runs an installer confined until it ends.
    #[expect(clippy::too_many_arguments, reason = "each is one part of the same command")]
    fn run(
        &self,
        package: &FetchedPackage,
        tree: &Path,
        program: &Path,
        arguments: Vec<OsString>,
        variables: Vec<(&str, String)>,
        hosts: &[HostRule],
        read: Vec<PathBuf>,
    ) -> Result<(), InstallError> {
        let name = || package.requirements.join(" ");
        let profile = Profile {
            network: NetworkPolicy::Allowlist,
            workspace: Some(tree.to_owned()),
            allow: hosts.to_vec(),
            read,
            minimum: self.minimum,
            ..Profile::default()
        };
        let mut environment: Vec<(OsString, OsString)> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        environment.push(("PATH".into(), super::path_with(program)));
        let directory = Some(tree.to_owned());
        let launch = Launch { program: program.into(), arguments, environment, directory };
        let Confined { mut command, watch } = sandbox::confine(&profile, &launch, self.embedder)
            .map_err(|source| InstallError::Confine { package: name(), source })?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let failed = |said: String| InstallError::Failed { package: name(), said };
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        drop(command);
        let said = child.stderr.take().map(|errors| std::thread::spawn(move || tail_of(errors)));
        let status = wait(&mut child, self.rules, tree);
        drop(watch);
        let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
        match status {
            Ok(InstallerEnd::Ended(status)) if status.success() => Ok(()),
            Ok(InstallerEnd::Ended(status)) => Err(failed(match said.trim() {
                "" => format!("the installer ended with {status}"),
                said => said.to_owned(),
            })),
            Ok(InstallerEnd::TimedOut) => {
                Err(InstallError::TimedOut { package: name(), after: self.rules.timeout })
            }
            Ok(InstallerEnd::TooLarge { bytes }) => {
                Err(InstallError::TooLarge { package: name(), bytes })
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// A file next to a package's folder, where no package can write.
fn beside(tree: &Path, ending: &str) -> PathBuf {
    let mut name = tree.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    tree.with_file_name(name)
}

/// How an installer ended.
enum InstallerEnd {
    Ended(ExitStatus),
    TimedOut,
    TooLarge { bytes: u64 },
}

/// Waits for an installer. Kills it on a timeout, or if the folder becomes too large.
fn wait(child: &mut Child, rules: InstallRules, tree: &Path) -> io::Result<InstallerEnd> {
    let until = Instant::now() + rules.timeout;
    let mut measured = Instant::now();
    let outgrown = || rules.max_bytes.filter(|most| tree_bytes(tree) > *most);
    let end = loop {
        let ended = child.try_wait()?;
        let is_due = ended.is_some() || measured.elapsed() >= MEASURE;
        if let Some(bytes) = is_due.then(outgrown).flatten() {
            break InstallerEnd::TooLarge { bytes };
        }
        match ended {
            Some(status) => return Ok(InstallerEnd::Ended(status)),
            None if Instant::now() >= until => break InstallerEnd::TimedOut,
            None if is_due => measured = Instant::now(),
            None => std::thread::sleep(LOOK),
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    Ok(end)
}

/// The total size of the files below a folder. Links are not followed.
fn tree_bytes(folder: &Path) -> u64 {
    let (mut bytes, mut files) = (0_u64, 0_u64);
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            files += 1;
            if files > MAX_TREE_FILES {
                return u64::MAX;
            }
            if found.is_dir() {
                waiting.push(entry.path());
            } else {
                bytes = bytes.saturating_add(found.len());
            }
        }
    }
    bytes
}

/// The end of an installer's output, safe for a terminal.
fn tail_of(mut errors: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = errors.read(&mut piece) {
        kept.extend_from_slice(piece.get(..count).unwrap_or_default());
        let excess = kept.len().saturating_sub(MAX_SAID_BYTES);
        kept.drain(..excess);
    }
    wire::ServerText::lines(&kept).to_string()
}

fn read_manifest(folder: &Path) -> Option<serde_json::Value> {
    let mut text = Vec::new();
    let path = folder.join("package.json");
    // A link could lead to a file of the user, and reading a pipe would block.
    if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let file = File::open(path).ok()?;
    file.take(4 << 20).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The program of an npm package: the requested one, or its only one.
fn npm_program(package: &FetchedPackage, tree: &Path) -> Result<Installed, InstallError> {
    let modules = tree.join("node_modules");
    let missing = |program: &str| InstallError::NoProgram {
        package: package.name.clone(),
        program: program.to_owned(),
    };
    let file = match &package.program {
        Some(program) if program.contains(['/', '\\']) => return Err(missing(program)),
        Some(program) => modules.join(".bin").join(program),
        None => {
            let folder = modules.join(&package.name);
            let manifest = read_manifest(&folder).ok_or_else(|| missing(&package.name))?;
            let usual = package.name.rsplit('/').next().unwrap_or_default();
            folder.join(own_program(&manifest, usual).ok_or_else(|| missing(usual))?)
        }
    };
    // INVARIANT: the program is inside the package's folder, whatever links the package contains.
    let real = file.canonicalize().ok().filter(|real| {
        tree.canonicalize().is_ok_and(|tree| real.starts_with(tree)) && real.is_file()
    });
    let real = real.ok_or_else(|| missing(&file.display().to_string()))?;
    let tree = tree.to_owned();
    if !is_node_script(&real) {
        return Ok(Installed { tree, program: real, arguments: Vec::new() });
    }
    let node = find_interpreter("node", None).ok_or_else(|| InstallError::NoInstaller {
        installer: "node",
        package: package.name.clone(),
    })?;
    Ok(Installed { tree, program: node, arguments: vec![real.into()] })
}

/// Chooses like npx: the only program, or the one named like the package.
fn own_program(manifest: &serde_json::Value, usual: &str) -> Option<String> {
    match manifest.get("bin")? {
        serde_json::Value::String(path) => Some(path.clone()),
        serde_json::Value::Object(programs) => {
            let only = (programs.len() == 1).then(|| programs.values().next()).flatten();
            Some(programs.get(usual).or(only)?.as_str()?.to_owned())
        }
        _ => None,
    }
}

fn python_program(package: &FetchedPackage, tree: &Path) -> Result<Installed, InstallError> {
    let name = package.program.as_deref().unwrap_or(&package.name);
    let program = tree.join("venv/bin").join(name);
    if name.contains('/') || !program.is_file() {
        let (package, program) = (package.name.clone(), name.to_owned());
        return Err(InstallError::NoProgram { package, program });
    }
    Ok(Installed { tree: tree.to_owned(), program, arguments: Vec::new() })
}

#[cfg(test)]
mod tests;
