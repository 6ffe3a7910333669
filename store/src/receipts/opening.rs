//! How a process comes to its chain: one that no process writes to, or a new one.

use super::disk::{DiskChain, UNFINISHED};
use super::error::ReceiptsError;
use super::journal::{Journal, LockedJournal};
use super::keys::ArgsKey;
use super::retention::{self, first_line};
use super::settings::{Fsync, Settings};
use crate::home::Home;
use contract::time::Timestamp;
use ledger::chain::{ChainWriter, read_tail};
use ledger::folder::{ChainId, Folder, Listing, SegmentNumber};
use ledger::index::{CHAIN_LISTED, listed_data};
use ledger::line::LineHash;
use ledger::record::Event;

pub(super) type Opened = (LockedJournal, ArgsKey, ChainWriter<DiskChain>);

/// Locks the index, drops what is not kept any more, and goes on with a chain or begins one.
pub(super) fn open_locked(
    home: &Home,
    journal: &Journal,
    settings: Settings,
    now: Timestamp,
) -> Result<Opened, ReceiptsError> {
    let mut locked = journal.lock(now)?;
    let args_key = ArgsKey::open(home, settings.args_hash)?;
    retention::apply(&mut locked, settings.keep, now)?;
    let writer = open_chain(&mut locked, settings, now)?;
    Ok((locked, args_key, writer))
}

fn open_chain(
    journal: &mut LockedJournal,
    settings: Settings,
    now: Timestamp,
) -> Result<ChainWriter<DiskChain>, ReceiptsError> {
    let folder = journal.folder.clone();
    let listing = folder.listing().map_err(ReceiptsError::io("look at", folder.path()))?;
    for chain in listing.chains.keys().filter(|chain| !chain.is_index()) {
        if let Some(writer) = take_over(journal, &listing, chain, settings, now)? {
            return Ok(writer);
        }
    }
    begin(journal, &listing, settings, now)
}

/// Goes on with a chain; none where another process writes to it, or where its end does not verify.
fn take_over(
    journal: &mut LockedJournal,
    listing: &Listing,
    chain: &ChainId,
    settings: Settings,
    now: Timestamp,
) -> Result<Option<ChainWriter<DiskChain>>, ReceiptsError> {
    let folder = journal.folder.clone();
    let is_synced = settings.fsync != Fsync::Never;
    let Ok(Some(mut files)) = DiskChain::try_lock(&folder.chain_path(chain), is_synced) else {
        return Ok(None);
    };
    // Listed again, this chain alone: its last writer may have gone on until just now.
    let Ok(found) = folder.list_chain(chain, &mut Vec::new()) else { return Ok(None) };
    let Ok(tail) = read_tail(&folder, chain, &found, &journal.keys) else { return Ok(None) };
    if !journal.index().chains.contains_key(chain) {
        // Its writer was stopped before it listed the chain, so it wrote nothing but the first line.
        if tail.head().seq > 0 || tail.unsigned_lines() > 0 {
            return Ok(None);
        }
        let Some((_, first)) = first_line(&folder, chain, SegmentNumber::FIRST) else {
            return Ok(None);
        };
        list(journal, chain, first, now)?;
    }
    let heads = journal.heads(listing, Some(chain));
    let failed = |error| ReceiptsError::of_write(error, folder.path());
    files
        .continue_segment(tail.segment, tail.segment_bytes)
        .map_err(ReceiptsError::io("open", folder.path()))?;
    ChainWriter::resume(files, journal.key.clone(), tail, settings.rotation, &heads, now)
        .map(Some)
        .map_err(failed)
}

fn begin(
    journal: &mut LockedJournal,
    listing: &Listing,
    settings: Settings,
    now: Timestamp,
) -> Result<ChainWriter<DiskChain>, ReceiptsError> {
    let folder = journal.folder.clone();
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        ReceiptsError::io("find randomness for", folder.path())(std::io::Error::other(error))
    })?;
    let chain = ChainId::from_random(random);
    let unfinished = folder.path().join(format!("{UNFINISHED}{chain}"));
    let files = DiskChain::unfinished(&unfinished, settings.fsync != Fsync::Never)?;
    let heads = journal.heads(listing, None);
    let created = ChainWriter::create(
        files,
        journal.key.clone(),
        chain.clone(),
        settings.rotation,
        &heads,
        now,
    );
    let mut writer = created.map_err(|error| ReceiptsError::of_write(error, folder.path()))?;
    writer.files().finish(&folder.chain_path(&chain), false)?;
    list(journal, &chain, writer.head().hash, now)?;
    Ok(writer)
}

fn list(
    journal: &mut LockedJournal,
    chain: &ChainId,
    first: LineHash,
    now: Timestamp,
) -> Result<(), ReceiptsError> {
    let data = listed_data(chain, first);
    let event = Event { ts: now, name: CHAIN_LISTED, by: None, server_id: None, data: Some(&data) };
    journal.append(&event).map(drop)
}
