//! What the folds of all characters are made of. `build.rs` uses this file too: it writes these types as Rust source by their
//! `Debug` form. So every field has a type whose `Debug` form is the Rust expression for it.

/// A character without a Latin reading.
pub(crate) const OTHER: u8 = 0x80;
/// Characters are looked for by their bits above these.
pub(crate) const BLOCK_BITS: u32 = 8;

/// How all characters beyond ASCII fold. One that is in no run has no Latin reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) runs: &'static [Run],
    /// What [`Fold::Several`] refers to.
    pub(crate) bytes: &'static [u8],
    /// The first run that ends in or behind each block.
    pub(crate) blocks: &'static [u16],
    /// The combining marks, from the first to the last of each range.
    pub(crate) marks: &'static [(u32, u32)],
}

/// Characters in a row that fold alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) length: u16,
    pub(crate) fold: Fold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    Nothing,
    Byte(u8),
    /// The first character becomes this byte, and each one after it the next byte.
    Counting(u8),
    /// Some of [`Runs::bytes`].
    Several {
        at: u16,
        length: u8,
    },
}

/// The first run that ends in or behind each block.
#[allow(dead_code, reason = "the build script uses it, and the library for WebAssembly")]
pub(crate) fn blocks_of(runs: &[Run]) -> Vec<u16> {
    let last = |run: &Run| run.first + u32::from(run.length) - 1;
    let mut at = 0;
    let first_in = |block: u32| {
        while runs.get(at).is_some_and(|run| last(run) < block << BLOCK_BITS) {
            at += 1;
        }
        at as u16
    };
    (0..=u32::from(char::MAX) >> BLOCK_BITS).map(first_in).collect()
}
