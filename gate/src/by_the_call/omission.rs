//! Whether a parameter's text says what happens if the parameter is omitted.
//!
//! A call that omits a parameter relies on such a text. The lists are generous: a false positive
//! holds a call, but a false negative lets a call through whose meaning changed. Text that does not
//! look like plain English counts as a match, since no list covers every language.

/// Fragments that mention a default or omitting a value. A space marks a word boundary.
const PHRASES: [&str; 54] = [
    "default",
    "omit",
    "absent",
    "absence",
    "missing",
    "fallback",
    "unspecified",
    "unless",
    "otherwise",
    " unset ",
    " undefined ",
    " unprovided ",
    " unsupplied ",
    " undeclared ",
    " blank ",
    " empty ",
    " nothing ",
    " none ",
    " if null ",
    " when null ",
    " else ",
    " fall back",
    " falls back",
    " falling back",
    " left out",
    " leave out",
    " leave it out",
    " leave this out",
    " leaving out",
    " leaving it ",
    " leave off",
    " left off",
    " left alone",
    " skip it ",
    " skip this ",
    " if skipped",
    " when skipped",
    " assume",
    " presume",
    " implied ",
    " implicit",
    " if not",
    " when not",
    " without this",
    " without it ",
    " without a value",
    " only needed",
    " only required",
    " needed only",
    " required only",
    " initially ",
    " lacking ",
    " in its place ",
    " in place of it ",
];

/// The same in other languages that are often written without accents.
const OTHER_LANGUAGES: [&str; 12] = [
    " voreinstellung",
    " vorgabe",
    " standardwert",
    " angegeben",
    " fehlt ",
    " standaard",
    " predefinit",
    " predeterminad",
    " por defecto",
    " padrao",
    " omess",
    " domyslnie",
];

/// Words that are found even with other characters between their letters.
const SPELLED: [&str; 5] = ["default", "omitted", "unspecified", "notspecified", "notprovided"];

/// Negations, and stems of words for providing a value. Close together, they are about a value that
/// is not given.
const DENYING: [&str; 16] = [
    "not", "no", "isnt", "arent", "wasnt", "werent", "dont", "doesnt", "didnt", "havent", "hasnt",
    "cant", "wont", "never", "nobody", "without",
];
const GIVING: [&str; 18] = [
    "giv", "set", "specif", "provid", "suppl", "pass", "present", "defin", "includ", "enter",
    "fill", "configur", "select", "choos", "chosen", "value", "assign", "argument",
];
/// The most words from one to the other.
const CLOSE: usize = 4;

/// Common words of English descriptions that are rare in other languages.
const ENGLISH: &str = "\
    all and any are be by can each end example fields file filter for format from has have how \
    if include into is it its key like limit list maximum may minimum more must name names new \
    not number of only optional or order page path project query required result results \
    return search should sort start string such supported text than that the their them then \
    these this those time to true type types up use used user using value values what when \
    where whether which who will with within you your";
/// Shorter texts are too short to detect a language.
const ENOUGH_WORDS: usize = 5;
/// A text counts as English if at least one word in this many is a common one.
const ONE_OF: usize = 8;

/// Whether a text mentions a default or being omitted.
pub(super) fn mentions_omission(text: &str) -> bool {
    if !text.chars().all(is_plain) {
        return true;
    }
    // Separators differ between texts ("not-specified", line breaks), so join words with single
    // spaces.
    let mut folded = String::with_capacity(text.len() + 2);
    folded.push(' ');
    for character in text.chars() {
        match character {
            '\'' | '\u{2019}' => {}
            _ if character.is_ascii_alphanumeric() => folded.push(character.to_ascii_lowercase()),
            _ if folded.ends_with(' ') => {}
            _ => folded.push(' '),
        }
    }
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
    let has_any = |phrases: &[&str]| phrases.iter().any(|phrase| folded.contains(phrase));
    if has_any(&PHRASES) || has_any(&OTHER_LANGUAGES) {
        return true;
    }
    let spelled = folded.replace(' ', "");
    let words: Vec<&str> = folded.split_whitespace().collect();
    SPELLED.iter().any(|word| spelled.contains(word))
        || denies_giving(&words)
        || !is_english(&words)
}

