//! `holdpoint receipts export`: writes receipts in the formats of other tools, or sends new ones to
//! collectors.

use super::folder_if_any;
use super::printing::{Reader, reader, remark_notes};
use crate::arguments::Options;
use crate::arguments::receipts::ExportCommand;
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::screen::{self, readable};
use crate::target::home_path;
use engine::export::{LiveExport, Report, StartError, do_not_track};
use ledger::export::Format;
use ledger::receipt::{Filter, Item, Joiner, Reading, segments_since};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use store::Home;
use store::receipts::DiskFolder;

pub(crate) fn run(command: &ExportCommand, options: &Options) -> Result<Exit, Failure> {
    if command.live {
        return live(options);
    }
    let is_json = matches!(command.format, Format::Jsonl | Format::Ocsf);
    if options.json && command.output.is_none() && !is_json {
        return Err(Failure::usage(format!(
            "`{}` is not JSON: omit `--json`, or write to a file with `-o FILE`",
            command.format
        )));
    }
    let filter = command.filter.filter()?;
    let folder = folder_if_any(command.folder.receipts.as_deref(), options)?;
    let Some(path) = &command.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        write_all(folder.as_ref(), command.format, &filter, &mut out)?;
        return Ok(Exit::Fine);
    };
    let wrong = |error: io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
    let mut out = BufWriter::new(private_file(path).map_err(wrong)?);
    let written = write_all(folder.as_ref(), command.format, &filter, &mut out)?;
    if options.json {
        screen::print_json(&json!({
            "file": path,
            "format": command.format.as_str(),
            "receipts": written.receipts,
            "events": written.events,
            "unreadable": written.unreadable,
        }))?;
    } else if !options.quiet {
        let (receipts, events) = (written.receipts, written.events);
        let path = path.display();
        screen::remark(format!("{receipts} receipts and {events} events written to {path}"));
    }
    Ok(Exit::Fine)
}

/// Creates a file that only its owner can read: receipts record who did what.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[derive(Debug, Default)]
struct Written {
    receipts: u64,
    events: u64,
    /// Lines that were left out because they cannot be parsed.
    unreadable: u64,
}

/// Writes every matching receipt as soon as it is complete.
fn write_all(
    folder: Option<&DiskFolder>,
    format: Format,
    filter: &Filter,
    out: &mut impl Write,
) -> Result<Written, Failure> {
    let mut written = Written::default();
    let mut text = String::new();
    format.write_header(&mut text);
    let mut is_read = reader(out.write_all(text.as_bytes()))?;
    let Some(folder) = folder else { return finish(out, written) };
    let starts = match filter.since {
        Some(since) => segments_since(folder, since)?,
        None => BTreeMap::new(),
    };
    let mut reading = Reading::begin(folder.clone(), &starts)?;
    let (mut joiner, mut complete) = (Joiner::default(), Vec::new());
    loop {
        let more = reading.next();
        let is_end = more.is_none();
        match more {
            Some((spot, entry)) => joiner.push(&spot, entry, &mut complete),
            None => joiner.finish(&mut complete),
        }
        for item in complete.drain(..).filter(|item| filter.matches(item)) {
            text.clear();
            format.write(&item, &mut text)?;
            is_read = reader(out.write_all(text.as_bytes()))?;
            match item {
                Item::Receipt(_) => written.receipts += 1,
                Item::Event(_) => written.events += 1,
            }
        }
        let mut notes = reading.take_notes();
        notes.extend(joiner.take_notes());
        written.unreadable += notes.iter().filter(|note| note.line.is_some()).count() as u64;
        remark_notes(&notes);
        if is_end || is_read == Reader::Gone {
            // With `--since`, the decisions of some outcomes are left out on purpose.
            if joiner.strays() > 0 && filter.since.is_none() {
                let strays = joiner.strays();
                screen::remark(format!("{strays} outcomes belong to decisions that are missing"));
            }
            return finish(out, written);
        }
    }
}

fn finish(out: &mut impl Write, written: Written) -> Result<Written, Failure> {
    // A closed pipe is not an error.
    let (Reader::There | Reader::Gone) = reader(out.flush())?;
    Ok(written)
}

/// Sends receipts to the configured collectors until interrupted.
fn live(options: &Options) -> Result<Exit, Failure> {
    let home = Home::open(&home_path(options)?)?;
    let mut settings = Configuration::read(&home.config_path())?.export()?;
    settings.do_not_track = do_not_track(std::env::var_os("DO_NOT_TRACK").as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Install the signal handlers before anything starts, so that no signal is missed.
    let end = runtime.block_on(async { Ending::listen() })?;
    let sent = Arc::new(AtomicU64::new(0));
    let (counter, quiet, verbose) = (Arc::clone(&sent), options.quiet, options.verbose);
    let (fault, faulted) = tokio::sync::oneshot::channel();
    let fault = Mutex::new(Some(fault));
    let folder = DiskFolder::new(&home.receipts_path());
    let export = LiveExport::start(home.path(), folder, settings, move |report| {
        let is_told = match &report {
            Report::Sent { count, .. } => {
                counter.fetch_add(*count as u64, Ordering::Relaxed);
                verbose
            }
            Report::Started { .. } | Report::Waiting => !quiet,
            Report::Fault => {
                if let Some(fault) = fault.lock().ok().and_then(|mut fault| fault.take()) {
                    let _ = fault.send(());
                }
                true
            }
            Report::Trouble { .. }
            | Report::Recovered { .. }
            | Report::Rejected { .. }
            | Report::Note(_) => true,
        };
        if is_told {
            screen::remark(readable(&report.to_string()));
        }
    });
    let export = export.map_err(|error| match error {
        StartError::DoNotTrack | StartError::NothingConfigured | StartError::Home { .. } => {
            Failure::usage(error)
        }
        StartError::Tls(_) | StartError::Thread(_) => Failure::internal(error),
    })?;
    let is_faulty = runtime.block_on(async {
        tokio::select! {
            () = end.wait() => false,
            Ok(()) = faulted => true,
        }
    });
    export.stop();
    if options.json {
        screen::print_json(&json!({ "sent": sent.load(Ordering::Relaxed) }))?;
    }
    Ok(if is_faulty { Exit::Internal } else { Exit::Fine })
}

/// The signals that stop the command.
struct Ending {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Ending {
    #[cfg(unix)]
    fn listen() -> io::Result<Ending> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Ending { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Ending> {
        Ok(Ending {})
    }

    #[cfg(unix)]
    async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn wait(self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
