//! What judging costs when a server means it badly: lists within every limit, made to be as slow to compare as possible.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

use contract::surface::{Surface, read_capture};
use gate::judge::{judge_surface, would_hold};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::Settings;
use gate::time::Timestamp;
use std::time::Duration;

/// A surface of tools with these input schemas, up to so many bytes in all.
fn surface(bytes: usize, most: usize, schema: &dyn Fn(usize) -> String) -> Surface {
    let mut tools = Vec::new();
    let mut total = 0;
    while tools.len() < most {
        let schema = schema(tools.len());
        let tool = format!(r#"{{"name":"t{:06}","inputSchema":{schema}}}"#, tools.len());
        total += tool.len();
        if total > bytes {
            break;
        }
        tools.push(tool);
    }
    read_capture(format!("[{}]", tools.join(",")).as_bytes()).unwrap()
}

fn book(surface: &Surface) -> PinBook {
    let mut book = PinBook::default();
    for entry in surface.entries() {
        let (at, by) = (Timestamp(0), "ada".to_owned());
        book.push(Pin { entry: entry.clone(), basis: Basis::Person, at, by });
    }
    book
}

fn joined(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

type Schema = Box<dyn Fn(usize, &str) -> String>;

/// Each is a schema of about `size` bytes; the word is another one in the old list than in the new one.
fn hostile(size: usize) -> Vec<(&'static str, Schema)> {
    let many = move |bytes: usize| size / bytes;
    let branches = move |keyword: &'static str| -> Schema {
        Box::new(move |_, word| {
            let count = many(110);
            let branch = |n: usize| {
                format!(
                    r#"{{"title":"{n}{word}","type":"object","properties":{{"p{n}":{{"type":"string","description":"{word}"}}}},"required":["p{n}"]}}"#
                )
            };
            format!(r#"{{"{keyword}":[{}]}}"#, joined(count, branch))
        })
    };
    let nested: Schema = Box::new(move |_, word| {
        let count = many(600);
        let inner = format!(
            r#"{{"anyOf":[{}]}}"#,
            joined(8, |n| format!(r#"{{"type":"string","const":"{n}{word}"}}"#))
        );
        let middle = format!(r#"{{"oneOf":[{inner},{{"type":"null","title":"{word}"}}]}}"#);
        format!(
            r#"{{"allOf":[{}]}}"#,
            joined(count, |n| format!(r#"{{"properties":{{"p{n}":{middle}}}}}"#))
        )
    });
    let references: Schema = Box::new(move |_, word| {
        let values = joined(many(20), |n| format!(r#""v{n}{word}""#));
        let properties = joined(many(60), |n| format!(r##""p{n}":{{"$ref":"#/$defs/d"}}"##));
        format!(r#"{{"properties":{{{properties}}},"$defs":{{"d":{{"enum":[{values}]}}}}}}"#)
    });
    let choices_by_reference: Schema = Box::new(move |_, word| {
        let choices = joined(many(40), |n| format!(r#"{{"title":"{n}{word}"}}"#));
        let properties = joined(many(60), |n| format!(r##""p{n}":{{"$ref":"#/$defs/d"}}"##));
        format!(r#"{{"properties":{{{properties}}},"$defs":{{"d":{{"anyOf":[{choices}]}}}}}}"#)
    });
    let chain: Schema = Box::new(move |_, word| {
        let count = many(60);
        let definitions = joined(count, |n| {
            format!(
                r##""d{n}":{{"description":"{word}","$ref":"#/$defs/d{}"}}"##,
                n.wrapping_sub(1)
            )
        });
        format!(
            r##"{{"properties":{{"{word}":{{"$ref":"#/$defs/d{}"}}}},"$defs":{{{definitions}}}}}"##,
            count - 1
        )
    });
    let text_by_reference: Schema = Box::new(move |_, word| {
        let text = word.repeat(size / 4);
        let properties = joined(many(80), |n| format!(r##""p{n}":{{"$ref":"#/$defs/d"}}"##));
        format!(
            r#"{{"properties":{{{properties}}},"$defs":{{"d":{{"pattern":"{text}","const":"{text}"}}}}}}"#
        )
    });
    let values: Schema = Box::new(move |_, word| {
        format!(
            r#"{{"properties":{{"p":{{"enum":[{}]}}}}}}"#,
            joined(many(12), |n| format!(r#""{n}{word}""#))
        )
    });
    let dense: Schema = Box::new(move |_, word| {
        format!(r#"{{"default":[{}],"title":"{word}"}}"#, joined(many(2), |_| "0".to_owned()))
    });
    let parts: Schema = Box::new(move |_, word| {
        format!(
            r#"{{"allOf":[{}]}}"#,
            joined(many(30), |n| format!(r#"{{"description":"{n}{word}"}}"#))
        )
    });
    let members: Schema = Box::new(move |_, word| {
        format!(
            r#"{{"properties":{{{}}}}}"#,
            joined(many(40), |n| format!(r#""{n}{word}":{{"type":"string"}}"#))
        )
    });
    let required: Schema = Box::new(move |_, word| {
        let shared = joined(many(40), |n| format!(r#""s{n}":{{}}"#));
        let branches = joined(many(40), |n| format!(r#"{{"required":["{n}{word}"]}}"#));
        format!(r#"{{"type":"object","properties":{{{shared}}},"anyOf":[{branches}]}}"#)
    });
    let discriminated: Schema = Box::new(move |_, word| {
        let values = many(64 * 14);
        let branch = |n: usize| {
            format!(
                r#"{{"type":"object","required":["k"],"properties":{{"k":{{"enum":[{}]}}}}}}"#,
                joined(values, |v| format!(r#""{n}-{v}{word}""#))
            )
        };
        format!(r#"{{"oneOf":[{}]}}"#, joined(64, branch))
    });
    vec![
        ("anyOf", branches("anyOf")),
        ("oneOf", branches("oneOf")),
        ("allOf", branches("allOf")),
        ("nested", nested),
        ("references to many values", references),
        ("references to many choices", choices_by_reference),
        ("a chain of references", chain),
        ("references to a long text", text_by_reference),
        ("many values", values),
        ("many small values", dense),
        ("many parts with texts", parts),
        ("many properties", members),
        ("many properties and choices", required),
        ("discriminated", discriminated),
    ]
}

/// How long it takes to judge a list in which everything changed, and what each posture would do with it.
fn time(old: &Surface, new: &Surface) -> Duration {
    let book = book(old);
    let settings = Settings::default();
    testing::processor_time(|| {
        let judged = judge_surface(&book, new, &settings, 0);
        for judgement in &judged.entries {
            would_hold(judgement, &book, &settings);
        }
        assert!(judged.entries.len() >= new.entries().len(), "every entry changed");
        assert!(judged.verdict.is_held());
    })
}

/// With `HOLDPOINT_COST=whole` and an optimized build: the largest lists there can be, two seconds for each.
#[test]
fn no_list_takes_long_to_judge() {
    let is_whole = std::env::var_os("HOLDPOINT_COST").is_some_and(|words| words == "whole");
    let (list, entry, most) = match is_whole {
        true => (16 * 1024 * 1024 - 64 * 1024, 1_000_000, Duration::from_secs(2)),
        false => (96 * 1024, 24 * 1024, Duration::from_secs(20)),
    };
    let mut slow = Vec::new();
    for (name, schema) in hostile(entry) {
        let [old, new] = ["a", "b"].map(|word| surface(list, 10_000, &|index| schema(index, word)));
        let took = time(&old, &new);
        println!("{name}: {took:?} for {} tools", new.entries().len());
        if took > most {
            slow.push((name, took));
        }
    }
    for (name, schema) in hostile(1_500) {
        let [old, new] = ["a", "b"].map(|word| surface(list, 10_000, &|index| schema(index, word)));
        let took = time(&old, &new);
        println!("{name}, small: {took:?} for {} tools", new.entries().len());
        if took > most {
            slow.push((name, took));
        }
    }
    // All removed, and as many added with the same input: each could be a rename of any.
    let schema = |_: usize, _: &str| r#"{"properties":{"a":{"type":"string"}}}"#.to_owned();
    let old = surface(list, 10_000, &|index| schema(index, ""));
    let new = read_capture(old.to_capture().replace("\"t0", "\"u0").as_bytes()).unwrap();
    let took = time(&old, &new);
    println!("renames: {took:?}");
    assert!(took <= most, "renames took {took:?}");
    assert!(slow.is_empty(), "{slow:?}");
}
