//! The periodic work of a directory's writer: publishes queued statements and the log, has
//! checkpoints cosigned, anchors them, and checks claims again.

use crate::claim::check::Checker;
use crate::claim::ownership::check_again;
use crate::database::{DatabaseError, StoredAnchor};
use crate::log::anchor::{AnchorState, submit, upgrade};
use crate::log::ots::Proof;
use crate::log::proof;
use crate::log::publish::write_durably;
use crate::log::witness::request_text;
use crate::writer::{Folders, LogWriter};
use contract::time::Timestamp;
use http::StatusCode;
use ledger::checkpoint::{Checkpoint, parse_size};
use ledger::note::cosignature::WitnessKey;
use ledger::note::split;
use wire::dialer::{Call, DialError, Dialer};
use wire::service::ServiceBody;

/// The pause between two anchors.
const ANCHOR_PAUSE_MS: i64 = 3_600_000;
/// The most anchors that are checked for an upgrade.
const PENDING: usize = 48;
/// The most claims that are checked between two publications: a host that hangs must not delay the
/// log for long.
const CLAIMS_AT_A_TIME: usize = 1;

/// A witness that cosigns our checkpoints.
#[derive(Debug)]
pub struct WitnessAddress {
    pub url: String,
    pub key: WitnessKey,
    /// The size that it last cosigned, as far as known.
    pub cosigned: u64,
}

/// Keeps a log published, cosigned and anchored.
#[derive(Debug)]
pub struct LogKeeper {
    writer: LogWriter,
    folders: Folders,
    dialer: Dialer,
    calendars: Vec<String>,
    witnesses: Vec<WitnessAddress>,
    runtime: tokio::runtime::Runtime,
    anchored_at: Timestamp,
    /// Checks claims.
    checker: Checker,
}

impl LogKeeper {
    pub fn new(
        writer: LogWriter,
        folders: Folders,
        dialer: Dialer,
        calendars: Vec<String>,
        witnesses: Vec<WitnessAddress>,
        checker: Checker,
    ) -> std::io::Result<LogKeeper> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let anchored_at = Timestamp(0);
        Ok(LogKeeper {
            writer,
            folders,
            dialer,
            calendars,
            witnesses,
            runtime,
            anchored_at,
            checker,
        })
    }

    /// Does all work that is due. Returns the problems; failed work is tried again the next time.
    pub fn tick(&mut self, now: Timestamp) -> Vec<String> {
        let mut problems = Vec::new();
        // Statements that cannot be published now stay queued; the rest of the work continues.
        if let Err(error) = self.writer.say_waiting(now) {
            problems.push(error.to_string());
        }
        if let Err(error) = self.writer.publish() {
            problems.push(error.to_string());
            return problems;
        }
        if let Err(error) = self.check_claims(now) {
            problems.push(error.to_string());
        }
        self.cosign(&mut problems);
        if !self.calendars.is_empty() && now.0 - self.anchored_at.0 >= ANCHOR_PAUSE_MS {
            self.anchored_at = now;
            if let Err(problem) = self.anchor(now) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Checks a claim that is due. A claim that is not found is no problem of this directory.
    fn check_claims(&mut self, now: Timestamp) -> Result<(), DatabaseError> {
        let due = self.writer.database().due_claims(now, CLAIMS_AT_A_TIME)?;
        let database = self.writer.database_mut();
        self.runtime.block_on(check_again(database, &self.checker, due, now))?;
        Ok(())
    }

    /// Asks the witnesses that have not yet cosigned the newest checkpoint.
    fn cosign(&mut self, problems: &mut Vec<String>) {
        let publisher = self.writer.publisher();
        let (Some(note), size) = (publisher.note().map(str::to_owned), publisher.published_size())
        else {
            return;
        };
        let nodes = publisher.nodes();
        let mut lines = String::new();
        for witness in &mut self.witnesses {
            if witness.key.cosigned(&note).is_some() {
                continue;
            }
            let ask = |old: u64| -> Result<String, DialError> {
                let proof =
                    proof::consistency(&mut &*nodes, old.min(size), size).unwrap_or_else(|_| {
                        ledger::proof::ConsistencyProof { old, new: size, path: Vec::new() }
                    });
                let body = Some(ServiceBody::Bytes(request_text(&proof, &note).into_bytes()));
                let url = format!("{}/add-checkpoint", witness.url.trim_end_matches('/'));
                let call = Call { url: &url, accept: Some("*/*"), body, ..Call::default() };
                let line = self.runtime.block_on(self.dialer.call(call))?;
                Ok(String::from_utf8_lossy(&line).into_owned())
            };
            let mut answered = ask(witness.cosigned);
            // A witness that remembers a different size returns it.
            if let Err(DialError::Status { status: StatusCode::CONFLICT, body, .. }) = &answered
                && let Some(known) =
                    std::str::from_utf8(body).ok().and_then(|it| parse_size(it.trim_end()))
                && known < size
            {
                witness.cosigned = known;
                answered = ask(known);
            }
            match answered {
                Ok(line) if witness.key.cosigned(&format!("{note}{line}")).is_some() => {
                    witness.cosigned = size;
                    lines.push_str(&line);
                }
                Ok(_) => {
                    problems.push(format!("`{}` answered without its cosignature", witness.url));
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        if !lines.is_empty()
            && let Err(error) = self.writer.publisher().add_cosignatures(&lines)
        {
            problems.push(error.to_string());
        }
    }

    /// Upgrades pending anchors, and anchors the newest checkpoint if it has no anchor yet.
    fn anchor(&mut self, now: Timestamp) -> Result<(), String> {
        let anchors = self.writer.database().anchors(PENDING).map_err(|error| error.to_string())?;
        let newest = anchors.first().map(|anchor| anchor.size);
        for anchor in anchors {
            let mut proof = Proof::read(&anchor.proof).map_err(|error| error.to_string())?;
            if AnchorState::of(&proof) != AnchorState::Pending {
                continue;
            }
            let grown = self.runtime.block_on(upgrade(&self.dialer, &self.calendars, &mut proof));
            if grown.map_err(|error| error.to_string())? {
                self.keep_anchor(&StoredAnchor { proof: proof.write(), ..anchor })?;
            }
        }
        let text = self.writer.publisher().note().and_then(split).map(|(text, _)| text.to_owned());
        let Some(text) = text else { return Ok(()) };
        let size = Checkpoint::read(&text).map_err(|error| error.to_string())?.size;
        if newest == Some(size) {
            return Ok(());
        }
        let proof = self.runtime.block_on(submit(&self.dialer, &self.calendars, &text));
        let proof = proof.map_err(|error| error.to_string())?.write();
        self.keep_anchor(&StoredAnchor { size, text, at: now, proof })
    }

    fn keep_anchor(&mut self, anchor: &StoredAnchor) -> Result<(), String> {
        keep_anchor(&self.folders, &mut self.writer, anchor)
    }
}

/// Stores an anchor in the database, and as a file for other tools.
pub fn keep_anchor(
    folders: &Folders,
    writer: &mut LogWriter,
    anchor: &StoredAnchor,
) -> Result<(), String> {
    let path = folders.data.join("anchors").join(format!("{}.ots", anchor.size));
    write_durably(&path, &anchor.proof).map_err(|error| error.to_string())?;
    write_durably(&path.with_extension("checkpoint"), anchor.text.as_bytes())
        .map_err(|error| error.to_string())?;
    writer
        .database_mut()
        .write::<_, DatabaseError>(|writing| writing.keep_anchor(anchor))
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
