//! Names that closely resemble those of allowed tools, made by known tricks.

/// The allowed tools of a mail server, as an operator would list them.
pub(crate) const ALLOWED: [&str; 12] = [
    "list_labels",
    "search_threads",
    "get_thread",
    "create_draft",
    "list_drafts",
    "get_message",
    "read_file",
    "list_events",
    "get_event",
    "find_free_time",
    "send_draft",
    "archive",
];

pub(crate) const CATEGORIES: [&str; 10] = [
    "chaining",
    "case",
    "white space and control characters",
    "homoglyphs",
    "zero width",
    "right to left",
    "traversal",
    "near misses",
    "prototype names",
    "JSON smuggling",
];

const DESTRUCTIVE: [&str; 8] = [
    "delete_everything",
    "delete_thread",
    "empty_trash",
    "rm -rf /",
    "forward_all",
    "export_mailbox",
    "DROP TABLE mail",
    "list_labels",
];

const SEPARATORS: [&str; 26] = [
    ";", "; ", "&&", " && ", "||", "|", "&", ",", ", ", "+", "->", "::", ":", "/", "\\", "?", "#",
    "@", "%3B", "%00", "%26", "<", ">", "=", "!", "~",
];

const INVISIBLE: [char; 20] = [
    '\u{ad}',
    '\u{34f}',
    '\u{180e}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{2060}',
    '\u{2061}',
    '\u{2062}',
    '\u{2063}',
    '\u{2064}',
    '\u{206a}',
    '\u{206f}',
    '\u{feff}',
    '\u{fe00}',
    '\u{fe0f}',
    '\u{e0001}',
    '\u{e0020}',
    '\u{e0061}',
    '\u{e007f}',
];

const DIRECTIONS: [char; 12] = [
    '\u{200e}', '\u{200f}', '\u{61c}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

const SPACES: [char; 24] = [
    '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}',
    '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}', '\u{2028}', '\u{2029}', '\u{202f}',
    '\u{205f}', '\u{3000}', '\u{2420}', '\u{2422}', '\u{2423}', '\u{2800}', '\u{3164}', '\u{115f}',
];

/// Letters in other scripts that look like Latin ones.
const LOOK_ALIKES: [(char, &str); 26] = [
    ('a', "аɑα"),
    ('b', "ЬƄЬ"),
    ('c', "сϲᴄ"),
    ('d', "ԁⅾɗ"),
    ('e', "еҽє"),
    ('f', "ſƒẝ"),
    ('g', "ɡց"),
    ('h', "һհ"),
    ('i', "іıɩ"),
    ('j', "јϳ"),
    ('k', "ќκ"),
    ('l', "ӏⅼI1"),
    ('m', "ⅿм"),
    ('n', "ոռ"),
    ('o', "оοσ0"),
    ('p', "рρ"),
    ('q', "ԛգ"),
    ('r', "гᴦ"),
    ('s', "ѕꜱ5"),
    ('t', "тτ"),
    ('u', "υսц"),
    ('v', "ѵν"),
    ('w', "ԝѡ"),
    ('x', "хⅹ"),
    ('y', "уγ"),
    ('z', "ᴢʐ"),
];

const PROTOTYPES: [&str; 14] = [
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "then",
];

const CLIMBS: [&str; 16] = [
    "../",
    "../../",
    "./",
    "..\\",
    "/",
    "//",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "..;/",
    "....//",
    "tools/",
    "file:///",
    "~/",
    "..%c0%af",
    "\u{2025}/",
];

/// Every name with its category; some occur more than once.
pub(crate) fn evasions() -> impl Iterator<Item = (&'static str, String)> {
    let makers: [fn(&str) -> Vec<String>; 10] = [
        chained,
        cased,
        spaced,
        look_alikes,
        zero_width,
        right_to_left,
        climbing,
        near_misses,
        prototypes,
        smuggled,
    ];
    CATEGORIES.into_iter().zip(makers).flat_map(|(category, make)| {
        ALLOWED.into_iter().flat_map(make).map(move |name| (category, name))
    })
}

/// Inserts a text at every position of a name.
fn inserted(name: &str, text: &str) -> Vec<String> {
    (0..=name.len()).map(|at| format!("{}{text}{}", &name[..at], &name[at..])).collect()
}

fn chained(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for other in DESTRUCTIVE {
        for separator in SEPARATORS {
            names.push(format!("{name}{separator}{other}"));
            names.push(format!("{other}{separator}{name}"));
        }
        names.extend([
            format!("{name}$({other})"),
            format!("{name}`{other}`"),
            format!("{name}({other})"),
        ]);
    }
    names
}

/// Varies the case of up to eight letters.
fn cased(name: &str) -> Vec<String> {
    let letters: Vec<usize> = name
        .char_indices()
        .filter(|(_, letter)| letter.is_ascii_lowercase())
        .map(|(at, _)| at)
        .take(8)
        .collect();
    let variant = |choice: usize| {
        let mut bytes = name.as_bytes().to_vec();
        for (bit, at) in letters.iter().enumerate() {
            if choice >> bit & 1 == 1 {
                bytes[*at] = bytes[*at].to_ascii_uppercase();
            }
        }
        String::from_utf8(bytes).expect("letters")
    };
    (1..1_usize << letters.len())
        .map(variant)
        .chain([name.to_uppercase(), name.replace('_', "")])
        .collect()
}

fn spaced(name: &str) -> Vec<String> {
    let controls = ('\0'..=' ').chain('\u{7f}'..='\u{9f}').chain(SPACES);
    let mut names: Vec<String> =
        controls.flat_map(|space| inserted(name, &space.to_string())).collect();
    names.extend((2..6).flat_map(|count| {
        [format!("{name}{}", " ".repeat(count)), format!("{}{name}", "\t".repeat(count))]
    }));
    names
}

fn look_alikes(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, letter) in name.char_indices() {
        let known = LOOK_ALIKES.iter().find(|(known, _)| *known == letter);
        let others: Vec<char> = known.into_iter().flat_map(|(_, others)| others.chars()).collect();
        // The full-width form, and the letter with a combining mark, which a normalization form
        // would compose.
        let wide = char::from_u32(u32::from(letter) + 0xfee0);
        for other in others.into_iter().chain(wide) {
            names.push(format!("{}{other}{}", &name[..at], &name[at + 1..]));
        }
        for mark in ['\u{301}', '\u{308}', '\u{323}', '\u{335}'] {
            names.push(format!("{}{mark}{}", &name[..=at], &name[at + 1..]));
        }
    }
    names.push(name.replace('_', "\u{2017}"));
    names.push(name.replace('_', "\u{ff3f}"));
    names
}

