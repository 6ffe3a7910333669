//! How characters fold, as few bytes, for WebAssembly, which is downloaded. `build.rs` writes them, `unpack.rs` reads them
//! back.

use super::runs::{Fold, Run, Runs};
use crate::packing::push_number;

/// The parts of runs one after the other: alike bytes side by side compress best.
pub(crate) fn pack(folds: &Runs) -> Vec<u8> {
    let mut out = Vec::new();
    let mut end = 0;
    push_number(folds.runs.len() as u32, &mut out);
    for Run { first, length, .. } in folds.runs {
        push_number(first - end, &mut out);
        end = first + u32::from(*length);
    }
    folds.runs.iter().for_each(|run| push_number(u32::from(run.length), &mut out));
    for run in folds.runs {
        match run.fold {
            Fold::Nothing => out.push(0),
            Fold::Byte(byte) => out.push(byte),
            // Bytes are printable ASCII, from 0x20 to 0x7e, so the other kinds have the values around them.
            Fold::Counting(byte) => out.push(byte | 0x80),
            Fold::Several { at, length } => {
                out.push(length);
                push_number(u32::from(at), &mut out);
            }
        }
    }
    push_number(folds.bytes.len() as u32, &mut out);
    out.extend_from_slice(folds.bytes);
    push_number(folds.marks.len() as u32, &mut out);
    let mut end = 0;
    for (first, last) in folds.marks {
        push_number(first - end, &mut out);
        push_number(last - first, &mut out);
        end = *last;
    }
    out
}
