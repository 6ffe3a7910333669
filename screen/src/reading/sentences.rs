//! Splits texts into sentences of concepts, which the rules read.

use super::concepts::{Concept, Concepts, Vocabulary};
use contract::markers::folded;
use std::ops::Range;

/// Top-level domains. Those that are also file name extensions (`.sh`, `.py`, `.rs`, `.md`) are
/// left out.
const DOMAINS: &[&str] = &[
    "com", "net", "org", "io", "dev", "example", "invalid", "test", "xyz", "ai", "app", "co", "ru",
    "cn", "cloud", "biz", "info", "site", "online", "top", "tld", "eu", "de", "uk", "us", "me",
    "tk", "cc",
];

/// Articles and similar words that are elided before a vowel: `l'utilisateur`, `dell'utente`.
const ELIDED: &[&str] =
    &["l", "d", "dell", "all", "nell", "sull", "dall", "qu", "n", "j", "un", "c"];

/// A word's concepts and its position in the sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) position: u32,
    pub(super) concepts: Concepts,
}

/// A sentence: its words with concepts, in order.
#[derive(Debug)]
pub(super) struct Sentence {
    /// The position in the text.
    pub(super) span: Range<usize>,
    pub(super) tags: Vec<Tag>,
    /// All concepts of the sentence.
    pub(super) all: Concepts,
}

/// The sentences of a text that contain any concepts.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let spans = split(text).into_iter();
    spans.filter_map(|span| tagged(text.get(span.clone())?, span)).collect()
}

/// The boundaries of sentences: `.`, `!` and `?` before white space, empty lines and list markers,
/// and the full stops of other scripts.
fn split(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map_or(' ', |&(_, next)| next);
        let is_end = match character {
            '。' | '！' | '？' | '।' | '؟' => true,
            '!' | '?' => next.is_whitespace(),
            '.' => next.is_whitespace() && !is_abbreviation(text, at),
            '\n' => before == '\n' || begins_item(text.get(at + 1..).unwrap_or("")),
            _ => false,
        };
        before = character;
        if is_end {
            let end = at + character.len_utf8();
            spans.push(start..end);
            start = end;
        }
    }
    spans.push(start..text.len());
    spans
}

/// Whether a line starts a new item: with a list or heading marker, or empty.
fn begins_item(rest: &str) -> bool {
    let first = rest.chars().find(|character| !matches!(character, ' ' | '\t'));
    first.is_some_and(|first| !first.is_alphanumeric() && !matches!(first, '"' | '\'' | '`' | '('))
}

/// `e.g.` and `i.e.` do not end a sentence.
fn is_abbreviation(text: &str, dot: usize) -> bool {
    let before = text.get(..dot).unwrap_or("");
    let mut last = before.chars().rev();
    let (first, second) = (last.next(), last.next());
    first.is_some_and(char::is_alphabetic) && second.is_none_or(|c| !c.is_alphanumeric())
}

fn tagged(text: &str, span: Range<usize>) -> Option<Sentence> {
    let mut tags = latin_tags(text);
    if !text.is_ascii() {
        tags.extend(other_tags(text));
        tags.sort_by_key(|tag| tag.position);
    }
    let mut all = Concepts::default();
    tags.iter().for_each(|tag| all.unite(tag.concepts));
    (!all.is_empty()).then_some(Sentence { span, tags, all })
}

/// A word of a folded text.
struct Token {
    text: String,
    /// The byte right after it.
    after: u8,
}

fn tokens(text: &str) -> Vec<Token> {
    let folded = folded(text).to_ascii_lowercase();
    let bytes = folded.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes.get(at).copied().is_some_and(is_word) {
            at += 1;
            continue;
        }
        if let Some((length, is_told)) = web_address(bytes.get(at..).unwrap_or(&[])) {
            if is_told {
                tokens.push(Token { text: WEB_ADDRESS.to_owned(), after: b' ' });
            }
            at += length;
            continue;
        }
        let start = at;
        let mut word = String::new();
        // A file name that starts with a dot: neither the end of a sentence nor a member access.
        let byte = |back: usize| start.checked_sub(back).and_then(|at| bytes.get(at)).copied();
        if byte(1) == Some(b'.') && !byte(2).is_some_and(|byte| is_word(byte) || byte == b')') {
            word.push('.');
        }
        while let Some(&byte) = bytes.get(at).filter(|byte| is_word(**byte) || **byte == b'\'') {
            at += 1;
            if byte != b'\'' {
                word.push(char::from(byte));
            } else if ELIDED.contains(&word.as_str()) {
                break;
            }
        }
        tokens.push(Token { text: word, after: bytes.get(at).copied().unwrap_or(b' ') });
    }
    tokens
}

