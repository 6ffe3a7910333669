//! `holdpoint history ID`: everything that happened to a server, by whom and when. Acts are
//! numbered; `--show N` prints what one of them changed, before and after.

mod show;

use crate::arguments::{HistoryCommand, Options};
use crate::failure::{Exit, Failure};
use crate::pager::paged;
use crate::screen::{self, BOLD, DIM, styled};
use crate::server_text::{self, ServerText};
use crate::target::{Workplace, unknown_server};
use store::{HistoryEvent, Store};

/// Above this number of lines only acts are listed, unless `-v` asks for their entries too.
const MAX_LINES: usize = 200;

pub(crate) fn run(command: &HistoryCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    if workplace.store.server(&command.id)?.is_none() {
        return Err(unknown_server(&command.id, &workplace));
    }
    let mut history = workplace.store.history(&command.id)?;
    if let Some(number) = command.show {
        return show::run(command, number, &history, &workplace, options);
    }
    if server_text::on_standard_output(command.text.server_text) == ServerText::Located {
        // Withhold the text: a pin that another program wrote was never approved by a person.
        history.iter_mut().for_each(|event| event.raw = None);
    }
    if options.json {
        screen::print_json(&serde_json::json!({ "server": command.id, "events": history }))?;
        return Ok(Exit::Fine);
    }
    paged(!command.pager.no_pager, || list(command, &history, options));
    Ok(Exit::Fine)
}

fn list(command: &HistoryCommand, history: &[HistoryEvent], options: &Options) {
    for event in history {
        if event.act == event.seq {
            screen::say(act_line(event));
        } else if options.verbose || history.len() <= MAX_LINES {
            screen::say(format!("        {}", entry_line(event)));
        }
    }
    let shown = history.iter().rev().find(|event| event.act != event.seq);
    if let Some(event) = shown.filter(|_| !options.quiet) {
        let (id, act) = (&command.id, event.act);
        screen::say(styled(
            DIM,
            format!("before and after of an act: holdpoint history {id} --show {act}"),
        ));
    }
}

fn act_line(event: &HistoryEvent) -> String {
    let mut line = format!(
        "{:>5}  {}  {}  by {}",
        event.seq,
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
    let short = |hash: Option<contract::hash::EntryHash>| {
        hash.map_or("—".to_owned(), |hash| hash.to_string().chars().take(12).collect())
    };
    let hashes = format!("{} → {}", short(event.entry_hash_before), short(event.entry_hash_after));
    let basis = event.basis.map(|basis| format!(" ({basis})")).unwrap_or_default();
    format!("{}  {}{basis}  {}", event.action, entry_name(event), styled(DIM, hashes))
}

fn entry_name(event: &HistoryEvent) -> String {
    match (event.entry_type, &event.key) {
        (Some(entry_type), Some(key)) => format!("{entry_type}:{}", screen::name(key)),
        _ => String::new(),
    }
}
