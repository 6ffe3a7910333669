//! A program that is admitted separately, while another part of the gate starts it for its callers.
//! For each check, the program is started in a clean environment, asked for its handshake, and
//! ended.

use super::local::{Answered, LocalServer, Startable};
use crate::stdio::handover::handover;
use attest::{Denial, PackageSighting, Program};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::StdioLaunch;
use wire::attestation::Greeting;

#[derive(Debug)]
pub struct CleanProgram {
    launch: StdioLaunch,
    file: PathBuf,
    become_with: Option<PathBuf>,
    start_timeout: Duration,
    server: LocalServer,
    /// The package that the program belonged to at the last check.
    package: Option<PackageSighting>,
}

impl CleanProgram {
    pub fn new(
        launch: StdioLaunch,
        file: PathBuf,
        become_with: Option<PathBuf>,
        start_timeout: Duration,
    ) -> CleanProgram {
        let server = unstarted(&launch, &file, become_with.as_ref(), start_timeout);
        CleanProgram { launch, file, become_with, start_timeout, server, package: None }
    }
}

/// A program that is never handed over to a session.
fn unstarted(
    launch: &StdioLaunch,
    file: &Path,
    become_with: Option<&PathBuf>,
    start_timeout: Duration,
) -> LocalServer {
    let (handover, _, _) = handover();
    LocalServer::new(launch.clone(), file.to_owned(), become_with.cloned(), start_timeout, handover)
}

impl Startable for CleanProgram {
    /// Every check is complete: a program that is started later is the one that was there at the
    /// last check.
    fn is_started(&self) -> bool {
        false
    }

    fn on_disk(&mut self) -> Program {
        self.package = None;
        self.server.on_disk()
    }

    fn is_launcher(&self) -> bool {
        self.server.is_launcher()
    }

    fn ask_cleanly(&mut self, greeting: Greeting) -> Result<Answered, Denial> {
        let CleanProgram { launch, file, become_with, start_timeout, .. } = self;
        // The program may have been replaced since the last check.
        self.server = unstarted(launch, file, become_with.as_ref(), *start_timeout);
        let answered = self.server.ask_cleanly(greeting)?;
        self.package = Some(answered.program.package.clone());
        Ok(answered)
    }

    fn start(&mut self) -> Result<(), Denial> {
        Ok(())
    }

    fn running(&mut self) -> Program {
        let mut program = self.server.on_disk();
        if let Some(package) = &self.package {
            program.package = package.clone();
        }
        program
    }

    fn hand_over(&mut self) -> Result<(), Denial> {
        Ok(())
    }

    fn stop(&mut self) {}
}
