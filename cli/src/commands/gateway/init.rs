//! `holdpoint gateway init`: writes a commented `gateway.toml` and a folder of starter policies.
//! Never overwrites anything.

use super::found::{self, FoundServer};
use crate::arguments::Options;
use crate::failure::{Exit, Failure};
use crate::report::count;
use crate::{gateway_file, hosting, screen};
use policy::STARTER_POLICIES;
use settings::gateway::starter;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use store::Home;

pub(super) fn run(home: &Path, config: Option<&Path>, options: &Options) -> Result<Exit, Failure> {
    let path = gateway_file::path(home, config);
    if config.is_none() {
        Home::open(home)?;
    }
    let folder = path.parent().unwrap_or(Path::new("")).join("policies");
    let found = found::servers(&hosting::files_of_hosts().unwrap_or_default());
    let text = with_servers(starter(), &found);
    // Write the settings first: if they exist already, nothing is written at all.
    write_new(&path, &text)?;
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for (name, policy) in STARTER_POLICIES {
        let is_for_examples = name == "server-team.cedar" && !found.is_empty();
        let policy_path = folder.join(name);
        if !is_for_examples && !policy_path.exists() {
            write_new(&policy_path, policy)?;
        }
    }
    let policies: String =
        found.iter().filter(|server| server.is_complete()).map(FoundServer::policy).collect();
    if !policies.is_empty() && !folder.join(SERVER_POLICIES).exists() {
        let heading = "// Who may use the servers that `gateway init` found. Change the groups to those that you have.\n";
        write_new(&folder.join(SERVER_POLICIES), &format!("{heading}{policies}"))?;
    }
    if !options.quiet {
        screen::say(format!("{} and {} are written", path.display(), folder.display()));
        print_remaining_steps(&path, &found);
    }
    Ok(Exit::Fine)
}

/// The policies for the servers that were found.
const SERVER_POLICIES: &str = "servers.cedar";

/// The starter file, with the servers of this machine's hosts.
fn with_servers(starter: &str, found: &[FoundServer]) -> String {
    if found.is_empty() {
        return starter.to_owned();
    }
    let heading = "\n# Servers of the hosts on this machine. Their secrets are not copied: each is the variable that is named.\n";
    let tables: String = found.iter().map(|server| format!("\n{}", server.table())).collect();
    format!("{starter}{heading}{tables}")
}

/// Tells the user what is left to do before the gateway can start.
fn print_remaining_steps(path: &Path, found: &[FoundServer]) {
    if found.is_empty() {
        screen::say(
            "next: add a `[[server]]`, `holdpoint gateway --check`, `holdpoint key create --sub NAME`",
        );
        return;
    }
    let complete = found.iter().filter(|server| server.is_complete()).count();
    let servers =
        count(complete, "server of this machine's hosts is", "servers of this machine's hosts are");
    screen::say(format!("{servers} in it"));
    let left = found.len() - complete;
    if left > 0 {
        let more = count(left, "more is", "more are");
        screen::say(format!("{more} commented out: each says what is left to you"));
    }
    if let Err(failure) = gateway_file::read(path) {
        screen::say("left to fill in:");
        screen::say(failure.to_string());
    }
    let complete = found.iter().filter(|server| server.is_complete());
    let variables: Vec<String> = complete.flat_map(FoundServer::variables).collect();
    if !variables.is_empty() {
        screen::say(format!("variables that the gateway needs: {}", variables.join(", ")));
    }
    screen::say("next: `holdpoint gateway --check`, `holdpoint key create --sub NAME --group …`");
    screen::say("then, on each machine: `holdpoint wire --gateway URL --key env:NAME`");
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    match file {
        Ok(mut file) => file.write_all(text.as_bytes()).map_err(|error| failed(path, &error)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Failure::usage(format!("`{}` exists already and is left as it is", path.display())))
        }
        Err(error) => Err(failed(path, &error)),
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("`{}`: {error}", path.display()))
}
