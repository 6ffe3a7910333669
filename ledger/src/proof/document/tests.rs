use super::*;
use crate::checkpoint::{CheckpointError, origin};
use crate::folder::ChainId;
use crate::line::{Place, encode};
use crate::note::{NoteError, SigningKey};
use crate::proof::{ConsistencyBuilder, InclusionBuilder};
use crate::record::{Event, Record};
use crate::tree::Frontier;
use contract::time::Timestamp;
use serde_json::{Value, json};

const HOME: &str = "holdpoint/0011223344556677";
const LINES: u64 = 11;

/// A chain in memory, with its signing key.
struct Chain {
    id: ChainId,
    lines: Vec<String>,
    leaves: Vec<NodeHash>,
    key: SigningKey,
}

impl Chain {
    fn new(id: &str) -> Chain {
        let key = SigningKey::generate(HOME, [1; 32]).unwrap();
        let mut chain =
            Chain { id: id.parse().unwrap(), lines: Vec::new(), leaves: Vec::new(), key };
        let mut prev = LineHash::NONE;
        for seq in 0..LINES {
            let data = json!({ "n": seq });
            prev = chain.append(Place { seq, prev }, &data);
        }
        chain
    }

    fn append(&mut self, place: Place, data: &Value) -> LineHash {
        let event = Event {
            ts: Timestamp(1_763_253_195_123),
            name: "server.approve",
            by: Some("ada \"the\" first".into()),
            server_id: None,
            data: Some(data),
        };
        let mut bytes = Vec::new();
        let hash = encode(&Record::Event(&event), place, &mut bytes).unwrap();
        self.lines.push(String::from_utf8(bytes).unwrap().trim_end().to_owned());
        self.leaves.push(tree::leaf(&hash.0));
        hash
    }

    fn keys(&self) -> Keyring {
        self.key.verifying_key().clone().into()
    }

    fn checkpoint(&self, size: u64) -> String {
        let mut frontier = Frontier::new();
        self.leaves.iter().take(size as usize).for_each(|leaf| frontier.push(*leaf));
        let origin = origin(HOME, &self.id);
        Checkpoint { origin, size, root: frontier.root() }.sign(&self.key)
    }

    fn inclusion(&self, index: u64, size: u64) -> ProofDocument {
        let mut builder = InclusionBuilder::new(index, size, &Frontier::new()).unwrap();
        self.leaves.iter().for_each(|leaf| builder.push(*leaf));
        ProofDocument::Inclusion {
            chain: self.id.clone(),
            line: self.lines[index as usize].clone(),
            proof: builder.finish().unwrap(),
            checkpoint: self.checkpoint(size),
        }
    }

    fn consistency(&self, old: u64, new: u64) -> ProofDocument {
        let mut builder = ConsistencyBuilder::new(old, new, &Frontier::new()).unwrap();
        self.leaves.iter().for_each(|leaf| builder.push(*leaf));
        ProofDocument::Consistency {
            chain: self.id.clone(),
            proof: builder.finish().unwrap(),
            old_checkpoint: self.checkpoint(old),
            checkpoint: self.checkpoint(new),
        }
    }
}

fn chain() -> Chain {
    Chain::new("8899aabbccddeeff")
}

fn to_text(document: &ProofDocument) -> String {
    serde_json::to_string(document).unwrap()
}

/// The document with one member replaced.
fn with(document: &ProofDocument, member: &str, value: Value) -> String {
    let mut object = serde_json::to_value(document).unwrap();
    object[member] = value;
    object.to_string()
}

#[track_caller]
fn refused(text: &str, chain: &Chain) -> String {
    check(text, &chain.keys()).unwrap_err().to_string()
}

