//! `holdpoint approve ID [KEY…] --hash H`: accepts what was reviewed, and nothing else.

use crate::approver;
use crate::arguments::{ApproveCommand, Options};
use crate::commands::review::hash_of;
use crate::failure::{Exit, Failure};
use crate::judging::{Judged, is_damaged, judge_for_status, judge_recorded};
use crate::observation::now;
use crate::screen;
use crate::target::Workplace;
use contract::surface::{Entry, EntryId, EntryType};
use gate::judge::Judgement;
use gate::pins::{Basis, Pin, PinBook};
use gate::reason::Reason;
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use store::{Act, NewPin, Store};

/// The fewest digits that name a hash.
const MIN_DIGITS: usize = 8;

pub(crate) fn run(command: &ApproveCommand, options: &Options) -> Result<Exit, Failure> {
    let hash = command.hash.to_ascii_lowercase();
    if hash.len() < MIN_DIGITS
        || hash.len() > 64
        || !hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        let message = format!(
            "`--hash` takes {MIN_DIGITS} to 64 hexadecimal digits, as `holdpoint review` showed them"
        );
        return Err(Failure::usage(message));
    }
    let mut workplace = Workplace::open(options)?;
    let judged = judge_recorded(&workplace, &command.id, None, now())?;
    let chosen = choose(&judged, &command.id, &command.keys, &hash)?;
    refuse_part_of_first(&judged, &command.id, &chosen)?;
    let what = match chosen.as_slice() {
        [one] => format!("Approving {one} of server `{}`.", command.id),
        many => format!("Approving all {} changes of server `{}`.", many.len(), command.id),
    };
    approver::confirm(&workplace.configuration, &what, &hash)?;
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
    let is_whole = surface.is_some_and(|surface| surface.starts_with(hash));
    let changed = || changed_meanwhile(id);
    if keys.is_empty() {
        if is_whole {
            return Ok(waiting.iter().map(|entry| entry.id.clone()).collect());
        }
        let named: Vec<EntryId> = waiting
            .iter()
            .filter(|entry| hash_of(entry).starts_with(hash))
            .map(|entry| entry.id.clone())
            .collect();
        return if named.len() == 1 { Ok(named) } else { Err(changed()) };
    }
    let mut chosen = Vec::new();
    for key in keys {
        let entry = find(&waiting, key, id)?;
        if !is_whole && (keys.len() > 1 || !hash_of(entry).starts_with(hash)) {
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

fn find<'a>(waiting: &[&'a Judgement], key: &str, id: &ServerId) -> Result<&'a Judgement, Failure> {
    let named: Vec<&&Judgement> = waiting.iter().filter(|entry| names(&entry.id, key)).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::held(format!(
            "nothing called `{key}` of server `{id}` waits to be approved"
        ))),
        _ => Err(Failure::usage(format!(
            "`{key}` names several entries: say `tool:{key}` or the like"
        ))),
    }
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
    act.detail = Some(format!("hash {hash:.16}"));
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
