use super::*;

fn rule(text: &str) -> HostRule {
    text.parse().unwrap()
}

#[test]
fn a_rule_is_written_as_it_was_read() {
    for text in [
        "api.example.com",
        "api.example.com:8443",
        "*.example.com",
        "*.example.com:8443",
        "tcp:db.example.com:5432",
        "private:db.example.com",
        "private:tcp:db.example.com:5432",
        "10.0.0.5:5432",
        "[fd00::1]:5432",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
    assert_eq!(rule("API.Example.com:443").to_string(), "api.example.com");
    assert_eq!(rule("localhost:8080").to_string(), "localhost:8080");
}

#[test]
fn what_is_no_rule_is_refused() {
    for text in ["", "*", "*.", "*.com:", "a b.com", "example.com:0", "example.com:70000", "-a.com"]
    {
        assert!(text.parse::<HostRule>().is_err(), "{text}");
    }
    for text in ["a..com", "api.*.com", "http://example.com", "1.2.3", "exa\u{6d}ple\u{e9}.com"] {
        assert!(text.parse::<HostRule>().is_err(), "{text}");
    }
    assert_eq!("*.com".parse::<HostRule>(), Err(BadRule::TooWide("*.com".to_owned())));
    assert_eq!("10.0.0.5".parse::<HostRule>(), Err(BadRule::NoPort("10.0.0.5".to_owned())));
    assert_eq!("tcp:a.com".parse::<HostRule>(), Err(BadRule::NoPort("tcp:a.com".to_owned())));
    assert!("fd00::1".parse::<HostRule>().is_err());
}

#[test]
fn a_name_covers_itself_and_a_wildcard_what_is_below() {
    assert!(rule("api.example.com").covers_name("API.example.COM"));
    assert!(!rule("api.example.com").covers_name("x.api.example.com"));
    let wild = rule("*.example.com");
    for (name, expected) in [
        ("a.example.com", true),
        ("a.b.EXAMPLE.com", true),
        ("example.com", false),
        (".example.com", false),
        ("badexample.com", false),
        ("example.com.evil.org", false),
    ] {
        assert_eq!(wild.covers_name(name), expected, "{name}");
    }
}

#[test]
fn the_port_counts() {
    let rules = [rule("api.example.com"), rule("10.0.0.5:5432")];
    assert!(HostRule::for_name(&rules, "api.example.com", 443).is_some());
    assert!(HostRule::for_name(&rules, "api.example.com", 80).is_none());
    assert!(HostRule::for_address(&rules, "10.0.0.5".parse().unwrap(), 5432).is_some());
    assert!(HostRule::for_address(&rules, "10.0.0.5".parse().unwrap(), 443).is_none());
    assert!(HostRule::for_address(&rules, "10.0.0.6".parse().unwrap(), 5432).is_none());
}

#[test]
fn only_what_says_so_may_be_private_or_not_tls() {
    assert!(!rule("a.com").allows_private() && !rule("a.com").allows_any_protocol());
    assert!(rule("private:a.com").allows_private() && !rule("private:a.com").allows_any_protocol());
    assert!(rule("tcp:a.com:1").allows_any_protocol() && !rule("tcp:a.com:1").allows_private());
    assert!(rule("10.0.0.5:1").allows_private() && rule("10.0.0.5:1").allows_any_protocol());
}
