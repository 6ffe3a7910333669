//! The groups that the general help lists commands in. clap has no groups of commands, so the list is part of the template.

use crate::layout::wrapped_at;
use crate::screen;

/// The widest that help is written.
const MAX_WIDTH: usize = 100;

const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Guard servers",
        &["run", "pins", "sandbox", "hosts", "wire", "unwire", "watch", "sign-in", "sign-out"],
    ),
    (
        "See what changed",
        &["status", "check", "review", "show", "history", "diff", "screen", "capture", "hash"],
    ),
    ("Decide", &["pin", "approve", "quarantine", "release", "rollback", "incident"]),
    ("Look back", &["stats", "digest", "receipts", "attest", "calibrate", "evaluate"]),
    ("Serve a team", &["gateway", "policy", "key", "inventory", "approvals", "conformance"]),
    ("Ask others, and publish what is known of servers", &["network", "directory", "crawl"]),
    (
        "Get started, and help",
        &["demo", "doctor", "help", "completions", "man", "store", "uninstall"],
    ),
];

/// The template of the general help.
pub(super) fn template(command: &clap::Command) -> String {
    let width = screen::width().min(MAX_WIDTH);
    let names = command.get_subcommands().filter(|below| !below.is_hide_set());
    let column = names.map(|below| below.get_name().len()).max().unwrap_or(0) + 4;
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, members) in GROUPS {
        text.push_str(&format!("\n{heading}:\n"));
        for below in members.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("  {:<width$}{about}", below.get_name(), width = column - 2);
            for piece in wrapped_at(&line, width, column) {
                text.push_str(&piece);
                text.push('\n');
            }
        }
    }
    text.push_str("\nOptions:\n{options}\n\n{after-help}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_that_is_not_hidden_is_in_one_group() {
        let command = Arguments::command();
        let known = command.get_subcommands().filter(|below| !below.is_hide_set());
        let known: BTreeSet<&str> = known.map(clap::Command::get_name).collect();
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(listed.len(), known.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), known);
    }
}
