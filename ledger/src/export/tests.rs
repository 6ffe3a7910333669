use super::*;
use crate::memory::MemoryFolder;
use crate::receipt::tests::{Scribe, items};
use crate::record::RulingResult;
use serde_json::{Value, json};

/// A name that would break out of a field if it were not escaped.
const HOSTILE: &str = "=cmd|' /C calc'!A0,\"x\"\\|a=b\r\nCEF:0|\u{1b}[31m\u{202e}";

/// One item of each kind: a call that ended, one that was denied, one that needs approval, one that
/// never ended, two events.
fn folder() -> Vec<Item> {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(2, 1, RulingResult::Allow);
    scribe.outcome(2, 5);
    scribe.call(3, 6, RulingResult::Deny, "files", HOSTILE);
    scribe.decision(4, 7, RulingResult::RequireApproval);
    scribe.decision(5, 8, RulingResult::Allow);
    scribe.event("server.approve", 9);
    scribe.event("chain.resumed", 10);
    let (items, notes) = items(&folder);
    assert_eq!((items.len(), notes.len()), (7, 0));
    items
}

fn written(format: Format) -> String {
    let mut out = String::new();
    format.write_header(&mut out);
    for item in folder() {
        format.write(&item, &mut out).unwrap();
    }
    out
}

#[test]
fn formats_read_back_as_they_print() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_eq!("xml".parse::<Format>(), Err(BadFormat));
}

#[test]
fn json_lines_are_one_object_each() {
    let text = written(Format::Jsonl);
    let documents: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents.len(), 7);
    assert_eq!(documents[2]["mcp"]["tool_name"], HOSTILE);
    assert!(!text.contains('\u{1b}'));
}

/// Parses CSV; fails if a record has a different number of cells than the first.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

#[test]
fn csv_has_a_cell_a_column_and_no_formulas() {
    let rows = read_csv(&written(Format::Csv));
    assert_eq!(rows.len(), 8);
    for row in &rows {
        assert_eq!(row.len(), rows[0].len());
        for cell in row {
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
            assert!(!cell.contains(char::is_control), "{cell:?}");
        }
    }
    let column = |name: &str| rows[0].iter().position(|column| column == name).unwrap();
    let tool = &rows[3][column("mcp_tool_name")];
    assert_eq!(tool, "'=cmd|' /C calc'!A0,\"x\"\\|a=b\\u{d}\\u{a}CEF:0|\\u{1b}[31m\\u{202e}");
    assert_eq!(rows[2][column("outcome_status")], "success");
    assert_eq!(rows[2][column("decision_result")], "allow");
    assert_eq!(rows[3][column("decision_reason_codes")], "contract_drift");
    assert_eq!(rows[5][column("event_name")], "server.approve");
}

#[test]
fn every_beginning_of_a_formula_is_made_inert() {
    let Item::Event(event) = folder().swap_remove(4) else { panic!("no event") };
    for start in ["=1", "+1", "-1", "@x", "  =1", "＝1", "＋1", "－1", "＠1", "\t=1", "\r=1"] {
        let mut event = event.clone();
        event.name = start.to_owned();
        let mut out = String::new();
        Format::Csv.write(&Item::Event(event.clone()), &mut out).unwrap();
        // A tab or line ending is escaped, so the cell begins with a backslash.
        let is_spelled = start.starts_with(['\t', '\r']);
        assert_eq!(out.contains(&format!("\"'{start}\"")), !is_spelled, "{out}");
        event.name = "1=1".to_owned();
        out.clear();
        Format::Csv.write(&Item::Event(event), &mut out).unwrap();
        assert!(out.contains(",1=1,"), "{out}");
    }
}

/// The header fields and the extension of a CEF line, unescaped.
fn read_cef(line: &str) -> (Vec<String>, Vec<(String, String)>) {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while fields.len() < 8 {
        match characters.next().unwrap() {
            '\\' => {
                let escaped = characters.next().unwrap();
                assert!(['\\', '|'].contains(&escaped), "{escaped}");
                fields.last_mut().unwrap().push(escaped);
            }
            '|' => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields.pop();
    let (mut pairs, mut value) = (Vec::new(), String::new());
    let mut key = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next().unwrap();
                assert!(['\\', '='].contains(&escaped), "{escaped}");
                value.push(escaped);
            }
            '=' => {
                let (before, next) = value.rsplit_once(' ').unwrap_or(("", &value));
                pairs.push((key, before.to_owned()));
                key = next.to_owned();
                value = String::new();
            }
            other => value.push(other),
        }
    }
    pairs.push((key, value));
    pairs.remove(0);
    (fields, pairs)
}

