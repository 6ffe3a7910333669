//! `holdpoint receipts show ID`: one receipt in full, with both of its lines and their positions.

use super::folder_if_any;
use super::printing::{end, remark_notes, why};
use crate::arguments::Options;
use crate::arguments::receipts::{ShowCommand, digits};
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, GREEN, YELLOW, styled};
use ledger::folder::ChainId;
use ledger::receipt::{Found, Item, MAX_FOUND, RawLine, Receipt, find};
use serde_json::{Value, json};

pub(crate) fn run(command: &ShowCommand, options: &Options) -> Result<Exit, Failure> {
    let prefix = digits(&command.id)?;
    let unknown = || {
        Failure::usage(format!(
            "no receipt's id begins with `{prefix}`: `holdpoint receipts list` shows those that there are"
        ))
    };
    let folder = folder_if_any(command.folder.receipts.as_deref(), options)?.ok_or_else(unknown)?;
    let (mut found, notes) = find(&folder, &prefix)?;
    remark_notes(&notes);
    let one = found.pop().ok_or_else(unknown)?;
    if !found.is_empty() {
        found.push(one);
        return Err(several(&prefix, &found));
    }
    if options.json {
        screen::print_json(&json!({
            "receipt": Item::Receipt(Box::new(one.receipt.clone())),
            "decision": document(&one.decision),
            "outcome": one.outcome.as_ref().map(document),
        }))?;
        return Ok(Exit::Fine);
    }
    say(&one)?;
    Ok(Exit::Fine)
}

fn several(prefix: &str, found: &[Found]) -> Failure {
    let ids: Vec<String> = found.iter().map(|found| found.receipt.receipt_id.to_string()).collect();
    let many = if found.len() == MAX_FOUND { "at least " } else { "" };
    Failure::usage(format!(
        "{many}{} receipts begin with `{prefix}`; type more digits: {}",
        found.len(),
        ids.join(", ")
    ))
}

fn document(line: &RawLine) -> Value {
    json!({
        "segment": line.segment.to_string(),
        "line": line.line,
        "seq": line.seq,
        "covered": line.is_covered,
        "text": line.text,
    })
}

fn say(found: &Found) -> Result<(), Failure> {
    let receipt = &found.receipt;
    let what = receipt.mcp.tool_name.as_ref().unwrap_or(&receipt.mcp.method);
    screen::say(format!(
        "{}  {} on {}  {}",
        styled(BOLD, receipt.receipt_id),
        styled(BOLD, screen::readable(what)),
        screen::readable(&receipt.mcp.server_id),
        end(receipt),
    ));
    for words in why(receipt) {
        screen::say(format!("    why: {words}"));
    }
    say_members(receipt)?;
    say_line("decision", &receipt.chain, &found.decision);
    if let Some(outcome) = &found.outcome {
        say_line("outcome", &receipt.chain, outcome);
    }
    screen::say(styled(DIM, "to verify it: holdpoint receipts verify"));
    Ok(())
}

/// Prints every non-empty member; nested members by their path.
fn say_members(receipt: &Receipt) -> Result<(), Failure> {
    let mut lines = Vec::new();
    flatten("", &serde_json::to_value(receipt)?, &mut lines);
    for (name, value) in lines {
        screen::say(format!("    {:<36} {}", styled(DIM, name), screen::readable(&value)));
    }
    Ok(())
}

fn flatten(path: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, lines);
            }
        }
        Value::Array(values) => {
            let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            if !words.is_empty() {
                lines.push((path.to_owned(), words.join(", ")));
            }
        }
        Value::String(text) => lines.push((path.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) => lines.push((path.to_owned(), value.to_string())),
    }
}

fn say_line(what: &str, chain: &ChainId, line: &RawLine) {
    let covered = if line.is_covered {
        styled(GREEN, "a checkpoint covers it")
    } else {
        styled(YELLOW, "no checkpoint covers it yet")
    };
    screen::say(format!(
        "{what}: chain {chain}, segment {}, line {} (seq {}); {covered}",
        line.segment, line.line, line.seq
    ));
}
