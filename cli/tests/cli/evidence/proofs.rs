//! `receipts prove`, and `verify --proof` with its output, unchanged and with each part changed.

use super::*;

impl Evidence {
    fn prove(&self, words: &[&str]) -> Answer {
        self.bench.run(["receipts", "prove"].iter().chain(words))
    }

    /// Checks a proof with only the public key.
    fn check(&self, proof: &Value) -> Answer {
        let path = self.bench.file("proof.json", proof.to_string());
        let key = self.bench.home().join("keys").join("receipts.pub");
        let words = ["--proof", path.to_str().unwrap(), "--key", key.to_str().unwrap()];
        self.verify(&words)
    }

    /// Asserts that a changed proof is refused.
    #[track_caller]
    fn is_refused(&self, proof: &Value, change: impl FnOnce(&mut Value)) {
        let mut changed = proof.clone();
        change(&mut changed);
        assert_ne!(&changed, proof, "nothing was changed");
        let answer = self.check(&changed);
        assert_eq!(answer.code, Some(14), "{changed:#}\n{}{}", answer.out, answer.err);
        answer.never_says("proven");
    }
}

/// The id of a receipt, as hexadecimal digits.
fn receipt(id: u8) -> String {
    format!("{id:02x}").repeat(16)
}

/// The text with a different character at one place.
fn other(text: &Value, at: usize) -> Value {
    let mut bytes = text.as_str().unwrap().as_bytes().to_vec();
    bytes[at] = if bytes[at] == b'2' { b'3' } else { b'2' };
    json!(String::from_utf8(bytes).unwrap())
}

#[test]
fn a_proof_holds_and_with_any_member_changed_it_does_not() {
    let evidence = Evidence::new();
    let id = receipt(5);
    for half in [vec![id.as_str()], vec![id.as_str(), "--outcome"]] {
        let proof = evidence.prove(&half).exits(0).json();
        evidence.check(&proof).exits(0).says(&format!("proven: the receipt {id} is line "));
        for member in ["chain", "index", "size", "path", "line", "checkpoint", "kind"] {
            evidence
                .is_refused(&proof, |proof| drop(proof.as_object_mut().unwrap().remove(member)));
        }
        for member in ["index", "size"] {
            let number = proof[member].as_u64().unwrap();
            for wrong in [number + 1, number - 1, 0, u64::MAX] {
                evidence.is_refused(&proof, |proof| proof[member] = json!(wrong));
            }
        }
        let chains = evidence.chains.iter().map(String::as_str).chain(["index", "../index"]);
        for chain in chains.filter(|chain| proof["chain"] != *chain) {
            evidence.is_refused(&proof, |proof| proof["chain"] = json!(chain));
        }
        let path = proof["path"].as_array().unwrap();
        assert!(path.len() > 3, "{path:?}");
        for at in 0..path.len() {
            evidence.is_refused(&proof, |proof| proof["path"][at] = other(&path[at], 7));
            evidence.is_refused(&proof, |proof| {
                proof["path"].as_array_mut().unwrap().remove(at);
            });
        }
        evidence.is_refused(&proof, |proof| {
            let again = path[0].clone();
            proof["path"].as_array_mut().unwrap().push(again);
        });
        let line = proof["line"].as_str().unwrap();
        evidence.is_refused(&proof, |proof| proof["line"] = json!(line.replace("2025-", "2024-")));
        // With a corrected hash it is a different leaf.
        let forged = rehashed(&line.replace("2025-", "2024-"));
        evidence.is_refused(&proof, |proof| proof["line"] = json!(forged));
        let checkpoint = proof["checkpoint"].as_str().unwrap();
        for at in [20, checkpoint.find('\n').unwrap() + 1, checkpoint.len() - 10] {
            evidence.is_refused(&proof, |proof| {
                proof["checkpoint"] = other(&proof["checkpoint"], at);
            });
        }
        evidence.is_refused(&proof, |proof| proof["kind"] = json!("consistency"));
        evidence.is_refused(&proof, |proof| proof["more"] = json!(true));
    }
    // A genuine checkpoint of the same chain, but of another size.
    let proof = evidence.prove(&[&id]).exits(0).json();
    let chain = proof["chain"].as_str().unwrap();
    let earlier = fs::read_to_string(evidence.checkpoint(chain, 3)).unwrap();
    evidence.is_refused(&proof, |proof| proof["checkpoint"] = json!(earlier));
    // A key that did not sign it.
    let stranger = Bench::new();
    act(&Home::open(&stranger.home()).unwrap(), 0);
    let key = stranger.home().join("keys").join("receipts.pub");
    let path = evidence.bench.file("proof.json", proof.to_string());
    let words = ["--proof", path.to_str().unwrap(), "--key", key.to_str().unwrap()];
    evidence.verify(&words).exits(14).never_says("proven");
}

