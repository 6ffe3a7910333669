//! Converts a sentence about one entry into one about several.

/// Replacements, in the order in which they are applied: a longer form precedes a shorter one.
const FORMS: [(&str, &str); 26] = [
    ("declares itself", "declare themselves"),
    ("says that it stays within its own", "say that they stay within their own"),
    ("says that it ", "say that they "),
    ("; it did not say", "; they did not say"),
    ("; it said", "; they said"),
    ("is a new tool", "are new tools"),
    ("is a new prompt", "are new prompts"),
    ("is a new resource template", "are new resource templates"),
    ("is a new resource", "are new resources"),
    ("is no longer ", "are no longer "),
    ("describes itself", "describe themselves"),
    ("describes ", "describe "),
    ("requires ", "require "),
    ("has ", "have "),
    ("declares ", "declare "),
    ("shows ", "show "),
    ("marks ", "mark "),
    ("refuses ", "refuse "),
    ("claims ", "claim "),
    ("than it did", "than they did"),
    ("that it accepted", "that they accepted"),
    ("the form of its result", "the form of their results"),
    ("one of its parameters", "one of their parameters"),
    (" its own ", " their own "),
    (" its ", " their "),
    ("review it in full", "review them in full"),
];

/// Converts the end of a sentence about one entry to plural. Text in backticks is left unchanged.
pub(super) fn plural(predicate: &str) -> String {
    let parts: Vec<String> = predicate
        .split('`')
        .enumerate()
        .map(|(place, part)| match place % 2 {
            0 => {
                FORMS.iter().fold(part.to_owned(), |text, (one, many)| text.replacen(one, many, 1))
            }
            _ => part.to_owned(),
        })
        .collect();
    parts.join("`")
}
