//! `holdpoint gateway init`: a commented `gateway.toml` and a folder of policies to begin with. Nothing is overwritten.

use crate::arguments::Options;
use crate::failure::{Exit, Failure};
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
    let text = format!("{}{}", starter(), found_servers());
    // The settings come first: if they are there already, nothing is written at all.
    write_new(&path, &text)?;
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for (name, policy) in STARTER_POLICIES {
        let policy_path = folder.join(name);
        if !policy_path.exists() {
            write_new(&policy_path, policy)?;
        }
    }
    if !options.quiet {
        screen::say(format!("{} and {} are written", path.display(), folder.display()));
        screen::say(
            "next: add a `[[server]]`, `holdpoint gateway --check`, `holdpoint key create --sub NAME`",
        );
    }
    Ok(Exit::Fine)
}

/// Names the servers of this user's hosts. Their launches are not copied: they may have secrets in them.
fn found_servers() -> String {
    let files = hosting::files_of_hosts().unwrap_or_default();
    let mut lines = Vec::new();
    for config in &files {
        for server in config.servers().unwrap_or_default() {
            let name: String = server.name.chars().filter(|c| !c.is_control()).collect();
            lines.push(format!("#   {name}  ({}, {})\n", config.host.title, config.path.display()));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "\n# Servers of hosts on this machine. Give each a `[[server]]` as above, with its variables as \"env:NAME\" or\n# \"file:PATH\", never their values. A command of trust `community` or `unknown` needs a sandbox, which this version\n# does not have: it starts only with `danger_unconfined = true`, with all rights of the gateway.\n{}",
        lines.concat()
    )
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
