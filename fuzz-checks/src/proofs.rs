//! Keys, signed notes, checkpoints and proofs may be any text: they are parsed or refused, and a
//! parsed value is written back the same. Proofs over any part of a tree verify, and fail with one
//! bit changed.

use ledger::checkpoint::{Checkpoint, split_checkpoints};
use ledger::note::{self, Keyring, SigningKey, VerifyingKey};
use ledger::proof::{
    ConsistencyBuilder, InclusionBuilder, InclusionProof, ProofDocument, ProofSummary, Proven,
    check,
};
use ledger::tree::{Frontier, NodeHash, leaf};
use std::sync::LazyLock;

/// The key that signed the notes among the seeds.
const KEY: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";

static SIGNER: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::parse(KEY).expect("a key"));
static KEYS: LazyLock<Keyring> = LazyLock::new(|| SIGNER.verifying_key().clone().into());

pub fn run(bytes: &[u8]) {
    if let [old, index, size, dropped, bit, ..] = bytes {
        prove(u64::from(*old), u64::from(*index), u64::from(*size), u64::from(*dropped), *bit);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    read_keys(text);
    open_notes(text);
    split(text);
    read_proof(text);
}

fn read_keys(text: &str) {
    if let Ok(key) = VerifyingKey::parse(text) {
        assert_eq!(key.to_string(), text.strip_suffix('\n').unwrap_or(text));
    }
    if let Ok(key) = SigningKey::parse(text) {
        assert_eq!(key.to_text().as_str(), text.strip_suffix('\n').unwrap_or(text));
    }
    if let Ok(keys) = Keyring::from_text(text) {
        let lines: Vec<String> = keys.keys().iter().map(ToString::to_string).collect();
        assert_eq!(Keyring::from_text(&lines.join("\n")), Ok(keys));
    }
}

fn open_notes(text: &str) {
    if let Ok((body, _)) = note::open(text, &KEYS) {
        assert!(text.starts_with(body));
        let signed = note::sign(body, &SIGNER);
        assert_eq!(note::open(&signed, &KEYS).expect("it was signed just now").0, body);
    }
    let _ = Checkpoint::open(text, &KEYS);
    // Sign the input, so that the parsers after the signature check are reached.
    let body =
        format!("{}\n", text.replace(|character: char| character < ' ' && character != '\n', " "));
    let signed = note::sign(&body, &SIGNER);
    if signed.len() <= note::MAX_NOTE_BYTES {
        assert_eq!(note::open(&signed, &KEYS).expect("it was signed just now").0, body);
    }
    if let Ok(checkpoint) = Checkpoint::open(&signed, &KEYS) {
        assert!(checkpoint.chain().is_some());
        assert_eq!(Checkpoint::open(&checkpoint.sign(&SIGNER), &KEYS), Ok(checkpoint));
    }
}

/// Splitting drops nothing but newlines.
fn split(text: &str) {
    let mut rest = text;
    for piece in split_checkpoints(text) {
        let (between, behind) = rest.split_once(piece).expect("a piece is part of the text");
        assert!(between.bytes().all(|byte| byte == b'\n'), "{between:?}");
        assert!(!piece.is_empty());
        rest = behind;
    }
    assert!(rest.bytes().all(|byte| byte == b'\n'), "{rest:?}");
}

fn read_proof(text: &str) {
    let Ok(document) = ProofDocument::parse(text) else { return };
    let written = serde_json::to_string(&document).expect("a document is JSON");
    assert_eq!(ProofDocument::parse(&written).expect("it was written just now"), document);
    let root = NodeHash([7; 32]);
    match (&document, check(text, &KEYS)) {
        (
            ProofDocument::Inclusion { proof, .. },
            Ok(ProofSummary::Inclusion { index, size, .. }),
        ) => {
            assert!((index, size) == (proof.index, proof.size) && index < size);
        }
        (
            ProofDocument::Consistency { proof, .. },
            Ok(ProofSummary::Consistency { old, new, .. }),
        ) => {
            assert!((old, new) == (proof.old, proof.new) && old <= new);
        }
        (_, Ok(summary)) => panic!("{summary} of another kind"),
        (ProofDocument::Inclusion { proof, .. }, Err(_)) => {
            assert_eq!(proof.verify(leaf(&[0; 32]), root), Proven::No);
        }
        (ProofDocument::Consistency { proof, .. }, Err(_)) => {
            assert_eq!(proof.verify(NodeHash([8; 32]), root), Proven::No);
        }
    }
}

fn leaf_of(index: u64) -> NodeHash {
    leaf(&[index as u8; 32])
}

fn grown(size: u64) -> Frontier {
    let mut frontier = Frontier::new();
    (0..size).for_each(|index| frontier.push(leaf_of(index)));
    frontier
}

fn prove(old: u64, index: u64, size: u64, dropped: u64, bit: u8) {
    let from = grown(dropped);
    if let Ok(mut builder) = InclusionBuilder::new(index, size, &from) {
        (dropped..size).for_each(|index| builder.push(leaf_of(index)));
        let proof = builder.finish().expect("all leaves were there");
        let root = grown(size).root();
        assert_eq!(proof.verify(leaf_of(index), root), Proven::Yes);
        let path = changed(&proof.path, bit);
        assert_eq!(InclusionProof { path, ..proof }.verify(leaf_of(index), root), Proven::No);
    } else {
        assert!(index >= size || index < dropped, "a kept line is always proven");
    }
    if let Ok(mut builder) = ConsistencyBuilder::new(old, size, &from) {
        (dropped..size).for_each(|index| builder.push(leaf_of(index)));
        let mut proof = builder.finish().expect("all leaves were there");
        let (old_root, root) = (grown(old).root(), grown(size).root());
        assert_eq!(proof.verify(old_root, root), Proven::Yes);
        proof.path = changed(&proof.path, bit);
        assert_eq!(proof.verify(old_root, root), Proven::No);
    } else {
        assert!(old > size || old < dropped, "growth since the drop is always proven");
    }
}

/// The path with one bit changed, or with one hash added if it was empty.
fn changed(path: &[NodeHash], bit: u8) -> Vec<NodeHash> {
    let mut path = path.to_vec();
    match path.len() {
        0 => path.push(NodeHash([bit; 32])),
        length => path[usize::from(bit) % length].0[usize::from(bit) % 32] ^= 1 << (bit % 8),
    }
    path
}
