//! `holdpoint review`: what changed, before and after, with the commands to act; `-i` walks through it.

use crate::approver;
use crate::arguments::{Options, ReviewCommand};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::report::{self, EntryDocument, gravest_first, name_of};
use crate::screen::{self, BOLD, DIM, styled};
use crate::side_by_side;
use crate::target::Workplace;
use contract::surface::{EntryId, EntryType};
use engine::acts::{Review, ReviewedHash, approve, can_be_approved, hash_of, quarantine};
use gate::judge::Judgement;
use gate::server::{ServerId, ServerStatus};
use gate::shell;
use gate::words::{self, Audience};
use store::Store;
use usage::Usage;

mod usage;

pub(crate) fn run(command: &ReviewCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open(options)?;
    let ids: Vec<ServerId> = match &command.id {
        Some(id) => vec![id.clone()],
        None => workplace.store.servers()?.into_iter().map(|server| server.id).collect(),
    };
    let at = now();
    let mut servers = Vec::new();
    for id in ids {
        let judged = workplace.review(&id, at)?;
        if judged.waiting().next().is_some() || !judged.judgement.unreadable.is_empty() {
            servers.push((id, judged));
        }
    }
    let is_held = servers.iter().any(|(_, judged)| {
        judged.judgement.verdict.is_held() || judged.status() == ServerStatus::Pending
    });
    let usage = Usage::read(&workplace)?;
    if options.json {
        print(&servers, &usage)?;
    } else if servers.is_empty() {
        screen::say("nothing is waiting for you");
    } else if command.interactive {
        return walk(&mut workplace, &servers, &usage);
    } else {
        for (id, judged) in &servers {
            show_server(id, judged, &usage);
        }
    }
    Ok(if is_held { Exit::Held } else { Exit::Fine })
}

fn print(servers: &[(ServerId, Review)], usage: &Usage) -> Result<(), Failure> {
    let documents: Vec<_> = servers
        .iter()
        .map(|(id, judged)| {
            let entries: Vec<_> = judged.waiting()
                .map(|entry| {
                    serde_json::json!({
                        "entry": EntryDocument::of(entry),
                        "before": entry.before.as_ref().map(contract::surface::Entry::raw),
                        "after": entry.after.as_ref().map(contract::surface::Entry::raw),
                        "usage": usage.of(id, entry),
                    })
                })
                .collect();
            serde_json::json!({
                "server": id,
                "status": judged.status(),
                "surface_hash": judged.surface.as_ref().map(contract::surface::Surface::surface_hash),
                "unreadable": judged.judgement.unreadable,
                "waiting": entries,
            })
        })
        .collect();
    screen::print_json(&serde_json::json!({ "servers": documents }))
}

fn show_server(id: &ServerId, judged: &Review, usage: &Usage) {
    screen::say(styled(BOLD, format!("━━ {id} ━━")));
    for unreadable in &judged.judgement.unreadable {
        screen::say(format!(
            "{}  {}",
            screen::verdict(judged.judgement.verdict),
            screen::readable(unreadable)
        ));
    }
    for entry in judged.waiting() {
        show_entry(id, entry, usage);
        // A first approval is of all that the server says.
        let is_quarantined = judged.status() == ServerStatus::Quarantined;
        let is_one_of_all = judged.awaits_first_approval() || is_quarantined;
        let hash = hash_of(entry).filter(|_| can_be_approved(entry) && !is_one_of_all);
        if let Some(hash) = hash {
            let words =
                format!("approve it:      holdpoint approve {id}{} --hash {hash}", key_word(entry));
            screen::say(styled(DIM, words));
        }
        screen::say("");
    }
    if judged.status() == ServerStatus::Quarantined {
        say_quarantined(id);
        return;
    }
    if let Some(hash) = judged.surface_hash()
        && judged.waiting().any(can_be_approved)
    {
        let words = format!("approve all:     holdpoint approve {id} --hash {hash}");
        screen::say(styled(DIM, words));
    }
    screen::say(styled(DIM, format!("stop the server: holdpoint quarantine {id}")));
}

/// Nothing of a quarantined server can be approved before it is released.
fn say_quarantined(id: &ServerId) {
    screen::say("quarantined: it is not served, and nothing can be approved before its release");
    screen::say(styled(DIM, format!("release it:      holdpoint release {id}")));
}

/// One change in full: what it is called, the findings, before and after.
pub(crate) fn show_change(entry: &Judgement) {
    show_findings(entry);
    side_by_side::show(entry.before.as_ref(), entry.after.as_ref());
}

fn show_entry(id: &ServerId, entry: &Judgement, usage: &Usage) {
    show_findings(entry);
    for used in usage.of(id, entry) {
        screen::say(format!("  • {}", used.words()));
    }
    side_by_side::show(entry.before.as_ref(), entry.after.as_ref());
}

