//! `holdpoint approve ID [KEY…] --hash H`: approves what was reviewed, and nothing else.
//!
//! INVARIANT: what is approved is compared by its whole hash. The server chooses the definition that is reviewed and the
//! one that follows: two whose hashes share their first 16 digits are found within minutes.

use crate::approver;
use crate::arguments::{ApproveCommand, Options};
use crate::commands::review::{hash_of, show_change};
use crate::failure::{Exit, Failure};
use crate::judging::{Judged, is_damaged, judge_for_status, judge_recorded};
use crate::observation::now;
use crate::screen;
use crate::target::{Workplace, near};
use contract::surface::{Entry, EntryId, EntryType};
use gate::judge::Judgement;
use gate::pins::{Basis, Pin, PinBook};
use gate::reason::Reason;
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use store::{Act, NewPin, Store};

/// The digits of a SHA-256.
const DIGITS: usize = 64;

pub(crate) fn run(command: &ApproveCommand, options: &Options) -> Result<Exit, Failure> {
    let hash = whole_hash(&command.hash)?;
    let mut workplace = Workplace::open(options)?;
    let judged = judge_recorded(&workplace, &command.id, None, now())?;
    let chosen = choose(&judged, &command.id, &command.keys, &hash)?;
    refuse_part_of_first(&judged, &command.id, &chosen)?;
    let what = match chosen.as_slice() {
        [_] => format!("This is one entry of server `{}`, hash {hash}.", command.id),
        many => {
            format!("These are {} entries of server `{}`, hash {hash}.", many.len(), command.id)
        }
    };
    approver::confirm(&workplace.configuration, &what, || {
        let entries = judged.judgement.entries.iter();
        entries.filter(|entry| chosen.contains(&entry.id)).for_each(show_change);
    })?;
    let status = approve_entries(&mut workplace, &command.id, &judged, &chosen, &hash)?;
    if options.json {
        let approved: Vec<String> = chosen.iter().map(EntryId::to_string).collect();
        screen::print_json(
            &serde_json::json!({ "server": command.id, "approved": approved, "status": status }),
        )?;
    } else {
        screen::say(format!(
            "approved {} of {}; the server is {status}",
            count(chosen.len()),
            command.id
        ));
    }
    Ok(Exit::Fine)
}

/// `--hash` takes a whole hash, in either case.
fn whole_hash(typed: &str) -> Result<String, Failure> {
    if typed.len() == DIGITS && typed.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(typed.to_ascii_lowercase());
    }
    Err(Failure::usage(format!(
        "`--hash` takes a whole hash, {DIGITS} hexadecimal digits, as `holdpoint review` prints it"
    )))
}

fn count(entries: usize) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

/// The entries that the keys and the hash name, if they are what waits now.
fn choose(
    judged: &Judged,
    id: &ServerId,
    keys: &[String],
    hash: &str,
) -> Result<Vec<EntryId>, Failure> {
    let waiting: Vec<&Judgement> =
        judged.waiting().filter(|entry| can_be_approved(entry)).collect();
    if waiting.is_empty() && !judged.judgement.unreadable.is_empty() {
        return Err(Failure::held(format!(
            "what server `{id}` said last could not be read in exactly one way, so it cannot be approved: `holdpoint check {id}` looks again"
        )));
    }
    if waiting.is_empty() {
        return Err(Failure::held(format!("nothing of server `{id}` waits to be approved")));
    }
    let surface = judged.surface.as_ref().map(|surface| surface.surface_hash().to_string());
    let is_whole = surface.is_some_and(|surface| surface == hash);
    let changed = || changed_meanwhile(id);
    if keys.is_empty() {
        if is_whole {
            return Ok(waiting.iter().map(|entry| entry.id.clone()).collect());
        }
        let named: Vec<EntryId> = waiting
            .iter()
            .filter(|entry| hash_of(entry) == hash)
            .map(|entry| entry.id.clone())
            .collect();
        return if named.len() == 1 { Ok(named) } else { Err(changed()) };
    }
    let mut chosen = Vec::new();
    for key in keys {
        let entry = find(&waiting, key, id, judged)?;
        if !is_whole && (keys.len() > 1 || hash_of(entry) != hash) {
            return Err(changed());
        }
        chosen.push(entry.id.clone());
    }
    Ok(chosen)
}

pub(crate) fn changed_meanwhile(id: &ServerId) -> Failure {
    Failure::held(format!(
        "what waits now has another hash: look again with `holdpoint review {id}`, then decide"
    ))
}

/// The first approval of a server is of all that it says: what was left out would pass for an addition later.
fn refuse_part_of_first(judged: &Judged, id: &ServerId, chosen: &[EntryId]) -> Result<(), Failure> {
    let mut waiting = judged.waiting().filter(|entry| can_be_approved(entry));
    if !judged.awaits_first_approval() || waiting.all(|entry| chosen.contains(&entry.id)) {
        return Ok(());
    }
    Err(Failure::held(format!(
        "server `{id}` waits for its first approval, which is of all that it says: `holdpoint review {id}` shows it, with the hash that approves it"
    )))
}

