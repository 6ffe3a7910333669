//! Shared by `hosts`, `wire`, `unwire` and other commands that work on hosts' files.

mod witness;

pub(crate) use witness::Witness;

use crate::arguments::Options;
use crate::arguments::hosts::Selection;
use crate::failure::{Exit, Failure};
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::target::{JOURNAL, home_path, near};
use hosts::{
    Aim, Choice, Config, Done, Host, Plan, Reason, Scope, Server, Surroundings, WireError,
    WiringState, Workshop,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Where hosts' files are on this machine and in the current project.
pub(crate) fn surroundings() -> Result<Surroundings, Failure> {
    let no_home = || Failure::usage("no home directory is known: set HOME");
    Surroundings::here(projects()).ok_or_else(no_home)
}

/// The current folder, and the root of its repository.
fn projects() -> Vec<PathBuf> {
    let Ok(here) = std::env::current_dir() else { return Vec::new() };
    let root = here.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
    let root = root.filter(|root| *root != here);
    std::iter::once(here).chain(root).collect()
}

/// The means to wire files: this program or the one that was named, and the journal in our home.
pub(crate) fn workshop(options: &Options, program: Option<&Path>) -> Result<Workshop, Failure> {
    let home = std::path::absolute(home_path(options)?)?;
    let program = match program {
        Some(path) => std::path::absolute(path)?,
        None => std::env::current_exe()?,
    };
    let usual = std::env::home_dir().map(|home| home.join(".holdpoint"));
    let named = Some(&home).filter(|home| usual.as_ref() != Some(*home));
    let journal = home.join(JOURNAL);
    // A journal that cannot be redacted now is tried again the next time.
    let _ = hosts::redact_journal(&journal);
    Workshop::new(&program, &journal, named.map(PathBuf::as_path)).map_err(Failure::usage)
}

/// The files to work on: the one that was named, or those of the hosts.
pub(crate) fn configs(
    hosts: &[&'static Host],
    config: Option<&Path>,
    surroundings: &Surroundings,
) -> Result<Vec<Config>, Failure> {
    let Some(path) = config else { return Ok(hosts::locate(surroundings, hosts)) };
    if hosts.len() > 1 {
        return Err(Failure::usage("`--config` is one file: name one host with it at most"));
    }
    let named = Config::named(path, hosts.first().copied(), surroundings);
    Ok(vec![named.map_err(Failure::usage)?])
}

/// The same files, with ids that no other file uses: pins and holds of one server must not count
/// for another.
pub(crate) fn keep_apart(configs: Vec<Config>, options: &Options) -> Result<Vec<Config>, Failure> {
    // Without a usable home, the hosts' own files are still known.
    let others = crate::hosting::files(options).or_else(|_| crate::hosting::files_of_hosts())?;
    Ok(hosts::keep_apart(configs, &others))
}

/// One file in the JSON output of `wire` and `unwire`.
#[derive(Debug, Serialize)]
struct FileDocument {
    host: &'static str,
    path: String,
    scope: &'static str,
    /// planned, done, unchanged or failed
    outcome: &'static str,
    changed: Vec<ServerDocument>,
    unchanged: Vec<ServerDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ServerDocument {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    pub(crate) id: String,
    /// unwired, wired, gateway or unguarded
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// The address of a gateway, up to where a secret may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gateway: Option<String>,
}

impl ServerDocument {
    pub(crate) fn of(server: &Server) -> ServerDocument {
        let (state, reason, program) = match &server.state {
            WiringState::Unwired => ("unwired", None, None),
            WiringState::Wired { program, .. } => ("wired", None, Some(program.clone())),
            WiringState::Gateway { .. } => ("gateway", None, None),
            WiringState::Unguarded(reason) => ("unguarded", Some(reason.code()), None),
        };
        let gateway = match &server.state {
            WiringState::Gateway { url } => Some(origin(url)),
            WiringState::Unwired | WiringState::Wired { .. } | WiringState::Unguarded(_) => None,
        };
        ServerDocument {
            name: server.name.clone(),
            project: server.project.clone(),
            id: server.id.clone(),
            state,
            reason,
            program,
            gateway,
        }
    }
}

/// The scheme and authority of an address. Its path or query may contain a key.
pub(crate) fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

pub(crate) const fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
    }
}

/// The outcome for one file.
#[derive(Debug)]
enum Outcome {
    Planned(Plan),
    Done(Plan, Done),
    Failed(Config, WireError),
}

impl Outcome {
    fn plan(&self) -> Option<&Plan> {
        match self {
            Outcome::Planned(plan) | Outcome::Done(plan, _) => Some(plan),
            Outcome::Failed(..) => None,
        }
    }

    fn document(&self) -> FileDocument {
        let plan = self.plan();
        let config = match self {
            Outcome::Planned(plan) | Outcome::Done(plan, _) => &plan.config,
            Outcome::Failed(config, _) => config,
        };
        let documents = |servers: Option<&[Server]>| {
            servers.unwrap_or_default().iter().map(ServerDocument::of).collect()
        };
        FileDocument {
            host: config.host.id,
            path: config.path.display().to_string(),
            scope: scope_name(config.scope),
            outcome: match self {
                Outcome::Planned(plan) if plan.is_empty() => "unchanged",
                Outcome::Planned(_) => "planned",
                Outcome::Done(..) => "done",
                Outcome::Failed(..) => "failed",
            },
            changed: plan.map(changed).unwrap_or_default(),
            unchanged: documents(plan.map(|plan| plan.unchanged.as_slice())),
            original: match self {
                Outcome::Done(plan, done) if plan.aim == Aim::Unwire => Some(done.is_original),
                _ => None,
            },
            error: match self {
                Outcome::Failed(_, error) => Some(error.to_string()),
                Outcome::Planned(_) | Outcome::Done(..) => None,
            },
        }
    }
}

/// The servers of a plan after it is carried out.
fn changed(plan: &Plan) -> Vec<ServerDocument> {
    let state = match plan.aim {
        Aim::Wire if plan.is_for_gateway() => "gateway",
        Aim::Wire => "wired",
        Aim::Unwire => "unwired",
    };
    let after = |server| ServerDocument { state, program: None, ..ServerDocument::of(server) };
    plan.changed.iter().map(after).collect()
}

/// Plans, shows the plan, asks, and carries it out. `before` is called once the user has agreed,
/// before any file is changed.
pub(crate) fn run(
    aim: Aim,
    workshop: &Workshop,
    configs: &[Config],
    choice: &Choice,
    selection: &Selection,
    options: &Options,
    before: impl FnOnce() -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut outcomes: Vec<Outcome> = configs
        .iter()
        .map(|config| match workshop.plan(config, aim, choice) {
            Ok(plan) => Outcome::Planned(plan),
            Err(error) => Outcome::Failed(config.clone(), error),
        })
        .collect();
    need_known_servers(&outcomes, choice)?;
    if !options.json {
        let is_decided = selection.yes;
        outcomes.iter().for_each(|outcome| show(outcome, choice, options, is_decided));
    }
    let (servers, files) = amount(&outcomes);
    if files > 0 && !selection.dry_run {
        if !selection.yes {
            if options.json {
                return Err(Failure::usage("`--json` does not ask: add `--yes` or `--dry-run`"));
            }
            match &choice.gateway {
                Some(gateway) => ask_about_gateway(&gateway.url, files)?,
                None => ask(aim, servers, files)?,
            }
        }
        let mut witness = Witness::open(options)?;
        witness.need_person(outcomes.iter().filter_map(Outcome::plan))?;
        // Create the home with private permissions.
        store::Home::open(&home_path(options)?)?;
        before()?;
        let carried_out = outcomes.into_iter().map(|outcome| carry_out(workshop, outcome));
        outcomes = carried_out
            .inspect(|outcome| {
                if let Outcome::Done(plan, done) = outcome {
                    witness.record(aim, plan.config.host.id, &done.changed);
                }
            })
            .collect();
    }
    if !selection.dry_run {
        // Failing to remove leftovers is not an error.
        configs.iter().for_each(|config| drop(workshop.tidy(config)));
    }
    if options.json {
        let files: Vec<FileDocument> = outcomes.iter().map(Outcome::document).collect();
        screen::print_json(&serde_json::json!({ "dry_run": selection.dry_run, "files": files }))?;
    } else {
        conclude(aim, &outcomes, selection);
    }
    Ok(exit(&outcomes))
}

fn carry_out(workshop: &Workshop, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Planned(plan) if !plan.is_empty() => match workshop.apply(plan.clone()) {
            Ok(done) => Outcome::Done(plan, done),
            Err(error) => {
                leave_alone(&error);
                Outcome::Failed(plan.config, error)
            }
        },
        other => other,
    }
}

