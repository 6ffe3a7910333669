//! Reads from its host's file how a guarded server is started, because only that file contains the
//! required secrets.

use crate::address::{Parts, has_variables};
use crate::document::Node;
use crate::entry::{self, Entry, Launch, Reason};
use crate::guard::{self, Behind};
use crate::table::Shape;
use std::fmt;

/// What a host's file says about a server behind its gate.
#[derive(Clone, PartialEq, Eq)]
pub struct GuardedLaunch {
    /// The program and its arguments; empty for a server that is reached at an address.
    pub command: Vec<String>,
    /// The value of `--url`.
    pub url: Option<String>,
    /// The values of `--header`.
    pub headers: Vec<String>,
    /// Whether private addresses may be reached too.
    pub allow_private: bool,
    /// The entry's variables.
    pub environment: Vec<(String, String)>,
    /// Whether the host replaces something in it before it starts the server.
    pub has_variables: bool,
    /// The file from which the host reads additional variables, as the entry names it.
    pub env_file: Option<String>,
}

/// Omits the values, because they may be secrets.
impl fmt::Debug for GuardedLaunch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GuardedLaunch").finish_non_exhaustive()
    }
}

impl GuardedLaunch {
    /// Returns `None` if a part of it is not a text.
    pub(crate) fn of(
        arguments: &[Option<&str>],
        behind: Behind,
        variables: &[(&str, &Node)],
    ) -> Option<GuardedLaunch> {
        let environment: Option<Vec<(String, String)>> = variables
            .iter()
            .map(|(name, node)| Some(((*name).to_owned(), node.text()?.to_owned())))
            .collect();
        let environment = environment?;
        let (command, url, headers) = match behind {
            Behind::Program(at) => {
                let words: Option<Vec<String>> =
                    arguments.get(at..)?.iter().map(|word| word.map(str::to_owned)).collect();
                (words?, None, Vec::new())
            }
            Behind::Address { url, headers } => {
                let header = |(name, source): (String, String)| format!("{name}={source}");
                (Vec::new(), Some(url), headers.into_iter().map(header).collect())
            }
        };
        let mut texts = command.iter().chain(environment.iter().map(|(_, value)| value));
        let has_variables = texts.any(|text| has_variables(text));
        let allow_private = arguments.contains(&Some("--allow-private"));
        let env_file = None;
        Some(GuardedLaunch {
            command,
            url,
            headers,
            allow_private,
            environment,
            has_variables,
            env_file,
        })
    }
}

/// How a server in a host's file is started or reached. It has the names of variables and headers,
/// but not their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLaunch {
    pub name: String,
    pub reach: FoundReach,
    /// Whether the host replaces something in it before it starts or reaches the server.
    pub has_variables: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundReach {
    Command {
        /// The program and its arguments. A word that may be a secret is `None`.
        words: Vec<Option<String>>,
        /// The names of the variables that it is started with.
        variables: Vec<String>,
    },
    Url {
        url: String,
        /// Whether the address contained credentials, which are omitted.
        is_cut: bool,
        /// The names of the headers that it is reached with.
        headers: Vec<String>,
    },
    /// It cannot be determined.
    Unclear(Reason),
}

impl FoundLaunch {
    /// Returns `None` for an entry of a gateway.
    pub(crate) fn of(entry: &Entry<'_>, shape: &Shape) -> Option<FoundLaunch> {
        if entry::gateway_address(entry, shape).is_some() {
            return None;
        }
        let variables = entry::variables(entry, shape);
        let names = variables.iter().map(|(name, _)| (*name).to_owned()).collect();
        let (reach, has_variables) = match entry::launch(entry, shape) {
            Err(reason) => (FoundReach::Unclear(reason), false),
            Ok(Launch::Remote(remote)) => {
                let headers = remote.headers.map(|(_, map)| &map.members);
                let mut headers: Vec<String> =
                    headers.into_iter().flatten().map(|header| header.key.clone()).collect();
                if remote.bearer.is_some() {
                    headers.push("Authorization".to_owned());
                }
                (reached(remote.url, headers), has_variables(remote.url))
            }
            Ok(Launch::Program(program)) => match program.guarded() {
                Some(guarded) => match &guarded.behind {
                    Behind::Program(at) => {
                        let words = program.arguments();
                        started(words.get(*at..).unwrap_or_default(), own(&variables))
                    }
                    Behind::Address { headers, .. } => {
                        let url = entry::guarded_address(entry, &guarded, shape)?;
                        let names = headers.iter().map(|(name, _)| name.clone()).collect();
                        (reached(url, names), has_variables(url))
                    }
                },
                None => {
                    let name = std::iter::once(Some(program.name()));
                    let words: Vec<Option<&str>> = name.chain(program.arguments()).collect();
                    started(&words, names)
                }
            },
        };
        Some(FoundLaunch { name: entry.name.clone(), reach, has_variables })
    }
}

