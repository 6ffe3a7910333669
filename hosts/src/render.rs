//! Renders small pieces of text in each syntax: strings, names, members, lists. Anything larger
//! stays as written.

use crate::document::Syntax;

/// A string literal that every reader interprets the same way.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // All of these are below U+10000, so one escape sequence works in all three syntaxes.
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that one of the syntaxes does not allow unescaped, or that an editor does not
/// display.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A member's name, without quotes if that is customary.
pub(crate) fn key(syntax: Syntax, name: &str) -> String {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match syntax {
        Syntax::Json => string(name),
        Syntax::Toml | Syntax::Yaml if is_word => name.to_owned(),
        Syntax::Toml | Syntax::Yaml => string(name),
    }
}

/// A name with a value that is already rendered in this syntax.
pub(crate) fn member(syntax: Syntax, name: &str, value: &str) -> String {
    let name = key(syntax, name);
    match syntax {
        Syntax::Json | Syntax::Yaml => format!("{name}: {value}"),
        Syntax::Toml => format!("{name} = {value}"),
    }
}

pub(crate) fn list(words: &[String]) -> String {
    format!("[{}]", strings(words))
}

/// The contents of a list.
pub(crate) fn strings(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| string(word)).collect();
    words.join(", ")
}

pub(crate) fn map(members: &[String]) -> String {
    format!("{{ {} }}", members.join(", "))
}
