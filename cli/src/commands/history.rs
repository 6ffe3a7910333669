//! `holdpoint history ID`: all that happened to a server, by whom and when.

use crate::arguments::{Options, ServerCommand};
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, styled};
use crate::target::{Workplace, unknown_server};
use store::{HistoryEvent, Store};

pub(crate) fn run(command: &ServerCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    if workplace.store.server(&command.id)?.is_none() {
        return Err(unknown_server(&command.id, &workplace));
    }
    let history = workplace.store.history(&command.id)?;
    if options.json {
        screen::print_json(&serde_json::json!({ "server": command.id, "events": history }))?;
        return Ok(Exit::Fine);
    }
    for event in &history {
        if event.act == event.seq {
            screen::say(act_line(event));
        } else if options.verbose || history.len() <= 200 {
            screen::say(format!("    {}", entry_line(event)));
        }
    }
    Ok(Exit::Fine)
}

fn act_line(event: &HistoryEvent) -> String {
    let mut line = format!(
        "{}  {}  by {}",
        event.at,
        styled(BOLD, &event.action),
        screen::readable(&event.by)
    );
    if let (Some(before), Some(after)) = (event.status_before, event.status_after)
        && before != after
    {
        line.push_str(&format!("  {before} → {after}"));
    }
    if let Some(detail) = &event.detail {
        line.push_str(&format!("  {}", screen::readable(detail)));
    }
    line
}

fn entry_line(event: &HistoryEvent) -> String {
    let name = match (event.entry_type, &event.key) {
        (Some(entry_type), Some(key)) => format!("{entry_type}:{}", screen::readable(key)),
        _ => String::new(),
    };
    let short = |hash: Option<contract::hash::EntryHash>| {
        hash.map_or("—".to_owned(), |hash| hash.to_string().chars().take(12).collect())
    };
    let hashes = format!("{} → {}", short(event.entry_hash_before), short(event.entry_hash_after));
    let basis = event.basis.map(|basis| format!(" ({basis})")).unwrap_or_default();
    format!("{}  {name}{basis}  {}", event.action, styled(DIM, hashes))
}
