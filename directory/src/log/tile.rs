//! Tiles according to c2sp.org/tlog-tiles: a tile contains up to 256 hashes of one level of the
//! tree, or up to 256 entries.

use super::MAX_ENTRY_BYTES;
use ledger::tree::{NodeHash, parent};
use std::collections::BTreeMap;
use std::fmt;

/// The number of hashes in a full tile.
pub const TILE_WIDTH: u64 = 256;
/// The number of tree levels that a tile spans.
const TILE_HEIGHT: u32 = 8;
/// The highest level of tiles, for trees with up to 2^53 leaves.
pub const MAX_LEVEL: u8 = 6;
const HASH_BYTES: usize = 32;

/// The level, index and width of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    pub level: TileLevel,
    pub index: u64,
    /// How many of its 256 places are filled.
    pub width: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileLevel {
    Entries,
    Hashes(u8),
}

impl Tile {
    pub fn is_whole(&self) -> bool {
        u64::from(self.width) == TILE_WIDTH
    }

    /// Parses the format of [`fmt::Display`].
    pub fn parse(path: &str) -> Option<Tile> {
        let rest = path.strip_prefix("tile/")?;
        let (level, rest) = rest.split_once('/')?;
        let level = match level {
            "entries" => TileLevel::Entries,
            number => TileLevel::Hashes(
                plain_number(number).filter(|it| *it <= u64::from(MAX_LEVEL))? as u8,
            ),
        };
        let (rest, width) = match rest.split_once(".p/") {
            Some((rest, width)) => {
                (rest, plain_number(width).filter(|width| (1..TILE_WIDTH).contains(width))?)
            }
            None => (rest, TILE_WIDTH),
        };
        let mut index: u64 = 0;
        let parts: Vec<&str> = rest.split('/').collect();
        if parts.len() > 6 {
            return None;
        }
        for (at, part) in parts.iter().enumerate() {
            let digits = match (at + 1 == parts.len(), part.strip_prefix('x')) {
                (true, None) => part,
                (false, Some(digits)) => digits,
                _ => return None,
            };
            if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            index = index * 1_000 + digits.parse::<u64>().ok()?;
        }
        let tile = Tile { level, index, width: width as u16 };
        (tile.to_string() == path).then_some(tile)
    }

    /// The tiles of a tree, except the full ones that a smaller tree already had.
    pub fn new_tiles(old_size: u64, new_size: u64) -> Vec<Tile> {
        let mut tiles = Vec::new();
        let mut add = |level: TileLevel, old: u64, new: u64| {
            for index in old / TILE_WIDTH..new.div_ceil(TILE_WIDTH) {
                let width = (new - index * TILE_WIDTH).min(TILE_WIDTH) as u16;
                tiles.push(Tile { level, index, width });
            }
        };
        if old_size < new_size {
            add(TileLevel::Entries, old_size, new_size);
        }
        for level in 0..=MAX_LEVEL {
            let shift = u32::from(level) * TILE_HEIGHT;
            let (old, new) = (old_size >> shift, new_size >> shift);
            if new == 0 {
                break;
            }
            if old < new {
                add(TileLevel::Hashes(level), old, new);
            }
        }
        tiles
    }
}

fn plain_number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for Tile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("tile/")?;
        match self.level {
            TileLevel::Entries => formatter.write_str("entries")?,
            TileLevel::Hashes(level) => write!(formatter, "{level}")?,
        }
        let mut parts = vec![format!("{:03}", self.index % 1_000)];
        let mut rest = self.index / 1_000;
        while rest > 0 {
            parts.push(format!("x{:03}", rest % 1_000));
            rest /= 1_000;
        }
        for part in parts.iter().rev() {
            write!(formatter, "/{part}")?;
        }
        if !self.is_whole() {
            write!(formatter, ".p/{}", self.width)?;
        }
        Ok(())
    }
}

/// A source for the hashes of a tree, by level, counted from the leaves, and position.
pub trait NodeSource {
    type Error;
    fn node(&mut self, level: u32, place: u64) -> Result<NodeHash, Self::Error>;
}

