//! Summarizes a server's waiting changes: how many entries, which kinds of change, the change of
//! version, and findings that several entries share.

use crate::report::{count, name_of};
use crate::screen::{self, BOLD, DIM, styled};
use crate::server_text::{Printable, ServerText};
use contract::change::{ChangeClass, ChangeKind, Finding};
use contract::surface::{Entry, EntryId, EntryType};
use engine::acts::Review;
use gate::judge::Judgement;
use gate::pins::EntryPins;
use gate::server::ServerId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The most entries that a shared line names.
const MAX_NAMED: usize = 8;

/// The findings that at least two entries share, by kind and sentence, each with its entries.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The most severe first.
    findings: BTreeMap<(Reverse<ChangeClass>, ChangeKind, String), Vec<EntryId>>,
}

impl Shared {
    pub(super) fn of(judged: &Review, text: ServerText) -> Shared {
        let mut findings: BTreeMap<_, Vec<EntryId>> = BTreeMap::new();
        for entry in judged.waiting() {
            let printable = Printable::new(entry, text);
            for finding in entry.findings.iter().filter(|finding| may_be_shared(finding)) {
                let entries = findings.entry(key(&printable, finding)).or_default();
                if entries.last() != Some(&entry.id) {
                    entries.push(entry.id.clone());
                }
            }
        }
        findings.retain(|_, entries| entries.len() > 1);
        Shared { findings }
    }

    /// Whether the summary reported this finding.
    pub(super) fn has(&self, entry: &Printable<'_>, finding: &Finding) -> bool {
        may_be_shared(finding) && self.findings.contains_key(&key(entry, finding))
    }
}

fn key(entry: &Printable<'_>, finding: &Finding) -> (Reverse<ChangeClass>, ChangeKind, String) {
    (Reverse(finding.class), finding.kind, entry.say(finding))
}

/// Markers are not shared: each is shown with the text it is in.
fn may_be_shared(finding: &Finding) -> bool {
    finding.kind != ChangeKind::MarkerFound
}

pub(super) fn show(id: &ServerId, judged: &Review, shared: &Shared, text: ServerText) {
    super::say_heading(id, judged);
    for unreadable in &judged.judgement.unreadable {
        let words = text.unreadable(unreadable);
        let verdict = screen::verdict(judged.judgement.verdict);
        screen::say(format!("{verdict}  {}", screen::readable(&words)));
    }
    let waiting: Vec<&Judgement> = judged.waiting().collect();
    if waiting.is_empty() {
        return;
    }
    let held = waiting.iter().filter(|entry| entry.verdict.is_held()).count();
    let deferred = waiting.iter().filter(|entry| entry.is_deferred).count();
    let parts = [(held, "held"), (deferred, "deferred")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let states = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let what = entries_in_words(waiting.iter().map(|entry| entry.id.entry_type));
    screen::say(format!(
        "{}{states}.{}",
        styled(BOLD, format!("{what} changed")),
        versions(judged, text)
    ));
    let kinds = kinds(&waiting);
    if !kinds.is_empty() {
        screen::say(styled(DIM, format!("  kinds: {}", kinds.join(", "))));
    }
    let mut named: Option<&Vec<EntryId>> = None;
    for ((_, kind, sentence), entries) in &shared.findings {
        let told = shared_in_words(&waiting, entries, *kind, sentence, text);
        screen::say(format!("  • {told} {}", styled(DIM, format!("[{kind}]"))));
        // Do not repeat the names of the previous line, and do not name all entries.
        if named == Some(entries) || entries.len() == waiting.len() {
            continue;
        }
        named = Some(entries);
        let names = waiting.iter().filter(|entry| entries.contains(&entry.id));
        let mut names: Vec<String> = names.map(|entry| name_of(entry, text)).collect();
        let more = names.len().saturating_sub(MAX_NAMED);
        names.truncate(MAX_NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        screen::say(styled(DIM, format!("      {}{more}", names.join(", "))));
    }
}

/// A finding that several entries share, in the words of the first entry.
fn shared_in_words(
    waiting: &[&Judgement],
    entries: &[EntryId],
    kind: ChangeKind,
    sentence: &str,
    text: ServerText,
) -> String {
    let what = entries_in_words(entries.iter().map(|entry| entry.entry_type));
    let first = waiting.iter().find(|entry| entries.first() == Some(&entry.id));
    let told = first.and_then(|entry| {
        let printable = Printable::new(entry, text);
        let is_it = |finding: &&Finding| finding.kind == kind && printable.say(finding) == sentence;
        let finding = entry.findings.iter().find(is_it)?;
        Some(printable.say_of_several(&what, finding))
    });
    told.unwrap_or_else(|| format!("{what}: {sentence}"))
}

/// How many tools, prompts and so on.
fn entries_in_words(types: impl Iterator<Item = EntryType>) -> String {
    let mut counts: BTreeMap<EntryType, usize> = BTreeMap::new();
    types.for_each(|entry_type| *counts.entry(entry_type).or_default() += 1);
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(entry_type, number)| match entry_type {
            EntryType::Tool => count(number, "tool", "tools"),
            EntryType::Prompt => count(number, "prompt", "prompts"),
            EntryType::Resource => count(number, "resource", "resources"),
            EntryType::Template => count(number, "resource template", "resource templates"),
            EntryType::Instructions => "the instructions".to_owned(),
            EntryType::Identity => "the identity".to_owned(),
            EntryType::Origin => "the origin".to_owned(),
        })
        .collect();
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The kinds of change, the most frequent first.
fn kinds(waiting: &[&Judgement]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in waiting.iter().flat_map(|entry| &entry.findings) {
        *counts.entry(finding.kind.as_str()).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    counts
        .into_iter()
        .map(|(kind, number)| match number {
            1 => kind.to_owned(),
            _ => format!("{kind} ×{number}"),
        })
        .collect()
}

/// The version at approval and the current version, according to the origin or the server.
fn versions(judged: &Review, text: ServerText) -> String {
    let id = EntryId::only(EntryType::Origin);
    let version = |origin: &Entry| {
        let document = origin.document().ok()?;
        Some(document.root().get("version")?.as_str()?.into_owned())
    };
    let pins = judged.server.pins().get(&id);
    let before = pins.and_then(EntryPins::approved).and_then(|pin| version(&pin.entry));
    let surface = judged.surface.as_ref();
    let now = surface.and_then(|surface| surface.entry(&id)).and_then(version);
    let now = now.or_else(|| surface.and_then(|surface| surface.server_version.clone()));
    let shown = |version: &Option<String>| {
        version.as_deref().and_then(|version| text.version(version)).map(screen::name)
    };
    match (shown(&before), shown(&now)) {
        (Some(before), Some(now)) if before != now => format!(" Version {before} → {now}."),
        (_, Some(now)) => format!(" Version {now}."),
        (_, None) => String::new(),
    }
}
