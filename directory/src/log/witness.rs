//! A witness: cosigns checkpoints of known logs, each only if it extends the one that it cosigned
//! before.
//!
//! Implements c2sp.org/tlog-witness. INVARIANT: the checkpoint is on disk before its cosignature is
//! returned.

use super::publish::{read_text, write_durably};
use ledger::checkpoint::{Checkpoint, parse_size};
use ledger::note::cosignature::{WitnessKey, cosign};
use ledger::note::{Keyring, SigningKey, split};
use ledger::proof::{ConsistencyProof, MAX_PATH, Proven};
use ledger::tree::{Frontier, NodeHash};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The largest request.
pub const MAX_REQUEST_BYTES: usize = 160 * 1024;

/// A witness with its key and the logs that it knows.
#[derive(Debug)]
pub struct Witness {
    key: SigningKey,
    /// The public keys of the logs, by origin, which is the name of the key.
    logs: Keyring,
    folder: PathBuf,
    /// Serializes requests.
    turn: Mutex<()>,
}

/// A response: status, media type and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessAnswer {
    pub status: u16,
    pub media_type: &'static str,
    pub body: String,
}

impl WitnessAnswer {
    fn refusal(status: u16, body: &str) -> WitnessAnswer {
        WitnessAnswer { status, media_type: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }
}

/// A request to cosign.
struct Request<'t> {
    old: u64,
    proof: Vec<NodeHash>,
    note: &'t str,
}

impl Witness {
    pub fn new(key: SigningKey, logs: Keyring, folder: &Path) -> Witness {
        Witness { key, logs, folder: folder.to_owned(), turn: Mutex::new(()) }
    }

    /// The key that verifies this witness's cosignatures.
    pub fn public_key(&self) -> Option<WitnessKey> {
        WitnessKey::of(&self.key).ok()
    }

    /// Answers `POST /add-checkpoint`.
    pub fn add_checkpoint(&self, body: &[u8], seconds: u64) -> WitnessAnswer {
        let Some(request) = std::str::from_utf8(body).ok().and_then(Request::read) else {
            return WitnessAnswer::refusal(
                400,
                "not `old SIZE`, a proof, an empty line and a checkpoint",
            );
        };
        let claimed = split(request.note).and_then(|(text, _)| Checkpoint::read(text).ok());
        let Some(claimed) = claimed else {
            return WitnessAnswer::refusal(400, "the checkpoint cannot be read");
        };
        if !self.logs.keys().iter().any(|key| key.name() == claimed.origin) {
            return WitnessAnswer::refusal(404, "this witness does not know the log");
        }
        let Ok(checkpoint) = Checkpoint::open_log(request.note, &self.logs) else {
            return WitnessAnswer::refusal(403, "the log's key has not signed the checkpoint");
        };
        if request.old > checkpoint.size {
            return WitnessAnswer::refusal(400, "the old size is above that of the checkpoint");
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match self.decide(&request, &checkpoint, seconds) {
            Ok(answer) => answer,
            Err(_) => WitnessAnswer::refusal(500, "the witness cannot keep what it saw"),
        }
    }

    fn decide(
        &self,
        request: &Request<'_>,
        checkpoint: &Checkpoint,
        seconds: u64,
    ) -> io::Result<WitnessAnswer> {
        let path = self.path_of(&checkpoint.origin);
        let seen = match read_text(&path)? {
            Some(text) => Checkpoint::read(&text).map_err(io::Error::other)?,
            None => Checkpoint {
                origin: checkpoint.origin.clone(),
                size: 0,
                root: Frontier::new().root(),
            },
        };
        if request.old != seen.size {
            let body = format!("{}\n", seen.size);
            return Ok(WitnessAnswer { status: 409, media_type: "text/x.tlog.size", body });
        }
        if checkpoint.size == seen.size && checkpoint.root != seen.root {
            let body = format!("{}\n", seen.size);
            return Ok(WitnessAnswer { status: 409, media_type: "text/x.tlog.size", body });
        }
        let path_of_nodes = request.proof.clone();
        let proof = ConsistencyProof { old: seen.size, new: checkpoint.size, path: path_of_nodes };
        if proof.verify(seen.root, checkpoint.root) != Proven::Yes {
            return Ok(WitnessAnswer::refusal(
                422,
                "the proof does not show that the log only grew",
            ));
        }
        let text = checkpoint.text();
        write_durably(&path, text.as_bytes())?;
        // The log signs extension lines too, so the witness cosigns them.
        let signed = split(request.note).map_or(text.as_str(), |(text, _)| text);
        let body = cosign(signed, &self.key, seconds).map_err(io::Error::other)?;
        Ok(WitnessAnswer { status: 200, media_type: "text/plain; charset=utf-8", body })
    }

    fn path_of(&self, origin: &str) -> PathBuf {
        self.folder.join(contract::hash::sha256_hex(origin.as_bytes()))
    }
}

impl<'t> Request<'t> {
    fn read(text: &'t str) -> Option<Request<'t>> {
        let (head, note) = text.split_once("\n\n")?;
        let mut lines = head.lines();
        let old = parse_size(lines.next()?.strip_prefix("old ")?)?;
        let proof: Option<Vec<NodeHash>> =
            lines.map(|line| NodeHash::from_base64(line).ok()).collect();
        let proof = proof.filter(|proof| proof.len() <= MAX_PATH)?;
        Some(Request { old, proof, note })
    }
}

/// The request that a log sends to its witness.
pub fn request_text(proof: &ConsistencyProof, note: &str) -> String {
    let lines: String = proof.path.iter().map(|node| format!("{}\n", node.base64())).collect();
    format!("old {}\n{lines}\n{note}", proof.old)
}

#[cfg(test)]
mod tests {
    use super::super::proof::{consistency, root};
    use super::super::tile::Nodes;
    use super::*;
    use ledger::tree::leaf_of_entry;

