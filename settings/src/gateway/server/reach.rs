//! How a server is reached: by a command or by a URL, each with its own keys.

use super::{CommandSettings, Credentials, Reach, UrlSettings};
use crate::gateway::front::readable;
use crate::gateway::mistake::{Mistakes, Place};
use crate::gateway::tables::ServerTable;
use crate::sandbox::Sandbox;
use crate::secret::SecretName;
use policy::Trust;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Headers that the gateway sets itself, or that belong to a single connection.
const OWN_HEADERS: [&str; 17] = [
    "authorization",
    "dpop",
    "accept",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "forwarded",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "origin",
];

/// A server's table, and the surrounding settings it depends on.
pub(super) struct Written<'a> {
    pub(super) table: &'a ServerTable,
    pub(super) trust: Trust,
    pub(super) folder: &'a Path,
    /// Whether there is a `[vault]` table.
    pub(super) has_vault: bool,
    pub(super) has_age: bool,
    pub(super) has_sign_in: bool,
    pub(super) place: Place,
}

impl Written<'_> {
    pub(super) fn reach(&self, mistakes: &mut Mistakes<'_>) -> Option<Reach> {
        let ServerTable { command, url, .. } = self.table;
        match (command, url) {
            (Some(command), None) => self.command(command, mistakes).map(Reach::Command),
            (None, Some(url)) => self.url(url, mistakes).map(|url| Reach::Url(Box::new(url))),
            (Some(_), Some(_)) => {
                mistakes.add(
                    &self.place.key("url"),
                    "a server is reached by `command` or by `url`: remove one of them",
                );
                None
            }
            (None, None) => {
                let is_unreadable = ["command", "url"]
                    .iter()
                    .any(|key| mistakes.is_unreadable(&self.place.key(key)));
                if !is_unreadable {
                    mistakes.add(
                        &self.place,
                        "has neither `command` nor `url`: add `command = [\"program\", \"argument\"]` or `url = \"https://…\"`",
                    );
                }
                None
            }
        }
    }

    fn command(&self, command: &[String], mistakes: &mut Mistakes<'_>) -> Option<CommandSettings> {
        let table = self.table;
        self.refuse_keys(
            &[
                ("credentials", table.credentials.is_some()),
                ("headers", !table.headers.is_empty()),
                ("forward_headers", !table.forward_headers.is_empty()),
                ("ca", table.ca.is_some()),
                ("allow_private", table.allow_private.is_some()),
            ],
            "is for servers with a `url`: remove it",
            mistakes,
        );
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            let place = self.place.key("command");
            mistakes.add(&place, "names no program: type `[\"program\", \"argument\"]`");
        }
        if command.iter().any(|word| word.contains('\0')) {
            mistakes.add(&self.place.key("command"), "a word has a NUL character: remove it");
        }
        let danger_unconfined = table.danger_unconfined.unwrap_or(false);
        if danger_unconfined && table.sandbox.is_some() {
            mistakes.add(
                &self.place.key("danger_unconfined"),
                "lets the server run without a sandbox, and `sandbox` asks for one: remove one of them",
            );
        }
        let is_confined_by_trust = matches!(self.trust, Trust::Community | Trust::Unknown);
        let sandbox = table.sandbox.clone().or_else(|| is_confined_by_trust.then(Sandbox::default));
        let env = self.variables(mistakes);
        Some(CommandSettings {
            command: command.to_vec(),
            env,
            instance: table.instance.unwrap_or_default(),
            max_instances: table.max_instances.map_or(50, crate::value::Whole::to_usize),
            idle_seconds: table.idle_seconds.map_or(300, |seconds| seconds.0),
            sandbox: sandbox.filter(|_| !danger_unconfined).map(Box::new),
        })
    }

    fn url(&self, url: &str, mistakes: &mut Mistakes<'_>) -> Option<UrlSettings> {
        let table = self.table;
        self.refuse_keys(
            &[
                ("env", !table.env.is_empty()),
                ("instance", table.instance.is_some()),
                ("max_instances", table.max_instances.is_some()),
                ("idle_seconds", table.idle_seconds.is_some()),
                ("danger_unconfined", table.danger_unconfined.is_some()),
                ("sandbox", table.sandbox.is_some()),
                ("program_digest", table.program_digest.is_some()),
                ("package", table.package.is_some()),
                ("version", table.version.is_some()),
                ("integrity", table.integrity.is_some()),
            ],
            "is for servers with a `command`: remove it",
            mistakes,
        );
        let parsed = url.parse();
        let url = parsed.map_err(|error| mistakes.add(&self.place.key("url"), format!("{error}")));
        let credentials = match &table.credentials {
            None => Some(Credentials::None),
            Some(table) => self.credentials(table, url.as_ref().ok(), mistakes),
        };
        let headers = self.headers(mistakes);
        let forward_headers = self.forward_headers(mistakes);
        let ca = match &table.ca {
            Some(ca) => Some(readable(ca, self.folder, &self.place.key("ca"), mistakes)?),
            None => None,
        };
        if let Some(header) = credentials.as_ref().and_then(Credentials::header)
            && headers.keys().any(|name| name.eq_ignore_ascii_case(header))
        {
            let problem = format!("`{header}` is set by `credentials` already: remove one of them");
            mistakes.add(&self.place.key("headers"), problem);
        }
        let allow_private = table.allow_private.unwrap_or(false);
        let (url, credentials) = (url.ok()?, credentials?);
        Some(UrlSettings { url, credentials, headers, forward_headers, ca, allow_private })
    }

    fn forward_headers(&self, mistakes: &mut Mistakes<'_>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (index, name) in self.table.forward_headers.iter().enumerate() {
            if is_free_header(name) {
                names.insert(name.to_ascii_lowercase());
            } else {
                mistakes.add(
                    &self.place.key("forward_headers").index(index),
                    format!("`{name}` cannot be forwarded: the gateway writes it, or it is not a header's name"),
                );
            }
        }
        names
    }

    fn variables(&self, mistakes: &mut Mistakes<'_>) -> BTreeMap<String, SecretName> {
        let mut variables = BTreeMap::new();
        for (name, secret) in &self.table.env {
            let place = self.place.key("env").key(name);
            if !is_variable(name) {
                let problem = format!("`{name}` is not a variable's name that can be set here");
                mistakes.add(&place, problem);
            }
            if let Some(secret) = self.kept(secret, &place, mistakes) {
                variables.insert(name.clone(), secret);
            }
        }
        variables
    }

    fn headers(&self, mistakes: &mut Mistakes<'_>) -> BTreeMap<String, SecretName> {
        let mut headers = BTreeMap::new();
        for (name, secret) in &self.table.headers {
            let place = self.place.key("headers").key(name);
            if !is_free_header(name) {
                let problem = format!("`{name}` is not a header's name that can be set here");
                mistakes.add(&place, problem);
            }
            if let Some(secret) = readable(secret, self.folder, &place, mistakes) {
                headers.insert(name.clone(), secret);
            }
        }
        headers
    }

    fn refuse_keys(&self, keys: &[(&str, bool)], why: &str, mistakes: &mut Mistakes<'_>) {
        for (key, _) in keys.iter().filter(|(_, is_set)| *is_set) {
            mistakes.add(&self.place.key(key), why);
        }
    }
}

/// Whether a header may be configured or forwarded: not one of the gateway's own, of MCP, or of
/// proxies.
pub(super) fn is_free_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_own = OWN_HEADERS.contains(&lower.as_str())
        || ["mcp-", "x-forwarded-", "holdpoint-", "sec-"]
            .iter()
            .any(|prefix| lower.starts_with(prefix));
    is_token(name) && !is_own
}

pub(super) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= 256 && text.bytes().all(is_plain)
}

fn is_variable(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    starts_well && name.bytes().all(is_plain)
}
