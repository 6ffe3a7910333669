//! Changes in the words that commands print; the JSON form is in `engine`.

use crate::screen::{self, BOLD, CYAN, DIM, styled};
use crate::server_text::{HOW_TO_SEE, Printable, ServerText};
use crate::side_by_side::folded;
use contract::change::Finding;
use contract::surface::EntryType;
use gate::judge::{Judgement, SurfaceJudgement};
use gate::reason::Reason;
use gate::verdict::Verdict;
use gate::words::{self, Audience};

pub(crate) use engine::document::{CallDocument, EntryDocument, ObservedTool, VerdictDocument};

/// An entry's name as shown to a person.
pub(crate) fn name_of(judgement: &Judgement, text: ServerText) -> String {
    let (id, is_accepted) = (&judgement.id, judgement.before.is_some());
    let key = text.name(&id.key, is_accepted);
    screen::name(&words::entry_name(id.entry_type, &key, is_accepted, Audience::Person))
}

/// The state of an entry, in one word.
pub(crate) fn state_of(entry: &Judgement) -> String {
    match (entry.verdict, entry.is_deferred, entry.is_accepted) {
        (Verdict::Proceed, true, _) => styled(CYAN.bold(), "DEFERRED"),
        (Verdict::Proceed, false, true) => styled(screen::GREEN.bold(), "BENIGN"),
        (Verdict::Proceed, false, false) => styled(DIM, "NOTED"),
        (held, ..) => screen::verdict(held),
    }
}

/// Prints the findings, one paragraph per entry, the most severe first.
pub(crate) fn say_entries(judgement: &SurfaceJudgement, text: ServerText) {
    let mut entries: Vec<&Judgement> = judgement.entries.iter().collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.verdict));
    let lost = with_one_reason(&entries);
    if let Some(reason) = lost {
        let held = count(entries.len(), "entry", "entries");
        screen::say(format!("{}  {}", screen::verdict(judgement.verdict), styled(BOLD, held)));
        screen::say(format!("    {}", screen::readable(reason)));
    }
    let mut is_located = false;
    for entry in entries.into_iter().filter(|_| lost.is_none()) {
        let printable = Printable::new(entry, text);
        is_located |= printable.withheld().is_some();
        say_entry(&printable, &state_of(entry), text);
    }
    for unreadable in &judgement.unreadable {
        screen::say(format!(
            "{}  {}",
            screen::verdict(judgement.verdict),
            screen::readable(&text.unreadable(unreadable))
        ));
        is_located |= text == ServerText::Located;
    }
    if is_located {
        screen::say(styled(DIM, format!("({HOW_TO_SEE})")));
    }
}

/// The shared reason if all entries are held because the whole baseline is lost: it is printed
/// once.
fn with_one_reason<'j>(entries: &[&'j Judgement]) -> Option<&'j str> {
    let reason = entries.first()?.detail.as_deref()?;
    let is_lost = |entry: &&Judgement| {
        entry.reason == Some(Reason::BaselineLost) && entry.detail.as_deref() == Some(reason)
    };
    (entries.len() > 1 && entries.iter().all(is_lost)).then_some(reason)
}

/// Sorts the findings so that the one that decides comes first.
pub(crate) fn gravest_first(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.class));
    sorted
}

/// The columns before the texts of a change.
const INDENT: usize = 10;

/// What happens to the calls of an entry whose calls are decided one by one.
pub(crate) const BY_THE_CALL: &str =
    "each call is decided on its own: those that the change touches are held";

/// Used in place of [`BY_THE_CALL`] if the change affects no call.
pub(crate) const NO_CALL: &str =
    "no call that is valid under the approved definition and has declared parameters only is held";

fn say_entry(printable: &Printable<'_>, state: &str, text: ServerText) {
    let entry = printable.judgement;
    let kind = match entry.id.entry_type {
        EntryType::Instructions | EntryType::Identity | EntryType::Origin => String::new(),
        other => format!("{other} "),
    };
    screen::say(format!("{state}  {kind}{}", styled(BOLD, name_of(entry, text))));
    for finding in gravest_first(&entry.findings) {
        say_finding(printable, finding);
    }
    if let Some(name) = printable.renamed_to() {
        screen::say(format!(
            "    it may have been renamed to `{}`: the input is the same",
            screen::name(&name)
        ));
    }
    if entry.is_by_the_call {
        screen::say(format!("    {}", styled(DIM, BY_THE_CALL)));
    }
    for words in printable.details() {
        screen::say(format!("    {}", screen::readable(&words)));
    }
}

fn say_finding(printable: &Printable<'_>, finding: &Finding) {
    let kind = styled(DIM, format!("[{}]", finding.kind));
    screen::say(format!("    {} {kind}", printable.say(finding)));
    let show = |label: &str, text: &str| {
        let text = screen::readable(text);
        // A terminal wraps a long line at its first column, where it would look like one of our
        // lines.
        let pieces = match screen::line_columns() {
            Some(columns) => folded(&text, columns.saturating_sub(INDENT)),
            None => vec![text],
        };
        for (place, piece) in pieces.iter().enumerate() {
            let label = if place == 0 { label } else { " " };
            screen::say_fitted(format!("        {label} {piece}"));
        }
    };
    if let Some(before) = printable.before_of(finding) {
        show(&styled(screen::RED, "-"), before);
    }
    let plus = styled(screen::GREEN, "+");
    match (printable.after_of(finding), printable.withheld_of(finding)) {
        (Some(rule), Some(withheld)) => {
            screen::say(format!("        {plus} {rule}: {}", withheld.words()));
        }
        (None, Some(withheld)) => screen::say(format!("        {plus} {}", withheld.words())),
        (Some(after), None) => show(&plus, after),
        (None, None) => {}
    }
}

/// Prints the verdict that each call would get, one line each.
pub(crate) fn say_calls(calls: &[CallDocument]) {
    for (place, call) in calls.iter().enumerate() {
        let verdict = screen::verdict(call.verdict);
        let name = styled(BOLD, screen::name(&call.tool));
        let mut line = format!("{verdict}  call {}: {name}", place + 1);
        let quoted = call.parameters.iter().map(|name| format!("`{}`", screen::readable(name)));
        let quoted: Vec<String> = quoted.collect();
        if !quoted.is_empty() {
            line.push_str(&format!(" because of {}", quoted.join(", ")));
        }
        if !call.kinds.is_empty() {
            line.push_str(&format!(" {}", styled(DIM, format!("[{}]", call.kinds.join(", ")))));
        }
        screen::say(line);
        if let Some(why) = &call.why {
            screen::say(format!("    {why}"));
        }
    }
}

/// A number with its noun.
pub(crate) fn count(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The sentence that sums up the judgement.
pub(crate) fn summary(judgement: &SurfaceJudgement) -> String {
    let held = judgement.held().count();
    let deferred = judgement.entries.iter().filter(|entry| entry.is_deferred).count();
    let accepted = judgement.entries.iter().filter(|entry| entry.is_accepted).count();
    let mut parts = Vec::new();
    for (count, words) in [(held, "held"), (deferred, "deferred"), (accepted, "benign")] {
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    let told = if !judgement.unreadable.is_empty() {
        "a list is invalid or ambiguous".to_owned()
    } else if judgement.entries.is_empty() {
        "nothing changed".to_owned()
    } else if parts.is_empty() {
        format!("{} noted", judgement.entries.len())
    } else {
        parts.join(", ")
    };
    format!(
        "{}  {told} {}",
        screen::verdict(judgement.verdict),
        styled(DIM, format!("(posture {})", judgement.posture))
    )
}
