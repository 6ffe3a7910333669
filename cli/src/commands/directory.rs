//! `holdpoint directory`: serves verdicts and changes of servers, and checks, proves, copies and
//! anchors logs.

mod anchor;
mod claim;
mod corpus;
mod log;
pub(crate) mod place;
mod witness;

use crate::arguments::Options;
use crate::arguments::directory::{DirectoryCommand, DirectorySubcommand};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen;
use contract::time::Timestamp;
use directory::keeping::{LogKeeper, WitnessAddress};
use directory::log::lease::LeaseError;
use directory::log::reader::{LogFault, LogFiles, LogUrl};
use directory::mirror::{Mirror, MirrorError};
use directory::secret_file;
use directory::serve::rates::{ANONYMOUS_PER_MINUTE, ApiKey, KEYED_PER_MINUTE, Rates};
use directory::serve::{Site, SiteParts};
use directory::writer::{LogWriter, WriteError};
use gate::network::Salt;
use ledger::note::cosignature::WitnessKey;
use place::Place;
use settings::directory::{DirectorySettings, MAX_KEY_DAYS};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use wire::dialer::Dialer;

/// How often a directory checks for newly published entries.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The minimum time between two publications of the log.
const PUBLISH: Duration = Duration::from_secs(10);
/// How often a mirror polls the directory that it copies.
const COPY: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 86_400_000;
/// The file, in the folder of keys, that holds the network's salt.
const NETWORK_SALT: &str = "network.salt";

pub(crate) fn run(command: &DirectoryCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        Some(DirectorySubcommand::Log(command)) => log::run(command, options),
        Some(DirectorySubcommand::Witness(command)) => witness::run(command, options),
        Some(DirectorySubcommand::Anchor(command)) => anchor::run(command, options),
        Some(DirectorySubcommand::Corpus(command)) => corpus::run(command, options),
        Some(DirectorySubcommand::Claim(command)) => claim::run(command, options),
        None => serve(command, options),
    }
}

/// What a directory does besides serving.
enum Role {
    /// Signs and publishes the log; holds the lease.
    Writer(Box<LogKeeper>),
    Reader,
    Mirror(Box<Copying>),
}

/// A mirror and its source.
struct Copying {
    mirror: Mirror,
    log: LogUrl,
    documents: LogUrl,
}

impl Copying {
    fn open(place: &Place, url: &str, key: &str) -> Result<Copying, Failure> {
        let keys = log::keyring(key)?;
        let mirror = Mirror::open(&place.folders, keys).map_err(mirror_failure)?;
        let base = log::base(url);
        let fault = |error: LogFault| Failure::unreachable(error);
        let log = LogUrl::new(&base, log::dialer()).map_err(fault)?;
        let documents = LogUrl::new(&base, log::dialer()).map_err(fault)?;
        Ok(Copying { mirror, log, documents })
    }

    fn sync(&mut self) -> Result<u64, MirrorError> {
        let documents = &mut self.documents;
        self.mirror.sync(&mut self.log, &mut |hash| documents.file(&format!("document/{hash}")))
    }
}

fn mirror_failure(error: MirrorError) -> Failure {
    match error {
        MirrorError::Log(LogFault::Dial(_)) => Failure::unreachable(error),
        MirrorError::Lease(_) | MirrorError::File { .. } => Failure::usage(error),
        error => Failure::evidence(error),
    }
}

fn role(command: &DirectoryCommand, place: &Place) -> Result<Role, Failure> {
    if let (Some(url), Some(key)) = (&command.mirror, &command.key) {
        let mut copying = Copying::open(place, url, key)?;
        copying.sync().map_err(mirror_failure)?;
        return Ok(Role::Mirror(Box::new(copying)));
    }
    if command.reader {
        return Ok(Role::Reader);
    }
    let settings = &place.settings;
    let opened =
        LogWriter::open(&place.folders, &settings.public_url(), settings.signer.as_deref(), now());
    match opened {
        Ok(mut writer) => {
            writer.record_waiting(now()).map_err(Failure::usage)?;
            writer.say_waiting(now()).map_err(Failure::usage)?;
            writer.publish().map_err(Failure::usage)?;
            Ok(Role::Writer(Box::new(keeper(place, writer)?)))
        }
        Err(WriteError::Lease(LeaseError::Held { .. })) => Ok(Role::Reader),
        Err(error @ (WriteError::Publish(_) | WriteError::Log { .. })) => {
            Err(Failure::evidence(error))
        }
        Err(error) => Err(Failure::usage(error)),
    }
}

fn keeper(place: &Place, writer: LogWriter) -> Result<LogKeeper, Failure> {
    let settings = &place.settings;
    let dialer = Dialer::new(settings.network.allow_private, Some(settings.contact()));
    let calendars = settings.anchors.calendars.iter().map(|it| it.to_string()).collect();
    let mut witnesses = Vec::new();
    for witness in &settings.witness {
        let wrong =
            |error| Failure::usage(format!("`witness.key` of `{}`: {error}", &*witness.url));
        let key = WitnessKey::parse(&witness.key).map_err(wrong)?;
        witnesses.push(WitnessAddress { url: witness.url.to_string(), key, cosigned: 0 });
    }
    let checker = claim::checker(place)?;
    LogKeeper::new(writer, place.folders.clone(), dialer, calendars, witnesses, checker)
        .map_err(Failure::internal)
}

