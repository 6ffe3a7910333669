//! Whether a parameter's text tells what happens without the parameter.
//!
//! A call that leaves a parameter out relies on such a text. The list is generous: a text that is counted wrongly holds a
//! call, and one that is missed lets a call through whose meaning changed. Text in a script that the list does not cover
//! counts as telling it.

/// Words that tell of a default, or of leaving a value out.
const WORDS: [&str; 38] = [
    "default",
    "omit",
    "absent",
    "absence",
    "missing",
    "unset",
    "unspecified",
    "unless",
    "otherwise",
    "fall back",
    "fallback",
    "falls back",
    "left out",
    "leave out",
    "leaving out",
    "left empty",
    "leave empty",
    "left blank",
    "leave blank",
    "if empty",
    "when empty",
    "if none",
    "if null",
    "if not",
    "when not",
    "is not given",
    "not specified",
    "not provided",
    "not supplied",
    "not passed",
    "not set",
    "not present",
    "without this",
    "without it",
    "standardmäßig",
    "par défaut",
    "predeterminad",
    "por defecto",
];

/// Whether a text speaks of a default or of being left out.
pub(super) fn speaks_of_omission(text: &str) -> bool {
    // Separators differ between texts ("not-specified", line breaks): words are compared with one space between them.
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_alphanumeric() {
            true => folded.extend(character.to_lowercase()),
            false if folded.ends_with(' ') => {}
            false => folded.push(' '),
        }
    }
    folded.chars().any(is_of_other_script) || WORDS.iter().any(|word| folded.contains(word))
}

/// Letters beyond the Latin script.
fn is_of_other_script(character: char) -> bool {
    character > '\u{24f}' && character.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_about_leaving_a_value_out_are_recognized() {
        for text in [
            "Defaults to 10.",
            "If omitted, all rows",
            "The branch (main if not\nspecified)",
            "Falls-back to HEAD",
            "Leave empty for all",
            "默认值为10",
        ] {
            assert!(speaks_of_omission(text), "{text}");
        }
        for text in ["The path to read", "Maximum number of rows", "Größe in Bytes"] {
            assert!(!speaks_of_omission(text), "{text}");
        }
    }
}