    fn log_key() -> SigningKey {
        SigningKey::generate("a.example/log", [3; 32]).unwrap()
    }

    fn witness(folder: &Path) -> Witness {
        let key = SigningKey::generate("w.example", [4; 32]).unwrap();
        Witness::new(key, Keyring::from(log_key().verifying_key().clone()), folder)
    }

    fn tree(size: u64, salt: u8) -> Nodes {
        let mut nodes = Nodes::default();
        (0..size).for_each(|number| nodes.push(leaf_of_entry(&[salt, number as u8])));
        nodes
    }

    fn signed(nodes: &Nodes, key: &SigningKey) -> String {
        let size = nodes.size();
        let root = root(&mut &*nodes, size).unwrap();
        Checkpoint { origin: "a.example/log".to_owned(), size, root }.sign(key)
    }

    fn ask(witness: &Witness, nodes: &Nodes, old: u64) -> WitnessAnswer {
        let proof = consistency(&mut &*nodes, old, nodes.size()).unwrap();
        let text = request_text(&proof, &signed(nodes, &log_key()));
        witness.add_checkpoint(text.as_bytes(), 1_700_000_000)
    }

    #[test]
    fn a_log_that_grows_is_cosigned_and_the_cosignature_verifies() {
        let folder = tempfile::tempdir().unwrap();
        let witness = witness(folder.path());
        for (old, new) in [(0, 3), (3, 3), (3, 9)] {
            let nodes = tree(new, 0);
            let answer = ask(&witness, &nodes, old);
            assert_eq!(answer.status, 200, "{answer:?}");
            let note = format!("{}{}", signed(&nodes, &log_key()), answer.body);
            assert!(witness.public_key().unwrap().cosigned(&note).is_some());
            let keyring = Keyring::from(log_key().verifying_key().clone());
            assert_eq!(Checkpoint::open_log(&note, &keyring).unwrap().size, new);
        }
    }

    #[test]
    fn another_history_is_never_cosigned() {
        let folder = tempfile::tempdir().unwrap();
        let witness = witness(folder.path());
        assert_eq!(ask(&witness, &tree(5, 0), 0).status, 200);
        assert_eq!(ask(&witness, &tree(9, 1), 5).status, 422);
        assert_eq!(ask(&witness, &tree(5, 1), 5).status, 409);
        let stale = ask(&witness, &tree(9, 0), 2);
        assert_eq!((stale.status, stale.body.as_str()), (409, "5\n"));
        assert_eq!(stale.media_type, "text/x.tlog.size");
        assert_eq!(ask(&witness, &tree(9, 0), 5).status, 200);
    }

    #[test]
    fn strangers_and_what_cannot_be_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let witness = witness(folder.path());
        let nodes = tree(1, 0);
        let status = |text: &str| witness.add_checkpoint(text.as_bytes(), 1).status;
        let forged = signed(&nodes, &SigningKey::generate("a.example/log", [9; 32]).unwrap());
        assert_eq!(status(&format!("old 0\n\n{forged}")), 403);
        let unknown = forged.replace("a.example/log", "b.example/log");
        assert_eq!(status(&format!("old 0\n\n{unknown}")), 404);
        assert_eq!(status("old 0\n"), 400);
        assert_eq!(status("old x\n\nnote"), 400);
        assert_eq!(status(&format!("old 2\n\n{}", signed(&nodes, &log_key()))), 400);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
