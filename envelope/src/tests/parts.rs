//! Members of objects, and truncated messages.
use super::*;

fn listed(object: &str) -> Vec<(String, String)> {
    members(object.as_bytes())
        .map(|(name, value)| (name.into_owned(), String::from_utf8(value.to_vec()).unwrap()))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn members_come_in_order_with_their_bytes() {
    let object = r#" { "b" : [1, {"x":2}] ,"a\u0062":"c}","b":null, "":1e5 } "#;
    let expected = [("b", r#"[1, {"x":2}]"#), ("ab", "\"c}\""), ("b", "null"), ("", "1e5")];
    assert_eq!(listed(object), pairs(&expected));
    let names: Vec<_> = member_names(object.as_bytes()).collect();
    assert_eq!(names, ["b", "ab", "b", ""]);
}

#[test]
fn members_of_what_is_no_object_are_none() {
    for other in ["{}", " { } ", "[1]", "1", "null", "\"{}\"", "", "[{\"a\":1}]"] {
        assert_eq!(listed(other), [], "{other}");
    }
}

#[test]
fn members_end_where_the_bytes_are_no_object_any_more() {
    let mut cut = members(br#"{"a":1,"b":tru,"c":3}"#);
    assert_eq!(cut.next(), Some((Cow::Borrowed("a"), &b"1"[..])));
    assert_eq!(cut.next(), None);
    assert_eq!(cut.next(), None);
    let names: Vec<_> = member_names(b"{\"\\ud800\":1,\"\xff\":2}").collect();
    assert_eq!(names, ["\u{fffd}", "\u{fffd}"]);
}

fn torn(beginning: &str, end: &str) -> (Option<String>, bool) {
    let torn = read_torn(beginning.as_bytes(), end.as_bytes());
    assert_eq!(id_of_torn(beginning.as_bytes(), end.as_bytes()), torn.id);
    let id = torn.id.map(|id| String::from_utf8(id.raw().to_vec()).unwrap());
    (id, torn.has_method)
}

fn torn_id(beginning: &str, end: &str) -> Option<String> {
    torn(beginning, end).0
}

#[test]
fn the_id_before_the_torn_value_is_read() {
    let id = |beginning| torn_id(beginning, "xxx\"}]}}");
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"te"#).as_deref(), Some("17"));
    assert_eq!(id(r#" {"id" : "a\"b" , "result":"xx"#).as_deref(), Some(r#""a\"b""#));
    assert_eq!(id(r#"{"i\u0064":-1.5,"result":["#).as_deref(), Some("-1.5"));
    // Not at the top level, not an id, itself truncated, or not a message.
    assert_eq!(id(r#"{"jsonrpc":"2.0","result":{"id":17,"x":"#), None);
    assert_eq!(id(r#"{"jsonrpc":"2.0","x":{"id":17},"result":{"#), None);
    assert_eq!(id(r#"{"id":null,"result":{"#), None);
    assert_eq!(id(r#"{"id":17"#), None);
    assert_eq!(id(r#"{"id":"17"#), None);
    assert_eq!(id(r#"["id",17,{"id":17,"#), None);
    assert_eq!(id(r#"x{"id":17,"result":{"#), None);
    assert_eq!(id(""), None);
}

#[test]
fn the_id_after_the_torn_value_is_read() {
    let id = |end| torn_id(r#"{"jsonrpc":"2.0","result":{"content":[{"te"#, end);
    assert_eq!(id(r#"xxx"}]},"id":17}"#).as_deref(), Some("17"));
    assert_eq!(id(r#"xxx"}]} , "id" : -1.5e3 } "#).as_deref(), Some("-1.5e3"));
    assert_eq!(id(r#"xxx"}]},"id":"a\\"}"#).as_deref(), Some(r#""a\\""#));
    assert_eq!(id(r#"xxx"}]},"id":"a\"b"}"#).as_deref(), Some(r#""a\"b""#));
    assert_eq!(id(r#"","id":"x"}"#).as_deref(), Some(r#""x""#));
    // Only the last member counts, only at the top level, with its name unescaped and a value that
    // can be an id.
    assert_eq!(id(r#"xxx"}]},"id":17,"x":1}"#), None);
    assert_eq!(id(r#"xxx"}],"id":17}}"#), None);
    assert_eq!(id(r#"xxx"}],"id":17}]"#), None);
    assert_eq!(id(r#"xxx,\"id":17}"#), None);
    assert_eq!(id(r#"xxx"}]},"Id":17}"#), None);
    assert_eq!(id(r#"xxx"}]},"x":"id","y":17}"#), None);
    assert_eq!(id(r#"xxx"}]},"id":1-7}"#), None);
    assert_eq!(id(r#"xxx"}]},"id":true}"#), None);
    assert_eq!(id(r#"17}"#), None);
    assert_eq!(id(r#""}"#), None);
    assert_eq!(id("}"), None);
}

#[test]
fn an_id_that_is_there_twice_is_none() {
    let beginning = r#"{"jsonrpc":"2.0","id":1,"result":{"#;
    assert_eq!(torn_id(beginning, r#"},"id":2}"#), None);
    // The two ends may overlap.
    assert_eq!(torn_id(beginning, r#"},"id":1}"#).as_deref(), Some("1"));
    assert_eq!(torn_id(r#"{"id":1,"id":1,"result":{"#, r#"}}"#), None);
    assert_eq!(torn_id(r#"{"id":1,"id":1,"result":{"#, r#"},"id":1}"#), None);
}

#[test]
fn a_torn_request_is_told_from_a_torn_answer() {
    assert!(torn(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"#, "}}").1);
    assert!(torn(r#"{"method":"m","params":{"#, r#"},"id":1}"#).1);
    assert!(!torn(r#"{"jsonrpc":"2.0","id":1,"result":{"method":"m","#, "}}").1);
}

#[test]
fn bytes_that_are_no_text_make_no_id() {
    let beginning = b"{\"id\":\"\xff\",\"result\":{";
    assert_eq!(id_of_torn(beginning, b"}}"), None);
    // Truncated in the middle of a character that is not part of the id.
    let beginning = b"{\"id\":\"a\",\"result\":\"\xe2\x82";
    assert_eq!(id_of_torn(beginning, b"\xac\"}").unwrap().raw(), b"\"a\"");
}

#[test]
fn ids_of_a_line_that_is_no_json_are_found_as_members_only() {
    let ids = |line: &str| -> Vec<String> {
        let ids = ids_of_broken(line.as_bytes());
        ids.iter().map(|id| String::from_utf8(id.key().to_vec()).unwrap()).collect()
    };
    assert_eq!(ids(r#"{"jsonrpc":"2.0","id":7,"result":{"#), ["7"]);
    assert_eq!(ids(r#"{"id" : "a\/b", "id":1.5e1"#), ["\"a/b\"", "1.5e1"]);
    for line in
        [r#"id: 7"#, r#""id" 7"#, r#"{"id":tr"#, r#"{"id":"open"#, r#"{"id":"#, r#"{"xid":7"#]
    {
        assert!(ids(line).is_empty(), "{line}");
    }
    assert_eq!(ids(&r#""id":1,"#.repeat(100)).len(), MAX_BROKEN_IDS);
}
