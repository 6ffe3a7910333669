//! Decides which words of a launch are stored in clear, from a closed list. Every other word is
//! stored as a keyed hash.
//!
//! Secrets have no recognizable form, so no test looks for one.

use super::package::{Package, is_plain_word};

/// The prefix of a hidden word. No word stored in clear starts with it.
pub const HIDDEN: &str = "hidden:";

/// The number of hex digits after the prefix of a hidden word.
const HASH_DIGITS: usize = 64;

/// The longest option, variable or program name stored in clear.
const MAX_NAME_BYTES: usize = 64;
/// The longest number stored in clear.
const MAX_DIGITS: usize = 5;
/// The most letters in a short option (`-x`).
const MAX_SHORT_LETTERS: usize = 4;

/// Ordinary command-line words, stored in clear.
const WORDS: [&str; 68] = [
    "*",
    "-",
    "--",
    ".",
    "..",
    "/C",
    "/c",
    "UTC",
    "add",
    "all",
    "any",
    "auto",
    "bridge",
    "container",
    "cors",
    "debug",
    "default",
    "dev",
    "development",
    "disabled",
    "dlx",
    "enabled",
    "env",
    "error",
    "exec",
    "false",
    "full",
    "host",
    "http",
    "https",
    "info",
    "json",
    "latest",
    "local",
    "localhost",
    "main",
    "mcp",
    "never",
    "no",
    "none",
    "null",
    "off",
    "on",
    "prod",
    "production",
    "read",
    "read-only",
    "read-write",
    "readonly",
    "run",
    "serve",
    "server",
    "sse",
    "start",
    "stdin",
    "stdio",
    "stdout",
    "streamable-http",
    "text",
    "tool",
    "trace",
    "true",
    "verbose",
    "warn",
    "warning",
    "write",
    "x",
    "yes",
];

/// Launchers and interpreters that other launchers start, stored in clear.
const LAUNCHERS: [&str; 34] = [
    "bash",
    "bun",
    "bunx",
    "deno",
    "docker",
    "fastmcp",
    "hatch",
    "java",
    "mcp-proxy",
    "mcp-remote",
    "nerdctl",
    "node",
    "nodejs",
    "npm",
    "npx",
    "pdm",
    "pipenv",
    "pipx",
    "pnpm",
    "pnpx",
    "podman",
    "poetry",
    "python",
    "python3",
    "ruby",
    "rye",
    "sh",
    "ssh",
    "supergateway",
    "ts-node",
    "tsx",
    "uv",
    "uvx",
    "yarn",
];

/// Ordinary parts of the paths of MCP endpoints, stored in clear.
const PATH_PARTS: [&str; 34] = [
    "agent",
    "agents",
    "ai",
    "api",
    "beta",
    "connect",
    "dev",
    "events",
    "gateway",
    "graphql",
    "http",
    "jsonrpc",
    "latest",
    "mcp",
    "mcp-server",
    "message",
    "messages",
    "prod",
    "proxy",
    "public",
    "remote",
    "rest",
    "rpc",
    "server",
    "servers",
    "sse",
    "stable",
    "staging",
    "stream",
    "streamable",
    "streamable-http",
    "tools",
    "ws",
    "events-stream",
];

/// If an option's or a variable's name contains one of these, its value is never stored in clear.
const SECRET_NAMES: [&str; 19] = [
    "auth",
    "bearer",
    "cookie",
    "credential",
    "cred",
    "header",
    "jwt",
    "key",
    "login",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "pwd",
    "secret",
    "session",
    "signature",
    "token",
];

/// The same, but only as a whole part between punctuation: inside a longer word they mean nothing
/// (`path`).
const SECRET_PARTS: [&str; 4] = ["code", "mfa", "otp", "pat"];

/// The short option by which `curl` and similar programs take headers.
const HEADER_OPTION: &str = "-H";

/// Decides which words are stored in clear. The caller provides file access and the hash key.
#[derive(Clone, Copy)]
pub struct Redactor<'a> {
    /// Whether a path exists, relative to the folder that the launch starts in.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// Computes the keyed hash of a word.
    pub keyed_hash: &'a dyn Fn(&str) -> String,
}

