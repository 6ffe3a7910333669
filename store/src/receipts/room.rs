//! Room on a full disk: the oldest segments go, where the configuration lets them.

use super::disk::{RESERVE, new_file};
use super::error::ReceiptsError;
use super::journal::Journal;
use super::retention;
use contract::time::Timestamp;
use std::fs;
use std::io::Write;
use std::path::Path;

/// What is given up on a full disk to be able to say what was dropped.
const RESERVE_BYTES: usize = 64 * 1024;

/// How much is freed at least when the oldest segments go.
const FREE_AT_LEAST_BYTES: u64 = 64 * 1024;

/// Drops the oldest segments. The reserve makes room for the record that names them.
pub(super) fn make_room(journal: &Journal, now: Timestamp) -> Result<(), ReceiptsError> {
    let folder = journal.folder().path();
    let _ = fs::remove_file(folder.join(RESERVE));
    let freed = journal
        .lock(now)
        .and_then(|mut journal| retention::free(&mut journal, FREE_AT_LEAST_BYTES, now));
    // Without its reserve the next full disk is a refusal, which is no worse than this one.
    let _ = make_reserve(folder);
    if freed? == 0 { Err(ReceiptsError::Full { path: folder.to_owned() }) } else { Ok(()) }
}

pub(super) fn make_reserve(folder: &Path) -> Result<(), ReceiptsError> {
    let path = folder.join(RESERVE);
    let failed = || ReceiptsError::io("make", &path);
    if fs::metadata(&path).is_ok_and(|found| found.len() >= RESERVE_BYTES as u64) {
        return Ok(());
    }
    let mut file = new_file(&path).map_err(failed())?;
    file.write_all(&vec![0; RESERVE_BYTES]).map_err(failed())
}
