//! Where files lie on a system, as data: the paths of all three systems can be worked out on any of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Whose rules for folders count.
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

/// All that decides where a host's files are.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub system: System,
    pub home: PathBuf,
    /// The environment variables that hosts let people move their files with.
    pub variables: BTreeMap<String, String>,
    /// Folders to look in for files that belong to a project.
    pub projects: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this process. Without a home directory there is nothing to look at.
    pub fn here(projects: Vec<PathBuf>) -> Option<Surroundings> {
        let home = std::env::home_dir().filter(|home| home.is_absolute())?;
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Some(Surroundings { system: System::here(), home, variables, projects })
    }

    /// A variable that is set to something.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// Where applications keep their data for a user.
    pub(crate) fn application_data(&self) -> PathBuf {
        match self.system {
            System::Linux => self.configuration(),
            System::MacOs => self.home.join("Library").join("Application Support"),
            System::Windows => self
                .variable("APPDATA")
                .unwrap_or_else(|| self.home.join("AppData").join("Roaming")),
        }
    }

    /// Where applications keep data that stays on this machine; told apart from the above on Windows only.
    pub(crate) fn local_application_data(&self) -> PathBuf {
        match self.system {
            System::Linux | System::MacOs => self.application_data(),
            System::Windows => self
                .variable("LOCALAPPDATA")
                .unwrap_or_else(|| self.home.join("AppData").join("Local")),
        }
    }

    /// `~/.config` or what the user put in its place, for programs that use it on every system.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.variable("XDG_CONFIG_HOME")
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| self.home.join(".config"))
    }
}