fn leave_alone(error: &WireError) {
    let words = screen::readable(&error.to_string());
    screen::remark(format!("{} {words}", styled(RED.bold(), "left alone:")));
}

/// Fails if a server that was named does not exist: it is a typing mistake.
fn need_known_servers(outcomes: &[Outcome], choice: &Choice) -> Result<(), Failure> {
    let is_known = |wanted: &String| {
        outcomes.iter().any(|outcome| match outcome {
            Outcome::Planned(plan) | Outcome::Done(plan, _) => {
                let mut servers = plan.changed.iter().chain(&plan.unchanged);
                servers.any(|server| server.name == *wanted || server.id == *wanted)
            }
            Outcome::Failed(..) => false,
        })
    };
    match choice.servers.iter().find(|wanted| !is_known(wanted)) {
        Some(wanted) => {
            let names = names_of(outcomes);
            let guess = match near(wanted, &names) {
                Some(meant) => format!("did you mean `{}`? ", screen::readable(meant)),
                None => String::new(),
            };
            Err(Failure::usage(format!(
                "no server `{wanted}` is configured: {guess}`holdpoint hosts` lists those that are"
            )))
        }
        None => Ok(()),
    }
}

/// The names and ids of the servers of all files that could be read, each once.
fn names_of(outcomes: &[Outcome]) -> Vec<&str> {
    let plans = outcomes.iter().filter_map(Outcome::plan);
    let servers = plans.flat_map(|plan| plan.changed.iter().chain(&plan.unchanged));
    let names: BTreeSet<&str> =
        servers.flat_map(|server| [server.name.as_str(), server.id.as_str()]).collect();
    names.into_iter().collect()
}

