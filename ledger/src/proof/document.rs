//! Proofs as self-contained documents, which can be verified with only the public keys.

use super::{ConsistencyProof, InclusionProof, MAX_PATH, Proven};
use crate::checkpoint::{Checkpoint, CheckpointError, parse_size};
use crate::folder::{ChainId, MAX_LINE_BYTES};
use crate::line::{self, BadLine, LineHash};
use crate::note::Keyring;
use crate::tree::{self, NodeHash};
use contract::json::{Document, Node, ReadError};
use serde::Serialize;
use std::fmt;

/// The longest document that is read, in bytes: room for the longest line with every character
/// escaped, and checkpoints.
pub const MAX_PROOF_BYTES: usize = 1024 * 1024;

/// An unverified proof with its line and checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProofDocument {
    Inclusion {
        chain: ChainId,
        /// The complete line, without its newline.
        line: String,
        #[serde(flatten)]
        proof: InclusionProof,
        checkpoint: String,
    },
    Consistency {
        chain: ChainId,
        #[serde(flatten)]
        proof: ConsistencyProof,
        old_checkpoint: String,
        checkpoint: String,
    },
}

/// The statement that a document has proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofSummary {
    /// A line is in a chain.
    Inclusion {
        origin: String,
        chain: ChainId,
        index: u64,
        size: u64,
        line_hash: LineHash,
        receipt_id: Option<String>,
    },
    /// A chain only grew.
    Consistency { origin: String, chain: ChainId, old: u64, new: u64 },
}

