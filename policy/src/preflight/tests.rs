//! Tests the rules at their limits. The corpora of hostile paths and URLs are in
//! `tests/preflight.rs`.

use super::*;
use contract::json::Document;
use std::time::Duration;

const NOON: u64 = 86_400 * 20_000 + 43_200;

fn limiter(rate: &str, quota: &str, scope: RateScope) -> (RateLimiter, Duration) {
    let now = Duration::from_secs(7);
    let throttle = Throttle { rate: rate.parse().ok(), quota: quota.parse().ok(), scope };
    (RateLimiter::new(throttle), now)
}

const ADA: RateKey<'static> = RateKey { issuer: "keys", principal: "ada", tool: "read" };

#[test]
fn a_bucket_lets_its_rate_through_and_no_call_more() {
    let (limiter, now) = limiter("60/min", "", RateScope::Principal);
    for n in 0..60 {
        assert_eq!(limiter.take(ADA, now, NOON), RateDecision::Allowed, "{n}");
    }
    let retry_after = Duration::from_secs(1);
    assert_eq!(limiter.take(ADA, now, NOON), RateDecision::Limited { retry_after });
    let soon = now + Duration::from_millis(999);
    assert!(matches!(limiter.take(ADA, soon, NOON), RateDecision::Limited { .. }));
    let later = now + Duration::from_secs(1);
    assert_eq!(limiter.take(ADA, later, NOON), RateDecision::Allowed);
    assert!(matches!(limiter.take(ADA, later, NOON), RateDecision::Limited { .. }));
}

#[test]
fn a_refused_call_takes_nothing() {
    let (limiter, now) = limiter("1/sec", "", RateScope::Principal);
    assert_eq!(limiter.take(ADA, now, NOON), RateDecision::Allowed);
    for _ in 0..100 {
        assert!(matches!(limiter.take(ADA, now, NOON), RateDecision::Limited { .. }));
    }
    assert_eq!(limiter.take(ADA, now + Duration::from_secs(1), NOON), RateDecision::Allowed);
}

#[test]
fn a_scope_says_who_shares_a_bucket() {
    let other_tool = RateKey { tool: "write", ..ADA };
    let other_caller = RateKey { principal: "bob", ..ADA };
    for (scope, tool_is_free, caller_is_free) in [
        (RateScope::Principal, false, true),
        (RateScope::PrincipalTool, true, true),
        (RateScope::Tool, true, false),
        (RateScope::Server, false, false),
    ] {
        let is_free = |key| {
            let (limiter, now) = limiter("1/hour", "", scope);
            assert_eq!(limiter.take(ADA, now, NOON), RateDecision::Allowed);
            limiter.take(key, now, NOON) == RateDecision::Allowed
        };
        assert_eq!(is_free(other_tool), tool_is_free, "{scope:?}");
        assert_eq!(is_free(other_caller), caller_is_free, "{scope:?}");
    }
}

#[test]
fn a_quota_counts_days_of_utc() {
    let (limiter, now) = limiter("", "2/day", RateScope::Principal);
    let last_second = 86_400 * 20_001 - 1;
    assert_eq!(limiter.take(ADA, now, NOON), RateDecision::Allowed);
    assert_eq!(limiter.take(ADA, now, last_second), RateDecision::Allowed);
    let retry_after = Duration::from_secs(1);
    assert_eq!(limiter.take(ADA, now, last_second), RateDecision::Exceeded { retry_after });
    assert_eq!(limiter.take(ADA, now, last_second + 1), RateDecision::Allowed);
}

#[test]
fn past_the_most_buckets_new_callers_wait_until_others_are_idle() {
    let (limiter, now) = limiter("1/hour", "", RateScope::Principal);
    let names: Vec<String> = (0..2 * MAX_BUCKETS).map(|n| n.to_string()).collect();
    let allowed = names.iter().filter(|name| {
        let key = RateKey { issuer: "", principal: name, tool: "" };
        limiter.take(key, now, NOON) == RateDecision::Allowed
    });
    assert_eq!(allowed.count(), MAX_BUCKETS);
    let later = now + Duration::from_secs(3_600);
    let key = RateKey { issuer: "", principal: "new", tool: "" };
    // The quota's day is over as well. A bucket that was used today is kept for its quota.
    assert_eq!(limiter.take(key, later, NOON + 86_400), RateDecision::Allowed);
}

#[test]
fn rates_and_quotas_are_read() {
    for (text, calls, seconds) in
        [("60/min", 60, 60), ("5/sec", 5, 1), ("1000000/hour", 1_000_000, 3_600)]
    {
        let rate: Rate = text.parse().unwrap();
        assert_eq!(
            (rate.calls, rate.period.as_secs(), rate.to_string().as_str()),
            (calls, seconds, text)
        );
    }
    for text in ["", "60", "0/min", "1000001/min", "60/day", "-1/min", "1.5/min", "60 / min"] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
    assert_eq!("1000000000/day".parse(), Ok(Quota { calls: 1_000_000_000 }));
    for text in ["", "1000000001/day", "0/day", "5/hour", "5"] {
        assert!(text.parse::<Quota>().is_err(), "{text}");
    }
}

