use super::*;
use crate::claim::{ClaimKey, Method};
use ed25519_dalek::SigningKey;

const NOW: Timestamp = Timestamp(1_790_000_000_000);

fn key(byte: u8) -> ClaimKey {
    let key = SigningKey::from_bytes(&[byte; 32]).verifying_key();
    ClaimKey::from_bytes(key.to_bytes()).unwrap()
}

fn server() -> SubjectId {
    "com.example/weather".parse().unwrap()
}

fn database() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&folder.path().join("directory.db")).unwrap();
    (folder, database)
}

fn claim(database: &mut Database, byte: u8, days: i64) -> Result<StoredClaim, ClaimError> {
    let (server, key) = (server(), key(byte));
    let sought = Sought { server: &server, key: &key, nonce: "n", method: Method::Dns };
    accept(database, sought, "example.com", Timestamp(NOW.0 + days * DAY_MS))
}

/// The states that are queued for the log.
fn said(database: &Database) -> Vec<(String, ClaimState, Option<Timestamp>)> {
    let waiting = database.waiting_statements(100).unwrap();
    let said = waiting.into_iter().map(|it| match it.words.statement {
        Statement::Claim(claim) => {
            (claim.hashes.key, claim.state, claim.counts_from.map(|moment| moment.0))
        }
        other => panic!("{other:?}"),
    });
    said.collect()
}

#[test]
fn the_first_claim_counts_at_once_and_a_second_one_after_seven_days_of_checks() {
    let (_folder, mut database) = database();
    assert_eq!(claim(&mut database, 1, 0).unwrap().state, ClaimState::Verified);
    let second = claim(&mut database, 2, 0).unwrap();
    let from = Timestamp(NOW.0 + 7 * DAY_MS);
    assert_eq!((second.state, second.counts_from), (ClaimState::Waiting, Some(from)));
    // Claiming again neither shortens the wait nor changes the state.
    assert_eq!(claim(&mut database, 2, 3).unwrap().counts_from, Some(from));
    let expected = [
        (key(1).hash(), ClaimState::Verified, None),
        (key(2).hash(), ClaimState::Waiting, Some(from)),
    ];
    assert_eq!(said(&database), expected);

    let (early, is_news) = after_check(&second, true, Timestamp(from.0 - 1));
    assert_eq!((early.state, is_news), (ClaimState::Waiting, false));
    let (counted, is_news) = after_check(&early, true, from);
    assert_eq!((counted.state, counted.counts_from, is_news), (ClaimState::Verified, None, true));
    // A third claim also waits for those before it.
    assert_eq!(claim(&mut database, 3, 1).unwrap().state, ClaimState::Waiting);
}

#[test]
fn three_failures_in_a_row_suspend_a_claim_and_a_success_between_them_does_not() {
    let (_folder, mut database) = database();
    let first = claim(&mut database, 1, 0).unwrap();
    let check = |claim: &StoredClaim, is_there| after_check(claim, is_there, NOW);
    let (once, _) = check(&first, false);
    let (twice, is_news) = check(&once, false);
    assert_eq!((twice.state, twice.failures, is_news), (ClaimState::Verified, 2, false));
    let (again, _) = check(&twice, true);
    assert_eq!(again.failures, 0);
    let (thrice, is_news) = check(&twice, false);
    assert_eq!((thrice.state, is_news), (ClaimState::Suspended, true));
    keep(&mut database, &thrice, true).unwrap();
    let never = Timestamp(i64::MAX);
    assert!(database.due_claims(never, 10).unwrap().is_empty(), "it is not checked any more");
    // Then another key's claim is valid at once, and the suspended owner has to wait.
    assert_eq!(claim(&mut database, 2, 4).unwrap().state, ClaimState::Verified);
    assert_eq!(claim(&mut database, 1, 5).unwrap().state, ClaimState::Waiting);
}

#[test]
fn a_server_has_so_many_claims_and_the_operator_can_suspend_one() {
    let (_folder, mut database) = database();
    for byte in 1..=MAX_CLAIMS as u8 {
        claim(&mut database, byte, 0).unwrap();
    }
    assert!(matches!(claim(&mut database, 100, 0), Err(ClaimError::TooMany)));
    assert!(claim(&mut database, 1, 0).is_ok(), "one that is there may be shown again");
    let suspended = suspend(&mut database, &server(), &key(1)).unwrap().unwrap();
    assert_eq!(suspended.state, ClaimState::Suspended);
    assert_eq!(suspend(&mut database, &server(), &key(1)).unwrap(), None);
    assert!(claim(&mut database, 100, 0).is_ok());
    let stored = database.claims(Some(&server())).unwrap();
    assert_eq!(stored.len(), MAX_CLAIMS + 1);
    assert_eq!(stored.iter().filter(|it| it.state == ClaimState::Suspended).count(), 1);
}
