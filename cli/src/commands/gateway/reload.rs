//! `holdpoint gateway reload`: tells the gateway of this home to read its settings again, and
//! reports the result.

use super::process_file::{GatewayProcess, find};
use crate::arguments::Options;
use crate::failure::{Exit, Failure};
use crate::screen;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a reload may take.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(home: &Path, config: Option<&Path>, options: &Options) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let running = wait_for(home, begun, |_| true)?;
    if let Some(named) = config
        && std::path::absolute(named)? != running.config
    {
        return Err(Failure::usage(format!(
            "the gateway that runs from this home was started with `{}`: restart it to use another file",
            running.config.display()
        )));
    }
    // Report a mistake here without signalling the gateway, which would refuse the file as well.
    super::read_settings(&running.config, home)?;
    hang_up(running.pid)?;
    let after = wait_for(home, begun, |process| process.reloads > running.reloads)?;
    match after.last {
        Some((true, sentence)) => {
            if !options.quiet {
                screen::say(sentence);
            }
            Ok(Exit::Fine)
        }
        Some((false, sentence)) => Err(Failure::usage(sentence)),
        None => Err(Failure::internal("the gateway did not report the result of the reload")),
    }
}

fn wait_for(
    home: &Path,
    begun: Instant,
    is_it: impl Fn(&GatewayProcess) -> bool,
) -> Result<GatewayProcess, Failure> {
    loop {
        match find(home)? {
            Some(process) if is_it(&process) => return Ok(process),
            None => return Err(Failure::unreachable("no gateway runs from this home")),
            Some(_) if begun.elapsed() < PATIENCE => std::thread::sleep(POLL_INTERVAL),
            Some(_) => {
                let sentence = "the gateway did not report the result of the reload in time";
                return Err(Failure::unreachable(sentence));
            }
        }
    }
}

#[cfg(unix)]
fn hang_up(pid: i32) -> Result<(), Failure> {
    let process = rustix::process::Pid::from_raw(pid)
        .filter(|process| *process != rustix::process::Pid::INIT)
        .ok_or_else(|| Failure::internal("`gateway.pid` names no process"))?;
    rustix::process::kill_process(process, rustix::process::Signal::HUP)
        .map_err(|error| Failure::usage(format!("the gateway cannot be signalled: {error}")))
}

#[cfg(not(unix))]
fn hang_up(_: i32) -> Result<(), Failure> {
    Err(Failure::usage("this system has no signal for it: restart the gateway"))
}