#[test]
fn documents_have_their_members_in_a_fixed_order() {
    let names = |document: &ProofDocument| -> Vec<String> {
        let value: Value = serde_json::from_str(&to_text(document)).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    };
    let chain = chain();
    assert_eq!(
        names(&chain.inclusion(3, 8)),
        ["kind", "chain", "line", "index", "size", "path", "checkpoint"]
    );
    assert_eq!(
        names(&chain.consistency(3, 8)),
        ["kind", "chain", "old", "new", "path", "old_checkpoint", "checkpoint"]
    );
    let value = serde_json::to_value(chain.inclusion(3, 8)).unwrap();
    assert_eq!(value["kind"], "inclusion");
    assert_eq!(value["path"][0], chain.leaves[2].base64());
    assert_eq!(value["line"], chain.lines[3]);
}

#[test]
fn what_was_made_is_proven() {
    let chain = chain();
    let origin = format!("{HOME}/8899aabbccddeeff");
    for size in 1..=LINES {
        for index in 0..size {
            let text = to_text(&chain.inclusion(index, size));
            assert_eq!(ProofDocument::parse(&text).unwrap(), chain.inclusion(index, size));
            let summary = check(&text, &chain.keys()).unwrap();
            let line_hash = line::scan(chain.lines[index as usize].as_bytes()).unwrap().hash;
            assert_eq!(
                summary,
                ProofSummary::Inclusion {
                    origin: origin.clone(),
                    chain: chain.id.clone(),
                    index,
                    size,
                    line_hash,
                    receipt_id: None,
                }
            );
        }
        for old in 0..=size {
            let text = to_text(&chain.consistency(old, size));
            assert_eq!(ProofDocument::parse(&text).unwrap(), chain.consistency(old, size));
            let (origin, chain_id) = (origin.clone(), chain.id.clone());
            let expected = ProofSummary::Consistency { origin, chain: chain_id, old, new: size };
            assert_eq!(check(&text, &chain.keys()).unwrap(), expected);
        }
    }
}

#[test]
fn a_summary_is_a_sentence() {
    let chain = chain();
    let sentence = |document| check(&to_text(&document), &chain.keys()).unwrap().to_string();
    assert_eq!(
        sentence(chain.inclusion(3, 8)),
        "line 3 is one of the 8 lines of `holdpoint/0011223344556677/8899aabbccddeeff`"
    );
    assert_eq!(
        sentence(chain.consistency(3, 8)),
        "`holdpoint/0011223344556677/8899aabbccddeeff` grew from 3 to 8 lines, and none of the 3 was changed"
    );
}

#[test]
fn every_changed_byte_of_a_document_is_noticed() {
    let chain = chain();
    for document in [chain.inclusion(5, 11), chain.consistency(5, 11)] {
        let text = to_text(&document);
        let summary = check(&text, &chain.keys()).unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            // Some changes give a different encoding of the same document, which then proves the
            // same.
            if let Ok(same) = check(&changed, &chain.keys()) {
                assert_eq!(ProofDocument::parse(&changed).unwrap(), document, "byte {at}");
                assert_eq!(same, summary);
            }
        }
    }
}

#[test]
fn another_line_is_not_in_the_tree() {
    let chain = chain();
    let document = chain.inclusion(3, 8);
    let other_line = with(&document, "line", json!(chain.lines[4]));
    assert_eq!(
        refused(&other_line, &chain),
        "the proof is about line 3, and its line says that it is line 4"
    );
    // A line with the right position and a correct hash, but not the one that was written.
    let mut forger = chain_with_no_lines();
    let prev = line::scan(chain.lines[2].as_bytes()).unwrap().hash;
    forger.append(Place { seq: 3, prev }, &json!({ "n": 33 }));
    let forged = with(&document, "line", json!(forger.lines[0]));
    assert_eq!(refused(&forged, &chain), "the line is not in the tree of the checkpoint");
    let edited = with(&document, "line", json!(chain.lines[3].replace("ada", "eve")));
    assert_eq!(
        refused(&edited, &chain),
        "the proof's line was not written by Holdpoint: its hash does not match its content"
    );
    let with_newline = with(&document, "line", json!(format!("{}\n", chain.lines[3])));
    assert!(refused(&with_newline, &chain).contains("not written by Holdpoint"));
}

fn chain_with_no_lines() -> Chain {
    Chain { lines: Vec::new(), leaves: Vec::new(), ..chain() }
}