/// All complete nodes of a tree, in memory; leaves can be appended.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    levels: Vec<Vec<NodeHash>>,
}

impl Nodes {
    pub fn push(&mut self, leaf: NodeHash) {
        let mut node = leaf;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(row) = self.levels.get_mut(level) else { return };
            row.push(node);
            let [.., left, right] = row.as_slice() else { return };
            if row.len() % 2 != 0 {
                return;
            }
            node = parent(*left, *right);
        }
    }

    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    fn get(&self, level: u32, place: u64) -> Option<NodeHash> {
        self.levels.get(level as usize)?.get(usize::try_from(place).ok()?).copied()
    }

    /// The bytes of a tile of hashes.
    pub fn tile(&self, level: u8, index: u64, width: u16) -> Option<Vec<u8>> {
        let height = u32::from(level) * TILE_HEIGHT;
        let places = index * TILE_WIDTH..index * TILE_WIDTH + u64::from(width);
        let mut bytes = Vec::with_capacity(usize::from(width) * HASH_BYTES);
        for place in places {
            bytes.extend_from_slice(&self.get(height, place)?.0);
        }
        Some(bytes)
    }
}

/// The node is not in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tree has no node at level {level}, place {place}")]
pub struct NoNode {
    pub level: u32,
    pub place: u64,
}

impl NodeSource for &Nodes {
    type Error = NoNode;

    fn node(&mut self, level: u32, place: u64) -> Result<NodeHash, NoNode> {
        self.get(level, place).ok_or(NoNode { level, place })
    }
}

/// The tile that contains a node or its descendants, for a tree of this size, and the range of the
/// tile's hashes below the node.
pub fn tile_of(level: u32, place: u64, size: u64) -> (Tile, std::ops::Range<usize>) {
    let tile_level = level / TILE_HEIGHT;
    let above = level % TILE_HEIGHT;
    let first = place << above;
    let index = first / TILE_WIDTH;
    let all = size >> (tile_level * TILE_HEIGHT);
    let width = (all - (index * TILE_WIDTH).min(all)).min(TILE_WIDTH) as u16;
    let start = (first % TILE_WIDTH) as usize;
    let tile = Tile { level: TileLevel::Hashes(tile_level as u8), index, width };
    (tile, start..start + (1 << above))
}

/// Computes a node from the hashes of a tile.
pub fn node_in_tile(bytes: &[u8], span: std::ops::Range<usize>) -> Option<NodeHash> {
    let bytes = bytes.get(span.start * HASH_BYTES..span.end * HASH_BYTES)?;
    let mut row: Vec<NodeHash> = bytes
        .chunks_exact(HASH_BYTES)
        .filter_map(|chunk| chunk.try_into().ok().map(NodeHash))
        .collect();
    while row.len() > 1 {
        row = row
            .chunks_exact(2)
            .filter_map(|pair| match pair {
                [left, right] => Some(parent(*left, *right)),
                _ => None,
            })
            .collect();
    }
    row.first().copied()
}

/// Encodes a bundle of entries, each prefixed with its length in two bytes.
pub fn write_bundle(entries: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut bundle = Vec::new();
    for entry in entries {
        let length = u16::try_from(entry.len()).ok()?;
        bundle.extend_from_slice(&length.to_be_bytes());
        bundle.extend_from_slice(entry);
    }
    Some(bundle)
}

/// Parses a bundle. Returns `None` if it does not end with an entry, or has the wrong number of
/// entries.
pub fn read_bundle(mut bytes: &[u8], width: u16) -> Option<Vec<Vec<u8>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        if entries.len() == usize::from(width) {
            return None;
        }
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (entry, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(entry.to_vec());
        bytes = rest;
    }
    (entries.len() == usize::from(width)).then_some(entries)
}

/// The largest bundle.
pub const MAX_BUNDLE_BYTES: usize = (MAX_ENTRY_BYTES + 2) * TILE_WIDTH as usize;

/// Tiles that were already fetched.
pub type TileCache = BTreeMap<Tile, Vec<u8>>;

#[cfg(test)]
mod tests;
