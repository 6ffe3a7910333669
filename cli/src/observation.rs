//! Reads a surface from a server, with a progress line, or from a capture.

use crate::arguments::{Options, UpstreamArguments};
use crate::configuration::Configuration;
use crate::confinement::{ConfinedIn, Otherwise};
use crate::failure::Failure;
use crate::screen;
use crate::target::{Reach, Source, home_path, read_file, server_id};
use crate::vouching::admit_before_look;
use contract::surface::{CaptureError, ListKind, Surface, SurfaceReader, read_capture};
use engine::origin::{Origin, observed_origin};
use gate::time::Timestamp;
use std::path::Path;
use std::time::{Duration, SystemTime};
use store::LaunchKey;
use wire::{ObserveError, Observed, Progress};

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// An observed server: its surface, and its raw handshake response.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) surface: Surface,
    /// `None` for a capture.
    pub(crate) handshake: Option<String>,
}

/// The surface of a target.
pub(crate) fn surface_of(
    source: &Source,
    key: &LaunchKey,
    options: &Options,
) -> Result<Surface, Failure> {
    look_at(source, key, options).map(|looked| looked.surface)
}

pub(crate) fn look_at(
    source: &Source,
    key: &LaunchKey,
    options: &Options,
) -> Result<Looked, Failure> {
    match source {
        Source::Server(reach) => look_at_server(reach, key, options),
        Source::Capture(path) => Ok(Looked { surface: captured(path)?, handshake: None }),
    }
}

/// The surface of a capture.
pub(crate) fn captured(path: &Path) -> Result<Surface, Failure> {
    let named = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
    read_capture(&read_file(path)?).map_err(|error| match error {
        CaptureError::Unreadable(_) => Failure::unreadable_capture(named(&error)),
        CaptureError::NotJson(_) | CaptureError::NotACapture => Failure::usage(named(&error)),
    })
}

/// Lists a server without recording anything. Fails if any of its lists cannot be read.
pub(crate) fn observe_unpinned(
    upstream: &UpstreamArguments,
    options: &Options,
) -> Result<(Reach, Surface), Failure> {
    let reach = Reach::of(upstream)?;
    let home = home_path(options)?;
    let configuration = Configuration::read(&home.join("holdpoint.toml"))?;
    // The origin is not stored, so nothing is ever compared with hashes made by this key.
    let key = LaunchKey::unkept()?;
    let id = server_id(&reach.origin(&key))?;
    let place = ConfinedIn { home: &home, configuration: &configuration, is_quiet: options.quiet };
    let reach = reach.configured_by(&id, &configuration, upstream).confined(
        &id,
        &upstream.sandbox,
        place,
        Otherwise::AsBefore,
    )?;
    admit_before_look(&id, &reach, &configuration, &home)?;
    let surface = observe(&reach, &key, options)?;
    remark_notes(&surface, options);
    let unreadable = surface.unreadable().iter();
    let unreadable: Vec<String> = unreadable
        .map(|(list, reason)| format!("`{}` cannot be read: {reason}", list.method()))
        .collect();
    match unreadable.is_empty() {
        true => Ok((reach, surface)),
        false => Err(Failure::unreadable(unreadable.join("; "))),
    }
}

/// Starts or reaches a server and reads its whole surface.
pub(crate) fn observe(
    reach: &Reach,
    key: &LaunchKey,
    options: &Options,
) -> Result<Surface, Failure> {
    look_at_server(reach, key, options).map(|looked| looked.surface)
}

fn look_at_server(reach: &Reach, key: &LaunchKey, options: &Options) -> Result<Looked, Failure> {
    let origin = reach.origin(key);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let spinner = Spinner::start(&origin, options);
    let progress = |step: Progress| spinner.show(step);
    let observed = runtime.block_on(async {
        tokio::select! {
            observed = wire::observe_as(&reach.client, &reach.upstream, &reach.limits, &progress) => {
                observed.map_err(|error| match error {
                    ObserveError::PrivateAddressRefused { .. } => {
                        Failure::unreachable(format!("{error} (`--allow-private`)"))
                    }
                    _ => Failure::quoting_server(&error),
                })
            }
            _ = tokio::signal::ctrl_c() => Err(Failure::unreachable("interrupted")),
        }
    });
    spinner.stop();
    let observed = observed?;
    let handshake = Some(observed.handshake.clone());
    Ok(Looked { surface: surface_from(observed, reach, key)?, handshake })
}

fn surface_from(observed: Observed, reach: &Reach, key: &LaunchKey) -> Result<Surface, Failure> {
    let mut reader = SurfaceReader::default();
    let unreadable = |what: &str, error: &dyn std::fmt::Display| {
        Failure::unreadable(format!("{what} cannot be read: {error}"))
    };
    reader
        .handshake(&observed.handshake)
        .map_err(|error| unreadable("the server's handshake", &error))?;
    for (list, outcome) in &observed.lists {
        outcome.read_into(*list, &mut reader);
    }
    for note in observed.notes {
        reader.note(note);
    }
    let mut surface = reader.finish();
    let origin = observed_origin(&reach.upstream, key, observed.tls_key.as_deref(), None);
    surface.insert(origin.map_err(|error| unreadable("the server's origin", &error))?);
    Ok(surface)
}

/// A progress line on standard error, if it is a terminal.
struct Spinner(Option<indicatif::ProgressBar>);

impl Spinner {
    fn start(origin: &Origin, options: &Options) -> Spinner {
        if options.quiet || !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Spinner(None);
        }
        let bar = indicatif::ProgressBar::new_spinner();
        let style = indicatif::ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(match origin {
            Origin::Program(origin) => format!("starting {}", origin.short_name()),
            Origin::Address { url, .. } => format!("reaching {url}"),
        });
        bar.enable_steady_tick(Duration::from_millis(120));
        Spinner(Some(bar))
    }

    fn show(&self, step: Progress) {
        let Some(bar) = &self.0 else { return };
        match step {
            Progress::Starting => {}
            Progress::Handshake => bar.set_message("waiting for the server to answer"),
            Progress::Listing(list, page) => bar.set_message(listing(list, page)),
        }
    }

    fn stop(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn listing(list: ListKind, page: usize) -> String {
    match page {
        1 => format!("reading {}", list.member()),
        page => format!("reading {}, page {page}", list.member()),
    }
}

/// Prints what was left out of the surface or set aside.
pub(crate) fn remark_notes(surface: &Surface, options: &Options) {
    if options.quiet {
        return;
    }
    for note in surface.notes() {
        screen::remark(screen::styled(screen::DIM, format!("note: {}", screen::readable(note))));
    }
}
