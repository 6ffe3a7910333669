//! The front and the upstream of `holdpoint run`: a session between our standard input and output and one server. Threads,
//! signals, and an end in all cases.

pub mod handover;
mod pipes;
mod signals;

pub use pipes::{application_ends, standard_output};

use crate::admission::Checker;
use crate::application::Application;
use crate::behavior::Probe;
use crate::errands::Errand;
use crate::process::{ServerGroup, ServerProcess};
use crate::server::driver::{Driver, OriginSource, Wake};
use crate::session::Session;
use handover::LateServer;
use pipes::standard_input;
#[cfg(unix)]
use pipes::wait_for_hang_up;
#[cfg(unix)]
use signals::forward_signals;
use signals::is_end;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::lines::{Line, LineReader};
use wire::remote::{Inbound, Remote, RemoteFailure};

/// How long the last words of a server that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often it is looked whether requests still wait here when the client has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What happens around a session.
#[derive(Debug)]
enum Happening {
    ClientEnded,
    /// The client closed its end of our standard input, though not all of it was read yet.
    ClientHungUp,
    ServerClosed,
    ServerEnded(io::Result<Ended>),
    Signal(i32),
    /// Too much went wrong in the gate itself, or one of its threads has ended.
    Fault,
}

/// How the server behind a session ended.
#[derive(Debug)]
pub enum Ended {
    Process(ExitStatus),
    /// There is nothing more to send to a remote server.
    Remote,
    /// It was never admitted, so it was never started.
    Unstarted,
    /// It cannot be reached any more.
    Lost(RemoteFailure),
}

/// What stands behind the gate.
pub enum Behind {
    Process {
        process: ServerProcess,
        output: Box<dyn Read + Send>,
    },
    /// A process that is started once the server is admitted.
    Later(LateServer),
    Remote(Remote),
    /// The application that also has the client. It closes when the session sends nothing more.
    Application(Receiver<()>),
}

/// Where the client's messages come from.
#[derive(Debug)]
pub enum Front {
    StandardInput,
    Application(Application),
}

/// Where a session is on the way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The client is gone; what it sent last is still being read.
    HungUp(Instant),
    /// The client has ended; what waits here goes first.
    Draining(Instant),
    /// The server's input is closed: it may end by itself.
    Closing(Instant),
    /// It was asked to end.
    Terminating(Instant),
    Killed,
}

/// A session that runs.
#[derive(Debug)]
pub struct Running {
    session: Arc<Session>,
    /// The server's processes, where it is one of ours.
    group: Option<ServerGroup>,
    grace: Duration,
    happenings: Receiver<Happening>,
    server_reader: JoinHandle<()>,
    keeper: JoinHandle<()>,
}

