use super::*;

fn tool(properties: &str) -> String {
    format!(r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{{properties}}}}}}}"#)
}

fn read(properties: &str) -> Result<MirroredParameters, BadAnnotation> {
    MirroredParameters::of_tool(&tool(properties))
}

/// The headers of a call, one per line.
fn mirrored(properties: &str, arguments: &str) -> Result<String, Unmirrored> {
    let headers = read(properties).unwrap().headers(Some(arguments.as_bytes()))?;
    let line = |header: &ParameterHeader| {
        assert!(header.value.is_sensitive());
        format!("{}: {}", header.name(), String::from_utf8_lossy(header.value()))
    };
    Ok(headers.iter().map(line).collect::<Vec<_>>().join("\n"))
}

const REGION: &str = r#""region":{"type":"string","x-mcp-header":"Region"}"#;
const COUNT: &str = r#""count":{"type":"integer","x-mcp-header":"Count"}"#;

#[test]
fn arguments_are_copied_as_the_revision_says() {
    let check = |properties: &str, arguments: &str, expected: &str| {
        assert_eq!(mirrored(properties, arguments).unwrap(), expected, "{arguments}");
    };
    check(REGION, r#"{"region":"us-west1","query":"x"}"#, "mcp-param-region: us-west1");
    check(
        REGION,
        r#"{"region":"Hello, 世界"}"#,
        "mcp-param-region: =?base64?SGVsbG8sIOS4lueVjA==?=",
    );
    check(REGION, r#"{"region":" padded "}"#, "mcp-param-region: =?base64?IHBhZGRlZCA=?=");
    check(REGION, r#"{"region":"line1\nline2"}"#, "mcp-param-region: =?base64?bGluZTEKbGluZTI=?=");
    check(
        REGION,
        r#"{"region":"=?base64?literal?="}"#,
        "mcp-param-region: =?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
    );
    check(REGION, r#"{"region":null}"#, "");
    check(REGION, r#"{"query":"x"}"#, "");
    check(REGION, "[]", "");
    check(REGION, r#"{"regi\u006fn":"a"}"#, "mcp-param-region: a");
    check(r#""b":{"type":"boolean","x-mcp-header":"B"}"#, r#"{"b":true}"#, "mcp-param-b: true");
    check(COUNT, r#"{"count":-7}"#, "mcp-param-count: -7");
    let nested = r#""o":{"type":"object","properties":{"limit":{"type":["integer","null"],"x-mcp-header":"Limit"}}}"#;
    check(nested, r#"{"o":{"limit":42},"limit":1}"#, "mcp-param-limit: 42");
    check(nested, r#"{"o":null}"#, "");
    check(nested, r#"{"o":[{"limit":42}]}"#, "");
    let both = format!("{REGION},{COUNT}");
    check(&both, r#"{"count":1,"region":"a"}"#, "mcp-param-region: a\nmcp-param-count: 1");
}

#[test]
fn no_argument_can_write_a_header_of_its_own() {
    for value in [r"a\r\nHost: evil", r"a\nb", r"\u0000", r"\u007f", r"\u0085", r"a\u2028b", r"\t"]
    {
        let headers = mirrored(REGION, &format!(r#"{{"region":"{value}"}}"#)).unwrap();
        assert!(headers.starts_with("mcp-param-region: =?base64?"), "{headers}");
        assert!(!headers.contains(['\r', '\n']), "{headers}");
    }
}

#[test]
fn whole_numbers_are_written_in_digits_within_the_safe_range() {
    let check = |token: &str, expected: Option<&str>| {
        let headers = mirrored(COUNT, &format!(r#"{{"count":{token}}}"#));
        let expected = expected.map(|digits| format!("mcp-param-count: {digits}"));
        assert_eq!(headers, expected.ok_or(Unmirrored::NotRepresentable), "{token}");
    };
    check("42", Some("42"));
    check("42.0", Some("42"));
    check("4.2e1", Some("42"));
    check("420E-1", Some("42"));
    check("-0", Some("0"));
    check("0.000", Some("0"));
    check("0e9", Some("0"));
    check("9007199254740991", Some("9007199254740991"));
    check("-9007199254740991", Some("-9007199254740991"));
    check("9007199254740992", None);
    check("-9007199254740992", None);
    check("1e400", None);
    check("1e99999999999999999999", None);
    check("1e-400", None);
    check("4.5", None);
    check("1e-1", None);
    check("{}", None);
    check("[1]", None);
    check(r#""\ud800""#, None);
}

#[test]
fn an_argument_that_is_there_twice_is_in_no_header() {
    let twice = mirrored(REGION, r#"{"region":"a","region":"b"}"#);
    assert_eq!(twice, Err(Unmirrored::Ambiguous));
    let spelled = mirrored(REGION, r#"{"region":"a","r\u0065gion":"a"}"#);
    assert_eq!(spelled, Err(Unmirrored::Ambiguous));
    // An argument that is not sent as a header is not checked.
    assert_eq!(mirrored(REGION, r#"{"q":1,"q":2,"region":"a"}"#).unwrap(), "mcp-param-region: a");
}

#[test]
fn annotations_that_break_a_rule_are_refused() {
    let check = |properties: &str, expected| {
        assert_eq!(read(properties).err(), expected, "{properties}");
    };
    let named = |name: &str| format!(r#""p":{{"type":"string","x-mcp-header":{name}}}"#);
    for name in [
        r#""""#,
        r#""a b""#,
        r#""a:b""#,
        r#""a\r\nb""#,
        r#""ä""#,
        r#""a\u0000""#,
        "null",
        "1",
        r#""(a)""#,
        r#""a\"b""#,
    ] {
        check(&named(name), Some(BadAnnotation::NotAName));
    }
    check(&named(r#""!#$%&'*+-.^_`|~09azAZ""#), None);
    let typed = |kind: &str| format!(r#""p":{{{kind}"x-mcp-header":"P"}}"#);
    for kind in [
        r#""type":"number","#,
        r#""type":"object","#,
        r#""type":"array","#,
        r#""type":["string","number"],"#,
        r#""type":["null"],"#,
        r#""type":[],"#,
        "",
    ] {
        check(&typed(kind), Some(BadAnnotation::NotPrimitive));
    }
    check(&typed(r#""type":["string","null"],"#), None);
    check(
        r#""a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"string","x-mcp-header":"sAME"}"#,
        Some(BadAnnotation::Repeated),
    );
}

#[test]
fn annotations_are_only_where_properties_alone_lead_to() {
    let out = Some(BadAnnotation::OutOfReach);
    let annotated = r#"{"type":"string","x-mcp-header":"P"}"#;
    for keyword in
        ["items", "additionalProperties", "not", "if", "then", "else", "contains", "x-vendor"]
    {
        let property = format!(r#""p":{{"type":"object","{keyword}":{annotated}}}"#);
        assert_eq!(read(&property).err(), out, "{keyword}");
        let nested = format!(r#""p":{{"{keyword}":{{"properties":{{"q":{annotated}}}}}}}"#);
        assert_eq!(read(&nested).err(), out, "{keyword}");
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        let property = format!(r#""p":{{"{keyword}":[{{}},{annotated}]}}"#);
        assert_eq!(read(&property).err(), out, "{keyword}");
    }
    let defined =
        |schema: &str| MirroredParameters::of_tool(&format!(r#"{{"inputSchema":{schema}}}"#));
    assert_eq!(defined(&format!(r#"{{"$defs":{{"p":{annotated}}}}}"#)).err(), out);
    assert_eq!(defined(annotated).err(), out);
    // A parameter or definition may have any name, and data are not schemas.
    assert!(read(r#""x-mcp-header":{"type":"number"}"#).unwrap().is_empty());
    assert!(defined(r#"{"$defs":{"x-mcp-header":{"type":"number"}}}"#).unwrap().is_empty());
    for keyword in DATA {
        let property = format!(r#""p":{{"{keyword}":{{"x-mcp-header":"P"}}}}"#);
        assert!(read(&property).unwrap().is_empty(), "{keyword}");
    }
}

#[test]
fn a_tool_without_annotations_has_no_headers_and_an_escape_hides_none() {
    assert!(read(r#""p":{"type":"string"}"#).unwrap().is_empty());
    assert!(MirroredParameters::of_tool(r#"{"name":"x-mcp-header"}"#).unwrap().is_empty());
    let escaped = r#""p":{"type":"string","x-mcp-h\u0065ader":"P"}"#;
    assert_eq!(mirrored(escaped, r#"{"p":"a"}"#).unwrap(), "mcp-param-p: a");
    assert!(read(REGION).unwrap().headers(None).unwrap().is_empty());
}

fn many(count: usize) -> String {
    let one = |number| format!(r#""p{number}":{{"type":"string","x-mcp-header":"P{number}"}}"#);
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn names_and_numbers_of_headers_are_bounded_at_the_limit_and_not_before() {
    assert!(read(&many(MAX_PARAMETER_HEADERS)).is_ok());
    assert_eq!(read(&many(MAX_PARAMETER_HEADERS + 1)).err(), Some(BadAnnotation::TooMany));
    let named = |length| {
        read(&format!(r#""p":{{"type":"string","x-mcp-header":"{}"}}"#, "n".repeat(length)))
    };
    assert!(named(MAX_PARAMETER_NAME_BYTES).is_ok());
    assert_eq!(named(MAX_PARAMETER_NAME_BYTES + 1).err(), Some(BadAnnotation::NotAName));
}

#[test]
fn the_bytes_of_all_headers_together_are_bounded_at_the_limit_and_not_before() {
    let name = "mcp-param-p0".len();
    let half = MAX_PARAMETER_HEADER_BYTES / 2;
    let arguments = |second: usize| {
        let (first, second) = ("a".repeat(half - name), "b".repeat(second));
        format!(r#"{{"p0":"{first}","p1":"{second}"}}"#)
    };
    assert!(mirrored(&many(2), &arguments(half - name)).is_ok());
    assert_eq!(mirrored(&many(2), &arguments(half - name + 1)), Err(Unmirrored::TooLong));
}
