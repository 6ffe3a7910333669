//! `holdpoint run`: the gate in front of one server, between our standard input and output and the
//! server.

use crate::arguments::{Options, RunCommand};
use crate::behavior;
use crate::configuration::Configuration;
use crate::confinement::{ConfinedIn, Otherwise};
use crate::failure::{Exit, Failure};
use crate::gate_session::{GateSession, Records, SessionPlan, check_descriptors};
use crate::launch_identity;
use crate::screen;
use crate::target::{Reach, Workplace, header_names, home_path, renew_origin, server_id};
use attest::Flavor;
use contract::origin::shown_program;
use engine::admission::{Checker, Stage, Started, checker_of};
use engine::behavior::Probe;
use engine::egress_block::EgressBlock;
use engine::errands::Errand;
use engine::export::LiveExport;
use engine::origin::Way;
use engine::outlet::{LineOutlet, RemoteOutlet, ServerOutlet};
use engine::process::{BECOME, ServerGroup, ServerProcess};
use engine::program::find_program;
use engine::server::driver::{OriginSource, Wake};
use engine::session::Session;
use engine::stdio::handover::{Handover, handover};
use engine::stdio::{Behind, Ended, Front, Running, Surroundings, standard_output};
use gate::server::ServerId;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use wire::remote::{RemoteFailure, RemoteLimits, TlsKey, remote};
use wire::{HttpEndpoint, ObserveError, StdioLaunch, Upstream};

/// Added to the signal number for the exit code of a server that a signal ended.
const SIGNALLED: i32 = 128;

pub(crate) fn run(command: &RunCommand, options: &Options) -> Result<Exit, Failure> {
    if command.upstream.url.is_none() && command.upstream.command.is_empty() {
        let question = "which server? `-- CMD…` starts one, `--url URL` reaches one";
        return Err(Failure::usage(question));
    }
    check_descriptors()?;
    let reach = Reach::of(&command.upstream)?;
    // Making an id requires the home's key. With a given id, the server can start before the home
    // is opened.
    let mut opened = None;
    let id = match &command.server {
        Some(id) => id.clone(),
        None => {
            let workplace = opened.insert(Workplace::open_to_record(options)?);
            server_id(&reach.origin(&workplace.launch_key))?
        }
    };
    let configuration = Configuration::read(&home_path(options)?.join("holdpoint.toml"))?;
    let home = home_path(options)?;
    let place = ConfinedIn { home: &home, configuration: &configuration, is_quiet: options.quiet };
    let sandbox = &command.upstream.sandbox;
    let mut reach = reach.confined(&id, sandbox, place, Otherwise::Unconfined)?;
    if command.upstream.sign_in.sign_in {
        let workplace = match opened.take() {
            Some(workplace) => workplace,
            None => Workplace::open_to_record(options)?,
        };
        let workplace = opened.insert(workplace);
        reach = reach.signed_in(&id, &command.upstream, workplace, options.quiet)?;
    }
    match &reach.upstream {
        Upstream::Stdio(launch) => {
            let launch = launch.clone();
            run_program(command, options, &id, &reach, &launch, opened)
        }
        Upstream::Http(endpoint) => {
            run_remote(command, options, &id, &reach, endpoint.clone(), opened)
        }
    }
}

fn run_program(
    command: &RunCommand,
    options: &Options,
    id: &ServerId,
    reach: &Reach,
    launch: &StdioLaunch,
    opened: Option<Workplace>,
) -> Result<Exit, Failure> {
    let program = launch.program.to_string_lossy().into_owned();
    let Some(file) = find_program(&program, launch.directory.as_deref()) else {
        let program = shown_program(&program);
        return Err(Failure::unreachable(format!("the program `{program}` was not found")));
    };
    let home = home_path(options)?;
    let configuration = Configuration::read(&home.join("holdpoint.toml"))?;
    let admission = configuration.admission(id, &command.admission, &home)?;
    if admission.is_some_and(|rules| rules.terms.flavor() == Flavor::Enclaved) {
        return run_once_admitted(command, options, id, reach, opened, file);
    }
    // Start the server while the gate gets ready. Nothing is sent to it before that.
    let become_with = std::env::current_exe().ok();
    let (process, input, output) = ServerProcess::start(launch, become_with).map_err(|error| {
        let program = shown_program(&program);
        Failure::unreachable(format!("the program `{program}` could not be started: {error}"))
    })?;
    let group = process.group();
    let started = prepare(
        command,
        options,
        id,
        reach,
        opened,
        FirstLook::Program(file, group.clone()),
        Box::new(LineOutlet::new(input)),
    )
    .and_then(
        |Prepared { session, wakes, errands, origin, admission, prober, grace, export }| {
            let running = Running::start(Surroundings {
                session,
                wakes,
                errands,
                origin,
                admission,
                prober,
                front: Front::StandardInput,
                behind: Behind::Process { process, output: Box::new(output) },
                grace,
            })?;
            Ok((running, export))
        },
    );
    let (running, _export) = started.inspect_err(|_| group.kill())?;
    end(running.finish()?)
}

