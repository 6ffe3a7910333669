//! Runs the cases of `conformance/drift` against the gate: the verdict of each posture, what is
//! deferred, and the kinds including markers. Also checks the table of postures against a golden
//! file that a person can review.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[allow(dead_code, reason = "each test that shares it reads another part")]
#[path = "../../contract/tests/conformance/case.rs"]
mod case;

use case::Case;
use contract::change::{ChangeClass, ChangeKind, Finding, Meaning};
use contract::surface::Surface;
use gate::judge::{Judgement, SurfaceJudgement, judge_surface};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Circumstances, Posture, Ruling, Settings};
use gate::time::Timestamp;
use gate::verdict::Verdict;
use std::collections::BTreeSet;
use std::fmt::Write as _;

#[test]
fn each_posture_gives_the_expected_verdict() {
    let complaints: Vec<String> = case::all().iter().flat_map(disagreements).collect();
    assert!(complaints.is_empty(), "{}\n", complaints.join("\n"));
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let all = case::all();
    let find = |place: &str| all.iter().find(|case| case.place == place).expect("the case").clone();
    let mut verdict = find("battery/added_required");
    verdict.verdicts.insert("guard".to_owned(), "PROCEED".to_owned());
    assert_eq!(disagreements(&verdict).len(), 1);
    let mut deferred = find("battery/added_optional");
    deferred.deferred.insert("guard".to_owned(), true);
    assert_eq!(disagreements(&deferred).len(), 1);
    let mut marker = find("battery/marker_input");
    marker.entries.iter_mut().for_each(|entry| entry.kinds.retain(|kind| kind != "marker-found"));
    assert_eq!(disagreements(&marker).len(), Posture::ALL.len());
}

#[test]
fn a_marker_holds_what_never_changed_until_a_person_approved_it() {
    let all = case::all();
    let place = "unchanged/marker_in_what_a_person_approved";
    let case = all.iter().find(|case| case.place == place).expect("the case");
    let (old, new) = case.surfaces();
    let judge = |basis| judge_surface(&pinned(&old, basis), &new, &Settings::default(), 0);
    assert_eq!(judge(Basis::Person).verdict, Verdict::Proceed);
    for basis in [Basis::Attested, Basis::FirstUse, Basis::Auto] {
        let judgement = judge(basis);
        assert_eq!(judgement.verdict, Verdict::Hold, "{basis}");
        let findings = judgement.entries.iter().flat_map(|entry| &entry.findings);
        assert!(findings.into_iter().any(|finding| finding.kind == ChangeKind::MarkerFound));
    }
}

#[test]
fn an_entry_that_proceeds_is_accepted_or_waits_or_is_noted() {
    for case in case::all() {
        let judgement = judge(&case, Posture::Guard);
        for entry in judgement.entries.iter().filter(|entry| entry.after.is_some()) {
            let is_accounted_for = [entry.verdict.is_held(), entry.is_deferred, entry.is_accepted];
            let count = is_accounted_for.into_iter().filter(|fact| *fact).count();
            assert_eq!(count, 1, "{} {}", case.place, entry.id);
        }
    }
}

#[test]
fn the_table_of_postures_is_the_one_that_was_reviewed() {
    let path = case::root().join("posture_by_kind.golden");
    let table = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &table).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file").replace("\r\n", "\n");
    assert_eq!(golden, table, "if the change is meant, refresh it with UPDATE_GOLDEN=1");
}

/// Where the gate differs from what a case expects, one line each.
fn disagreements(case: &Case) -> Vec<String> {
    let mut complaints = Vec::new();
    for posture in Posture::ALL {
        let judgement = judge(case, posture);
        let wanted = case.verdicts.get(posture.as_str()).expect("a verdict for each posture");
        if judgement.verdict.as_str() != wanted {
            let found = judgement.verdict;
            complaints.push(format!("{} {posture}: expected {wanted}, got {found}", case.place));
        }
        let is_deferred = judgement.entries.iter().any(|entry| entry.is_deferred);
        if case.deferred.get(posture.as_str()).is_some_and(|wanted| *wanted != is_deferred) {
            complaints.push(format!("{} {posture}: deferred is {is_deferred}", case.place));
        }
        let found: Vec<_> = judgement.entries.iter().map(summary).collect();
        let wanted = case.entries.iter();
        let wanted: Vec<_> = wanted
            .map(|entry| (entry.id.clone(), entry.kinds.clone(), entry.renamed_to.clone()))
            .collect();
        let sorted = |mut list: Vec<_>| {
            list.sort();
            list
        };
        let (found, wanted) = (sorted(found), sorted(wanted));
        if found != wanted {
            complaints.push(format!("{} {posture}: {wanted:?}, found {found:?}", case.place));
        }
    }
    complaints
}

type Summary = (contract::surface::EntryId, Vec<String>, Option<String>);

fn summary(judgement: &Judgement) -> Summary {
    let kinds: BTreeSet<&str> =
        judgement.findings.iter().map(|finding| finding.kind.as_str()).collect();
    let kinds = kinds.into_iter().map(str::to_owned).collect();
    (judgement.id.clone(), kinds, judgement.renamed_to.clone())
}

/// Judges the new side with the old one approved by a person.
fn judge(case: &Case, posture: Posture) -> SurfaceJudgement {
    let (old, new) = case.surfaces();
    judge_surface(&pinned(&old, Basis::Person), &new, &Settings::with_posture(posture), 0)
}

