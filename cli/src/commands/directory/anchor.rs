//! `holdpoint directory anchor`: OpenTimestamps proofs of checkpoints.

use super::place::Place;
use crate::arguments::Options;
use crate::arguments::directory::{AnchorCommand, AnchorSubcommand, AnchorVerify, DirectoryPlace};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen;
use directory::database::StoredAnchor;
use directory::keeping::keep_anchor;
use directory::log::anchor::{AnchorState, digest_of, is_in_block, submit, upgrade};
use directory::log::ots::{BlockHeader, MAX_PROOF_BYTES, Proof};
use ledger::checkpoint::Checkpoint;
use ledger::note::split;
use serde_json::json;
use wire::dialer::Dialer;

/// The most pending anchors that are checked per upgrade.
const MAX_PENDING: usize = 1_000;

pub(super) fn run(command: &AnchorCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        AnchorSubcommand::Submit(place) => submit_newest(place, options),
        AnchorSubcommand::Upgrade(place) => upgrade_all(place, options),
        AnchorSubcommand::Verify(command) => verify(command, options),
    }
}

fn calendars(place: &Place) -> Vec<String> {
    place.settings.anchors.calendars.iter().map(|calendar| calendar.to_string()).collect()
}

fn submit_newest(named: &DirectoryPlace, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(named, options)?;
    let mut writer = place.writer()?;
    writer.publish().map_err(Failure::usage)?;
    let note = writer.publisher().note().map(str::to_owned);
    let text = note.as_deref().and_then(split).map(|(text, _)| text.to_owned());
    let text = text.ok_or_else(|| Failure::usage("nothing is published yet"))?;
    let size = Checkpoint::read(&text).map_err(Failure::internal)?.size;
    let dialer = Dialer::new(place.settings.network.allow_private, Some(place.settings.contact()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let proof = runtime
        .block_on(submit(&dialer, &calendars(&place), &text))
        .map_err(Failure::unreachable)?;
    let state = AnchorState::of(&proof);
    let anchor = StoredAnchor { size, text, at: now(), proof: proof.write() };
    keep_anchor(&place.folders, &mut writer, &anchor).map_err(Failure::usage)?;
    print_result(options, size, &state, &place)?;
    Ok(Exit::Fine)
}

fn print_result(
    options: &Options,
    size: u64,
    state: &AnchorState,
    place: &Place,
) -> Result<(), Failure> {
    let file = place.folders.data.join("anchors").join(format!("{size}.ots"));
    if options.json {
        screen::print_json(&json!({ "size": size, "state": state.to_string(), "file": file }))?;
    } else {
        screen::say(format!("{size} entries: {state} ({})", screen::path(&file)));
    }
    Ok(())
}

fn upgrade_all(named: &DirectoryPlace, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(named, options)?;
    let mut writer = place.writer()?;
    let dialer = Dialer::new(place.settings.network.allow_private, Some(place.settings.contact()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for anchor in writer.database().anchors(MAX_PENDING).map_err(Failure::usage)? {
        let mut proof = Proof::read(&anchor.proof).map_err(Failure::evidence)?;
        if AnchorState::of(&proof) == AnchorState::Pending {
            let grown = runtime
                .block_on(upgrade(&dialer, &calendars(&place), &mut proof))
                .map_err(Failure::unreachable)?;
            if grown {
                let anchor = StoredAnchor { proof: proof.write(), ..anchor.clone() };
                keep_anchor(&place.folders, &mut writer, &anchor).map_err(Failure::usage)?;
            }
        }
        print_result(options, anchor.size, &AnchorState::of(&proof), &place)?;
    }
    Ok(Exit::Fine)
}

fn verify(command: &AnchorVerify, options: &Options) -> Result<Exit, Failure> {
    let read = |path: &std::path::Path| {
        let found = std::fs::metadata(path).and_then(|found| match found.len() {
            length if length > MAX_PROOF_BYTES as u64 => Err(std::io::Error::other("too large")),
            _ => std::fs::read(path),
        });
        found.map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))
    };
    let proof = Proof::read(&read(&command.proof)?)
        .map_err(|error| Failure::evidence(format!("the proof: {error}")))?;
    let checkpoint = String::from_utf8(read(&command.checkpoint)?)
        .map_err(|_| Failure::evidence("the checkpoint is not text"))?;
    let text = split(&checkpoint).map_or(checkpoint.as_str(), |(text, _)| text);
    if proof.digest != digest_of(text) {
        return Err(Failure::evidence("the proof is about another text than this checkpoint"));
    }
    let state = AnchorState::of(&proof);
    let mut block = None;
    if let Some(header) = &command.header {
        let header = BlockHeader::read(header).map_err(Failure::evidence)?;
        if !is_in_block(&proof, text, &header) {
            return Err(Failure::evidence("the block of this header does not have the checkpoint"));
        }
        block = Some(header);
    }
    if options.json {
        screen::print_json(&json!({
            "state": state.to_string(),
            "block_hash": block.as_ref().map(|header| &header.hash),
            "header_supplied_by_caller": block.is_some(),
        }))?;
        return Ok(Exit::Fine);
    }
    screen::say(format!("the proof is about this checkpoint; {state}"));
    match &block {
        Some(header) => {
            screen::say(format!("  block {} has it", header.hash));
            screen::say(
                "  the header was supplied by you: that it is in Bitcoin's chain is not checked here",
            );
        }
        None if state != AnchorState::Pending => {
            screen::say("  give the block's header with `--header` to check the block");
        }
        None => {}
    }
    Ok(Exit::Fine)
}
