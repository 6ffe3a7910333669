//! A folder of captures: REGISTRY/PACKAGE/VERSION.json, and texts in hostile/texts.jsonl.

use crate::failure::Failure;
use contract::surface::{Surface, read_capture};
use measure::friction::version_order;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The most packages that are read, and the most releases per package.
const MAX_PACKAGES: usize = 10_000;
const MAX_RELEASES: usize = 1_000;

/// The releases of one server.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    /// Oldest first.
    pub(super) releases: Vec<Surface>,
}

/// A text with its known label.
#[derive(Debug, Deserialize)]
pub(super) struct LabelledText {
    pub(super) label: Label,
    #[serde(default)]
    pub(super) class: Option<String>,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Label {
    Hostile,
    Benign,
}

#[derive(Debug)]
pub(super) struct Corpus {
    pub(super) packages: Vec<Package>,
    pub(super) texts: Vec<LabelledText>,
    /// The number of releases that cannot be read.
    pub(super) unreadable: usize,
}

impl Corpus {
    pub(super) fn read(root: &Path) -> Result<Corpus, Failure> {
        let mut corpus = Corpus { packages: Vec::new(), texts: texts(root)?, unreadable: 0 };
        for registry in
            below(root)?.into_iter().filter(|path| path.is_dir() && !path.ends_with("hostile"))
        {
            for folder in below(&registry)?.into_iter().filter(|path| path.is_dir()) {
                corpus.package(&folder)?;
            }
        }
        match corpus.packages.is_empty() {
            true => Err(Failure::usage(format!(
                "`{}` holds no REGISTRY/PACKAGE/VERSION.json",
                root.display()
            ))),
            false => Ok(corpus),
        }
    }

    fn package(&mut self, folder: &Path) -> Result<(), Failure> {
        let mut files = below(folder)?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        let stem = |file: &PathBuf| {
            file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        files.sort_by_key(|file| version_order(&stem(file)));
        files.truncate(MAX_RELEASES);
        let mut releases = Vec::new();
        for file in files {
            match std::fs::read(&file).ok().and_then(|bytes| read_capture(&bytes).ok()) {
                Some(surface) => releases.push(surface),
                None => self.unreadable += 1,
            }
        }
        let name =
            folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !releases.is_empty() && self.packages.len() < MAX_PACKAGES {
            self.packages.push(Package { name, releases });
        }
        Ok(())
    }

    pub(super) fn newest(&self) -> impl Iterator<Item = (&str, &Surface)> {
        self.packages
            .iter()
            .filter_map(|package| Some((package.name.as_str(), package.releases.last()?)))
    }
}

fn texts(root: &Path) -> Result<Vec<LabelledText>, Failure> {
    let path = root.join("hostile").join("texts.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Vec::new()) };
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            Failure::usage(format!("`{}` line {}: {error}", path.display(), number + 1))
        })
    };
    text.lines().enumerate().map(read).collect()
}

/// The contents of a folder, sorted.
fn below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let named = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(named)?;
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    Ok(paths)
}
