//! `holdpoint review`: shows what changed, before and after, with the commands to act; `-i` asks
//! about each change.

use crate::approver;
use crate::arguments::{Options, ReviewCommand};
use crate::commands::remote;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::pager::paged;
use crate::remote_gateway::RemoteGateway;
use crate::report::EntryDocument;
use crate::screen::{self, BOLD, DIM, styled};
use crate::server_text::{self, HOW_TO_SEE, Printable, ServerText};
use crate::sharing;
use crate::target::Workplace;
use engine::acts::{Review, hash_of};
use gate::by_the_call::CallReach;
use gate::judge::Judgement;
use gate::server::{ServerId, ServerStatus};
use gate::shell;
use others::Others;
use paragraph::Paragraph;
use stopped::Stopped;
use store::Store;
use summary::Shared;
use usage::Usage;

mod others;
mod paragraph;
mod stopped;
mod summary;
pub(crate) mod usage;
mod walk;

pub(crate) use paragraph::show_change;

pub(crate) fn run(command: &ReviewCommand, options: &Options) -> Result<Exit, Failure> {
    if let Some(gateway) = RemoteGateway::of(&command.gateway)? {
        return remote::review(command, &gateway, options);
    }
    if command.interactive && !options.json {
        approver::need_screen()?;
    }
    let mut workplace = Workplace::open(options)?;
    let ids: Vec<ServerId> = match &command.id {
        Some(id) => vec![id.clone()],
        None => workplace.store.servers()?.into_iter().map(|server| server.id).collect(),
    };
    let at = now();
    let (mut servers, mut confined) = (Vec::new(), Vec::new());
    for id in ids {
        let judged = workplace.review(&id, at)?;
        let stopped = Stopped::of(&workplace, &id, at);
        if !stopped.is_empty() {
            confined.push((id.clone(), stopped));
        }
        if judged.waiting().next().is_some() || !judged.judgement.unreadable.is_empty() {
            servers.push((id, judged));
        }
    }
    let is_held = servers.iter().any(|(_, judged)| {
        judged.judgement.verdict.is_held() || judged.status() == ServerStatus::Pending
    });
    let usage = Usage::read(&workplace)?;
    let others = Others::read(&workplace);
    let text = server_text::on_standard_output(command.text.server_text);
    if options.json {
        print(&servers, &confined, &usage, &others, text)?;
    } else if servers.is_empty() && confined.is_empty() {
        screen::say("nothing is waiting for you");
    } else if command.interactive && !servers.is_empty() {
        return walk::walk(&mut workplace, &servers, &usage, &others);
    } else {
        paged(!command.pager.no_pager, || {
            for (id, judged) in &servers {
                show_server(id, judged, &usage, &others, text);
            }
            confined.iter().for_each(|(id, stopped)| stopped.show(id));
        });
    }
    Ok(if is_held { Exit::Held } else { Exit::Fine })
}

fn print(
    servers: &[(ServerId, Review)],
    confined: &[(ServerId, Stopped)],
    usage: &Usage,
    others: &Others,
    text: ServerText,
) -> Result<(), Failure> {
    let documents: Vec<_> = servers
        .iter()
        .map(|(id, judged)| {
            let entries: Vec<_> =
                judged.waiting().map(|entry| {
                    let mut document = waiting_document(id, judged, entry, usage, text);
                    if let (Some(others), Some(members)) =
                        (others.document(entry, text), document.as_object_mut())
                    {
                        members.insert("others".to_owned(), others);
                    }
                    document
                }).collect();
            let unreadable = judged.judgement.unreadable.iter();
            let unreadable: Vec<_> = unreadable.map(|words| text.unreadable(words)).collect();
            serde_json::json!({
                "server": id,
                "status": judged.status(),
                "shared_with": judged.server.siblings,
                "surface_hash": judged.surface.as_ref().map(contract::surface::Surface::surface_hash),
                "unreadable": unreadable,
                "waiting": entries,
            })
        })
        .collect();
    let sandbox: Vec<_> = confined
        .iter()
        .map(|(id, stopped)| serde_json::json!({ "server": id, "stopped": stopped.document() }))
        .collect();
    screen::print_json(&serde_json::json!({ "servers": documents, "sandbox": sandbox }))
}

