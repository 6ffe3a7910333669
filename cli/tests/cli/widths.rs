//! Every command at 60, 80 and 120 columns: no line is longer, except for unbreakable words, and
//! continuation lines are indented further.

use crate::bench::*;
use serde_json::json;

/// Wide enough that no line of these commands is broken.
const UNBROKEN: usize = 240;

/// A home with a changed server, receipts, a host and a configuration that produces warnings.
fn furnished() -> Bench {
    let bench = Bench::unattended();
    let mut tool = report_tool();
    tool["description"] = json!("Makes a report of everything that happened. ".repeat(12));
    let server = FolderServer::new(&bench, &json!([report_tool(), mail_tool()]));
    server.answers("tools/call", json!({ "content": [] }).to_string());
    server.run(&bench, "pin", &[]).exits(0);
    let mut agent = crate::agent::Agent::start(&bench, &server);
    agent.call("make_report", &json!({ "title": "a" }));
    agent.leave();
    tool["inputSchema"]["properties"]["owner"] = json!({ "type": "string", "default": "x" });
    tool["inputSchema"]["required"] = json!(["title", "owner"]);
    server.lists(&json!([tool, { "name": "new_tool", "description": "d", "inputSchema": {} }]));
    let mut agent = crate::agent::Agent::start(&bench, &server);
    agent.call("make_report", &json!({ "title": "b" }));
    agent.leave();
    bench.file("old.json", json!([report_tool()]).to_string());
    bench.file("new.json", json!([tool]).to_string());
    let servers = json!({ "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem"] },
        "a-server-with-a-long-name-of-its-own": { "url": "https://login.example.com/mcp" },
    } });
    bench.file(".claude.json", servers.to_string());
    bench
}

fn at(bench: &Bench, words: &[&str], columns: usize) -> Vec<String> {
    let mut command = bench.command(words);
    command.env("COLUMNS", columns.to_string());
    let answer = answer(command);
    let text = format!("{}{}", answer.out, answer.err);
    assert!(!text.contains("internal error"), "{words:?}: {text}");
    text.lines().map(str::to_owned).collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Hashes, paths and addresses are meant to be copied, and not broken.
fn is_unbreakable(word: &str) -> bool {
    let is_hash = word.chars().filter(char::is_ascii_hexdigit).count() >= 32;
    is_hash || word.contains('/') || word.len() > 60
}

/// The lines that are too long.
fn overlong(words: &[&str], lines: &[String], columns: usize) -> Vec<String> {
    let is_overlong = |line: &&String| {
        let has_long = line.split_whitespace().any(is_unbreakable);
        console::measure_text_width(line) > columns && !has_long
    };
    lines.iter().filter(is_overlong).map(|line| format!("{words:?} at {columns}: {line}")).collect()
}

/// Checks that the narrow lines are the wide ones broken at words, with indented continuations.
fn wrongly_broken(words: &[&str], narrow: &[String], wide: &[String]) -> Option<String> {
    let mut rest = narrow.iter();
    for line in wide {
        let wanted: Vec<&str> = line.split_whitespace().collect();
        let mut got: Vec<&str> = Vec::new();
        let mut place = 0;
        while got.len() < wanted.len() || (wanted.is_empty() && place == 0) {
            let Some(piece) = rest.next() else { return Some(format!("{words:?}: cut: {line}")) };
            let is_in_place = match place {
                0 => indent(piece) == indent(line),
                _ => indent(piece) > indent(line),
            };
            if !is_in_place {
                return Some(format!("{words:?}: indent of `{piece}`, of `{line}`"));
            }
            got.extend(piece.split_whitespace().filter(|word| *word != "\\"));
            place += 1;
        }
        if got != wanted {
            return Some(format!("{words:?}: {got:?} instead of {wanted:?}"));
        }
    }
    None
}

#[test]
fn every_line_of_every_command_is_broken_at_words_and_keeps_its_indent() {
    let bench = furnished();
    let history = bench.run(["history", ID, "--json"]).exits(0).json();
    let act = history["events"].as_array().unwrap().last().unwrap()["act"].to_string();
    let listed = bench.run(["receipts", "list", "--json", "-n", "1"]).exits(0).json();
    let receipt = listed["receipt_id"].as_str().unwrap().to_owned();
    let hash = "0".repeat(64);
    let mut problems: Vec<String> = Vec::new();
    for words in [
        vec!["status"],
        vec!["check", ID],
        vec!["history", ID],
        vec!["history", ID, "-v"],
        vec!["digest"],
        vec!["incident", "status"],
        vec!["receipts", "list"],
        vec!["receipts", "list", "--decision", "held"],
        vec!["receipts", "verify"],
        vec!["receipts", "export", "--format", "nonsense"],
        vec!["hosts"],
        vec!["doctor"],
        vec!["doctor", "-v"],
        vec!["attest", "schemes"],
        vec!["approve", ID, "nothing_of_that_name", "--hash", &hash],
        vec!["approve", "unheard-of", "--hash", &hash],
        vec!["run"],
        vec!["unheard-of-command"],
        vec!["pin", ID, "--url", "https://example.com"],
    ] {
        let wide = at(&bench, &words, UNBROKEN);
        assert!(!wide.is_empty(), "{words:?} says nothing");
        for columns in [60, 80, 120] {
            let narrow = at(&bench, &words, columns);
            problems.extend(overlong(&words, &narrow, columns));
            problems.extend(wrongly_broken(&words, &narrow, &wide));
        }
    }
    // These adapt their layout to the width.
    for words in [
        vec!["help"],
        vec!["help", "receipts"],
        vec!["help", "run"],
        vec!["stats"],
        vec!["stats", "-v"],
        vec!["demo"],
        vec!["demo", "--all"],
        vec!["diff", "old.json", "new.json"],
        vec!["hash", "new.json"],
        vec!["show", ID],
        vec!["history", ID, "--show", &act],
        vec!["review"],
        vec!["review", "--server-text"],
        vec!["check", ID, "--server-text"],
        vec!["receipts", "show", &receipt],
        vec!["wire", "--dry-run"],
        vec!["help", "doctor#disk_full"],
    ] {
        for columns in [60, 80, 120] {
            problems.extend(overlong(&words, &at(&bench, &words, columns), columns));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
