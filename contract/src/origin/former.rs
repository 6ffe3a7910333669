//! Launches stored by former versions, which replaced words that looked like secrets with unkeyed
//! hashes. Converting such a word to today's form needs the word itself, so it happens when the
//! server is next started.

use super::{ProgramOrigin, Redactor, address_entry};
use crate::hash::sha256_hex;
use crate::json::{Document, Node};

/// How a server is started or reached, unredacted.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    Program { program: &'a str, arguments: &'a [String] },
    Address(&'a str),
}

/// Omits the words, because they may be secrets.
impl std::fmt::Debug for Way<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Way")
    }
}

/// Returns today's origin entry for this launch if `raw` is an earlier form of the same entry:
/// stored by a former version, redacted since, or stored when other paths existed. Returns `None`
/// if `raw` belongs to another launch or needs no change.
pub fn renew_entry(raw: &str, way: Way<'_>, redactor: &Redactor<'_>) -> Option<String> {
    let document = Document::parse(raw).ok()?;
    let text = |name: &str| Some(document.root().get(name)?.as_str()?.into_owned());
    let (former, now) = match way {
        Way::Program { program, arguments } => {
            let entry = |arguments: &[String]| {
                let origin = ProgramOrigin::of(program, arguments, redactor);
                ProgramOrigin { digest: text("digest"), ..origin }.entry().ok()
            };
            let now = entry(arguments)?;
            if now.raw() != raw && is_of_words(&document, program, arguments, redactor) {
                return Some(now.raw().to_owned());
            }
            (entry(&hide_secrets(arguments))?, now)
        }
        Way::Address(url) => {
            let tls_key = text("tlsKey");
            let entry = |url: &str| address_entry(&redactor.address(url), tls_key.as_deref()).ok();
            (entry(&hide_url_secrets(url))?, entry(url)?)
        }
    };
    (former.raw() == raw && now.raw() != raw).then(|| now.raw().to_owned())
}

/// Whether an origin entry was made from exactly these words. A path is stored in clear only if it
/// exists, so the entry of a launch differs before and after the file is created. Each word
/// therefore matches in either form.
fn is_of_words(
    document: &Document<'_>,
    program: &str,
    arguments: &[String],
    redactor: &Redactor<'_>,
) -> bool {
    let kept = |exists: bool| {
        let redactor = Redactor { exists: &|_| exists, ..*redactor };
        ProgramOrigin::of(program, arguments, &redactor)
    };
    let [clear, hidden] = [kept(true), kept(false)];
    // Compares the word itself, because versions differ in which words they store in clear. The
    // package follows from the words.
    let is_of = |node: Option<Node<'_>>, word: &str, kept: [&str; 2]| {
        let text = node.and_then(Node::as_str);
        text.is_some_and(|text| text == word || kept.contains(&text.as_ref()))
    };
    let root = document.root();
    let words: Vec<_> =
        root.get("arguments").map(|list| list.items().collect()).unwrap_or_default();
    let kept = clear.arguments.iter().zip(&hidden.arguments);
    words.len() == arguments.len()
        && is_of(root.get("program"), program, [&clear.program, &hidden.program])
        && words
            .iter()
            .zip(arguments)
            .zip(kept)
            .all(|((node, word), (clear, hidden))| is_of(Some(*node), word, [clear, hidden]))
}

/// Replaces the query values of an address that look like secrets with hashes.
fn hide_url_secrets(url: &str) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
            if value.is_empty() || !(names_a_secret(name) || name == "key" || looks_random(value)) {
                return parameter.to_owned();
            }
            let separator = if parameter.contains('=') { "=" } else { "" };
            format!("{name}{separator}sha256:{}", short_hash(value))
        })
        .collect();
    format!("{before}?{}", parameters.join("&"))
}

fn short_hash(value: &str) -> String {
    sha256_hex(value.as_bytes()).chars().take(16).collect()
}

/// Replaces the arguments that look like secrets with hashes.
fn hide_secrets(arguments: &[String]) -> Vec<String> {
    let mut hidden = Vec::with_capacity(arguments.len());
    let mut is_next_secret = false;
    for argument in arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (Some(name), value),
            None => (None, argument.as_str()),
        };
        let is_named = name.is_some_and(names_a_secret);
        let is_value = !argument.starts_with('-') && is_next_secret;
        if is_named || is_value || looks_random(value) {
            let hash = short_hash(value);
            hidden.push(match name {
                Some(name) => format!("{name}=sha256:{hash}"),
                None => format!("sha256:{hash}"),
            });
        } else {
            hidden.push(argument.clone());
        }
        is_next_secret = name.is_none() && argument.starts_with('-') && names_a_secret(argument);
    }
    hidden
}

fn names_a_secret(option: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "api-key",
        "api_key",
        "access-key",
        "access_key",
        "credential",
        "auth",
        "bearer",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// Well-known prefixes of keys, and long mixes of letters and digits that no person types.
fn looks_random(value: &str) -> bool {
    const PREFIXES: [&str; 9] =
        ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "eyJ"];
    if PREFIXES.iter().any(|prefix| value.starts_with(prefix)) && value.len() >= 16 {
        return true;
    }
    let is_key_character = |byte: u8| byte.is_ascii_alphanumeric() || b"+_-=".contains(&byte);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= 28
        && value.bytes().all(is_key_character)
        && digits >= 5
        && letters >= 5
        && !value.contains("--")
}
