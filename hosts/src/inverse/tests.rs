use super::*;

#[track_caller]
fn check(original: &str, changed: &str, secrets: &[&str]) {
    let inverse = Inverse::of(original, changed).expect("it can be kept");
    let kept = serde_json::to_string(&inverse).unwrap();
    for secret in secrets {
        assert!(!kept.contains(secret), "{kept}");
    }
    let read: Inverse = serde_json::from_str(&kept).unwrap();
    assert_eq!(read.apply(changed).as_deref(), Some(original));
}

#[test]
fn a_text_comes_back_and_what_is_kept_has_nothing_of_it() {
    let key = "Zx81Qw-secret";
    let original = format!(
        r#"{{"a": {{"url": "https://h/{key}/mcp", "headers": {{"K": "{key}"}}}}, "x": "ü{key}"}}"#
    );
    let changed = format!(
        r#"{{"a": {{"command": "holdpoint", "env": {{"U": "https://h/{key}/mcp", "HOLDPOINT_HEADER_K": "{key}"}}}}, "x": "ü{key}"}}"#
    );
    check(&original, &changed, &[key, "Zx81", "secret", "https"]);
    check("", "x", &[]);
    check("same", "same", &["same"]);
    check("{\"a\":1}\r\n", "{ \"a\" : 1 }", &[]);
}

#[test]
fn a_long_text_is_a_few_ranges() {
    let line = |number: usize| format!("\"server{number}\": {{ \"command\": \"run{number}\" }},\n");
    let original: String = (0..2_000).map(line).collect();
    let changed = original.replace("\"run7", "\"holdpoint\", \"args\": \"run7");
    let inverse = Inverse::of(&original, &changed).unwrap();
    assert!(inverse.0.len() < 3_000, "{}", inverse.0.len());
    assert_eq!(inverse.apply(&changed).unwrap(), original);
}

#[test]
fn what_is_in_no_range_has_to_be_punctuation_and_names() {
    for gone in ["/* the key is 4711 */", "pass99word", "# note", "// note", "пароль"] {
        assert_eq!(Inverse::of(&format!("{{\"a\": {gone} 1}}"), "{\"a\":  1}"), None, "{gone}");
    }
    for gone in ["\"type\": \"streamable-http\", ", "'npx'", "headers = { }"] {
        assert!(Inverse::of(&format!("{{{gone}\"a\": 1}}"), "{\"a\": 1}").is_some(), "{gone}");
    }
}

#[test]
fn another_text_gives_nothing_back() {
    let inverse = Inverse::of("0123456789abcdef0123", "0123456789abcdef0123 and more").unwrap();
    assert_eq!(inverse.apply("short"), None);
}