/// The token that replaces a web address, whatever words it contains.
const WEB_ADDRESS: &str = "https://";
/// First labels of hosts whose addresses are harmless: documentation and placeholders.
const ORDINARY_HOSTS: &[&[u8]] = &[
    b"example",
    b"www",
    b"localhost",
    b"127",
    b"api",
    b"your",
    b"docs",
    b"learn",
    b"learning",
    b"developer",
    b"developers",
    b"en",
    b"help",
    b"support",
];

/// The length of the web address at the start of some bytes, and whether it counts as one.
fn web_address(bytes: &[u8]) -> Option<(usize, bool)> {
    let schemes: [&[u8]; 4] = [b"https://", b"http://", b"wss://", b"ws://"];
    let rest = schemes.into_iter().find_map(|scheme| bytes.strip_prefix(scheme))?;
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b")>\"'`,".contains(byte);
    let length = rest.iter().position(is_end).unwrap_or(rest.len());
    let host = rest.split(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or(&[]);
    Some((bytes.len() - rest.len() + length, !host.is_empty() && !ORDINARY_HOSTS.contains(&host)))
}

fn latin_tags(text: &str) -> Vec<Tag> {
    let vocabulary = Vocabulary::built_in();
    let tokens = tokens(text);
    let mut tags = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let following =
            |distance: usize| tokens.get(at + 1 + distance).map(|token| token.text.as_str());
        let (mut concepts, length) = vocabulary.row(&token.text, following);
        // The first word of a sequence (`access` in `access token`) has no concepts of its own.
        if length == 1 && !is_sample_file(&tokens, at) {
            concepts.unite(vocabulary.token(&token.text));
        }
        if is_address(&tokens, at) {
            concepts.insert(Concept::Address);
        }
        if !concepts.is_empty() {
            tags.push(Tag { position: at as u32, concepts });
        }
    }
    tags
}

/// `https://…`, `name@host`, `host.tld`.
fn is_address(tokens: &[Token], at: usize) -> bool {
    let Some(token) = tokens.get(at) else { return false };
    let next = tokens.get(at + 1);
    match token.after {
        _ if token.text == WEB_ADDRESS => true,
        b'@' => next.is_some_and(|host| host.after == b'.'),
        b'.' => {
            let is_name = token.text.len() > 2 && token.text != "draw";
            is_name
                && next.is_some_and(|end| DOMAINS.contains(&end.text.as_str()) && end.after != b'(')
        }
        _ => false,
    }
}

/// `.env.example` contains no secrets.
fn is_sample_file(tokens: &[Token], at: usize) -> bool {
    let next = tokens.get(at + 1).map_or("", |next| next.text.as_str());
    tokens.get(at).is_some_and(|token| token.text == ".env" && token.after == b'.')
        && matches!(next, "example" | "sample" | "template" | "dist")
}

/// Adds words of other scripts at approximate positions: two characters count as one word. In
/// scripts with spaces between words, a stem only matches at the start of a word.
fn other_tags(text: &str) -> Vec<Tag> {
    let vocabulary = Vocabulary::built_in();
    let lower = text.to_lowercase();
    let mut tags = Vec::new();
    let mut is_inside = false;
    for (count, (at, character)) in lower.char_indices().enumerate() {
        let is_letter = character.is_alphabetic();
        let may_begin = !is_inside || is_unspaced(character);
        is_inside = is_letter;
        if character.is_ascii() || !is_letter || !may_begin {
            continue;
        }
        let concepts = vocabulary.stem(lower.get(at..).unwrap_or(""));
        if !concepts.is_empty() {
            tags.push(Tag { position: (count / 2) as u32, concepts });
        }
    }
    tags
}

/// Whether a character belongs to a script without spaces between words, or with particles joined
/// to them.
pub(super) fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{e00}'..='\u{eff}')
}
