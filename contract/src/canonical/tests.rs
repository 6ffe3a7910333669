use super::*;
use crate::json::Document;

fn form(text: &str, position: Position) -> String {
    canonical_text(Document::parse(text).unwrap().root(), position)
}

fn check(text: &str, expected: &str) {
    assert_eq!(form(text, Position::Plain), expected, "{text}");
    assert_eq!(form(expected, Position::Plain), expected, "not a fixed point: {expected}");
}

#[test]
fn rfc_8785_published_cases() {
    // Section 3.2.2; its first number has digits that a double loses, which we keep.
    check(
        r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#,
        r#"{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
    // Section 3.2.3: sorting by UTF-16 code units.
    check(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
            "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
    // The test files that the RFC points to: arrays, french, structures, unicode, values, weird.
    check("[56,{\"d\":true,\"10\":null,\"1\":[ ]}]", r#"[56,{"1":[],"10":null,"d":true}]"#);
    check(
        r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
        r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
    );
    check(
        r#"{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}"#,
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
    );
    check("{\"Unnormalized Unicode\":\"A\u{30a}\"}", "{\"Unnormalized Unicode\":\"A\u{30a}\"}");
    check(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\u000a":"Newline","1":"One","\u0080":"Control\u007f",
            "\ud83d\ude02":"Smiley","\u00f6":"Latin Small Letter O With Diaeresis","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "</script>":"Browser Challenge"}"#,
        "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\",\"</script>\":\"Browser Challenge\",\"\u{80}\":\"Control\u{7f}\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😂\":\"Smiley\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

#[test]
fn sets_are_sorted_where_json_schema_says_so_and_nowhere_else() {
    let schema =
        |text, expected: &str| assert_eq!(form(text, Position::Schema), expected, "{text}");
    schema(r#"{"required":["b","a","b"]}"#, r#"{"required":["a","b"]}"#);
    schema(r#"{"type":["string","null"]}"#, r#"{"type":["null","string"]}"#);
    schema(
        r#"{"enum":[3,"x",1,1.0,{"b":[2,1],"a":0}]}"#,
        r#"{"enum":["x",1,3,{"a":0,"b":[2,1]}]}"#,
    );
    schema(r#"{"dependentRequired":{"x":["b","a"]}}"#, r#"{"dependentRequired":{"x":["a","b"]}}"#);
    schema(
        r#"{"properties":{"required":{"enum":["b","a"]}}}"#,
        r#"{"properties":{"required":{"enum":["a","b"]}}}"#,
    );
    schema(r#"{"items":[{"type":["b","a"]}]}"#, r#"{"items":[{"type":["a","b"]}]}"#);
    schema(r#"{"default":{"required":["b","a"]}}"#, r#"{"default":{"required":["b","a"]}}"#);
    schema(
        r#"{"examples":["b","a"],"const":["b","a"]}"#,
        r#"{"const":["b","a"],"examples":["b","a"]}"#,
    );
    schema(r#"{"x-other":{"enum":["b","a"]}}"#, r#"{"x-other":{"enum":["b","a"]}}"#);
    schema(
        r#"{"allOf":[{"a":1},{"required":["b","a"]}]}"#,
        r#"{"allOf":[{"a":1},{"required":["a","b"]}]}"#,
    );
    assert_eq!(form(r#"{"required":["b","a"]}"#, Position::Plain), r#"{"required":["b","a"]}"#);
}

#[test]
fn strings_are_kept_byte_for_byte() {
    check("\"e\u{301}\"", "\"e\u{301}\"");
    check("\"\u{e9}\"", "\"\u{e9}\"");
    check(r#""\u0041\/\u007f\u2028""#, "\"A/\u{7f}\u{2028}\"");
    check(r#""\u0000\u001F\b\f""#, r#""\u0000\u001f\b\f""#);
}

#[test]
fn values_are_the_same_exactly_where_their_canonical_forms_are() {
    let texts = [
        "null",
        "true",
        "1",
        "1.0",
        "10e-1",
        "9007199254740993",
        r#""a""#,
        r#""\u0061""#,
        "[]",
        "[1,2]",
        "[2,1]",
        "[2,1,1.0]",
        "{}",
        r#"{"a":1,"b":[1,2]}"#,
        r#"{"b":[1,2],"a":1.0}"#,
        r#"{"b":[2,1],"\u0061":1}"#,
        r#"{"enum":[1,2],"required":["a","b"]}"#,
        r#"{"required":["b","a","b"],"enum":[2,1]}"#,
        r#"{"properties":{"enum":[1,2]}}"#,
        r#"{"properties":{"enum":[2,1]}}"#,
        r#"{"dependencies":{"a":{"enum":[1,2]},"b":["x","y"]}}"#,
        r#"{"dependencies":{"b":["y","x"],"a":{"enum":[2,1]}}}"#,
    ];
    let positions = [
        Position::Plain,
        Position::Schema,
        Position::SchemaMap,
        Position::SchemaList,
        Position::Set,
        Position::SetMap,
    ];
    for position in positions {
        for (left_text, right_text) in
            texts.iter().flat_map(|left| texts.iter().map(move |right| (left, right)))
        {
            let left = Document::parse(left_text).unwrap();
            let right = Document::parse(right_text).unwrap();
            let is_equal = canonical(left.root(), position) == canonical(right.root(), position);
            let is_same = is_same(left.root(), right.root(), position);
            assert_eq!(is_same, is_equal, "{position:?}: {left_text} and {right_text}");
        }
    }
}
