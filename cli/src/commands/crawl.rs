//! `holdpoint crawl`: visits published servers and records their surfaces in the log.

use crate::arguments::Options;
use crate::arguments::directory::CrawlCommand;
use crate::commands::directory::place::Place;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::report;
use crate::screen;
use contract::time::Timestamp;
use directory::crawl::cause::Cause;
use directory::crawl::package::Registries;
use directory::crawl::run::{Crawl, CrawlError, CrawlEvents, ServerEnd, Work};
use directory::crawl::target::read_targets;
use directory::crawl::visit::{PackageSources, VisitFolders, VisitLimits, Visitor};
use directory::crawl::{Manifest, NotListed, Observation, Outcome, official};
use directory::database::Database;
use directory::demand::{Demand, sort_as_queued};
use directory::subject::SubjectId;
use directory::writer::{LogWriter, WriteError};
use engine::confinement::InstallCode;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::dialer::Dialer;

/// The largest file of targets.
const MAX_TARGETS_BYTES: u64 = 16 * 1024 * 1024;
/// The cursor that stores when the registry was last polled.
const REGISTRY_CURSOR: &str = "registry";
/// The minimum time between two polls of the registry.
const REGISTRY_PAUSE_MS: i64 = 3_600_000;
/// How often the log is published during a crawl.
const PUBLISH_EVERY: Duration = Duration::from_secs(10);

pub(crate) fn run(command: &CrawlCommand, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let settings = &place.settings;
    let dialer = Arc::new(Dialer::new(settings.network.allow_private, Some(settings.contact())));
    let mut writer = place.writer()?;
    let waiting = writer.record_waiting(now()).map_err(Failure::usage)?;
    writer.say_waiting(now()).map_err(Failure::usage)?;
    let mut work = work(command, &place, &dialer, &mut writer)?;
    let demand = Demand::open(&place.folders.demand()).map_err(Failure::usage)?;
    let networks = demand.networks(writer.model()).map_err(Failure::usage)?;
    sort_as_queued(&mut work, |(target, _)| &target.id, writer.model(), &networks);
    drop(demand);
    let database = Database::open(&place.folders.database()).map_err(Failure::usage)?;
    let folders = VisitFolders::in_data(&place.folders.data);
    folders.clear();
    let helper = std::env::current_exe().map_err(Failure::internal)?;
    let install_code = match command.install_scripts || settings.crawl.install_scripts {
        true => InstallCode::Confined,
        false => InstallCode::Never,
    };
    let sources = PackageSources::named(
        settings.crawl.npm.as_deref(),
        settings.crawl.pypi.as_deref(),
        settings.network.allow_private,
    );
    let usual = VisitLimits::default();
    let seconds = |typed: Option<u64>, configured: Option<u64>, otherwise: Duration| {
        typed.or(configured).map_or(otherwise, Duration::from_secs)
    };
    let limits = VisitLimits {
        install: seconds(
            command.install_timeout,
            settings.crawl.install_seconds.map(|it| it.0),
            usual.install,
        ),
        list: seconds(command.list_timeout, settings.crawl.list_seconds.map(|it| it.0), usual.list),
        package_bytes: match settings.crawl.package_mebibytes {
            Some(mebibytes) => mebibytes.0 << 20,
            None => usual.package_bytes,
        },
    };
    let visitor =
        Visitor::new(folders.clone(), helper, install_code, limits, sources, dialer.clone())
            .map_err(Failure::usage)?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(stop.clone())?;
    let crawl = Crawl {
        visitor: &visitor,
        dialer: &dialer,
        registries: &registries(&place),
        database: &Mutex::new(database),
        releases: number(command.releases, settings.crawl.releases.map(|it| it.0), 1),
        workers: number(command.workers, settings.crawl.workers.map(|it| it.0), 2),
        again: command.again,
        stop: &stop,
    };
    let events = Events::new(writer, work.len(), waiting, options);
    let ended = crawl.run(work, &events);
    folders.clear();
    let outcome = events.finish(options);
    ended.map_err(Failure::usage)?;
    outcome
}

fn number(typed: Option<u64>, configured: Option<u64>, otherwise: u64) -> usize {
    usize::try_from(typed.or(configured).unwrap_or(otherwise)).unwrap_or(usize::MAX)
}

