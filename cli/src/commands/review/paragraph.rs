//! Prints one waiting change: its name, its findings, how often it was used, before and after.

use super::summary::Shared;
use super::usage::{ParameterUsage, StoppedCalls};
use crate::report::{self, gravest_first, name_of};
use crate::screen::{self, BOLD, DIM, styled};
use crate::server_text::{Printable, ServerText};
use crate::side_by_side;
use contract::change::{ChangeKind, Finding};
use contract::surface::EntryType;
use gate::judge::Judgement;

pub(super) struct Paragraph<'a> {
    printable: Printable<'a>,
    text: ServerText,
    /// Findings that the summary already reported for several entries.
    pub(super) shared: Option<&'a Shared>,
    pub(super) usage: Vec<ParameterUsage>,
    pub(super) stopped: Option<StoppedCalls>,
    /// Outside opinions on the change.
    pub(super) others: Vec<String>,
    /// Whether calls are decided one by one and the change affects no valid call.
    pub(super) holds_no_call: bool,
    /// The position of this change, and the number of changes.
    pub(super) place: Option<(usize, usize)>,
}

/// Prints one change in full, for the person who decides on it.
pub(crate) fn show_change(entry: &Judgement, text: ServerText) {
    Paragraph::new(entry, text).show();
}

impl<'a> Paragraph<'a> {
    pub(super) fn new(entry: &'a Judgement, text: ServerText) -> Paragraph<'a> {
        let printable = Printable::new(entry, text);
        let (usage, holds_no_call) = (Vec::new(), false);
        Paragraph {
            printable,
            text,
            shared: None,
            usage,
            stopped: None,
            others: Vec::new(),
            holds_no_call,
            place: None,
        }
    }

    pub(super) fn show(&self) {
        let entry = self.printable.judgement;
        let place = match self.place {
            Some((place, total)) if total > 1 => styled(DIM, format!("  ({place} of {total})")),
            _ => String::new(),
        };
        let name = styled(BOLD, name_of(entry, self.text));
        let state = report::state_of(entry);
        let heading = format!("{state}  {} {name}{place}", entry.id.entry_type);
        if let Some(gone) = self.gone() {
            let kind = styled(DIM, format!("[{}]", gone.kind));
            screen::say(format!("{heading} {} {kind}", self.printable.say(gone)));
        } else {
            screen::say(heading);
            self.show_findings();
        }
        if entry.is_by_the_call {
            let words = if self.holds_no_call { report::NO_CALL } else { report::BY_THE_CALL };
            screen::say(format!("  • {words}"));
        }
        if let Some(stopped) = &self.stopped {
            screen::say(format!("  • {}", stopped.words()));
        }
        for used in &self.usage {
            screen::say(format!("  • {}", used.words()));
        }
        for line in &self.others {
            screen::say(format!("  • {line}"));
        }
        if self.gone().is_none() {
            self.show_sides();
        }
    }

    /// The only finding of an entry that was removed: there is nothing to compare.
    fn gone(&self) -> Option<&'a Finding> {
        let entry = self.printable.judgement;
        let [only] = entry.findings.as_slice() else { return None };
        let is_gone = entry.after.is_none() && entry.before.is_some();
        (is_gone && self.printable.details().next().is_none()).then_some(only)
    }

    fn show_findings(&self) {
        let entry = self.printable.judgement;
        let is_new = is_about_server(entry) && entry.before.is_none() && !entry.findings.is_empty();
        if is_new {
            screen::say("  • not approved yet");
        }
        let mut told_above = 0_usize;
        for finding in gravest_first(&entry.findings) {
            // The other findings describe differences from before, and a new entry has no earlier
            // version.
            if is_new && finding.kind != ChangeKind::MarkerFound {
                continue;
            }
            if self.shared.is_some_and(|shared| shared.has(&self.printable, finding)) {
                told_above += 1;
            } else {
                self.show_finding(finding);
            }
        }
        if told_above > 0 {
            let findings = report::count(told_above, "finding", "findings");
            screen::say(styled(
                DIM,
                format!("  • {findings} listed above, shared with other entries"),
            ));
        }
        for detail in self.printable.details() {
            screen::say(format!("  • {}", screen::readable(&detail)));
        }
    }

    fn show_finding(&self, finding: &Finding) {
        let path = self.printable.path(finding);
        let kind = format!("[{}] {}", finding.kind, screen::readable(&path));
        let kind = styled(DIM, kind.trim_end());
        screen::say(format!("  • {} {kind}", self.printable.say(finding)));
        if finding.kind != ChangeKind::MarkerFound {
            return;
        }
        match (self.printable.after_of(finding), self.printable.withheld_of(finding)) {
            (Some(rule), Some(withheld)) => {
                screen::say(format!("      {rule}: {}", withheld.words()));
            }
            (Some(found), None) => screen::say(format!("      {}", screen::readable(found))),
            (None, _) => {}
        }
    }

    fn show_sides(&self) {
        match self.printable.withheld() {
            Some(withheld) => {
                screen::say(format!("  • the new definition: {}", withheld.words()));
            }
            None => {
                let (before, after) = (self.printable.before(), self.printable.after());
                side_by_side::show(before, after, ["before (approved)", "now"]);
            }
        }
    }
}

/// Whether an entry belongs to the server as a whole. Such an entry always exists and cannot be
/// added.
fn is_about_server(entry: &Judgement) -> bool {
    match entry.id.entry_type {
        EntryType::Instructions | EntryType::Identity | EntryType::Origin => true,
        EntryType::Tool | EntryType::Prompt | EntryType::Resource | EntryType::Template => false,
    }
}
