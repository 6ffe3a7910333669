//! A gate's session with one server, made from a home and its configuration. Shared by `run` and
//! `pins`.

use crate::approver;
use crate::arguments::Options;
use crate::configuration::{Configuration, start_export};
use crate::desktop::HoldNotice;
use crate::failure::Failure;
use crate::screen;
use crate::target::Workplace;
use crate::upper_tiers;
use engine::anomaly::{Anomalies, HandOver};
use engine::confinement::Reporter;
use engine::decide::Path;
use engine::errands::Errand;
use engine::error_log::ErrorLog;
use engine::export::LiveExport;
use engine::judge::{Instance, Judge, Rules, Seen};
use engine::lease::Lease;
use engine::outlet::{ClientOutlet, ServerOutlet};
use engine::principal::Principal;
use engine::recorder::{Recorder, now};
use engine::sentinel::Sentinel;
use engine::server::driver::Wake;
use engine::server::{Server, ServerParts, ServerSettings, ViewError};
use engine::session::{Parts, Session};
use engine::situation::Situation;
use gate::reason::Reason;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use store::receipts::Receipts;
use store::{Home, IncidentStore, Launch, Location, Witnessed};

/// The file descriptors that a session may need at once, in addition to those open when it starts.
const DESCRIPTORS: usize = 20;

/// Refuses to start with too few file descriptors: the session would otherwise fail later, in the
/// middle of a call.
pub(crate) fn check_descriptors() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        let opened: Result<Vec<_>, _> =
            (0..DESCRIPTORS).map(|_| std::fs::File::open("/dev/null")).collect();
        if let Err(error) = opened {
            return Err(Failure::internal(format!(
                "a session needs {DESCRIPTORS} free file descriptors, and there are fewer ({error}); \
                 raise the limit where the client is started, for example `ulimit -n 1024`"
            )));
        }
    }
    Ok(())
}

/// The recorder of a session's receipts, and the anomaly detection that watches them.
pub(crate) struct Records {
    pub(crate) recorder: Arc<Recorder>,
    anomalies: Option<Arc<Anomalies>>,
}

impl Records {
    pub(crate) fn open(home: &Home, configuration: &Configuration) -> Result<Records, Failure> {
        let location = configuration.store()?;
        let anomalies = configuration
            .anomaly_rules()
            .map(|rules| Anomalies::new(rules, hand_over(home, &location)));
        let receipts = Receipts::open(home, configuration.receipts())?;
        let recorder = Arc::new(Recorder::new(receipts).signalling(anomalies.clone()));
        Ok(Records { recorder, anomalies })
    }
}

/// Writes a quarantine to the store on a thread of its own. It takes effect here at once, even if the write fails.
fn hand_over(home: &Home, location: &Location) -> Box<HandOver> {
    let (home, location) = (home.clone(), location.clone());
    Box::new(move |anomalies, quarantine| {
        let (home, location) = (home.clone(), location.clone());
        std::thread::spawn(move || {
            let written = store::open(&home, &location)
                .and_then(|store| Witnessed::new(store, &home).quarantine(&quarantine));
            match written {
                Ok(()) => anomalies.stored(&quarantine.id()),
                Err(error) => screen::remark(format!(
                    "holdpoint: this session is quarantined, the store could not be written: {error}"
                )),
            }
        });
    })
}

/// The inputs that a session is made from.
pub(crate) struct SessionPlan {
    pub(crate) workplace: Workplace,
    pub(crate) rules: Rules,
    pub(crate) settings: ServerSettings,
    /// How the server is started or reached, if the gate knows.
    pub(crate) launch: Option<Launch>,
    /// Whether the server sees this machine's files.
    pub(crate) is_local: bool,
    /// Receives the sandbox's reports, if the server is confined.
    pub(crate) reporter: Option<Arc<Reporter>>,
    pub(crate) to_client: Box<dyn ClientOutlet>,
    pub(crate) to_server: Box<dyn ServerOutlet>,
}