#[test]
fn another_index_size_or_path_is_not_proven() {
    let chain = chain();
    let document = chain.inclusion(3, 8);
    assert!(refused(&with(&document, "index", json!(4)), &chain).contains("its line says"));
    let other_size = "the proof's member `checkpoint` is a checkpoint of another size";
    assert_eq!(refused(&with(&document, "size", json!(9)), &chain), other_size);
    let not_included = "the line is not in the tree of the checkpoint";
    assert_eq!(refused(&with(&document, "path", json!([])), &chain), not_included);
    // Line 3 in a tree of three lines: the index is out of range.
    let outside = with(&document, "size", json!(3));
    let outside = ProofDocument::parse(&outside).unwrap();
    let outside = with(&outside, "checkpoint", json!(chain.checkpoint(3)));
    assert_eq!(refused(&outside, &chain), not_included);

    let document = chain.consistency(5, 11);
    let other_size = "the proof's member `old_checkpoint` is a checkpoint of another size";
    assert_eq!(refused(&with(&document, "old", json!(6)), &chain), other_size);
    let not_consistent = refused(&with(&document, "path", json!([])), &chain);
    assert!(not_consistent.contains("does not begin with the older one"), "{not_consistent}");
}

#[test]
fn a_chain_that_was_rewritten_is_not_consistent() {
    let before = chain();
    let mut after = chain_with_no_lines();
    let mut prev = LineHash::NONE;
    for seq in 0..LINES {
        let data = json!({ "n": if seq == 2 { 22 } else { seq } });
        prev = after.append(Place { seq, prev }, &data);
    }
    let document = after.consistency(5, 11);
    assert!(check(&to_text(&document), &after.keys()).is_ok());
    let mixed = with(&document, "old_checkpoint", json!(before.checkpoint(5)));
    assert!(matches!(check(&mixed, &after.keys()), Err(ProofError::NotConsistent)));
}

#[test]
fn checkpoints_of_other_chains_homes_and_keys_are_refused() {
    let (chain, other) = (chain(), Chain::new("0123456789abcdef"));
    let document = chain.inclusion(3, 8);
    let other_chain = "the proof's member `checkpoint` is a checkpoint of another chain";
    let copied = with(&document, "checkpoint", json!(other.checkpoint(8)));
    assert_eq!(refused(&copied, &chain), other_chain);
    let renamed = with(&document, "chain", json!("0123456789abcdef"));
    assert_eq!(refused(&renamed, &chain), other_chain);

    let stranger = SigningKey::generate(HOME, [2; 32]).unwrap();
    let strangers = check(&to_text(&document), &stranger.verifying_key().clone().into());
    let unknown = CheckpointError::Note(NoteError::UnknownSigners);
    assert!(matches!(
        strangers,
        Err(ProofError::Checkpoint { member: "checkpoint", source }) if source == unknown
    ));

    // Two trusted homes, each with a chain of the same name.
    let neighbour = SigningKey::generate("holdpoint/7766554433221100", [3; 32]).unwrap();
    let keys = format!("{}\n{}", chain.key.verifying_key(), neighbour.verifying_key());
    let keys = Keyring::from_text(&keys).unwrap();
    let document = chain.consistency(8, 8);
    assert!(check(&to_text(&document), &keys).is_ok());
    let head = Checkpoint::open(&chain.checkpoint(8), &keys).unwrap();
    let neighbours = Checkpoint { origin: origin(neighbour.name(), &chain.id), ..head };
    let mixed = with(&document, "old_checkpoint", json!(neighbours.sign(&neighbour)));
    assert!(matches!(
        check(&mixed, &keys),
        Err(ProofError::OtherChain { member: "old_checkpoint" })
    ));
}

