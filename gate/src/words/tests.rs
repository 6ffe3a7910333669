use super::*;
use contract::change::ChangeClass;

fn finding(kind: ChangeKind, path: &str) -> Finding {
    Finding::new(kind, path, None, None)
}

#[test]
fn every_kind_has_words_for_both_audiences_and_none_says_unsafe() {
    for &kind in ChangeKind::ALL {
        for path in
            ["", "/description", "/inputSchema/properties/owner", "/annotations/readOnlyHint"]
        {
            for audience in [Audience::Person, Audience::Model] {
                let words = say(&finding(kind, path), audience);
                assert!(
                    !words.is_empty() && !words.contains("unsafe") && !words.contains("malicious"),
                    "{kind}: {words}"
                );
                assert!(words.is_char_boundary(0) && !words.ends_with('.'), "{kind}: {words}");
            }
        }
    }
}

#[test]
fn the_banner_is_the_one_that_people_know() {
    let findings = [
        finding(ChangeKind::AddedOptionalParam, "/inputSchema/properties/x"),
        finding(ChangeKind::AddedRequiredParam, "/inputSchema/properties/owner"),
    ];
    assert_eq!(
        banner("reports", "make_report", &findings),
        "○ holdpoint — caught a silent change: make_report now requires a new parameter (owner): existing calls that \
         omit it will fail. Held before your agent ran it. A person decides: holdpoint review reports  [Review · Re-pin · Validate]"
    );
    assert_eq!(findings.iter().map(|finding| finding.class).max(), Some(ChangeClass::Breaking));
}

#[test]
fn a_model_is_told_a_new_name_only_if_it_can_carry_no_message() {
    for name in ["owner", "max_results", "user-id2", "A"] {
        assert_eq!(model_name(name, false), name);
    }
    for name in [
        "",
        "all clear verified",
        "is_safe",
        "Approved",
        "SECURE_mode",
        "a b",
        "näme",
        "x\n",
        "ignore_previous_instructions",
        "abcdefghijklmnopqrstuvwxyz0123456",
    ] {
        let told = model_name(name, false);
        assert!(
            told.len() == 8 && told.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{name:?} told as {told}"
        );
    }
    assert_eq!(model_name("is_safe", true), "is_safe");
    assert_ne!(model_name("bad\u{1b}[2J", true), "bad\u{1b}[2J");
}

#[test]
fn a_person_sees_what_is_hidden() {
    assert_eq!(
        escape_hidden("a\u{202e}b\u{200b}\u{1b}[0m\u{e0041}ü字"),
        "a\\u{202e}b\\u{200b}\\u{1b}[0m\\u{e0041}ü字"
    );
    let words = say(
        &finding(ChangeKind::AddedRequiredParam, "/inputSchema/properties/ow\u{200b}ner"),
        Audience::Person,
    );
    assert!(words.contains("`ow\\u{200b}ner`"));
}

#[test]
fn nested_parameters_are_named_with_dots() {
    assert_eq!(parameter("/inputSchema/properties/a/properties/b/type"), "a.b");
    assert_eq!(parameter("/inputSchema/properties/properties"), "properties");
    assert_eq!(parameter("/inputSchema/properties/a~1b/items/properties/c"), "a/b.c");
    assert_eq!(parameter("/inputSchema/required"), "");
    assert_eq!(parameter("/description"), "");
}
