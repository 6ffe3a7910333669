//! `holdpoint approvals`: lists the calls that wait for approval at a gateway, and decides on them.

use crate::arguments::{
    ApprovalsCommand, ApprovalsSubcommand, GatewayArguments, ListApprovals, Options,
};
use crate::failure::{Exit, Failure};
use crate::remote_gateway::RemoteGateway;
use crate::screen::{self, BOLD, DIM, readable, styled};
use serde_json::Value;

pub(crate) fn run(command: &ApprovalsCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        ApprovalsSubcommand::List(ListApprovals { gateway }) => list(&named(gateway)?, options),
        ApprovalsSubcommand::Show(one) => show(&named(&one.gateway)?, one.id.as_str(), options),
        ApprovalsSubcommand::Grant(one) => {
            decide(&named(&one.gateway)?, one.id.as_str(), "grant", "granted", options)
        }
        ApprovalsSubcommand::Refuse(one) => {
            decide(&named(&one.gateway)?, one.id.as_str(), "refuse", "refused", options)
        }
    }
}

fn named(gateway: &GatewayArguments) -> Result<RemoteGateway, Failure> {
    let missing =
        "calls wait at a running gateway: name it with `--gateway URL --key env:VARIABLE`";
    RemoteGateway::of(gateway)?.ok_or_else(|| Failure::usage(missing))
}

fn show(gateway: &RemoteGateway, id: &str, options: &Options) -> Result<Exit, Failure> {
    let document = gateway.get("/approvals")?;
    let all = document.get("approvals").and_then(Value::as_array);
    let Some(found) = all.into_iter().flatten().find(|it| text(it, "id") == id) else {
        return Err(Failure::usage(format!("no call waits for you under `{id}`")));
    };
    if options.json {
        screen::print_json(found)?;
    } else {
        say(found, true);
    }
    Ok(Exit::Fine)
}

fn list(gateway: &RemoteGateway, options: &Options) -> Result<Exit, Failure> {
    let document = gateway.get("/approvals")?;
    if options.json {
        screen::print_json(&document)?;
        return Ok(Exit::Fine);
    }
    let waiting = document.get("approvals").and_then(Value::as_array);
    for call in waiting.into_iter().flatten() {
        say(call, false);
    }
    if waiting.is_none_or(Vec::is_empty) {
        screen::say("no call waits for you");
    }
    let missing = document.get("missing").and_then(Value::as_array);
    for node in missing.into_iter().flatten().filter_map(Value::as_str) {
        let node = readable(node);
        screen::remark(format!("the node at {node} does not answer: its calls are not shown"));
    }
    Ok(Exit::Fine)
}

fn decide(
    gateway: &RemoteGateway,
    id: &str,
    act: &str,
    done: &str,
    options: &Options,
) -> Result<Exit, Failure> {
    let document = gateway.post(&format!("/approvals/{id}/{act}"), None)?;
    if options.json {
        screen::print_json(&document)?;
    } else {
        let call = |name| readable(text(&document, name));
        let (tool, server, caller) = (call("tool"), call("server"), call("principal"));
        screen::say(format!("{done} the call of {tool} on {server} by {caller}"));
    }
    Ok(Exit::Fine)
}

fn text<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Shows a person the call before they decide. The caller chose the arguments, so everything that
/// could mislead a terminal is escaped.
fn say(call: &Value, is_whole: bool) {
    let of = |name| readable(text(call, name));
    screen::say(format!(
        "{}  {} on {} by {}",
        styled(BOLD, of("id")),
        of("tool"),
        of("server"),
        of("principal")
    ));
    screen::say(styled(DIM, format!("    since {}, until {}", of("parked_at"), of("expires_at"))));
    if is_whole {
        screen::say(format!("    contract {}", of("contract_hash")));
        say_json(call.get("arguments").unwrap_or(&Value::Null));
        if let Some(answers) = call.get("input_responses").filter(|it| !it.is_null()) {
            screen::say("    answers to the server's questions");
            say_json(answers);
        }
    }
}

fn say_json(value: &Value) {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    for line in pretty.lines() {
        screen::say(format!("    {}", readable(line)));
    }
}
