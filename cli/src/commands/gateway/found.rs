//! Turns the servers of this machine's hosts into tables of `gateway.toml` and policies. Secrets
//! are referred to by name, never copied.

use crate::commands::wiring::short;
use gate::server::ServerId;
use hosts::{Config, FoundLaunch, FoundReach};
use std::collections::BTreeSet;

/// A server found in hosts' files, with the id that it gets here.
#[derive(Debug)]
pub(super) struct FoundServer {
    pub(super) id: ServerId,
    launch: FoundLaunch,
    /// The hosts that have the server, and their files.
    places: Vec<String>,
}

/// The servers of these files. Servers that are started or reached in the same way are merged.
pub(super) fn servers(files: &[Config]) -> Vec<FoundServer> {
    let mut found: Vec<FoundServer> = Vec::new();
    for config in files {
        let place = format!("{} ({})", config.host.title, short(&config.path));
        for launch in config.launches().unwrap_or_default() {
            let same = found.iter_mut().find(|known| {
                known.launch.reach == launch.reach
                    && !matches!(launch.reach, FoundReach::Unclear(_))
            });
            match same {
                Some(known) if known.places.contains(&place) => {}
                Some(known) => known.places.push(place.clone()),
                None => {
                    let taken: BTreeSet<&ServerId> = found.iter().map(|known| &known.id).collect();
                    let Some(id) = free_id(&launch.name, &taken) else { continue };
                    found.push(FoundServer { id, launch, places: vec![place.clone()] });
                }
            }
        }
    }
    found
}

/// An id made from a name that no other server has.
fn free_id(name: &str, taken: &BTreeSet<&ServerId>) -> Option<ServerId> {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        let c = if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        if !(c == '-' && slug.ends_with('-')) {
            slug.push(c);
        }
    }
    let slug: String = slug.trim_matches(['-', '.']).chars().take(40).collect();
    let slug = if slug.is_empty() { "server".to_owned() } else { slug };
    let numbered = (2..1_000).map(|number| format!("{slug}-{number}"));
    let mut ids = std::iter::once(slug.clone()).chain(numbered);
    ids.find_map(|id| id.parse::<ServerId>().ok().filter(|id| !taken.contains(id)))
}