/// Why a document proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("a proof has at most {MAX_PROOF_BYTES} bytes")]
    TooLong,
    #[error("the proof is not JSON: {0}")]
    Json(#[from] ReadError),
    #[error("the proof's member `{0}` is missing or not of the right form")]
    Member(&'static str),
    #[error("the proof has unknown members")]
    Foreign,
    #[error("the proof's member `{member}` is not a checkpoint that can be trusted: {source}")]
    Checkpoint { member: &'static str, source: CheckpointError },
    #[error("the proof's member `{member}` is a checkpoint of another chain")]
    OtherChain { member: &'static str },
    #[error("the proof's member `{member}` is a checkpoint of another size")]
    OtherSize { member: &'static str },
    #[error("the proof's line was not written by Holdpoint: {0}")]
    Line(#[from] BadLine),
    #[error("the proof is about line {index}, and its line says that it is line {seq}")]
    OtherLine { index: u64, seq: u64 },
    #[error("the line is not in the tree of the checkpoint")]
    NotIncluded,
    #[error(
        "the newer tree does not begin with the older one: the chain was changed between the checkpoints"
    )]
    NotConsistent,
}

/// Parses a document and verifies everything in it.
pub fn check(text: &str, keys: &Keyring) -> Result<ProofSummary, ProofError> {
    ProofDocument::parse(text)?.check(keys)
}

impl ProofDocument {
    /// Parses a document strictly: every member exactly once, and no others.
    pub fn parse(text: &str) -> Result<ProofDocument, ProofError> {
        if text.len() > MAX_PROOF_BYTES {
            return Err(ProofError::TooLong);
        }
        let document = Document::parse(text)?;
        let members = Members(document.root());
        match members.text("kind")?.as_str() {
            "inclusion" => {
                members.are_of(&[
                    "kind",
                    "chain",
                    "line",
                    "index",
                    "size",
                    "path",
                    "checkpoint",
                ])?;
                Ok(ProofDocument::Inclusion {
                    chain: members.chain()?,
                    line: members.text("line")?,
                    proof: InclusionProof {
                        index: members.number("index")?,
                        size: members.number("size")?,
                        path: members.path()?,
                    },
                    checkpoint: members.text("checkpoint")?,
                })
            }
            "consistency" => {
                members.are_of(&[
                    "kind",
                    "chain",
                    "old",
                    "new",
                    "path",
                    "old_checkpoint",
                    "checkpoint",
                ])?;
                Ok(ProofDocument::Consistency {
                    chain: members.chain()?,
                    proof: ConsistencyProof {
                        old: members.number("old")?,
                        new: members.number("new")?,
                        path: members.path()?,
                    },
                    old_checkpoint: members.text("old_checkpoint")?,
                    checkpoint: members.text("checkpoint")?,
                })
            }
            _ => Err(ProofError::Member("kind")),
        }
    }

    pub fn check(&self, keys: &Keyring) -> Result<ProofSummary, ProofError> {
        match self {
            ProofDocument::Inclusion { chain, line, proof, checkpoint } => {
                let head = open("checkpoint", checkpoint, keys, chain, proof.size)?;
                check_inclusion(chain, line, proof, head)
            }
            ProofDocument::Consistency { chain, proof, old_checkpoint, checkpoint } => {
                let old = open("old_checkpoint", old_checkpoint, keys, chain, proof.old)?;
                let new = open("checkpoint", checkpoint, keys, chain, proof.new)?;
                check_consistency(chain, proof, &old, new)
            }
        }
    }
}

fn check_inclusion(
    chain: &ChainId,
    line: &str,
    proof: &InclusionProof,
    head: Checkpoint,
) -> Result<ProofSummary, ProofError> {
    // The limit on a line includes its newline.
    if line.len() >= MAX_LINE_BYTES {
        return Err(ProofError::Member("line"));
    }
    let line = line::scan(line.as_bytes())?;
    if line.seq != proof.index {
        return Err(ProofError::OtherLine { index: proof.index, seq: line.seq });
    }
    match proof.verify(tree::leaf(&line.hash.0), head.root) {
        Proven::Yes => Ok(ProofSummary::Inclusion {
            origin: head.origin,
            chain: chain.clone(),
            index: proof.index,
            size: proof.size,
            line_hash: line.hash,
            receipt_id: line.receipt_id.map(str::to_owned),
        }),
        Proven::No => Err(ProofError::NotIncluded),
    }
}

fn check_consistency(
    chain: &ChainId,
    proof: &ConsistencyProof,
    old: &Checkpoint,
    new: Checkpoint,
) -> Result<ProofSummary, ProofError> {
    // Two homes may have chains with the same name.
    if old.origin != new.origin {
        return Err(ProofError::OtherChain { member: "old_checkpoint" });
    }
    match proof.verify(old.root, new.root) {
        Proven::Yes => Ok(ProofSummary::Consistency {
            origin: new.origin,
            chain: chain.clone(),
            old: proof.old,
            new: proof.new,
        }),
        Proven::No => Err(ProofError::NotConsistent),
    }
}

/// Opens a checkpoint, which must be of this chain and size.
fn open(
    member: &'static str,
    text: &str,
    keys: &Keyring,
    chain: &ChainId,
    size: u64,
) -> Result<Checkpoint, ProofError> {
    let checkpoint =
        Checkpoint::open(text, keys).map_err(|source| ProofError::Checkpoint { member, source })?;
    if checkpoint.chain().as_ref() != Some(chain) {
        return Err(ProofError::OtherChain { member });
    }
    if checkpoint.size != size {
        return Err(ProofError::OtherSize { member });
    }
    Ok(checkpoint)
}

/// The members of a document's object.
struct Members<'d>(Node<'d>);

impl<'d> Members<'d> {
    fn are_of(&self, names: &[&str]) -> Result<(), ProofError> {
        let is_known = |name: Node<'_>| names.iter().any(|known| name.is_text(known));
        let are_known = self.0.members().all(|(name, _)| is_known(name));
        if are_known { Ok(()) } else { Err(ProofError::Foreign) }
    }

    fn get(&self, name: &'static str) -> Result<Node<'d>, ProofError> {
        self.0.get(name).ok_or(ProofError::Member(name))
    }

    fn text(&self, name: &'static str) -> Result<String, ProofError> {
        let text = self.get(name)?.as_str().ok_or(ProofError::Member(name))?;
        Ok(text.into_owned())
    }

    fn chain(&self) -> Result<ChainId, ProofError> {
        self.text("chain")?.parse().map_err(|_| ProofError::Member("chain"))
    }

    fn number(&self, name: &'static str) -> Result<u64, ProofError> {
        let number = self.get(name)?.as_number().and_then(parse_size);
        number.ok_or(ProofError::Member(name))
    }

    fn path(&self) -> Result<Vec<NodeHash>, ProofError> {
        let bad = || ProofError::Member("path");
        let path = self.get("path")?;
        if !path.is_array() || path.items().count() > MAX_PATH {
            return Err(bad());
        }
        let hash = |item: Node<'_>| NodeHash::from_base64(&item.as_str()?).ok();
        path.items().map(|item| hash(item).ok_or_else(bad)).collect()
    }
}

impl fmt::Display for ProofSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProofSummary::Inclusion { origin, index, size, .. } => {
                write!(formatter, "line {index} is one of the {size} lines of `{origin}`")
            }
            ProofSummary::Consistency { origin, old, new, .. } => {
                write!(
                    formatter,
                    "`{origin}` grew from {old} to {new} lines, and none of the {old} was changed"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
