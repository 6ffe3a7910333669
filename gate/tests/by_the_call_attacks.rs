//! Attacks on shield by the call, from pins to the ruling: changes that give a call another meaning
//! without changing the parameters that it uses. Each is next to a harmless counterpart that goes
//! through.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use contract::surface::{Surface, read_capture};
use gate::by_the_call::{CallRulesCache, CallRuling};
use gate::judge::{call_rules, judge_surface};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::time::Timestamp;

fn surface(schema: &str) -> Surface {
    let tool = format!(r#"[{{"name":"t","description":"d","inputSchema":{schema}}}]"#);
    read_capture(tool.as_bytes()).unwrap()
}

/// Whether shield lets a call through while a change of the tool's input is waiting.
fn goes_through(old: &str, new: &str, call: &str) -> bool {
    goes_through_between(&surface(old), &surface(new), call)
}

fn goes_through_between(old: &Surface, new: &Surface, call: &str) -> bool {
    let mut book = PinBook::default();
    for entry in old.entries() {
        let (entry, at) = (entry.clone(), Timestamp(0));
        book.push(Pin { entry, basis: Basis::Person, at, by: "ada".to_owned() });
    }
    let settings = Settings::with_posture(Posture::Shield);
    let judged = judge_surface(&book, new, &settings, 0);
    let Some(judgement) = judged.entries.first() else { return true };
    if !judgement.is_by_the_call {
        return !judgement.verdict.is_held();
    }
    let rules = call_rules(judgement, &book, &settings, &CallRulesCache::default());
    match rules.expect("rules").judge(Some(call.as_bytes())) {
        CallRuling::Proceed => true,
        CallRuling::Hold(_) => false,
    }
}

#[track_caller]
fn holds(old: &str, new: &str, call: &str) {
    assert!(!goes_through(old, new, call), "goes through\nold {old}\nnew {new}\ncall {call}");
}

#[track_caller]
fn proceeds(old: &str, new: &str, call: &str) {
    assert!(goes_through(old, new, call), "is held\nold {old}\nnew {new}\ncall {call}");
}

fn object(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

/// A tool with a path, and a map whose values follow the schema.
fn map(values: &str, rest: &str) -> String {
    object(&format!(
        r#""path":{{"type":"string"}},"opts":{{"type":"object","additionalProperties":{values}}}{rest}"#
    ))
}

const GONE: &str = r#","gone":{"type":"string"}"#;

#[test]
fn a_new_meaning_of_the_values_of_an_open_map_holds_calls_that_use_it() {
    for open in ["true", "{}"] {
        for values in [
            r#"{"description":"Values are run"}"#,
            r#"{"type":"string"}"#,
            r#"{"format":"command"}"#,
            r#"{"contentEncoding":"base64"}"#,
            r#"{"type":["string","object"],"default":"x"}"#,
            r#"{"properties":{"k":{"description":"run"}}}"#,
            r#"{"properties":{"k":{"type":"string"}}}"#,
            r#"{"properties":{"k":{"default":"rm"}}}"#,
            r#"{"additionalProperties":{"description":"run"}}"#,
            r#"{"items":{"description":"run"}}"#,
            r#"{"anyOf":[{"type":"string","title":"A command"},{"type":"object"}]}"#,
        ] {
            let (old, new) = (map(open, GONE), map(values, ""));
            for call in [r#"{"opts":{"a":"b"}}"#, r#"{"opts":{"a":{"k":"b"}}}"#] {
                holds(&old, &new, call);
            }
            // A call without the map may rely on a default inside the map.
            if !values.contains("default") {
                proceeds(&old, &new, r#"{"path":"a"}"#);
            }
        }
    }
}

#[test]
fn an_open_map_of_which_nothing_new_is_said_takes_any_values() {
    for (from, to) in [("true", "{}"), ("{}", "true"), ("true", "true")] {
        for call in [r#"{"opts":{"a":"b"}}"#, r#"{"opts":{"a":[{"k":["b",{"c":1}]}]}}"#] {
            proceeds(&map(from, GONE), &map(to, ""), call);
        }
    }
    // Plain limits are decided by the validator.
    let new = map(r#"{"maxLength":3}"#, "");
    proceeds(&map("true", GONE), &new, r#"{"opts":{"a":"b","c":[{"d":1}]}}"#);
    holds(&map("true", GONE), &new, r#"{"opts":{"a":"long"}}"#);
    // A map that is now closed refuses its members, and nothing else.
    proceeds(&map("true", GONE), &map("false", ""), r#"{"opts":{}}"#);
    holds(&map("true", GONE), &map("false", ""), r#"{"opts":{"a":"b"}}"#);
}

#[test]
fn a_new_meaning_of_undeclared_parameters_holds_calls_that_have_some() {
    let schema = |further: &str, rest: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"string"}}{rest}}},"additionalProperties":{further}}}"#
        )
    };
    let (old, new) = (schema("true", GONE), schema(r#"{"description":"Each is run"}"#, ""));
    holds(&old, &new, r#"{"b":"x"}"#);
    proceeds(&old, &new, r#"{"a":"x"}"#);
    proceeds(&old, &schema("{}", ""), r#"{"b":"x"}"#);
}

#[test]
fn an_open_map_is_found_in_elements_behind_references_and_in_parts() {
    let list = |values: &str, rest: &str| {
        object(&format!(
            r#""list":{{"type":"array","items":{{"type":"object","additionalProperties":{values}}}}}{rest}"#
        ))
    };
    let call = r#"{"list":[{"a":1}]}"#;
    holds(&list("true", GONE), &list(r#"{"description":"run"}"#, ""), call);
    proceeds(&list("true", GONE), &list("{}", ""), call);
    let referred = |values: &str, rest: &str| {
        format!(
            r##"{{"type":"object","properties":{{"m":{{"$ref":"#/$defs/M"}}{rest}}},"$defs":{{"M":{{"type":"object","additionalProperties":{values}}},"V":{{"format":"command"}}}}}}"##
        )
    };
    let call = r#"{"m":{"a":"x"}}"#;
    holds(&referred("true", GONE), &referred(r##"{"$ref":"#/$defs/V"}"##, ""), call);
    proceeds(&referred("true", GONE), &referred("true", ""), call);
    // One part leaves the map open, the other describes its values.
    let parts = |text: &str, rest: &str| {
        object(&format!(
            r#""m":{{"allOf":[{{"type":"object","additionalProperties":true}},{{"additionalProperties":{{"description":"{text}"}}}}]}}{rest}"#
        ))
    };
    holds(&parts("one", GONE), &parts("two", ""), call);
    proceeds(&parts("one", GONE), &parts("one", ""), call);
}

#[test]
fn a_removed_parameter_with_a_default_in_a_branch_holds_calls_that_leave_it_out() {
    let schema = |mode: &str| object(&format!(r#""path":{{"type":"string"}},"mode":{mode}"#));
    let new = object(r#""path":{"type":"string"}"#);
    for mode in [
        r#"{"anyOf":[{"type":"string","default":"safe"},{"type":"integer"}]}"#,
        r#"{"oneOf":[{"type":"string"},{"type":"integer","default":1}]}"#,
        r#"{"if":{"type":"string"},"then":{"default":"safe"}}"#,
        r#"{"anyOf":[{"type":"string","title":"Nothing is deleted if omitted"},{"type":"integer"}]}"#,
    ] {
        holds(&schema(mode), &new, r#"{"path":"a"}"#);
    }
    for mode in [
        r#"{"anyOf":[{"type":"string","default":null},{"type":"integer"}]}"#,
        r#"{"oneOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"if":{"type":"string"},"then":{"minLength":1}}"#,
    ] {
        proceeds(&schema(mode), &new, r#"{"path":"a"}"#);
        holds(&schema(mode), &new, r#"{"path":"a","mode":"x"}"#);
    }
}

#[test]
fn a_null_that_stood_in_place_of_another_default_counts() {
    let schema = |null: &str, value: &str, rest: &str| {
        format!(
            r##"{{"type":"object","properties":{{"a":{{"anyOf":[{{"$ref":"#/$defs/M"}},{{"type":"null"}}]{null}}}{rest}}},"$defs":{{"M":{{"type":"string"{value}}}}}}}"##
        )
    };
    let (null, hard) = (r#","default":null"#, r#","default":"hard""#);
    holds(&schema(null, hard, GONE), &schema("", hard, ""), "{}");
    proceeds(&schema(null, hard, GONE), &schema(null, hard, ""), "{}");
    proceeds(&schema(null, "", GONE), &schema("", "", ""), "{}");
}

#[test]
fn a_call_with_a_name_that_the_json_reader_reserves_is_held() {
    let schema = |rest: &str| {
        object(&format!(
            r#""m":{{"type":"object","additionalProperties":{{"type":"string"}}}}{rest}"#
        ))
    };
    let (old, new) = (schema(GONE), schema(""));
    for name in ["RawValue", "Number"] {
        for start in ["$serde_json", r"\u0024serde_json"] {
            let call = format!(r#"{{"m":{{"{start}::private::{name}":"1"}}}}"#);
            holds(&old, &new, &call);
        }
    }
    // The limit applies to the member's text, which the reader would parse as an object.
    let limited =
        object(r#""m":{"type":"object","additionalProperties":{"type":"string","maxLength":3}}"#);
    holds(&schema(""), &limited, r#"{"m":{"$serde_json::private::RawValue":"{\"k\":\"ab\"}"}}"#);
    proceeds(&old, &new, r#"{"m":{"serde_json":"1"}}"#);
}

#[test]
fn a_schema_with_a_name_that_the_json_reader_reserves_is_undecided() {
    let schema = |name: &str, rest: &str| {
        object(&format!(r#""n":{{"type":"integer","x-note":{{"{name}":"false"}}}}{rest}"#))
    };
    let name = "$serde_json::private::RawValue";
    holds(&schema(name, GONE), &schema(name, ""), r#"{"n":1}"#);
    proceeds(&schema("note", GONE), &schema("note", ""), r#"{"n":1}"#);
}

#[test]
fn examples_elements_and_values_that_speak_of_omission_hold_calls_that_leave_the_parameter_out() {
    let call = r#"{"path":"a"}"#;
    let removed = object(r#""path":{"type":"string"}"#);
    for only in [
        r#"{"type":"string","examples":["TEXT"]}"#,
        r#"{"type":"string","examples":[{"note":["TEXT"]}]}"#,
        r#"{"type":"array","items":{"type":"string","description":"TEXT"}}"#,
        r#"{"type":"object","additionalProperties":{"type":"string","description":"TEXT"}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","$comment":"TEXT"}}}"#,
    ] {
        let schema = |text: &str| {
            object(&format!(r#""path":{{"type":"string"}},"only":{}"#, only.replace("TEXT", text)))
        };
        let old = schema("A file");
        holds(&old, &schema("A file. If omitted, all files are deleted"), call);
        holds(&schema("A file. If omitted, all files are kept"), &removed, call);
        proceeds(&old, &schema("A file that is kept"), call);
        proceeds(&old, &removed, call);
    }
}

#[test]
fn a_default_of_elements_of_a_left_out_array_counts() {
    let schema = |items: &str, rest: &str| {
        object(&format!(
            r#""path":{{"type":"string"}},"only":{{"type":"array","items":{{"type":"string"{items}}}}}{rest}"#
        ))
    };
    let old = schema(r#","default":"none""#, GONE);
    holds(&old, &schema(r#","default":"all""#, ""), r#"{"path":"a"}"#);
    proceeds(&old, &schema(r#","default":"none""#, ""), r#"{"path":"a"}"#);
}

#[test]
fn text_that_is_not_plain_english_is_taken_to_speak_of_omission() {
    let schema = |text: &str| {
        object(&format!(
            r#""path":{{"type":"string"}},"keep":{{"type":"string","description":"{text}"}}"#
        ))
    };
    let old = schema("What to keep.");
    for text in [
        "Was bleibt. Wenn nicht angegeben, wird alles gelöscht.",
        "Was bleibt. Voreinstellung: nichts.",
        "Ce qui reste. Si non fourni, tout est supprimé.",
        "Qué queda. Si no se indica, se borra todo.",
        "O que fica. O padrão é apagar tudo.",
        "Cosa resta. Se omesso, tutto viene cancellato.",
        "Wat blijft. Standaard wordt alles gewist.",
        "Co zostaje. Domyślnie nic.",
        "What to keep. All is deleted by def\u{ad}ault.",
        "What to keep. If it isn't specified, all is deleted.",
    ] {
        holds(&old, &schema(text), r#"{"path":"a"}"#);
    }
    for text in
        ["What to keep of the files.", "Minutes past sunset", "Files to keep \u{2014} names"]
    {
        proceeds(&old, &schema(text), r#"{"path":"a"}"#);
        holds(&old, &schema(text), r#"{"path":"a","keep":"b"}"#);
    }
}

#[test]
fn arguments_that_are_not_an_object_are_held_where_no_type_is_named() {
    let schema = |rest: &str| format!(r#"{{"properties":{{"a":{{}}{rest}}},"items":{{}}}}"#);
    let (old, new) = (schema(GONE), schema(""));
    for call in [r#"[{"evil":1}]"#, "[]", "null", "1", "\"a\""] {
        holds(&old, &new, call);
    }
    for call in [r#"{"a":1}"#, "{}"] {
        proceeds(&old, &new, call);
    }
}

#[test]
fn a_long_text_behind_many_removed_places_is_read_once() {
    let levels: String = (0..400)
        .map(|n| format!(r##""d{n}":{{"properties":{{"x":{{"$ref":"#/$defs/d{}"}}}}}},"##, n + 1))
        .collect();
    let text = "the list of words ".repeat(8_000);
    let old = format!(
        r##"{{"type":"object","properties":{{"a":{{"type":"string"}},"b":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{levels}"d400":{{"description":"{text}"}}}}}}"##
    );
    let started = std::time::Instant::now();
    goes_through(&old, &object(r#""a":{"type":"string"}"#), r#"{"a":"x"}"#);
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

// ---- edits that must not hold calls they do not affect ----

/// A schema with keywords before its properties.
fn with_root(start: &str, properties: &str) -> String {
    format!(r#"{{{start}"type":"object","properties":{{{properties}}}}}"#)
}

#[test]
fn a_schema_of_draft_2019_09_is_decided_by_the_call() {
    for uri in [
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2019-09/schema#",
        "http://json-schema.org/draft/2019-09/schema",
    ] {
        let schema = |rest: &str| {
            let start = format!(r#""$schema":"{uri}","#);
            with_root(&start, &format!(r#""a":{{"type":"string"}}{rest}"#))
        };
        proceeds(&schema(GONE), &schema(""), r#"{"a":"x"}"#);
        holds(&schema(GONE), &schema(""), r#"{"a":"x","gone":"y"}"#);
        holds(&schema(GONE), &schema(""), r#"{"a":1}"#);
    }
}

#[test]
fn keywords_of_draft_2019_09_decide_as_they_do_there() {
    let start = r#""$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]},"unevaluatedProperties":false,"#;
    let schema = |rest: &str| {
        with_root(
            start,
            &format!(
                r#""a":{{"type":"string"}},"b":{{"type":"string"}},"list":{{"type":"array","items":[{{"type":"string"}}],"additionalItems":false}}{rest}"#
            ),
        )
    };
    let (old, new) = (schema(GONE), schema(""));
    for call in [r#"{"a":"x","b":"y"}"#, r#"{"b":"y"}"#, r#"{"list":["x"]}"#] {
        proceeds(&old, &new, call);
    }
    for call in [r#"{"a":"x"}"#, r#"{"c":1}"#, r#"{"list":["x","y"]}"#, r#"{"list":[1]}"#] {
        holds(&old, &new, call);
    }
}

#[test]
fn a_recursive_reference_without_an_anchor_leads_to_the_root() {
    let schema = |rest: &str| {
        with_root(
            r#""$schema":"https://json-schema.org/draft/2019-09/schema","#,
            &format!(r##""a":{{"type":"string"}},"sub":{{"$recursiveRef":"#"}}{rest}"##),
        )
    };
    let (old, new) = (schema(GONE), schema(""));
    proceeds(&old, &new, r#"{"a":"x"}"#);
    proceeds(&new, &new, r#"{"sub":{"sub":{"a":"x"}}}"#);
    holds(&old, &new, r#"{"sub":{"gone":"x"}}"#);
    // A reference to the root changed together with the root.
    holds(&old, &new, r#"{"sub":{"a":"x"}}"#);
    // An anchor may redirect the reference.
    let anchored = |schema: &str| schema.replacen('{', r#"{"$recursiveAnchor":true,"#, 1);
    holds(&anchored(&old), &anchored(&new), r#"{"a":"x"}"#);
}

#[test]
fn a_deprecated_parameter_does_not_hold_calls_that_use_others() {
    let schema =
        |b: &str| object(&format!(r#""a":{{"type":"string"}},"b":{{"type":"string"{b}}}"#));
    let preset = r#","description":"Defaults to 5","default":"5""#;
    for rest in ["", preset] {
        let (plain, deprecated) = (schema(rest), schema(&format!(r#","deprecated":true{rest}"#)));
        for (old, new) in [(&plain, &deprecated), (&deprecated, &plain)] {
            proceeds(old, new, r#"{"a":"x"}"#);
            holds(old, new, r#"{"a":"x","b":"y"}"#);
        }
    }
    // An explicit false means the same as absence.
    proceeds(&schema(""), &schema(r#","deprecated":false"#), r#"{"b":"y"}"#);
    // Deprecating the whole input affects every call.
    holds(&object(""), &with_root(r#""deprecated":true,"#, ""), "{}");
}

#[test]
fn a_pattern_that_needs_backtracking_holds_only_calls_that_use_its_parameter() {
    let schema = |pattern: &str, rest: &str| {
        object(&format!(
            r#""a":{{"type":"string"}},"b":{{"type":"string","pattern":"{pattern}"}}{rest}"#
        ))
    };
    for pattern in ["^(?!-)[a-z]+$", "^(?=.*[0-9]).+$", r"^(a)\\1$"] {
        proceeds(&schema(pattern, GONE), &schema(pattern, ""), r#"{"a":"x"}"#);
        holds(&schema(pattern, GONE), &schema(pattern, ""), r#"{"a":"x","b":"y"}"#);
        proceeds(&schema("^[a-z]+$", ""), &schema(pattern, ""), r#"{"a":"x"}"#);
        holds(&schema("^[a-z]+$", ""), &schema(pattern, ""), r#"{"a":"x","b":"aa"}"#);
    }
}

#[test]
fn a_pattern_that_needs_backtracking_in_a_condition_or_in_a_name_is_undecided() {
    let lookahead = r#"{"type":"string","pattern":"^(?!-)"}"#;
    for start in [
        format!(r#""if":{{"properties":{{"a":{lookahead}}}}},"then":{{"required":["c"]}},"#),
        format!(r#""not":{{"properties":{{"a":{lookahead}}}}},"#),
        format!(r#""anyOf":[{{"properties":{{"a":{lookahead}}}}},{{"required":["c"]}}],"#),
        format!(r#""dependentSchemas":{{"c":{{"properties":{{"a":{lookahead}}}}}}},"#),
        r#""patternProperties":{"^(?!a)":{}},"#.to_owned(),
        format!(r#""propertyNames":{lookahead},"#),
    ] {
        let schema =
            |rest: &str| with_root(&start, &format!(r#""a":{{"type":"string"}},"c":{{}}{rest}"#));
        holds(&schema(GONE), &schema(""), r#"{"a":"x","c":1}"#);
        holds(&schema(GONE), &schema(""), r#"{"c":1}"#);
    }
}

#[test]
fn a_definition_that_nothing_refers_to_may_come_and_go() {
    let schema = |definitions: &str, rest: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"string"}}{rest}}},"$defs":{{{definitions}}}}}"#
        )
    };
    let left = r#""Mode":{"type":"string","enum":["x","y"]}"#;
    let using = r##","mode":{"$ref":"#/$defs/Mode"}"##;
    // The parameter is removed; its definition is left behind, removed too, or was removed before.
    for (old, new) in [
        (schema(left, using), schema(left, "")),
        (schema(left, using), schema("", "")),
        (schema(left, GONE), schema("", "")),
        (schema(left, GONE), schema(left, using)),
        (schema(left, GONE), schema(&left.replace("\"y\"", "\"z\""), "")),
    ] {
        proceeds(&old, &new, r#"{"a":"x"}"#);
    }
    // Text that no parameter refers to holds the tool if it changes or is new.
    let said = r#""Mode":{"type":"string","description":"Ask first"}"#;
    holds(&schema(said, GONE), &schema(&said.replace("Ask", "Run"), ""), r#"{"a":"x"}"#);
    holds(&schema("", GONE), &schema(said, ""), r#"{"a":"x"}"#);
    proceeds(&schema(said, using), &schema(said, ""), r#"{"a":"x"}"#);
    proceeds(&schema(said, GONE), &schema("", ""), r#"{"a":"x"}"#);
}

#[test]
fn a_root_that_is_now_said_to_be_an_object_changes_nothing() {
    let old = r#"{"properties":{"a":{"type":"string"},"gone":{}}}"#;
    let new = object(r#""a":{"type":"string"}"#);
    proceeds(old, &new, r#"{"a":"x"}"#);
    holds(old, &new, r#"{"a":"x","gone":1}"#);
    let back = r#"{"properties":{"a":{"type":"string"}}}"#;
    proceeds(&object(r#""a":{"type":"string"},"gone":{}"#), back, r#"{"a":"x"}"#);
    proceeds(&object(r#""a":{"type":"string"}"#), back, r#"{"a":"x"}"#);
    // Any type other than an object refuses every call.
    holds(old, r#"{"type":"array","properties":{"a":{"type":"string"}}}"#, r#"{"a":"x"}"#);
}

#[test]
fn a_member_that_only_a_condition_declares_is_declared() {
    let schema = |rest: &str| {
        with_root(
            r#""if":{"properties":{"kind":{"const":"file"}}},"then":{"properties":{"path":{"type":"string"}},"required":["path"]},"else":{"properties":{"url":{"type":"string"}}},"#,
            &format!(r#""kind":{{"type":"string"}}{rest}"#),
        )
    };
    let (old, new) = (schema(GONE), schema(""));
    proceeds(&old, &new, r#"{"kind":"file","path":"x"}"#);
    proceeds(&old, &new, r#"{"kind":"web","url":"x"}"#);
    holds(&old, &new, r#"{"kind":"file"}"#);
    holds(&old, &new, r#"{"kind":"web","other":"x"}"#);
    let dependent = |rest: &str| {
        with_root(
            r#""dependentSchemas":{"kind":{"properties":{"path":{"type":"string"}}}},"#,
            &format!(r#""kind":{{"type":"string"}}{rest}"#),
        )
    };
    proceeds(&dependent(GONE), &dependent(""), r#"{"kind":"file","path":"x"}"#);
    // A changed condition affects every call, whatever it declares.
    holds(&old, &new.replace("\"url\"", "\"uri\""), r#"{"kind":"web","uri":"x"}"#);
    // A negated schema declares nothing.
    let not = |rest: &str| {
        with_root(
            r#""not":{"properties":{"path":{"const":1}},"required":["path"]},"#,
            &format!(r#""kind":{{"type":"string"}}{rest}"#),
        )
    };
    holds(&not(GONE), &not(""), r#"{"kind":"file","path":"x"}"#);
}

// ---- edits that must hold ----

#[test]
fn a_title_that_changes_with_a_breaking_change_holds_the_tool() {
    let tool = |members: &str, schema: &str| {
        let tool = format!(r#"[{{"name":"t",{members}"inputSchema":{schema}}}]"#);
        read_capture(tool.as_bytes()).unwrap()
    };
    let breaking =
        (object(r#""a":{"type":"string"},"gone":{}"#), object(r#""a":{"type":"string"}"#));
    let call = r#"{"a":"x"}"#;
    for members in
        [r#""title":"WORD","#, r#""annotations":{"title":"WORD"},"#, r#""description":"WORD","#]
    {
        let surface = |word: &str, schema: &str| tool(&members.replace("WORD", word), schema);
        let ruling = |word: &str| {
            let (old, new) = (surface("Read a file", &breaking.0), surface(word, &breaking.1));
            goes_through_between(&old, &new, call)
        };
        assert!(ruling("Read a file"), "{members}");
        assert!(!ruling("Delete a file"), "{members}");
    }
    // A title that only spells the name adds nothing.
    let (old, new) = (tool("", &breaking.0), tool(r#""title":"T","#, &breaking.1));
    assert!(goes_through_between(&old, &new, call));
}

#[test]
fn an_added_parameter_with_a_default_or_with_text_about_omission_holds_calls_that_leave_it_out() {
    let old = object(r#""path":{"type":"string"},"gone":{"type":"string"}"#);
    let new = |mode: &str| object(&format!(r#""path":{{"type":"string"}},"mode":{mode}"#));
    for mode in [
        r#"{"type":"boolean","default":true}"#,
        r#"{"type":"string","description":"If omitted, the file is deleted."}"#,
        r#"{"type":"object","properties":{"hard":{"type":"boolean","default":true}}}"#,
        r#"{"anyOf":[{"type":"boolean","default":true},{"type":"string"}]}"#,
    ] {
        holds(&old, &new(mode), r#"{"path":"a"}"#);
    }
    for mode in [
        r#"{"type":"boolean"}"#,
        r#"{"type":["boolean","null"],"default":null}"#,
        r#"{"type":"string","description":"How to sort the list of files."}"#,
    ] {
        proceeds(&old, &new(mode), r#"{"path":"a"}"#);
        holds(&old, &new(mode), r#"{"path":"a","mode":true}"#);
    }
}

#[test]
fn a_format_that_is_only_removed_holds_calls_that_use_the_parameter() {
    let schema = |rest: &str| {
        object(&format!(r#""amount":{{"type":"integer"{rest}}},"to":{{"type":"string"}}"#))
    };
    let (old, new) = (schema(r#","format":"cents""#), schema(""));
    holds(&old, &new, r#"{"amount":5}"#);
    proceeds(&old, &new, r#"{"to":"a"}"#);
    holds(&new, &old, r#"{"amount":5}"#);
}
