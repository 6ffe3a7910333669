//! `holdpoint receipts list`: the newest receipts, ordered by decision, and optionally those that
//! follow.

use super::folder_if_any;
use super::printing::{Reader, print, remark_notes};
use crate::arguments::Options;
use crate::arguments::receipts::ListCommand;
use crate::failure::{Exit, Failure};
use crate::screen::{self, DIM, styled};
use ledger::receipt::{Filter, Item, Newest, newest};
use std::time::Duration;
use store::receipts::DiskFolder;

/// The polling interval for new receipts.
const POLL: Duration = Duration::from_millis(500);

pub(crate) fn run(command: &ListCommand, options: &Options) -> Result<Exit, Failure> {
    let filter = command.filter.filter()?;
    let Some(folder) = folder_if_any(command.folder.receipts.as_deref(), options)? else {
        if command.follow {
            return Err(Failure::usage("there are no receipts to follow yet"));
        }
        if !options.json {
            screen::say("no receipts yet");
        }
        return Ok(Exit::Fine);
    };
    let count = usize::try_from(command.count).unwrap_or(usize::MAX);
    let is_shown = |item: &Item| is_shown(item, command);
    let found = newest(&folder, &filter, &is_shown, count)?;
    remark_notes(&found.notes);
    for item in &found.items {
        if print(item, options)? == Reader::Gone {
            return Ok(Exit::Fine);
        }
    }
    if command.follow {
        return follow(found, command, &filter, options);
    }
    if found.items.is_empty() && !options.json {
        screen::say(if filter == Filter::default() {
            "no receipts yet"
        } else {
            "none of the receipts match"
        });
    } else if found.items.len() == count && !options.json && !options.quiet {
        let hint = format!(
            "the newest {count}; `-n` shows more, `holdpoint receipts show ID` one in full"
        );
        screen::remark(styled(DIM, hint));
    }
    Ok(Exit::Fine)
}

/// Shows calls and acts of people; the chains' own bookkeeping only on request.
fn is_shown(item: &Item, command: &ListCommand) -> bool {
    match item {
        Item::Receipt(_) => !command.events,
        Item::Event(event) => command.events || command.all || !event.is_bookkeeping(),
    }
}

/// Shows new receipts until interrupted or until the output is closed.
fn follow(
    mut found: Newest<DiskFolder>,
    command: &ListCommand,
    filter: &Filter,
    options: &Options,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupted = std::pin::pin!(async { tokio::signal::ctrl_c().await });
    loop {
        let is_over = runtime.block_on(async {
            tokio::select! {
                _ = &mut interrupted => true,
                () = tokio::time::sleep(POLL) => false,
            }
        });
        if is_over {
            return Ok(Exit::Fine);
        }
        found.reading.refresh()?;
        let mut complete = Vec::new();
        for (spot, entry) in found.reading.by_ref() {
            found.joiner.push(&spot, entry, &mut complete);
            for item in complete.drain(..) {
                let is_asked = filter.matches(&item) && is_shown(&item, command);
                if is_asked && print(&item, options)? == Reader::Gone {
                    return Ok(Exit::Fine);
                }
            }
        }
        let mut notes = found.reading.take_notes();
        notes.extend(found.joiner.take_notes());
        remark_notes(&notes);
    }
}