fn pinned(surface: &Surface, basis: Basis) -> PinBook {
    let mut book = PinBook::default();
    for entry in surface.entries() {
        let (entry, by) = (entry.clone(), "somebody".to_owned());
        book.push(Pin { entry, basis, at: Timestamp(0), by });
    }
    book
}

const LEGEND: &str = "\
What each posture makes of each kind of change, read from the gate's own table.

accept        PROCEED; pinned anew if what is new is inert, deferred if not
defer         PROCEED with the approved definition; the new one waits
note          PROCEED, and it is told
by the call   HOLD for the calls that the change touches; the others go through
INCONCLUSIVE  held until behaviour can be observed
HOLD          held

";

/// The table of postures and kinds as text.
fn table() -> String {
    let mut table = String::from(LEGEND);
    let heading = ["kind", "class", "monitor", "shield", "guard", "strict"].map(str::to_owned);
    push_row(&mut table, &heading);
    for kind in ChangeKind::ALL {
        let row = Row::of(*kind);
        match kind {
            ChangeKind::DescriptionOnly => {
                row.named("description-only (the tool's own)").push(&mut table);
                let parameter = row.at("/inputSchema/properties/query/description");
                parameter.named("description-only (a parameter's)").push(&mut table);
                let parameter = Row { is_read_only: true, ..parameter };
                parameter.named("  … of a tool approved as read-only").push(&mut table);
                let parameter = Row { is_read_only: false, ..parameter };
                let settings = Settings { defer_parameter_text: true, ..Settings::default() };
                parameter
                    .under(settings)
                    .named("  … shield.parameter_text = \"defer\"")
                    .push(&mut table);
            }
            ChangeKind::AnnotationFlipToDestructive => {
                row.clone().push(&mut table);
                row.meaning(Meaning::EffectiveSame).named("  … effective: same").push(&mut table);
            }
            ChangeKind::OutputSchemaChanged => {
                row.meaning(Meaning::ResultsOutside).push(&mut table);
                row.meaning(Meaning::ResultsWithin).named("  … results: within").push(&mut table);
            }
            ChangeKind::MetadataChanged => {
                row.clone().push(&mut table);
                let title = row.at("/inputSchema/title");
                title.named("  … a generated title of a schema").push(&mut table);
            }
            ChangeKind::IdentityChanged => {
                row.named("identity-changed (attested)").push(&mut table);
                let name = Row { class: ChangeClass::Metadata, ..row };
                name.named("identity-changed (name only)").push(&mut table);
            }
            ChangeKind::ToolAdded => {
                row.clone().push(&mut table);
                let settings = Settings { accept_new_tools: true, ..Settings::default() };
                row.under(settings).named("  … guard.new_tools = \"accept\"").push(&mut table);
            }
            ChangeKind::OriginDetailChanged => {
                row.clone().push(&mut table);
                let settings = Settings { hold_origin_detail: true, ..Settings::default() };
                row.under(settings).named("  … origin.detail = \"hold\"").push(&mut table);
            }
            _ => row.push(&mut table),
        }
    }
    table
}

/// One row of the table: a kind, and the circumstances that affect its ruling.
#[derive(Clone)]
struct Row {
    name: String,
    kind: ChangeKind,
    class: ChangeClass,
    meaning: Option<Meaning>,
    path: &'static str,
    is_read_only: bool,
    settings: Settings,
}

impl Row {
    fn of(kind: ChangeKind) -> Row {
        let settings = Settings::default();
        let name = kind.to_string();
        let (class, meaning, path) = (kind.class(), None, "");
        Row { name, kind, class, meaning, path, is_read_only: false, settings }
    }

    fn named(&self, name: &str) -> Row {
        Row { name: name.to_owned(), ..self.clone() }
    }

    fn meaning(&self, meaning: Meaning) -> Row {
        Row { meaning: Some(meaning), ..self.clone() }
    }

    fn at(&self, path: &'static str) -> Row {
        Row { path, ..self.clone() }
    }

    fn under(&self, settings: Settings) -> Row {
        Row { settings, ..self.clone() }
    }

    fn push(&self, table: &mut String) {
        let finding = Finding {
            class: self.class,
            meaning: self.meaning,
            ..Finding::new(self.kind, self.path, None, None)
        };
        let circumstances =
            Circumstances { is_approved: true, is_approved_read_only: self.is_read_only };
        let rulings = Posture::ALL.map(|posture| {
            let settings = Settings { posture, ..self.settings.clone() };
            match settings.rule(&finding, circumstances) {
                Ruling::AcceptIfInert => "accept",
                Ruling::Defer => "defer",
                Ruling::Note => "note",
                Ruling::ByTheCall => "by the call",
                Ruling::Inconclusive => Verdict::Inconclusive.as_str(),
                Ruling::Hold => Verdict::Hold.as_str(),
            }
        });
        let [monitor, shield, guard, strict] = rulings.map(str::to_owned);
        let class = self.class.to_string();
        push_row(table, &[self.name.clone(), class, monitor, shield, guard, strict]);
    }
}

fn push_row(table: &mut String, [name, class, monitor, shield, guard, strict]: &[String; 6]) {
    let line = format!("{name:<39} {class:<11} {monitor:<8} {shield:<13} {guard:<13} {strict}");
    writeln!(table, "{}", line.trim_end()).expect("a string takes every line");
}
