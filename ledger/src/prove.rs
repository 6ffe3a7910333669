//! Builds proofs from a folder: that a receipt is in its chain, that a chain only grew, and the
//! newest heads.

use crate::chain::Walk;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::folder::{ChainId, ChainListing, Folder, Listing, SegmentNumber};
use crate::line::{BadLine, LineKind, scan};
use crate::lines::{LineReader, Piece};
use crate::note::Keyring;
use crate::proof::{BuildError, ConsistencyBuilder, InclusionBuilder, ProofDocument, ProofError};
use crate::record::ReceiptId;
use crate::tree::{Frontier, NodeHash, leaf};
use std::io;

/// Why a proof cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error("the receipts cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("there is no {what} with the id `{id}`")]
    NoSuchReceipt { what: &'static str, id: ReceiptId },
    #[error("there is no chain {0}")]
    NoSuchChain(String),
    #[error("chain {0} has no checkpoint yet")]
    NoCheckpoint(ChainId),
    #[error(
        "no checkpoint covers the receipt yet: the next one does, within ten seconds while its process runs"
    )]
    NotCovered,
    #[error("the checkpoint does not verify: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("chain {chain}, segment {segment}, line {line}: {source}")]
    Line { chain: ChainId, segment: SegmentNumber, line: u64, source: BadLine },
    #[error("chain {chain}, segment {segment}: {what}")]
    Segment { chain: ChainId, segment: SegmentNumber, what: &'static str },
    #[error("the lines do not give the proof, so they were changed: {0}")]
    Proof(#[from] ProofError),
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// One of a receipt's two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Decision,
    Outcome,
}

impl Half {
    fn word(self) -> &'static str {
        match self {
            Half::Decision => "decision",
            Half::Outcome => "outcome",
        }
    }

    fn is(self, kind: LineKind) -> bool {
        match self {
            Half::Decision => matches!(kind, LineKind::Decision { .. }),
            Half::Outcome => kind == LineKind::Outcome,
        }
    }
}

/// The newest checkpoint of every chain, exactly as in its file.
pub fn heads(folder: &dyn Folder, keys: &Keyring) -> Result<Vec<String>, ProveError> {
    let listing = folder.listing()?;
    let newest = listing.chains.iter().filter(|(_, files)| !files.checkpoints.is_empty());
    newest.map(|(chain, files)| Ok(newest_checkpoint(folder, chain, files, keys)?.0)).collect()
}

/// Proves that one line of a receipt is in its chain.
pub fn inclusion(
    folder: &dyn Folder,
    keys: &Keyring,
    id: ReceiptId,
    half: Half,
) -> Result<ProofDocument, ProveError> {
    let listing = folder.listing()?;
    let (chain, index, line) = find(folder, &listing, id, half)?;
    let files = chain_files(&listing, &chain)?;
    let (text, checkpoint) = newest_checkpoint(folder, &chain, files, keys)?;
    if index >= checkpoint.size {
        return Err(ProveError::NotCovered);
    }
    let mut builder = None;
    each_leaf(folder, &chain, files, |before, leaf| {
        if builder.is_none() {
            builder = Some(InclusionBuilder::new(index, checkpoint.size, before)?);
        }
        if let Some(builder) = &mut builder {
            builder.push(leaf);
        }
        Ok(())
    })?;
    let proof = builder.ok_or_else(|| ProveError::NoCheckpoint(chain.clone()))?.finish()?;
    checked(ProofDocument::Inclusion { chain, line, proof, checkpoint: text }, keys)
}

/// Proves that a chain starts with everything that an older checkpoint covers.
pub fn consistency(
    folder: &dyn Folder,
    keys: &Keyring,
    older: &str,
) -> Result<ProofDocument, ProveError> {
    let old = Checkpoint::open(older, keys)?;
    let chain = old.chain().ok_or_else(|| ProveError::NoSuchChain(old.origin.clone()))?;
    let listing = folder.listing()?;
    let files = chain_files(&listing, &chain)?;
    let (text, new) = newest_checkpoint(folder, &chain, files, keys)?;
    let mut builder = None;
    each_leaf(folder, &chain, files, |before, leaf| {
        if builder.is_none() {
            builder = Some(ConsistencyBuilder::new(old.size, new.size, before)?);
        }
        if let Some(builder) = &mut builder {
            builder.push(leaf);
        }
        Ok(())
    })?;
    let proof = builder.ok_or_else(|| ProveError::NoCheckpoint(chain.clone()))?.finish()?;
    let document = ProofDocument::Consistency {
        chain,
        proof,
        old_checkpoint: older.to_owned(),
        checkpoint: text,
    };
    checked(document, keys)
}

