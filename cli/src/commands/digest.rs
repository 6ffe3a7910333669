//! `holdpoint digest`: a day's holds and decisions. An empty digest is healthy.

use crate::arguments::Options;
use crate::arguments::stats::DigestCommand;
use crate::commands::stats::date;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::people_events::people_events;
use crate::report::{EntryDocument, count, name_of, state_of};
use crate::screen::{self, BOLD, DIM, GREEN, RED, styled};
use crate::server_text::{self, ServerText};
use crate::target::Workplace;
use engine::acts::Review;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use happening::{Happening, What, happenings};
use held::{HeldChange, WhatOfHold, held_changes};
use serde::Serialize;
use store::{Day, Store, StoreEvent};

mod happening;
mod held;

/// `digest --json`.
#[derive(Debug, Serialize)]
struct Digest<'a> {
    day: String,
    is_empty: bool,
    /// Only servers with something to report.
    servers: Vec<ServerDigest<'a>>,
    /// Switches, keys and approvals of calls.
    events: &'a [EventDocument],
    /// Changes that were accepted as benign. They alone are no reason to look.
    benign: usize,
}

#[derive(Debug, Serialize)]
struct ServerDigest<'a> {
    server: &'a ServerId,
    status: ServerStatus,
    happened: &'a [Happening],
    /// Safety-relevant changes that were held or decided on that day.
    changes: &'a [HeldChange],
    /// What waits for a person now; empty for past days.
    waiting: Vec<EntryDocument<'a>>,
}

/// An event without its object, which may be a key or the id of a session.
#[derive(Debug, Serialize)]
struct EventDocument {
    at: Timestamp,
    by: String,
    action: String,
    detail: Option<String>,
}

impl EventDocument {
    fn of(event: StoreEvent) -> EventDocument {
        let StoreEvent { at, by, action, detail, .. } = event;
        EventDocument { at, by, action, detail }
    }
}

/// One server's report for the day.
struct Told {
    id: ServerId,
    judged: Review,
    happened: Vec<Happening>,
    changes: Vec<HeldChange>,
}

impl Told {
    fn waiting(&self, is_today: bool) -> impl Iterator<Item = &gate::judge::Judgement> {
        self.judged.waiting().filter(move |entry| is_today && entry.is_safety_relevant())
    }
}

pub(crate) fn run(command: &DigestCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let at = now();
    let today = Day::of(at);
    let day = command.day.unwrap_or(today);
    if day > today {
        return Err(Failure::usage(format!("`--day`: {} has not begun yet in UTC", date(day))));
    }
    let is_today = day == today;
    let text = server_text::on_standard_output(false);
    let (servers, benign) = gather(&workplace, day, is_today, at)?;
    let of_day = |event: &StoreEvent| Day::of(event.at) == day;
    let events = workplace.store.events()?.into_iter().filter(of_day);
    let events: Vec<EventDocument> = events.map(EventDocument::of).collect();
    let digest = Digest {
        day: date(day),
        is_empty: servers.is_empty() && events.is_empty(),
        servers: servers
            .iter()
            .map(|told| ServerDigest {
                server: &told.id,
                status: told.judged.status(),
                happened: &told.happened,
                changes: &told.changes,
                waiting: told
                    .waiting(is_today)
                    .map(|entry| EntryDocument::of(entry, text))
                    .collect(),
            })
            .collect(),
        events: &events,
        benign,
    };
    if options.json {
        screen::print_json(&digest)?;
        return Ok(Exit::Fine);
    }
    if digest.is_empty {
        let quiet = styled(GREEN.bold(), "nothing");
        screen::say(format!("{}: {quiet} to report; that is healthy", digest.day));
    } else {
        screen::say(styled(BOLD, &digest.day));
    }
    for told in &servers {
        say_server(told, is_today, text, options);
    }
    for event in events.iter().rev() {
        screen::say(event_line(event));
    }
    if benign > 0 && !options.quiet {
        let changes = count(benign, "benign change was", "benign changes were");
        screen::say(styled(DIM, format!("{changes} accepted automatically")));
    }
    Ok(Exit::Fine)
}

