//! A program under the enclaved flavor: it is admitted first, and only then started with the
//! operator's environment.
//!
//! What the document binds (the program's file, its package) is read from files before the start.
//! If only a running process shows it, or if the document is in the handshake, the program is first
//! started in a clean environment, asked for its handshake, and ended. The process that is finally
//! used is verified again before it receives its first message.

use super::Terms;
use super::source::{self, FoundDocument, MAX_GREETING_BYTES, Source};
use crate::package::PackageFinder;
use crate::process::{Environment, ServerGroup, ServerProcess, ServerStart, StandardError};
use crate::program::{digests_of, file_identity};
use crate::stdio::handover::Handover;
use attest::{
    Binding, Denial, Digest, MAX_DOCUMENT_BYTES, PackageSighting, Program, Reason, Target,
    VerifiedAttestation,
};
use std::io;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};
use wire::StdioLaunch;
use wire::attestation::{FetchError, FetchLimits, Greeting, greet_program};

/// The interval for checking a launcher's processes until the package runs.
const LOOK: Duration = Duration::from_millis(50);
/// How long an unused program may take to exit by itself.
const END_GRACE: Duration = Duration::from_secs(1);

/// A program that can be started, and what is known about it at each stage.
pub trait Startable: Send {
    fn is_started(&self) -> bool;

    /// The program according to its files.
    fn on_disk(&mut self) -> Program;

    /// Whether only a running process shows which package the program belongs to.
    fn is_launcher(&self) -> bool;

    /// Starts the program in a clean environment, does a handshake on the gate's own behalf, and
    /// ends it.
    fn ask_cleanly(&mut self, greeting: Greeting) -> Result<Answered, Denial>;

    /// Starts the program with its full environment. Nothing is sent to it.
    fn start(&mut self) -> Result<(), Denial>;

    /// The started program, according to its processes.
    fn running(&mut self) -> Program;

    /// Lets the session communicate with the started program.
    fn hand_over(&mut self) -> Result<(), Denial>;

    /// Ends a program that was started but not handed over.
    fn stop(&mut self);
}

/// A program's response in a clean environment, and the program as it ran.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Its response to the handshake; `None` if it refused.
    pub handshake: Option<String>,
    pub program: Program,
}

/// Admits a program and starts it, or leaves it unstarted.
pub(super) fn admit(
    server: &mut dyn Startable,
    bindings: &[Binding],
    source: &Source,
    terms: &Terms,
    greeting: Greeting,
) -> (Result<VerifiedAttestation, Denial>, Option<FoundDocument>) {
    let verify = |document: &[u8], program: &Program| {
        terms.verify(document, Target::Local { program, bindings })
    };
    let (found, before) = match source {
        Source::File(path) => match source::read(path, MAX_DOCUMENT_BYTES) {
            Ok(bytes) => {
                let on_disk = verify(&bytes, &server.on_disk());
                let outcome = match on_disk {
                    Err(denial)
                        if denial.reason() == Reason::HostNotBound && server.is_launcher() =>
                    {
                        let answered = server.ask_cleanly(greeting);
                        answered.and_then(|answered| verify(&bytes, &answered.program))
                    }
                    outcome => outcome,
                };
                (Some(FoundDocument { bytes, is_in_band: false }), outcome)
            }
            Err(denial) => (None, Err(denial)),
        },
        Source::InBand | Source::Published(_) => match server.ask_cleanly(greeting) {
            Ok(Answered { handshake, program }) => {
                match handshake.as_deref().and_then(source::found_in) {
                    Some(found) => {
                        let outcome = verify(&found.bytes, &program);
                        (Some(found), outcome)
                    }
                    None => (None, Err(Denial::unattested())),
                }
            }
            Err(denial) => (None, Err(denial)),
        },
    };
    let outcome = match (&found, before) {
        (Some(found), Ok(_)) => server.start().and_then(|()| {
            let outcome = verify(&found.bytes, &server.running());
            let outcome = outcome.and_then(|verified| server.hand_over().map(|()| verified));
            if outcome.is_err() {
                server.stop();
            }
            outcome
        }),
        (_, before) => before,
    };
    (outcome, found)
}

/// A program on this machine.
#[derive(Debug)]
pub struct LocalServer {
    launch: StdioLaunch,
    /// Where the program was found.
    file: PathBuf,
    /// The path of this program, through which the server is started on Linux.
    become_with: Option<PathBuf>,
    start_timeout: Duration,
    handover: Handover,
    /// The file's digests, and the identity of the file when they were computed.
    digests: Option<(String, Vec<Digest>)>,
    /// The program's response in a clean environment. It is asked only once.
    answered: Option<Answered>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Unstarted,
    Started(Box<StartedServer>, PackageFinder),
    HandedOver(PackageFinder),
}

/// A process with its pipes.
#[derive(Debug)]
pub struct StartedServer {
    pub process: ServerProcess,
    pub input: ChildStdin,
    pub output: ChildStdout,
}

