//! The names that MCP defines, and spellings that a lenient reader mistakes for one of them.
//!
//! Some clients compare member names without regard to case, and Python's `mcp` also reads
//! `input_schema` as `inputSchema`. A spelling that only some readers understand is ambiguous, so
//! callers refuse it.

use crate::markers::is_invisible;
use std::borrow::Cow;

/// The result of `initialize` or `server/discover`.
pub const HANDSHAKE: &[&str] = &[
    "protocolVersion",
    "supportedVersions",
    "capabilities",
    "serverInfo",
    "instructions",
    "resultType",
    "ttlMs",
    "cacheScope",
    "_meta",
];
/// A server's `capabilities`.
pub const CAPABILITIES: &[&str] = &[
    "tools",
    "prompts",
    "resources",
    "logging",
    "completions",
    "tasks",
    "extensions",
    "experimental",
];
pub const SERVER_INFO: &[&str] =
    &["name", "title", "version", "description", "websiteUrl", "icons"];
/// The members of a page of a list, except the list itself.
pub const PAGE: &[&str] = &["nextCursor", "resultType", "ttlMs", "cacheScope", "_meta"];
pub const TOOL: &[&str] = &[
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "execution",
    "icons",
    "_meta",
];
pub const TOOL_ANNOTATIONS: &[&str] =
    &["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
pub const EXECUTION: &[&str] = &["taskSupport"];
pub const PROMPT: &[&str] = &["name", "title", "description", "arguments", "icons", "_meta"];
pub const PROMPT_ARGUMENT: &[&str] = &["name", "title", "description", "required"];
/// A resource or a resource template.
pub const RESOURCE: &[&str] = &[
    "uri",
    "uriTemplate",
    "name",
    "title",
    "description",
    "mimeType",
    "size",
    "annotations",
    "icons",
    "_meta",
];
pub const RESOURCE_ANNOTATIONS: &[&str] = &["audience", "priority", "lastModified"];

/// Every method of every revision, in both directions.
const METHODS: &[&str] = &[
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "initialize",
    "server/discover",
    "ping",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/elicitation/complete",
    "notifications/tasks",
    "notifications/tasks/status",
    "notifications/subscriptions/acknowledged",
];

/// The known name that `name` differs from only by case, surrounding white space, or control and
/// invisible characters.
pub fn folds_to<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    // Most names need only ASCII case folding, which does not allocate.
    if name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let found = known.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
        return found.filter(|found| *found != name);
    }
    let folded = folded(name)?;
    known.iter().copied().find(|known| known.eq_ignore_ascii_case(&folded))
}

/// Like [`folds_to`], for readers that also accept `input_schema` and `input-schema` for
/// `inputSchema`.
pub fn reads_as<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    if known.contains(&name) {
        return None;
    }
    // Most names need only ASCII case folding, which does not allocate.
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    let folded = if is_plain { Cow::Borrowed(name) } else { Cow::Owned(folded(name)?) };
    known.iter().copied().find(|known| is_joined_alike(known, &folded))
}

/// The MCP method that a lenient reader takes `method` for (`TOOLS/CALL`, `tools/call/`). Returns
/// `None` for an exact method.
pub fn method_reads_as(method: &str) -> Option<&'static str> {
    if METHODS.contains(&method) {
        return None;
    }
    let parts: Vec<String> = method.split('/').map(folded).collect::<Option<_>>()?;
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let folded = parts.join("/");
    METHODS.iter().copied().find(|known| is_joined_alike(known, &folded))
}

/// Folds to upper case first, because the long s and the Kelvin sign fold to `s` and `k` in one
/// direction only.
///
/// Returns `None` at the first character that no MCP name contains: a list may have a million such
/// names.
fn folded(name: &str) -> Option<String> {
    let mut folded = String::with_capacity(name.len());
    for character in name.chars().filter(|c| !c.is_control()) {
        if character.is_ascii() {
            folded.push(character.to_ascii_lowercase());
        } else if !is_invisible(character) {
            match ascii_letters(character) {
                Some(letters) => folded.push_str(letters),
                None if character.is_whitespace() => folded.push(character),
                None => return None,
            }
        }
    }
    Some(folded.trim().to_owned())
}