#[test]
fn cef_escapes_header_and_extension() {
    let text = written(Format::Cef);
    assert_eq!(text.lines().count(), 7);
    for line in text.lines() {
        let (fields, pairs) = read_cef(line);
        assert_eq!(
            (&fields[0][..], &fields[1][..], &fields[2][..]),
            ("CEF:0", "Holdpoint", "holdpoint")
        );
        assert!(fields[6].parse::<u8>().unwrap() <= 10);
        for (key, _) in &pairs {
            assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
        }
        assert!(!line.contains(char::is_control));
    }
    let denied = read_cef(text.lines().nth(2).unwrap());
    let value = |name: &str| {
        denied.1.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    };
    assert_eq!((&denied.0[4][..], &denied.0[6][..]), ("call.deny", "6"));
    assert_eq!((value("cs1Label"), value("suser"), value("act")), ("tool", "ada", "deny"));
    assert_eq!(
        value("cs1"),
        "=cmd|' /C calc'!A0,\"x\"\\|a=b\\u{d}\\u{a}CEF:0|\\u{1b}[31m\\u{202e}"
    );
    assert_eq!(value("outcome"), "refused");
}

#[test]
fn the_name_of_an_event_cannot_leave_the_header() {
    let Item::Event(mut event) = folder().swap_remove(4) else { panic!("no event") };
    event.name = "a|b\\c\nd".to_owned();
    let mut out = String::new();
    Format::Cef.write(&Item::Event(event), &mut out).unwrap();
    assert_eq!(read_cef(out.trim_end()).0[4], "a|b\\c\\u{a}d");
}

/// Checks what OCSF 1.9 requires of each class and each of its objects, including the alternatives.
fn check_ocsf(event: &Value) {
    let required = |object: &Value, names: &[&str]| {
        for name in names {
            assert!(!object[*name].is_null(), "`{name}` is missing: {object:#}");
        }
    };
    let any = |object: &Value, names: &[&str]| {
        assert!(
            names.iter().any(|name| object[*name].is_string()),
            "none of {names:?}: {object:#}"
        );
    };
    required(
        event,
        &[
            "activity_id",
            "category_uid",
            "class_uid",
            "metadata",
            "severity_id",
            "time",
            "type_uid",
        ],
    );
    required(&event["metadata"], &["version", "product", "original_time"]);
    required(&event["metadata"]["product"], &["name", "vendor_name", "version"]);
    let number = |name: &str| event[name].as_u64().unwrap();
    assert_eq!(number("type_uid"), number("class_uid") * 100 + number("activity_id"));
    assert_eq!(number("category_uid"), number("class_uid") / 1000);
    assert!((1..=5).contains(&number("severity_id")) && number("time") > 1_600_000_000_000);
    match number("class_uid") {
        6003 => {
            required(
                event,
                &["actor", "api", "src_endpoint", "status_id", "action_id", "disposition_id"],
            );
            any(&event["actor"]["user"], &["uid", "name"]);
            required(&event["api"], &["operation", "request", "response", "service"]);
            required(&event["api"]["request"], &["uid"]);
            any(&event["src_endpoint"], &["ip", "uid", "name", "hostname", "svc_name"]);
            any(&event["dst_endpoint"], &["ip", "uid", "name", "hostname", "svc_name"]);
            assert!([0, 1, 2, 3, 4, 99].contains(&number("activity_id")));
            assert!([0, 1, 2].contains(&number("action_id")) && number("disposition_id") <= 27);
            let profiles = event["metadata"]["profiles"].as_array().unwrap();
            for (profile, attribute) in [
                ("security_control", "action_id"),
                ("trace", "trace"),
                ("ai_operation", "ai_agent"),
            ] {
                assert_eq!(
                    profiles.contains(&json!(profile)),
                    !event[attribute].is_null(),
                    "{profile}"
                );
            }
        }
        3004 => {
            required(event, &["entity", "actor"]);
            any(&event["entity"], &["uid", "name"]);
            assert!((1..=4).contains(&number("activity_id")));
        }
        0 => assert_eq!(number("activity_id"), 99),
        other => panic!("class {other}"),
    }
}

