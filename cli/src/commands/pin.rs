//! `holdpoint pin`: look at a server now and pin what it says, as approved by the person who typed it.

use crate::approver;
use crate::arguments::{Options, PinCommand};
use crate::commands::review::show_change;
use crate::failure::{Exit, Failure};
use crate::judging::{has_baseline, is_damaged, judge};
use crate::observation::{Looked, look_at, now, remark_notes};
use crate::report;
use crate::screen::{self, BOLD, DIM, styled};
use crate::target::{Source, Target, Workplace};
use crate::vouching::{admit_before_look, checker_for};
use contract::change::ChangeKind;
use contract::surface::{Entry, EntryId, EntryType, Surface};
use engine::admission::Admitted;
use engine::judge::pinned_anchor;
use gate::judge::{Judgement, judge_surface};
use gate::pins::{Basis, PinBook};
use gate::server::{ServerId, ServerStatus};
use gate::status::NotAllowed;
use store::{Act, NewPin, Observation, Snapshot, Store};
use wire::attestation::Greeting;

pub(crate) fn run(command: &PinCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open_to_record(options)?;
    let target = Target::of(&command.target, &mut workplace)?;
    let snapshot = workplace.store.snapshot(&target.id)?;
    let status = snapshot.server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status);
    if status == ServerStatus::Quarantined {
        return Err(Failure::held(format!("`{}`: {}", target.id, NotAllowed::IsQuarantined)));
    }
    let (checker, before) = match &target.source {
        Source::Capture(_) => (None, None),
        Source::Server(reach) => {
            let (configuration, home) = (&workplace.configuration, workplace.home.path());
            let before = admit_before_look(&target.id, reach, configuration, home)?;
            (checker_for(&target.id, reach, &workplace, options)?, before)
        }
    };
    let Looked { mut surface, handshake } =
        look_at(&target.source, &workplace.launch_key, options)?;
    remark_notes(&surface, options);
    refuse_unreadable(&surface)?;
    let admitted = before.or_else(|| {
        checker
            .map(|mut checker| checker.check(handshake.as_deref(), Greeting::Initialize).admitted)
    });
    anchor(&mut surface, &snapshot.pins, admitted.as_deref(), options);
    let pins = entries_to_pin(&workplace, &target.id, &snapshot, &surface, options)?;
    let (at, by) = (now(), approver::name());
    let observation = Observation::of(&surface, at);
    let Chosen { entries: pins, left_out } = pins;
    let count = pins.len();
    let status = if left_out.is_empty() { ServerStatus::Verified } else { ServerStatus::Changed };
    let mut act = Act::new(&target.id, at, &by, "server.pin");
    act.expect = Some(snapshot.revision());
    act.launch = target.launch.as_ref();
    act.status = Some(status);
    act.observation = Some(&observation);
    act.reseal = is_damaged(&snapshot.pins);
    act.pins = pins.into_iter().map(|entry| NewPin { entry, basis: Basis::Person }).collect();
    workplace.store.record(act)?;
    tell(&target.id, &surface, count, &left_out, options)
}

/// Anchors the identity as `run` does: to whoever vouches for the server now, else as it was pinned. A pin without the
/// anchor would take any other signer for the first one.
fn anchor(surface: &mut Surface, book: &PinBook, admitted: Option<&Admitted>, options: &Options) {
    if let Some(denial) = admitted.and_then(Admitted::failure).filter(|_| !options.quiet) {
        screen::remark(styled(
            DIM,
            format!(
                "note: who vouches for the server is not pinned with it: {}: {}",
                denial.reason(),
                screen::readable(denial.detail())
            ),
        ));
    }
    if let Some(anchor) = admitted.and_then(Admitted::anchor).or_else(|| pinned_anchor(book)) {
        // The identity is text that was read before, so it reads again.
        let _ = surface.anchor_to(&anchor);
    }
}