fn show_findings(entry: &Judgement) {
    let state = report::state_of(entry);
    screen::say(format!("{state}  {} {}", entry.id.entry_type, styled(BOLD, name_of(entry))));
    let is_new = is_about_server(entry) && entry.before.is_none() && !entry.findings.is_empty();
    if is_new {
        screen::say("  • not approved yet");
    }
    for finding in gravest_first(&entry.findings) {
        // The others say what is another than before, and there is no before.
        if is_new && finding.kind != contract::change::ChangeKind::MarkerFound {
            continue;
        }
        let kind = styled(DIM, format!("[{}] {}", finding.kind, screen::readable(&finding.path)));
        screen::say(format!("  • {} {kind}", words::say(finding, Audience::Person)));
        if finding.kind == contract::change::ChangeKind::MarkerFound
            && let Some(found) = &finding.after
        {
            screen::say(format!("      {}", screen::readable(found)));
        }
    }
    for detail in entry.detail.iter().chain(&entry.not_inert) {
        screen::say(format!("  • {}", screen::readable(detail)));
    }
}

/// Whether it is about the server as a whole, which has one of it and cannot have it added.
fn is_about_server(entry: &Judgement) -> bool {
    match entry.id.entry_type {
        EntryType::Instructions | EntryType::Identity | EntryType::Origin => true,
        EntryType::Tool | EntryType::Prompt | EntryType::Resource | EntryType::Template => false,
    }
}

/// Goes through what waits one by one.
fn walk(
    workplace: &mut Workplace,
    servers: &[(ServerId, Review)],
    usage: &Usage,
) -> Result<Exit, Failure> {
    let mut left = 0_usize;
    for (id, judged) in servers {
        screen::say(styled(BOLD, format!("━━ {id} ━━")));
        for unreadable in &judged.judgement.unreadable {
            screen::say(screen::readable(unreadable));
            left += 1;
        }
        if judged.status() == ServerStatus::Quarantined {
            say_quarantined(id);
            left += 1;
            continue;
        }
        for asked in questions(judged) {
            asked.entries.iter().for_each(|entry| show_entry(id, entry, usage));
            match choose(asked.is_first)? {
                Chosen::Approve => {
                    approve_asked(workplace, id, &asked)?;
                    screen::say("approved");
                }
                Chosen::Skip => left += 1,
                Chosen::Quarantine => {
                    let by = approver::name();
                    quarantine(&mut workplace.store, id, approver::by(&by))?;
                    screen::say("quarantined");
                    left += 1;
                    break;
                }
                Chosen::Quit => return Ok(Exit::Held),
            }
        }
    }
    Ok(if left > 0 { Exit::Held } else { Exit::Fine })
}

/// What a person wants to do with what was shown.
enum Chosen {
    Approve,
    Skip,
    Quarantine,
    Quit,
}

/// Asks until the answer is one of those that were offered. A server is stopped by the whole word alone: `q` quits, as it
/// does in a pager.
fn choose(is_first: bool) -> Result<Chosen, Failure> {
    let all = if is_first { " all of it" } else { "" };
    loop {
        screen::ask(format!(
            "[a]pprove{all}, [s]kip, [q]uit, or type `quarantine` to stop the server: "
        ));
        match approver::read_line()?.to_ascii_lowercase().as_str() {
            "a" | "approve" => return Ok(Chosen::Approve),
            "s" | "skip" => return Ok(Chosen::Skip),
            "quarantine" => return Ok(Chosen::Quarantine),
            // The end of the input is an empty line, too.
            "q" | "quit" | "" => return Ok(Chosen::Quit),
            _ => screen::remark("type `a`, `s`, `q` or `quarantine`"),
        }
    }
}

/// What is decided on at once.
struct Asked<'a> {
    entries: Vec<&'a Judgement>,
    hash: ReviewedHash,
    /// It is the server's first approval, which is of all that it says.
    is_first: bool,
}

fn questions(judged: &Review) -> Vec<Asked<'_>> {
    let waiting = judged.waiting().filter(|entry| can_be_approved(entry));
    if !judged.awaits_first_approval() {
        let asked = waiting.filter_map(|entry| {
            Some(Asked { hash: hash_of(entry)?, entries: vec![entry], is_first: false })
        });
        return asked.collect();
    }
    let entries: Vec<&Judgement> = waiting.collect();
    let asked = judged.surface_hash().filter(|_| !entries.is_empty());
    asked.map(|hash| Asked { entries, hash, is_first: true }).into_iter().collect()
}

fn approve_asked(
    workplace: &mut Workplace,
    id: &ServerId,
    asked: &Asked<'_>,
) -> Result<(), Failure> {
    let review = workplace.review(id, now())?;
    let shown: Vec<EntryId> = asked.entries.iter().map(|entry| entry.id.clone()).collect();
    // The server goes on meanwhile: only what was shown is approved.
    let choice = review.choose_shown(&shown, &asked.hash)?;
    let what = match asked.entries.as_slice() {
        [one] => format!("This is {} of server `{id}`, hash {}.", name_of(one), asked.hash),
        many => format!("These are {} entries of server `{id}`, hash {}.", many.len(), asked.hash),
    };
    // It was shown right before the question.
    approver::confirm(&workplace.configuration, &what, || ())?;
    let by = approver::name();
    approve(&mut workplace.store, &choice, approver::by(&by))?;
    Ok(())
}

/// The entry's name as a word of a command. A name that cannot be shown as it is, or is very long, is left out: the
/// hash alone names the entry.
fn key_word(entry: &Judgement) -> String {
    let key = &entry.id.key;
    if screen::name(key) != *key {
        return String::new();
    }
    format!(" {}", shell::word(&format!("{}:{key}", entry.id.entry_type)))
}