impl LocalServer {
    pub fn new(
        launch: StdioLaunch,
        file: PathBuf,
        become_with: Option<PathBuf>,
        start_timeout: Duration,
        handover: Handover,
    ) -> LocalServer {
        LocalServer {
            launch,
            file,
            become_with,
            start_timeout,
            handover,
            digests: None,
            answered: None,
            stage: Stage::Unstarted,
        }
    }

    /// The digests of the program's current file. They are computed again only if it changed,
    /// because a large file takes long.
    fn digests(&mut self) -> Vec<Digest> {
        let identity = file_identity(&self.file);
        if let (Some((known, digests)), Some(now)) = (&self.digests, &identity)
            && known == now
        {
            return digests.clone();
        }
        let digests = digests_of(&self.file).unwrap_or_default();
        self.digests = identity.map(|identity| (identity, digests.clone()));
        digests
    }

    fn finder(&self, group: Option<ServerGroup>) -> PackageFinder {
        PackageFinder::new(&self.file, &self.launch, group)
    }

    fn start_as(&self, group: ServerGroup, environment: Environment) -> ServerStart {
        let become_with = self.become_with.clone();
        ServerStart { group, become_with, environment, stderr: StandardError::Ours }
    }

    fn not_started(&self, error: &io::Error) -> Denial {
        let program = self.file.display();
        Denial::fetch_failed(format!("the program `{program}` could not be started: {error}"))
    }

    fn not_greeted(&self, error: &FetchError) -> Denial {
        let why = match error {
            FetchError::NotStarted(error) => return self.not_started(error),
            FetchError::Ended => "it ended without an answer".to_owned(),
            FetchError::Slow(_) => "it did not answer in time".to_owned(),
            error => error.to_string(),
        };
        Denial::fetch_failed(format!(
            "the program was started without your environment to ask for its document, and {why}; \
             name a document for it: `--attestation FILE`"
        ))
    }
}

impl Startable for LocalServer {
    fn is_started(&self) -> bool {
        matches!(self.stage, Stage::HandedOver(_))
    }

    fn on_disk(&mut self) -> Program {
        let package = self.finder(None).look();
        Program { package, file: self.digests() }
    }

    fn is_launcher(&self) -> bool {
        self.finder(None).is_launched()
    }

    fn ask_cleanly(&mut self, greeting: Greeting) -> Result<Answered, Denial> {
        if let Some(answered) = &self.answered {
            return Ok(answered.clone());
        }
        let group = ServerGroup::default();
        let file = self.digests();
        let mut finder = self.finder(Some(group.clone()));
        let start = self.start_as(group, Environment::Clean);
        let limits = FetchLimits { bytes: MAX_GREETING_BYTES, patience: self.start_timeout };
        let greeted = greet_program(&self.launch, start, greeting, limits, || finder.look());
        let (handshake, package) = greeted.map_err(|error| self.not_greeted(&error))?;
        let answered = Answered { handshake, program: Program { package, file } };
        self.answered = Some(answered.clone());
        Ok(answered)
    }

    fn start(&mut self) -> Result<(), Denial> {
        let group = self.handover.group();
        let start = self.start_as(group.clone(), Environment::Whole);
        let (process, input, output) = ServerProcess::start_as(&self.launch, start)
            .map_err(|error| self.not_started(&error))?;
        let started = StartedServer { process, input, output };
        self.stage = Stage::Started(Box::new(started), self.finder(Some(group)));
        Ok(())
    }

    fn running(&mut self) -> Program {
        let file = self.digests();
        let until = Instant::now() + self.start_timeout;
        let (finder, is_new) = match &mut self.stage {
            Stage::Unstarted => return Program { file, ..Program::default() },
            Stage::Started(_, finder) => (finder, true),
            Stage::HandedOver(finder) => (finder, false),
        };
        loop {
            let is_launched = finder.is_launched();
            let package = finder.look();
            let is_known = matches!(package, PackageSighting::Known(_));
            // A launcher takes a while until the package's own process runs.
            if is_known || !is_new || !is_launched || Instant::now() >= until {
                return Program { package, file };
            }
            std::thread::sleep(LOOK);
        }
    }

    fn hand_over(&mut self) -> Result<(), Denial> {
        match std::mem::replace(&mut self.stage, Stage::Unstarted) {
            Stage::Started(started, finder) => match self.handover.give(*started) {
                Ok(()) => {
                    self.stage = Stage::HandedOver(finder);
                    Ok(())
                }
                Err(started) => {
                    self.stage = Stage::Started(started, finder);
                    Err(Denial::fetch_failed("the session has ended"))
                }
            },
            stage => {
                self.stage = stage;
                Ok(())
            }
        }
    }

    fn stop(&mut self) {
        if let Stage::Started(started, _) = std::mem::replace(&mut self.stage, Stage::Unstarted) {
            let StartedServer { process, input, output } = *started;
            drop((input, output));
            process.end(END_GRACE);
        }
    }
}

#[cfg(test)]
mod tests;
