//! One fetch at a time, renewal before expiry, and the credential in use while none can be fetched.

use super::*;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use std::sync::atomic::{AtomicUsize, Ordering};

const MINUTE: Duration = Duration::from_secs(60);

fn credential(text: &str) -> Credential {
    Credential::new(AUTHORIZATION, HeaderValue::from_str(text).unwrap())
}

fn shown(outcome: &Result<Arc<Credential>, Unavailable>) -> &str {
    outcome.as_ref().unwrap().value().to_str().unwrap()
}

fn key(byte: u8) -> Option<CallerKey> {
    Some(CallerKey([byte; 32]))
}

async fn fetched(text: &str, lifetime: Duration) -> Result<Fetched, Unavailable> {
    Ok(Fetched::expiring(credential(text), lifetime))
}

async fn failed() -> Result<Fetched, Unavailable> {
    Err(Unavailable::NoVault)
}

#[tokio::test(start_paused = true)]
async fn a_token_is_replaced_shortly_before_it_ends() {
    let cells = Cells::default();
    let one = cells.obtain(key(1), None, || fetched("one", 10 * MINUTE)).await;
    assert_eq!(shown(&one), "one");
    tokio::time::advance(10 * MINUTE - EXPIRY_MARGIN - Duration::from_secs(1)).await;
    assert_eq!(shown(&cells.obtain(key(1), None, failed).await), "one");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(cells.ready(key(1)).is_none(), "within the margin it is replaced");
    assert_eq!(shown(&cells.obtain(key(1), None, || fetched("two", MINUTE)).await), "two");
}

#[tokio::test(start_paused = true)]
async fn while_nothing_can_be_fetched_a_token_counts_up_to_its_end_and_no_longer() {
    let cells = Cells::default();
    let lifetime = 10 * MINUTE;
    cells.obtain(key(1), None, || fetched("one", lifetime)).await.unwrap();
    tokio::time::advance(lifetime - Duration::from_secs(2)).await;
    assert_eq!(shown(&cells.obtain(key(1), None, failed).await), "one");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(cells.obtain(key(1), None, failed).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_next_fetch_waits_a_moment() {
    let cells = Cells::default();
    assert!(matches!(cells.obtain(key(1), None, failed).await, Err(Unavailable::NoVault)));
    let early = cells.obtain(key(1), None, || fetched("one", MINUTE)).await;
    assert!(matches!(early, Err(Unavailable::JustFailed)));
    tokio::time::advance(FAILURE_PAUSE).await;
    assert_eq!(shown(&cells.obtain(key(1), None, || fetched("one", MINUTE)).await), "one");
}

#[tokio::test(start_paused = true)]
async fn many_calls_of_one_caller_make_one_fetch_and_callers_share_nothing() {
    let cells = Arc::new(Cells::default());
    let fetches = Arc::new(AtomicUsize::new(0));
    let calls = (0..100_u8).map(|number| {
        let (cells, fetches) = (cells.clone(), fetches.clone());
        tokio::spawn(async move {
            let caller = number % 2;
            let fetch = || async move {
                fetches.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                fetched(&format!("caller-{caller}"), MINUTE).await
            };
            let outcome = cells.obtain(key(caller), None, fetch).await;
            assert_eq!(shown(&outcome), format!("caller-{caller}"));
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(fetches.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_replaced_once_and_not_again_at_once() {
    let cells = Cells::default();
    let one = cells.obtain(key(1), None, || fetched("one", MINUTE)).await.unwrap();
    let two = cells.renew(key(1), None, &one, || fetched("two", MINUTE)).await;
    assert_eq!(shown(&two), "two");
    let two = two.unwrap();
    // Another call whose first credential was refused gets the current one.
    assert_eq!(shown(&cells.renew(key(1), None, &one, failed).await), "two");
    let again = cells.renew(key(1), None, &two, || fetched("three", MINUTE)).await;
    assert!(matches!(again, Err(Unavailable::Refused)));
    tokio::time::advance(RENEWAL_PAUSE).await;
    assert_eq!(shown(&cells.renew(key(1), None, &two, || fetched("three", MINUTE)).await), "three");
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_not_used_again_when_no_other_can_be_had() {
    let cells = Cells::default();
    let one = cells.obtain(key(1), None, || fetched("one", MINUTE)).await.unwrap();
    assert!(cells.renew(key(1), None, &one, failed).await.is_err());
    assert!(cells.ready(key(1)).is_none());
    assert!(cells.obtain(key(1), None, failed).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_short_lifetime_has_a_short_margin() {
    let cells = Cells::default();
    cells.obtain(key(1), None, || fetched("one", Duration::from_secs(10))).await.unwrap();
    tokio::time::advance(Duration::from_secs(7)).await;
    assert!(cells.ready(key(1)).is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(cells.ready(key(1)).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_credentials_of_callers_are_bounded() {
    let cells = Cells::default();
    let number = |number: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
        Some(CallerKey(bytes))
    };
    for caller in 0..3 * HALF {
        cells.obtain(number(caller), None, || fetched("x", MINUTE)).await.unwrap();
    }
    let halves = lock(&cells.0);
    assert!(halves.newer.len() + halves.older.len() <= 2 * HALF);
    drop(halves);
    assert!(cells.ready(number(3 * HALF - 1)).is_some());
    assert!(cells.ready(number(0)).is_none());
}
