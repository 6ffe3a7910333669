use super::*;
use std::collections::BTreeSet;

fn read(text: &str) -> Surface {
    read_capture(text.as_bytes()).expect(text)
}

fn unreadable(text: &str) -> String {
    match read_capture(text.as_bytes()) {
        Err(CaptureError::Unreadable(unreadable)) => unreadable.0,
        other => panic!("{text}: {other:?}"),
    }
}

const TOOL: &str = r#"{"name":"a","description":"d","inputSchema":{"type":"object"}}"#;

#[test]
fn every_form_of_a_capture_gives_the_same_entry() {
    let forms = [
        TOOL.to_owned(),
        format!("[{TOOL}]"),
        format!(r#"{{"tools":[{TOOL}]}}"#),
        format!(r#"{{"tools":[{TOOL}],"nextCursor":"x","_meta":{{}}}}"#),
    ];
    let hashes: BTreeSet<_> = forms.iter().map(|text| read(text).surface_hash()).collect();
    assert_eq!(hashes.len(), 1);
}

#[test]
fn hashes_are_sha256_of_the_canonical_form() {
    let surface = read(&TOOL.replace("}}", r#"},"annotations":{}}"#));
    let tool = surface.entries().next().unwrap();
    let definition = r#"{"description":"d","inputSchema":{"type":"object"},"name":"a"}"#;
    assert_eq!(
        tool.definition_hash().unwrap().to_string(),
        crate::hash::sha256_hex(definition.as_bytes())
    );
    let entry =
        r#"{"annotations":{},"description":"d","inputSchema":{"type":"object"},"name":"a"}"#;
    assert_eq!(tool.entry_hash().to_string(), crate::hash::sha256_hex(entry.as_bytes()));
    let triples = format!(r#"[["tool","a","{}"]]"#, tool.entry_hash());
    assert_eq!(surface.surface_hash().to_string(), crate::hash::sha256_hex(triples.as_bytes()));
}

#[test]
fn equal_repeated_entries_collapse_and_different_ones_are_refused() {
    assert_eq!(read(&format!("[{TOOL},{TOOL}]")).entries().count(), 1);
    let other = TOOL.replace("\"d\"", "\"e\"");
    assert!(unreadable(&format!("[{TOOL},{other}]")).contains("two different entries"));
}

#[test]
fn entries_without_a_key_make_their_list_unreadable() {
    for text in [r#"[{"description":"x"}]"#, r#"[{"name":5}]"#, "[5]", r#"{"tools":{}}"#] {
        unreadable(text);
    }
}

#[test]
fn an_entry_is_read_to_its_limit_and_no_further() {
    let sized = |size: usize| {
        let empty = r#"[{"name":"a","description":""}]"#.len() - 2;
        format!(r#"[{{"name":"a","description":"{}"}}]"#, "x".repeat(size - empty))
    };
    read(&sized(MAX_ENTRY_BYTES));
    assert!(unreadable(&sized(MAX_ENTRY_BYTES + 1)).contains("an entry larger than"));
}

#[test]
fn a_list_is_read_to_its_limits_and_no_further() {
    let tools = |count: usize, filler: &str| {
        let tools: Vec<_> =
            (0..count).map(|n| format!(r#"{{"name":"t{n}","d":"{filler}"}}"#)).collect();
        format!("[{}]", tools.join(","))
    };
    read(&tools(MAX_LIST_ENTRIES, ""));
    assert!(unreadable(&tools(MAX_LIST_ENTRIES + 1, "")).contains("more than"));
    let filler = "x".repeat(1000 * 1024);
    read(&tools(16, &filler));
    assert!(unreadable(&tools(17, &filler)).contains("larger than"));
    let pages = vec![r#"{"tools":[]}"#; MAX_LIST_PAGES + 1];
    for (count, ok) in [(MAX_LIST_PAGES, true), (MAX_LIST_PAGES + 1, false)] {
        let mut reader = SurfaceReader::default();
        reader.list(ListKind::Tools, &pages[..count]);
        assert_eq!(reader.finish().unreadable().is_empty(), ok);
    }
}

#[test]
fn too_many_resources_are_left_unpinned_and_close_nothing() {
    let resources: Vec<_> =
        (0..=MAX_LIST_ENTRIES).map(|n| format!(r#"{{"uri":"r{n}"}}"#)).collect();
    let surface = read(&format!(r#"{{"tools":[{TOOL}],"resources":[{}]}}"#, resources.join(",")));
    assert_eq!(surface.entries().count(), 1);
    assert_eq!(surface.notes().len(), 1);
}

#[test]
fn what_does_not_count_of_a_resource_changes_no_hash() {
    let hash = |text: &str| read(&format!(r#"{{"resources":[{text}]}}"#)).surface_hash();
    let base = hash(r#"{"uri":"u","name":"n","mimeType":"m"}"#);
    assert_eq!(
        base,
        hash(r#"{"uri":"u","name":"n","mimeType":"m","size":5,"annotations":{"priority":1}}"#)
    );
    assert_ne!(base, hash(r#"{"uri":"u","name":"n","mimeType":"m2"}"#));
}

#[test]
fn the_servers_version_is_recorded_and_changes_no_hash() {
    let of = |version: &str| {
        read(&format!(
            r#"{{"serverInfo":{{"name":"s","version":"{version}"}},"capabilities":{{"tools":{{}}}},"instructions":"i"}}"#
        ))
    };
    assert_eq!(of("1").surface_hash(), of("2").surface_hash());
    assert_eq!(of("1").server_version.as_deref(), Some("1"));
    assert_eq!(of("1").entries().count(), 2);
}

#[test]
fn a_capture_is_written_as_it_was_read() {
    let text = format!(
        r#"{{"tools":[{TOOL}, {{"name" : "b", "x":1.0}}],"prompts":[],"resources":[{{"uri":"u","size":1}}],
        "instructions":"\u00e9","serverInfo":{{"name":"n","version":"1"}},"capabilities":{{"tools":{{"listChanged":true}}}},"protocolVersion":"2025-06-18"}}"#
    );
    let surface = read(&text);
    let written = surface.to_capture();
    assert_eq!(read(&written), surface);
    assert!(written.contains(r#"{"name" : "b", "x":1.0}"#));
}

#[test]
fn invalid_utf_8_is_unreadable_and_what_is_not_json_says_so() {
    assert!(matches!(read_capture(b"[{\"name\":\"\xff\"}]"), Err(CaptureError::Unreadable(_))));
    assert!(matches!(read_capture(b"\xff\xfe\x00"), Err(CaptureError::NotJson(_))));
    assert!(matches!(read_capture(b"{\"tools\":["), Err(CaptureError::NotJson(_))));
    assert!(matches!(read_capture(b"5"), Err(CaptureError::NotACapture)));
    assert!(matches!(read_capture(b"{\"x\":1}"), Err(CaptureError::NotACapture)));
    assert_eq!(read("[]").entries().count(), 0);
}

#[test]
fn both_protocol_eras_give_the_same_identity() {
    let of = |result: &str| {
        let mut reader = SurfaceReader::default();
        reader.handshake(result).unwrap();
        reader.finish()
    };
    let older = of(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#,
    );
    let newer = of(
        r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    );
    assert_eq!(older.surface_hash(), newer.surface_hash());
    assert_eq!(newer.server_version.as_deref(), Some("1"));
}

#[test]
fn a_member_that_some_clients_read_as_one_of_mcp_makes_its_list_unreadable() {
    let tool = |member: &str| TOOL.replacen('{', &format!(r#"{{"{member}":"x","#), 1);
    for member in [
        "Description",
        "InputSchema",
        "input_schema",
        "Name",
        "name\\u0000",
        " title",
        "de\u{17f}cription",
    ] {
        let reason = unreadable(&format!("[{}]", tool(member)));
        assert!(reason.contains("some clients read as"), "{member}: {reason}");
        assert!(!reason.contains(member), "the server's spelling is not repeated: {reason}");
    }
    for hint in ["ReadOnlyHint", "read_only_hint", "destructive-hint"] {
        let annotations = format!(r#"}},"annotations":{{"{hint}":true}}}}"#);
        unreadable(&format!("[{}]", TOOL.replace("}}", &annotations)));
    }
    unreadable(&format!(
        "[{}]",
        TOOL.replace("}}", r#"},"execution":{"TaskSupport":"required"}}"#)
    ));
    for capture in [
        format!(r#"{{"tools":[{TOOL}],"Tools":[]}}"#),
        format!(r#"{{"tools":[{TOOL}],"Instructions":"x"}}"#),
        r#"{"serverInfo":{"Name":"x"}}"#.to_owned(),
        r#"{"capabilities":{"Tools":{}}}"#.to_owned(),
        r#"{"prompts":[{"name":"p","Arguments":[]}]}"#.to_owned(),
        r#"{"prompts":[{"name":"p","arguments":[{"name":"a","Description":"x"}]}]}"#.to_owned(),
        r#"{"resources":[{"uri":"a:b","mime_type":"x"}]}"#.to_owned(),
    ] {
        unreadable(&capture);
    }
    // Members that MCP does not define, as real servers have them.
    read(&format!("[{}]", tool("mcp_enabled")));
    read(&format!("[{}]", TOOL.replace("}}", r#"},"annotations":{"category":"x"}}"#)));
}

#[test]
fn pages_and_handshakes_are_refused_for_such_members_too() {
    let mut reader = SurfaceReader::default();
    reader.list(ListKind::Tools, &[format!(r#"{{"tools":[{TOOL}],"NextCursor":"x"}}"#)]);
    assert!(reader.finish().unreadable().contains_key(&ListKind::Tools));
    let mut reader = SurfaceReader::default();
    reader.list(ListKind::Tools, &[format!(r#"{{"tools":[],"TOOLS":[{TOOL}]}}"#)]);
    assert!(reader.finish().unreadable().contains_key(&ListKind::Tools));
    for handshake in [
        r#"{"Instructions":"x"}"#,
        r#"{"instructions":"x","instructions\u0000":"y"}"#,
        r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"NAME":"x"}}}"#,
    ] {
        assert!(SurfaceReader::default().handshake(handshake).is_err(), "{handshake}");
    }
    let other = r#"{"instructions":"x","vendorInstructions":"y","_meta":{"a/b":1}}"#;
    assert!(SurfaceReader::default().handshake(other).is_ok());
}
