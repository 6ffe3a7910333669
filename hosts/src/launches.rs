//! How a guarded server is started, read again from its host's file: nothing else has the secrets that it needs.

use crate::address::has_variables;
use crate::document::Node;
use crate::guard::Behind;
use std::fmt;

/// What a host's file says of a server behind its gate.
#[derive(Clone, PartialEq, Eq)]
pub struct GuardedLaunch {
    /// The program and its arguments; empty for a server that is reached at an address.
    pub command: Vec<String>,
    /// The value of `--url`.
    pub url: Option<String>,
    /// The values of `--header`.
    pub headers: Vec<String>,
    /// Whether private addresses are reached too.
    pub allow_private: bool,
    /// The entry's variables.
    pub environment: Vec<(String, String)>,
    /// The host replaces something in it before it starts the server.
    pub has_variables: bool,
    /// The file that the host reads more variables from, as the entry names it.
    pub env_file: Option<String>,
}

/// Without values: they may be secrets.
impl fmt::Debug for GuardedLaunch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GuardedLaunch").finish_non_exhaustive()
    }
}

impl GuardedLaunch {
    /// `None` if a part of it is no text.
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