/// Whether a negation and a word for providing a value are close together. A short text is examined
/// as a whole.
fn denies_giving(words: &[&str]) -> bool {
    let is_giving = |word: &str| GIVING.iter().any(|start| word.starts_with(start));
    words.windows(CLOSE).chain([words]).any(|near| {
        near.len() <= CLOSE
            && near.iter().any(|word| DENYING.contains(word))
            && near.iter().any(|word| is_giving(word))
    })
}

/// Whether a text may be English. Short texts always may.
fn is_english(words: &[&str]) -> bool {
    let words = words.iter().filter(|word| word.bytes().any(|byte| byte.is_ascii_alphabetic()));
    let (mut count, mut ordinary) = (0, 0);
    for word in words {
        count += 1;
        ordinary += usize::from(ENGLISH.split(' ').any(|ordinary| ordinary == *word));
    }
    count < ENOUGH_WORDS || ordinary * ONE_OF >= count
}

/// ASCII and English typographic characters. Other letters, combining marks and invisible
/// characters are not plain.
fn is_plain(character: char) -> bool {
    match character {
        '\u{ad}' => false,
        '\0'..='\u{7f}' => true,
        '\u{d7}' | '\u{f7}' | '\u{fe0f}' => true,
        '\u{a0}'..='\u{bf}'
        | '\u{2010}'..='\u{2027}'
        | '\u{202f}'..='\u{205e}'
        | '\u{20a0}'..='\u{20cf}'
        | '\u{2190}'..='\u{27bf}'
        | '\u{1f300}'..='\u{1faff}' => !character.is_alphabetic(),
        _ => false,
    }
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
            "What to keep. If it isn't specified, all is deleted.",
            "What to keep. If you don\u{2019}t provide it, all is deleted.",
            "What to keep. When this parameter isn't set, all is deleted.",
            "What to keep. Leave it empty to delete all.",
            "What to keep. Leave this blank to delete all.",
            "What to keep. With no value, all is deleted.",
            "What to keep. When undefined, all is deleted.",
            "What to keep. Nothing given means that all is deleted.",
            "What to keep. Skip it to delete all.",
            "What to keep. Not given: all is deleted.",
            "What to keep. Assumed to be nothing.",
            "What to keep. Optional: only needed to keep something, all else is deleted.",
            "What to keep. No value means delete everything.",
            "No value",
        ] {
            assert!(mentions_omission(text), "{text}");
        }
    }

    #[test]
    fn ordinary_english_descriptions_are_not_about_leaving_a_value_out() {
        for text in [
            "",
            "Kind",
            "The path to read",
            "Maximum number of rows",
            "Minutes after sunset",
            "Title \u{2013} \u{201c}as shown\u{201d} \u{2192} the user\u{2019}s list \u{2705}",
            "Optional list of labels",
            "What to keep of the files that match",
        ] {
            assert!(!mentions_omission(text), "{text}");
        }
    }

    #[test]
    fn letters_between_signs_and_letters_with_marks_do_not_hide_a_word() {
        for text in [
            "What to keep. All is deleted by de-fault.",
            "What to keep. All is deleted by def\u{ad}ault.",
            "What to keep. All is deleted by d\u{113}fault.",
            "What to keep. All is deleted by defau\u{301}lt.",
            "What to keep. All is deleted by def\u{200b}ault.",
            "What to keep. All is deleted by d_e_f_a_u_l_t.",
        ] {
            assert!(mentions_omission(text), "{text}");
        }
    }

    #[test]
    fn text_that_does_not_look_like_english_counts() {
        for text in [
            "\u{9ed8}\u{8ba4}\u{503c}\u{4e3a}10",
            "Gr\u{f6}\u{df}e in Bytes",
            "Was bleibt. Voreinstellung: nichts.",
            "Qu\u{e9} queda. Si no se indica, se borra todo.",
            "Cosa resta. Se omesso, tutto viene cancellato.",
            "Cosa resta. Valore predefinito: nulla.",
            "Wat blijft. Standaard wordt alles gewist.",
            "Ohne Angabe werden saemtliche Dateien entfernt.",
        ] {
            assert!(mentions_omission(text), "{text}");
        }
    }
}
