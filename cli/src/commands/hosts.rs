//! `holdpoint hosts`: lists the configuration files of hosts, their servers, whether they are
//! wired, and what is pinned.

use crate::arguments::Options;
use crate::arguments::hosts::HostsCommand;
use crate::commands::wiring::{self, ServerDocument, scope_name, short};
use crate::failure::{Exit, Failure};
use crate::gate_program::{Started, started};
use crate::observation::now;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::target::{Workplace, home_path};
use contract::surface::EntryType;
use gate::server::{ServerId, ServerStatus};
use hosts::{Config, ReadError, Server, WiringState};
use serde::Serialize;
use std::collections::BTreeMap;
use store::Store;

#[derive(Debug, Serialize)]
struct FileDocument {
    host: &'static str,
    title: &'static str,
    path: String,
    scope: &'static str,
    servers: Vec<ServerWithPins>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct ServerWithPins {
    #[serde(flatten)]
    server: ServerDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pins: Option<Pins>,
}

/// What the home knows of a server.
#[derive(Debug, Clone, Copy, Serialize)]
struct Pins {
    status: ServerStatus,
    tools: usize,
    waiting: usize,
}

pub(crate) fn run(command: &HostsCommand, options: &Options) -> Result<Exit, Failure> {
    let surroundings = wiring::surroundings()?;
    let configs = wiring::configs(&command.hosts, command.config.as_deref(), &surroundings)?;
    let configs = wiring::keep_apart(configs, options)?;
    let pins = all_pins(options)?;
    let read: Vec<(Config, Result<Vec<Server>, ReadError>)> =
        configs.into_iter().map(|config| (config.clone(), config.servers())).collect();
    if options.json {
        let files: Vec<FileDocument> =
            read.iter().map(|(config, servers)| document(config, servers, &pins)).collect();
        screen::print_json(&serde_json::json!({ "files": files }))?;
    } else {
        print_result(&read, &pins, options);
    }
    let is_readable = read.iter().all(|(_, servers)| servers.is_ok());
    Ok(if is_readable { Exit::Fine } else { Exit::Usage })
}

/// The pins of every known server. If there is no home yet, returns an empty map and creates no
/// home.
fn all_pins(options: &Options) -> Result<BTreeMap<String, Pins>, Failure> {
    if !home_path(options)?.join("state.db").exists() {
        return Ok(BTreeMap::new());
    }
    let workplace = Workplace::open(options)?;
    let at = now();
    let mut all = BTreeMap::new();
    for server in workplace.store.servers()? {
        let id: &ServerId = &server.id;
        let judged = workplace.review(id, at)?;
        let pinned = judged.server.snapshot.pins.iter();
        let tools = pinned
            .filter(|(entry, pins)| entry.entry_type == EntryType::Tool && !pins.is_gone())
            .count();
        let waiting = judged.waiting().count();
        all.insert(id.to_string(), Pins { status: judged.status(), tools, waiting });
    }
    Ok(all)
}

fn document(
    config: &Config,
    servers: &Result<Vec<Server>, ReadError>,
    pins: &BTreeMap<String, Pins>,
) -> FileDocument {
    let servers_with_pins = servers.iter().flatten().map(|server| ServerWithPins {
        server: ServerDocument::of(server),
        pins: pins.get(&server.id).copied(),
    });
    FileDocument {
        host: config.host.id,
        title: config.host.title,
        path: config.path.display().to_string(),
        scope: scope_name(config.scope),
        servers: servers_with_pins.collect(),
        error: servers.as_ref().err().map(ToString::to_string),
    }
}

fn print_result(
    read: &[(Config, Result<Vec<Server>, ReadError>)],
    pins: &BTreeMap<String, Pins>,
    options: &Options,
) {
    let mut unwired = 0;
    for (config, servers) in read {
        let title = format!("{}  {}", styled(BOLD, config.host.title), short(&config.path));
        match servers {
            Err(error) => {
                screen::say(title);
                screen::say(format!("    {}", styled(RED, screen::readable(&error.to_string()))));
            }
            Ok(servers) if servers.is_empty() && !options.verbose => {}
            Ok(servers) => {
                screen::say(title);
                unwired +=
                    servers.iter().filter(|server| server.state == WiringState::Unwired).count();
                servers.iter().for_each(|server| screen::say(line(server, pins.get(&server.id))));
            }
        }
    }
    let is_empty = |(_, servers): &(Config, Result<Vec<Server>, ReadError>)| {
        servers.as_ref().is_ok_and(Vec::is_empty)
    };
    if read.iter().all(is_empty) {
        screen::say("no server is configured in any host that is known here");
        screen::say(styled(DIM, "for one file: holdpoint hosts --config PATH"));
    } else if unwired > 0 && !options.quiet {
        let servers = count(unwired, "server is", "servers are");
        screen::say(styled(DIM, format!("{servers} not guarded: holdpoint wire")));
    }
}

fn line(server: &Server, pins: Option<&Pins>) -> String {
    let state = match &server.state {
        WiringState::Unwired => styled(YELLOW, "not wired"),
        WiringState::Wired { .. } => match started(server) {
            Started::Gate => styled(GREEN, "wired"),
            Started::Other => styled(RED, "wired to another program: holdpoint doctor"),
            Started::Nothing => styled(RED, "wired, and its program is gone: holdpoint doctor"),
        },
        WiringState::Gateway { url } => {
            styled(GREEN, format!("leads to the gateway at {}", wiring::origin(url)))
        }
        WiringState::Unguarded(reason) if server.names_gate => {
            styled(RED, format!("names holdpoint, but {reason}: holdpoint doctor"))
        }
        WiringState::Unguarded(reason) => styled(YELLOW, reason),
    };
    let project = server
        .project
        .as_ref()
        .map(|path| styled(DIM, format!(" in {}", short(std::path::Path::new(path)))))
        .unwrap_or_default();
    let pins = match pins {
        None => String::new(),
        Some(pins) => {
            let waiting = match pins.waiting {
                0 => String::new(),
                waiting => format!(", {waiting} waiting: holdpoint review {}", server.id),
            };
            format!("  {}, {} pinned{waiting}", pins.status, count(pins.tools, "tool", "tools"))
        }
    };
    let has_id = matches!(server.state, WiringState::Unwired | WiringState::Wired { .. });
    let id = if has_id { server.id.as_str() } else { "" };
    let id = if id.is_empty() { String::new() } else { format!("  {}", styled(DIM, id)) };
    format!("    {}{project}{id}  {state}{pins}", screen::name(&server.name))
}