/// Under the enclaved flavor, the program is only started, with its environment, once it is
/// admitted.
fn run_once_admitted(
    command: &RunCommand,
    options: &Options,
    id: &ServerId,
    reach: &Reach,
    opened: Option<Workplace>,
    file: PathBuf,
) -> Result<Exit, Failure> {
    let (give, outlet, server) = handover();
    let look = FirstLook::Unstarted(file, give);
    let Prepared { session, wakes, errands, origin, admission, prober, grace, export: _export } =
        prepare(command, options, id, reach, opened, look, Box::new(outlet))?;
    let behind = Behind::Later(server);
    let front = Front::StandardInput;
    let surroundings =
        Surroundings { session, wakes, errands, origin, admission, prober, front, behind, grace };
    let running = Running::start(surroundings)?;
    end(running.finish()?)
}

fn run_remote(
    command: &RunCommand,
    options: &Options,
    id: &ServerId,
    reach: &Reach,
    endpoint: HttpEndpoint,
    opened: Option<Workplace>,
) -> Result<Exit, Failure> {
    let configuration = Configuration::read(&home_path(options)?.join("holdpoint.toml"))?;
    let frame_bytes = configuration.session(id).frame_bytes;
    let shutdown_grace = configuration.grace(id);
    let limits = RemoteLimits { frame_bytes, shutdown_grace, ..RemoteLimits::default() };
    let (sender, remote) = remote(endpoint, limits);
    let key = remote.tls_key();
    let to_server = Box::new(RemoteOutlet::new(sender));
    let Prepared { session, wakes, errands, origin, admission, prober, grace, export: _export } =
        prepare(command, options, id, reach, opened, FirstLook::Key(key), to_server)?;
    let behind = Behind::Remote(remote);
    let front = Front::StandardInput;
    let surroundings =
        Surroundings { session, wakes, errands, origin, admission, prober, front, behind, grace };
    let running = Running::start(surroundings)?;
    end(running.finish()?)
}

fn end(ended: Ended) -> Result<Exit, Failure> {
    match ended {
        Ended::Process(status) => Ok(Exit::Server(code_of(status))),
        Ended::Remote | Ended::Unstarted => Ok(Exit::Fine),
        Ended::Lost(failure) => Err(match &failure {
            RemoteFailure::NotReached(ObserveError::PrivateAddressRefused { .. }) => {
                Failure::unreachable(format!("{failure} (`--allow-private`)"))
            }
            _ => Failure::unreachable(&failure),
        }),
    }
}

/// Says why there are no tools: an empty list without explanation would look like a broken server.
fn say_without_tools(id: &ServerId, options: &Options) {
    if !options.quiet {
        screen::remark(format!(
            "holdpoint: `{id}` has no tools: under the enclaved flavor only those on its allowlist may be used; \
             name them in `[server.{id}.admission] allow_tools`, or with `--allow-tool NAME`"
        ));
    }
}

/// The facts about the way to the server that are only known once it is started or reached.
enum FirstLook {
    /// The program's file and its process group.
    Program(PathBuf, ServerGroup),
    /// The program's file. The program is started once it is admitted.
    Unstarted(PathBuf, Handover),
    Key(TlsKey),
}

impl FirstLook {
    fn split(self, start_timeout: Duration) -> (Way, Option<Started>) {
        match self {
            FirstLook::Program(file, group) => {
                let stage = Stage::Running(Some(group));
                (Way::Program(file.clone()), Some(Started { file, stage }))
            }
            FirstLook::Unstarted(file, handover) => {
                let stage = Stage::Later { handover, start_timeout };
                (Way::Program(file.clone()), Some(Started { file, stage }))
            }
            FirstLook::Key(key) => (Way::Key(key), None),
        }
    }
}

