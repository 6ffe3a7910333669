//! The place of an installed package, from the path of one of its files. The path must already have
//! all links resolved.

use crate::limits::{MAX_PACKAGE_NAME_BYTES, MAX_PACKAGE_NESTING};

const MODULES: &str = "node_modules";

/// The folder of a package, relative to the installation folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    root: String,
    /// Relative to the root, separated by `/`: `node_modules/a/node_modules/@b/c`.
    folder: String,
    /// The names of the enclosing packages from the outermost inwards, ending with the package's
    /// own.
    names: Vec<String>,
    stored: Option<Stored>,
}

/// A folder in which an installer stores every package once, named by package and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) by: Keeper,
    /// `@b+c@1.0.0`; some installers append what it was combined with.
    folder: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    Pnpm,
    Bun,
}

/// Why the package of a file cannot be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    #[error("it lies in no `node_modules`")]
    NotInstalled,
    #[error("its place in `node_modules` is not one that npm, pnpm or bun use")]
    Unclear,
}

impl Place {
    /// The place of the package that contains a file. `path` is absolute and separated by `/`.
    pub fn of(path: &str) -> Result<Place, NoPlace> {
        let parts: Vec<&str> = path.split('/').collect();
        let at = parts.iter().position(|part| *part == MODULES).ok_or(NoPlace::NotInstalled)?;
        // The folder that contains `node_modules` must be named.
        if at == 0 {
            return Err(NoPlace::Unclear);
        }
        let (root, below) = parts.split_at(at);
        let mut place =
            Place { root: root.join("/"), folder: String::new(), names: Vec::new(), stored: None };
        let mut rest = below;
        while let [MODULES, inner @ ..] = rest {
            rest = place.enter(inner)?;
        }
        let taken = below.len() - rest.len();
        place.folder = below.get(..taken).unwrap_or_default().join("/");
        // A `node_modules` further down came with an archive or was added later: no record
        // describes its contents.
        let is_clear = !place.names.is_empty()
            && !rest.is_empty()
            && !rest.contains(&MODULES)
            && !parts.iter().any(|part| matches!(*part, "." | ".."));
        if is_clear { Ok(place) } else { Err(NoPlace::Unclear) }
    }

    /// Descends into a package. Returns the rest of the path below it.
    fn enter<'p, 's>(&mut self, inner: &'p [&'s str]) -> Result<&'p [&'s str], NoPlace> {
        if self.names.len() >= MAX_PACKAGE_NESTING {
            return Err(NoPlace::Unclear);
        }
        let (name, rest) = match inner {
            [store @ (".pnpm" | ".bun"), folder, rest @ ..] if self.names.is_empty() => {
                if self.stored.is_some() {
                    return Err(NoPlace::Unclear);
                }
                let by = if *store == ".pnpm" { Keeper::Pnpm } else { Keeper::Bun };
                self.stored = Some(Stored { by, folder: (*folder).to_owned() });
                return Ok(rest);
            }
            [scope, name, rest @ ..] if is_scope(scope) && is_name(name) => {
                (format!("{scope}/{name}"), rest)
            }
            [name, rest @ ..] if is_name(name) => ((*name).to_owned(), rest),
            _ => return Err(NoPlace::Unclear),
        };
        if name.len() > MAX_PACKAGE_NAME_BYTES {
            return Err(NoPlace::Unclear);
        }
        self.names.push(name);
        Ok(rest)
    }

    /// The installation folder, which contains the records.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The package's folder, relative to the root.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The package's name, according to its folder.
    pub fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }
}

/// Part of the folder name of a package that pnpm patched.
pub(super) const PATCH_MARK: &str = "patch_hash";

impl Stored {
    /// Whether the folder is that of a package that was modified after unpacking.
    pub(super) fn is_patched(&self) -> bool {
        self.folder.contains(PATCH_MARK)
    }

    /// Whether the folder is that of a package in a given version.
    pub(super) fn is_of(&self, name: &str, version: &str) -> bool {
        let expected = format!("{}@{version}", name.replace('/', "+"));
        let Some(rest) = self.folder.strip_prefix(&expected) else { return false };
        match (self.by, rest.chars().next()) {
            (_, None) | (Keeper::Pnpm, Some('_' | '(')) | (Keeper::Bun, Some('+')) => true,
            (Keeper::Pnpm | Keeper::Bun, Some(_)) => false,
        }
    }
}