#[test]
fn sizes_are_bounded_at_every_level() {
    let limits = SizeLimits { string_bytes: 4, array_items: 3 };
    let check = |text: &str| {
        let document = Document::parse(text).unwrap();
        limits.check(document.root()).map_err(|it| format!("{} {}", it.pointer, it.limit))
    };
    assert_eq!(check(r#"{"a":"abcd","b":[1,2,3]}"#), Ok(()));
    assert_eq!(check(r#"{"a":{"b":"abcde"}}"#), Err("/a/b string_bytes".to_owned()));
    assert_eq!(check(r#"{"a":"\u00e4\u00e4e"}"#), Err("/a string_bytes".to_owned()));
    assert_eq!(check(r#"{"a":[[1,2,3,4]]}"#), Err("/a/0 array_items".to_owned()));
    assert_eq!(check(r#"{"abcde":1}"#), Err("/abcde string_bytes".to_owned()));
    assert_eq!(check(r#"{"a":1,"b":2,"c":3,"d":4}"#), Err(" array_items".to_owned()));
}

#[test]
fn a_place_is_a_name_or_a_pointer_and_finds_texts() {
    let found = |place: &str, text: &str| {
        let place: ArgumentPlace = place.parse().unwrap();
        let document = Document::parse(text).unwrap();
        let mut found = Vec::new();
        let _ = place.each::<()>(document.root(), &mut |at, text| {
            found.push(format!("{at}={}", text.unwrap_or("?")));
            Ok(())
        });
        found.join(" ")
    };
    assert_eq!(found("path", r#"{"path":"a","other":"b"}"#), "/path=a");
    assert_eq!(found("path", r#"{"Path":"a","PATH":["b",1]}"#), "/Path=a /PATH/0=b /PATH/1=?");
    assert_eq!(found("path", r#"{"path":null}"#), "");
    assert_eq!(found("path", r#"{"path":{"a":"b"}}"#), "/path=?");
    assert_eq!(
        found("/edits/*/path", r#"{"edits":[{"path":"a"},{"path":"b"}]}"#),
        "/edits/0/path=a /edits/1/path=b"
    );
    assert_eq!(found("/a~1b", r#"{"a/b":"c"}"#), "/a~1b=c");
    assert_eq!("".parse::<ArgumentPlace>(), Err(BadPlace::Empty));
    assert_eq!("/a".repeat(17).parse::<ArgumentPlace>(), Err(BadPlace::TooDeep));
}

#[test]
fn paths_and_urls_are_bounded() {
    let workspace = Workspace::new("/srv/work").unwrap();
    assert_eq!(workspace.check(&"a".repeat(MAX_PATH_BYTES)), Ok(()));
    assert_eq!(workspace.check(&"a".repeat(MAX_PATH_BYTES + 1)), Err(PathFault::TooLong));
    assert_eq!(workspace.check(&format!("%{}2e", "25".repeat(100))), Err(PathFault::Readings));
    let allowed = ["a.example".parse().unwrap()];
    let url = |length: usize| format!("https://a.example/{}", "a".repeat(length - 18));
    assert_eq!(check_url(&url(MAX_URL_BYTES), &allowed), Ok(()));
    assert_eq!(check_url(&url(MAX_URL_BYTES + 1), &allowed), Err(UrlFault::TooLong));
}

#[test]
fn a_workspace_is_a_folder_below_the_root() {
    assert_eq!(Workspace::new("/srv//./work/").unwrap().as_str(), "/srv/work");
    for (path, why) in [
        ("srv", BadWorkspace::NotAbsolute),
        ("", BadWorkspace::NotAbsolute),
        ("/srv/../etc", BadWorkspace::NotAbsolute),
        ("/", BadWorkspace::Everything),
    ] {
        assert_eq!(Workspace::new(path), Err(why), "{path}");
    }
}

#[test]
fn an_allowed_host_is_written_in_one_way() {
    for (text, shown) in [
        ("api.example.com", "https://api.example.com:443"),
        ("*.Example.com", "https://*.example.com:443"),
        ("api.example.com:8443", "https://api.example.com:8443"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1", "http://127.0.0.1:80"),
        ("[::1]:8080", "https://[::1]:8080"),
    ] {
        assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), shown);
    }
    for text in [
        "",
        "*",
        "a b",
        "ftp://a.b",
        "a.b/c",
        "user@a.b",
        "a.b:0",
        "a.b:70000",
        "127.1",
        "0x7f.1",
        "ä.de",
    ] {
        assert_eq!(text.parse::<AllowedHost>(), Err(BadAllowedHost::NotAHost), "{text}");
    }
    assert_eq!("*.com".parse::<AllowedHost>(), Err(BadAllowedHost::Wildcard));
}
