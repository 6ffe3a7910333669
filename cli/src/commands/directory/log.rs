//! `holdpoint directory log`: checks and monitors the log of any directory.

use crate::arguments::Options;
use crate::arguments::directory::{
    LogCommand, LogMirror, LogPlace, LogProve, LogSubcommand, LogVerify,
};
use crate::failure::{Exit, Failure};
use crate::screen;
use directory::log::publish::write_durably;
use directory::log::reader::{LogFault, LogFiles, LogFolder, LogReader, LogUrl};
use directory::mirror::Mirror;
use directory::model::Model;
use directory::writer::Folders;
use ledger::checkpoint::Checkpoint;
use ledger::note::Keyring;
use ledger::note::cosignature::WitnessKey;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use wire::dialer::Dialer;

pub(super) fn run(command: &LogCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        LogSubcommand::Verify(command) => verify(command, options),
        LogSubcommand::Prove(command) => prove(command),
        LogSubcommand::Mirror(command) => mirror(command, options),
    }
}

/// Fetches a log that the user named. Private addresses are allowed.
pub(super) fn dialer() -> Dialer {
    Dialer::new(true, None).with_pause(Duration::ZERO)
}

/// The base URL of the log, below that of its directory.
pub(super) fn base(url: &str) -> String {
    let url = url.trim_end_matches('/');
    if url.ends_with("/log") { url.to_owned() } else { format!("{url}/log") }
}

/// Parses a public key given as text or as a file.
pub(super) fn key_text(named: &str) -> Result<String, Failure> {
    if named.contains('+') && !Path::new(named).exists() {
        return Ok(named.to_owned());
    }
    std::fs::read_to_string(named).map_err(|error| Failure::usage(format!("`{named}`: {error}")))
}

pub(super) fn keyring(named: &str) -> Result<Keyring, Failure> {
    Keyring::from_text(&key_text(named)?)
        .map_err(|error| Failure::usage(format!("the log's key: {error}")))
}

fn failure(fault: LogFault) -> Failure {
    match fault {
        LogFault::Dial(_) | LogFault::NoRuntime(_) | LogFault::File { .. } => {
            Failure::unreachable(fault)
        }
        fault => Failure::evidence(fault),
    }
}

fn reader(place: &LogPlace) -> Result<LogReader<Box<dyn LogFiles>>, Failure> {
    let files: Box<dyn LogFiles> = match (&place.url, &place.folder) {
        (Some(url), _) => Box::new(LogUrl::new(&base(url), dialer()).map_err(failure)?),
        (None, Some(folder)) => Box::new(LogFolder(folder.clone())),
        (None, None) => return Err(Failure::usage("which log? `--url URL` or `--folder DIR`")),
    };
    Ok(LogReader::new(files, keyring(&place.key)?))
}

fn kept_checkpoint(path: &Path, key: &str) -> Result<Option<Checkpoint>, Failure> {
    let note = match std::fs::read_to_string(path) {
        Ok(note) => note,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::usage(format!("`{}`: {error}", path.display()))),
    };
    let opened = Checkpoint::open_log(&note, &keyring(key)?);
    opened.map(Some).map_err(|error| {
        Failure::evidence(format!("the checkpoint kept in `{}`: {error}", path.display()))
    })
}

fn verify(command: &LogVerify, options: &Options) -> Result<Exit, Failure> {
    let mut reader = reader(&command.place)?;
    let (checkpoint, note) = reader.checkpoint().map_err(failure)?;
    let mut model = Model::default();
    let mut heard =
        |_: u64, entry: &[u8]| model.apply(entry).map(|_| ()).map_err(|misfit| misfit.to_string());
    reader.verify(&checkpoint, &mut heard).map_err(failure)?;
    let mut witnesses = Vec::new();
    for named in &command.witness {
        let key = WitnessKey::parse(key_text(named)?.trim_end())
            .map_err(|error| Failure::usage(format!("a witness's key: {error}")))?;
        let seen = key.cosigned(&note).ok_or_else(|| {
            Failure::evidence(format!("`{}` has not cosigned the checkpoint", key.name()))
        })?;
        witnesses.push(json!({ "witness": seen.witness, "seconds": seen.seconds }));
    }
    let mut extended = None;
    if let Some(path) = &command.kept {
        if let Some(kept) = kept_checkpoint(path, &command.place.key)? {
            reader.extends(&kept, &checkpoint).map_err(failure)?;
            extended = Some(kept.size);
        }
        write_durably(path, note.as_bytes())?;
    }
    if options.json {
        screen::print_json(&json!({
            "origin": checkpoint.origin,
            "size": checkpoint.size,
            "root": checkpoint.root.base64(),
            "servers": model.servers.len(),
            "changes": model.drifts.len(),
            "extends": extended,
            "witnesses": witnesses,
        }))?;
        return Ok(Exit::Fine);
    }
    screen::say(format!(
        "{}: {} entries, every signature, hash and history holds",
        checkpoint.origin, checkpoint.size
    ));
    screen::say(format!("  root {}", checkpoint.root.base64()));
    screen::say(format!("  {} servers, {} changes", model.servers.len(), model.drifts.len()));
    if let Some(size) = extended {
        screen::say(format!("  extends the {size} entries of the checkpoint that was kept"));
    }
    match witnesses.len() {
        0 => {
            screen::say(
                "  no witness was asked about: another reader may be shown another history",
            );
        }
        count => screen::say(format!("  cosigned by {count} witnesses")),
    }
    Ok(Exit::Fine)
}

fn prove(command: &LogProve) -> Result<Exit, Failure> {
    let mut reader = reader(&command.place)?;
    let (checkpoint, note) = reader.checkpoint().map_err(failure)?;
    let proof: Value = match (command.number, &command.kept) {
        (Some(number), _) => {
            let (entry, proof) = reader.prove(number, &checkpoint).map_err(failure)?;
            json!({
                "entry": serde_json::from_slice::<Value>(&entry).unwrap_or(Value::Null),
                "entry_text": String::from_utf8_lossy(&entry),
                "inclusion": proof,
                "checkpoint": note,
            })
        }
        (None, Some(path)) => {
            let kept = kept_checkpoint(path, &command.place.key)?;
            let kept =
                kept.ok_or_else(|| Failure::usage(format!("`{}` does not exist", path.display())))?;
            let proof = reader.extends(&kept, &checkpoint).map_err(failure)?;
            json!({ "consistency": proof, "checkpoint": note })
        }
        (None, None) => return Err(Failure::usage("which entry? give its number")),
    };
    screen::print_json(&proof)?;
    Ok(Exit::Fine)
}

fn mirror(command: &LogMirror, options: &Options) -> Result<Exit, Failure> {
    let Some(url) = &command.place.url else {
        return Err(Failure::usage("which log? `--url URL`"));
    };
    let data = std::path::absolute(&command.to)?;
    let folders = Folders { keys: data.join("keys"), data };
    let mut mirror =
        Mirror::open(&folders, keyring(&command.place.key)?).map_err(super::mirror_failure)?;
    let mut log = LogUrl::new(&base(url), dialer()).map_err(failure)?;
    let mut documents = LogUrl::new(&base(url), dialer()).map_err(failure)?;
    let added = mirror
        .sync(&mut log, &mut |hash| documents.file(&format!("document/{hash}")))
        .map_err(super::mirror_failure)?;
    if options.json {
        screen::print_json(&json!({ "added": added, "size": mirror.size() }))?;
    } else {
        screen::say(format!("{added} entries copied and checked; the copy has {}", mirror.size()));
    }
    Ok(Exit::Fine)
}
