//! Finds the environment variables and the settings in a folder that can make an interpreter or a
//! launcher load code that the command does not name.

use super::NotObserved;
use super::command::is_harmless;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use wire::StdioLaunch;

/// How much of a settings file is read. A larger one is refused, because it cannot be examined
/// completely.
pub(super) const MAX_SETTINGS_BYTES: usize = 1024 * 1024;

/// Variables that name code to load, or where code is loaded from.
const LOADING: [&str; 15] = [
    "BASH_ENV",
    "BUN_INSPECT_PRELOAD",
    "BUN_OPTIONS",
    "DYLD_FRAMEWORK_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "LD_AUDIT",
    "LD_PRELOAD",
    "NODE_PATH",
    "NODE_PRESERVE_SYMLINKS",
    "NODE_PRESERVE_SYMLINKS_MAIN",
    "NPM_CONFIG_CALL",
    "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_ONLOAD_SCRIPT",
    "NPM_CONFIG_SCRIPT_SHELL",
];
/// Variables that are plausible in a person's environment, but that a server's entry has no reason
/// to set.
const LOADING_IN_ENTRY: [&str; 6] = [
    "LD_LIBRARY_PATH",
    "NPM_CONFIG_GLOBALCONFIG",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_USERCONFIG",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
];
/// Settings of npm and pnpm that make them run something else, without `-` and `_`.
const SETTINGS: [&str; 4] = ["nodeoptions", "onloadscript", "pnpmfile", "scriptshell"];
/// Where npm and pnpm look for settings.
const SETTINGS_FILES: [&str; 2] = [".npmrc", "pnpm-workspace.yaml"];
/// Files that pnpm runs if they exist in a folder.
const HOOK_FILES: [&str; 2] = [".pnpmfile.cjs", ".pnpmfile.mjs"];

/// Who set a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetBy {
    /// The server's entry, or the words of its command.
    Entry,
    Anybody,
}

/// Refuses an environment with a variable that makes a program load something else.
pub(super) fn refuse_loading<'v>(
    variables: impl IntoIterator<Item = (&'v OsStr, &'v OsStr)>,
    by: SetBy,
) -> Result<(), NotObserved> {
    for (name, value) in variables {
        let name = name.to_string_lossy();
        if is_loading(&name, &value.to_string_lossy(), by) {
            return Err(NotObserved::Variable { name: name.into_owned() });
        }
    }
    Ok(())
}

fn is_loading(name: &str, value: &str, by: SetBy) -> bool {
    if value.trim().is_empty() {
        return false;
    }
    if name == "NODE_OPTIONS" {
        return !value.split_whitespace().all(is_harmless);
    }
    // npm reads its variables in any case, with either separator between words.
    let is_npms = name.get(..11).is_some_and(|start| start.eq_ignore_ascii_case("npm_config_"));
    let upper = name.to_ascii_uppercase().replace('-', "_");
    let name = if is_npms { upper.as_str() } else { name };
    LOADING.contains(&name) || (by == SetBy::Entry && LOADING_IN_ENTRY.contains(&name))
}

/// The environment that a server is started with, and its folder.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) directory: PathBuf,
    home: Option<PathBuf>,
}