/// Verifies a new proof: if lines were changed, returns an error and no useless proof.
fn checked(document: ProofDocument, keys: &Keyring) -> Result<ProofDocument, ProveError> {
    document.check(keys)?;
    Ok(document)
}

fn chain_files<'l>(listing: &'l Listing, chain: &ChainId) -> Result<&'l ChainListing, ProveError> {
    listing.chains.get(chain).ok_or_else(|| ProveError::NoSuchChain(chain.to_string()))
}

fn newest_checkpoint(
    folder: &dyn Folder,
    chain: &ChainId,
    files: &ChainListing,
    keys: &Keyring,
) -> Result<(String, Checkpoint), ProveError> {
    let none = || ProveError::NoCheckpoint(chain.clone());
    let is_there = |number: &&SegmentNumber| files.segments.contains_key(number);
    let number = files.checkpoints.iter().filter(is_there).max().ok_or_else(none)?;
    let text = folder.checkpoint(chain, *number)?.ok_or_else(none)?;
    let checkpoint = Checkpoint::open(&text, keys)?;
    if checkpoint.chain().as_ref() == Some(chain) { Ok((text, checkpoint)) } else { Err(none()) }
}

/// The chain, number and text of the line.
fn find(
    folder: &dyn Folder,
    listing: &Listing,
    id: ReceiptId,
    half: Half,
) -> Result<(ChainId, u64, String), ProveError> {
    let wanted = id.to_string();
    let searcher = memchr::memmem::Finder::new(wanted.as_bytes());
    for (chain, files) in &listing.chains {
        for number in files.segments.keys() {
            let mut reader = LineReader::new(folder.segment(chain, *number)?);
            while let Some(piece) = reader.next_piece()? {
                let Piece::Line(bytes) = piece else { continue };
                if searcher.find(bytes).is_none() {
                    continue;
                }
                let Ok(line) = scan(bytes) else { continue };
                if line.receipt_id == Some(wanted.as_str()) && half.is(line.kind) {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    return Ok((chain.clone(), line.seq, text));
                }
            }
        }
    }
    Err(ProveError::NoSuchReceipt { what: half.word(), id })
}

/// Passes on the leaves of a chain in order, after the tree before the first one.
fn each_leaf(
    folder: &dyn Folder,
    chain: &ChainId,
    files: &ChainListing,
    mut take: impl FnMut(&Frontier, NodeHash) -> Result<(), ProveError>,
) -> Result<(), ProveError> {
    let mut before = None;
    for segment in files.segments.keys() {
        let mut reader = LineReader::new(folder.segment(chain, *segment)?);
        let mut number = 0;
        while let Some(piece) = reader.next_piece()? {
            let bytes = match piece {
                Piece::Line(bytes) => bytes,
                // No checkpoint covers a line that is still being written.
                Piece::Tail(_) => break,
                Piece::TooLong => {
                    let what = "a line is longer than any may be";
                    return Err(ProveError::Segment {
                        chain: chain.clone(),
                        segment: *segment,
                        what,
                    });
                }
            };
            number += 1;
            let bad = |source| ProveError::Line {
                chain: chain.clone(),
                segment: *segment,
                line: number,
                source,
            };
            let line = scan(bytes).map_err(bad)?;
            if before.is_none() {
                let wrong =
                    |what| ProveError::Segment { chain: chain.clone(), segment: *segment, what };
                before = Some(Walk::before(&line).map_err(wrong)?);
            }
            if let Some(before) = &before {
                take(before, leaf(&line.hash.0))?;
            }
        }
    }
    Ok(())
}
