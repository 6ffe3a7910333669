//! `holdpoint uninstall`: removes the gate from every host, then removes the watcher and the
//! binary. Pins and receipts stay unless `--purge` is given.

mod purge;

use crate::approver;
use crate::arguments::Options;
use crate::arguments::uninstall::UninstallCommand;
use crate::commands::wiring::Witness;
use crate::commands::{watch, wiring};
use crate::failure::{Exit, Failure};
use crate::hosting;
use crate::screen::{self, DIM, YELLOW, styled};
use crate::target::home_path;
use hosts::{Aim, Choice, Plan, Workshop};
use purge::Purge;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The steps of an uninstall.
#[derive(Debug)]
struct Farewell {
    workshop: Workshop,
    plans: Vec<Plan>,
    /// Files that cannot be unwired, and why. If there are any, the binary that their entries start
    /// has to stay.
    left: Vec<Left>,
    has_watcher: bool,
    /// The binary in the place where the installer puts it. Other installations are left to the
    /// tool that made them.
    program: Option<PathBuf>,
    /// The running program, if it is not removed.
    kept: Option<Kept>,
    purge: Option<Purge>,
}

/// A program that stays, and the command that removes it.
#[derive(Debug, Serialize)]
struct Kept {
    path: PathBuf,
    remove: String,
}

#[derive(Debug, Serialize)]
struct Left {
    path: PathBuf,
    problem: String,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    done: bool,
    unwired: Vec<&'a PathBuf>,
    left: &'a [Left],
    watcher: bool,
    program: Option<&'a PathBuf>,
    program_kept: Option<&'a Kept>,
    home: Option<&'a PathBuf>,
}

pub(crate) fn run(command: &UninstallCommand, options: &Options) -> Result<Exit, Failure> {
    let farewell = Farewell::of(command, options)?;
    if !options.json {
        farewell.say(options);
    }
    if command.dry_run || !farewell.left.is_empty() {
        if options.json {
            screen::print_json(&farewell.document(false))?;
        }
        return Ok(if farewell.left.is_empty() { Exit::Fine } else { refuse_removal() });
    }
    confirm(command)?;
    let witness = Witness::open(options)?;
    witness.need_person(farewell.plans.iter())?;
    let document = serde_json::json!(farewell.document(true));
    let last = farewell.last_words();
    farewell.carry_out(witness)?;
    if options.json {
        screen::print_json(&document)?;
    } else {
        screen::say(last);
    }
    Ok(Exit::Fine)
}

/// If an entry still names the binary, the binary stays: otherwise its server would not start.
fn refuse_removal() -> Exit {
    screen::remark(
        "nothing is removed while a host's file names holdpoint and cannot be changed: fix it, or remove the entry by hand, then type `holdpoint uninstall` again",
    );
    Exit::Usage
}

fn confirm(command: &UninstallCommand) -> Result<(), Failure> {
    if command.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "nothing was removed: without a terminal to ask at, type `holdpoint uninstall --yes`",
        ));
    }
    let what = if command.purge { " and delete all pins and receipts" } else { "" };
    screen::ask(format!("Do this{what}? [y/N] "));
    match approver::read_line()?.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::held("nothing was removed")),
    }
}

impl Farewell {
    fn of(command: &UninstallCommand, options: &Options) -> Result<Farewell, Failure> {
        let workshop = wiring::workshop(options, None)?;
        let (mut plans, mut left) = (Vec::new(), Vec::new());
        // The binary is removed, so also unwire entries that a person wrote: they could not start
        // their servers any more.
        let everything = Choice { by_hand: true, ..Choice::default() };
        for config in hosting::files(options)? {
            match workshop.plan(&config, Aim::Unwire, &everything) {
                Ok(plan) if plan.unchanged.iter().any(|server| server.names_gate) => {
                    let problem = "has an entry that names holdpoint and cannot be edited";
                    left.push(Left { path: config.path, problem: problem.to_owned() });
                }
                Ok(plan) if plan.is_empty() => {}
                Ok(plan) => match workshop.check(&plan) {
                    Ok(()) => plans.push(plan),
                    Err(error) => {
                        left.push(Left { path: config.path, problem: error.to_string() });
                    }
                },
                // Assume that an unreadable file that does not mention holdpoint does not start it.
                Err(error) if names_us(&config.path) => {
                    left.push(Left { path: config.path, problem: error.to_string() });
                }
                Err(_) => {}
            }
        }
        let user_home = hosting::surroundings_of_user()?.home;
        let installed = user_home.join(".local/bin").join(hosting::PROGRAM);
        let purge = match command.purge {
            true => Purge::of(&home_path(options)?, &user_home)?,
            false => None,
        };
        let program = Some(installed).filter(|installed| installed.is_file());
        let kept =
            std::env::current_exe().ok().filter(|running| !is_same(running, program.as_deref()));
        Ok(Farewell {
            workshop,
            plans,
            left,
            has_watcher: watch::is_installed()?,
            program,
            kept: kept.map(|path| Kept { remove: removal_of(&path), path }),
            purge,
        })
    }

