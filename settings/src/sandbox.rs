//! `[sandbox]`: what a confined server may use. A server's `sandbox` table in `gateway.toml` has
//! the same keys.

use crate::keys::tables;
use crate::value::{Parsed, Text, Whole};
use sandbox::{FilePolicy, HostRule, Limits, NetworkPolicy};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

tables! {
    /// What a confined server may use.
    Sandbox {
        /// If set, the server does not start unless the system can confine it completely.
        required: Option<bool>,
        fs: Option<Parsed<FilePolicy>>,
        workspace: Option<ConfinedPath>,
        net: Option<Parsed<NetworkPolicy>>,
        net_allow: Option<Vec<Parsed<HostRule>>>,
        read: Option<Vec<ConfinedPath>>,
        write: Option<Vec<ConfinedPath>>,
        /// Names of variables of our environment that are passed to the server.
        env: Option<Vec<Text>>,
        /// Whether it may use what browsers need: shared memory, which the limits do not cover.
        browser: Option<bool>,
        memory_bytes: Option<Whole<{ 64 << 20 }, { 1 << 40 }>>,
        processes: Option<Whole<8, 65_536>>,
        /// Where the install step fetches packages from, instead of the public registry.
        npm_registry: Option<Text>,
        python_index: Option<Text>,
    }
}

/// A path that is absolute or starts with `~/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ConfinedPath(PathBuf);

impl TryFrom<String> for ConfinedPath {
    type Error = String;

    fn try_from(text: String) -> Result<ConfinedPath, String> {
        let path = PathBuf::from(&text);
        let has_parent = path.components().any(|part| part == std::path::Component::ParentDir);
        let is_absolute = path.is_absolute() || text == "~" || text.starts_with("~/");
        if !is_absolute || has_parent || text.contains('\0') {
            return Err(format!("`{text}` is not an absolute path without `..`"));
        }
        Ok(ConfinedPath(path))
    }
}

impl ConfinedPath {
    pub fn new(path: PathBuf) -> ConfinedPath {
        ConfinedPath(path)
    }

    /// The path, with `~` replaced by the user's home.
    pub fn resolve(&self, home: Option<&Path>) -> PathBuf {
        match (self.0.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.0.clone(),
        }
    }
}

impl Sandbox {
    /// Whether it requests confinement: keys of the install step alone do not.
    pub fn is_asked(&self) -> bool {
        let Sandbox { npm_registry, python_index, .. } = self;
        let install = Sandbox {
            npm_registry: npm_registry.clone(),
            python_index: python_index.clone(),
            ..Sandbox::default()
        };
        *self != install
    }

    pub fn files(&self) -> FilePolicy {
        self.fs.map(|Parsed(policy)| policy).unwrap_or_default()
    }

    pub fn allowed_hosts(&self) -> Vec<HostRule> {
        self.net_allow.iter().flatten().map(|Parsed(rule)| rule.clone()).collect()
    }

    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            memory_bytes: self.memory_bytes.map_or(usual.memory_bytes, |bytes| bytes.0),
            processes: self.processes.map_or(usual.processes, |count| count.0),
            ..usual
        }
    }

    /// A key that has no effect, or not the apparent one, and what to do about it.
    pub(crate) fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let (fs, net) = (self.fs.map(|it| it.0), self.net.map(|it| it.0));
        let has_paths = self.workspace.is_some() || self.read.is_some() || self.write.is_some();
        let has_hosts = self.net_allow.as_ref().is_some_and(|hosts| !hosts.is_empty());
        let is_required = self.required == Some(true);
        let is_open = |policy: Option<NetworkPolicy>| policy == Some(NetworkPolicy::None);
        let wrong = [
            (
                "net_allow",
                has_hosts && net == Some(NetworkPolicy::BlockAll),
                "names hosts, and `net = \"block_all\"` allows none: set `net = \"allowlist\"`, or remove one of them",
            ),
            (
                "net_allow",
                has_hosts && is_open(net),
                "names hosts, and `net = \"none\"` allows all: set `net = \"allowlist\"`, or remove one of them",
            ),
            (
                "fs",
                has_paths && fs == Some(FilePolicy::None),
                "`none` confines no files, and paths are named: remove one of them",
            ),
            (
                "required",
                is_required && (fs == Some(FilePolicy::None) || is_open(net)),
                "asks that files and network are confined, and one of them is `none`: remove one of the keys",
            ),
            (
                "fs",
                fs == Some(FilePolicy::None) && is_open(net),
                "`none` for both files and network confines nothing: remove the table",
            ),
        ];
        wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong).map(|(key, _, why)| (key, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Sandbox, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn hosts_paths_and_policies_are_read() {
        let keys = read("fs = \"read_only\"\nnet = \"allowlist\"\nnet_allow = [\"a.example\", \"*.b.example:8443\"]\nworkspace = \"~/work\"\nread = [\"/srv\"]\nenv = [\"TOKEN\"]").unwrap();
        assert!(keys.is_asked());
        assert_eq!(keys.files(), FilePolicy::ReadOnly);
        assert_eq!(keys.allowed_hosts().len(), 2);
        let home = Path::new("/home/ada");
        assert_eq!(keys.workspace.unwrap().resolve(Some(home)), Path::new("/home/ada/work"));
        for wrong in
            ["fs = \"all\"", "net_allow = [\"*\"]", "read = [\"here\"]", "write = [\"/a/../b\"]"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn where_packages_come_from_asks_for_no_confinement() {
        assert!(!read("npm_registry = \"https://a.example\"").unwrap().is_asked());
        assert!(!Sandbox::default().is_asked());
        assert!(read("required = false").unwrap().is_asked());
    }

    #[test]
    fn keys_that_contradict_each_other_are_mistakes() {
        for (text, key) in [
            ("net = \"block_all\"\nnet_allow = [\"a.example\"]", Some("net_allow")),
            ("net = \"none\"\nnet_allow = [\"a.example\"]", Some("net_allow")),
            ("net = \"block_all\"\nnet_allow = []", None),
            ("fs = \"none\"\nread = [\"/srv\"]", Some("fs")),
            ("fs = \"none\"\nnet = \"none\"", Some("fs")),
            ("required = true\nnet = \"none\"", Some("required")),
            ("required = false\nnet = \"none\"", None),
        ] {
            assert_eq!(read(text).unwrap().mistake().map(|(key, _)| key), key, "{text}");
        }
    }
}