#[test]
fn a_chain_that_grew_is_proven_and_with_any_member_changed_it_is_not() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let older = evidence.bench.path("older").join(chain).join("000002.checkpoint");
    let proof = evidence.prove(&["--since", older.to_str().unwrap()]).exits(0).json();
    evidence.check(&proof).exits(0).says("proven: holdpoint/").says(" grew from ");
    for member in ["kind", "chain", "old", "new", "path", "old_checkpoint", "checkpoint"] {
        evidence.is_refused(&proof, |proof| drop(proof.as_object_mut().unwrap().remove(member)));
    }
    for member in ["old", "new"] {
        let number = proof[member].as_u64().unwrap();
        for wrong in [number + 1, number - 1, 0] {
            evidence.is_refused(&proof, |proof| proof[member] = json!(wrong));
        }
    }
    for at in 0..proof["path"].as_array().unwrap().len() {
        evidence.is_refused(&proof, |proof| proof["path"][at] = other(&proof["path"][at], 7));
    }
    evidence.is_refused(&proof, |proof| proof["chain"] = json!(evidence.chains[1]));
    for member in ["old_checkpoint", "checkpoint"] {
        evidence.is_refused(&proof, |proof| {
            let at = proof[member].as_str().unwrap().len() - 10;
            proof[member] = other(&proof[member], at);
        });
    }
    evidence.is_refused(&proof, |proof| proof["old_checkpoint"] = proof["checkpoint"].clone());
    evidence.is_refused(&proof, |proof| proof["checkpoint"] = proof["old_checkpoint"].clone());
}

#[test]
fn heads_are_the_newest_checkpoints_of_all_chains() {
    let evidence = Evidence::new();
    let heads = evidence.prove(&["--heads", "--json"]).exits(0).json();
    let heads = heads["heads"].as_array().unwrap();
    assert_eq!(heads.len(), 3);
    for chain in evidence.chains.iter().map(String::as_str).chain(["index"]) {
        let newest = fs::read_to_string(evidence.checkpoint(chain, evidence.segments(chain)));
        assert!(heads.contains(&json!(newest.unwrap())), "{heads:?}");
    }
}

/// Asserts that no part of a proof is printed if the lines do not yield one.
#[track_caller]
fn proves_nothing(answer: Answer) {
    let answer = answer.exits(14);
    assert_eq!(answer.out, "", "{}", answer.err);
    assert!(answer.err.starts_with("holdpoint: "), "{}", answer.err);
}

#[test]
fn nothing_is_proven_from_lines_that_were_changed() {
    let evidence = Evidence::new();
    let id = receipt(5);
    let proof = evidence.prove(&[&id]).exits(0).json();
    let chain = proof["chain"].as_str().unwrap();
    let older = evidence.bench.path("older").join(chain).join("000003.checkpoint");
    let since = ["--since", older.to_str().unwrap()];
    let both_fail = || {
        proves_nothing(evidence.prove(&[&id]));
        proves_nothing(evidence.prove(&since));
    };
    evidence.prove(&since).exits(0);
    let path = evidence.segment(chain, 2);
    // A line is edited; edited together with its hash; removed; the whole segment is removed.
    evidence.edit(&path, |lines| lines[1] = lines[1].replace("2025-", "2024-"));
    both_fail();
    evidence.restore();
    evidence.edit(&path, |lines| lines[1] = rehashed(&lines[1].replace("2025-", "2024-")));
    both_fail();
    evidence.restore();
    evidence.edit(&path, |lines| drop(lines.remove(1)));
    both_fail();
    evidence.restore();
    // The newest checkpoint was changed, so it covers nothing.
    let path = evidence.checkpoint(chain, evidence.segments(chain));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen('\n', "\n1", 1)).unwrap();
    both_fail();
    proves_nothing(evidence.prove(&["--heads"]));
    evidence.restore();
    // The older checkpoint was changed.
    let changed = fs::read_to_string(&older).unwrap().replacen('\n', "\n1", 1);
    let changed = evidence.bench.file("changed.checkpoint", changed);
    proves_nothing(evidence.prove(&["--since", changed.to_str().unwrap()]));
    // An unknown receipt is a mistake of the user, not a sign of tampering.
    evidence.prove(&[&receipt(0xee)]).exits(2).says("there is no decision with the id");
}