/// A session, with the channels that its threads receive from.
pub(crate) struct GateSession {
    pub(crate) session: Arc<Session>,
    pub(crate) wakes: Receiver<Wake>,
    pub(crate) errands: Receiver<Errand>,
    pub(crate) export: Option<LiveExport>,
}

impl SessionPlan {
    pub(crate) fn open(self, records: Records, options: &Options) -> Result<GateSession, Failure> {
        let SessionPlan {
            workplace,
            mut rules,
            settings,
            launch,
            is_local,
            reporter,
            to_client,
            to_server,
        } = self;
        let Workplace { home, store, configuration, .. } = workplace;
        let Records { recorder, anomalies } = records;
        let (id, allowed) = (rules.server.clone(), rules.allowed.clone());
        let location = configuration.store()?;
        let is_shared = matches!(location, Location::Postgres(_));
        let shared = is_shared.then(|| store::open(&home, &location)).transpose()?;
        let lease = shared.map(Lease::of).transpose()?;
        let sentinel = Sentinel::new(store.index_path(), lease)?;
        let sentinel = if is_shared { sentinel } else { sentinel.following(home.state_path()) };
        let account = approver::account().into_iter().collect();
        let principal = Principal::local_user(approver::name(), account, now());
        let principal = principal.in_session(getrandom::u64().map_err(Failure::internal)?);
        let receipts = store.journal().folder().clone();
        rules.upper = upper_tiers::start(&home, &configuration, &receipts, options.quiet);
        if let Some(reporter) = reporter {
            let (recorder, server, of) = (recorder.clone(), id.clone(), principal.clone());
            reporter.tell(Arc::new(move |count| {
                recorder.signal_egress_blocked(server.as_str(), &of, None, count);
            }));
        }
        let mut judge = Judge::new(store, rules, launch);
        let begun = judge.begin(&Seen::default())?;
        if !options.quiet {
            say_if_stopped(&begun.situation);
        }
        let (driver, wakes) = channel();
        let (to_errands, errands) = channel();
        let is_quiet = options.quiet;
        let notice =
            if configuration.notifies(&id) { HoldNotice::new(&id, home.path()) } else { None };
        let path = Path::for_one_server(configuration.preflight(&id), allowed);
        let path = match anomalies {
            Some(anomalies) => path.watched_by(anomalies),
            None => path,
        };
        let path = configuration.preflighted(path, &id, is_local);
        let server = Server::new(ServerParts {
            settings,
            path: configuration.approved(path, &id),
            recorder,
            judge,
            begun,
            sentinel,
            driver,
            errors: ErrorLog::new(home.path().join("errors.jsonl")),
            remark: Box::new(move |sentence| {
                if !is_quiet {
                    screen::remark(format!("holdpoint: {}", screen::readable(sentence)));
                }
            }),
            alarm: Box::new(move || notice.iter().for_each(HoldNotice::show)),
        });
        let session = Session::open(Parts {
            server: Arc::new(server),
            instance: Instance::default(),
            principal,
            to_client,
            to_server,
            errands: Arc::new(move |_, errand| {
                // The thread that runs errands ends with the session.
                let _ = to_errands.send(errand);
            }),
        })
        .map_err(|error| match error {
            ViewError::Store(error) => Failure::from(error),
            ViewError::TooMany => Failure::internal(error),
        })?;
        let export = start_export(configuration.export()?, &home, options)?;
        Ok(GateSession { session, wakes, errands, export })
    }
}

/// Prints why no tool is served. Hosts keep a server's standard error, so a person who looks for
/// the reason finds it there.
fn say_if_stopped(situation: &Situation) {
    let Some(standing) = situation.view.stopped() else { return };
    let id = &situation.server;
    let act = match standing.reason {
        Some(Reason::ServerQuarantined) => "release",
        _ => "review",
    };
    screen::remark(format!(
        "holdpoint: `{id}` is held, nothing of it is served until a person decides: holdpoint {act} {id}"
    ));
}