/// How many servers in how many files would change.
fn amount(outcomes: &[Outcome]) -> (usize, usize) {
    let plans = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Planned(plan) | Outcome::Done(plan, _) if !plan.is_empty() => Some(plan),
        _ => None,
    });
    plans.fold((0, 0), |(servers, files), plan| (servers + plan.changed.len(), files + 1))
}

fn ask(aim: Aim, servers: usize, files: usize) -> Result<(), Failure> {
    let act = match aim {
        Aim::Wire => "Put Holdpoint in front of",
        Aim::Unwire => "Take Holdpoint away from",
    };
    let (servers, files) = (count(servers, "server", "servers"), count(files, "file", "files"));
    ask_whether(&format!("{act} {servers} in {files}?"))
}

fn ask_about_gateway(url: &str, files: usize) -> Result<(), Failure> {
    let files = count(files, "file", "files");
    ask_whether(&format!("Add the gateway at {} to {files}?", origin(url)))
}

fn ask_whether(question: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "there is no terminal to ask at: `--dry-run` shows the plan, `--yes` carries it out",
        ));
    }
    screen::ask(format!("{question} [y/N] "));
    match crate::approver::read_line()?.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::held("nothing was changed")),
    }
}

/// A path as a user writes it, with `~`.
pub(crate) fn short(path: &Path) -> String {
    let home = std::env::home_dir();
    let inside = home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    let text = match inside {
        Some(inside) => Path::new("~").join(inside).display().to_string(),
        None => path.display().to_string(),
    };
    screen::readable(&text)
}

