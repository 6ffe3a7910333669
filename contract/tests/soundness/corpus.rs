//! Real schemas from a directory of captured surfaces: `<registry>/<package>/<version>.json`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use testing::Random;

/// The schemas of one package's tools, one map per release, in version order.
type Releases = Vec<BTreeMap<String, Value>>;

#[derive(Debug)]
pub struct Surfaces {
    packages: Vec<Releases>,
}

/// The surfaces that the environment names, if any.
pub fn surfaces() -> Option<Surfaces> {
    surfaces_with("inputSchema")
}

/// Like [`surfaces`], for another member of tools that holds a schema.
pub fn surfaces_with(member: &str) -> Option<Surfaces> {
    let root = testing::corpus()?;
    let registries = directories(&root);
    let packages = registries.iter().flat_map(|registry| directories(registry));
    let packages: Vec<Releases> = packages.map(|package| releases(&package, member)).collect();
    assert!(!packages.is_empty(), "no packages in {}", root.display());
    Some(Surfaces { packages })
}

impl Surfaces {
    pub fn tools(&self) -> usize {
        self.packages.iter().flatten().map(BTreeMap::len).sum()
    }

    /// Pairs of differing schemas of the same tool in adjacent releases.
    pub fn adjacent(&self) -> impl Iterator<Item = (&Value, &Value)> {
        let steps = self.packages.iter().flat_map(|releases| releases.windows(2));
        steps
            .flat_map(|step| {
                step[0].iter().filter_map(|(name, old)| Some((old, step[1].get(name)?)))
            })
            .filter(|(old, new)| old != new)
    }

    /// A random schema. The package is chosen first, so that large packages do not dominate.
    pub fn any(&self, random: &mut Random) -> &Value {
        loop {
            let releases = random.pick(&self.packages);
            if let Some(release) = releases.last()
                && !release.is_empty()
            {
                let schemas: Vec<&Value> = release.values().collect();
                return schemas[random.below(schemas.len())];
            }
        }
    }
}

fn releases(package: &Path, member: &str) -> Releases {
    let mut files: Vec<(Vec<u64>, PathBuf)> = entries(package)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| (version(&path), path))
        .collect();
    files.sort();
    files.iter().map(|(_, path)| schemas(path, member)).collect()
}

fn schemas(path: &Path, member: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(path).expect("a capture can be read");
    let capture: Value = serde_json::from_str(&text).expect("a capture is JSON");
    let tools = capture["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|tool| {
            Some((tool.get("name")?.as_str()?.to_owned(), tool.get(member)?.clone()))
        })
        .collect()
}

/// The numbers in a version, for ordering.
fn version(path: &Path) -> Vec<u64> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    name.split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn directories(path: &Path) -> Vec<PathBuf> {
    entries(path).into_iter().filter(|path| path.is_dir()).collect()
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
