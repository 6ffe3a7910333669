//! Surfaces like those of real servers: descriptions of a paragraph, a handful of parameters, some
//! nesting.

use std::fmt::Write;
use std::ops::Range;

/// A `tools/list` result with `count` tools. `changed` is the tool with a different description.
pub fn tools(count: usize, changed: Option<usize>) -> String {
    page(0..count, changed, None)
}

/// The same in pages. The cursor of a page is its number.
pub fn pages(count: usize, page_tools: usize) -> Vec<String> {
    let page_of = |number: usize| {
        let end = count.min((number + 1) * page_tools);
        page(number * page_tools..end, None, (end < count).then_some(number + 1))
    };
    (0..count.div_ceil(page_tools).max(1)).map(page_of).collect()
}

fn page(indexes: Range<usize>, changed: Option<usize>, next: Option<usize>) -> String {
    let mut out = String::from("{\"tools\":[");
    for (place, index) in indexes.enumerate() {
        if place > 0 {
            out.push(',');
        }
        let word = if changed == Some(index) { "replaces" } else { "updates" };
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            r#"{{"name":"tool_{index}","title":"Tool {index}","description":"Looks up and {word} the records of collection {index}. Give the query as plain text; results come newest first, at most `limit` of them.\n\nUse `cursor` to go on where an earlier answer ended.","inputSchema":{{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{{"query":{{"type":"string","description":"What to look for, in the query language of the store","minLength":1}},"limit":{{"type":"integer","minimum":1,"maximum":100,"default":20,"description":"How many results to give at most"}},"cursor":{{"anyOf":[{{"type":"string"}},{{"type":"null"}}],"default":null,"description":"Where to go on"}},"order":{{"type":"string","enum":["newest","oldest","relevance"],"description":"How results are sorted"}},"filter":{{"type":"object","properties":{{"author":{{"type":"string","description":"Only by this author"}},"labels":{{"type":"array","items":{{"type":"string"}},"description":"Only with all of these labels"}},"since":{{"type":"string","format":"date-time"}}}},"additionalProperties":false}}}},"required":["query"],"additionalProperties":false}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#
        );
    }
    out.push(']');
    if let Some(next) = next {
        let _ = write!(out, r#","nextCursor":"{next}""#);
    }
    out.push('}');
    out
}
