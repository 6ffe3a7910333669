//! `holdpoint watch`: guards or reports servers that are later added to a host. Runs as a service
//! of the user, never as root.

mod look;
mod memory;
mod notice;
pub(crate) mod registration;
mod service;

use crate::arguments::Options;
use crate::arguments::watch::WatchCommand;
use crate::commands::wiring;
use crate::desktop;
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, GREEN, YELLOW, styled};
use crate::settled_program::SettledProgram;
use crate::target::home_path;
use hosts::Surroundings;
use look::{Consent, Event, EventKind, Lookout};
use memory::Memory;
use registration::{Manager, Order, Registration};
use serde::Serialize;
use service::Service;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;
use store::Home;

/// The lock that the running watcher holds.
const LOCK: &str = "watch.lock";
/// An override for containers in which root is the only user.
const ALLOW_ROOT: &str = "HOLDPOINT_ALLOW_ROOT";

pub(crate) fn run(command: &WatchCommand, options: &Options) -> Result<Exit, Failure> {
    if command.uninstall {
        return uninstall(options);
    }
    if command.status {
        return status(options);
    }
    refuse_root()?;
    if command.install { install(command, options) } else { watch(command, options) }
}

/// The watcher changes files on its own: with root's rights that could affect more than one user's
/// hosts.
fn refuse_root() -> Result<(), Failure> {
    #[cfg(unix)]
    let is_root = rustix::process::getuid().is_root();
    #[cfg(not(unix))]
    let is_root = false;
    if is_root && std::env::var_os(ALLOW_ROOT).is_none_or(|value| value != "1") {
        return Err(Failure::usage(format!(
            "the watcher does not run as root: start it as the user whose hosts it is for (in a container that has only root, set `{ALLOW_ROOT}=1`)"
        )));
    }
    Ok(())
}

fn watch(command: &WatchCommand, options: &Options) -> Result<Exit, Failure> {
    let home = Home::open(&home_path(options)?)?;
    let _lock = lock(home.path())?;
    let surroundings = crate::hosting::surroundings_of_user()?;
    let settled = SettledProgram::find()?;
    if command.auto {
        settled.place(options)?;
    }
    let workshop = wiring::workshop(options, Some(&settled.path))?;
    let consent = if command.auto { Consent::Given } else { Consent::Asked };
    let memory = Memory::read(home.path());
    let mut lookout = Lookout::new(surroundings, workshop, consent, memory);
    if !command.once && !options.quiet && !options.json {
        let what = if command.auto { "guarding" } else { "reporting" };
        screen::remark(styled(DIM, format!("{what} servers that are added from now on")));
    }
    loop {
        for event in lookout.look()? {
            print_result(&event, options)?;
        }
        if command.once {
            return Ok(Exit::Fine);
        }
        std::thread::sleep(Duration::from_secs(command.every));
    }
}

/// Ensures one watcher per home: two would both change the same file.
fn lock(home: &Path) -> Result<File, Failure> {
    let path = home.join(LOCK);
    let mut opening = File::options();
    opening.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut opening, 0o600);
    let file = opening.open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::usage(
            "a watcher is already running: `holdpoint watch --status` shows more".to_owned(),
        )),
        Err(TryLockError::Error(error)) => {
            Err(Failure::internal(format!("`{}`: {error}", path.display())))
        }
    }
}

