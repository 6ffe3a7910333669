//! How characters fold, from the few bytes that `pack.rs` wrote, where it is not static data.

use super::runs::{Fold, Run, Runs, blocks_of};
use crate::packing::Unpacking;

/// The folds, which are never freed: there is one set of them.
pub(super) fn unpack(bytes: &'static [u8]) -> Runs {
    let mut from = Unpacking(bytes);
    let mut runs =
        from.several(|from| Run { first: from.number(), length: 0, fold: Fold::Nothing });
    let mut end = 0;
    for run in &mut runs {
        run.length = from.number() as u16;
        run.first += end;
        end = run.first + u32::from(run.length);
    }
    for run in &mut runs {
        run.fold = match from.byte() {
            0 => Fold::Nothing,
            length @ 1..0x20 => Fold::Several { at: from.number() as u16, length },
            byte @ 0x20..0x80 => Fold::Byte(byte),
            counting => Fold::Counting(counting & 0x7f),
        };
    }
    let bytes = from.several(Unpacking::byte);
    let mut end = 0;
    let marks = from.several(|from| {
        let first = end + from.number();
        end = first + from.number();
        (first, end)
    });
    Runs {
        blocks: blocks_of(&runs).leak(),
        runs: runs.leak(),
        bytes: bytes.leak(),
        marks: marks.leak(),
    }
}
