//! The limits of an act.

use super::{Act, MAX_DETAIL_BYTES, MAX_NOTES_BYTES, MAX_PINS_PER_ACT};
use crate::record::Observation;
use contract::surface::{EntryId, EntryType, ListKind, MAX_ENTRY_BYTES, Surface};
use gate::server::ServerId;
use gate::time::Timestamp;

#[track_caller]
fn check(limit: usize, mut fill: impl FnMut(&mut Act<'_>, &mut Observation, usize)) {
    let server: ServerId = "reports".parse().unwrap();
    for (size, is_fine) in [(limit, true), (limit + 1, false)] {
        let mut observation = Observation::of(&Surface::default(), Timestamp(1));
        let mut act = Act::new(&server, Timestamp(1), "ada", "server.observe");
        fill(&mut act, &mut observation, size);
        act.observation = Some(&observation);
        assert_eq!(act.check_limits().is_ok(), is_fine, "{size}");
    }
}

#[test]
fn a_detail_is_bounded() {
    check(MAX_DETAIL_BYTES, |act, _, size| act.detail = Some("x".repeat(size)));
}

#[test]
fn withdrawals_are_bounded() {
    check(MAX_PINS_PER_ACT, |act, _, size| {
        act.withdraw = vec![EntryId::new(EntryType::Tool, "a"); size];
    });
}

#[test]
fn what_comes_with_a_capture_is_bounded() {
    check(MAX_ENTRY_BYTES, |_, observation, size| observation.origin = Some("x".repeat(size)));
    check(MAX_ENTRY_BYTES, |_, observation, size| {
        observation.protocol_version = Some("x".repeat(size));
    });
    check(MAX_ENTRY_BYTES, |_, observation, size| {
        observation.server_version = Some("x".repeat(size));
    });
    check(MAX_NOTES_BYTES, |_, observation, size| {
        observation.notes = vec!["x".repeat(size - 1)];
        observation.unreadable.insert(ListKind::Tools, "x".to_owned());
    });
}