fn is_name(part: &str) -> bool {
    !part.starts_with(['.', '@']) && super::is_plain(part) && part != MODULES
}

fn is_scope(part: &str) -> bool {
    part.strip_prefix('@').is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: (&str, &str, &str)) {
        let place = Place::of(path).unwrap();
        assert_eq!((place.root(), place.folder(), place.name()), expected, "{path}");
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        check("/p/node_modules/a/x.js", ("/p", "node_modules/a", "a"));
        check("/node_modules/a/b/x.js", ("", "node_modules/a", "a"));
        check("/p/node_modules/@s/a/dist/x.js", ("/p", "node_modules/@s/a", "@s/a"));
        check(
            "/p/node_modules/a/node_modules/@s/b/x.js",
            ("/p", "node_modules/a/node_modules/@s/b", "@s/b"),
        );
        let stored = "node_modules/.pnpm/@s+a@1.0.0_b@2.0.0/node_modules/@s/a";
        check(&format!("/p/{stored}/x.js"), ("/p", stored, "@s/a"));
    }

    #[test]
    fn what_no_installer_places_so_has_no_place() {
        assert_eq!(Place::of("/p/a/x.js"), Err(NoPlace::NotInstalled));
        assert_eq!(Place::of("/p/my_node_modules/a/x.js"), Err(NoPlace::NotInstalled));
        for path in [
            "/p/node_modules",
            "/p/node_modules/x.js",
            "node_modules/a/x.js",
            "/p/node_modules/@s/x.js",
            "/p/node_modules/.bin/x",
            "/p/node_modules/@/a/x.js",
            "/p/node_modules/@s/@t/x.js",
            "/p/node_modules/a/dist/node_modules/b/x.js",
            "/p/node_modules/a/../b/x.js",
            "/p/../node_modules/b/x.js",
            "/p/node_modules/./a/x.js",
            "/p/node_modules//a/x.js",
            "/p/node_modules/node_modules/a/x.js",
            "/p/node_modules/a b/x.js",
            "/p/node_modules/.pnpm/a@1/x.js",
            "/p/node_modules/.pnpm/a@1/node_modules/.pnpm/b@1/node_modules/b/x.js",
            "/p/node_modules/a/node_modules/.pnpm/b@1/node_modules/b/x.js",
        ] {
            assert_eq!(Place::of(path), Err(NoPlace::Unclear), "{path}");
        }
    }

    #[test]
    fn names_and_nesting_have_limits() {
        let named = |bytes: usize| Place::of(&format!("/node_modules/{}/x", "a".repeat(bytes)));
        assert!(named(MAX_PACKAGE_NAME_BYTES).is_ok());
        assert_eq!(named(MAX_PACKAGE_NAME_BYTES + 1), Err(NoPlace::Unclear));
        let nested = |count: usize| Place::of(&format!("{}/x", "/node_modules/a".repeat(count)));
        assert!(nested(MAX_PACKAGE_NESTING).is_ok());
        assert_eq!(nested(MAX_PACKAGE_NESTING + 1), Err(NoPlace::Unclear));
    }

    #[test]
    fn a_folder_of_a_store_says_name_and_version() {
        let is_of =
            |by, folder: &str, name| Stored { by, folder: folder.to_owned() }.is_of(name, "1.0.0");
        for by in [Keeper::Pnpm, Keeper::Bun] {
            assert!(is_of(by, "a@1.0.0", "a"));
            for folder in ["a@1.0.0-beta", "a@1.0.01", "a@2.0.0_a@1.0.0", "b@1.0.0", "a", ""] {
                assert!(!is_of(by, folder, "a"), "{folder}");
            }
        }
        let (with_peer, with_hash) = ("@s+a@1.0.0_zod@4.6.7", "@s+a@1.0.0+0a1b");
        assert!(is_of(Keeper::Pnpm, with_peer, "@s/a") && !is_of(Keeper::Bun, with_peer, "@s/a"));
        assert!(is_of(Keeper::Bun, with_hash, "@s/a") && !is_of(Keeper::Pnpm, with_hash, "@s/a"));
    }
}
