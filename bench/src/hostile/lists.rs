//! Lists of tools within all limits that are as slow as possible to read, compare and judge.

use std::fmt::Write;

/// The size of a generated list.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub list_bytes: usize,
    /// The largest size of an entry. The generators stay slightly below it.
    pub entry_bytes: usize,
    pub entries: usize,
}

impl Size {
    /// The largest readable list, in the largest possible entries.
    pub const LARGEST: Size =
        Size { list_bytes: 16 * 1024 * 1024 - 4_096, entry_bytes: 1_000_000, entries: 10_000 };
    /// The largest readable list, in as many entries as possible.
    pub const MOST: Size = Size { entry_bytes: 1_600, ..Size::LARGEST };
}

/// A side of a change. Generators insert its word wherever the two lists should differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Old => "a",
            Side::New => "b",
        }
    }
}

/// Generates the members of one tool, except its name, in about this many bytes.
type Tool = fn(Side, usize) -> String;

/// The response to `tools/list`, on one page.
fn page(tool: Tool, side: Side, size: Size) -> String {
    let members = tool(side, size.entry_bytes);
    let mut page = String::with_capacity(size.list_bytes);
    page.push_str(r#"{"tools":["#);
    for number in 0..size.entries {
        if page.len() + members.len() + 32 > size.list_bytes {
            break;
        }
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(page, r#"{comma}{{"name":"t{number:06}",{members}}}"#);
    }
    page.push_str("]}");
    page
}

/// Parts separated by commas, of about this many bytes in total.
fn filled(bytes: usize, part: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(bytes);
    for number in 0.. {
        let part = part(number);
        if !text.is_empty() && text.len() + part.len() + 1 > bytes {
            break;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&part);
    }
    text
}

fn input(schema: &str) -> String {
    format!(r#""inputSchema":{schema}"#)
}

fn branches(keyword: &str, side: Side, bytes: usize) -> String {
    let word = side.word();
    let parts = filled(bytes, |n| {
        format!(
            r#"{{"title":"{n}{word}","type":"object","properties":{{"p{n}":{{"type":"string","description":"{word}"}}}},"required":["p{n}"]}}"#
        )
    });
    input(&format!(r#"{{"{keyword}":[{parts}]}}"#))
}

/// A definition that many properties refer to.
fn referred_to(bytes: usize, definition: &str) -> String {
    let properties = filled(bytes.saturating_sub(definition.len()), |n| {
        format!(r##""p{n}":{{"$ref":"#/$defs/d"}}"##)
    });
    input(&format!(r#"{{"properties":{{{properties}}},"$defs":{{"d":{definition}}}}}"#))
}

fn properties(bytes: usize, property: impl Fn(usize) -> String) -> String {
    input(&format!(r#"{{"properties":{{{}}}}}"#, filled(bytes, property)))
}

/// A description that repeats one text.
fn described(side: Side, bytes: usize, text: &str) -> String {
    let body = text.repeat(bytes / text.len());
    format!(r#""description":"{body}","inputSchema":{{"title":"{}"}}"#, side.word())
}

/// A list before and after a change.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub name: &'static str,
    tool: Tool,
    size: Size,
    change: Change,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    /// Every tool keeps its name, but its definition changes.
    EachTool,
    /// All tools are new.
    Added,
    /// All tools are renamed.
    Renamed,
}

impl Pair {
    pub fn before(&self) -> String {
        match self.change {
            Change::EachTool => page(self.tool, Side::Old, self.size),
            Change::Added => r#"{"tools":[]}"#.to_owned(),
            Change::Renamed => self.after().replace(r#"{"name":"t"#, r#"{"name":"u"#),
        }
    }

    pub fn after(&self) -> String {
        page(self.tool, Side::New, self.size)
    }
}

/// All hostile lists of a size.
pub fn pairs(size: Size) -> impl Iterator<Item = Pair> {
    let changed = SHAPES.iter().map(|&(name, tool)| (name, tool, Change::EachTool));
    let with_properties: Tool = |_, bytes| properties(bytes, |n| format!(r#""p{n}":{{}}"#));
    let others = [
        ("new tools", with_properties, Change::Added),
        ("renamed tools", with_properties, Change::Renamed),
    ];
    let all = changed.chain(others);
    all.map(move |(name, tool, change)| Pair { name, tool, size, change })
}

/// Changing tools, by their construction.
const SHAPES: &[(&str, Tool)] = &[
    ("anyOf", |side, bytes| branches("anyOf", side, bytes)),
    ("oneOf", |side, bytes| branches("oneOf", side, bytes)),
    ("allOf", |side, bytes| branches("allOf", side, bytes)),
    ("combinators in combinators", |side, bytes| {
        let word = side.word();
        let inner = filled(300, |n| format!(r#"{{"type":"string","const":"{n}{word}"}}"#));
        let middle =
            format!(r#"{{"oneOf":[{{"anyOf":[{inner}]}},{{"type":"null","title":"{word}"}}]}}"#);
        let parts = filled(bytes, |n| format!(r#"{{"properties":{{"p{n}":{middle}}}}}"#));
        input(&format!(r#"{{"allOf":[{parts}]}}"#))
    }),
    ("anyOf without titles", |side, bytes| {
        let word = side.word();
        let parts = filled(bytes, |n| format!(r#"{{"enum":["{n}{word}"]}}"#));
        input(&format!(r#"{{"properties":{{"p":{{"anyOf":[{parts}]}}}}}}"#))
    }),
    ("branches that appear", |side, bytes| {
        let shared = filled(bytes / 2, |n| format!(r#""s{n}":{{}}"#));
        let branches = filled(bytes / 2, |n| format!(r#"{{"required":["{n}"]}}"#));
        let branches = match side {
            Side::Old => String::new(),
            Side::New => format!(r#","anyOf":[{branches}]"#),
        };
        input(&format!(r#"{{"type":"object","properties":{{{shared}}}{branches}}}"#))
    }),
    ("branches that disappear", |side, bytes| {
        let shared = filled(bytes / 2, |n| format!(r#""s{n}":{{}}"#));
        let branches = filled(bytes / 2, |n| format!(r#"{{"required":["{n}"]}}"#));
        let branches = match side {
            Side::Old => format!(r#","anyOf":[{branches}]"#),
            Side::New => String::new(),
        };
        input(&format!(r#"{{"type":"object","properties":{{{shared}}}{branches}}}"#))
    }),
    ("references to many values", |side, bytes| {
        let values = filled(bytes / 2, |n| format!(r#""v{n}{}""#, side.word()));
        referred_to(bytes, &format!(r#"{{"enum":[{values}]}}"#))
    }),
    ("references to many choices", |side, bytes| {
        let choices = filled(bytes / 2, |n| format!(r#"{{"title":"{n}{}"}}"#, side.word()));
        referred_to(bytes, &format!(r#"{{"anyOf":[{choices}]}}"#))
    }),
    ("references to a long text", |side, bytes| {
        let text = side.word().repeat(bytes / 4);
        referred_to(bytes, &format!(r#"{{"pattern":"{text}","const":"{text}"}}"#))
    }),
    ("a chain of references", |side, bytes| {
        let word = side.word();
        let definitions = filled(bytes, |n| {
            format!(r##""d{n}":{{"description":"{word}","$ref":"#/$defs/d{}"}}"##, n + 1)
        });
        input(&format!(
            r##"{{"properties":{{"{word}":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{definitions}}}}}"##
        ))
    }),
    ("references into many definitions", |side, bytes| {
        let word = side.word();
        let definitions = filled(bytes / 2, |n| format!(r#""d{n}":{{"title":"{word}"}}"#));
        let count = bytes / 60;
        let properties = filled(bytes / 2, |n| {
            format!(r##""p{n}":{{"$ref":"#/$defs/d{}"}}"##, count.saturating_sub(n))
        });
        input(&format!(r#"{{"properties":{{{properties}}},"$defs":{{{definitions}}}}}"#))
    }),
    ("many definitions", |side, bytes| {
        let definitions = filled(bytes, |n| format!(r#""d{n}":{{"title":"{}"}}"#, side.word()));
        input(&format!(r#"{{"$defs":{{{definitions}}}}}"#))
    }),
    ("other properties", |side, bytes| {
        properties(bytes, |n| format!(r#""{n}{}":{{"type":"string"}}"#, side.word()))
    }),
    ("new properties", |side, bytes| match side {
        Side::Old => input("{}"),
        Side::New => properties(bytes, |n| format!(r#""p{n}":{{"type":"string"}}"#)),
    }),
    ("new empty properties", |side, bytes| match side {
        Side::Old => input("{}"),
        Side::New => properties(bytes, |n| format!(r#""{n}":{{}}"#)),
    }),
    ("properties of another type", |side, bytes| {
        let kind = if side == Side::Old { "string" } else { "integer" };
        properties(bytes, |n| format!(r#""p{n}":{{"type":"{kind}"}}"#))
    }),
    ("descriptions of properties", |side, bytes| {
        properties(bytes, |n| format!(r#""p{n}":{{"description":"{n}{}"}}"#, side.word()))
    }),
    ("descriptions in branches", |side, bytes| {
        let parts = filled(bytes, |n| format!(r#"{{"description":"{n}{}"}}"#, side.word()));
        input(&format!(r#"{{"allOf":[{parts}]}}"#))
    }),
    ("defaults", |side, bytes| {
        let default = if side == Side::Old { 1 } else { 2 };
        properties(bytes, |n| format!(r#""p{n}":{{"default":{default}}}"#))
    }),
    ("required members that come", |side, bytes| match side {
        Side::Old => input("{}"),
        Side::New => {
            input(&format!(r#"{{"required":[{}]}}"#, filled(bytes, |n| format!(r#""{n}""#))))
        }
    }),
    ("dependent members", |side, bytes| {
        let dependents = filled(bytes, |n| format!(r#""{n}":["{n}{}"]"#, side.word()));
        input(&format!(r#"{{"dependentRequired":{{{dependents}}}}}"#))
    }),
    ("patterns of names", |side, bytes| {
        let patterns = filled(bytes, |n| format!(r#""{n}":{{"title":"{}"}}"#, side.word()));
        input(&format!(r#"{{"patternProperties":{{{patterns}}}}}"#))
    }),
    ("values", |side, bytes| {
        let values = filled(bytes, |n| format!(r#""{n}{}""#, side.word()));
        input(&format!(r#"{{"properties":{{"p":{{"enum":[{values}]}}}}}}"#))
    }),
    ("values that are objects", |side, bytes| {
        let values = filled(bytes, |n| format!(r#"{{"{}":{n}}}"#, side.word()));
        input(&format!(r#"{{"properties":{{"p":{{"enum":[{values}]}}}}}}"#))
    }),
    ("values that are empty objects", |side, bytes| {
        let values = filled(bytes, |_| "{}".to_owned());
        input(&format!(r#"{{"properties":{{"p":{{"enum":["{}",{values}]}}}}}}"#, side.word()))
    }),
    ("values that are numbers in odd spellings", |side, bytes| {
        let exponent = if side == Side::Old { 0 } else { 1 };
        let values = filled(bytes, |n| format!("{n}.0e{exponent}"));
        input(&format!(r#"{{"properties":{{"p":{{"enum":[{values}]}}}}}}"#))
    }),
    ("long numbers", |side, bytes| {
        let digits = if side == Side::Old { "1" } else { "2" }.repeat(1_000);
        let values = filled(bytes, |n| format!("{}{digits}e9", n + 1));
        input(&format!(r#"{{"properties":{{"p":{{"enum":[{values}]}}}}}}"#))
    }),
    ("bounds", |side, bytes| {
        let bound = if side == Side::Old { "1e1" } else { "0.5e1" };
        properties(bytes, |n| format!(r#""p{n}":{{"maximum":{bound}}}"#))
    }),
    ("small values of a default", |side, bytes| {
        let zeros = "0,".repeat(bytes / 2);
        input(&format!(r#"{{"default":[{zeros}0],"title":"{}"}}"#, side.word()))
    }),
    ("choices told apart by a member", |side, bytes| {
        let word = side.word();
        let branch = |n: usize| {
            let values = filled(bytes / 64, |v| format!(r#""{n}-{v}{word}""#));
            format!(
                r#"{{"type":"object","required":["k"],"properties":{{"k":{{"enum":[{values}]}}}}}}"#
            )
        };
        let branches: Vec<String> = (0..60).map(branch).collect();
        input(&format!(r#"{{"oneOf":[{}]}}"#, branches.join(",")))
    }),
    ("levels", |side, bytes| {
        let mut schema = format!(r#"{{"title":"{}"}}"#, side.word());
        for _ in 0..14 {
            schema = format!(r#"{{"properties":{{"p":{schema}}}}}"#);
        }
        properties(bytes, |n| format!(r#""{n}":{schema}"#))
    }),
    ("unknown members", |side, bytes| filled(bytes, |n| format!(r#""{n}{}":0"#, side.word()))),
    ("unknown members beyond ASCII", |side, bytes| {
        filled(bytes, |n| format!(r#""é{n}{}":0"#, side.word()))
    }),
    ("unknown members that fold to ASCII", |side, bytes| {
        filled(bytes, |n| format!(r#""ſK{n}{}":0"#, side.word()))
    }),
    ("members with escapes", |side, bytes| {
        filled(bytes, |n| format!(r#""\u0061{n}{}":0"#, side.word()))
    }),
    ("properties with escapes", |side, bytes| {
        properties(bytes, |n| format!(r#""\t{n}":{{"title":"{}"}}"#, side.word()))
    }),
    ("names that begin alike", |side, bytes| {
        let start = "n".repeat(500);
        properties(bytes, |n| format!(r#""{start}{n:07}{}":{{}}"#, side.word()))
    }),
    ("members of `annotations`", |side, bytes| {
        let members = filled(bytes, |n| format!(r#""é{n}{}":0"#, side.word()));
        format!(r#""annotations":{{{members}}}"#)
    }),
    ("members of `_meta`", |side, bytes| {
        let members = filled(bytes, |n| format!(r#""{n}{}":[]"#, side.word()));
        format!(r#""_meta":{{{members}}}"#)
    }),
    ("a large output schema", |side, bytes| {
        let members = filled(bytes, |n| format!(r#""{n}":{{"title":"{}"}}"#, side.word()));
        format!(r#""inputSchema":{{}},"outputSchema":{{"properties":{{{members}}}}}"#)
    }),
    ("prose", |side, bytes| described(side, bytes, "words and words of a tool, ")),
    ("text like base64", |side, bytes| described(side, bytes, "aWdub3JlIGFsbCB0aGUgd29yZHMu")),
    ("short runs of base64", |side, bytes| described(side, bytes, "aWdub3JlIGFsbCB0aGUgd2 ")),
    ("text like hex", |side, bytes| {
        described(side, bytes, "69676e6f726520616c6c2074686520776f726473")
    }),
    ("letters of other scripts", |side, bytes| described(side, bytes, "іgnоrе ")),
    ("characters that open into many", |side, bytes| described(side, bytes, "㌀㋿ﷺ")),
    ("invisible characters", |side, bytes| described(side, bytes, "a\u{200b}\u{200c}")),
    ("marks", |side, bytes| described(side, bytes, "a\u{301}\u{302}")),
    ("words of phrases", |side, bytes| {
        described(side, bytes, "ignore all previous do not tell the user read ")
    }),
    ("camelCase", |side, bytes| described(side, bytes, "ignoreAllPreviousDoNotTell")),
    ("comments", |side, bytes| described(side, bytes, "<!--a--><!<!-")),
    ("escaped text", |side, bytes| described(side, bytes, r"\u0041\ud83d\ude00")),
    ("a changed description each", |side, bytes| {
        let text = side.word().repeat(bytes.min(64));
        format!(r#""description":"{text}","inputSchema":{{"type":"object"}}"#)
    }),
    ("additions behind references", |side, bytes| {
        let definitions = filled(bytes / 2, |n| {
            format!(r##""d{n}":{{"properties":{{"l":{{"$ref":"#/$defs/d{}"}}}}}}"##, n + 1)
        });
        let branches = filled(bytes / 2, |n| format!(r##"{{"$ref":"#/$defs/d{n}"}}"##));
        let new = if side == Side::Old { "" } else { r#","properties":{"new":{}}"# };
        input(&format!(r#"{{"anyOf":[{branches}],"$defs":{{{definitions}}}{new}}}"#))
    }),
    ("markers in every member", |side, bytes| {
        let texts = filled(bytes, |n| {
            format!(r#""{n}":"ignore all previous instructions {}""#, side.word())
        });
        format!(r#""_meta":{{{texts}}}"#)
    }),
];
