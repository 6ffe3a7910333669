//! `holdpoint show SERVER`: shows a server's pinned contract.

use crate::arguments::{Options, ShowServerCommand};
use crate::failure::{Exit, Failure};
use crate::pager::paged;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, styled};
use crate::side_by_side;
use crate::target::{Workplace, unknown_server};
use contract::surface::EntryType;
use gate::pins::{EntryPins, Pin};
use store::Store;

pub(crate) fn run(command: &ShowServerCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let id = &command.id;
    if workplace.store.server(id)?.is_none() {
        return Err(unknown_server(id, &workplace));
    }
    let pins = workplace.store.pins(id)?;
    if let Some(lost) = &pins.lost {
        return Err(Failure::held(format!("the pins of `{id}` cannot be shown: {lost}")));
    }
    let is_gone = |pins: &EntryPins| pins.is_gone();
    let shown = pins.iter().filter(|(_, pins)| !is_gone(pins));
    let shown = shown.filter(|(entry, _)| !pins.tampered.contains_key(entry));
    let shown = shown.filter_map(|(_, pins)| pins.accepted());
    let shown: Vec<&Pin> = shown.filter(|pin| is_asked_for(pin, command)).collect();
    if shown.is_empty() {
        let what = command
            .key
            .as_deref()
            .map_or("nothing".to_owned(), |key| format!("nothing called `{}`", screen::name(key)));
        return Err(Failure::usage(format!("{what} of `{id}` is pinned")));
    }
    if options.json {
        let entries: Vec<_> = shown.iter().map(|pin| document(pin)).collect();
        screen::print_json(&serde_json::json!({ "server": id, "entries": entries }))?;
        return Ok(Exit::Fine);
    }
    paged(!command.pager.no_pager, || {
        screen::say(styled(BOLD, format!("━━ {id} ━━")));
        let entries = count(shown.len(), "entry", "entries");
        screen::say(format!("{entries}, as pinned: these are the server's own words"));
        shown.iter().for_each(|pin| print_result(pin));
    });
    Ok(Exit::Fine)
}

/// Whether `KEY` or `TYPE:KEY` names the entry, or no key was given.
fn is_asked_for(pin: &Pin, command: &ShowServerCommand) -> bool {
    let id = pin.entry.id();
    command.key.as_ref().is_none_or(|key| id.key == *key || id.to_string() == *key)
}

fn document(pin: &Pin) -> serde_json::Value {
    serde_json::json!({
        "type": pin.entry.entry_type(),
        "key": pin.entry.key(),
        "basis": pin.basis,
        "at": pin.at,
        "by": pin.by,
        "entry_hash": pin.entry.entry_hash(),
        "raw": pin.entry.raw(),
    })
}

fn print_result(pin: &Pin) {
    let entry = &pin.entry;
    let name = match entry.entry_type() {
        EntryType::Instructions | EntryType::Identity | EntryType::Origin => String::new(),
        EntryType::Tool | EntryType::Prompt | EntryType::Resource | EntryType::Template => {
            format!(" {}", screen::name(entry.key()))
        }
    };
    screen::say("");
    screen::say(styled(BOLD, format!("{}{name}", entry.entry_type())));
    let by = screen::readable(&pin.by);
    screen::say(styled(DIM, format!("  pinned {} by {by} (basis: {})", pin.at, pin.basis)));
    screen::say(styled(DIM, format!("  {}", entry.entry_hash())));
    side_by_side::show_entry(entry);
}
