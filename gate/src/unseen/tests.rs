use super::*;
use crate::judge::{MAX_AUTO_PINS_A_DAY, judge_surface};

use contract::origin::{ProgramOrigin, Redactor};
use contract::surface::{EntryId, read_capture};

const WHOLE: &str = r#"{"tools":[{"name":"a","description":"Adds.","inputSchema":{"type":"object"}}],
    "prompts":[{"name":"p","description":"P"}],
    "resources":[{"uri":"file:///r","name":"r"}],
    "resourceTemplates":[{"uriTemplate":"file:///{r}","name":"t"}],
    "instructions":"Be good.","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}"#;

fn origin(program: &str) -> Entry {
    let redactor = Redactor { exists: &|_| true, keyed_hash: &str::to_owned };
    ProgramOrigin::of(program, &[], &redactor).entry().expect("an origin")
}

fn surface(capture: &str) -> Surface {
    let mut surface = read_capture(capture.as_bytes()).expect("a capture");
    surface.insert(origin("calc"));
    surface
}

fn pinned(entries: impl IntoIterator<Item = Entry>) -> PinBook {
    let mut book = PinBook::default();
    for entry in entries {
        book.push(Pin { entry, basis: Basis::Person, at: Timestamp(0), by: "ada".to_owned() });
    }
    book
}

fn but(surface: &Surface, entry_type: EntryType) -> PinBook {
    pinned(surface.entries().filter(|entry| entry.entry_type() != entry_type).cloned())
}

fn judge(status: ServerStatus, book: &PinBook, posture: Posture) -> SurfaceJudgement {
    judge_server(status, book, &surface(WHOLE), &Settings::with_posture(posture), 0)
}

#[test]
fn all_of_a_server_that_awaits_its_first_approval_waits_under_every_posture() {
    let statuses = [ServerStatus::Pending, ServerStatus::Unbaselined, ServerStatus::Quarantined];
    for posture in Posture::ALL {
        for status in statuses {
            let judged = judge(status, &PinBook::default(), posture);
            let waiting: Vec<&EntryId> = judged.waiting().map(|entry| &entry.id).collect();
            let surface = surface(WHOLE);
            let all: Vec<&EntryId> = surface.entries().map(Entry::id).collect();
            assert_eq!(waiting.len(), 7, "{status} {posture}: {waiting:?}");
            assert!(all.iter().all(|id| waiting.contains(id)), "{status} {posture}: {waiting:?}");
            assert_eq!(judged.accepted().count(), 0, "{status} {posture}");
        }
    }
    // The counterpart: once everything is approved, nothing waits.
    let approved = pinned(surface(WHOLE).entries().cloned());
    for posture in Posture::ALL {
        assert!(judge(ServerStatus::Pending, &approved, posture).entries.is_empty(), "{posture}");
        assert!(judge(ServerStatus::Verified, &approved, posture).entries.is_empty(), "{posture}");
    }
}

#[test]
fn many_entries_at_first_sight_are_not_many_changes_of_a_day() {
    let resources: Vec<String> = (0..=MAX_AUTO_PINS_A_DAY)
        .map(|n| format!(r#"{{"uri":"file:///{n}","name":"r"}}"#))
        .collect();
    let surface = surface(&format!(r#"{{"tools":[],"resources":[{}]}}"#, resources.join(",")));
    let (book, settings) = (PinBook::default(), Settings::default());
    let judged = judge_server(ServerStatus::Pending, &book, &surface, &settings, 0);
    assert!(judged.entries.iter().all(|entry| entry.detail.is_none() && entry.is_waiting()));
    assert!(judge_surface(&book, &surface, &settings, 0).held().count() > 0);
}

#[test]
fn an_origin_that_no_pin_has_is_held_and_never_accepted() {
    let book = but(&surface(WHOLE), EntryType::Origin);
    for posture in [Posture::Shield, Posture::Guard, Posture::Strict] {
        let judged = judge(ServerStatus::Verified, &book, posture);
        let held: Vec<_> = judged.held().map(|entry| (entry.id.entry_type, entry.reason)).collect();
        assert_eq!(held, [(EntryType::Origin, Some(Reason::NoPin))], "{posture}");
        assert_eq!((judged.verdict, judged.accepted().count()), (Verdict::Hold, 0), "{posture}");
    }
    let monitor = judge(ServerStatus::Verified, &book, Posture::Monitor);
    assert_eq!((monitor.verdict, monitor.accepted().count()), (Verdict::Proceed, 0));
}

#[test]
fn an_identity_that_no_pin_has_waits_and_is_held_where_somebody_vouches_for_it() {
    let mut surface = surface(WHOLE);
    let book = but(&surface, EntryType::Identity);
    let settings = Settings::default();
    let judged = judge_server(ServerStatus::Verified, &book, &surface, &settings, 0);
    let of_it: Vec<_> =
        judged.entries.iter().map(|entry| (entry.verdict, entry.is_deferred)).collect();
    assert_eq!(of_it, [(Verdict::Proceed, true)]);
    assert_eq!(judged.accepted().count(), 0);
    let anchor = Anchor { attested_id: "calc.example".to_owned(), signer: "k1".to_owned() };
    surface.anchor_to(&anchor).expect("an identity");
    let judged = judge_server(ServerStatus::Verified, &book, &surface, &settings, 0);
    assert_eq!(judged.held().count(), 1, "{judged:?}");
}

#[test]
fn what_a_known_server_adds_is_judged_as_an_addition() {
    let book = but(&surface(WHOLE), EntryType::Resource);
    let judged = judge(ServerStatus::Verified, &book, Posture::Guard);
    assert_eq!((judged.accepted().count(), judged.verdict), (1, Verdict::Proceed));
}
