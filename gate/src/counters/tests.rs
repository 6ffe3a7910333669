use super::*;

/// The longest name that can be stored.
const LONGEST: usize = 64;

fn plain() -> [Counter; 9] {
    [
        Counter::Calls,
        Counter::Requests,
        Counter::Held,
        Counter::Denied,
        Counter::Failed,
        Counter::HoldsBegun,
        Counter::Repinned,
        Counter::Notes,
        Counter::Relists,
    ]
}

#[test]
fn every_counter_has_a_name_of_its_own_that_names_it() {
    let mut counters = plain().to_vec();
    counters.extend(Posture::ALL.map(Counter::WouldHold));
    counters.extend((0..=u8::MAX).flat_map(|n| [Counter::Tier(n), Counter::Added(n)]));
    for tool in ["", "make_report", "tool with\0everything ✓"] {
        counters.extend([tool_called(tool), parameter_used(tool, ""), parameter_used(tool, "a")]);
    }
    let mut names = std::collections::BTreeSet::new();
    for counter in counters {
        let name = counter.name();
        assert_eq!(Counter::parse(&name), Some(counter), "{name}");
        assert!(name.len() <= LONGEST, "{name}");
        assert!(names.insert(name), "{counter:?} has the name of another");
    }
}

#[test]
fn names_are_what_they_were() {
    for (counter, name) in [
        (Counter::Calls, "calls"),
        (Counter::HoldsBegun, "holds-begun"),
        (Counter::WouldHold(Posture::Guard), "would-hold.guard"),
        (Counter::Tier(0), "tier.0"),
        (added_bucket(100), "added.7"),
        // `printf 'make_report' | sha256sum`, `printf 'make_report\0owner' | sha256sum`
        (tool_called("make_report"), "tool.dd581150adf8f9a9"),
        (parameter_used("make_report", "owner"), "parameter.2ebe6cfe7d5c69a0"),
    ] {
        assert_eq!(counter.name(), name);
    }
}

#[test]
fn what_is_no_name_of_a_counter_names_none() {
    for name in [
        "",
        "call",
        "Calls",
        "calls.",
        "calls.1",
        "would-hold",
        "would-hold.",
        "would-hold.lax",
        "tier",
        "tier.",
        "tier.256",
        "tier.01",
        "tier.+1",
        "tier.-1",
        "added.1.1",
        "tool.",
        "tool.0123456789abcde",
        "tool.0123456789abcdef0",
        "tool.0123456789ABCDEF",
        "tool.+123456789abcdef",
        "parameter.0123456789abcdeg",
        "unheard-of.1",
    ] {
        assert_eq!(Counter::parse(name), None, "{name}");
    }
}

#[test]
fn a_latency_is_in_the_smallest_bucket_that_it_fits() {
    for (microseconds, bucket) in [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (1_023, 10),
        (1_024, 11),
        ((1 << 30) - 1, MAX_ADDED_BUCKET),
        (1 << 30, MAX_ADDED_BUCKET),
        (u64::MAX, MAX_ADDED_BUCKET),
    ] {
        assert_eq!(added_bucket(microseconds), Counter::Added(bucket), "{microseconds}");
    }
}

#[test]
fn a_name_is_counted_by_its_fingerprint_and_another_name_by_another() {
    assert_eq!(tool_called("a"), tool_called("a"));
    assert_ne!(tool_called("a"), tool_called("b"));
    assert_ne!(parameter_used("a", "b"), parameter_used("b", "a"));
    assert_ne!(parameter_used("ab", "c"), parameter_used("a", "bc"));
    let debugged = format!("{:?}", parameter_used("make_report", "owner"));
    assert!(!debugged.contains("owner"), "{debugged}");
}
