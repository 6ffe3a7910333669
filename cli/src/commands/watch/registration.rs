//! Installs the watcher's service with the user's service manager, starts it, and removes it again.

use super::service::{LABEL, Service, ServiceError, UNIT, launch_agent, systemd_unit};
use crate::failure::Failure;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The service manager of a user on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

impl Manager {
    pub(crate) const fn here() -> Option<Manager> {
        if cfg!(target_os = "linux") {
            Some(Manager::Systemd)
        } else if cfg!(target_os = "macos") {
            Some(Manager::Launchd)
        } else {
            None
        }
    }

    /// The service manager of this system, if it runs: many containers and some distributions have no systemd.
    pub(crate) fn running() -> Option<Manager> {
        /// Created by systemd when it boots, and by nothing else (`sd_booted(3)`).
        const SYSTEMD: &str = "/run/systemd/system";
        Manager::here().filter(|manager| match manager {
            Manager::Systemd => Path::new(SYSTEMD).is_dir(),
            Manager::Launchd => true,
        })
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Manager::Systemd => "systemd",
            Manager::Launchd => "launchd",
        }
    }

    fn text(self, service: &Service<'_>) -> Result<String, ServiceError> {
        match self {
            Manager::Systemd => systemd_unit(service),
            Manager::Launchd => launch_agent(service),
        }
    }
}

/// The files of the service, for one user.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) manager: Manager,
    pub(crate) file: PathBuf,
    /// The link that makes systemd start it at login; launchd needs only the file.
    wanted: Option<PathBuf>,
}

/// How the service manager responded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Done,
    /// The service manager is missing or does not respond, as in a container or over `su`.
    Refused,
}

impl Registration {
    pub(crate) fn of(manager: Manager, user_home: &Path) -> Registration {
        match manager {
            Manager::Systemd => {
                let configuration = std::env::var_os("XDG_CONFIG_HOME")
                    .map(PathBuf::from)
                    .filter(|path| path.is_absolute())
                    .unwrap_or_else(|| user_home.join(".config"));
                let folder = configuration.join("systemd/user");
                let wanted = Some(folder.join("default.target.wants").join(UNIT));
                Registration { manager, file: folder.join(UNIT), wanted }
            }
            Manager::Launchd => {
                let file = user_home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
                Registration { manager, file, wanted: None }
            }
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.file.is_file()
    }

    /// Whether the service wires servers by itself, according to its file.
    pub(crate) fn is_auto(&self) -> bool {
        const MAX_BYTES: usize = 64 * 1024;
        let text = std::fs::read(&self.file).unwrap_or_default();
        let text = text.get(..text.len().min(MAX_BYTES)).unwrap_or_default();
        String::from_utf8_lossy(text).contains("--auto")
    }

    /// Writes the service's files and starts it now.
    pub(crate) fn install(&self, service: &Service<'_>) -> Result<Order, Failure> {
        let text = self.manager.text(service).map_err(Failure::usage)?;
        write_whole(&self.file, &text).map_err(|error| named(&self.file, &error))?;
        if let Some(wanted) = &self.wanted {
            link(wanted).map_err(|error| named(wanted, &error))?;
        }
        Ok(match self.manager {
            Manager::Systemd => {
                order("systemctl", &["--user", "daemon-reload"]);
                order("systemctl", &["--user", "restart", UNIT])
            }
            Manager::Launchd => {
                order("launchctl", &["bootout", &format!("{}/{LABEL}", domain())]);
                let file = OsString::from(&self.file);
                let mut command = Command::new("launchctl");
                command.args(["bootstrap", &domain()]).arg(file);
                run(command)
            }
        })
    }

    /// Stops the service and removes its files. Returns whether there were any.
    pub(crate) fn uninstall(&self) -> Result<bool, Failure> {
        let was_there = self.is_there();
        match self.manager {
            Manager::Systemd => order("systemctl", &["--user", "stop", UNIT]),
            Manager::Launchd => order("launchctl", &["bootout", &format!("{}/{LABEL}", domain())]),
        };
        for path in self.wanted.iter().chain([&self.file]) {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(named(path, &error));
                }
                _ => {}
            }
        }
        if self.manager == Manager::Systemd && was_there {
            order("systemctl", &["--user", "daemon-reload"]);
        }
        Ok(was_there)
    }
}

fn named(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("`{}`: {error}", path.display()))
}

/// Writes a file atomically.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Does what `systemctl enable` does, even if no service manager is running.
fn link(wanted: &Path) -> std::io::Result<()> {
    if let Some(folder) = wanted.parent() {
        std::fs::create_dir_all(folder)?;
    }
    #[cfg(unix)]
    match std::os::unix::fs::symlink(Path::new("..").join(UNIT), wanted) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    Ok(())
}

fn domain() -> String {
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw();
    #[cfg(not(unix))]
    let user = 0;
    format!("gui/{user}")
}

fn order(program: &str, words: &[&str]) -> Order {
    let mut command = Command::new(program);
    command.args(words);
    run(command)
}

fn run(mut command: Command) -> Order {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Order::Done,
        _ => Order::Refused,
    }
}