/// The ASCII letters that a non-ASCII character becomes in upper case and then in lower case. The
/// table is complete, so Unicode's full upper-case table is not needed.
fn ascii_letters(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'ı' => "i",
        'ſ' => "s",
        '\u{212a}' => "k",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' | 'ﬆ' => "st",
        _ => return None,
    })
}

/// Whether two names differ only in ASCII case and in `_` and `-`.
fn is_joined_alike(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = u8> {
    let letters = name.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
    letters.map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_that_some_readers_take_for_a_member_are_recognized() {
        for (name, member) in [
            ("Description", "description"),
            ("DESCRIPTION", "description"),
            ("InputSchema", "inputSchema"),
            ("inputschema", "inputSchema"),
            ("input_schema", "inputSchema"),
            ("input-schema", "inputSchema"),
            ("Name", "name"),
            (" name", "name"),
            ("name\u{0}", "name"),
            ("na\u{200b}me", "name"),
            ("\u{feff}name", "name"),
            ("de\u{17f}cription", "description"),
            ("_Meta", "_meta"),
            ("meta", "_meta"),
        ] {
            assert_eq!(reads_as(name, TOOL), Some(member), "{name:?}");
        }
        assert_eq!(reads_as("read_only_hint", TOOL_ANNOTATIONS), Some("readOnlyHint"));
        assert_eq!(reads_as("Instructions", HANDSHAKE), Some("instructions"));
    }

    #[test]
    fn characters_fold_to_ascii_letters_as_unicode_says() {
        for character in ('\u{80}'..=char::MAX).filter(|character| !character.is_whitespace()) {
            let letters: String = character.to_uppercase().flat_map(char::to_lowercase).collect();
            let letters = Some(letters.as_str()).filter(|letters| letters.is_ascii());
            assert_eq!(ascii_letters(character), letters, "{character:?}");
        }
    }

    #[test]
    fn the_names_themselves_and_other_names_are_left_alone() {
        for names in [
            HANDSHAKE,
            CAPABILITIES,
            SERVER_INFO,
            PAGE,
            TOOL,
            TOOL_ANNOTATIONS,
            EXECUTION,
            PROMPT,
            PROMPT_ARGUMENT,
            RESOURCE,
            RESOURCE_ANNOTATIONS,
        ] {
            names.iter().for_each(|name| assert_eq!(reads_as(name, names), None, "{name}"));
        }
        // Members that real tools have, and near misses.
        for name in
            ["mcp_enabled", "category", "names", "descriptions", "x-name", "na me", "nаme", ""]
        {
            assert_eq!(reads_as(name, TOOL), None, "{name}");
        }
    }

    #[test]
    fn separators_are_kept_where_only_case_is_folded() {
        assert_eq!(folds_to("RequestID", &["requestId"]), Some("requestId"));
        assert_eq!(folds_to("requestId\u{0}", &["requestId"]), Some("requestId"));
        assert_eq!(folds_to("tas\u{212a}", &["task"]), Some("task"));
        assert_eq!(folds_to("requestId", &["requestId"]), None);
        assert_eq!(folds_to("request_id", &["requestId"]), None);
        assert_eq!(folds_to("meta", &["_meta"]), None);
    }

    #[test]
    fn methods_in_another_spelling_are_recognized_and_methods_of_others_are_not() {
        for (method, meant) in [
            ("TOOLS/CALL", "tools/call"),
            ("tools/call/", "tools/call"),
            ("/tools//call", "tools/call"),
            ("tools/call\u{0}", "tools/call"),
            (" tools/call", "tools/call"),
            ("tools /call", "tools/call"),
            ("tool\u{17f}/call", "tools/call"),
            ("Sampling/createMessage", "sampling/createMessage"),
            ("sampling/create_message", "sampling/createMessage"),
            ("notifications/tools/List_changed", "notifications/tools/list_changed"),
            ("notifications/tools/listChanged", "notifications/tools/list_changed"),
            ("Initialize", "initialize"),
        ] {
            assert_eq!(method_reads_as(method), Some(meant), "{method:?}");
        }
        METHODS.iter().for_each(|method| assert_eq!(method_reads_as(method), None));
        for method in
            ["ui/initialize", "tools/calls", "x/unknown", "notifications/x", "", "/", "tool/s/call"]
        {
            assert_eq!(method_reads_as(method), None, "{method}");
        }
    }
}
