//! The table of known packages and the hosts that they need. It is shipped as data, and users can
//! extend it with a file in the same format in the home.

use contract::origin::Registry;
use sandbox::HostRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The user's own table, in the home.
pub const PACKAGES_FILE: &str = "sandbox-packages.toml";
/// The largest table that is read.
const MAX_TABLE_BYTES: u64 = 1024 * 1024;
const SHIPPED: &str = include_str!("packages.toml");

/// A package and the hosts that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownPackage {
    /// `npm` or `pypi`.
    pub registry: String,
    pub name: String,
    pub hosts: Vec<HostRule>,
    /// The source of this information.
    pub why: String,
}

/// The origin of a table entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TableSource {
    Shipped,
    Yours,
}

/// Why the user's table cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct BadTable {
    pub path: std::path::PathBuf,
    pub problem: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    package: Vec<KnownPackage>,
}

/// All known packages.
#[derive(Debug, Clone, Default)]
pub struct KnownPackages {
    entries: BTreeMap<(String, String), (KnownPackage, TableSource)>,
}

impl KnownPackages {
    /// The shipped table, overridden by the user's own.
    pub fn read(home: &Path) -> Result<KnownPackages, BadTable> {
        let path = home.join(PACKAGES_FILE);
        let wrong = |problem: String| BadTable { path: path.clone(), problem };
        let mut known = KnownPackages::default();
        known.add(SHIPPED, TableSource::Shipped).map_err(wrong)?;
        let text = match std::fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(known),
            Ok(found) if found.len() > MAX_TABLE_BYTES => {
                return Err(wrong(format!("larger than {MAX_TABLE_BYTES} bytes")));
            }
            _ => std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?,
        };
        known.add(&text, TableSource::Yours).map_err(wrong)?;
        Ok(known)
    }

    fn add(&mut self, text: &str, source: TableSource) -> Result<(), String> {
        let table: Table = toml::from_str(text).map_err(|error| {
            let line = error.span().and_then(|span| text.get(..span.start));
            let line = line.map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: {}", error.message().replace('\n', ", "))
        })?;
        for package in table.package {
            if !["npm", "pypi"].contains(&package.registry.as_str()) {
                return Err(format!("`{}` is not `npm` or `pypi`", package.registry));
            }
            let key = (package.registry.clone(), package.name.clone());
            self.entries.insert(key, (package, source));
        }
        Ok(())
    }

    /// The hosts of a package; empty if it is not known.
    pub fn hosts(&self, registry: Registry, name: &str) -> &[HostRule] {
        let key = (registry.as_str().to_owned(), name.to_owned());
        self.entries.get(&key).map_or(&[], |(package, _)| &package.hosts)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&KnownPackage, TableSource)> {
        self.entries.values().map(|(package, source)| (package, *source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_readable_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownPackages::read(folder.path()).unwrap();
        assert!(known.iter().count() >= 10);
        for (package, source) in known.iter() {
            assert!(package.why.len() > 10 && !package.hosts.is_empty(), "{package:?}");
            assert_eq!(source, TableSource::Shipped);
        }
        let hosts = known.hosts(Registry::Npm, "tavily-mcp");
        assert_eq!(hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), ["api.tavily.com"]);
        assert!(known.hosts(Registry::Pypi, "tavily-mcp").is_empty());
    }

    #[test]
    fn the_users_table_adds_and_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join(PACKAGES_FILE), text).unwrap();
        let entry = |name: &str, host: &str| {
            format!(
                "[[package]]\nregistry = \"npm\"\nname = \"{name}\"\nhosts = [\"{host}\"]\nwhy = \"ours\"\n"
            )
        };
        write(&(entry("tavily-mcp", "proxy.example.com") + &entry("mine", "a.example")));
        let known = KnownPackages::read(folder.path()).unwrap();
        let host = |name| known.hosts(Registry::Npm, name)[0].to_string();
        assert_eq!(
            (host("tavily-mcp"), host("mine")),
            ("proxy.example.com".into(), "a.example".into())
        );
        for wrong in [
            "[[package]]\nname = \"x\"",
            "[[pakage]]",
            &entry("x", "*"),
            &entry("x", "a.example").replace("npm", "cargo"),
        ] {
            write(wrong);
            assert!(KnownPackages::read(folder.path()).is_err(), "{wrong}");
        }
    }
}