/// The variables of a wired entry that belong to the server.
fn own(variables: &[(&str, &Node)]) -> Vec<String> {
    let names = variables.iter().map(|(name, _)| *name);
    names.filter(|name| !guard::is_own_variable(name)).map(str::to_owned).collect()
}

fn started(words: &[Option<&str>], variables: Vec<String>) -> (FoundReach, bool) {
    let has_variables = words.iter().flatten().any(|word| has_variables(word));
    let mut told = Vec::new();
    let mut names_secret = false;
    for word in words {
        let is_secret = word.is_none_or(|word| names_secret || may_be_secret(word));
        told.push(word.filter(|_| !is_secret).map(str::to_owned));
        names_secret = word.is_some_and(|word| {
            word.starts_with('-') && !word.contains('=') && names_a_secret(word)
        });
    }
    (FoundReach::Command { words: told, variables }, has_variables)
}

fn reached(url: &str, headers: Vec<String>) -> FoundReach {
    let has_credentials = Parts::of(url).is_some_and(|parts| parts.has_credentials);
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let plain = match plain.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@')))
    {
        Some((scheme, Some((_, rest)))) => format!("{scheme}://{rest}"),
        Some((_, None)) | None => plain.to_owned(),
    };
    // Some services put the key into the path.
    if let Some((scheme, rest)) = plain.split_once("://")
        && let Some((host, path)) = rest.split_once('/')
        && path.split('/').any(may_be_secret)
    {
        return FoundReach::Url { url: format!("{scheme}://{host}/"), is_cut: true, headers };
    }
    let is_cut = has_credentials || plain != url;
    FoundReach::Url { url: plain, is_cut, headers }
}

/// Whether an option's name suggests that its value is a secret.
fn names_a_secret(option: &str) -> bool {
    const WORDS: [&str; 7] = ["key", "token", "secret", "password", "passwd", "auth", "credential"];
    let lower = option.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// Whether a word may be a secret: the value of an option that suggests one, an address with
/// credentials, or a long mix of letters and digits that is neither a path nor a package.
fn may_be_secret(word: &str) -> bool {
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && names_a_secret(name)
    {
        return true;
    }
    if Parts::of(word).is_some_and(|parts| parts.has_credentials) {
        return true;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let digits = word.chars().filter(char::is_ascii_digit).count();
    word.len() >= 20 && word.chars().all(is_word) && digits >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_may_be_secrets_are_left_out() {
        let told = |words: &[&str]| -> Vec<Option<String>> {
            let words: Vec<Option<&str>> = words.iter().copied().map(Some).collect();
            match started(&words, Vec::new()).0 {
                FoundReach::Command { words, .. } => words,
                other => panic!("{other:?}"),
            }
        };
        let some = |word: &str| Some(word.to_owned());
        assert_eq!(
            told(&["npx", "-y", "@scope/server-files@1.2.3", "/srv/work", "--verbose"]),
            ["npx", "-y", "@scope/server-files@1.2.3", "/srv/work", "--verbose"].map(some)
        );
        assert_eq!(told(&["x", "--api-key", "abc"]), [some("x"), some("--api-key"), None]);
        assert_eq!(told(&["x", "--token=abc", "a"]), [some("x"), None, some("a")]);
        assert_eq!(told(&["x", "sk0123456789abcdefghijkl"]), [some("x"), None]);
        assert_eq!(told(&["x", "https://u:p@h.example/"]), [some("x"), None]);
    }

    #[test]
    fn the_secrets_of_an_address_are_left_out() {
        let url = |url: &str| match reached(url, Vec::new()) {
            FoundReach::Url { url, is_cut, .. } => (url, is_cut),
            other => panic!("{other:?}"),
        };
        let same = "https://h.example/mcp";
        assert_eq!(url(same), (same.to_owned(), false));
        assert_eq!(url("https://h.example/mcp?key=s3cr3t"), (same.to_owned(), true));
        assert_eq!(url("https://u:p@h.example/mcp"), (same.to_owned(), true));
        let keyed = "https://h.example/k/0123456789abcdef0123/mcp";
        assert_eq!(url(keyed), ("https://h.example/".to_owned(), true));
    }
}
