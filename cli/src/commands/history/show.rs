//! One act of a server's history: the entries that it pinned or withdrew, before and after.

use super::{act_line, entry_name};
use crate::arguments::{HistoryCommand, Options};
use crate::failure::{Exit, Failure};
use crate::pager::paged;
use crate::screen::{self, BOLD, DIM, styled};
use crate::server_text::{self, HOW_TO_SEE, ServerText, Withheld};
use crate::side_by_side;
use crate::target::Workplace;
use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId};
use store::{HistoryEvent, Store};

/// An entry that an act changed.
struct Changed<'h> {
    event: &'h HistoryEvent,
    before: Side,
    after: Side,
}

/// One side of a change.
enum Side {
    /// There was no entry, or it is gone.
    Nothing,
    Known(Entry),
    /// Withheld: the pin was withdrawn since, so its text counts as unaccepted, and the output is
    /// not a terminal.
    Withheld(Withheld),
    /// The record has the entry's hash but not its text: another program wrote it, and it was
    /// discarded.
    Lost,
}

pub(super) fn run(
    command: &HistoryCommand,
    number: i64,
    history: &[HistoryEvent],
    workplace: &Workplace,
    options: &Options,
) -> Result<Exit, Failure> {
    let id = &command.id;
    let act = history.iter().find(|event| event.seq == number && event.act == number);
    let act = act.ok_or_else(|| {
        Failure::usage(format!(
            "the history of `{id}` has no act {number}: `holdpoint history {id}` numbers them"
        ))
    })?;
    let text = server_text::on_standard_output(command.text.server_text);
    let lines = history.iter().filter(|event| event.act == number && event.seq != number);
    let changed = lines.filter_map(|event| read(event, workplace, text).transpose());
    let changed = changed.collect::<Result<Vec<Changed<'_>>, Failure>>()?;
    if options.json {
        let entries: Vec<_> = changed.iter().map(document).collect();
        let document = serde_json::json!({ "server": id, "act": act, "entries": entries });
        screen::print_json(&document)?;
    } else {
        paged(!command.pager.no_pager, || print_result(act, &changed));
    }
    Ok(Exit::Fine)
}

fn read<'h>(
    event: &'h HistoryEvent,
    workplace: &Workplace,
    text: ServerText,
) -> Result<Option<Changed<'h>>, Failure> {
    let (Some(entry_type), Some(key)) = (event.entry_type, &event.key) else { return Ok(None) };
    let entry = EntryId::new(entry_type, key);
    let pins = workplace.store.pins_ever(&event.server, &entry)?;
    let side = |hash: Option<EntryHash>| {
        let Some(hash) = hash else { return Side::Nothing };
        let mut found = pins.iter().filter(|past| past.pin.entry.entry_hash() == hash);
        let standing = found.clone().find(|past| !past.is_withdrawn);
        match (standing.or_else(|| found.next_back()), text) {
            (None, _) => Side::Lost,
            (Some(past), _) if past.pin.entry.is_gone() => Side::Nothing,
            (Some(past), ServerText::Located) if past.is_withdrawn => {
                Side::Withheld(Withheld::of_entry(&past.pin.entry))
            }
            (Some(past), _) => Side::Known(past.pin.entry.clone()),
        }
    };
    let (before, after) = (side(event.entry_hash_before), side(event.entry_hash_after));
    Ok(Some(Changed { event, before, after }))
}

impl Side {
    fn entry(&self) -> Option<&Entry> {
        match self {
            Side::Known(entry) => Some(entry),
            Side::Nothing | Side::Withheld(_) | Side::Lost => None,
        }
    }

    fn withheld(&self) -> Option<&Withheld> {
        match self {
            Side::Withheld(withheld) => Some(withheld),
            Side::Nothing | Side::Known(_) | Side::Lost => None,
        }
    }
}

fn document(changed: &Changed<'_>) -> serde_json::Value {
    let Changed { event, before, after } = changed;
    let raw = |side: &Side| side.entry().map(|entry| entry.raw().to_owned());
    serde_json::json!({
        "type": event.entry_type,
        "key": event.key,
        "action": event.action,
        "basis": event.basis,
        "entry_hash": { "before": event.entry_hash_before, "after": event.entry_hash_after },
        "before": raw(before),
        "after": raw(after),
        "withheld": { "before": before.withheld(), "after": after.withheld() },
    })
}

fn print_result(act: &HistoryEvent, changed: &[Changed<'_>]) {
    screen::say(act_line(act));
    if changed.is_empty() {
        screen::say("  this act changed no pin");
    }
    let mut is_withheld = false;
    for Changed { event, before, after } in changed {
        let basis = event.basis.map(|basis| format!(" ({basis})")).unwrap_or_default();
        screen::say("");
        screen::say(format!("{}  {}{basis}", event.action, styled(BOLD, entry_name(event))));
        for (word, hash, side) in
            [("before", event.entry_hash_before, before), ("after", event.entry_hash_after, after)]
        {
            let hash = hash.map_or("none".to_owned(), |hash| hash.to_string());
            screen::say(styled(DIM, format!("  {word}: {hash}")));
            match side {
                Side::Withheld(withheld) => {
                    is_withheld = true;
                    screen::say(format!("    withdrawn, left out: {}", withheld.words()));
                }
                Side::Lost => screen::say("    its text was discarded"),
                Side::Nothing | Side::Known(_) => {}
            }
        }
        if before.entry().is_some() || after.entry().is_some() {
            side_by_side::show(before.entry(), after.entry(), ["before", "after"]);
        }
    }
    if is_withheld {
        screen::say(styled(DIM, format!("({HOW_TO_SEE})")));
    }
}
