use super::*;
use crate::json::Document;

fn markers(text: &str) -> Vec<Marker> {
    scan(Document::parse(text).unwrap().root(), &ToolNames::default())
}

#[test]
fn a_marker_says_where_it_is_and_shows_what_is_hidden() {
    let found = markers(r#"{"a/b":[{"x~y":"one tw\u200bo"}]}"#);
    let expected = Marker {
        class: MarkerClass::HiddenCharacters,
        pointer: "/a~1b/0/x~0y".to_owned(),
        rule: "hidden.zero-width-in-word",
        excerpt: "\\u{200b}o".to_owned(),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn the_pointer_of_a_name_is_that_of_its_member() {
    let found = markers(r#"{"properties":{"ignore_previous_instructions":{"type":"string"}}}"#);
    let [marker] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(marker.pointer, "/properties/ignore_previous_instructions");
    assert_eq!(marker.rule, "override.ignore-previous");
}

#[test]
fn a_rule_for_parameters_is_silent_elsewhere() {
    let text = r#""The full conversation history.""#;
    let parameter = |member: &str| {
        markers(&format!(r#"{{"{member}":{{"properties":{{"a":{{"description":{text}}}}}}}}}"#))
    };
    assert_eq!(parameter("inputSchema").len(), 1);
    assert!(parameter("outputSchema").is_empty());
    assert!(markers(text).is_empty());
    assert_eq!(markers(&format!(r#"{{"arguments":[{{"description":{text}}}]}}"#)).len(), 1);
}

#[test]
fn the_number_of_markers_is_bounded() {
    let list = |count: usize| format!("[{}]", vec![r#""<system>""#; count].join(","));
    assert_eq!(markers(&list(MAX_MARKERS)).len(), MAX_MARKERS);
    let found = markers(&list(MAX_MARKERS + 1));
    assert_eq!(found.len(), MAX_MARKERS);
    assert_eq!(found.last().unwrap().pointer, format!("/{}", MAX_MARKERS - 1));
}

#[test]
fn long_names_are_cut_in_pointers() {
    let pointer = |length: usize| {
        let found = markers(&format!(r#"{{"{}":"<system>"}}"#, "n".repeat(length)));
        found.into_iter().next().unwrap().pointer
    };
    assert_eq!(pointer(MAX_POINTER_NAME), format!("/{}", "n".repeat(MAX_POINTER_NAME)));
    assert_eq!(pointer(MAX_POINTER_NAME + 1), format!("/{}…", "n".repeat(MAX_POINTER_NAME)));
}

#[test]
fn excerpts_are_bounded_with_escapes_counted() {
    for filler in ["x ", "\\u0001", "\\ud83d\\ude00", "\\ud83c\\udff4\\udb40\\udc41"] {
        let found = markers(&format!(r#""<system> <!--{}-->""#, filler.repeat(300)));
        assert!(!found.is_empty());
        for marker in found {
            assert!(marker.excerpt.chars().count() <= MAX_EXCERPT, "{}", marker.excerpt);
            assert!(!marker.excerpt.contains(|c: char| c.is_control()), "{}", marker.excerpt);
        }
    }
}

#[test]
fn only_strings_that_the_approved_entry_lacks_are_scanned() {
    let approved = Document::parse(r#"{"description":"<system>","title":"\u003cadmin>"}"#).unwrap();
    let check = |text: &str| {
        let document = Document::parse(text).unwrap();
        scan_new(document.root(), approved.root(), &ToolNames::default()).len()
    };
    assert_eq!(check(r#"{"description":"<system>"}"#), 0);
    assert_eq!(check(r#"{"elsewhere":["\u003csystem>","<admin>"]}"#), 0);
    assert_eq!(check(r#"{"description":"<system> "}"#), 1);
    assert_eq!(check(r#"{"<admin>":"<hidden>"}"#), 1);
}

#[test]
fn known_strings_are_told_by_their_text_and_listed_once() {
    let document = Document::parse(r#"{"a":["b","\u0062","c"],"b":{"a":1}}"#).unwrap();
    let known = KnownStrings::of(document.root());
    assert!(known.contains("a") && known.contains("b") && known.contains("c"));
    assert!(!known.contains("d") && !known.contains(""));
    let mut distinct: Vec<_> =
        known.distinct().map(|node| node.as_str().unwrap().into_owned()).collect();
    distinct.sort();
    assert_eq!(distinct, ["a", "b", "c"]);
}
