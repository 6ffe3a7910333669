use super::*;

fn read(text: &str) -> Result<ClientCapabilities, CapabilitiesError> {
    ClientCapabilities::read(text.as_bytes())
}

#[test]
fn capabilities_are_kept_in_one_form_and_come_back() {
    let kept = read("{ \"sampling\" : {},\n \"roots\": { \"listChanged\": true, \"a\": 1.0 } }");
    let kept = kept.unwrap();
    assert_eq!(kept.as_str(), r#"{"roots":{"a":1,"listChanged":true},"sampling":{}}"#);
    let record = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<ClientCapabilities>(&record).unwrap(), kept);
    assert!(!kept.as_str().contains('\n'));
}

#[test]
fn what_is_declared_is_there_and_not_null() {
    let kept = read(r#"{"roots":{},"sampling":null,"x":{"elicitation":{}}}"#).unwrap();
    assert!(kept.declares("roots"));
    assert!(!kept.declares("sampling") && !kept.declares("elicitation"));
    assert!(!ClientCapabilities::default().declares("roots"));
    assert_eq!(ClientCapabilities::default(), read("{}").unwrap());
}

#[test]
fn what_is_not_one_object_is_not_remembered() {
    for text in ["null", "[]", "\"{}\"", "7"] {
        assert_eq!(read(text), Err(CapabilitiesError::NotAnObject), "{text}");
    }
    for text in ["", "{", "{} {}", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#] {
        assert!(matches!(read(text), Err(CapabilitiesError::Unreadable(_))), "{text}");
    }
    assert!(ClientCapabilities::read(b"{\"a\":\"\xff\"}").is_err());
    assert!(serde_json::from_str::<ClientCapabilities>(r#""[]""#).is_err());
}

#[test]
fn the_size_is_bounded_as_they_came_and_as_they_are_kept() {
    let of = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len()));
    assert_eq!(read(&of(MAX_CAPABILITIES_BYTES)).unwrap().as_str().len(), MAX_CAPABILITIES_BYTES);
    assert_eq!(read(&of(MAX_CAPABILITIES_BYTES + 1)), Err(CapabilitiesError::TooLarge));
    // `1e20` has 21 digits in canonical form.
    let numbers = vec!["1e20"; MAX_CAPABILITIES_BYTES / 10].join(",");
    let grows = format!(r#"{{"a":[{numbers}]}}"#);
    assert!(grows.len() <= MAX_CAPABILITIES_BYTES);
    assert_eq!(read(&grows), Err(CapabilitiesError::TooLarge));
}

#[test]
fn the_depth_is_bounded() {
    let objects =
        |levels: usize| format!("{}{{}}{}", "{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
    assert!(read(&objects(MAX_CAPABILITIES_DEPTH)).is_ok());
    assert_eq!(read(&objects(MAX_CAPABILITIES_DEPTH + 1)), Err(CapabilitiesError::TooDeep));
    let arrays =
        |levels: usize| format!(r#"{{"a":{}0{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
    assert!(read(&arrays(MAX_CAPABILITIES_DEPTH)).is_ok());
    assert_eq!(read(&arrays(MAX_CAPABILITIES_DEPTH + 1)), Err(CapabilitiesError::TooDeep));
}