impl std::fmt::Debug for Redactor<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor<'_> {
    /// The keyed hash that is stored instead of a text.
    pub fn hidden(&self, text: &str) -> String {
        format!("{HIDDEN}{}", (self.keyed_hash)(text))
    }

    /// A program's name or path.
    pub(super) fn program(&self, program: &str) -> String {
        let is_path = program.contains(['/', '\\']);
        let is_kept = if is_path { (self.exists)(program) } else { is_bare_name(program) };
        if is_kept { program.to_owned() } else { self.hidden(program) }
    }

    /// Redacts the arguments of a program, in order. `package` is the package that its launcher
    /// runs.
    pub(super) fn arguments(&self, arguments: &[String], package: Option<&Package>) -> Vec<String> {
        let mut before = "";
        let mut kept = Vec::with_capacity(arguments.len());
        for word in arguments {
            kept.push(self.argument(word, before, package));
            before = word;
        }
        kept
    }

    fn argument(&self, word: &str, before: &str, package: Option<&Package>) -> String {
        if word.is_empty() || is_option(word) {
            return word.to_owned();
        }
        if before.starts_with('-') && !before.contains('=') && names_a_secret(before) {
            return self.hidden(word);
        }
        if let Some(kept) = self.value(word, package) {
            return kept;
        }
        let Some((name, value)) = word.split_once('=') else { return self.hidden(word) };
        let value_kept = Some(value).filter(|value| !value.is_empty() && !names_a_secret(name));
        match value_kept.and_then(|value| self.value(value, package)) {
            Some(kept) if is_option(name) || is_variable(name) => format!("{name}={kept}"),
            // In encoded bytes, the text before the first `=` is not a name.
            None if is_option(name) => format!("{name}={}", self.hidden(value)),
            _ => self.hidden(word),
        }
    }

    /// A word that is neither an option nor the value of one that names a secret. Returns `None` if
    /// the whole word must be hidden.
    fn value(&self, word: &str, package: Option<&Package>) -> Option<String> {
        if package.is_some_and(|package| package.words.iter().any(|named| named == word)) {
            let is_plain = package.is_some_and(|package| self.is_plain(package, word));
            return is_plain.then(|| word.to_owned()).or_else(|| self.url(word));
        }
        let is_kept = is_short_number(word)
            || WORDS.contains(&word)
            || LAUNCHERS.contains(&word)
            || self.is_path(word);
        if is_kept { Some(word.to_owned()) } else { self.url(word) }
    }

    /// Whether a word that names the launcher's package is stored in clear.
    pub(super) fn is_plain(&self, package: &Package, word: &str) -> bool {
        let is_script = package.registry == "script";
        is_plain_word(package.registry, word)
            || self.is_path(word)
            || is_script && word.contains('/') && (self.exists)(word)
    }

    pub(super) fn is_path(&self, word: &str) -> bool {
        ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start)) && (self.exists)(word)
    }

    /// Redacts an `http`, `https`, `ws` or `wss` URL part by part. Returns `None` for any other
    /// text and for a URL with user information: those are hidden as a whole.
    pub fn url(&self, url: &str) -> Option<String> {
        let (scheme, rest) = url.split_once("://")?;
        let schemes = ["http", "https", "ws", "wss"];
        if !schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return None;
        }
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if !is_host_and_port(authority) {
            return None;
        }
        let (path, more) = tail.split_at(tail.find(['?', '#']).unwrap_or(tail.len()));
        let parts: Vec<String> = path.split('/').map(|part| self.path_part(part)).collect();
        let mut kept = format!("{scheme}://{authority}{}", parts.join("/"));
        if let Some(mark) = more.chars().next() {
            kept.push(mark);
            let rest = more.get(mark.len_utf8()..).unwrap_or_default();
            if !rest.is_empty() {
                kept.push_str(&self.hidden(rest));
            }
        }
        Some(kept)
    }

    /// Redacts the URL of a server.
    pub fn address(&self, url: &str) -> String {
        self.url(url).unwrap_or_else(|| self.hidden(url))
    }

    fn path_part(&self, part: &str) -> String {
        let version = part.strip_prefix('v').unwrap_or_default();
        let is_version = matches!(version.len(), 1 | 2) && is_short_number(version);
        if part.is_empty() || is_version || PATH_PARTS.contains(&part) {
            part.to_owned()
        } else {
            self.hidden(part)
        }
    }
}

/// The host of a stored URL; `None` if the URL was hidden as a whole.
pub fn host_of(kept: &str) -> Option<&str> {
    let (_, rest) = kept.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    match authority.strip_prefix('[') {
        Some(inside) => inside.split(']').next(),
        None => authority.split(':').next(),
    }
}

/// A program as messages show it: without its folders, and hidden unless the rest is a plain name.
pub fn shown_program(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    match (is_bare_name(name), name == program) {
        (true, true) => name.to_owned(),
        (true, false) => format!("…/{name}"),
        (false, _) => "…".to_owned(),
    }
}

/// Whether any part of a stored text is hidden.
pub fn is_hidden(kept: &str) -> bool {
    kept.split(HIDDEN)
        .skip(1)
        .any(|rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count() == HASH_DIGITS)
}

fn is_option(word: &str) -> bool {
    if let Some(name) = word.strip_prefix("--") {
        return is_name(name);
    }
    let letters = word.strip_prefix('-').unwrap_or_default();
    (1..=MAX_SHORT_LETTERS).contains(&letters.len())
        && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Whether a text looks like the name of an option: letters first, and never two digits in a row.
fn is_name(name: &str) -> bool {
    let has_number = name.as_bytes().windows(2).any(|two| two.iter().all(u8::is_ascii_digit));
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !has_number
}

fn is_variable(name: &str) -> bool {
    is_name(name.trim_start_matches('_'))
}

/// Whether a text is the bare name of a program, script, container or host.
pub(super) fn is_bare_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
}

fn is_short_number(word: &str) -> bool {
    (1..=MAX_DIGITS).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether an option's or a variable's name suggests that its value is a secret.
pub(super) fn names_a_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
    name == HEADER_OPTION
        || SECRET_NAMES.iter().any(|secret| lower.contains(secret))
        || parts.any(|part| part.ends_with("pass") || SECRET_PARTS.contains(&part))
}

fn is_host_and_port(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let is_address = address.bytes().all(|b| b.is_ascii_hexdigit() || b":.".contains(&b));
            (is_address, port)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (host, port) = authority.split_at(end);
            let is_host = host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
            (is_host && !host.is_empty(), port)
        }
    };
    host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_short_number))
}
