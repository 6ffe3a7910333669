//! Verifies a whole folder with only the public key, in constant memory. Each segment is read once,
//! and its lines are counted once more if other chains refer to them.
//!
//! A bad line does not stop the verification: the rest of its segment is skipped, and everything
//! else is still verified.

use crate::checkpoint::{Checkpoint, origin};
use crate::export::visible;
use crate::folder::{ChainId, Folder, Listing, SegmentNumber};
use crate::index::Index;
use crate::line::Line;
use crate::note::Keyring;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

mod chain;
mod claims;
mod current_index;
mod report;

use chain::ChainCheck;
pub use chain::MAX_OPEN_CALLS;
use claims::Claims;
pub use claims::MAX_CLAIMS_PER_CHAIN;
use current_index::CurrentIndex;
pub use report::{ChainReport, MAX_PROBLEMS, Problem, Report};

/// Verifies a whole folder. `heads` are checkpoints that were kept elsewhere; `progress` is called
/// with the number of bytes read.
///
/// Returns an error if there is no folder to verify; problems inside it are in the report.
pub fn verify(
    folder: &dyn Folder,
    keys: &Keyring,
    heads: &[Checkpoint],
    progress: &dyn Fn(u64),
) -> io::Result<Report> {
    let mut report = Report::default();
    let mut claims = Claims::default();
    // Read the index before listing the other chains: a chain opened in between is then unexpected,
    // but never missing.
    let heads_by_chain = by_chain(heads);
    let signed = index_checkpoint(folder);
    let index = check_index(folder, keys, &heads_by_chain, progress, &mut claims, &mut report)?;
    let index = Rc::new(index);
    let current = CurrentIndex::new(folder, keys, signed, index.clone());
    let home = home_name(folder, keys);
    if let Some(moment) = &index.restarted_at {
        let what = format!("it was started over at {moment}: all receipts before are gone");
        report.problem(Problem::of_chain(&ChainId::index(), what));
    }
    let listing = folder.listing()?;
    note_names(&listing, &mut report);
    for (chain, files) in listing.chains.iter().filter(|(chain, _)| !chain.is_index()) {
        let home = home.as_deref();
        let check = ChainCheck {
            folder,
            chain,
            files,
            keys,
            heads: &heads_by_chain,
            index: &index,
            home,
            current: Some(&current),
            progress,
        };
        let found = check.run(&mut claims, &mut |_, _| Ok(()), &mut report);
        if !index.chains.contains_key(chain) {
            judge_unlisted(&current, &found, &mut report);
        }
        report.chains.push(found);
    }
    for chain in index.chains.keys().filter(|chain| !listing.chains.contains_key(*chain)) {
        report.problem(Problem::of_chain(chain, "the index lists it, and it is gone"));
    }
    for head in heads {
        let is_own =
            |chain: &ChainId| home.as_deref().is_none_or(|name| head.origin == origin(name, chain));
        let is_there =
            head.chain().is_some_and(|chain| listing.chains.contains_key(&chain) && is_own(&chain));
        if !is_there {
            let what =
                format!("the checkpoint kept elsewhere is about `{}`, which is gone", head.origin);
            report.problem(Problem { chain: head.chain(), ..Problem::of_folder(what) });
        }
    }
    claims.check(folder, &index, &mut report);
    Ok(report)
}

/// Reads only the index, and uses only its signed lines.
pub fn read_index(folder: &dyn Folder, keys: &Keyring) -> io::Result<(Index, Report)> {
    let mut report = Report::default();
    let (heads, mut claims) = (BTreeMap::new(), Claims::default());
    let index = check_index(folder, keys, &heads, &|_| {}, &mut claims, &mut report)?;
    Ok((index, report))
}

/// Checkpoints that were kept elsewhere, by chain.
type Heads<'a> = BTreeMap<ChainId, Vec<&'a Checkpoint>>;

fn by_chain(heads: &[Checkpoint]) -> Heads<'_> {
    let mut found = Heads::new();
    for head in heads {
        if let Some(chain) = head.chain() {
            found.entry(chain).or_default().push(head);
        }
    }
    found
}

/// The newest checkpoint of the index, exactly as in its file. It changes with every line of the
/// index.
fn index_checkpoint(folder: &dyn Folder) -> Option<String> {
    folder.checkpoint(&ChainId::index(), SegmentNumber::FIRST).ok().flatten()
}

fn check_index(
    folder: &dyn Folder,
    keys: &Keyring,
    heads: &Heads<'_>,
    progress: &dyn Fn(u64),
    claims: &mut Claims,
    report: &mut Report,
) -> io::Result<Index> {
    let name = ChainId::index();
    let listing = folder.listing()?;
    let mut index = Index::default();
    let Some(files) = listing.chains.get(&name) else {
        if !listing.chains.is_empty() {
            report.problem(Problem::of_chain(
                &name,
                "it is gone: nothing shows which chains there were",
            ));
        }
        return Ok(index);
    };
    let none = Index::default();
    let home = home_name(folder, keys);
    let check = ChainCheck {
        folder,
        chain: &name,
        files,
        keys,
        heads,
        index: &none,
        home: home.as_deref(),
        current: None,
        progress,
    };
    // An attacker could have written unsigned lines, so those neither drop segments nor list
    // chains.
    let mut take = |line: &Line<'_>, is_signed: bool| {
        if is_signed { index.take(line) } else { Ok(()) }
    };
    let found = check.run(claims, &mut take, report);
    report.chains.push(found);
    Ok(index)
}

/// The name under which the index is signed.
fn home_name(folder: &dyn Folder, keys: &Keyring) -> Option<String> {
    let checkpoint = Checkpoint::open(&index_checkpoint(folder)?, keys).ok()?;
    Some(checkpoint.origin.rsplit_once('/')?.0.to_owned())
}

/// Judges a chain that the index does not list. A chain is listed right after its first line is
/// signed, so its writer may have been stopped in between, or may have opened it just now.
fn judge_unlisted(current: &CurrentIndex<'_>, found: &ChainReport, report: &mut Report) {
    let is_first_line_alone = found.size == 1 && found.covered == 1;
    let is_listed_now = || current.read().chains.contains_key(&found.chain);
    if is_first_line_alone {
        report.note(format!(
            "chain {}: not in the index yet (its writer was stopped as it opened it)",
            found.chain
        ));
    } else if !is_listed_now() {
        report.problem(Problem::of_chain(&found.chain, "it is not in the index"));
    }
}

fn note_names(listing: &Listing, report: &mut Report) {
    for name in &listing.foreign {
        report.note(format!("{}: not one of Holdpoint's files; it was left out", visible(name)));
    }
    for sentence in &listing.unreadable {
        report.problem(Problem::of_folder(sentence.clone()));
    }
}

#[cfg(test)]
mod tests;