/// Whether a watcher runs for this home.
pub(crate) fn is_running(home: &Path) -> bool {
    let Ok(file) = File::open(home.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[derive(Debug, Serialize)]
struct EventDocument<'a> {
    event: &'static str,
    host: &'static str,
    path: &'a Path,
    server: Option<&'a str>,
    id: Option<&'a str>,
    problem: Option<&'a str>,
}

fn print_result(event: &Event, options: &Options) -> Result<(), Failure> {
    let Event { kind, host, host_title, path, server, id, problem } = event;
    let (server, problem) = (server.as_deref(), problem.as_deref());
    if let (Some(name), EventKind::Wired | EventKind::Added) = (server, *kind) {
        desktop::show(&notice::sentence(name, host_title, *kind == EventKind::Wired));
    }
    if options.json {
        let (event, id) = (kind.as_str(), id.as_deref());
        return screen::print_json(&EventDocument { event, host, path, server, id, problem });
    }
    let name = screen::readable(server.unwrap_or_default());
    let place = styled(DIM, screen::readable(&path.display().to_string()));
    screen::say(match (kind, problem) {
        (EventKind::Wired, _) => {
            let guarded = styled(GREEN.bold(), "guarded");
            format!("{guarded}  {} of {host_title}  {place}", styled(BOLD, name))
        }
        (EventKind::Added, problem) => {
            let what = problem.map_or("not guarded: holdpoint wire", |problem| problem);
            let added = styled(YELLOW.bold(), "added");
            format!("{added}  {} of {host_title}, {what}  {place}", styled(BOLD, name))
        }
        (EventKind::Failed, problem) => {
            let problem = screen::readable(problem.unwrap_or_default());
            format!("{}  {host_title}: {problem}  {place}", styled(YELLOW.bold(), "left alone"))
        }
    });
    Ok(())
}

/// Whether the watcher is a service of this user.
pub(crate) fn is_installed() -> Result<bool, Failure> {
    let home = crate::hosting::surroundings_of_user()?.home;
    Ok(Manager::here().is_some_and(|manager| Registration::of(manager, &home).is_there()))
}

fn registration() -> Result<Registration, Failure> {
    let Some(manager) = Manager::here() else {
        return Err(Failure::usage(
            "no service of this system is known here: start `holdpoint watch` at login yourself",
        ));
    };
    let surroundings = crate::hosting::surroundings_of_user()?;
    Ok(Registration::of(manager, &surroundings.home))
}

fn install(command: &WatchCommand, options: &Options) -> Result<Exit, Failure> {
    let home = Home::open(&home_path(options)?)?;
    let registration = registration()?;
    let surroundings = crate::hosting::surroundings_of_user()?;
    let variables = variables_of_hosts(&surroundings);
    let settled = SettledProgram::find()?;
    let own_home = crate::hosting::named_home(options);
    let service = Service {
        program: &settled.path,
        home: own_home.as_deref(),
        is_auto: command.auto,
        variables: &variables,
    };
    // The user has just decided on the existing servers: only servers added later count as new.
    let mut memory = Lookout::new(
        surroundings.clone(),
        wiring::workshop(options, None)?,
        Consent::Asked,
        Memory::read(home.path()),
    );
    memory.look()?;
    settled.place(options)?;
    let order = registration.install(&service)?;
    if options.json {
        return print_status(&registration, home.path());
    }
    let what = if command.auto { "guarded" } else { "reported" };
    screen::say(format!("servers that are added from now on are {what}"));
    screen::say(styled(DIM, format!("service: {}", registration.file.display())));
    if order == Order::Refused {
        let name = registration.manager.as_str();
        screen::remark(format!("{name} did not start it now; it starts at your next login"));
    }
    if !options.quiet {
        screen::say(styled(DIM, "to undo: holdpoint watch --uninstall"));
    }
    Ok(Exit::Fine)
}

/// The variables that are set, of those that change where hosts keep their files.
fn variables_of_hosts(surroundings: &Surroundings) -> BTreeMap<String, String> {
    let set = surroundings.variables.iter().filter(|(name, value)| {
        hosts::table::VARIABLES.contains(&name.as_str()) && !value.is_empty()
    });
    set.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Stops the service and removes it. Returns whether there was one.
pub(crate) fn remove_service() -> Result<bool, Failure> {
    registration()?.uninstall()
}

fn uninstall(options: &Options) -> Result<Exit, Failure> {
    let registration = registration()?;
    let was_there = remove_service()?;
    if options.json {
        return print_status(&registration, &home_path(options)?);
    }
    screen::say(if was_there { "the watcher is gone" } else { "there was no watcher" });
    Ok(Exit::Fine)
}

#[derive(Debug, Serialize)]
struct StatusDocument<'a> {
    manager: &'static str,
    file: &'a Path,
    installed: bool,
    auto: bool,
    running: bool,
}

fn print_status(registration: &Registration, home: &Path) -> Result<Exit, Failure> {
    screen::print_json(&StatusDocument {
        manager: registration.manager.as_str(),
        file: &registration.file,
        installed: registration.is_there(),
        auto: registration.is_there() && registration.is_auto(),
        running: is_running(home),
    })?;
    Ok(Exit::Fine)
}

fn status(options: &Options) -> Result<Exit, Failure> {
    let (registration, home) = (registration()?, home_path(options)?);
    if options.json {
        return print_status(&registration, &home);
    }
    let is_running = is_running(&home);
    let running = if is_running { styled(GREEN, "runs") } else { styled(YELLOW, "does not run") };
    if !registration.is_there() {
        let what = if is_running {
            "a watcher runs, and no service starts it at login"
        } else {
            "there is no watcher"
        };
        screen::say(what);
        if Manager::running().is_some() {
            screen::say(styled(DIM, "to install one: holdpoint watch --install"));
        }
        return Ok(Exit::Fine);
    }
    let what = if registration.is_auto() { "guarded" } else { "reported" };
    screen::say(format!("the watcher {running}; servers that are added later are {what}"));
    screen::say(styled(DIM, format!("service: {}", registration.file.display())));
    if !is_running {
        screen::say(styled(DIM, "to start it: holdpoint watch --install"));
    }
    Ok(Exit::Fine)
}
