//! An adversarial campaign: tens of thousands of names that closely resemble those of allowed
//! tools, and of almost valid documents. None may be admitted. Everything is generated
//! deterministically, so each run is the same.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "campaign/forgeries.rs"]
mod forgeries;
#[path = "campaign/names.rs"]
mod names;

use attest::{Reason, ToolAllowlist};
use std::collections::{BTreeMap, BTreeSet};

/// The fewest names to test, as many as in the specification's own campaign.
const MIN_NAMES: usize = 27_025;
const MIN_FORGERIES: usize = 14_378;

#[test]
fn no_name_but_the_exact_one_is_admitted() {
    let list = ToolAllowlist::new(names::ALLOWED).expect("a list");
    for name in names::ALLOWED {
        assert_eq!(list.check(name), Ok(()), "{name}");
    }
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (category, name) in names::evasions() {
        // A variant of one name may be another allowed name, which is not an evasion.
        if names::ALLOWED.contains(&name.as_str()) || !seen.insert(name.clone()) {
            continue;
        }
        let denial = list.check(&name).expect_err(&name);
        assert_eq!(denial.reason(), Reason::ToolNotAdmitted, "{name:?}");
        *counts.entry(category).or_default() += 1;
    }
    println!("{} names, all denied: {counts:?}", seen.len());
    assert_eq!(counts.len(), names::CATEGORIES.len(), "{counts:?}");
    assert!(counts.values().all(|count| *count >= 100), "{counts:?}");
    assert!(seen.len() >= MIN_NAMES, "only {} names", seen.len());
}

#[test]
fn no_forged_document_is_admitted() {
    let setting = forgeries::Setting::new();
    for original in setting.originals() {
        setting.judge(original.as_bytes()).expect("what nobody touched is admitted");
    }
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (category, forged) in setting.forgeries() {
        if !seen.insert(attest::Digest::sha256(&forged)) {
            continue;
        }
        match setting.judge(&forged) {
            Ok(_) => panic!("admitted ({category}): {}", String::from_utf8_lossy(&forged)),
            Err(denial) => *reasons.entry(denial.reason().as_str()).or_default() += 1,
        }
        *counts.entry(category).or_default() += 1;
    }
    println!("{} documents, all denied: {counts:?}; {reasons:?}", seen.len());
    assert_eq!(counts.len(), forgeries::CATEGORIES.len(), "{counts:?}");
    assert!(seen.len() >= MIN_FORGERIES, "only {} documents", seen.len());
    // They reach the signature check instead of all failing earlier.
    assert!(reasons["bad_signature"] >= 5_000, "{reasons:?}");
}
