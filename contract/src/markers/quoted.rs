//! Whether a sentence talks *about* a phrase instead of saying it: "detects 'ignore previous instructions'".
//!
//! An author can dress an order up as a quotation. So only a sentence that names what it does with the phrase counts,
//! in which nothing addresses the reader; and each look stays within [`WINDOW`] bytes.

use super::MarkerClass;

/// How far before and behind a phrase is looked.
const WINDOW: usize = 240;

/// Words of sentences that quote a phrase.
const ABOUT: [&str; 47] = [
    "detect",
    "detects",
    "detecting",
    "detection",
    "flag",
    "flags",
    "flagging",
    "block",
    "blocks",
    "blocking",
    "scan",
    "scans",
    "scanning",
    "identify",
    "identifies",
    "filter",
    "filters",
    "filtering",
    "prevent",
    "prevents",
    "reject",
    "rejects",
    "catch",
    "catches",
    "explain",
    "explains",
    "explaining",
    "describes",
    "describing",
    "such",
    "like",
    "example",
    "examples",
    "phrase",
    "phrases",
    "string",
    "strings",
    "pattern",
    "patterns",
    "attempt",
    "attempts",
    "match",
    "matches",
    "matching",
    "sanitizes",
    "eg",
    "classifies",
];
/// Verbs of sentences that report on what others write.
const REPORTING: [&str; 24] = [
    "detects",
    "detecting",
    "detect",
    "flags",
    "flagging",
    "blocks",
    "blocking",
    "identifies",
    "identifying",
    "analyzes",
    "analyses",
    "analyzing",
    "checks",
    "checking",
    "tests",
    "classifies",
    "prevents",
    "preventing",
    "explains",
    "explaining",
    "catches",
    "rejects",
    "scans",
    "finds",
];
/// What leads from such a verb to the phrase.
const LEADING: [&str; 11] = [
    "that", "which", "whether", "when", "if", "where", "to", "attempts", "tries", "trying", "asks",
];
/// Words of a label before a sample: "Expected output: …".
const LABELS: [&str; 9] = [
    "sample",
    "expected",
    "mock",
    "illustrative",
    "training",
    "fixture",
    "canned",
    "dummy",
    "simulated",
];
/// Words that address the reader, or begin another thing that is done.
const ADDRESSING: [&str; 12] = [
    "you",
    "your",
    "must",
    "always",
    "assistant",
    "please",
    "shall",
    "agents",
    "should",
    "immediately",
    "mandatory",
    "required",
];
const JOINING: [&str; 6] = ["and", "then", "also", "but", "instead", "first"];

/// Whether the sentence around a phrase talks about it.
pub(super) fn is_talked_about(class: MarkerClass, text: &[u8], start: usize) -> bool {
    let lead = lead(text, start);
    if words(lead).any(|word| is_one_of(word, &ADDRESSING)) {
        return false;
    }
    is_quoted(lead, text, start) || is_reported(lead) || is_sample(class, lead)
}

/// What stands before the phrase in its sentence.
fn lead(text: &[u8], start: usize) -> &[u8] {
    let window = text.get(start.saturating_sub(WINDOW)..start).unwrap_or(&[]);
    let is_end = |pair: &[u8]| {
        matches!(pair, [b'.' | b'!' | b'?', after] if after.is_ascii_whitespace())
            || matches!(pair, [b'\n', b'\n'])
    };
    let at = window.windows(2).rposition(is_end).map_or(0, |at| at + 2);
    window.get(at..).unwrap_or(&[])
}

/// Within quotation marks, in a sentence that says what it does with them.
fn is_quoted(lead: &[u8], text: &[u8], start: usize) -> bool {
    let Some((opening, mark)) = opening_mark(lead) else { return false };
    let behind = text.get(start..).unwrap_or(&[]);
    let behind = behind.get(..WINDOW).unwrap_or(behind);
    let is_closed = behind.iter().enumerate().any(|(at, &byte)| {
        byte == mark && !behind.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)
    });
    let before = lead.get(..opening).unwrap_or(&[]);
    is_closed && words(before).any(|word| is_one_of(word, &ABOUT))
}

/// The last quotation mark before the phrase, if it is one that opens.
fn opening_mark(lead: &[u8]) -> Option<(usize, u8)> {
    let is_mark = |byte: u8| matches!(byte, b'\'' | b'"' | b'`');
    let opens = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| lead.get(before));
        let after = lead.get(at + 1);
        before.is_none_or(|byte| !byte.is_ascii_alphanumeric())
            && after.is_none_or(|byte| !byte.is_ascii_whitespace() && *byte != b',')
    };
    // An apostrophe within a word is no quotation mark.
    let is_apostrophe = |at: usize| {
        let letter = |at: Option<usize>| {
            at.and_then(|at| lead.get(at)).is_some_and(u8::is_ascii_alphanumeric)
        };
        letter(at.checked_sub(1)) && letter(Some(at + 1))
    };
    let at = (0..lead.len())
        .rev()
        .find(|&at| lead.get(at).is_some_and(|&byte| is_mark(byte)) && !is_apostrophe(at))?;
    let mark = lead.get(at).copied()?;
    opens(at).then_some((at, mark))
}

/// "Detects prompts that …": a verb that reports, then a word that leads to the phrase, and nothing else begins between.
fn is_reported(lead: &[u8]) -> bool {
    let mut state = (false, false);
    let mut rest = lead;
    while let Some(start) = rest.iter().position(u8::is_ascii_alphabetic) {
        let between = rest.get(..start).unwrap_or(&[]);
        if between.iter().any(|byte| matches!(byte, b',' | b';' | b':' | b'(' | b'\n')) {
            state = (false, false);
        }
        let tail = rest.get(start..).unwrap_or(&[]);
        let length = tail.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(tail.len());
        let word = tail.get(..length).unwrap_or(&[]);
        if is_one_of(word, &JOINING) {
            state = (false, false);
        } else if is_one_of(word, &REPORTING) {
            state = (true, false);
        } else if state.0 && is_one_of(word, &LEADING) {
            state = (true, true);
        }
        rest = tail.get(length..).unwrap_or(&[]);
    }
    let is_cut = rest.iter().any(|byte| matches!(byte, b',' | b';' | b':' | b'-'));
    state.1 && !is_cut
}

/// "Sample response: …", for phrases that samples are made of.
fn is_sample(class: MarkerClass, lead: &[u8]) -> bool {
    let is_sampled =
        matches!(class, MarkerClass::InstructionOverride | MarkerClass::ContextCapture);
    let Some(colon) = lead.iter().rposition(|&byte| byte == b':').filter(|_| is_sampled) else {
        return false;
    };
    let (label, behind) = lead.split_at_checked(colon).unwrap_or((lead, &[]));
    let is_first = words(behind).count() <= 6;
    let count = words(label).count();
    is_first && words(label).skip(count.saturating_sub(3)).any(|word| is_one_of(word, &LABELS))
}

/// Words that turn an order round.
const NEGATING: [&str; 10] =
    ["never", "not", "dont", "cannot", "avoid", "without", "nor", "no", "t", "refuse"];

/// Whether the words right before a phrase negate it: "never send it without asking the user".
pub(super) fn is_negated(text: &[u8], start: usize) -> bool {
    words(lead(text, start)).any(|word| is_one_of(word, &NEGATING))
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

fn is_one_of(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|other| word.eq_ignore_ascii_case(other.as_bytes()))
}

#[cfg(test)]
mod tests;