/// What is to be pinned, and what is not because it would steer a model and nobody said that it may.
struct Chosen {
    entries: Vec<Entry>,
    left_out: Vec<EntryId>,
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
    options: &Options,
) -> Result<Chosen, Failure> {
    // Where the book as a whole is lost nothing of it counts, and all is pinned anew.
    let is_approved = |entry: &Entry| {
        let pins = snapshot.pins.get(entry.id()).filter(|_| snapshot.pins.lost.is_none());
        pins.is_some_and(|pins| {
            pins.accepted().is_some_and(|pin| {
                pin.basis == Basis::Person && pin.entry.entry_hash() == entry.entry_hash()
            })
        })
    };
    let mut entries: Vec<Entry> =
        surface.entries().filter(|entry| !is_approved(entry)).cloned().collect();
    if !has_baseline(&snapshot.pins) {
        return first_sight(workplace, id, entries, surface, options);
    }
    let judgement = judge(workplace, id, snapshot, surface, None, now())?;
    let gone = judgement.entries.iter().filter(|entry| entry.after.is_none());
    entries.extend(gone.map(|entry| Entry::gone(entry.id.clone())));
    // Whatever is pinned over a baseline becomes a person's approval, benign or not.
    if !entries.is_empty() || is_damaged(&snapshot.pins) {
        if !options.json {
            report::say_entries(&judgement);
        }
        let hash = surface.surface_hash();
        let what = format!(
            "Server `{id}` changed since it was pinned; its surface now has the hash {hash}."
        );
        approver::confirm(&workplace.configuration, &what, || {
            judgement.entries.iter().for_each(show_change);
        })?;
    }
    Ok(Chosen { entries, left_out: Vec::new() })
}

/// At first sight everything is taken as it is, but for entries with a marker: those a person must have seen.
fn first_sight(
    workplace: &Workplace,
    id: &ServerId,
    entries: Vec<Entry>,
    surface: &Surface,
    options: &Options,
) -> Result<Chosen, Failure> {
    let settings = workplace.configuration.settings(Some(id), None)?;
    let mut judgement = judge_surface(&PinBook::default(), surface, &settings, 0);
    let is_marked = |entry: &Judgement| {
        entry.findings.iter().any(|finding| finding.kind == ChangeKind::MarkerFound)
    };
    judgement.entries.retain(is_marked);
    if judgement.entries.is_empty() {
        return Ok(Chosen { entries, left_out: Vec::new() });
    }
    if !options.json {
        report::say_entries(&judgement);
    }
    let question = "These have wording or characters that are made to steer a model. Pin them too?";
    match approver::confirm_yes(&workplace.configuration, question) {
        Ok(()) => Ok(Chosen { entries, left_out: Vec::new() }),
        // Without a person, or without a yes, they stay unpinned and held; all others are pinned.
        Err(_) => {
            let left_out: Vec<EntryId> =
                judgement.entries.into_iter().map(|entry| entry.id).collect();
            let entries =
                entries.into_iter().filter(|entry| !left_out.contains(entry.id())).collect();
            Ok(Chosen { entries, left_out })
        }
    }
}

fn tell(
    id: &ServerId,
    surface: &Surface,
    pinned: usize,
    left_out: &[EntryId],
    options: &Options,
) -> Result<Exit, Failure> {
    let (status, exit) = match left_out {
        [] => (ServerStatus::Verified, Exit::Fine),
        _ => (ServerStatus::Changed, Exit::Held),
    };
    if options.json {
        let left_out: Vec<String> = left_out.iter().map(EntryId::to_string).collect();
        screen::print_json(&serde_json::json!({
            "server": id,
            "status": status,
            "pinned": pinned,
            "left_out": left_out,
            "entries": surface.entries().len(),
            "surface_hash": surface.surface_hash(),
        }))?;
        return Ok(exit);
    }
    let count = |entry_type: EntryType| {
        let entries = surface.entries().filter(|entry| !left_out.contains(entry.id()));
        entries.filter(|entry| entry.entry_type() == entry_type).count()
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
        .map(|(count, word)| report::count(count, word, &format!("{word}s")))
        .collect();
    let what = if parts.is_empty() { "nothing but itself".to_owned() } else { parts.join(", ") };
    screen::say(format!("pinned {} {what}, approved by you", styled(BOLD, format!("{id}:"))));
    if !left_out.is_empty() {
        let count = report::count(left_out.len(), "entry", "entries");
        screen::say(format!("{count} with a marker left out and held, until you approve them"));
    }
    if !options.quiet {
        screen::say(styled(DIM, format!("surface {}", surface.surface_hash())));
        let next = if left_out.is_empty() { "check" } else { "review" };
        screen::say(styled(DIM, format!("next: holdpoint {next} {id}")));
    }
    Ok(exit)
}