fn ocsf() -> Vec<Value> {
    written(Format::Ocsf).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ocsf_events_have_what_their_classes_require() {
    let events = ocsf();
    for event in &events {
        check_ocsf(event);
        assert_eq!(event["metadata"]["version"], OCSF_VERSION);
    }
    let classes: Vec<u64> =
        events.iter().map(|event| event["class_uid"].as_u64().unwrap()).collect();
    assert_eq!(classes, [0, 6003, 6003, 6003, 3004, 6003, 0]);
}

#[test]
fn ocsf_tells_what_became_of_a_call() {
    let events = ocsf();
    let check = |event: &Value, expected: Value| {
        let names = ["status_id", "action_id", "disposition_id", "severity_id", "status_code"];
        let told: Vec<&Value> = names.iter().map(|name| &event[*name]).collect();
        assert_eq!(json!(told), expected, "{event:#}");
    };
    check(&events[1], json!([1, 1, 1, 1, "success"]));
    check(&events[2], json!([2, 2, 2, 3, "deny"]));
    check(&events[3], json!([2, 2, 2, 3, "require_approval"]));
    check(&events[5], json!([0, 1, 1, 2, "no_outcome"]));
    assert_eq!(events[1]["duration"], 4);
    assert_eq!(events[1]["unmapped"]["latency_us"]["theirs"], 9000);
    assert_eq!(events[2]["status_detail"], "contract_drift");
    assert_eq!(events[2]["resources"][0]["name"], HOSTILE);
    assert_eq!(events[4]["entity"]["uid"], "files");
    assert_eq!(events[4]["actor"]["user"]["name"], "ada");
}

#[test]
fn every_member_of_a_receipt_is_somewhere_in_the_ocsf_event() {
    let items = folder();
    let event = ocsf().swap_remove(1);
    let mut leaves = Vec::new();
    collect(&serde_json::to_value(&items[1]).unwrap(), &mut leaves);
    let mut mapped = Vec::new();
    collect(&event, &mut mapped);
    for leaf in leaves {
        // Timestamps become numbers, and the kind of record becomes the class.
        let is_moment = leaf.as_str().is_some_and(|text| text.starts_with("2023-"));
        assert!(is_moment || leaf == "receipt" || mapped.contains(&leaf), "{leaf} is lost");
    }
}

fn collect(value: &Value, leaves: &mut Vec<Value>) {
    match value {
        Value::Object(members) => members.values().for_each(|value| collect(value, leaves)),
        Value::Array(values) => values.iter().for_each(|value| collect(value, leaves)),
        Value::Null => {}
        leaf => leaves.push(leaf.clone()),
    }
}

/// One of each kind of invisible character: a soft hyphen, bidi and zero-width characters, a tag
/// character, a variation selector, a blank letter, a private-use character, and controls.
const HIDDEN: &str = "a\u{ad}\u{61c}\u{200b}\u{200d}\u{202e}\u{2066}\u{2028}\u{e0041}\u{fe0f}\u{3164}\u{feff}\u{e000}\u{f0000}\u{0}\u{85}b";

/// Reverses [`visible`].
fn told_back(shown: &str) -> String {
    let mut parts = shown.split("\\u{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        text.push_str(rest);
    }
    text
}

#[test]
fn no_format_keeps_a_character_that_hides() {
    let Item::Event(mut event) = folder().swap_remove(4) else { panic!("no event") };
    event.name = HIDDEN.to_owned();
    event.by = Some(HIDDEN.to_owned());
    event.server_id = Some(HIDDEN.to_owned());
    event.data = Some(serde_json::json!({ HIDDEN: HIDDEN }));
    let item = Item::Event(event.clone());
    for format in Format::ALL {
        let mut out = String::new();
        format.write(&item, &mut out).unwrap();
        let line = out.trim_end_matches(['\r', '\n']);
        assert!(!line.chars().any(contract::hidden::is_hidden), "{format}: {line:?}");
    }
    let mut out = String::new();
    Format::Jsonl.write(&item, &mut out).unwrap();
    let read: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(read["name"], HIDDEN, "a parser reads what was there");
    assert_eq!(read["data"][HIDDEN], HIDDEN);
}

#[test]
fn what_is_shown_can_be_told_back() {
    for text in [HIDDEN, "\\u{202e}", "C:\\users\\u{1}", "\\\\u{a}\n", "plain \\ text", ""] {
        assert_eq!(told_back(&visible(text)), text, "{}", visible(text));
    }
    assert_eq!(visible("C:\\users"), "C:\\users", "other backslashes stay");
    assert_ne!(visible("\\u{202e}"), visible("\u{202e}"));
}

#[test]
fn a_sentence_is_spelled_out_once() {
    let Item::Event(mut event) = folder().swap_remove(4) else { panic!("no event") };
    event.by = Some("eve\n".to_owned());
    let mut out = String::new();
    Format::Cef.write(&Item::Event(event), &mut out).unwrap();
    assert!(out.contains("by eve\\\\u{a}"), "{out}");
}
