//! The locations of files on a system, as data, so that the paths of all three systems can be
//! computed on any of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The system whose conventions for folders apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// The system that this program was built for.
    pub const fn here() -> System {
        if cfg!(windows) {
            System::Windows
        } else if cfg!(target_os = "macos") {
            System::MacOs
        } else {
            System::Linux
        }
    }
}

/// Everything that determines where a host's files are.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub system: System,
    pub home: PathBuf,
    /// The environment variables with which hosts let people move their files.
    pub variables: BTreeMap<String, String>,
    /// Folders to search for project files.
    pub projects: Vec<PathBuf>,
}

impl Surroundings {
    /// The surroundings of this process. Returns `None` without a home directory, since there is
    /// nothing to search.
    pub fn here(projects: Vec<PathBuf>) -> Option<Surroundings> {
        let home = std::env::home_dir().filter(|home| home.is_absolute())?;
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Some(Surroundings { system: System::here(), home, variables, projects })
    }

    /// The value of a variable, unless it is empty.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The folder for a user's application data.
    pub(crate) fn application_data(&self) -> PathBuf {
        match self.system {
            System::Linux => self.configuration(),
            System::MacOs => self.home.join("Library").join("Application Support"),
            System::Windows => self
                .variable("APPDATA")
                .unwrap_or_else(|| self.home.join("AppData").join("Roaming")),
        }
    }

    /// The folder for application data that stays on this machine; differs from the one above only
    /// on Windows.
    pub(crate) fn local_application_data(&self) -> PathBuf {
        match self.system {
            System::Linux | System::MacOs => self.application_data(),
            System::Windows => self
                .variable("LOCALAPPDATA")
                .unwrap_or_else(|| self.home.join("AppData").join("Local")),
        }
    }

    /// `~/.config` or the user's replacement, for programs that use it on every system.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.variable("XDG_CONFIG_HOME")
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| self.home.join(".config"))
    }
}
