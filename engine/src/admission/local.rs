//! A program under the enclaved flavor: it is admitted first and started with the operator's environment after.
//!
//! What the document binds (the program's file, its package) is read from files before the start. If only a running
//! process shows it, or if the document is in the handshake, the program is started once in a clean environment, asked, and
//! ended. What is started in the end is verified again before it gets its first message.

use super::Terms;
use super::source::{self, FoundDocument, MAX_GREETING_BYTES, Source};
use crate::handover::Handover;
use crate::package::PackageFinder;
use crate::process::{Environment, ServerGroup, ServerProcess};
use crate::program::{digests_of, file_identity};
use attest::{
    Binding, Denial, Digest, MAX_DOCUMENT_BYTES, PackageSighting, Program, Reason, Target,
    VerifiedAttestation,
};
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use wire::StdioLaunch;
use wire::attestation::Greeting;
use wire::envelope::{Envelope, Kind, Outcome, Scanned, scan};
use wire::lines::{Line, LineReader};

/// How often a launcher's processes are looked at until the package runs.
const LOOK: Duration = Duration::from_millis(50);
/// How long the program may take to end by itself after the clean start, and again after each signal.
const END_GRACE: Duration = Duration::from_secs(1);

/// A program that can be started, and what is known of it at each stage.
pub trait Startable: Send {
    fn is_started(&self) -> bool;

    /// The program as its files describe it.
    fn on_disk(&mut self) -> Program;

    /// Whether only a running process shows which package the program is.
    fn is_launcher(&self) -> bool;

    /// Starts the program in a clean environment, greets it as the gate itself, and ends it.
    fn ask_cleanly(&mut self, greeting: Greeting) -> Result<Answered, Denial>;

    /// Starts the program with its whole environment. Nothing is sent to it.
    fn start(&mut self) -> Result<(), Denial>;

    /// The program that was started, as it runs.
    fn running(&mut self) -> Program;

    /// Lets the session speak to the program that was started.
    fn hand_over(&mut self) -> Result<(), Denial>;

    /// Ends a program that was started and not handed over.
    fn stop(&mut self);
}

/// What a program answered in a clean environment, and what it was while it ran.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Its answer to the handshake; `None` if it refused.
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

/// A program of this machine.
#[derive(Debug)]
pub struct LocalServer {
    launch: StdioLaunch,
    /// Where the program was found.
    file: PathBuf,
    /// This program, which becomes the server on Linux.
    become_with: Option<PathBuf>,
    start_timeout: Duration,
    handover: Handover,
    /// The digests of the file, and the file that they were made of.
    digests: Option<(String, Vec<Digest>)>,
    /// What the program answered in a clean environment. It is asked once.
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

    /// The digests of the program's file as it is now. A large file takes long, so they are made anew only if it changed.
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

    fn launched(
        &self,
        group: &ServerGroup,
        environment: Environment,
    ) -> Result<StartedServer, Denial> {
        let started =
            ServerProcess::start_in(group, &self.launch, self.become_with.clone(), environment);
        let (process, input, output) = started.map_err(|error| {
            let program = self.file.display();
            Denial::fetch_failed(format!("the program `{program}` could not be started: {error}"))
        })?;
        Ok(StartedServer { process, input, output })
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
        let StartedServer { process, mut input, output } =
            self.launched(&group, Environment::Clean)?;
        let handshake = ask(&mut input, output, greeting, self.start_timeout);
        let file = self.digests();
        let package = self.finder(Some(group.clone())).look();
        drop(input);
        end(process, &group);
        let answered = Answered { handshake: handshake?, program: Program { package, file } };
        self.answered = Some(answered.clone());
        Ok(answered)
    }

    fn start(&mut self) -> Result<(), Denial> {
        let group = self.handover.group();
        let started = self.launched(&group, Environment::Whole)?;
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
            let group = process.group();
            end(process, &group);
        }
    }
}

/// Sends the handshake and waits for its answer. Returns `None` if the program refuses it.
fn ask(
    input: &mut ChildStdin,
    output: ChildStdout,
    greeting: Greeting,
    patience: Duration,
) -> Result<Option<String>, Denial> {
    let request = greeting.request().map_err(Denial::fetch_failed)?;
    let (tell, told) = channel();
    let id = request.id.clone();
    let reader = std::thread::Builder::new().name("clean-start".to_owned());
    let reader = reader.spawn(move || {
        let _ = tell.send(answer_to(&id, output));
    });
    reader.map_err(Denial::fetch_failed)?;
    // It fits into the pipe, so it does not wait for a program that does not read. One that has ended already is noticed
    // by the end of its output.
    let _ = input.write_all(format!("{}\n", request.text).as_bytes()).and_then(|()| input.flush());
    let failed = |why: &str| {
        Denial::fetch_failed(format!(
            "the program was started without your environment to ask for its document, and {why}; \
             name a document for it: `--attestation FILE`"
        ))
    };
    match told.recv_timeout(patience) {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(failed("it ended without an answer")),
        Err(_) => Err(failed("it did not answer in time")),
    }
}

/// The answer with this id: its result, or `None` for an error. Nothing if the output ends before.
fn answer_to(id: &str, output: ChildStdout) -> Option<Option<String>> {
    let mut lines = LineReader::new(output, MAX_GREETING_BYTES);
    loop {
        match lines.next_of_some() {
            Ok((Line::Frame(frame), _)) => {
                let Ok(Scanned::Message(Envelope { kind, .. })) = scan(frame) else { continue };
                match kind {
                    Kind::Response { id: Some(known), outcome } if known.raw() == id.as_bytes() => {
                        return Some(match outcome {
                            Outcome::Result(result) => {
                                Some(String::from_utf8_lossy(result).into_owned())
                            }
                            Outcome::Error(_) => None,
                        });
                    }
                    _ => {}
                }
            }
            Ok((Line::TooLong { .. }, _)) => {}
            Ok((Line::End { .. }, _)) | Err(_) => return None,
        }
    }
}

/// Ends a program whose input is closed: it may end by itself, then it is asked to, then killed.
fn end(process: ServerProcess, group: &ServerGroup) {
    let (tell, told) = channel();
    let waiting = std::thread::Builder::new().name("clean-end".to_owned()).spawn(move || {
        let _ = process.wait();
        let _ = tell.send(());
    });
    if waiting.is_err() {
        return group.kill();
    }
    if told.recv_timeout(END_GRACE).is_err() {
        group.terminate();
        if told.recv_timeout(END_GRACE).is_err() {
            group.kill();
            let _ = told.recv_timeout(END_GRACE);
        }
    }
}

#[cfg(test)]
mod tests;