/// Whether there is something that a person could have looked at. Nobody knows what a list says that cannot be read, so
/// its entries are neither there nor gone.
pub(crate) fn can_be_approved(entry: &Judgement) -> bool {
    entry.reason != Some(Reason::SurfaceUnreadable)
}

fn find<'a>(
    waiting: &[&'a Judgement],
    key: &str,
    id: &ServerId,
    judged: &Judged,
) -> Result<&'a Judgement, Failure> {
    let named: Vec<&&Judgement> = waiting.iter().filter(|entry| names(&entry.id, key)).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] if judged.entries().any(|entry| names(entry, key)) => Err(Failure::held(format!(
            "`{key}` of server `{id}` does not wait: it is as it was approved"
        ))),
        [] => Err(unknown_entry(key, id, waiting.iter().map(|entry| &entry.id), "waits")),
        _ => Err(Failure::usage(format!(
            "`{key}` names several entries: say `tool:{key}` or the like"
        ))),
    }
}

/// Nothing of the server is called so. Names what was probably meant, else all that could be meant.
pub(crate) fn unknown_entry<'e>(
    key: &str,
    id: &ServerId,
    known: impl Iterator<Item = &'e EntryId>,
    what: &str,
) -> Failure {
    const MAX_LISTED: usize = 8;
    let known: Vec<&EntryId> = known.collect();
    let typed: Vec<String> = known.iter().map(ToString::to_string).collect();
    let mut names: Vec<&str> = known.iter().map(|entry| entry.key.as_str()).collect();
    names.extend(typed.iter().map(String::as_str));
    let end = match near(key, &names) {
        Some(meant) => format!("did you mean `{}`?", screen::name(meant)),
        None if known.is_empty() => format!("nothing of it {what}"),
        None => {
            let list: Vec<String> = typed
                .iter()
                .take(MAX_LISTED)
                .map(|name| format!("`{}`", screen::name(name)))
                .collect();
            let more = known.len().saturating_sub(MAX_LISTED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("this {what}: {}{more}", list.join(", "))
        }
    };
    Failure::usage(format!("server `{id}` has nothing called `{key}`: {end}"))
}

/// Whether `KEY` or `TYPE:KEY` names an entry.
pub(crate) fn names(id: &EntryId, key: &str) -> bool {
    let typed =
        key.split_once(':').and_then(|(kind, rest)| Some((kind.parse::<EntryType>().ok()?, rest)));
    id.key == key
        || typed.is_some_and(|(entry_type, rest)| id.entry_type == entry_type && id.key == rest)
}

/// Pins the entries as approved by a person, if nothing was written since they were judged.
pub(crate) fn approve_entries(
    workplace: &mut Workplace,
    id: &ServerId,
    judged: &Judged,
    chosen: &[EntryId],
    hash: &str,
) -> Result<ServerStatus, Failure> {
    if judged.status() == ServerStatus::Quarantined {
        let refusal = next(ServerStatus::Quarantined, Happening::Approved { is_held: false });
        return Err(Failure::held(
            refusal.err().map(|error| error.to_string()).unwrap_or_default(),
        ));
    }
    refuse_part_of_first(judged, id, chosen)?;
    let entries: Vec<Entry> = judged
        .judgement
        .entries
        .iter()
        .filter(|entry| chosen.contains(&entry.id))
        .map(|entry| entry.after.clone().unwrap_or_else(|| Entry::gone(entry.id.clone())))
        .collect();
    let (at, by) = (now(), approver::name());
    let status = status_once_pinned(workplace, id, judged, &entries)?;
    let mut act = Act::new(id, at, &by, "server.approve");
    act.expect = Some(judged.snapshot.revision());
    act.status = Some(status);
    act.reseal = is_damaged(&judged.snapshot.pins);
    act.detail = Some(format!("hash {hash}"));
    act.pins = entries.into_iter().map(|entry| NewPin { entry, basis: Basis::Person }).collect();
    workplace.store.record(act)?;
    Ok(status)
}

/// The status with the entries pinned: whether anything is still held.
fn status_once_pinned(
    workplace: &Workplace,
    id: &ServerId,
    judged: &Judged,
    entries: &[Entry],
) -> Result<ServerStatus, Failure> {
    let mut snapshot = judged.snapshot.clone();
    if snapshot.pins.lost.is_some() {
        // What is approved now is all that counts from here on.
        snapshot.pins = PinBook::default();
    }
    for entry in entries {
        snapshot.pins.tampered.remove(entry.id());
        let by = String::new();
        snapshot.pins.push(Pin { entry: entry.clone(), basis: Basis::Person, at: now(), by });
    }
    let surface = judged.surface.clone().unwrap_or_default();
    let judgement = judge_for_status(workplace, id, &snapshot, &surface, now())?;
    next(judged.status(), Happening::Approved { is_held: judgement.verdict.is_held() })
        .map_err(|error| Failure::held(error.to_string()))
}

/// Stops a server.
pub(crate) fn quarantine(workplace: &mut Workplace, id: &ServerId) -> Result<(), Failure> {
    let by = approver::name();
    let mut act = Act::new(id, now(), &by, "server.quarantine");
    act.status = Some(ServerStatus::Quarantined);
    workplace.store.record(act)?;
    Ok(())
}