fn serve(command: &DirectoryCommand, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let role = role(command, &place)?;
    let settings = &place.settings;
    // A mirror copies only public data. The corpus, its members and claims stay with the original
    // directory.
    let (salt, desk) = match &role {
        Role::Mirror(_) => (None, None),
        Role::Writer(_) | Role::Reader => {
            let salt = secret_file::read_or_make(&place.folders.keys, NETWORK_SALT);
            let salt =
                salt.map_err(|error| Failure::usage(format!("the network's salt: {error}")))?;
            (Some(Salt::from_bytes(salt)), Some(claim::desk(&place)?))
        }
    };
    let site = Site::open(SiteParts {
        folders: place.folders.clone(),
        public_url: settings.public_url(),
        contact: settings.contact().to_owned(),
        sunset: settings.sunset.as_deref().map(str::to_owned),
        rates: rates(settings)?,
        trusted_proxies: settings.trusted_proxies.clone(),
        mirror_of: command.mirror.clone(),
        salt,
        claims: desk,
        clock: now,
    });
    let site = Arc::new(site.map_err(Failure::usage)?);
    let listen = command.listen.unwrap_or_else(|| settings.listen());
    let (stop, stopped) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|error| Failure::usage(format!("`{listen}`: {error}")))?;
        let address = listener.local_addr()?;
        match &settings.public_url {
            Some(url) => screen::say(format!("listening on {address}: {}", &**url)),
            None => screen::say(format!("listening on http://{address}")),
        }
        let doing = match &role {
            Role::Writer(_) => "writing to the log",
            Role::Reader => "reading: another process writes, or `--reader` was given",
            Role::Mirror(_) => "copying another directory",
        };
        if !options.quiet {
            screen::say(format!("{doing}; {} entries", site.snapshot().model.size));
        }
        let keeping = tokio::task::spawn_blocking({
            let (site, stopped) = (site.clone(), stopped.clone());
            move || run_role(&site, role, &stopped)
        });
        let serving =
            tokio::spawn(directory::serve::http::serve(listener, site.clone(), stopped.clone()));
        ended().await;
        let _ = stop.send(true);
        let _ = serving.await;
        let _ = keeping.await;
        site.flush_demand().map_err(Failure::usage)
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(Exit::Fine)
}

/// Publishes, copies or polls for new entries, depending on the role, until the directory is
/// stopped.
fn run_role(site: &Site, mut role: Role, stopped: &watch::Receiver<bool>) {
    let mut kept = Instant::now();
    while !*stopped.borrow() {
        std::thread::sleep(POLL_INTERVAL);
        let mut problems = match &mut role {
            Role::Writer(keeper) if kept.elapsed() >= PUBLISH => {
                kept = Instant::now();
                keeper.tick(now())
            }
            Role::Mirror(copying) if kept.elapsed() >= COPY => {
                kept = Instant::now();
                copying.sync().err().map(|error| error.to_string()).into_iter().collect()
            }
            Role::Writer(_) | Role::Reader | Role::Mirror(_) => Vec::new(),
        };
        problems.extend(site.refresh().err().map(|error| error.to_string()));
        problems.extend(site.flush_demand().err().map(|error| error.to_string()));
        problems.extend(site.tidy().err().map(|error| error.to_string()));
        for problem in problems {
            screen::remark(format!("holdpoint: {}", screen::readable(&problem)));
        }
    }
}

/// The rate limits, and the API keys with their secrets resolved.
fn rates(settings: &DirectorySettings) -> Result<Rates, Failure> {
    let anonymous = settings.rates.anonymous_per_minute.map_or(ANONYMOUS_PER_MINUTE, |it| it.0);
    let keyed = settings.rates.keyed_per_minute.map_or(KEYED_PER_MINUTE, |it| it.0);
    let mut keys = Vec::new();
    for key in &settings.key {
        let wrong = |problem: &dyn std::fmt::Display| {
            Failure::usage(format!("the key of `{}`: {problem}", &*key.owner))
        };
        let expires = Timestamp::parse(&key.expires)
            .ok_or_else(|| wrong(&"`expires` is a date such as 2026-12-31"))?;
        if expires.0 - now().0 > MAX_KEY_DAYS * DAY_MS {
            return Err(wrong(&format!("it may live for {MAX_KEY_DAYS} days at most")));
        }
        let secret =
            key.secret.read(|name| std::env::var(name).ok()).map_err(|error| wrong(&error))?;
        keys.push(ApiKey::new(&key.owner, secret.as_bytes(), expires));
    }
    Ok(Rates::new(anonymous, keyed, keys))
}

/// Waits for a termination signal.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