/// The servers with something to report, and how many changes were accepted as benign.
fn gather(
    workplace: &Workplace,
    day: Day,
    is_today: bool,
    at: Timestamp,
) -> Result<(Vec<Told>, usize), Failure> {
    let (mut told, mut benign) = (Vec::new(), 0);
    let events = people_events(workplace)?;
    for server in workplace.store.servers()? {
        let history = workplace.store.history(&server.id)?;
        let judged = workplace.review(&server.id, at)?;
        let (mut happened, accepted) = happenings(&history, day, judged.judgement.posture);
        benign += accepted;
        let changes = held_changes(&events, server.id.as_str(), day);
        if !changes.is_empty() {
            // Each held change is listed below.
            happened.retain(|happening| happening.what != What::Held);
        }
        let server = Told { id: server.id, judged, happened, changes };
        let is_told = !server.happened.is_empty() || !server.changes.is_empty();
        if is_told || server.waiting(is_today).next().is_some() {
            told.push(server);
        }
    }
    Ok((told, benign))
}

fn say_server(told: &Told, is_today: bool, text: ServerText, options: &Options) {
    screen::say(format!("{}  {}", styled(BOLD, &told.id), told.judged.status()));
    let mut is_waiting = false;
    for entry in told.waiting(is_today) {
        is_waiting = true;
        let state = state_of(entry);
        let mut kinds: Vec<&str> =
            entry.findings.iter().map(|finding| finding.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let (kind, name) = (entry.id.entry_type, name_of(entry, text));
        screen::say(format!("    waits now: {state}  {kind} {name}: {}", kinds.join(", ")));
    }
    if is_waiting && !options.quiet {
        screen::say(styled(DIM, format!("    look: holdpoint review {}", told.id)));
    }
    say_newest_first(told);
}

/// Prints events and held changes in one list, newest first.
fn say_newest_first(told: &Told) {
    let (mut happened, mut changes) =
        (told.happened.iter().rev().peekable(), told.changes.iter().rev().peekable());
    loop {
        let is_change_next = match (happened.peek(), changes.peek()) {
            (None, None) => return,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(happening), Some(change)) => change.at >= happening.at,
        };
        if is_change_next {
            changes.by_ref().take(1).for_each(say_change);
        } else {
            let next = happened.by_ref().take(1);
            next.for_each(|next| screen::say(format!("    {}", happening_line(next))));
        }
    }
}

fn say_change(held: &HeldChange) {
    let HeldChange { at, by, what, change } = held;
    let style = match what {
        WhatOfHold::Held | WhatOfHold::Confirmed => RED.bold(),
        WhatOfHold::Overridden => BOLD,
    };
    let by = by.as_ref().map(|by| styled(DIM, format!("  by {}", screen::readable(by))));
    let (kind, key) = (screen::readable(&change.entry_type), screen::name(&change.key));
    let (what, by) = (styled(style, what.words()), by.unwrap_or_default());
    screen::say(format!("    {at}  {what}  {kind} {key}: {}{by}", change.kinds.join(", ")));
}

fn happening_line(happening: &Happening) -> String {
    let what = happening.what;
    let style = match what {
        What::Held | What::Quarantined | What::Discarded | What::Unwired => RED.bold(),
        What::Noted | What::Pinned | What::Approved | What::Released | What::RolledBack => BOLD,
    };
    let names: Vec<String> = happening.entries.iter().map(|name| screen::readable(name)).collect();
    let more = happening.entry_count.saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let by = styled(DIM, format!("  by {}", screen::readable(&happening.by)));
    format!("{}  {}{names}{more}{by}", happening.at, styled(style, what.words()))
}

fn event_line(event: &EventDocument) -> String {
    let detail = event.detail.as_ref().map(|detail| format!("  {}", screen::readable(detail)));
    let by = styled(DIM, format!("  by {}", screen::readable(&event.by)));
    let action = styled(BOLD, screen::readable(&event.action));
    format!("{}  {action}{}{by}", event.at, detail.unwrap_or_default())
}
