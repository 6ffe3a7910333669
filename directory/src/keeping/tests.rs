use super::*;
use crate::claim::check::{Checker, Sought};
use crate::claim::dns::Resolver;
use crate::claim::{ClaimKey, Method, ownership};
use crate::crawl::package::Registries;
use crate::crawl::{Manifest, NotListed, Observation, Outcome};
use crate::database::Database;
use crate::entry::ClaimState;
use crate::model::MAX_CLAIMS_A_DAY;
use crate::subject::SubjectId;
use ed25519_dalek::SigningKey;
use std::time::Duration;

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const DAY_MS: i64 = 86_400_000;

fn key(byte: u8) -> ClaimKey {
    let key = SigningKey::from_bytes(&[byte; 32]).verifying_key();
    ClaimKey::from_bytes(key.to_bytes()).unwrap()
}

fn server() -> SubjectId {
    "com.example/weather".parse().unwrap()
}

/// A keeper of a log with one remote server, at an address where nothing listens. The operator
/// registered these keys.
fn keeper(folder: &std::path::Path, known: &[u8]) -> LogKeeper {
    let folders = Folders { data: folder.join("data"), keys: folder.join("keys") };
    let mut writer = LogWriter::open(&folders, "https://d.example", None, NOW).unwrap();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let seen = Observation {
        server: server(),
        release: None,
        at: NOW,
        outcome: Outcome::NotListed(NotListed::Unreachable),
        cause: None,
        manifest: Manifest::default(),
        launch: vec![format!("http://{}/mcp", unused.local_addr().unwrap())],
    };
    drop(unused);
    let kept = writer.database_mut().write::<_, DatabaseError>(|it| it.keep_observation(&seen));
    kept.unwrap();
    writer.record_waiting(NOW).unwrap();
    let dialer = || Dialer::new(true, None).with_pause(Duration::ZERO);
    let resolver = Resolver::new(&["127.0.0.1:1".parse().unwrap()]);
    let publishers = known.iter().map(|byte| (server(), key(*byte))).collect();
    let checker = Checker::new(dialer(), resolver, Registries::default(), publishers);
    LogKeeper::new(writer, folders, dialer(), Vec::new(), Vec::new(), checker).unwrap()
}

/// A verified claim, as another process of the directory stores it.
fn claim(keeper: &LogKeeper, byte: u8, method: Method, now: Timestamp) {
    let (server, key) = (server(), key(byte));
    let sought = Sought { server: &server, key: &key, nonce: "n", method };
    let mut database = Database::open(&keeper.folders.database()).unwrap();
    ownership::accept(&mut database, sought, "127.0.0.1", now).unwrap();
}

fn states(keeper: &LogKeeper) -> Vec<(String, ClaimState)> {
    let known = &keeper.writer.model().servers[&server()];
    known.claims.iter().map(|(_, claim)| (claim.hashes.key.clone(), claim.state)).collect()
}

fn days(days: i64) -> Timestamp {
    Timestamp(NOW.0 + days * DAY_MS)
}

#[test]
fn a_claim_that_is_not_found_for_three_days_is_suspended_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeper = keeper(folder.path(), &[]);
    claim(&keeper, 1, Method::WellKnown, NOW);
    assert_eq!(keeper.tick(NOW), Vec::<String>::new());
    assert_eq!(states(&keeper), [(key(1).hash(), ClaimState::Verified)]);
    for day in 1..=3 {
        assert_eq!(keeper.tick(days(day)), Vec::<String>::new(), "an owner's fault is no problem");
        // It is not checked again on the same day.
        assert_eq!(keeper.tick(Timestamp(days(day).0 + 1)), Vec::<String>::new());
    }
    let expected = [(key(1).hash(), ClaimState::Verified), (key(1).hash(), ClaimState::Suspended)];
    assert_eq!(states(&keeper), expected);
}

#[test]
fn a_second_claim_counts_after_seven_days_if_it_is_still_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeper = keeper(folder.path(), &[1, 2]);
    claim(&keeper, 1, Method::AttestationKey, NOW);
    claim(&keeper, 2, Method::AttestationKey, NOW);
    for day in 0..=6 {
        for _ in 0..3 {
            assert_eq!(keeper.tick(days(day)), Vec::<String>::new());
        }
        assert_eq!(states(&keeper).last().unwrap().1, ClaimState::Waiting, "day {day}");
    }
    for _ in 0..3 {
        keeper.tick(days(7));
    }
    assert_eq!(states(&keeper).last().unwrap(), &(key(2).hash(), ClaimState::Verified));
    assert!(keeper.writer.model().servers[&server()].permits_probes());
}

#[test]
fn more_claims_than_a_day_has_entries_wait_for_the_next_day() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeper = keeper(folder.path(), &(1..=12).collect::<Vec<u8>>());
    for byte in 1..=12 {
        claim(&keeper, byte, Method::AttestationKey, NOW);
    }
    assert_eq!(keeper.tick(NOW), Vec::<String>::new());
    assert_eq!(states(&keeper).len(), MAX_CLAIMS_A_DAY);
    keeper.tick(Timestamp(NOW.0 + 60_000));
    assert_eq!(states(&keeper).len(), MAX_CLAIMS_A_DAY);
    keeper.tick(days(1));
    assert_eq!(states(&keeper).len(), 12);
}
