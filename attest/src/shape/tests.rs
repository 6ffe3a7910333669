use super::*;

#[test]
fn white_space_is_what_the_reference_takes_off() {
    assert_eq!(trim("\t\u{b}\u{c}\r\n \u{a0}\u{feff}\u{3000}a b\u{2028}\u{202f}"), "a b");
    // Characters that are white space in one standard but not in the other: a next line, and
    // zero-width joiners.
    for text in ["\u{85}a", "a\u{200b}", "\u{180e}a", "a\u{2060}"] {
        assert_eq!(trim(text), text);
    }
}

#[test]
fn a_text_ends_at_its_limit() {
    let read = |bytes: usize| {
        let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes));
        let document = Document::parse(&text).unwrap();
        Fields::of(document.root(), "it").unwrap().text("a").map(|text| text.unwrap().len())
    };
    assert_eq!(read(MAX_TEXT_BYTES), Ok(MAX_TEXT_BYTES));
    let error = ShapeError::TextTooLong { member: "a", limit: MAX_TEXT_BYTES };
    assert_eq!(read(MAX_TEXT_BYTES + 1), Err(error));
}

#[test]
fn null_and_white_space_count_as_absent() {
    let document = Document::parse(r#"{"a":null,"b":" \n","c":" x "}"#).unwrap();
    let fields = Fields::of(document.root(), "it").unwrap();
    assert_eq!(fields.text("a"), Ok(None));
    assert_eq!(fields.text("b"), Ok(None));
    assert_eq!(fields.text("c"), Ok(Some("x".to_owned())));
    assert_eq!(fields.required_text("b"), Err(ShapeError::Missing { member: "b" }));
}

#[test]
fn what_is_there_to_be_filled_in_is_not_what_was_left_out() {
    let text = r#"{"a":null,"b":" \n","c":"x","d":["x"," "],"e":{"x":""},"f":[]}"#;
    let document = Document::parse(text).unwrap();
    let fields = Fields::of(document.root(), "it").unwrap();
    let empty = |member: &str| ShapeError::Empty { name: member.to_owned() };
    assert_eq!(fields.filled_text("a"), Ok(None));
    assert_eq!(fields.filled_text("b"), Err(empty("b")));
    assert_eq!(fields.filled_text("c"), Ok(Some("x".to_owned())));
    assert_eq!(fields.moment("b"), Err(empty("b")));
    assert_eq!(fields.required_texts("d", 9), Err(empty("d")));
    assert_eq!(fields.required_texts("a", 9), Err(ShapeError::Missing { member: "a" }));
    assert_eq!(fields.required_texts("f", 9), Ok(Vec::new()));
    assert_eq!(fields.table("e", 9), Err(empty("e")));
    let only = |known: &[&str]| fields.only(known).unwrap_err();
    assert_eq!(only(&["a", "b", "c", "d", "e", "f"]), empty("a"));
}

#[test]
fn what_is_of_another_kind_is_told_by_name() {
    let document = Document::parse(r#"{"a":1,"b":[1],"c":{"d":1},"e":"soon"}"#).unwrap();
    let fields = Fields::of(document.root(), "it").unwrap();
    let unexpected = |member, expected| Err(ShapeError::Unexpected { member, expected });
    assert_eq!(fields.text("a"), unexpected("a", "text").map(|()| None));
    assert_eq!(fields.texts("b", 9), unexpected("b", "text").map(|()| None));
    assert_eq!(fields.texts("a", 9), unexpected("a", "an array").map(|()| None));
    assert!(fields.table("c", 9).is_err() && fields.table("b", 9).is_err());
    assert!(fields.moment("e").is_err() && fields.flag("a").is_err());
    assert!(Fields::of(document.root().get("a").unwrap(), "it").is_err());
}