#[test]
fn documents_of_another_shape_are_refused() {
    let chain = chain();
    for document in [chain.inclusion(3, 8), chain.consistency(3, 8)] {
        let object = serde_json::to_value(&document).unwrap();
        for name in object.as_object().unwrap().keys() {
            let mut shorter = object.clone();
            shorter.as_object_mut().unwrap().remove(name);
            let error = refused(&shorter.to_string(), &chain);
            let missing =
                format!("the proof's member `{name}` is missing or not of the right form");
            assert_eq!(error, missing);
            for value in
                [json!(null), json!(true), json!({}), json!(1.5), json!(-1), json!("x"), json!([1])]
            {
                assert!(check(&with(&document, name, value), &chain.keys()).is_err(), "{name}");
            }
        }
        assert_eq!(
            refused(&with(&document, "note", json!("x")), &chain),
            "the proof has unknown members"
        );
        let text = to_text(&document);
        let twice = text.replacen('{', "{\"kind\":\"inclusion\",", 1);
        for text in
            [twice.as_str(), &format!("{text}x"), &format!("[{text}]"), "", "null", "[]", "{}"]
        {
            assert!(check(text, &chain.keys()).is_err(), "{text}");
        }
        assert!(check(&format!(" {text}\n"), &chain.keys()).is_ok());
    }
    // The members of one kind are not accepted for the other.
    let text = to_text(&chain.inclusion(3, 8)).replacen("inclusion", "consistency", 1);
    assert_eq!(refused(&text, &chain), "the proof has unknown members");
}

#[test]
fn numbers_have_one_spelling() {
    let chain = chain();
    let text = to_text(&chain.inclusion(3, 8));
    assert!(check(&text, &chain.keys()).is_ok());
    for size in ["8.0", "8e0", "80e-1", "9007199254740992", "18446744073709551624", "-8", "\"8\""] {
        let text = text.replace("\"size\":8", &format!("\"size\":{size}"));
        assert!(matches!(check(&text, &chain.keys()), Err(ProofError::Member("size"))), "{size}");
    }
}

#[test]
fn the_longest_path_is_read_and_no_longer_one() {
    let chain = chain();
    let document = chain.inclusion(3, 8);
    let path =
        |length: usize| with(&document, "path", json!(vec![chain.leaves[0].base64(); length]));
    assert!(matches!(check(&path(MAX_PATH), &chain.keys()), Err(ProofError::NotIncluded)));
    assert!(matches!(check(&path(MAX_PATH + 1), &chain.keys()), Err(ProofError::Member("path"))));
}

#[test]
fn the_longest_document_is_read_and_no_longer_one() {
    let chain = chain();
    let text = to_text(&chain.inclusion(3, 8));
    let padded = |length: usize| format!("{text}{}", " ".repeat(length - text.len()));
    assert!(check(&padded(MAX_PROOF_BYTES), &chain.keys()).is_ok());
    assert!(matches!(check(&padded(MAX_PROOF_BYTES + 1), &chain.keys()), Err(ProofError::TooLong)));
}

#[test]
fn the_longest_line_is_proven_and_a_longer_one_is_none() {
    // Quotes take the most room: each is escaped in the line, and both characters again in the
    // document.
    let line_of = |quotes: usize, padding: usize| {
        let mut chain = chain_with_no_lines();
        let data = json!({ "text": format!("{}{}", "\"".repeat(quotes), "x".repeat(padding)) });
        chain.append(Place { seq: 0, prev: LineHash::NONE }, &data);
        chain
    };
    // A writer reserves the 20 digits of the largest `seq`, and this one has a single digit.
    let longest = MAX_LINE_BYTES - 19;
    let around = line_of(0, 0).lines[0].len() + 1;
    let chain = line_of((longest - around) / 2, (longest - around) % 2);
    assert_eq!(chain.lines[0].len() + 1, longest);
    let document = chain.inclusion(0, 1);
    let text = to_text(&document);
    assert!(text.len() < MAX_PROOF_BYTES, "{}", text.len());
    assert!(check(&text, &chain.keys()).is_ok());
    let longer = with(&document, "line", json!(format!("{}{}", chain.lines[0], " ".repeat(20))));
    assert!(matches!(check(&longer, &chain.keys()), Err(ProofError::Member("line"))));
}
