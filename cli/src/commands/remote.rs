//! The lifecycle commands with `--gateway`: same output and effects as without it, but for the
//! servers of a remote gateway.

use crate::approver;
use crate::arguments::{ApproveCommand, Options, ReviewCommand, StatusCommand};
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::remote_gateway::RemoteGateway;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, readable, styled};
use crate::server_text::{self, HOW_TO_SEE, ServerText};
use crate::target::home_path;
use gate::server::ServerId;
use serde_json::{Value, json};

/// `status --gateway`.
pub(crate) fn status(
    command: &StatusCommand,
    gateway: &RemoteGateway,
    options: &Options,
) -> Result<Exit, Failure> {
    if command.short {
        return Err(Failure::usage("`--short` reads this machine's own servers: leave it out"));
    }
    let mut document = gateway.get("/servers")?;
    if let Some(id) = &command.id {
        let one = server(gateway, id, server_text::on_standard_output(command.text.server_text))?;
        if let Some(servers) = document.get_mut("servers") {
            *servers = json!([one]);
        }
    }
    if options.json {
        screen::print_json(&document)?;
        return Ok(Exit::Fine);
    }
    if at(&document, "incident") == true {
        screen::say(styled(RED.bold(), "! an incident is on: calls are denied"));
    }
    let servers = list(at(&document, "servers"));
    for server in servers {
        say_server(server);
        for entry in list(at(server, "waiting")) {
            screen::say(format!("    {}", waiting_line(entry)));
        }
    }
    if servers.is_empty() {
        screen::say("no server is configured there that you may see");
    }
    Ok(Exit::Fine)
}

fn say_server(server: &Value) {
    let status = text(at(server, "status"));
    let style = match status {
        "verified" => GREEN,
        "changed" | "quarantined" => RED,
        _ => YELLOW,
    };
    let pinned = at(server, "pinned").as_object().map_or(0, |pinned| {
        pinned.values().filter_map(Value::as_u64).fold(0_u64, u64::saturating_add)
    });
    let number = |name: &str| at(server, name).as_u64().unwrap_or_default();
    let mut line = format!(
        "{}  {}  {} served, {} pinned",
        styled(BOLD, readable(text(at(server, "id")))),
        styled(style.bold(), status),
        count(number("tools_served"), "tool", "tools"),
        count(pinned, "entry", "entries"),
    );
    for (name, words) in [("held", "held"), ("deferred", "deferred")] {
        if number(name) > 0 {
            line.push_str(&format!(", {} {words}", number(name)));
        }
    }
    if let Some(since) = at(server, "since").as_str() {
        line.push_str(&styled(DIM, format!(" since {}", readable(since))));
    }
    screen::say(line);
    if let Some(lost) = at(server, "lost").as_str() {
        screen::say(format!("    {}", styled(RED, readable(lost))));
    }
}

/// `review --gateway`.
pub(crate) fn review(
    command: &ReviewCommand,
    gateway: &RemoteGateway,
    options: &Options,
) -> Result<Exit, Failure> {
    if command.interactive {
        return Err(Failure::usage("`-i` decides on this machine's own servers: leave it out"));
    }
    let shown = server_text::on_standard_output(command.text.server_text);
    let ids: Vec<ServerId> = match &command.id {
        Some(id) => vec![id.clone()],
        None => {
            let document = gateway.get("/servers")?;
            let ids = list(at(&document, "servers")).iter().map(|server| text(at(server, "id")));
            ids.filter_map(|id| id.parse().ok()).collect()
        }
    };
    let mut waiting = Vec::new();
    for id in &ids {
        let server = server(gateway, id, shown)?;
        if !list(at(&server, "waiting")).is_empty() || !list(at(&server, "unreadable")).is_empty() {
            waiting.push(server);
        }
    }
    let is_held = waiting.iter().any(|server| {
        at(server, "held").as_u64() > Some(0) || text(at(server, "status")) == "pending"
    });
    if options.json {
        screen::print_json(&json!({"servers": waiting}))?;
    } else if waiting.is_empty() {
        screen::say("nothing is waiting for you");
    } else {
        waiting.iter().for_each(|server| say_review(server, gateway, shown));
    }
    Ok(if is_held { Exit::Held } else { Exit::Fine })
}

fn say_review(server: &Value, gateway: &RemoteGateway, shown: ServerText) {
    let id = text(at(server, "id"));
    screen::say(styled(BOLD, format!("━━ {} ━━", readable(id))));
    for entry in list(at(server, "waiting")) {
        say_entry(entry);
    }
    for unreadable in list(at(server, "unreadable")) {
        screen::say(readable(text(unreadable)));
    }
    if shown == ServerText::Located {
        screen::say(styled(DIM, format!("({HOW_TO_SEE})")));
    }
    let command = |words: &[&str]| -> Vec<String> {
        let own = ["holdpoint"].iter().chain(words).map(|word| (*word).to_owned());
        own.chain(gateway.words()).collect()
    };
    if text(at(server, "status")) == "quarantined" {
        screen::say_command("release it:     ", &command(&["release", id]));
        return;
    }
    if let Some(hash) = at(server, "surface_hash").as_str() {
        screen::say_command("approve all:    ", &command(&["approve", id, "--hash", hash]));
    }
    screen::say_command("stop the server:", &command(&["quarantine", id]));
}

fn say_entry(entry: &Value) {
    screen::say(waiting_line(entry));
    for finding in list(at(entry, "findings")) {
        let kind = styled(DIM, format!("[{}]", readable(text(at(finding, "kind")))));
        screen::say(format!("    {} {kind}", readable(text(at(finding, "say")))));
        for (sign, side) in [("-", "before"), ("+", "after")] {
            if let Some(value) = at(finding, side).as_str() {
                screen::say_fitted(format!("        {sign} {}", readable(value)));
            }
        }
    }
    if let Some(hash) = hash_of(entry) {
        screen::say(styled(DIM, format!("    hash {hash}")));
    }
}

