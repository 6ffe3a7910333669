//! `holdpoint status --short`: one line for a prompt or a status bar. Reads the result of the last
//! judgement from the store; judges, starts and contacts nothing, and creates no home.

use crate::arguments::{Options, StatusCommand};
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::screen;
use crate::target::home_path;
use gate::server::{ServerId, ServerStatus};
use serde::Serialize;
use store::{Home, ServerRecord};

#[derive(Debug, Default, Serialize, PartialEq, Eq)]
struct ShortDocument {
    incident: bool,
    /// Servers with something held, including first approvals.
    held: Vec<ServerId>,
    quarantined: Vec<ServerId>,
}

impl ShortDocument {
    fn add(&mut self, server: ServerRecord) {
        // A record that cannot be trusted holds the whole server.
        if server.lost.is_some() {
            return self.held.push(server.id);
        }
        match server.status {
            ServerStatus::Changed | ServerStatus::Pending => self.held.push(server.id),
            ServerStatus::Quarantined => self.quarantined.push(server.id),
            ServerStatus::Unbaselined | ServerStatus::Verified => {}
        }
    }

    /// The line; `None` if there is nothing to report.
    fn line(&self) -> Option<String> {
        let count = |servers: &[ServerId], word: &str| {
            (!servers.is_empty()).then(|| format!("{} {word}", servers.len()))
        };
        let incident = self.incident.then(|| "incident".to_owned());
        let held = count(&self.held, "held");
        let quarantined = count(&self.quarantined, "quarantined");
        let parts: Vec<String> = incident.into_iter().chain(held).chain(quarantined).collect();
        (!parts.is_empty()).then(|| format!("holdpoint: {}", parts.join(", ")))
    }
}

pub(super) fn run(command: &StatusCommand, options: &Options) -> Result<Exit, Failure> {
    let document = read(command, options)?;
    let line = document.line();
    if options.json {
        screen::print_json(&document)?;
    } else if let Some(line) = &line {
        screen::say(line);
    }
    Ok(if line.is_some() { Exit::Held } else { Exit::Fine })
}

fn read(command: &StatusCommand, options: &Options) -> Result<ShortDocument, Failure> {
    let path = home_path(options)?;
    let mut document = ShortDocument::default();
    // Prompts are also drawn before anything was pinned.
    if !path.exists() {
        return Ok(document);
    }
    let home = Home::open(&path)?;
    let location = Configuration::read(&home.config_path())?.store()?;
    let is_local = matches!(location, store::Location::Sqlite);
    if is_local && !home.state_path().exists() {
        return Ok(document);
    }
    let store = store::open(&home, &location)?;
    document.incident = store.incident()?.incident.is_some();
    let is_asked = |server: &ServerRecord| command.id.as_ref().is_none_or(|id| *id == server.id);
    store.servers()?.into_iter().filter(is_asked).for_each(|server| document.add(server));
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts_what_a_person_has_to_look_at_and_is_empty_otherwise() {
        let ids = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let line = |incident: bool, held: &[&str], quarantined: &[&str]| {
            ShortDocument { incident, held: ids(held), quarantined: ids(quarantined) }.line()
        };
        assert_eq!(line(false, &[], &[]), None);
        assert_eq!(line(false, &["a", "b"], &[]).unwrap(), "holdpoint: 2 held");
        assert_eq!(
            line(true, &["a"], &["b"]).unwrap(),
            "holdpoint: incident, 1 held, 1 quarantined"
        );
    }
}