pub(crate) fn registries(place: &Place) -> Registries {
    let usual = Registries::default();
    let plain = |text: &str| text.trim_end_matches('/').to_owned();
    let crawl = &place.settings.crawl;
    Registries {
        npm: crawl.npm.as_deref().map_or(usual.npm, plain),
        pypi: crawl.pypi.as_deref().map_or(usual.pypi, plain),
    }
}

/// The servers to visit.
fn work(
    command: &CrawlCommand,
    place: &Place,
    dialer: &Dialer,
    writer: &mut LogWriter,
) -> Result<Vec<Work>, Failure> {
    let crawl = &place.settings.crawl;
    let targets = command.targets.as_ref().or(crawl.targets.as_ref());
    let registry = command.registry.as_deref().or(crawl.registry.as_deref());
    if let (Some(path), None) = (targets, &command.registry) {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("`{}`: {error}", path.display()))
        };
        let found = std::fs::metadata(path).map_err(|error| failed(&error))?;
        if found.len() > MAX_TARGETS_BYTES {
            return Err(failed(&format!("larger than {MAX_TARGETS_BYTES} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        let targets = read_targets(&text).map_err(|error| failed(&error))?;
        let with_manifest = |target| (target, Manifest { has_launch: true, ..Manifest::default() });
        return Ok(targets.into_iter().map(with_manifest).collect());
    }
    let Some(registry) = registry else {
        return Err(Failure::usage(
            "which servers? name a file with `--targets FILE`, or a registry with `--registry URL`",
        ));
    };
    let failed = |error: &dyn std::fmt::Display| Failure::usage(error);
    let cursor = format!("{REGISTRY_CURSOR} {registry}");
    let known = writer.database().cursor(&cursor).map_err(|error| failed(&error))?;
    let since = known.as_deref().and_then(Timestamp::parse);
    let begun = now();
    if since.is_some_and(|since| begun.0 - since.0 < REGISTRY_PAUSE_MS) && !command.again {
        return Err(Failure::usage("the registry is asked once an hour at most"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listed = runtime
        .block_on(official::list(dialer, registry.trim_end_matches('/'), since))
        .map_err(|error| Failure::unreachable(&error))?;
    writer
        .database_mut()
        .write(|writing| writing.set_cursor(&cursor, &begun.to_string()))
        .map_err(|error: directory::database::DatabaseError| failed(&error))?;
    Ok(listed.into_iter().map(|listed| (listed.target, listed.manifest)).collect())
}

/// The first interrupt stops the crawl after the visits in progress; a second one exits
/// immediately.
fn stop_on_interrupt(stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        runtime.block_on(async {
            let _ = tokio::signal::ctrl_c().await;
            stop.store(true, Ordering::Relaxed);
            screen::remark("holdpoint: ending after the visits under way; again to end now");
            let _ = tokio::signal::ctrl_c().await;
            std::process::exit(130);
        });
    })?;
    Ok(())
}

/// Records observations and shows the progress of the crawl.
struct Events {
    writer: Mutex<(LogWriter, Instant)>,
    bar: indicatif::ProgressBar,
    is_quiet: bool,
    entries: AtomicUsize,
    visits: AtomicUsize,
    listed: AtomicUsize,
    unknown: AtomicUsize,
    waiting: AtomicUsize,
    failed: Mutex<Vec<FailedVisit>>,
}

/// The most failed visits that a summary names.
const MAX_FAILED_SHOWN: usize = 1_000;

/// A visit that read nothing, as listed in the summary.
#[derive(Debug, serde::Serialize)]
struct FailedVisit {
    server: String,
    release: Option<String>,
    outcome: &'static str,
    cause: Option<Cause>,
    because: String,
}

impl Events {
    fn new(writer: LogWriter, servers: usize, entries: usize, options: &Options) -> Events {
        let is_shown = !options.quiet && std::io::IsTerminal::is_terminal(&std::io::stderr());
        let bar = match is_shown {
            true => indicatif::ProgressBar::new(servers as u64),
            false => indicatif::ProgressBar::hidden(),
        };
        if let Ok(style) = indicatif::ProgressStyle::with_template(
            "{bar:24} {pos}/{len} servers, {elapsed}, {eta} left  {wide_msg}",
        ) {
            bar.set_style(style);
        }
        Events {
            writer: Mutex::new((writer, Instant::now())),
            bar,
            is_quiet: options.quiet,
            entries: AtomicUsize::new(entries),
            visits: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
            unknown: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            failed: Mutex::default(),
        }
    }

    fn finish(&self, options: &Options) -> Result<Exit, Failure> {
        self.bar.finish_and_clear();
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        guard.0.say_waiting(now()).map_err(Failure::usage)?;
        guard.0.publish().map_err(Failure::usage)?;
        let size = guard.0.model().size;
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let (visits, listed) = (count(&self.visits), count(&self.listed));
        let (entries, unknown) = (count(&self.entries), count(&self.unknown));
        let waiting = count(&self.waiting);
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if options.json {
            screen::print_json(&json!({
                "visits": visits,
                "listed": listed,
                "failed": *failed,
                "servers_without_releases": unknown,
                "waiting": waiting,
                "entries_added": entries,
                "log_size": size,
            }))?;
        } else {
            let visited = report::count(visits, "visit", "visits");
            let added = report::count(entries, "entry", "entries");
            screen::say(format!("{visited}, {listed} listed; {added} added, the log has {size}"));
            let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
            for visit in failed.iter() {
                *reasons.entry(&visit.because).or_default() += 1;
            }
            for (because, count) in reasons {
                let visits = report::count(count, "visit", "visits");
                screen::say(format!("{visits} read nothing: {because}"));
            }
            if unknown > 0 {
                let servers = report::count(unknown, "server", "servers");
                screen::say(format!("{servers} without a release to visit"));
            }
            if waiting > 0 {
                let waits = report::count(waiting, "visit waits", "visits wait");
                screen::say(format!(
                    "{waits} for another day: the log takes 24 entries about a server and day"
                ));
            }
        }
        Ok(Exit::Fine)
    }

    /// Stores a failed visit for the summary. Returns the message to print.
    fn failed(&self, observation: &Observation, reason: NotListed) -> String {
        let cause = observation.cause;
        let because = cause.map_or_else(|| reason.sentence().to_owned(), |cause| cause.to_string());
        let told = format!("{} ({because})", reason.as_str());
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() < MAX_FAILED_SHOWN {
            failed.push(FailedVisit {
                server: observation.server.to_string(),
                release: observation.release.clone(),
                outcome: reason.as_str(),
                cause,
                because,
            });
        }
        told
    }

    fn tell(&self, line: impl std::fmt::Display) {
        if !self.is_quiet {
            self.bar.suspend(|| screen::remark(line));
        }
    }
}

impl CrawlEvents for Events {
    fn clock(&self) -> Timestamp {
        now()
    }

    fn begins(&self, server: &SubjectId, release: Option<&str>) {
        let message = match release {
            Some(release) => format!("{server} {release}"),
            None => server.to_string(),
        };
        self.bar.set_message(message);
    }

    fn observed(&self, observation: &Observation) -> Result<(), CrawlError> {
        self.visits.fetch_add(1, Ordering::Relaxed);
        let word = match &observation.outcome {
            Outcome::Listed(_) => {
                self.listed.fetch_add(1, Ordering::Relaxed);
                "listed".to_owned()
            }
            Outcome::NotListed(reason) => self.failed(observation, *reason),
        };
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, published) = &mut *guard;
        let added = match writer.record(observation, now()) {
            Ok(added) => added,
            Err(WriteError::Record(error)) if error.is_for_another_day() => {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                0
            }
            Err(error) => return Err(CrawlError::Record(Box::new(error))),
        };
        self.entries.fetch_add(added, Ordering::Relaxed);
        if published.elapsed() >= PUBLISH_EVERY {
            writer.publish().map_err(|error| CrawlError::Record(Box::new(error)))?;
            *published = Instant::now();
        }
        let release = observation.release.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
        let entries = report::count(added, "entry", "entries");
        self.tell(format!("{}{release}: {word}, {entries} added to the log", observation.server));
        Ok(())
    }

    fn ends(&self, server: &SubjectId, ended: &ServerEnd) {
        self.bar.inc(1);
        if let ServerEnd::Unknown(error) = ended {
            self.unknown.fetch_add(1, Ordering::Relaxed);
            self.tell(format!("{server}: {}", screen::readable(&error.to_string())));
        }
    }
}
