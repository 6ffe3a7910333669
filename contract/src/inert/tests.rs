use super::*;
use crate::json::Document;

fn judge(old: Option<&str>, new: &str) -> Option<NotInert> {
    let old = old.map(|old| Document::parse(old).unwrap());
    let new = Document::parse(new).unwrap();
    not_inert(
        old.as_ref().map(Document::root),
        new.root(),
        &ToolNames::default(),
        &InertLimits::default(),
    )
}

fn tool(properties: &str) -> String {
    format!(r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{{properties}}}}}}}"#)
}

const OLD: &str =
    r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#;

fn against_old(property: &str) -> Option<NotInert> {
    judge(Some(OLD), &tool(&format!(r#""a":{{"type":"string"}},"b":{property}"#)))
}

fn preset_at(pointer: &str) -> Option<NotInert> {
    Some(NotInert::Preset { pointer: format!("/inputSchema/properties{pointer}") })
}

#[test]
fn a_new_string_is_inert_up_to_the_limit_in_characters() {
    let described =
        |length: usize| against_old(&format!(r#"{{"description":"{}"}}"#, "é".repeat(length)));
    assert_eq!(described(400), None);
    let pointer = "/inputSchema/properties/b/description".to_owned();
    assert_eq!(described(401), Some(NotInert::StringTooLong { pointer, length: 401 }));
}

#[test]
fn a_name_that_is_too_long_is_named_by_its_member() {
    let name = "n".repeat(401);
    let found = judge(Some("{}"), &format!(r#"{{"{name}":{{"x":1}}}}"#));
    let Some(NotInert::StringTooLong { pointer, length: 401 }) = found else { panic!("{found:?}") };
    assert!(pointer.starts_with("/nnn"));
}

#[test]
fn all_new_strings_together_are_inert_up_to_the_limit() {
    let strings = |last: usize| {
        let texts = ["x".repeat(400), "y".repeat(400), "z".repeat(last)];
        judge(Some(r#"["known"]"#), &format!(r#"["known","{}"]"#, texts.join("\",\"")))
    };
    assert_eq!(strings(200), None);
    assert_eq!(strings(201), Some(NotInert::TooMuchText { total: 1_001 }));
}

#[test]
fn a_repeated_string_is_counted_once_and_a_known_one_not_at_all() {
    let long = "x".repeat(400);
    assert_eq!(judge(None, &format!(r#"["{long}","{long}","{long}"]"#)), None);
    let known = format!(r#"{{"{}":0}}"#, "k".repeat(5_000));
    assert_eq!(judge(Some(&known), &format!("[{known}]")), None);
    assert!(judge(None, &known).is_some());
}

#[test]
fn limits_can_be_set() {
    let document = Document::parse(r#"["12345","123456"]"#).unwrap();
    let check = |string_max, entry_max| {
        not_inert(
            None,
            document.root(),
            &ToolNames::default(),
            &InertLimits { string_max, entry_max },
        )
    };
    assert_eq!(check(6, 11), None);
    assert!(matches!(check(5, 11), Some(NotInert::StringTooLong { length: 6, .. })));
    assert_eq!(check(6, 10), Some(NotInert::TooMuchText { total: 11 }));
}

#[test]
fn a_marker_in_new_text_counts_and_one_in_approved_text_does_not() {
    let text = r#"["<system>"]"#;
    assert!(
        matches!(judge(None, text), Some(NotInert::Marker(marker)) if marker.rule == "role.tag")
    );
    assert!(judge(Some("[]"), text).is_some());
    assert_eq!(judge(Some(text), text), None);
}

#[test]
fn a_new_property_that_brings_a_value_is_a_preset() {
    for schema in
        [r#"{"default":"x"}"#, r#"{"default":0}"#, r#"{"const":null}"#, r#"{"enum":["x"]}"#]
    {
        assert_eq!(against_old(schema), preset_at("/b"), "{schema}");
    }
    for schema in [
        r#"{"default":null}"#,
        r#"{"enum":["x","y"]}"#,
        r#"{"enum":[]}"#,
        r#"{"examples":[{"default":1}]}"#,
        "{}",
        "true",
    ] {
        assert_eq!(against_old(schema), None, "{schema}");
    }
}

#[test]
fn a_preset_is_found_below_a_new_property_too() {
    assert_eq!(
        against_old(r#"{"anyOf":[{"type":"null"},{"const":"x"}]}"#),
        preset_at("/b/anyOf/1")
    );
    assert_eq!(
        against_old(r#"{"properties":{"default":{"default":1}}}"#),
        preset_at("/b/properties/default")
    );
    assert_eq!(against_old(r#"{"properties":{"default":{"type":"string"}}}"#), None);
    assert_eq!(against_old(r#"{"items":{"enum":["x"]}}"#), preset_at("/b/items"));
}

#[test]
fn a_preset_is_found_by_way_of_a_reference_and_cycles_end() {
    let with = |definition: &str| {
        let new = format!(
            r##"{{"name":"t","inputSchema":{{"type":"object","$defs":{{"d/e":{definition}}},"properties":{{"a":{{"type":"string"}},"b":{{"$ref":"#/$defs/d~1e"}}}}}}}}"##
        );
        judge(Some(OLD), &new)
    };
    assert_eq!(with(r#"{"const":"x"}"#), preset_at("/b"));
    assert_eq!(with(r##"{"items":{"$ref":"#/$defs/d~1e"}}"##), None);
    assert_eq!(with(r##"{"items":{"$ref":"#"}}"##), None);
}

#[test]
fn a_reference_that_leads_nowhere_counts_as_a_preset() {
    for reference in ["#/none", "#/%24defs/d", "https://example.com/d"] {
        let found = against_old(&format!(r#"{{"$ref":"{reference}"}}"#));
        assert!(matches!(found, Some(NotInert::Preset { .. })), "{reference}");
    }
    assert!(matches!(against_old(r#"{"enum":["x","x"]}"#), Some(NotInert::Preset { .. })));
    assert_eq!(against_old(r#"{"enum":["x","y"]}"#), None);
}

#[test]
fn references_are_followed_up_to_the_limit() {
    let with = |count: usize| {
        against_old(&format!(
            r#"{{"anyOf":[{}]}}"#,
            vec![r##"{"$ref":"#/properties/a"}"##; count].join(",")
        ))
    };
    assert_eq!(with(MAX_REFERENCES), None);
    assert!(matches!(with(MAX_REFERENCES + 1), Some(NotInert::Preset { .. })));
}

#[test]
fn an_old_property_may_have_any_value() {
    let property = |schema: &str| tool(&format!(r#""a":{schema}"#));
    assert_eq!(judge(Some(OLD), &property(r#"{"default":"x"}"#)), None);
    let nested = property(r#"{"properties":{"c":{"const":1}}}"#);
    assert_eq!(judge(Some(OLD), &nested), preset_at("/a/properties/c"));
    assert_eq!(judge(Some(&nested), &nested), None);
    assert_eq!(judge(None, &property(r#"{"default":"x"}"#)), preset_at("/a"));
}