impl Surroundings {
    /// Refuses what makes any program load something else.
    pub(super) fn of(
        launch: &StdioLaunch,
        ours: &[(OsString, OsString)],
    ) -> Result<Surroundings, NotObserved> {
        let entry = || launch.environment.iter().map(pair);
        refuse_loading(entry(), SetBy::Entry)?;
        let is_replaced = |name: &OsStr| entry().any(|(other, _)| other == name);
        refuse_loading(
            ours.iter().map(pair).filter(|(name, _)| !is_replaced(name)),
            SetBy::Anybody,
        )?;
        let variable = |wanted: &str| {
            let found = entry().chain(ours.iter().map(pair)).find(|(name, _)| *name == wanted);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let here = std::env::current_dir().unwrap_or_default();
        let directory = launch.directory.as_ref().map_or_else(|| here.clone(), |to| here.join(to));
        Ok(Surroundings { directory, home: variable("HOME") })
    }

    /// The surroundings of a process that is already running.
    pub(super) fn in_folder(
        directory: PathBuf,
        variables: &[(OsString, OsString)],
    ) -> Surroundings {
        let home = variables.iter().find(|(name, _)| name == "HOME");
        Surroundings { directory, home: home.map(|(_, value)| PathBuf::from(value)) }
    }

    /// Refuses settings that make npm-like launchers run something else.
    pub(super) fn refuse_settings(&self) -> Result<(), NotObserved> {
        for folder in self.directory.ancestors().chain(self.home.as_deref()) {
            for name in SETTINGS_FILES {
                refuse_setting(&folder.join(name))?;
            }
        }
        HOOK_FILES.iter().try_for_each(|name| refuse_file(&self.directory.join(name)))
    }

    /// Refuses the settings that bun reads for what it runs, because they may name files to load
    /// first.
    pub(super) fn refuse_bun_settings(&self) -> Result<(), NotObserved> {
        refuse_file(&self.directory.join("bunfig.toml"))?;
        self.home.iter().try_for_each(|home| refuse_file(&home.join(".bunfig.toml")))
    }
}

fn pair((name, value): &(OsString, OsString)) -> (&OsStr, &OsStr) {
    (name, value)
}

fn refuse_setting(path: &Path) -> Result<(), NotObserved> {
    if !path.exists() {
        return Ok(());
    }
    let refused = || NotObserved::Settings { path: path.to_owned() };
    let bytes = super::read(path, MAX_SETTINGS_BYTES).map_err(|_| refused())?;
    let mut text = String::from_utf8_lossy(&bytes).to_lowercase();
    text.retain(|letter| !matches!(letter, '-' | '_'));
    let is_refused =
        bytes.len() > MAX_SETTINGS_BYTES || SETTINGS.iter().any(|setting| text.contains(setting));
    if is_refused { Err(refused()) } else { Ok(()) }
}

fn refuse_file(path: &Path) -> Result<(), NotObserved> {
    if path.symlink_metadata().is_ok() {
        return Err(NotObserved::Settings { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(variable: &str, by: SetBy) -> bool {
        let (name, value) = variable.split_once('=').unwrap();
        refuse_loading([(OsStr::new(name), OsStr::new(value))], by).is_err()
    }

    #[test]
    fn variables_that_load_code_are_refused_and_others_are_not() {
        for variable in [
            "NODE_OPTIONS=--require /x.js",
            "NODE_OPTIONS=--no-warnings --import=x",
            "NODE_PATH=/x",
            "npm_config_node_options=--require x",
            "NPM_CONFIG_node-options=--require x",
            "npm_config_script_shell=/x",
            "BUN_OPTIONS=--preload x",
            "LD_PRELOAD=/x.so",
            "DYLD_INSERT_LIBRARIES=/x",
        ] {
            assert!(is_refused(variable, SetBy::Anybody), "{variable}");
        }
        for variable in [
            "NODE_OPTIONS=",
            "NODE_OPTIONS= --no-warnings  --max-old-space-size=64",
            "LD_PRELOAD=",
            "npm_config_user_agent=npm",
            "NODE_ENV=production",
            "PATH=/bin",
        ] {
            assert!(!is_refused(variable, SetBy::Entry), "{variable}");
        }
        for variable in ["LD_LIBRARY_PATH=/x", "npm_config_userconfig=/x"] {
            assert!(is_refused(variable, SetBy::Entry), "{variable}");
            assert!(!is_refused(variable, SetBy::Anybody), "{variable}");
        }
    }

    #[test]
    fn what_the_entry_sets_counts_and_not_what_it_replaces() {
        let launch = |value: &str| StdioLaunch {
            program: "node".into(),
            arguments: Vec::new(),
            environment: vec![("NODE_OPTIONS".into(), value.into())],
            directory: None,
            confinement: None,
        };
        let ours = [("NODE_OPTIONS".into(), "--require x".into())];
        assert!(Surroundings::of(&launch(""), &ours).is_ok());
        assert!(Surroundings::of(&launch("--require x"), &[]).is_err());
        let without = StdioLaunch { environment: Vec::new(), ..launch("") };
        assert!(Surroundings::of(&without, &ours).is_err());
    }

    #[test]
    fn settings_of_the_folder_and_above_it_are_refused_where_they_run_something() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let surroundings = Surroundings { directory: inner.clone(), home: None };
        let settings = folder.path().join(".npmrc");
        let check = |text: &str| {
            std::fs::write(&settings, text).unwrap();
            surroundings.refuse_settings().is_ok()
        };
        assert!(check("registry=https://registry.example/\n"));
        for text in ["node-options=--require x", " NODE_OPTIONS = x", "script-shell=/x"] {
            assert!(!check(text), "{text}");
        }
        let long = |bytes: usize| ";".repeat(bytes);
        assert!(check(&long(MAX_SETTINGS_BYTES)) && !check(&long(MAX_SETTINGS_BYTES + 1)));
        std::fs::remove_file(&settings).unwrap();
        std::fs::write(inner.join(".pnpmfile.cjs"), "").unwrap();
        assert!(surroundings.refuse_settings().is_err());
        assert!(surroundings.refuse_bun_settings().is_ok());
        std::fs::write(inner.join("bunfig.toml"), "").unwrap();
        assert!(surroundings.refuse_bun_settings().is_err());
    }
}
