//! Checks hosts and the watcher: which servers start through the gate, and whether the gate program
//! that they name exists.

use super::Finding;
use super::codes::Code;
use super::home::Record;
use super::program::exposed;
use crate::arguments::Options;
use crate::commands::watch;
use crate::configuration::Looser;
use crate::failure::Failure;
use crate::gate_program::{Named, find, is_name, is_this_program, named};
use crate::report::count;
use crate::screen;
use crate::settled_program;
use crate::target::home_path;
use gate::posture::Posture;
use gate::server::ServerId;
use gate::shell;
use hosts::{Config, Reason, Server, WiringState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The most names in a list; the rest is counted.
const MAX_NAMES: usize = 8;

pub(super) fn look(
    options: &Options,
    record: Option<&Record>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let mut has_servers = false;
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // An unusable home is already reported. Check the hosts anyway.
    let files = crate::hosting::files(options).or_else(|_| crate::hosting::files_of_hosts())?;
    for config in files {
        match config.servers() {
            Ok(servers) => {
                has_servers |= !servers.is_empty();
                for server in servers
                    .iter()
                    .filter(|server| matches!(server.state, WiringState::Wired { .. }))
                {
                    let name = format!("{} of {}", screen::name(&server.name), config.host.title);
                    ids.entry(server.id.clone()).or_default().push(name);
                }
                let from = findings.len();
                look_at_file(&config, &servers, record, findings);
                let own = findings.iter_mut().skip(from);
                own.for_each(|finding| finding.host = Some(config.host.title));
            }
            Err(error) => {
                has_servers = true;
                let (title, path) = (config.host.title, config.path.display());
                let sentence = format!("{title}: `{path}` {error}");
                let finding = Finding::new(Code::HostUnreadable, sentence);
                findings.push(Finding { host: Some(title), ..finding });
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
        findings.push(Finding::new(Code::HostsNone, sentence).fixed_by("holdpoint hosts"));
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
    let guarded = named(&|server| matches!(server.state, WiringState::Wired { .. }));
    let unwired = named(&|server| server.state == WiringState::Unwired);
    let has_gateway =
        servers.iter().any(|server| matches!(server.state, WiringState::Gateway { .. }));
    if !unwired.is_empty() {
        let (verb, names) = (if unwired.len() == 1 { "is" } else { "are" }, list(&unwired));
        let sentence = format!("{title}: {names} {verb} not guarded (`{path}`)");
        let fix = format!("holdpoint wire --config {}", shell::path(&config.path));
        findings.push(Finding::new(Code::HostUnwired, sentence).fixed_by(fix));
    } else if guarded.is_empty() && has_gateway {
        let sentence = format!("{title}: reaches servers through a gateway (`{path}`)");
        findings.push(Finding::new(Code::HostGuarded, sentence));
    } else if !guarded.is_empty() {
        let number = count(guarded.len(), "server", "servers");
        let sentence = format!("{title}: {number} guarded (`{path}`)");
        findings.push(Finding::new(Code::HostGuarded, sentence));
    }
    for server in servers {
        let WiringState::Unguarded(reason) = &server.state else { continue };
        let name = screen::name(&server.name);
        findings.push(if server.names_gate {
            let sentence = format!(
                "{title}: `{name}` names holdpoint, but {reason}: its host may start or reach the server without the gate (`{path}`)"
            );
            let fix = format!("leave one command and no address in the entry in {path}");
            Finding::new(Code::EntryBypassed, sentence).fixed_by(fix)
        } else {
            let sentence = format!("{title}: `{name}` {reason} (`{path}`)");
            let finding = Finding::new(Code::ServerUnguardable, sentence);
            match reason {
                Reason::SignIn => finding.fixed_by(format!(
                    "holdpoint wire --sign-in --server {} --config {}",
                    shell::word(&server.id),
                    shell::path(&config.path)
                )),
                _ => finding,
            }
        });
    }
    look_at_programs(config, servers, findings);
    look_at_arguments(config, servers, record, findings);
    let is_unseen = |server: &Server| {
        let is_wired = matches!(server.state, WiringState::Wired { .. });
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

/// Checks the program that each entry names: missing, this program, or another one with the same
/// name.
fn look_at_programs(config: &Config, servers: &[Server], findings: &mut Vec<Finding>) {
    look_at_fetched(config, servers, findings);
    let programs: BTreeSet<Named<'_>> = servers.iter().filter_map(named).collect();
    for (program, folders) in programs {
        let (title, path) = (config.host.title, config.path.display());
        let word = shell::path(&config.path);
        let again = || {
            let one = |server: &Server| format!(" --server {}", shell::word(&server.name));
            let is_meant = |server: &&Server| named(server) == Some((program, folders));
            let names: String = servers.iter().filter(is_meant).map(one).collect();
            format!(
                "holdpoint unwire --config {word}{names} && holdpoint wire --config {word}{names}"
            )
        };
        let shown = screen::name(program);
        let Some(found) = find(program, folders) else {
            let sentence = format!("{title}: `{shown}` is not there, `{path}` names it");
            // `wire` corrects a wrong absolute path, and a name that is not on `PATH`. Only the
            // host knows what a relative path is relative to.
            let is_corrected = Path::new(program).is_absolute() || is_name(program);
            let fix =
                if is_corrected { format!("holdpoint wire --config {word}") } else { again() };
            findings.push(Finding::new(Code::CommandGone, sentence).fixed_by(fix));
            continue;
        };
        if settled_program::is_in_package_folder(&found) {
            let sentence = format!(
                "{title}: `{path}` starts `{}`, in a folder of a package manager: once that is emptied, its servers do not start",
                found.display()
            );
            findings.push(Finding::new(Code::CommandCached, sentence).fixed_by(again()));
        } else if !is_this_program(&found) {
            let sentence = format!(
                "{title}: `{path}` starts `{}`, which is called holdpoint and is not this program: its servers may not be guarded at all",
                found.display()
            );
            findings.push(Finding::new(Code::CommandOther, sentence).fixed_by(again()));
        } else if std::env::current_exe().ok().as_ref() != Some(&found) {
            findings.extend(exposed(&found));
        }
    }
}

/// Reports entries that start the gate through a package manager each time.
fn look_at_fetched(config: &Config, servers: &[Server], findings: &mut Vec<Finding>) {
    let (title, path, word) = (config.host.title, config.path.display(), shell::path(&config.path));
    for server in servers {
        let WiringState::Wired { program, is_fetched: true, .. } = &server.state else { continue };
        let (name, program) = (screen::name(&server.name), screen::name(program));
        let sentence = format!(
            "{title}: `{name}` starts its gate with `{program}`, which may fetch another version each time (`{path}`)"
        );
        let one = format!("--config {word} --server {}", shell::word(&server.name));
        let fix = format!("holdpoint unwire {one} && holdpoint wire {one}");
        findings.push(Finding::new(Code::CommandFetched, sentence).fixed_by(fix));
    }
}

/// Reports what an entry's arguments and variables change about its gate. Arguments take precedence
/// over the configuration.
fn look_at_arguments(
    config: &Config,
    servers: &[Server],
    record: Option<&Record>,
    findings: &mut Vec<Finding>,
) {
    let Some(Record { configuration, home, .. }) = record else { return };
    let (title, path) = (config.host.title, config.path.display());
    for server in servers {
        let WiringState::Wired { options, .. } = &server.state else { continue };
        let Ok(id) = server.id.parse::<ServerId>() else { continue };
        let name = format!("`{}` of {title}", screen::name(&server.name));
        let variables = gate_variables(&name, server, config, findings);
        for looser in configuration.loosened_by(&id, options) {
            let (code, sentence, option) = match &looser {
                Looser::Posture { entry: Posture::Monitor, .. } => {
                    let words = "changes are reported, and nothing is held";
                    let sentence = format!("posture monitor for {name}, in its entry: {words}");
                    (Code::PostureMonitor, sentence, "--posture")
                }
                _ => {
                    let sentence = format!("{name} is guarded less by its own entry: {looser}");
                    (Code::EntryLooser, sentence, looser.option())
                }
            };
            let fix = format!("take `{option}` out of the entry in {path}");
            findings.push(Finding::new(code, sentence).fixed_by(fix));
        }
        look_at_home(&name, (options, &variables), (home, &config.path), findings);
        for (variable, effect) in
            variables.iter().filter_map(|(name, _)| Some((name, effect(name)?)))
        {
            let sentence =
                format!("{name} sets `{}` for its gate, which {effect}", screen::name(variable));
            let fix = format!("take `{}` out of the entry in {path}", screen::name(variable));
            findings.push(Finding::new(Code::EntryVariable, sentence).fixed_by(fix));
        }
    }
}

/// The variables that affect the gate of an entry: those of the entry, and those in its `envFile`.
fn gate_variables(
    name: &str,
    server: &Server,
    config: &Config,
    findings: &mut Vec<Finding>,
) -> Vec<(String, String)> {
    let WiringState::Wired { variables, env_file, program, .. } = &server.state else {
        return Vec::new();
    };
    let Some(file) = env_file else { return variables.clone() };
    let Some(more) = super::env_file::own_variables(file, config) else {
        let sentence = format!(
            "{name} gets more variables from `{}`, which cannot be checked here",
            screen::name(file)
        );
        findings.push(Finding::new(Code::EntryEnvFile, sentence));
        return variables.clone();
    };
    if is_name(program) && more.iter().any(|(name, _)| is_same_name(name, "PATH")) {
        let sentence = format!(
            "{name} sets `PATH` in `{}`, which decides what program its gate is",
            screen::name(file)
        );
        let fix = format!("take `PATH` out of {}", screen::name(file));
        findings.push(Finding::new(Code::EntryVariable, sentence).fixed_by(fix));
    }
    variables.iter().cloned().chain(more).collect()
}

type Pairs = [(String, String)];

/// Reports an entry's gate that uses another home. Its options take precedence over its variables.
fn look_at_home(
    name: &str,
    (options, variables): (&Pairs, &Pairs),
    (home, file): (&Path, &Path),
    findings: &mut Vec<Finding>,
) {
    // If a variable is set twice, hosts differ in which value they use.
    let value = |pairs: &Pairs, wanted: &str| {
        let is_wanted =
            |(name, value): &&(String, String)| is_same_name(name, wanted) && !value.is_empty();
        let mut set = pairs.iter().filter(is_wanted).map(|(_, value)| PathBuf::from(value));
        let first = set.next();
        set.find(|other| !is_same_folder(other, home)).or(first)
    };
    let of_user = || value(variables, "HOME").or_else(|| value(variables, "USERPROFILE"));
    let (chosen, way) = match value(options, "--home") {
        Some(chosen) => (chosen, "`--home`"),
        None => match value(variables, "HOLDPOINT_HOME") {
            Some(chosen) => (chosen, "`HOLDPOINT_HOME` in its `env`"),
            None => match of_user() {
                Some(user) => (user.join(".holdpoint"), "`HOME` in its `env`"),
                None => return,
            },
        },
    };
    if is_same_folder(&chosen, home) {
        return;
    }
    let sentence = format!(
        "{name} keeps its pins in another home, `{}`, by {way}: this report does not cover it",
        screen::name(&chosen.display().to_string())
    );
    let fix = format!(
        "take {way} out of the entry in {}, or look at that home: holdpoint doctor --home {}",
        file.display(),
        shell::path(&chosen)
    );
    findings.push(Finding::new(Code::EntryHome, sentence).fixed_by(fix));
}

/// Compares names of variables; on Windows they are case-insensitive.
fn is_same_name(one: &str, other: &str) -> bool {
    one == other || cfg!(windows) && one.eq_ignore_ascii_case(other)
}

/// What a variable of an entry changes about the gate itself. The home and `PATH` have findings of
/// their own.
fn effect(variable: &str) -> Option<&'static str> {
    match variable {
        "HOME" | "USERPROFILE" | "HOLDPOINT_HOME" | "PATH" => None,
        "USER" | "LOGNAME" | "USERNAME" => Some("changes the user that its receipts name"),
        "LD_PRELOAD"
        | "LD_AUDIT"
        | "LD_LIBRARY_PATH"
        | "DYLD_INSERT_LIBRARIES"
        | "DYLD_LIBRARY_PATH"
        | "DYLD_FRAMEWORK_PATH" => Some("loads other code into it"),
        _ => Some("may change how it works"),
    }
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    one == other
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn list(names: &[&str]) -> String {
    let shown = |name: &&str| format!("`{}`", screen::name(name));
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(shown).collect();
    match names.len().checked_sub(MAX_NAMES) {
        Some(more @ 1..) => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}

fn look_at_watcher(options: &Options, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let is_running = watch::is_running(&home_path(options)?);
    let manager = watch::registration::Manager::running();
    findings.push(match (is_running, watch::is_installed()?, manager) {
        (true, ..) => Finding::new(Code::WatcherRuns, "the watcher runs"),
        (false, true, Some(_)) => {
            Finding::new(Code::WatcherStopped, "the watcher is installed and does not run")
                .fixed_by("holdpoint watch --install")
        }
        (false, true, None) => {
            let sentence = "the watcher is installed, but nothing starts it: systemd does not run here";
            Finding::new(Code::WatcherStopped, sentence).fixed_by("holdpoint watch --uninstall")
        }
        (false, false, Some(_)) => Finding::new(
            Code::WatcherAbsent,
            "no watcher: servers added later are not guarded automatically",
        )
        .fixed_by("holdpoint watch --install"),
        (false, false, None) => Finding::new(
            Code::WatcherAbsent,
            "no watcher, and no service manager to start one: type `holdpoint wire` after you add a server to a host",
        ),
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
