//! The `holdpoint` command: reads arguments, calls the libraries, prints, and exits with the codes of
//! `docs/exit-codes.md`. It decides nothing itself.

mod approver;
mod arguments;
mod behavior;
mod commands;
mod configuration;
mod confinement;
mod csp;
mod desktop;
mod disk;
mod failure;
mod gate_program;
mod gate_session;
mod gateway_file;
mod hosting;
mod judging;
mod last_check;
mod launch_identity;
mod layout;
mod mistyped;
mod observation;
mod pager;
mod people_events;
mod policy_inputs;
mod relaunch;
mod remote_gateway;
mod report;
mod scenario;
mod screen;
mod server_text;
mod settled_program;
mod sharing;
mod side_by_side;
mod sign_in;
mod target;
mod upper_tiers;
mod vouching;

use arguments::{Arguments, Command};
use failure::{Exit, Failure};
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Must come first: the helper confines itself while the process has a single thread.
    if let Some(code) = sandbox::helper_main() {
        return code;
    }
    std::panic::set_hook(Box::new(|panic| screen::admit_fault(panic.location())));
    std::panic::catch_unwind(command).unwrap_or_else(|_| Exit::Internal.into())
}

fn command() -> ExitCode {
    #[cfg(debug_assertions)]
    if let Ok(asked) = std::env::var("HOLDPOINT_TEST_PANIC") {
        contract::trip::arm(&asked);
    }
    #[cfg(all(debug_assertions, unix))]
    if let Ok(asked) = std::env::var("HOLDPOINT_TEST_KILL") {
        contract::trip::arm_with(&asked, |_| {
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        });
    }
    if let Some(words) = commands::run::words_to_become() {
        return commands::run::become_server(words);
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are results, not errors; clap prints each where it belongs.
            if !error.use_stderr() {
                let _ = error.print();
                return Exit::Fine.into();
            }
            let words = std::env::args_os().skip(1);
            let words: Vec<String> =
                words.map(|word| word.to_string_lossy().into_owned()).collect();
            mistyped::explain(&error, &words, true).lines().for_each(screen::remark);
            if asks_for_json() {
                screen::print_failure(&Failure::usage(mistyped::explain(&error, &words, false)));
            }
            return Exit::Usage.into();
        }
    };
    match run(&arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = failure.explained_by_disk(&arguments.options);
            let is_shown = std::io::stderr().is_terminal() || arguments.command.shows_server_text();
            let failure = if is_shown { failure.with_server_text() } else { failure };
            screen::complain(&failure, arguments.options.json);
            failure.exit.into()
        }
    }
}

/// Whether `--json` was given, for arguments that could not be parsed. Words after `--` belong to
/// the server's command.
fn asks_for_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = &arguments.options;
    match &arguments.command {
        Command::Run(command) => commands::run::run(command, options),
        Command::Sandbox(command) => commands::sandbox::run(command, options),
        Command::SignIn(command) => commands::sign_in::sign_in(command, options),
        Command::SignOut(command) => commands::sign_in::sign_out(command, options),
        Command::Demo(command) => commands::demo::run(command, options),
        Command::Diff(command) => commands::diff::run(command, options),
        Command::Hash(command) => commands::hash::run(command, options),
        Command::Capture(command) => commands::capture::run(command, options),
        Command::Screen(command) => commands::screen::run(command, options),
        Command::Policy(command) => commands::policy::run(command, options),
        Command::Conformance(command) => commands::conformance::run(command, options),
        Command::Pin(command) => commands::pin::run(command, options),
        Command::Pins(command) => commands::pins::run(command, options),
        Command::Check(command) => commands::check::run(command, options),
        Command::Status(command) => commands::status::run(command, options),
        Command::Show(command) => commands::show::run(command, options),
        Command::Review(command) => commands::review::run(command, options),
        Command::Approve(command) => commands::approve::run(command, options),
        Command::Quarantine(command) => commands::lifecycle::quarantine(command, options),
        Command::Release(command) => commands::lifecycle::release(command, options),
        Command::Rollback(command) => commands::lifecycle::rollback(command, options),
        Command::History(command) => commands::history::run(command, options),
        Command::Stats(command) => commands::stats::run(command, options),
        Command::Digest(command) => commands::digest::run(command, options),
        Command::Calibrate(command) => commands::calibrate::run(command, options),
        Command::Evaluate(command) => commands::evaluate::run(command, options),
        Command::Incident(command) => commands::incident::run(command, options),
        Command::Key(command) => commands::key::run(command, options),
        Command::Attest(command) => commands::attest::run(command, options),
        Command::Receipts(command) => commands::receipts::run(command, options),
        Command::Watch(command) => commands::watch::run(command, options),
        Command::Doctor(command) => commands::doctor::run(command, options),
        Command::Uninstall(command) => commands::uninstall::run(command, options),
        Command::Completions(command) => commands::completions::run(command),
        Command::Man(command) => commands::man::run(command, options),
        Command::Help(command) => commands::help::run(command, options),
        Command::Hosts(command) => commands::hosts::run(command, options),
        Command::Wire(command) => commands::wire::run(command, options),
        Command::Unwire(command) => commands::unwire::run(command, options),
        Command::Scenario(command) => scenario::run(command),
        Command::Gateway(command) => commands::gateway::run(command, options),
        Command::Directory(command) => commands::directory::run(command, options),
        Command::Network(command) => commands::network::run(command, options),
        Command::Crawl(command) => commands::crawl::run(command, options),
        Command::Inventory(command) => commands::inventory::run(command, options),
        Command::Approvals(command) => commands::approvals::run(command, options),
        Command::Store(command) => commands::store::run(command, options),
    }
}