/// A session that is ready to run, without its threads.
struct Prepared {
    session: Arc<Session>,
    wakes: Receiver<Wake>,
    errands: Receiver<Errand>,
    origin: OriginSource,
    admission: Option<Checker>,
    prober: Option<Box<dyn Probe>>,
    grace: std::time::Duration,
    export: Option<LiveExport>,
}

fn prepare(
    command: &RunCommand,
    options: &Options,
    id: &ServerId,
    reach: &Reach,
    opened: Option<Workplace>,
    look: FirstLook,
    to_server: Box<dyn ServerOutlet>,
) -> Result<Prepared, Failure> {
    let mut workplace = match opened {
        Some(opened) => opened,
        None => Workplace::open_to_record(options)?,
    };
    let Workplace { home, store, configuration, launch_key } = &mut workplace;
    renew_origin(store, id, &reach.upstream, launch_key)?;
    let origin = reach.origin(launch_key);
    let identity = launch_identity::of_gate(id, &reach.upstream, launch_key, home);
    let launch =
        origin.launch(header_names(&command.upstream)).under(command.posture).known_as(identity);
    let admission = configuration.admission(id, &command.admission, home.path())?;
    let flavor = admission.as_ref().map(|admission| admission.terms.flavor());
    let allowed = configuration.allowed_tools(id, &command.admission, flavor)?;
    if flavor == Some(Flavor::Enclaved) && allowed.as_ref().is_some_and(|list| list.is_empty()) {
        say_without_tools(id, options);
    }
    let max_age = admission.as_ref().map(|admission| admission.max_age);
    let start_timeout = configuration.start_timeout(id, command.upstream.start_timeout);
    let (way, started) = look.split(start_timeout);
    let admission = match admission {
        Some(rules) => Some(checker_of(rules, &reach.upstream, started).map_err(Failure::usage)?),
        None => None,
    };
    let is_remote = matches!(way, Way::Key(_));
    let origin = origin.source(way, home.path().join("digests.json"));
    let mut rules = configuration.rules(id, command.posture);
    let consent = rules.behavior;
    rules.allowed = allowed;
    rules.mirrors_parameters = is_remote;
    let mut settings = configuration.session(id);
    settings.admission_max_age = max_age;
    settings.greets_before_check = admission.as_ref().is_some_and(Checker::greets_first);
    settings.start_timeout = start_timeout;
    if let Some(seconds) = command.relist_max_age {
        settings.relist_max_age = std::time::Duration::from_secs(seconds);
    }
    let records = Records::open(home, configuration)?;
    if let Some(sign_in) = &reach.sign_in {
        sign_in.record_to(records.recorder.clone());
    }
    if let (Some(confiner), Upstream::Stdio(launch)) = (&reach.confiner, &reach.upstream) {
        let outline = confiner.outline(launch).map_err(Failure::usage)?;
        rules.profile.sandbox = Some(outline.receipt());
        confiner.reporter().record_to(records.recorder.clone());
        let block = Arc::new(EgressBlock::default());
        block.follow(store::open(home, &configuration.store()?)?)?;
        confiner.close_with(block);
    }
    let (grace, home) = (configuration.grace(id), home.path().to_owned());
    let plan = SessionPlan {
        workplace,
        rules,
        settings,
        launch: Some(launch),
        is_local: !is_remote,
        reporter: reach.confiner.as_ref().map(|confiner| confiner.reporter().clone()),
        to_client: Box::new(standard_output()?),
        to_server,
    };
    let GateSession { session, wakes, errands, export } = plan.open(records, options)?;
    let prober = behavior::prober(consent, &reach.upstream, &home)
        .map(|prober| Box::new(prober) as Box<dyn Probe>);
    Ok(Prepared { session, wakes, errands, origin, admission, prober, grace, export })
}

fn code_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or(signal.map(|number| SIGNALLED + number)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// The command line of the server that this process is to become, if it was started for that.
pub(crate) fn words_to_become() -> Option<impl Iterator<Item = OsString>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == BECOME).then_some(words)
}

pub(crate) fn become_server(words: impl Iterator<Item = OsString>) -> ExitCode {
    let error = engine::process::become_server(words);
    screen::remark(format!("holdpoint: the server could not be started: {error}"));
    Exit::Unreachable.into()
}