fn show(outcome: &Outcome, choice: &Choice, options: &Options, is_decided: bool) {
    let plan = match outcome {
        Outcome::Planned(plan) | Outcome::Done(plan, _) => plan,
        Outcome::Failed(_, error) => {
            leave_alone(error);
            return;
        }
    };
    let is_chosen = |server: &&Server| {
        choice.servers.is_empty()
            || choice.servers.iter().any(|wanted| *wanted == server.name || *wanted == server.id)
    };
    let is_shown = !options.quiet || !is_decided;
    let left: Vec<&Server> = plan
        .unchanged
        .iter()
        .filter(is_chosen)
        .filter(|server| !server.is_guarded())
        // If a host is only pointed at a gateway, its other servers do not change.
        .filter(|_| choice.gateway.is_none())
        .collect();
    let by_hand = left_by_hand(plan, choice);
    let is_left = match plan.aim {
        Aim::Wire => !left.is_empty(),
        Aim::Unwire => !by_hand.is_empty(),
    };
    if plan.is_empty() && !is_left && !options.verbose {
        return;
    }
    let shared = match plan.config.scope {
        Scope::User => "",
        Scope::Project => "  (of the project: everyone who shares it gets this machine's paths)",
    };
    screen::say(format!(
        "{}  {}{}",
        styled(BOLD, plan.config.host.title),
        short(&plan.config.path),
        styled(YELLOW, shared)
    ));
    if !plan.is_empty() && is_shown {
        show_changes(plan);
    }
    if plan.aim == Aim::Wire {
        for server in left {
            let why = match &server.state {
                WiringState::Unguarded(Reason::SignIn) => {
                    format!(
                        "{}; `wire --sign-in` guards it, and Holdpoint signs in",
                        Reason::SignIn
                    )
                }
                WiringState::Unguarded(reason) => reason.to_string(),
                WiringState::Unwired => "cannot be changed on its own, not guarded".to_owned(),
                WiringState::Wired { .. } | WiringState::Gateway { .. } => continue,
            };
            screen::say(format!("    {}  {}", screen::readable(&server.name), styled(YELLOW, why)));
        }
    }
    for server in by_hand {
        let name = screen::readable(&server.name);
        let why = "was not put there by `wire`, and stays guarded; name it with `--server` to take it out";
        screen::say(format!("    {name}  {}", styled(YELLOW, why)));
    }
}

/// The hand-written gates that `unwire` leaves. Empty if servers were named.
fn left_by_hand<'p>(plan: &'p Plan, choice: &Choice) -> Vec<&'p Server> {
    let is_meant = plan.aim == Aim::Unwire && choice.servers.is_empty();
    let is_guarded = |server: &&Server| matches!(server.state, WiringState::Wired { .. });
    plan.unchanged.iter().filter(|server| is_meant && is_guarded(server)).collect()
}

/// Shows the pieces of text that change, server by server, and nothing around them: the rest of a
/// file may contain secrets.
fn show_changes(plan: &Plan) {
    for (server, parts) in plan.changed.iter().zip(&plan.parts) {
        screen::say(format!("  {}", styled(BOLD, screen::readable(&server.name))));
        for part in parts {
            pieces(&part.removed, RED, '-');
            pieces(&part.added, GREEN, '+');
        }
    }
}

fn pieces(text: &str, style: anstyle::Style, mark: char) {
    let lines = text.lines().map(|line| line.trim_matches([' ', '\t', ',', '\r']));
    for line in lines.filter(|line| !line.is_empty()) {
        screen::say(styled(style, format!("    {mark} {}", screen::readable(line))));
    }
}

fn conclude(aim: Aim, outcomes: &[Outcome], selection: &Selection) {
    let (servers, files) = amount(outcomes);
    let amount =
        format!("{} in {}", count(servers, "server", "servers"), count(files, "file", "files"));
    let verb = match aim {
        Aim::Wire => "wire",
        Aim::Unwire => "unwire",
    };
    if files == 0 {
        screen::say(format!("nothing to {verb}"));
    } else if selection.dry_run {
        screen::say(format!("would {verb} {amount}; nothing was changed"));
    } else {
        let is_pointed = outcomes.iter().filter_map(Outcome::plan).any(Plan::is_for_gateway);
        if is_pointed {
            screen::say(format!(
                "{} {}",
                styled(GREEN.bold(), "pointed at the gateway:"),
                count(files, "host", "hosts")
            ));
            screen::say(styled(
                DIM,
                "restart your hosts; other servers in their files are reached as before",
            ));
            return;
        }
        screen::say(format!("{} {amount}", styled(GREEN.bold(), format!("{verb}d"))));
        if aim == Aim::Wire {
            screen::say(styled(DIM, "restart your hosts, then: holdpoint status"));
        }
    }
}

/// A file that cannot be read is a configuration error; one that cannot be written is an internal
/// error.
fn exit(outcomes: &[Outcome]) -> Exit {
    let mut exit = Exit::Fine;
    for outcome in outcomes {
        match outcome {
            Outcome::Failed(
                _,
                WireError::Read { .. } | WireError::Program { .. } | WireError::Gateway { .. },
            ) => {
                if exit == Exit::Fine {
                    exit = Exit::Usage;
                }
            }
            Outcome::Failed(..) => exit = Exit::Internal,
            Outcome::Planned(_) | Outcome::Done(..) => {}
        }
    }
    exit
}