fn waiting_line(entry: &Value) -> String {
    let state = match (text(at(entry, "verdict")), at(entry, "deferred") == true) {
        ("PROCEED", true) => styled(YELLOW.bold(), "DEFERRED"),
        ("PROCEED", false) => styled(DIM, "NOTED"),
        (held, _) => styled(RED.bold(), readable(held)),
    };
    let since = at(entry, "since").as_str().map(|since| format!(" since {}", readable(since)));
    format!(
        "{state}  {} {}{}",
        readable(text(at(entry, "type"))),
        styled(BOLD, readable(text(at(entry, "key")))),
        styled(DIM, since.unwrap_or_default())
    )
}

/// `approve --gateway`.
pub(crate) fn approve(
    command: &ApproveCommand,
    gateway: &RemoteGateway,
    options: &Options,
) -> Result<Exit, Failure> {
    let (id, hash) = (&command.id, command.hash.to_ascii_lowercase());
    let server = server(gateway, id, ServerText::Shown)?;
    let waiting = list(at(&server, "waiting"));
    let other =
        || Failure::held(format!("the waiting entries of server `{id}` now have a different hash"));
    let is_whole = at(&server, "surface_hash") == hash.as_str();
    let chosen: Vec<&Value> = match command.keys.as_slice() {
        [] if is_whole => waiting.iter().collect(),
        [] => waiting.iter().filter(|entry| hash_of(entry) == Some(&hash)).collect(),
        keys => {
            let find = |key: &String| waiting.iter().find(|entry| is_called(entry, key));
            let found: Option<Vec<&Value>> = keys.iter().map(find).collect();
            let found = found.ok_or_else(other)?;
            let is_it = |entry: &&Value| is_whole || hash_of(entry) == Some(&hash);
            found.into_iter().filter(is_it).collect()
        }
    };
    if chosen.is_empty() || (!command.keys.is_empty() && chosen.len() != command.keys.len()) {
        return Err(other());
    }
    let body = match command.keys.is_empty() && is_whole {
        true => json!({"surface_hash": hash}),
        false => {
            let reviewed = chosen.iter().map(|entry| {
                json!({"type": at(entry, "type"), "key": at(entry, "key"), "entry_hash": hash_of(entry)})
            });
            json!({"entries": reviewed.collect::<Vec<_>>()})
        }
    };
    let entries = count(chosen.len(), "entry", "entries");
    let what = format!("This approves {entries} of server `{id}`, hash {hash}.");
    let configuration = Configuration::read(&home_path(options)?.join("holdpoint.toml"))?;
    approver::confirm(&configuration, &what, || chosen.iter().for_each(|entry| say_entry(entry)))?;
    let decided = gateway.post(&format!("/servers/{id}/approve"), Some(&body))?;
    print_result(id, &decided, &format!("approved {entries}"), options)
}

/// `quarantine --gateway`.
pub(crate) fn quarantine(
    id: &ServerId,
    gateway: &RemoteGateway,
    options: &Options,
) -> Result<Exit, Failure> {
    let decided = gateway.post(&format!("/servers/{id}/quarantine"), None)?;
    let words = if at(&decided, "already") == true { "stopped already" } else { "stopped" };
    print_result(id, &decided, words, options)
}

/// `release --gateway`.
pub(crate) fn release(
    id: &ServerId,
    gateway: &RemoteGateway,
    options: &Options,
) -> Result<Exit, Failure> {
    let configuration = Configuration::read(&home_path(options)?.join("holdpoint.toml"))?;
    approver::confirm_yes(&configuration, &format!("Release server `{id}` from quarantine?"))?;
    let decided = gateway.post(&format!("/servers/{id}/release"), None)?;
    print_result(id, &decided, "released", options)
}

fn print_result(
    id: &ServerId,
    decided: &Value,
    words: &str,
    options: &Options,
) -> Result<Exit, Failure> {
    if options.json {
        screen::print_json(decided)?;
        return Ok(Exit::Fine);
    }
    screen::say(format!("{id}: {words}; the server is {}", readable(text(at(decided, "status")))));
    for shared in list(at(decided, "shared")) {
        let outcome =
            at(shared, "status").as_str().or(at(shared, "error").as_str()).unwrap_or_default();
        let (server, outcome) = (readable(text(at(shared, "server"))), readable(outcome));
        screen::say(format!("{server}, which is launched the same way: {outcome}"));
    }
    Ok(Exit::Fine)
}

fn server(gateway: &RemoteGateway, id: &ServerId, shown: ServerText) -> Result<Value, Failure> {
    let query = if shown == ServerText::Shown { "?server_text=true" } else { "" };
    gateway.get(&format!("/servers/{id}{query}"))
}

/// The hash that identifies a waiting entry: its current hash, or the former one if the entry is
/// gone.
fn hash_of(entry: &Value) -> Option<&str> {
    let hash = at(entry, "entry_hash");
    at(hash, "after").as_str().or(at(hash, "before").as_str())
}

fn is_called(entry: &Value, key: &str) -> bool {
    let (kind, own) = (text(at(entry, "type")), text(at(entry, "key")));
    own == key || key.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')) == Some(own)
}

/// A member of a document; null if it is missing.
fn at<'v>(document: &'v Value, member: &str) -> &'v Value {
    document.get(member).unwrap_or(&Value::Null)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
