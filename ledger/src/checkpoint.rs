//! Checkpoints of chains, in the format of c2sp.org/tlog-checkpoint: a signed note with the size
//! and root of a tree.

use crate::folder::ChainId;
use crate::note::{self, Keyring, NoteError, SigningKey};
use crate::tree::{MAX_SIZE, NodeHash};

/// The most checkpoints that a text is split into.
pub const MAX_HEADS: usize = 4096;

/// The state of a chain when the checkpoint was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The result of [`origin`] for the key's name and the chain.
    pub origin: String,
    pub size: u64,
    pub root: NodeHash,
}

/// Why a checkpoint cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("several checkpoints, or none, where one belongs")]
    NotOne,
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("it does not say origin, size and root, a line each, without empty lines")]
    Lines,
    #[error("the size is not a decimal number up to {MAX_SIZE}, or has zeros in front")]
    Size,
    #[error("the root is not a hash in base64")]
    Root,
    #[error("it is signed by `{signer}` and is not about a chain or log of that key")]
    Origin { signer: String },
}

impl Checkpoint {
    /// Signs the checkpoint. Its origin must belong to the key.
    pub fn sign(&self, key: &SigningKey) -> String {
        note::sign(&self.text(), key)
    }

    /// The text that is signed.
    pub fn text(&self) -> String {
        let Checkpoint { origin, size, root } = self;
        format!("{origin}\n{size}\n{}\n", root.base64())
    }

    /// Parses and verifies a checkpoint. Lines after the root are covered by the signature but
    /// otherwise ignored.
    ///
    /// INVARIANT: the origin is a chain under the name of the signing key: with several trusted
    /// keys, none can sign for another's chains.
    pub fn open(text: &str, keys: &Keyring) -> Result<Checkpoint, CheckpointError> {
        // The only empty line is the one before the signatures.
        if text.len() <= note::MAX_NOTE_BYTES && text.matches("\n\n").count() > 1 {
            return Err(CheckpointError::NotOne);
        }
        let (body, signer) = note::open(text, keys)?;
        let checkpoint = Checkpoint::read(body)?;
        let is_own = checkpoint
            .chain()
            .is_some_and(|chain| self::origin(signer.name(), &chain) == checkpoint.origin);
        let foreign = || CheckpointError::Origin { signer: signer.name().to_owned() };
        is_own.then_some(checkpoint).ok_or_else(foreign)
    }

    /// Parses a checkpoint of a log whose key is named like its origin, as c2sp.org/tlog-checkpoint
    /// recommends.
    pub fn open_log(text: &str, keys: &Keyring) -> Result<Checkpoint, CheckpointError> {
        if text.len() <= note::MAX_NOTE_BYTES && text.matches("\n\n").count() > 1 {
            return Err(CheckpointError::NotOne);
        }
        let (body, signer) = note::open(text, keys)?;
        let checkpoint = Checkpoint::read(body)?;
        let foreign = || CheckpointError::Origin { signer: signer.name().to_owned() };
        (checkpoint.origin == signer.name()).then_some(checkpoint).ok_or_else(foreign)
    }

    /// Parses the output of [`Checkpoint::text`]. Does not check the signature.
    pub fn read(body: &str) -> Result<Checkpoint, CheckpointError> {
        if body.lines().any(str::is_empty) {
            return Err(CheckpointError::Lines);
        }
        let mut lines = body.lines();
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(CheckpointError::Lines);
        };
        let size = parse_size(size).ok_or(CheckpointError::Size)?;
        let root = NodeHash::from_base64(root).map_err(|_| CheckpointError::Root)?;
        Ok(Checkpoint { origin: origin.to_owned(), size, root })
    }

    /// The chain named in the origin.
    pub fn chain(&self) -> Option<ChainId> {
        self.origin.rsplit_once('/')?.1.parse().ok()
    }
}

/// The first line of a chain's checkpoints.
pub fn origin(key_name: &str, chain: &ChainId) -> String {
    format!("{key_name}/{chain}")
}

/// Splits a text with several checkpoints, with or without empty lines between them.
///
/// Only those empty lines are dropped: text that is no checkpoint becomes a piece that fails to
/// open. If there are more than [`MAX_HEADS`], the last piece is the whole rest, which fails to
/// open as well.
pub fn split_checkpoints(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    (1..=MAX_HEADS).map_while(move |number| {
        rest = rest.trim_start_matches('\n');
        let (mut note, behind) = rest.split_at_checked(note_length(rest))?;
        if number == MAX_HEADS && !behind.trim_start_matches('\n').is_empty() {
            note = rest;
        }
        rest = behind;
        (!note.is_empty()).then_some(note)
    })
}

/// The length of the first note: up to an empty line, that line, and the signatures after it.
fn note_length(text: &str) -> usize {
    let Some(body) = text.find("\n\n") else { return text.len() };
    let signatures = text.get(body + 2..).unwrap_or_default();
    let is_signature = |line: &&str| line.starts_with(note::SIGNATURE_PREFIX);
    let signed =
        signatures.split_inclusive('\n').take_while(is_signature).map(str::len).sum::<usize>();
    body + 2 + signed
}

/// Parses a decimal number in its canonical notation.
pub fn parse_size(text: &str) -> Option<u64> {
    let size: u64 = text.parse().ok()?;
    (size <= MAX_SIZE && size.to_string() == text).then_some(size)
}

#[cfg(test)]
mod tests;
