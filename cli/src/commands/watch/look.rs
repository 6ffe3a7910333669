//! One check of the hosts' files: wires or reports the servers that were added since the last
//! check.
//!
//! Changes are found by polling names and times every few seconds: hosts replace their files,
//! create folders after the watcher has started, and may keep them on file systems without change
//! notifications.

use super::memory::{Known, Memory};
use hosts::{Aim, Choice, Config, Server, Surroundings, WiringState, Workshop};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

/// A file can change without a new time or size, so after this many checks all files are read.
pub(crate) const READ_ALL_EVERY: u64 = 12;

/// What to do about a server that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Wire it: the user agreed in advance.
    Given,
    /// Report it.
    Asked,
}

/// An event found by a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) host: &'static str,
    pub(crate) host_title: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) server: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A server was added and is now guarded.
    Wired,
    /// A server was added and is not guarded.
    Added,
    /// A file could not be read or changed.
    Failed,
}

impl EventKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            EventKind::Wired => "wired",
            EventKind::Added => "added",
            EventKind::Failed => "failed",
        }
    }
}

/// The metadata that shows whether a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    modified: Option<SystemTime>,
    bytes: u64,
    file: u64,
}

#[derive(Debug)]
pub(crate) struct Lookout {
    surroundings: Surroundings,
    workshop: Workshop,
    consent: Consent,
    memory: Memory,
    marks: BTreeMap<PathBuf, Mark>,
    /// Each problem is reported once, until the file can be read again.
    problems: BTreeMap<PathBuf, String>,
    looks: u64,
}

impl Lookout {
    pub(crate) fn new(
        surroundings: Surroundings,
        workshop: Workshop,
        consent: Consent,
        memory: Memory,
    ) -> Lookout {
        let (marks, problems) = (BTreeMap::new(), BTreeMap::new());
        Lookout { surroundings, workshop, consent, memory, marks, problems, looks: 0 }
    }

    /// Checks every file that was written since the last check.
    pub(crate) fn look(&mut self) -> Result<Vec<Event>, crate::failure::Failure> {
        if self.looks.is_multiple_of(READ_ALL_EVERY) {
            self.marks.clear();
        }
        self.looks += 1;
        let mut events = Vec::new();
        for config in hosts::locate(&self.surroundings, &[]) {
            let mark = mark_of(&config);
            if mark.is_some() && self.marks.get(&config.path).copied() == mark {
                continue;
            }
            let (found, is_settled) = self.look_at(&config);
            events.extend(found);
            // Our own write changes the mark. A write that failed is tried again at the next check.
            match mark_of(&config) {
                Some(mark) if is_settled => self.marks.insert(config.path.clone(), mark),
                _ => self.marks.remove(&config.path),
            };
        }
        self.memory.keep()?;
        Ok(events)
    }

    fn look_at(&mut self, config: &Config) -> (Vec<Event>, bool) {
        // A program may truncate a file before writing it: its servers are not gone.
        if mark_of(config).is_none_or(|mark| mark.bytes == 0) {
            self.memory.could_not_read(&config.path);
            return (Vec::new(), true);
        }
        let config = &self.keep_apart(config);
        let servers = match config.servers() {
            Ok(servers) => servers,
            Err(error) => {
                self.memory.could_not_read(&config.path);
                return (self.problem(config, error.to_string()), true);
            }
        };
        let added = self.added(config, &servers);
        let can_wire = added.iter().any(|server| server.state == WiringState::Unwired);
        if self.consent == Consent::Asked || !can_wire {
            self.problems.remove(&config.path);
            let told = added.iter().map(|server| event(config, EventKind::Added, Some(server)));
            return (told.collect(), true);
        }
        match self.wire(config, &added) {
            Ok(wired) => {
                self.problems.remove(&config.path);
                let told = added.iter().map(|server| {
                    let is_wired = wired.contains(&known(config, server));
                    let kind = if is_wired { EventKind::Wired } else { EventKind::Added };
                    event(config, kind, Some(server))
                });
                (told.collect(), true)
            }
            Err(error) => {
                added.iter().for_each(|server| self.memory.forget(&known(config, server)));
                (self.problem(config, error.to_string()), false)
            }
        }
    }

    /// The servers that were added since the last check, and those that a host wrote back as they
    /// were before wiring. A server unwired by the user is also removed from the journal, so it is
    /// not wired again.
    fn added<'s>(&mut self, config: &Config, servers: &'s [Server]) -> Vec<&'s Server> {
        let all = servers.iter().map(|server| known(config, server)).collect();
        let new = self.memory.take(&config.path, all);
        let remembered = self.workshop.remembered(config).unwrap_or_default();
        let mut added = Vec::new();
        for server in servers {
            let known = known(config, server);
            let is_added = match server.state {
                WiringState::Gateway { .. } => false,
                WiringState::Wired { .. } => {
                    self.memory.is_wired(&known);
                    false
                }
                WiringState::Unwired if remembered.contains(&server.id) => {
                    self.memory.returned(&known) || new.contains(&known)
                }
                WiringState::Unwired | WiringState::Unguarded(_) => new.contains(&known),
            };
            if is_added {
                added.push(server);
            }
        }
        added
    }

    /// The same file, with ids that are distinct from those in other files, as `wire` assigns them.
    fn keep_apart(&self, config: &Config) -> Config {
        let others = hosts::locate(&self.surroundings, &[]);
        hosts::keep_apart(vec![config.clone()], &others).pop().unwrap_or_else(|| config.clone())
    }

    /// Wires exactly these servers. Returns those that were wired.
    fn wire(
        &self,
        config: &Config,
        added: &[&Server],
    ) -> Result<BTreeSet<Known>, hosts::WireError> {
        let servers = added.iter().map(|server| server.id.clone()).collect();
        let choice = Choice { servers, ..Choice::default() };
        let plan = self.workshop.plan(config, Aim::Wire, &choice)?;
        if plan.is_empty() {
            return Ok(BTreeSet::new());
        }
        let done = self.workshop.apply(plan)?;
        Ok(done.changed.iter().map(|server| known(config, server)).collect())
    }

    fn problem(&mut self, config: &Config, problem: String) -> Vec<Event> {
        if self.problems.get(&config.path) == Some(&problem) {
            return Vec::new();
        }
        self.problems.insert(config.path.clone(), problem.clone());
        vec![Event { problem: Some(problem), ..event(config, EventKind::Failed, None) }]
    }
}

fn known(config: &Config, server: &Server) -> Known {
    Known { path: config.path.clone(), project: server.project.clone(), name: server.name.clone() }
}

fn event(config: &Config, kind: EventKind, server: Option<&Server>) -> Event {
    Event {
        kind,
        host: config.host.id,
        host_title: config.host.title,
        path: config.path.clone(),
        server: server.map(|server| server.name.clone()),
        id: server.map(|server| server.id.clone()),
        problem: match server.map(|server| &server.state) {
            Some(WiringState::Unguarded(reason)) => Some(reason.to_string()),
            _ => None,
        },
    }
}

fn mark_of(config: &Config) -> Option<Mark> {
    let found = std::fs::metadata(&config.path).ok()?;
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let file = 0;
    Some(Mark { modified: found.modified().ok(), bytes: found.len(), file })
}
