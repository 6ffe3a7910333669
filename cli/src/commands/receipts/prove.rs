//! `holdpoint receipts prove`: evidence for a third party that has only the public key.

use super::{folder, keys, read_file};
use crate::arguments::Options;
use crate::arguments::receipts::ProveCommand;
use crate::failure::{Exit, Failure};
use crate::screen;
use ledger::folder::MAX_CHECKPOINT_BYTES;
use ledger::proof::BuildError;
use ledger::prove::{Half, ProveError, consistency, heads, inclusion};

pub(crate) fn run(command: &ProveCommand, options: &Options) -> Result<Exit, Failure> {
    let keys = keys(&command.evidence, options)?;
    let folder = folder(command.receipts.as_deref(), options)?;
    if command.heads {
        let heads = heads(&folder, &keys).map_err(failure)?;
        if options.json {
            screen::print_json(&serde_json::json!({ "heads": heads }))?;
        } else {
            screen::print_raw(&heads.join("\n"))?;
        }
        return Ok(Exit::Fine);
    }
    let document = match (&command.id, &command.since) {
        (Some(id), _) => {
            let half = if command.outcome { Half::Outcome } else { Half::Decision };
            inclusion(&folder, &keys, *id, half)
        }
        (None, Some(path)) => {
            let older = read_file(path, MAX_CHECKPOINT_BYTES as u64)?;
            consistency(&folder, &keys, &older)
        }
        // clap requires one of the three arguments.
        (None, None) => return Err(Failure::usage("name a receipt, `--since FILE` or `--heads`")),
    };
    // A proof is for programs: print JSON whether or not `--json` was given.
    screen::print_json(&document.map_err(failure)?)?;
    Ok(Exit::Fine)
}

fn failure(error: ProveError) -> Failure {
    match error {
        // A checkpoint covers more lines than exist: some are missing.
        ProveError::Build(BuildError::TooFew { .. } | BuildError::Shrunk { .. }) => {
            Failure::evidence(error)
        }
        ProveError::NoSuchReceipt { .. }
        | ProveError::NoSuchChain(_)
        | ProveError::NoCheckpoint(_)
        | ProveError::NotCovered
        | ProveError::Build(_) => Failure::usage(error),
        ProveError::Checkpoint(_)
        | ProveError::Proof(_)
        | ProveError::Line { .. }
        | ProveError::Segment { .. } => Failure::evidence(error),
        ProveError::Io(_) => Failure::internal(error),
    }
}