fn zero_width(name: &str) -> Vec<String> {
    INVISIBLE.into_iter().flat_map(|character| inserted(name, &character.to_string())).collect()
}

fn right_to_left(name: &str) -> Vec<String> {
    let backwards: String = name.chars().rev().collect();
    let mut names: Vec<String> =
        DIRECTIONS.into_iter().flat_map(|mark| inserted(name, &mark.to_string())).collect();
    for mark in DIRECTIONS {
        names.push(format!("{mark}{backwards}"));
        names.push(format!("{mark}{backwards}\u{202c}"));
    }
    names.push(backwards);
    names
}

fn climbing(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for climb in CLIMBS {
        names.extend([
            format!("{climb}{name}"),
            format!("{name}/{climb}"),
            format!("{name}/{climb}etc/passwd"),
        ]);
        names.extend(DESTRUCTIVE.map(|other| format!("{name}/{climb}{other}")));
    }
    names
}

/// Names with one letter added, removed, changed or moved.
fn near_misses(name: &str) -> Vec<String> {
    let alphabet: Vec<char> = ('a'..='z').chain('0'..='9').chain("_-.".chars()).collect();
    let mut names = Vec::new();
    for at in 0..name.len() {
        names.push(format!("{}{}", &name[..at], &name[at + 1..]));
        names.push(name[..at].to_owned());
        names.push(name[at + 1..].to_owned());
        if at + 2 <= name.len() {
            let (first, second) = (&name[at..=at], &name[at + 1..at + 2]);
            names.push(format!("{}{second}{first}{}", &name[..at], &name[at + 2..]));
        }
        names.extend(
            alphabet.iter().map(|letter| format!("{}{letter}{}", &name[..at], &name[at + 1..])),
        );
    }
    names.extend(alphabet.iter().flat_map(|letter| inserted(name, &letter.to_string())));
    names.extend([
        format!("{name}{name}"),
        format!("{name}s"),
        format!("mcp__{name}"),
        format!("mail.{name}"),
    ]);
    names
}

fn prototypes(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for word in PROTOTYPES {
        names.push(word.to_owned());
        names.extend([
            format!("{name}.{word}"),
            format!("{name}['{word}']"),
            format!("{word}.{name}"),
            format!("{name}[\"{word}\"]"),
        ]);
    }
    names
}

fn smuggled(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for other in DESTRUCTIVE {
        names.extend([
            format!("{name}\",\"name\":\"{other}"),
            format!("{name}\"}},\"params\":{{\"name\":\"{other}"),
            format!("{{\"name\":\"{name}\",\"then\":\"{other}\"}}"),
            format!("[\"{name}\",\"{other}\"]"),
            format!("{name}\\\",\\\"name\\\":\\\"{other}"),
            format!("{name}\n{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{{\"name\":\"{other}\"}}}}"),
            format!("\"{name}\" /* {other} */"),
            format!("{name}\0{other}"),
        ]);
    }
    // Letters written as escapes that a reader might decode.
    for (at, letter) in name.char_indices() {
        let code = u32::from(letter);
        for escape in [
            format!("\\u{code:04x}"),
            format!("\\x{code:02x}"),
            format!("%{code:02x}"),
            format!("&#{code};"),
            format!("\\{code:o}"),
        ] {
            names.push(format!("{}{escape}{}", &name[..at], &name[at + 1..]));
        }
    }
    names.extend([
        format!("\"{name}\""),
        format!("'{name}'"),
        format!("`{name}`"),
        format!("{name}\\"),
        format!("${{{name}}}"),
    ]);
    names
}
