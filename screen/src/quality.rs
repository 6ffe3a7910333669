//! The quality score: how mature a server looks, judging by public facts. It says nothing about
//! safety.
//!
//! Freshness 25, completeness 25, installability 20, documentation 15, semantic versioning 15.
//! Unknown facts count 0 and are shown as unknown.

use contract::json::Node;
use contract::surface::{Entry, EntryType, Surface};

/// How far the installation of a server got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installability {
    /// It started and answered list requests.
    Listed,
    /// It was installed but did not list.
    Installed,
    Failed,
}

/// How much of a contract has descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Documentation {
    pub tools: usize,
    pub described_tools: usize,
    /// Top-level parameters of the input schemas.
    pub parameters: usize,
    pub described_parameters: usize,
}

impl Documentation {
    pub fn of(surface: &Surface) -> Documentation {
        let mut found = Documentation::default();
        for entry in surface.entries().filter(|entry| entry.entry_type() == EntryType::Tool) {
            found.count(entry);
        }
        found
    }

    fn count(&mut self, tool: &Entry) {
        self.tools += 1;
        let Ok(document) = tool.document() else { return };
        self.described_tools += usize::from(is_described(document.root()));
        let parameters = document.root().get("inputSchema").and_then(|it| it.get("properties"));
        for (_, parameter) in parameters.into_iter().flat_map(Node::members) {
            self.parameters += 1;
            self.described_parameters += usize::from(is_described(parameter));
        }
    }
}

fn is_described(node: Node<'_>) -> bool {
    let text = node.get("description").and_then(Node::as_str);
    text.is_some_and(|text| !text.trim().is_empty())
}

/// How the versions of a server relate to its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Releases {
    pub count: usize,
    /// Pairs of adjacent releases that were compared.
    pub pairs: usize,
    /// Pairs with a breaking change but without a new major version.
    pub breaking_non_major: usize,
}

/// Public facts about a server; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QualityFacts {
    /// Days since the newest release.
    pub age_days: Option<u32>,
    pub has_description: Option<bool>,
    pub has_repository: Option<bool>,
    pub has_licence: Option<bool>,
    pub has_version: Option<bool>,
    /// Whether the manifest says how to start or reach the server.
    pub has_launch: Option<bool>,
    pub installability: Option<Installability>,
    pub documentation: Option<Documentation>,
    pub releases: Option<Releases>,
}

/// One part of the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualityPart {
    pub name: &'static str,
    /// `None` if unknown, which counts 0.
    pub points: Option<f64>,
    pub most: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct QualityScore {
    pub parts: [QualityPart; 5],
}

impl QualityScore {
    pub fn of(facts: &QualityFacts) -> QualityScore {
        let part = |name, points, most| QualityPart { name, points, most };
        QualityScore {
            parts: [
                part("freshness", facts.age_days.map(freshness), 25.0),
                part("completeness", completeness(facts), 25.0),
                part("installability", facts.installability.map(installability), 20.0),
                part("documentation", facts.documentation.and_then(documentation), 15.0),
                part("semver", facts.releases.map(semver), 15.0),
            ],
        }
    }

    /// 0 to 100.
    pub fn total(&self) -> f64 {
        self.parts.iter().filter_map(|part| part.points).sum()
    }
}

fn freshness(days: u32) -> f64 {
    25.0 * (1.0 - f64::from(days) / 365.0).max(0.0)
}

/// Five points each; unknown as a whole only if all facts are unknown.
fn completeness(facts: &QualityFacts) -> Option<f64> {
    let known = [
        facts.has_description,
        facts.has_repository,
        facts.has_licence,
        facts.has_version,
        facts.has_launch,
    ];
    let is_any_known = known.iter().any(Option::is_some);
    let count = known.iter().filter(|fact| **fact == Some(true)).count();
    is_any_known.then_some(5.0 * count as f64)
}

fn installability(came: Installability) -> f64 {
    match came {
        Installability::Listed => 20.0,
        Installability::Installed => 8.0,
        Installability::Failed => 0.0,
    }
}

/// Unknown for a server without tools, which has nothing to describe. Tools without parameters lack
/// no description.
fn documentation(found: Documentation) -> Option<f64> {
    let share = |described: usize, all: usize| match all {
        0 => 1.0,
        _ => described as f64 / all as f64,
    };
    (found.tools > 0).then(|| {
        8.0 * share(found.described_tools, found.tools)
            + 7.0 * share(found.described_parameters, found.parameters)
    })
}

fn semver(releases: Releases) -> f64 {
    if releases.count < 3 || releases.pairs == 0 {
        return 7.0;
    }
    let broken = releases.breaking_non_major.min(releases.pairs);
    15.0 * (1.0 - broken as f64 / releases.pairs as f64)
}

#[cfg(test)]
mod tests;
