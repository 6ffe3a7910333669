//! `review -i`: goes through the waiting changes one by one. No single key changes anything: an
//! approval and a quarantine are each confirmed by a whole word.

use super::others::Others;
use super::paragraph::Paragraph;
use super::usage::Usage;
use crate::approver;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::report::name_of;
use crate::screen;
use crate::server_text::ServerText;
use crate::sharing;
use crate::target::Workplace;
use contract::surface::EntryId;
use engine::acts::{Review, ReviewedHash, Shared, approve, hash_of, quarantine};
use gate::judge::Judgement;
use gate::server::{ServerId, ServerStatus};

/// The text that `?` prints.
const HELP: [&str; 5] = [
    "a           approve what is shown; you are asked to type `approve` before anything is written",
    "s           skip it: it stays waiting",
    "q           quit: undecided changes stay waiting",
    "quarantine  the whole word stops the server until it is released",
    "?           this help",
];

pub(super) fn walk(
    workplace: &mut Workplace,
    servers: &[(ServerId, Review)],
    usage: &Usage,
    others: &Others,
) -> Result<Exit, Failure> {
    let mut left = 0_usize;
    let is_asked = |judged: &Review| judged.status() != ServerStatus::Quarantined;
    let asked = servers.iter().filter(|(_, judged)| is_asked(judged));
    let total: usize = asked.map(|(_, judged)| questions(judged).len()).sum();
    let mut place = 0_usize;
    let mut failed = Exit::Fine;
    for (id, judged) in servers {
        super::say_heading(id, judged);
        for unreadable in &judged.judgement.unreadable {
            screen::say(screen::readable(unreadable));
            left += 1;
        }
        if !is_asked(judged) {
            super::say_quarantined(id);
            left += 1;
            continue;
        }
        for asked in questions(judged) {
            place += 1;
            for entry in &asked.entries {
                let mut paragraph = Paragraph::new(entry, ServerText::Shown);
                paragraph.usage = usage.of(id, entry);
                paragraph.stopped = usage.stopped(id, judged, entry);
                paragraph.others = others.lines(entry, ServerText::Shown);
                paragraph.holds_no_call = super::holds_no_call(judged, entry);
                paragraph.show();
            }
            match choose(&asked, place, total)? {
                Chosen::Approve => match approve_asked(workplace, id, &asked)? {
                    Approval::Given(shared) => {
                        screen::say("approved");
                        sharing::say(&shared);
                        failed = sharing::exit(shared, failed);
                    }
                    Approval::Withheld => {
                        screen::say("not approved: it stays waiting");
                        left += 1;
                    }
                },
                Chosen::Skip => left += 1,
                Chosen::Quarantine => {
                    let by = approver::name();
                    let (store, configured) = workplace.acting();
                    let by = approver::by(&by);
                    let stopped = quarantine(store, id, Some(judged), &configured, by)?;
                    screen::say("quarantined");
                    sharing::say(&stopped.shared);
                    failed = sharing::exit(stopped.shared, failed);
                    left += 1;
                    break;
                }
                Chosen::Quit => return Ok(Exit::Held),
            }
        }
    }
    Ok(if left > 0 && failed == Exit::Fine { Exit::Held } else { failed })
}

/// The user's choice about the change that is shown.
enum Chosen {
    Approve,
    Skip,
    Quarantine,
    Quit,
}

/// Asks until the answer is one of the choices. A quarantine needs the whole word; `q` quits, as in
/// a pager.
fn choose(asked: &Asked<'_>, place: usize, total: usize) -> Result<Chosen, Failure> {
    let all = if asked.is_first { " all of it" } else { "" };
    loop {
        screen::ask(format!("{place} of {total}: [a]pprove{all}, [s]kip, [q]uit, [?] help: "));
        match approver::read_line()?.to_ascii_lowercase().as_str() {
            "a" | "approve" => return Ok(Chosen::Approve),
            "s" | "skip" => return Ok(Chosen::Skip),
            "quarantine" => return Ok(Chosen::Quarantine),
            // At the end of the input, the line is empty as well.
            "q" | "quit" | "" => return Ok(Chosen::Quit),
            "?" | "h" | "help" => HELP.iter().for_each(|line| screen::remark(format!("  {line}"))),
            _ => screen::remark("type `a`, `s`, `q`, `?` or `quarantine`"),
        }
    }
}

/// The changes that one answer decides on.
struct Asked<'a> {
    entries: Vec<&'a Judgement>,
    hash: ReviewedHash,
    /// Whether this is the server's first approval, which covers everything it says.
    is_first: bool,
}

fn questions(judged: &Review) -> Vec<Asked<'_>> {
    let waiting = judged.waiting().filter(|entry| entry.can_be_approved());
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

/// The outcome of a confirmation.
enum Approval {
    Given(Vec<Shared>),
    Withheld,
}

fn approve_asked(
    workplace: &mut Workplace,
    id: &ServerId,
    asked: &Asked<'_>,
) -> Result<Approval, Failure> {
    let review = workplace.review(id, now())?;
    let shown: Vec<EntryId> = asked.entries.iter().map(|entry| entry.id.clone()).collect();
    // The server may have changed meanwhile: approve only what was shown.
    let choice = review.choose_shown(&shown, &asked.hash)?;
    let hash = &asked.hash;
    let what = match asked.entries.as_slice() {
        [one] => {
            let name = name_of(one, ServerText::Shown);
            format!("This is {name} of server `{id}`, hash {hash}.")
        }
        many => format!("These are {} entries of server `{id}`, hash {hash}.", many.len()),
    };
    let what = sharing::decided_on(what, &review.server.siblings);
    // The change was shown right before the question.
    match approver::confirm(&workplace.configuration, &what, || ()) {
        Ok(()) => {}
        Err(failure) if failure.exit == Exit::Held => return Ok(Approval::Withheld),
        Err(failure) => return Err(failure),
    }
    let by = approver::name();
    let (store, configured) = workplace.acting();
    let decided = approve(store, &choice, &configured, approver::by(&by))?;
    Ok(Approval::Given(decided.shared))
}
