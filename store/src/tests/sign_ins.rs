//! Sign-ins are used once, replaced by one process at a time, and removed when they expire.

use super::bench::*;
use crate::{
    ClaimId, Claimed, MAX_SEALED_BYTES, MAX_SIGN_INS_PER_OWNER, SignIn, SignInKind, SignInName,
};
use gate::time::Timestamp;

const fn at(milliseconds: i64) -> Timestamp {
    Timestamp(NOON.0 + milliseconds)
}

fn name(text: &str) -> SignInName {
    text.parse().unwrap()
}

fn claim(text: &str) -> ClaimId {
    text.parse().unwrap()
}

fn record(kind: SignInKind, of: &str) -> SignIn {
    SignIn {
        kind,
        name: name(of),
        owner: "ada".to_owned(),
        at: NOON,
        expires_at: at(100),
        sealed: "sealed".to_owned(),
    }
}

fn what_was_used_cannot_be_used_again(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut one, mut other) = (bench.store(), bench.store());
    let used = record(SignInKind::Used, "code");
    assert!(one.add_sign_in(&used).unwrap());
    assert!(!other.add_sign_in(&used).unwrap());
    // Records of different kinds may have the same name.
    assert!(other.add_sign_in(&record(SignInKind::Consent, "code")).unwrap());
    assert_eq!(other.sign_in(SignInKind::Used, &name("code")).unwrap(), Some(used));
    assert_eq!(other.sign_in(SignInKind::Used, &name("other")).unwrap(), None);
}

fn one_process_at_a_time_replaces_a_record(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut one, mut other) = (bench.store(), bench.store());
    let grant = record(SignInKind::Grant, "g");
    one.put_sign_in(&grant).unwrap();
    let mut take = |store: usize, by: &str, now: i64, until: i64| {
        let store = if store == 1 { &mut one } else { &mut other };
        store.claim_sign_in(SignInKind::Grant, &name("g"), &claim(by), at(now), at(until)).unwrap()
    };
    assert_eq!(take(1, "a", 0, 10), Claimed::Yours(Box::new(grant.clone())));
    assert_eq!(take(2, "b", 5, 15), Claimed::Elsewhere);
    // The claim of a process that died expires.
    assert_eq!(take(2, "b", 10, 20), Claimed::Yours(Box::new(grant.clone())));
    let newer = SignIn { sealed: "newer".to_owned(), expires_at: at(200), ..grant.clone() };
    let late = one.end_claim(SignInKind::Grant, &name("g"), &claim("a"), Some(&newer));
    assert!(!late.unwrap(), "the claim had ended");
    assert_eq!(one.sign_in(SignInKind::Grant, &name("g")).unwrap(), Some(grant));
    let done = other.end_claim(SignInKind::Grant, &name("g"), &claim("b"), Some(&newer));
    assert!(done.unwrap());
    assert_eq!(one.sign_in(SignInKind::Grant, &name("g")).unwrap(), Some(newer.clone()));
    let again = one.claim_sign_in(SignInKind::Grant, &name("g"), &claim("c"), at(11), at(30));
    assert_eq!(again.unwrap(), Claimed::Yours(Box::new(newer.clone())));
    assert!(one.end_claim(SignInKind::Grant, &name("g"), &claim("c"), None).unwrap());
    assert_eq!(one.sign_in(SignInKind::Grant, &name("g")).unwrap(), Some(newer));
    let unknown =
        one.claim_sign_in(SignInKind::Grant, &name("x"), &claim("c"), at(11), at(30)).unwrap();
    assert_eq!(unknown, Claimed::Unknown);
}

fn replacing_a_record_ends_its_claim(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let grant = record(SignInKind::Grant, "g");
    store.put_sign_in(&grant).unwrap();
    let (held, until) = (claim("a"), at(10));
    let taken = store.claim_sign_in(SignInKind::Grant, &name("g"), &held, NOON, until).unwrap();
    assert!(matches!(taken, Claimed::Yours(_)));
    // The person signed in again meanwhile, so the claim's holder has tokens of the earlier
    // sign-in.
    let again = SignIn { sealed: "again".to_owned(), ..grant };
    store.put_sign_in(&again).unwrap();
    let ended = store.end_claim(SignInKind::Grant, &name("g"), &held, Some(&again)).unwrap();
    assert!(!ended);
    assert_eq!(store.sign_in(SignInKind::Grant, &name("g")).unwrap(), Some(again));
}

fn an_owner_lists_and_removes_what_is_theirs(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let others = SignIn { owner: "bob".to_owned(), ..record(SignInKind::Consent, "bob-1") };
    for record in [record(SignInKind::Consent, "b"), record(SignInKind::Consent, "a"), others] {
        store.put_sign_in(&record).unwrap();
    }
    store.put_sign_in(&record(SignInKind::Grant, "g")).unwrap();
    let names = |store: &dyn crate::Store, owner: &str| -> Vec<String> {
        let found = store.sign_ins_of(SignInKind::Consent, owner).unwrap();
        found.into_iter().map(|record| record.name.to_string()).collect()
    };
    assert_eq!(names(&*store, "ada"), ["a", "b"]);
    assert!(store.remove_sign_in(SignInKind::Consent, &name("a")).unwrap());
    assert!(!store.remove_sign_in(SignInKind::Consent, &name("a")).unwrap());
    assert_eq!(names(&*store, "ada"), ["b"]);
    assert_eq!(names(&*store, "bob"), ["bob-1"]);
    assert_eq!(store.sign_ins(SignInKind::Consent).unwrap().len(), 2);
    assert_eq!(store.sign_ins(SignInKind::Grant).unwrap().len(), 1);
}

fn what_has_expired_is_removed(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.put_sign_in(&record(SignInKind::Used, "a")).unwrap();
    let later = SignIn { expires_at: at(101), ..record(SignInKind::Used, "b") };
    store.put_sign_in(&later).unwrap();
    assert_eq!(store.expire_sign_ins(at(99)).unwrap(), 0);
    assert_eq!(store.expire_sign_ins(at(100)).unwrap(), 1);
    assert_eq!(store.sign_in(SignInKind::Used, &name("a")).unwrap(), None);
    assert_eq!(store.sign_in(SignInKind::Used, &name("b")).unwrap(), Some(later));
}

fn records_are_bounded(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let sized = |bytes| SignIn { sealed: "x".repeat(bytes), ..record(SignInKind::Grant, "g") };
    store.put_sign_in(&sized(MAX_SEALED_BYTES)).unwrap();
    let refused = store.put_sign_in(&sized(MAX_SEALED_BYTES + 1)).unwrap_err();
    assert!(refused.to_string().contains("exceeds the limit of 65536"), "{refused}");
    let filled = (0..MAX_SIGN_INS_PER_OWNER)
        .map(|number| format!("('used', 'u{number}', 'ada', 0, {}, 'x')", i64::MAX))
        .collect::<Vec<_>>()
        .join(",");
    bench.edit(&format!(
        "INSERT INTO sign_ins (kind, id, owner, at, expires_at, sealed) VALUES {filled}"
    ));
    assert!(store.add_sign_in(&record(SignInKind::Used, "more")).is_err());
    assert!(store.remove_sign_in(SignInKind::Used, &name("u0")).unwrap());
    assert!(store.add_sign_in(&record(SignInKind::Used, "more")).unwrap());
}

on_both![
    what_was_used_cannot_be_used_again,
    one_process_at_a_time_replaces_a_record,
    replacing_a_record_ends_its_claim,
    an_owner_lists_and_removes_what_is_theirs,
    what_has_expired_is_removed,
    records_are_bounded,
];
