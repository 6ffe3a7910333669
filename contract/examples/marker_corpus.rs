//! Scans captures of real servers for markers and prints which trip and why:
//! `marker_corpus DIRECTORY [--all]`.
//!
//! The directory holds `<registry>/<package>/<version>.json`. Without `--all` only the newest
//! version of each package counts.
#![allow(clippy::print_stdout, reason = "its output is what an example is for")]

use contract::json::Document;
use contract::markers::{Marker, ToolNames, scan};
use contract::surface::read_capture;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = arguments.iter().any(|argument| argument == "--all");
    let directory = arguments.iter().find(|argument| !argument.starts_with("--"));
    let Some(directory) = directory.map(PathBuf::from).filter(|path| path.is_dir()) else {
        println!("no corpus: give the directory of the captures");
        return Ok(());
    };
    let mut tripped = 0;
    let mut scanned = 0;
    for package in packages(&directory)? {
        let mut releases = sorted_releases(&package)?;
        let newest = releases.len().saturating_sub(1);
        for release in releases.drain(if all { 0..newest + 1 } else { newest..newest + 1 }) {
            scanned += 1;
            let found = markers_of(&release)?;
            if !found.is_empty() {
                tripped += 1;
                println!("{}", release.strip_prefix(&directory).unwrap_or(&release).display());
                for (entry, marker) in found {
                    println!("  {entry}{} {}: {}", marker.pointer, marker.rule, marker.excerpt);
                }
            }
        }
    }
    println!("{tripped} of {scanned} releases trip the scan");
    Ok(())
}

fn packages(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut packages = Vec::new();
    for registry in subdirectories(directory)? {
        packages.extend(subdirectories(&registry)?);
    }
    packages.sort();
    Ok(packages)
}

fn subdirectories(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

fn sorted_releases(package: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut releases = Vec::new();
    for entry in std::fs::read_dir(package)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            releases.push(path);
        }
    }
    releases.sort_by(|left, right| version_order(&version(left), &version(right)));
    Ok(releases)
}

fn version(release: &Path) -> String {
    release.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Compares numbers by value, and sorts a pre-release (`1.0.0-rc.1`, `1.0rc1`) before its release.
fn version_order(left: &str, right: &str) -> Ordering {
    let split = |version: &str| {
        let at = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
        let (release, pre) = version.split_at(at);
        let numbers: Vec<u64> = release.split('.').filter_map(|part| part.parse().ok()).collect();
        (numbers, pre.is_empty(), pre_release(pre))
    };
    split(left).cmp(&split(right))
}

fn pre_release(text: &str) -> Vec<(u64, String)> {
    text.split(['.', '-', '+'])
        .map(|part| {
            (part.parse().unwrap_or(0), part.trim_matches(|c: char| c.is_ascii_digit()).to_owned())
        })
        .collect()
}

fn markers_of(release: &Path) -> std::io::Result<BTreeMap<String, Marker>> {
    let bytes = std::fs::read(release)?;
    let surface = read_capture(&bytes).map_err(std::io::Error::other)?;
    let tools = ToolNames::of(&surface);
    let mut found = BTreeMap::new();
    for entry in surface.entries() {
        let document = Document::parse(entry.raw()).map_err(std::io::Error::other)?;
        for (count, marker) in scan(document.root(), &tools).into_iter().enumerate() {
            found.insert(format!("{}#{count} ", entry.id()), marker);
        }
    }
    Ok(found)
}
