//! Classification schemes: totally ordered levels, each with the names that an organization uses
//! for it.
//!
//! Names are matched case-insensitively. Levels are only ever compared within the same scheme, by
//! rank.

mod built_in;

use crate::limits::{MAX_ALIASES, MAX_LEVELS, MAX_MARKINGS, MAX_SCHEME_BYTES};
use crate::shape::{self, Fields, ShapeError, trim};
use contract::json::Node;
use std::collections::BTreeMap;
use std::fmt;

/// An ordered set of levels with their markings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    id: String,
    description: String,
    /// By rank, the lowest first.
    levels: Vec<Level>,
    compartments: Vec<String>,
    releasability: Vec<String>,
    /// The ranks by lower-case name and alias. Before its signature is checked, a document can name
    /// thousands of levels, so a lookup must be cheap for any scheme.
    ranks: BTreeMap<String, u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    name: String,
    aliases: Vec<String>,
}

/// A level of a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clearance {
    rank: u8,
    name: String,
}

/// Why a text is not a valid scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("a scheme has at least one level")]
    NoLevels,
    #[error(
        "there is no level, or more than one, with rank {rank}: ranks count up from 0 without a gap"
    )]
    Rank { rank: u8 },
    #[error("`{name}` is not a name: it is empty, or has white space around it")]
    BadName { name: String },
    #[error("`{name}` names two things: names and aliases are unique, whatever their case")]
    Ambiguous { name: String },
    #[error("`{id}` is the id of a built-in scheme: choose a different id")]
    Reserved { id: String },
}

impl Scheme {
    /// The schemes that are built in.
    pub fn built_ins() -> &'static [Scheme] {
        built_in::all()
    }

    pub fn built_in(id: &str) -> Option<&'static Scheme> {
        Scheme::built_ins().iter().find(|scheme| scheme.id == id)
    }

    /// Reads `{"id", "description", "levels": [{"rank", "canonicalName", "aliases"}], "validCompartments"?,
    /// "validReleasability"?}`.
    pub fn parse(bytes: &[u8]) -> Result<Scheme, SchemeError> {
        let document = shape::read(bytes, MAX_SCHEME_BYTES)?;
        let fields = Fields::of(document.root(), "a scheme")?;
        fields.only(&["id", "description", "levels", "validCompartments", "validReleasability"])?;
        let levels = fields.items("levels", MAX_LEVELS)?;
        let levels = levels.ok_or(ShapeError::Missing { member: "levels" })?;
        let mut ranked: Vec<(u8, Level)> =
            levels.into_iter().map(read_level).collect::<Result<_, _>>()?;
        ranked.sort_by_key(|(rank, _)| *rank);
        for (expected, (rank, _)) in (0..).zip(&ranked) {
            if *rank != expected {
                return Err(SchemeError::Rank { rank: expected });
            }
        }
        let markings = |member| fields.texts(member, MAX_MARKINGS).map(Option::unwrap_or_default);
        let scheme = Scheme {
            id: fields.required_text("id")?,
            description: fields.text("description")?.unwrap_or_default(),
            levels: ranked.into_iter().map(|(_, level)| level).collect(),
            compartments: markings("validCompartments")?,
            releasability: markings("validReleasability")?,
            ranks: BTreeMap::new(),
        };
        scheme.check()?;
        let scheme = scheme.with_ranks();
        // A trust root refers to its scheme by id, so no other scheme may use that id.
        match Scheme::built_in(&scheme.id) {
            Some(built_in) if *built_in != scheme => Err(SchemeError::Reserved { id: scheme.id }),
            _ => Ok(scheme),
        }
    }

    fn with_ranks(mut self) -> Scheme {
        for (rank, level) in (0..=u8::MAX).zip(&self.levels) {
            for name in std::iter::once(&level.name).chain(&level.aliases) {
                self.ranks.insert(name.to_lowercase(), rank);
            }
        }
        self
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The levels, lowest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The compartments of this scheme. No document contains one.
    pub fn compartments(&self) -> &[String] {
        &self.compartments
    }

    /// The releasability markings of this scheme. No document contains one.
    pub fn releasability(&self) -> &[String] {
        &self.releasability
    }

    /// The level with a name or an alias.
    pub fn level(&self, name: &str) -> Option<Clearance> {
        let rank = self.rank(name)?;
        let level = self.levels.get(usize::from(rank))?;
        Some(Clearance { rank, name: level.name.clone() })
    }

    fn rank(&self, name: &str) -> Option<u8> {
        self.ranks.get(&name.to_lowercase()).copied()
    }

    fn check(&self) -> Result<(), SchemeError> {
        if self.levels.is_empty() {
            return Err(SchemeError::NoLevels);
        }
        let names =
            self.levels.iter().flat_map(|level| std::iter::once(&level.name).chain(&level.aliases));
        are_unique(names)?;
        are_unique(self.compartments.iter())?;
        are_unique(self.releasability.iter())
    }
}

impl Level {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }
}

/// How a level compares with the required one.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dominance {
    /// It is at least as high.
    Dominates,
    Below,
}

impl Clearance {
    /// The level's canonical name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The level's rank; 0 is the lowest.
    pub fn rank(&self) -> u8 {
        self.rank
    }

    /// Whether the level satisfies a required one.
    pub(crate) fn against(&self, required: &Clearance) -> Dominance {
        if self.rank >= required.rank { Dominance::Dominates } else { Dominance::Below }
    }
}

impl fmt::Display for Clearance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

fn read_level(node: Node<'_>) -> Result<(u8, Level), SchemeError> {
    let fields = Fields::of(node, "a level")?;
    fields.only(&["rank", "canonicalName", "aliases"])?;
    let rank = fields.small_number("rank")?;
    let aliases = fields.texts("aliases", MAX_ALIASES)?.unwrap_or_default();
    Ok((rank, Level { name: fields.required_text("canonicalName")?, aliases }))
}

fn are_unique<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), SchemeError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if name.is_empty() || trim(name) != name {
            return Err(SchemeError::BadName { name: name.clone() });
        }
        if !seen.insert(name.to_lowercase()) {
            return Err(SchemeError::Ambiguous { name: name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