    fn document(&self, done: bool) -> Document<'_> {
        Document {
            done,
            unwired: self.plans.iter().map(|plan| &plan.config.path).collect(),
            left: &self.left,
            watcher: self.has_watcher,
            program: self.program.as_ref(),
            program_kept: self.kept.as_ref(),
            home: self.purge.as_ref().map(|purge| &purge.home),
        }
    }

    fn say(&self, options: &Options) {
        if !self.plans.is_empty() && !options.quiet {
            screen::say(styled(
                DIM,
                "close your hosts first: one that runs may write its file back",
            ));
        }
        for plan in &self.plans {
            let number = crate::report::count(plan.changed.len(), "server", "servers");
            let (title, path) = (plan.config.host.title, screen::path(&plan.config.path));
            screen::say(format!("unwire  {title}, {number}  {}", styled(DIM, path)));
        }
        for Left { path, problem } in &self.left {
            let problem = screen::readable(problem);
            screen::say(format!("{}  {}: {problem}", styled(YELLOW, "left"), screen::path(path)));
        }
        if self.has_watcher {
            screen::say("remove  the watcher");
        }
        if let Some(program) = &self.program {
            screen::say(format!("remove  {}", screen::path(program)));
        }
        if let Some(Kept { path, remove }) = &self.kept {
            let how = styled(DIM, format!("(not put there by the installer; remove it: {remove})"));
            screen::say(format!("keep    {}  {how}", screen::path(path)));
        }
        match &self.purge {
            Some(Purge { home }) => {
                screen::say(format!(
                    "remove  all pins, receipts and settings in {}",
                    screen::path(home)
                ));
            }
            None if !options.quiet => {
                screen::say(styled(DIM, "keep    pins and receipts (remove them: --purge)"));
            }
            None => {}
        }
    }

    /// The final message: what is left, with the commands to remove it.
    fn last_words(&self) -> String {
        match &self.kept {
            None => "done".to_owned(),
            Some(Kept { path, remove }) => {
                format!("done, except for the program itself, {}: {remove}", screen::path(path))
            }
        }
    }

    /// The watcher is removed first, or it would react to the changes of hosts' files; the binary
    /// last, or an entry could name a missing file.
    fn carry_out(self, mut witness: Witness) -> Result<(), Failure> {
        let named = |path: &PathBuf, error: std::io::Error| {
            Failure::internal(format!("`{}`: {error}", path.display()))
        };
        if self.has_watcher {
            watch::remove_service()?;
        }
        for plan in self.plans {
            let (host, changed) = (plan.config.host.id, plan.changed.clone());
            unwire(&self.workshop, plan)?;
            witness.record(Aim::Unwire, host, &changed);
        }
        // Close the home before it is deleted.
        drop(witness);
        if let Some(purge) = &self.purge {
            for left in purge.carry_out()? {
                screen::remark(format!(
                    "left, because it is not Holdpoint's: {}",
                    screen::path(&left)
                ));
            }
        }
        if let Some(program) = &self.program {
            std::fs::remove_file(program).map_err(|error| named(program, error))?;
        }
        Ok(())
    }
}

/// Unwires a file and checks it again: a running host may write back what it had read, and the
/// binary must not be removed then.
fn unwire(workshop: &Workshop, plan: Plan) -> Result<(), Failure> {
    let (config, aim) = (plan.config.clone(), plan.aim);
    workshop.apply(plan).map_err(Failure::internal)?;
    let again = workshop.plan(&config, aim, &Choice::default()).map_err(Failure::internal)?;
    if again.is_empty() {
        return Ok(());
    }
    Err(Failure::held(format!(
        "`{}` was written back by its host: close it, then type `holdpoint uninstall` again; the binary is still there",
        config.path.display()
    )))
}

fn is_same(one: &Path, other: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    other.is_some_and(|other| real(one) == real(other))
}

/// The command that removes a program that did not come from the installer.
fn removal_of(program: &Path) -> String {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    match program.parent() {
        Some(folder) if is_same(folder, cargo.map(|cargo| cargo.join("bin")).as_deref()) => {
            "cargo uninstall holdpoint".to_owned()
        }
        _ => format!("rm {}", gate::shell::path(program)),
    }
}

/// Whether a file that cannot be parsed mentions holdpoint at all.
fn names_us(path: &std::path::Path) -> bool {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(hosts::MAX_FILE_BYTES).read_to_end(&mut bytes));
    read.is_err() || String::from_utf8_lossy(&bytes).contains("holdpoint")
}