impl FoundServer {
    /// The server's table, with notes on what a person has to decide.
    pub(super) fn table(&self) -> String {
        let mut table = Table::default();
        table.note(&format!(
            "`{}` of {}.",
            crate::screen::readable(&self.launch.name).replace('\n', " "),
            self.places.join(" and ")
        ));
        let left = self.left_to_fill_in();
        table.is_off = left.is_some();
        if let Some(left) = &left {
            table.note(left);
        }
        table.set("[[server]]");
        table.set(&format!("id = {}", quoted(self.id.as_str())));
        match &self.launch.reach {
            FoundReach::Command { words, variables } => {
                table.note("Who makes this program? `internal`: you do. `verified`: you checked who does. A program of");
                table.note("trust `unknown` or `community` runs in a sandbox, which `sandbox` opens as far as it needs.");
                table.set("trust = \"unknown\"");
                let words: Vec<String> =
                    words.iter().map(|word| quoted(word.as_deref().unwrap_or("FILL-IN"))).collect();
                table.set(&format!("command = [{}]", words.join(", ")));
                if !variables.is_empty() {
                    let pairs = variables.iter().map(|name| (name, self.variable(name)));
                    let pairs =
                        pairs.map(|(name, variable)| format!("{} = \"env:{variable}\"", key(name)));
                    table.set(&format!("env = {{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
                }
            }
            FoundReach::Url { url, headers, .. } => {
                table.note(
                    "Who runs this server? `internal`: you do. `verified`: you checked who does.",
                );
                table.set("trust = \"unknown\"");
                table.set(&format!("url = {}", quoted(url)));
                let (own, others): (Vec<&String>, Vec<&String>) =
                    headers.iter().partition(|name| name.eq_ignore_ascii_case("authorization"));
                if !own.is_empty() {
                    table.note(
                        "The variable has the whole value of the header, such as `Bearer …`.",
                    );
                    let variable = self.variable("AUTHORIZATION");
                    table.set(&format!(
                        "credentials = {{ mode = \"vault\", secret = \"env:{variable}\", scheme = \"\" }}"
                    ));
                }
                if !others.is_empty() {
                    let pairs = others.iter().map(|name| (name, self.variable(name)));
                    let pairs =
                        pairs.map(|(name, variable)| format!("{} = \"env:{variable}\"", key(name)));
                    table.set(&format!("headers = {{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
                }
                if is_near(url) {
                    table.set("allow_private = true");
                }
            }
            FoundReach::Unclear(_) => {}
        }
        table.text
    }

    /// Why the table is disabled as written; `None` if it is complete.
    fn left_to_fill_in(&self) -> Option<String> {
        match &self.launch.reach {
            FoundReach::Unclear(reason) => {
                let why = reason.to_string();
                let why = why.strip_suffix(", not guarded").unwrap_or(&why);
                Some(format!("Left to you: this entry {why}."))
            }
            FoundReach::Command { words, .. } if words.iter().any(Option::is_none) => Some(
                "Left to you: an argument may be a secret, so that it is FILL-IN here. Give it as a variable.".to_owned(),
            ),
            FoundReach::Url { is_cut: true, .. } => Some(
                "Left to you: the address has a key in it, which is left out here. Give it as a header.".to_owned(),
            ),
            FoundReach::Command { .. } | FoundReach::Url { .. } if self.launch.has_variables => Some(
                "Left to you: the host replaces variables in this entry, and a gateway does not.".to_owned(),
            ),
            FoundReach::Command { .. } | FoundReach::Url { .. } => None,
        }
    }

    /// Whether the table takes effect as written.
    pub(super) fn is_complete(&self) -> bool {
        self.left_to_fill_in().is_none()
    }

    /// The gateway's environment variables that must hold the server's secrets.
    pub(super) fn variables(&self) -> Vec<String> {
        match &self.launch.reach {
            FoundReach::Command { variables, .. } => {
                variables.iter().map(|name| self.variable(name)).collect()
            }
            FoundReach::Url { headers, .. } => {
                headers.iter().map(|name| self.variable(name)).collect()
            }
            FoundReach::Unclear(_) => Vec::new(),
        }
    }

    /// The gateway's variable for one of the server's: two servers may use one name for different
    /// values.
    fn variable(&self, name: &str) -> String {
        let plain = |text: &str| -> String {
            text.chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                .collect()
        };
        let variable = format!("{}_{}", plain(self.id.as_str()), plain(name));
        match variable.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("_{variable}"),
            false => variable,
        }
    }

    /// A policy that lets a group use all of the server.
    pub(super) fn policy(&self) -> String {
        let id = &self.id;
        format!(
            "\n// Members of the group `{id}-users` may use everything of `{id}`:  holdpoint key create --sub NAME --group {id}-users\n@id(\"{id}-users\")\npermit (\n  principal in Group::\"{id}-users\",\n  action in Action::\"call\",\n  resource in Server::\"{id}\"\n);\n\n@id(\"{id}-users-parts\")\npermit (\n  principal in Group::\"{id}-users\",\n  action in [Action::\"get\", Action::\"read\", Action::\"use\"],\n  resource in Server::\"{id}\"\n);\n"
        )
    }
}

/// The lines of a table. Lines of a disabled table begin with `#:`, as elsewhere in the file.
#[derive(Debug, Default)]
struct Table {
    text: String,
    is_off: bool,
}

impl Table {
    fn note(&mut self, sentence: &str) {
        self.text.push_str(&format!("# {sentence}\n"));
    }

    fn set(&mut self, line: &str) {
        self.text.push_str(if self.is_off { "#: " } else { "" });
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// Whether an address is on this machine, which the gateway only connects to if it is told to.
fn is_near(url: &str) -> bool {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    host == "localhost" || host.starts_with("127.") || url.contains("://[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::gateway::GatewaySettings;
    use std::path::Path;

    fn found(json: &str) -> Vec<FoundServer> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        std::fs::write(&path, json).unwrap();
        let surroundings = hosts::Surroundings {
            system: hosts::System::Linux,
            home: folder.path().to_owned(),
            variables: Default::default(),
            projects: Vec::new(),
        };
        let host = hosts::table::host("cursor");
        servers(&[Config::named(&path, host, &surroundings).unwrap()])
    }

    #[test]
    fn tables_are_accepted_once_a_person_changed_the_name_of_an_odd_variable() {
        let found = found(
            r#"{"mcpServers": {
                "My Files": {"command": "npx", "args": ["-y", "server", "/srv"], "env": {"API_TOKEN": "s3cr3t-1", "odd.name": "s3cr3t-2"}},
                "issues": {"url": "https://issues.example.com/mcp", "headers": {"Authorization": "Bearer s3cr3t-3", "X-Team": "s3cr3t-4"}},
                "near": {"url": "http://127.0.0.1:9/mcp"},
                "holdpoint": {"url": "https://gateway.example.com/mcp"}
            }}"#,
        );
        let ids: Vec<&str> = found.iter().map(|server| server.id.as_str()).collect();
        assert_eq!(ids, ["my-files", "issues", "near"]);
        let tables: String = found.iter().map(|server| server.table() + "\n").collect();
        assert!(!tables.contains("s3cr3t"), "{tables}");
        assert_eq!(found[0].variables(), ["MY_FILES_API_TOKEN", "MY_FILES_ODD_NAME"]);
        let changed = tables.replace("\"odd.name\" =", "ODD =");
        let settings = GatewaySettings::read(&changed, Path::new("/etc")).unwrap();
        assert_eq!(settings.servers.len(), 3, "{tables}");
        // Without the renaming, the error says which name to change.
        let mistakes = GatewaySettings::read(&tables, Path::new("/etc")).unwrap_err();
        assert!(
            mistakes.iter().any(|mistake| mistake.to_string().contains("odd.name")),
            "{mistakes:?}"
        );
    }

    #[test]
    fn what_may_be_a_secret_is_left_to_a_person() {
        let found = found(
            r#"{"mcpServers": {
                "keyed": {"command": "x", "args": ["--api-key", "s3cr3t"]},
                "query": {"url": "https://q.example.com/mcp?key=s3cr3t"},
                "varied": {"command": "x", "args": ["${workspaceFolder}"]},
                "old": {"url": "https://o.example.com/sse", "type": "sse"}
            }}"#,
        );
        let tables: String = found.iter().map(|server| server.table() + "\n").collect();
        assert_eq!(tables.matches("Left to you").count(), 4, "{tables}");
        assert!(!tables.contains("s3cr3t"), "{tables}");
        let settings = GatewaySettings::read(&tables, Path::new("/etc")).unwrap();
        assert!(settings.servers.is_empty());
    }
}