fn waiting_document(
    id: &ServerId,
    judged: &Review,
    entry: &Judgement,
    usage: &Usage,
    text: ServerText,
) -> serde_json::Value {
    let printable = Printable::new(entry, text);
    let mut document = serde_json::json!({
        "entry": EntryDocument::of(entry, text),
        "before": printable.before().map(contract::surface::Entry::raw),
        "after": printable.after().map(contract::surface::Entry::raw),
        "usage": usage.of(id, entry),
        "stopped": usage.stopped(id, judged, entry),
    });
    if let (Some(withheld), Some(members)) = (printable.withheld(), document.as_object_mut()) {
        members.insert("withheld".to_owned(), serde_json::json!(withheld));
    }
    document
}

fn show_server(id: &ServerId, judged: &Review, usage: &Usage, others: &Others, text: ServerText) {
    let shared = Shared::of(judged, text);
    summary::show(id, judged, &shared, text);
    let total = judged.waiting().count();
    for (place, entry) in judged.waiting().enumerate() {
        let mut paragraph = Paragraph::new(entry, text);
        paragraph.shared = Some(&shared);
        paragraph.usage = usage.of(id, entry);
        paragraph.stopped = usage.stopped(id, judged, entry);
        paragraph.others = others.lines(entry, text);
        paragraph.holds_no_call = holds_no_call(judged, entry);
        paragraph.place = Some((place + 1, total));
        screen::say("");
        paragraph.show();
        // The first approval always covers everything that the server says.
        let is_quarantined = judged.status() == ServerStatus::Quarantined;
        let is_one_of_all = judged.awaits_first_approval() || is_quarantined;
        let hash = hash_of(entry).filter(|_| entry.can_be_approved() && !is_one_of_all);
        if let Some(hash) = hash {
            say_command("approve it:     ", &approve_words(id, key_word(entry, text), &hash));
        }
    }
    screen::say("");
    if text == ServerText::Located {
        screen::say(styled(DIM, format!("({HOW_TO_SEE})")));
    }
    if judged.status() == ServerStatus::Quarantined {
        say_quarantined(id);
        return;
    }
    if let Some(hash) = judged.surface_hash()
        && judged.waiting().any(Judgement::can_be_approved)
    {
        say_command("approve all:    ", &approve_words(id, None, &hash));
    }
    say_command("stop the server:", &words(&["holdpoint", "quarantine", id.as_str()]));
}

/// Whether calls are decided one by one and the change affects no valid call.
fn holds_no_call(judged: &Review, entry: &Judgement) -> bool {
    match judged.reach(entry) {
        Some(CallReach::Parameters(reached)) => reached.is_empty(),
        Some(CallReach::Every) | None => false,
    }
}

fn say_heading(id: &ServerId, judged: &Review) {
    screen::say(styled(BOLD, format!("━━ {id} ━━")));
    if let Some(sentence) = sharing::counts_for(&judged.server.siblings) {
        screen::say(styled(DIM, sentence));
    }
}

/// Says that nothing of a quarantined server can be approved before its release.
fn say_quarantined(id: &ServerId) {
    screen::say("quarantined: it is not served, and nothing can be approved before its release");
    say_command("release it:     ", &words(&["holdpoint", "release", id.as_str()]));
}

fn say_command(label: &str, words: &[String]) {
    screen::say_command(label, words);
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn approve_words(
    id: &ServerId,
    key: Option<String>,
    hash: &engine::acts::ReviewedHash,
) -> Vec<String> {
    let mut typed = words(&["holdpoint", "approve", id.as_str()]);
    typed.extend(key);
    // Push both as one word, so that a wrapped command is not broken between them.
    typed.push(format!("--hash {hash}"));
    typed
}

/// The entry's name as a word of a command. Returns `None` for a name that cannot be shown
/// unescaped or is very long: the hash alone identifies the entry.
fn key_word(entry: &Judgement, text: ServerText) -> Option<String> {
    let key = &entry.id.key;
    let is_shown = screen::name(key) == *key && text.name(key, entry.before.is_some()) == *key;
    is_shown.then(|| shell::word(&format!("{}:{key}", entry.id.entry_type)).to_string())
}
