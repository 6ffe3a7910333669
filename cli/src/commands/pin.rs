//! `holdpoint pin`: look at a server now and pin what it says, as approved by the person who typed it.

use crate::approver;
use crate::arguments::{Options, PinCommand};
use crate::failure::{Exit, Failure};
use crate::judging::judge;
use crate::observation::{now, remark_notes, surface_of};
use crate::report;
use crate::screen::{self, BOLD, DIM, styled};
use crate::target::{Target, Workplace};
use contract::surface::{Entry, EntryType, Surface};
use gate::judge::Judgement;
use gate::pins::Basis;
use gate::server::{ServerId, ServerStatus};
use gate::status::NotAllowed;
use store::{Act, NewPin, Observation, Snapshot, Store};

pub(crate) fn run(command: &PinCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open(options)?;
    let target = Target::of(&command.target, &workplace)?;
    let snapshot = workplace.store.snapshot(&target.id)?;
    let status = snapshot.server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status);
    if status == ServerStatus::Quarantined {
        return Err(Failure::held(format!("`{}`: {}", target.id, NotAllowed::IsQuarantined)));
    }
    let surface = surface_of(&target.source, options)?;
    remark_notes(&surface, options);
    refuse_unreadable(&surface)?;
    let pins = entries_to_pin(&workplace, &target.id, &snapshot, &surface)?;
    let (at, by) = (now(), approver::name());
    let observation = Observation::of(&surface, at);
    let count = pins.len();
    let mut act = Act::new(&target.id, at, &by, "server.pin");
    act.expect = Some(snapshot.revision());
    act.launch = target.launch.as_ref();
    act.status = Some(ServerStatus::Verified);
    act.observation = Some(&observation);
    act.reseal = snapshot.pins.lost.is_some() || !snapshot.pins.tampered.is_empty();
    act.pins = pins.into_iter().map(|entry| NewPin { entry, basis: Basis::Person }).collect();
    workplace.store.record(act)?;
    tell(&target.id, &surface, count, options)
}

fn refuse_unreadable(surface: &Surface) -> Result<(), Failure> {
    match surface.unreadable().iter().next() {
        None => Ok(()),
        Some((list, reason)) => Err(Failure::unreadable(format!(
            "`{}` cannot be read: {reason}; nothing was pinned",
            list.method()
        ))),
    }
}

/// What is to be pinned: all that no person has approved. Where there is a baseline already, that is an approval, and
/// a person must be there for it.
fn entries_to_pin(
    workplace: &Workplace,
    id: &ServerId,
    snapshot: &Snapshot,
    surface: &Surface,
) -> Result<Vec<Entry>, Failure> {
    let is_approved = |entry: &Entry| {
        snapshot.pins.get(entry.id()).is_some_and(|pins| {
            pins.accepted().is_some_and(|pin| {
                pin.basis == Basis::Person && pin.entry.entry_hash() == entry.entry_hash()
            })
        })
    };
    let has_baseline = !snapshot.pins.is_empty() || snapshot.pins.lost.is_some();
    let mut entries: Vec<Entry> =
        surface.entries().filter(|entry| !is_approved(entry)).cloned().collect();
    if !has_baseline {
        return Ok(entries);
    }
    let judgement = judge(workplace, id, snapshot, surface, None, now())?;
    let gone = judgement.entries.iter().filter(|entry| entry.after.is_none());
    entries.extend(gone.map(|entry| Entry::gone(entry.id.clone())));
    if judgement.entries.iter().any(Judgement::is_waiting) || judgement.verdict.is_held() {
        report::say_entries(&judgement);
        let hash = surface.surface_hash().to_string();
        approver::confirm(
            &workplace.configuration,
            &format!("Server `{id}` changed since it was pinned."),
            &hash,
        )?;
    }
    Ok(entries)
}

fn tell(
    id: &ServerId,
    surface: &Surface,
    pinned: usize,
    options: &Options,
) -> Result<Exit, Failure> {
    if options.json {
        screen::print_json(&serde_json::json!({
            "server": id,
            "status": ServerStatus::Verified,
            "pinned": pinned,
            "entries": surface.entries().len(),
            "surface_hash": surface.surface_hash(),
        }))?;
        return Ok(Exit::Fine);
    }
    let count = |entry_type: EntryType| {
        surface.entries().filter(|entry| entry.entry_type() == entry_type).count()
    };
    let kinds = [
        (EntryType::Tool, "tool"),
        (EntryType::Prompt, "prompt"),
        (EntryType::Resource, "resource"),
        (EntryType::Template, "template"),
    ];
    let parts: Vec<String> = kinds
        .into_iter()
        .map(|(entry_type, word)| (count(entry_type), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        .collect();
    let what = if parts.is_empty() { "nothing but itself".to_owned() } else { parts.join(", ") };
    screen::say(format!("pinned {} {what}, approved by you", styled(BOLD, format!("{id}:"))));
    if !options.quiet {
        screen::say(styled(DIM, format!("surface {}", surface.surface_hash())));
        screen::say(styled(DIM, format!("next: holdpoint check {id}")));
    }
    Ok(Exit::Fine)
}
