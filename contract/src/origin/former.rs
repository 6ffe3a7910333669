//! What former versions kept of a launch: they hashed, without a key, what looked like a secret. Such a word cannot be brought
//! into today's form without the word itself, so that is done when the server is next started.

use super::{ProgramOrigin, Redactor, address_entry};
use crate::hash::sha256_hex;
use crate::json::Document;

/// How a server is started or reached, in full.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    Program { program: &'a str, arguments: &'a [String] },
    Address(&'a str),
}

/// Without words: they may be secrets.
impl std::fmt::Debug for Way<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Way")
    }
}

/// The JSON of the origin entry of this launch as it is kept now, where `raw` is what a former version kept of the same launch,
/// redacted since. `None` if it is not, or needs no change.
pub fn renew_entry(raw: &str, way: Way<'_>, redactor: &Redactor<'_>) -> Option<String> {
    let document = Document::parse(raw).ok()?;
    let text = |name: &str| Some(document.root().get(name)?.as_str()?.into_owned());
    let (former, now) = match way {
        Way::Program { program, arguments } => {
            let entry = |arguments: &[String]| {
                let origin = ProgramOrigin::of(program, arguments, redactor);
                ProgramOrigin { digest: text("digest"), ..origin }.entry().ok()
            };
            (entry(&hide_secrets(arguments))?, entry(arguments)?)
        }
        Way::Address(url) => {
            let tls_key = text("tlsKey");
            let entry = |url: &str| address_entry(&redactor.address(url), tls_key.as_deref()).ok();
            (entry(&hide_url_secrets(url))?, entry(url)?)
        }
    };
    (former.raw() == raw && now.raw() != raw).then(|| now.raw().to_owned())
}

/// An address with the values in its query that look like secrets as hashes.
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

/// Arguments with those that look like secrets as hashes.
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

/// Well-known prefixes of keys, and long words of letters and digits as no person types them.
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
