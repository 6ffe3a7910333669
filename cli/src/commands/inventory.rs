//! `holdpoint inventory`: lists the accepted tools of a gateway's servers, from its file and its
//! store.

use crate::arguments::Options;
use crate::arguments::gateway::InventoryCommand;
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::gateway_file;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, readable, styled};
use crate::target::home_path;
use serde_json::Value;
use store::{Home, Witnessed};

pub(crate) fn run(command: &InventoryCommand, options: &Options) -> Result<Exit, Failure> {
    let home = Home::open(&home_path(options)?)?;
    let configuration = Configuration::read(&home.config_path())?;
    let path = gateway_file::path(home.path(), command.config.as_deref());
    let (settings, _) = gateway_file::read(&path)?;
    let location = gateway_file::location(&settings, &configuration)?;
    let store = Witnessed::new(store::open(&home, &location)?, &home);
    let document = gateway::inventory(&settings, &store, home.path())?;
    if options.json {
        screen::print_json(&document)?;
        return Ok(Exit::Fine);
    }
    let servers = document.get("servers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if servers.is_empty() {
        screen::say(format!("{}: no server is configured", path.display()));
    }
    servers.iter().for_each(say_server);
    Ok(Exit::Fine)
}

fn say_server(server: &Value) {
    let text = |value: &Value| readable(value.as_str().unwrap_or_default());
    let tools = server["tools"].as_array().map_or(&[][..], Vec::as_slice);
    screen::say(format!(
        "{}  {}  trust {}, risk {}, {}{}",
        styled(BOLD, text(&server["id"])),
        text(&server["status"]),
        text(&server["trust"]),
        text(&server["risk"]),
        count(tools.len(), "tool", "tools"),
        confinement(&server["sandbox"]),
    ));
    for tool in tools {
        let hash = tool["entry_hash"].as_str().unwrap_or_default();
        let allowed = if tool["allowed"] == false { ", not allowed" } else { "" };
        screen::say(format!(
            "    {}  risk {}{allowed}  {}",
            text(&tool["shown_as"]),
            text(&tool["risk"]),
            styled(DIM, format!("{} {hash:.16}…", text(&tool["basis"]))),
        ));
    }
}

/// How a server's program is confined; empty for a server reached over HTTP.
fn confinement(sandbox: &Value) -> String {
    match (sandbox, sandbox["level"].as_str()) {
        (Value::Null, _) => String::new(),
        (_, None) => ", confined when it starts".to_owned(),
        (_, Some("none")) => ", not confined".to_owned(),
        (_, Some(level)) => format!(", confined: {}", readable(level)),
    }
}
