//! Hosts and the watcher: which servers start through the gate, and whether the gate that they name is there.

use super::Finding;
use super::codes::Code;
use super::home::Record;
use super::program::{on_path, shell_word};
use crate::arguments::Options;
use crate::commands::watch;
use crate::configuration::Looser;
use crate::failure::Failure;
use crate::report::count;
use crate::target::home_path;
use gate::posture::Posture;
use gate::server::ServerId;
use hosts::{Config, Server, State};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Longer lists of names end with how many more there are.
const MAX_NAMES: usize = 8;

pub(super) fn look(
    options: &Options,
    record: Option<&Record>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let mut has_servers = false;
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // A home that cannot be used has been told of: hosts are looked at all the same.
    let files = crate::hosting::files(options).or_else(|_| crate::hosting::files_of_hosts())?;
    for config in files {
        match config.servers() {
            Ok(servers) => {
                has_servers |= !servers.is_empty();
                for server in
                    servers.iter().filter(|server| matches!(server.state, State::Wired { .. }))
                {
                    let name = format!("{} of {}", server.name, config.host.title);
                    ids.entry(server.id.clone()).or_default().push(name);
                }
                look_at_file(&config, &servers, record, findings);
            }
            Err(error) => {
                has_servers = true;
                let (title, path) = (config.host.title, config.path.display());
                let sentence = format!("{title}: `{path}` {error}");
                findings.push(Finding::new(Code::HostUnreadable, sentence));
            }
        }
    }
    for (id, names) in ids.iter().filter(|(_, names)| names.len() > 1) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let sentence = format!("{} share the id `{id}`, and so their pins", list(&names));
        findings.push(Finding::new(Code::ServersShareId, sentence));
    }
    if !has_servers {
        let sentence = "no host with an MCP server was found";
        findings.push(Finding::new(Code::HostsNone, sentence).mended_by("holdpoint hosts"));
    }
    look_at_watcher(options, findings)
}

fn look_at_file(
    config: &Config,
    servers: &[Server],
    record: Option<&Record>,
    findings: &mut Vec<Finding>,
) {
    let (title, path) = (config.host.title, config.path.display());
    let named = |wanted: &dyn Fn(&Server) -> bool| -> Vec<&str> {
        let chosen = servers.iter().filter(|server| wanted(server));
        chosen.map(|server| server.name.as_str()).collect()
    };
    let guarded = named(&|server| matches!(server.state, State::Wired { .. }));
    let unwired = named(&|server| server.state == State::Unwired);
    if !unwired.is_empty() {
        let (verb, names) = (if unwired.len() == 1 { "is" } else { "are" }, list(&unwired));
        let sentence = format!("{title}: {names} {verb} not guarded (`{path}`)");
        let mend = format!("holdpoint wire --config {}", shell_word(&config.path));
        findings.push(Finding::new(Code::HostUnwired, sentence).mended_by(mend));
    } else if !guarded.is_empty() {
        let number = count(guarded.len(), "server", "servers");
        let sentence = format!("{title}: {number} guarded (`{path}`)");
        findings.push(Finding::new(Code::HostGuarded, sentence));
    }
    for server in servers {
        if let State::Unguarded(reason) = &server.state {
            let sentence = format!("{title}: `{}` {reason} (`{path}`)", server.name);
            findings.push(Finding::new(Code::ServerUnguardable, sentence));
        }
    }
    look_at_programs(config, servers, findings);
    look_at_arguments(config, servers, record, findings);
    let is_unseen = |server: &Server| {
        let is_wired = matches!(server.state, State::Wired { .. });
        is_wired && record.is_some_and(|record| !record.pinned.contains(&server.id))
    };
    let unseen = named(&is_unseen);
    if !unseen.is_empty() {
        let names = list(&unseen);
        let sentence =
            format!("{title}: {names} not started through the gate yet; restart {title}");
        findings.push(Finding::new(Code::ServerNotSeen, sentence));
    }
}