/// What the threads of a session need in addition to it.
pub struct Surroundings {
    pub session: Arc<Session>,
    pub wakes: Receiver<Wake>,
    pub errands: Receiver<Errand>,
    pub origin: OriginSource,
    /// Checks the server's admission, where that is asked.
    pub admission: Option<Checker>,
    /// Looks at what tools do, where the operator allows it.
    pub prober: Option<Box<dyn Probe>>,
    pub front: Front,
    pub behind: Behind,
    pub grace: Duration,
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Behind::Process { .. } => "Process",
            Behind::Later(_) => "Later",
            Behind::Remote(_) => "Remote",
            Behind::Application(_) => "Application",
        })
    }
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Running {
    /// Starts the threads.
    pub fn start(surroundings: Surroundings) -> io::Result<Running> {
        let Surroundings {
            session,
            wakes,
            errands,
            origin,
            admission,
            prober,
            front,
            behind,
            grace,
        } = surroundings;
        let (happens, happenings) = channel();
        let group = match &behind {
            Behind::Process { process, .. } => Some(process.group()),
            Behind::Later(server) => Some(server.group()),
            Behind::Remote(_) | Behind::Application(_) => None,
        };
        for faults in [session.faults(), &session.server.faults] {
            let happens = happens.clone();
            faults.on_fault(move || {
                let _ = happens.send(Happening::Fault);
            });
        }
        let keeper = Driver::new(session.server.clone(), origin);
        let keeper = keeper.admitting(admission).probing(prober);
        let keeper = spawn_watched("keeper", &happens, move || keeper.run(&wakes))?;
        {
            let session = session.clone();
            spawn_watched("errands", &happens, move || crate::errands::run(&session, &errands))?;
        }
        let server_reader = read_behind(behind, &session, &happens)?;
        {
            let (session, happens) = (session.clone(), happens.clone());
            let read: Box<dyn FnOnce() + Send> = match front {
                Front::StandardInput => {
                    let input = standard_input()?;
                    Box::new(move || read_client(&session, input))
                }
                Front::Application(application) => Box::new(move || application.read(&session)),
            };
            spawn_watched("client", &happens.clone(), move || {
                read();
                let _ = happens.send(Happening::ClientEnded);
            })?;
        }
        #[cfg(unix)]
        {
            let happens = happens.clone();
            spawn("hang-up", move || {
                wait_for_hang_up();
                let _ = happens.send(Happening::ClientHungUp);
            })?;
        }
        #[cfg(unix)]
        spawn_watched("signals", &happens.clone(), move || forward_signals(&happens))?;
        Ok(Running { session, group, grace, happenings, server_reader, keeper })
    }

    /// Waits for the end of the session. Returns how the server ended.
    pub fn finish(self) -> io::Result<Ended> {
        let mut stage = Stage::Open;
        let mut is_faulty = false;
        let status = loop {
            match self.happenings.recv_timeout(self.patience(stage)) {
                Ok(Happening::ServerEnded(ended)) => break ended,
                Ok(Happening::ServerClosed) => say_ended(&self.session),
                Ok(Happening::ClientEnded) if matches!(stage, Stage::Open | Stage::HungUp(_)) => {
                    stage = Stage::Draining(Instant::now() + self.grace);
                }
                Ok(Happening::ClientHungUp) if stage == Stage::Open => {
                    stage = Stage::HungUp(Instant::now() + self.grace);
                }
                Ok(Happening::ClientEnded | Happening::ClientHungUp) => {}
                Ok(Happening::Signal(number)) => {
                    match &self.group {
                        Some(group) if group.is_running() => group.signal(number),
                        _ if is_end(number) => {
                            self.session.try_close_server();
                        }
                        _ => {}
                    }
                    if stage == Stage::Open && is_end(number) {
                        stage = Stage::Closing(Instant::now() + self.grace);
                    }
                }
                Ok(Happening::Fault) if is_faulty => {}
                Ok(Happening::Fault) => {
                    is_faulty = true;
                    let session = self.session.clone();
                    if let Ok(refusing) = spawn("fault", move || session.end_by_fault()) {
                        join_within(refusing, LAST_WORDS);
                    }
                    let Some(group) = &self.group else { break Ok(Ended::Remote) };
                    group.terminate();
                    stage = Stage::Terminating(Instant::now() + self.grace);
                }
                Err(RecvTimeoutError::Timeout) => {
                    stage = self.next_stage(stage);
                    if stage == Stage::Killed && self.group.is_none() {
                        // The thread that reads from the remote server is stuck on a client that does not read.
                        break Ok(Ended::Remote);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(io::Error::other("the session's threads have ended"));
                }
            }
        };
        join_within(self.server_reader, LAST_WORDS);
        say_ended(&self.session);
        self.session.server.wake(Wake::End);
        join_within(self.keeper, LAST_WORDS);
        self.session.server.recorder.finish();
        if is_faulty {
            return Err(io::Error::other(
                "too many faults of the gate itself: the session was ended; please report what \
                 is above. Each fault has a line in errors.jsonl in the home folder",
            ));
        }
        status
    }

    fn patience(&self, stage: Stage) -> Duration {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        match stage {
            Stage::Open | Stage::Killed => Duration::from_secs(3_600),
            Stage::Draining(_) => LOOK,
            Stage::HungUp(at) | Stage::Closing(at) | Stage::Terminating(at) => until(at),
        }
    }

    fn next_stage(&self, stage: Stage) -> Stage {
        let now = Instant::now();
        match stage {
            Stage::Open | Stage::Killed => stage,
            Stage::Draining(until) if now < until && self.session.has_waiting() => stage,
            Stage::Draining(_) if self.session.try_close_server() => {
                Stage::Closing(now + self.grace)
            }
            // A thread is stuck in a write to the server, which does not read.
            Stage::HungUp(_) | Stage::Draining(_) | Stage::Closing(_) => {
                if let Some(group) = &self.group {
                    group.terminate();
                }
                Stage::Terminating(now + self.grace)
            }
            Stage::Terminating(_) => {
                if let Some(group) = &self.group {
                    group.kill();
                }
                Stage::Killed
            }
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// A thread without which the session cannot go on: a panic that leaves it ends the session.
fn spawn_watched(
    name: &str,
    happens: &Sender<Happening>,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let happens = happens.clone();
    spawn(name, move || {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            let _ = happens.send(Happening::Fault);
        }
    })
}

/// Waits for a thread, but not for ever: it may be stuck in a write that the other side does not read.
fn join_within(thread: JoinHandle<()>, patience: Duration) {
    let until = Instant::now() + patience;
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    if thread.is_finished() {
        let _ = thread.join();
    }
}

/// Answers every request that waits for the server. Does not wait for a client that does not read.
fn say_ended(session: &Arc<Session>) {
    let session = session.clone();
    if let Ok(last_words) = spawn("last-words", move || session.server_ended()) {
        join_within(last_words, LAST_WORDS);
    }
}

fn read_client(session: &Session, input: File) {
    let mut lines = LineReader::new(input, session.server.settings.frame_bytes);
    loop {
        if !lines.has_line() {
            session.client_paused();
        }
        match lines.next_of_some() {
            Ok((Line::Frame(frame), has_more)) => session.client_said(frame, has_more),
            Ok((Line::TooLong { beginning, end, bytes }, _)) => {
                session.client_said_too_much(beginning, end, bytes);
            }
            Ok((Line::End { .. }, _)) => return,
            Err(error) if is_passing(&error) => {}
            Err(_) => return,
        }
    }
}

/// Starts what reads from the server, and what waits for its end.
fn read_behind(
    behind: Behind,
    session: &Arc<Session>,
    happens: &Sender<Happening>,
) -> io::Result<JoinHandle<()>> {
    let (session, happens) = (session.clone(), happens.clone());
    match behind {
        Behind::Application(end) => spawn("server", move || {
            // Nothing is ever sent: the sender is dropped when the session closes its way to the server.
            let _ = end.recv();
            let _ = happens.send(Happening::ServerEnded(Ok(Ended::Remote)));
        }),
        Behind::Process { process, output } => {
            wait_for(process, &happens)?;
            spawn_watched("server", &happens.clone(), move || {
                read_server(&session, output);
                let _ = happens.send(Happening::ServerClosed);
            })
        }
        Behind::Later(server) => spawn_watched("server", &happens.clone(), move || {
            let Some((process, output)) = server.wait() else {
                let _ = happens.send(Happening::ServerEnded(Ok(Ended::Unstarted)));
                return;
            };
            if let Err(error) = wait_for(process, &happens) {
                let _ = happens.send(Happening::ServerEnded(Err(error)));
            }
            read_server(&session, Box::new(output));
            let _ = happens.send(Happening::ServerClosed);
        }),
        Behind::Remote(remote) => spawn_watched("server", &happens.clone(), move || {
            let mut ended = Ended::Remote;
            remote.serve(&mut |inbound| match inbound {
                Inbound::Message(message) => {
                    session.server_said(message, false);
                    session.server_paused();
                }
                Inbound::Failed { id, failure } => session.request_failed(&id, &failure),
                Inbound::Fault => session.way_failed(),
                Inbound::Ended(failure) => ended = Ended::Lost(failure),
            });
            let _ = happens.send(Happening::ServerEnded(Ok(ended)));
        }),
    }
}

/// Waits for the end of a process in a thread of its own.
fn wait_for(process: ServerProcess, happens: &Sender<Happening>) -> io::Result<()> {
    let happens = happens.clone();
    spawn("wait", move || {
        let _ = happens.send(Happening::ServerEnded(process.wait().map(Ended::Process)));
    })?;
    Ok(())
}

fn read_server(session: &Session, output: Box<dyn Read + Send>) {
    let mut lines = LineReader::new(output, session.server.settings.frame_bytes);
    loop {
        if !lines.has_line() {
            session.server_paused();
        }
        match lines.next_of_some() {
            Ok((Line::Frame(frame), has_more)) => session.server_said(frame, has_more),
            Ok((Line::TooLong { beginning, end, bytes }, _)) => {
                session.server_said_too_much(beginning, end, bytes);
            }
            Ok((Line::End { .. }, _)) => return,
            Err(error) if is_passing(&error) => {}
            Err(_) => return,
        }
    }
}

/// Whether a read failed only because another process made the descriptor non-blocking. Waits a moment then.
fn is_passing(error: &io::Error) -> bool {
    let is_passing = error.kind() == io::ErrorKind::WouldBlock;
    if is_passing {
        std::thread::sleep(Duration::from_millis(1));
    }
    is_passing
}