/// The program that an entry names: gone, ours, or another.
fn look_at_programs(config: &Config, servers: &[Server], findings: &mut Vec<Finding>) {
    let ours = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let programs: BTreeSet<&str> = servers
        .iter()
        .filter_map(|server| match &server.state {
            State::Wired { program, .. } => Some(program.as_str()),
            State::Unwired | State::Unguarded(_) => None,
        })
        .collect();
    for program in programs {
        let (title, path) = (config.host.title, config.path.display());
        let Some(found) = find(program) else {
            let sentence = format!("{title}: `{program}` is not there, `{path}` names it");
            let word = shell_word(&config.path);
            // `wire` mends a path that is wrong, and a name that no folder has. Where a host looks for a path that begins
            // in no folder is known to nobody but it.
            let is_mended = Path::new(program).is_absolute() || is_name(program);
            let mend = if is_mended {
                format!("holdpoint wire --config {word}")
            } else {
                let one =
                    |server: &Server| format!(" --server {}", shell_word(Path::new(&server.name)));
                let names: String =
                    servers.iter().filter(|server| names(server, program)).map(one).collect();
                format!(
                    "holdpoint unwire --config {word}{names} && holdpoint wire --config {word}{names}"
                )
            };
            findings.push(Finding::new(Code::CommandGone, sentence).mended_by(mend));
            continue;
        };
        if ours.is_some() && found.canonicalize().ok() != ours {
            let sentence = format!("{title}: `{path}` names another holdpoint, `{program}`");
            findings.push(Finding::new(Code::CommandOther, sentence));
        }
    }
}

fn names(server: &Server, wanted: &str) -> bool {
    matches!(&server.state, State::Wired { program, .. } if program == wanted)
}

fn find(program: &str) -> Option<PathBuf> {
    if is_name(program) {
        return on_path(program);
    }
    let path = Path::new(program);
    path.is_file().then(|| path.to_owned())
}

/// Whether a program is named without a folder.
fn is_name(program: &str) -> bool {
    Path::new(program).components().count() == 1
}

/// What the arguments of an entry say otherwise than the configuration. They go before it.
fn look_at_arguments(
    config: &Config,
    servers: &[Server],
    record: Option<&Record>,
    findings: &mut Vec<Finding>,
) {
    let Some(Record { configuration, home, .. }) = record else { return };
    let (title, path) = (config.host.title, config.path.display());
    for server in servers {
        let State::Wired { options, .. } = &server.state else { continue };
        let Ok(id) = server.id.parse::<ServerId>() else { continue };
        let name = format!("`{}` of {title}", server.name);
        for looser in configuration.loosened_by(&id, options) {
            let (code, sentence, option) = match &looser {
                Looser::Posture { entry: Posture::Monitor, .. } => {
                    let words = "changes are told, and nothing is held";
                    let sentence = format!("posture monitor for {name}, in its entry: {words}");
                    (Code::PostureMonitor, sentence, "--posture")
                }
                _ => {
                    let sentence = format!("{name} is guarded less by its own entry: {looser}");
                    (Code::EntryLooser, sentence, looser.option())
                }
            };
            let mend = format!("take `{option}` out of the entry in {path}");
            findings.push(Finding::new(code, sentence).mended_by(mend));
        }
        let named = options.iter().find(|(option, _)| option == "--home").map(|(_, home)| home);
        if let Some(other) = named.filter(|named| !is_same_folder(Path::new(named), home)) {
            let sentence = format!("{name} keeps its pins in another home, `{other}`");
            let mend = format!("holdpoint doctor --home {}", shell_word(Path::new(other)));
            findings.push(Finding::new(Code::EntryHome, sentence).mended_by(mend));
        }
    }
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    one == other
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn list(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    match names.len().checked_sub(MAX_NAMES) {
        Some(more @ 1..) => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}

fn look_at_watcher(options: &Options, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let is_running = watch::is_running(&home_path(options)?);
    let is_installed = watch::is_installed()?;
    findings.push(if is_running {
        Finding::new(Code::WatcherRuns, "the watcher runs")
    } else if is_installed {
        Finding::new(Code::WatcherStopped, "the watcher is installed and does not run")
            .mended_by("holdpoint watch --install")
    } else {
        Finding::new(
            Code::WatcherAbsent,
            "no watcher: servers added later are not guarded by themselves",
        )
        .mended_by("holdpoint watch --install")
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end_with_how_many_more_there_are() {
        let names: Vec<String> = (0..=MAX_NAMES).map(|number| format!("s{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(list(&names).ends_with("`s7` and 1 more"), "{}", list(&names));
        assert!(list(&names[..MAX_NAMES]).ends_with("`s7`"), "{}", list(&names[..MAX_NAMES]));
    }
}
