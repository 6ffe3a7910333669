//! Every way to change a ledger without its key: exit code 14, the first bad place is named, and
//! everything else is still counted.

use super::*;
use ledger::checkpoint::Checkpoint;
use ledger::note::{Keyring, SigningKey};

#[test]
fn an_edited_line_is_named() {
    let evidence = Evidence::new();
    let [first, second] = &evidence.chains;
    for chain in [first, second] {
        evidence.edit(&evidence.segment(chain, 2), |lines| {
            lines[2] = lines[2].replace("2025-", "2024-");
        });
        let said = "its hash does not match its content";
        let report = evidence.finds_only(Place::line(chain, 2, 3), said);
        // The segments after the bad line are still verified.
        let (found, sound) =
            (evidence.counted(&report, chain), evidence.counted(&evidence.sound, chain));
        assert_eq!(found["segments"], sound["segments"]);
        assert_eq!(found["covered"], sound["covered"]);
        assert_eq!(report["problems"].as_array().unwrap().len(), 1, "{report:#}");
        evidence.restore();
    }
    let path = evidence.segment("index", 1);
    evidence.edit(&path, |lines| lines[1] = lines[1].replace("\"ada\"", "\"eve\""));
    evidence.finds(Place::line("index", 1, 2), "its hash does not match its content");
}

#[test]
fn a_line_that_was_edited_with_its_hash_is_named_by_the_next_one() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    evidence.edit(&evidence.segment(chain, 2), |lines| {
        lines[2] = rehashed(&lines[2].replace("2025-", "2024-"));
    });
    evidence.finds_only(Place::line(chain, 2, 4), "its `prev` is not the hash of the line before");
}

#[test]
fn lines_that_were_rewritten_to_the_end_are_not_those_that_were_signed() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[1];
    let last = evidence.segments(chain);
    evidence.edit(&evidence.segment(chain, last), |lines| {
        lines[1] = rehashed(&lines[1].replace("2025-", "2024-"));
        for at in 2..lines.len() {
            lines[at] = chained(&lines[at], &lines[at - 1]);
        }
    });
    evidence.finds_only(Place::segment(chain, last), "its checkpoint is of other lines");
}

#[test]
fn a_deleted_an_inserted_and_a_moved_line_are_named() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let path = evidence.segment(chain, 2);
    let said = "its `seq` is not the one that follows";
    evidence.edit(&path, |lines| drop(lines.remove(2)));
    evidence.finds_only(Place::line(chain, 2, 3), said);
    evidence.restore();
    evidence.edit(&path, |lines| lines.insert(2, lines[1].clone()));
    evidence.finds_only(Place::line(chain, 2, 3), said);
    evidence.restore();
    // The inserted line fits, but the line after it no longer does.
    evidence.edit(&path, |lines| lines.insert(3, chained(&lines[1], &lines[2])));
    evidence.finds_only(Place::line(chain, 2, 5), said);
    evidence.restore();
    evidence.edit(&path, |lines| lines.swap(1, 2));
    evidence.finds_only(Place::line(chain, 2, 2), said);
}

#[test]
fn swapped_segments_are_named() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[1];
    swap(&evidence.segment(chain, 2), &evidence.segment(chain, 3));
    let said = "it does not continue where the segment before it ended";
    evidence.finds_only(Place::line(chain, 2, 1), said);
    // Swap their checkpoints as well.
    swap(&evidence.checkpoint(chain, 2), &evidence.checkpoint(chain, 3));
    evidence.finds_only(Place::line(chain, 2, 1), said);
    evidence.restore();
    // The same segment of two chains.
    let [first, second] = &evidence.chains;
    swap(&evidence.segment(first, 2), &evidence.segment(second, 2));
    evidence.finds(Place::line(first, 2, 1), said);
}

fn swap(one: &Path, other: &Path) {
    let (first, second) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    assert_ne!(first, second);
    fs::write(one, second).unwrap();
    fs::write(other, first).unwrap();
}

#[test]
fn a_truncated_segment_is_named() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let last = evidence.segments(chain);
    let path = evidence.segment(chain, 2);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let lines = String::from_utf8(bytes).unwrap().lines().count();
    evidence.finds_only(Place::line(chain, 2, lines), "it does not end in a newline");
    evidence.restore();
    evidence.edit(&path, |lines| drop(lines.pop()));
    evidence.finds_only(Place::segment(chain, 2), "the newest are gone");
    evidence.restore();
    // At the end of the chain it looks like the result of a crash, except for the checkpoint.
    let path = evidence.segment(chain, last);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    evidence.finds_only(Place::segment(chain, last), "the newest are gone");
}

#[test]
fn the_replay_of_an_old_segment_is_named() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    // The first segment in place of the third, with its genuine checkpoint.
    fs::copy(evidence.segment(chain, 1), evidence.segment(chain, 3)).unwrap();
    fs::copy(evidence.checkpoint(chain, 1), evidence.checkpoint(chain, 3)).unwrap();
    let said = "it does not continue where the segment before it ended";
    evidence.finds_only(Place::line(chain, 3, 1), said);
    evidence.restore();
    // An earlier state of a segment, with its genuine checkpoint.
    let home = Home::open(&evidence.bench.home()).unwrap();
    let receipts = Receipts::open(&home, settings()).unwrap();
    assert_eq!(receipts.chain().as_str(), chain);
    let number = loop {
        receipts.decision(&decision(99, 99_000)).unwrap();
        receipts.checkpoint().unwrap();
        let last = evidence.segments(chain);
        if fs::metadata(evidence.segment(chain, last)).unwrap().len() < SEGMENT_BYTES {
            break last;
        }
    };
    let paths = [evidence.segment(chain, number), evidence.checkpoint(chain, number)];
    let old = paths.each_ref().map(|path| fs::read(path).unwrap());
    for id in 50..60 {
        receipts.decision(&decision(id, 99_000)).unwrap();
    }
    drop(receipts);
    evidence.verify(&[]).exits(0);
    for (path, old) in paths.iter().zip(old) {
        assert_ne!(fs::read(path).unwrap(), old);
        fs::write(path, old).unwrap();
    }
    evidence.finds_only(Place::line(chain, number + 1, 1), said);
}

#[test]
fn checkpoints_of_another_key_are_named() {
    let evidence = Evidence::new();
    let public = evidence.bench.home().join("keys").join("receipts.pub");
    let keys = Keyring::from_text(&fs::read_to_string(public).unwrap()).unwrap();
    // The other key has the same name.
    let other = SigningKey::generate(keys.keys()[0].name(), [7; 32]).unwrap();
    let sign_again = |chain: &str| {
        for number in 1..=evidence.segments(chain) {
            let path = evidence.checkpoint(chain, number);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, Checkpoint::open(&text, &keys).unwrap().sign(&other)).unwrap();
        }
    };
    let said = "its checkpoint: no known key has signed it";
    sign_again(&evidence.chains[1]);
    let report = evidence.finds(Place::segment(&evidence.chains[1], 1), said);
    assert_eq!(evidence.counted(&report, &evidence.chains[1])["covered"], 0);
    for chain in ["index", &evidence.chains[0]] {
        assert_eq!(evidence.counted(&report, chain), evidence.counted(&evidence.sound, chain));
    }
    sign_again("index");
    sign_again(&evidence.chains[0]);
    let report = evidence.finds(Place::segment("index", 1), said);
    assert_eq!(report["lines"], evidence.sound["lines"]);
}

#[test]
fn a_chain_that_was_copied_under_another_name_is_named() {
    let evidence = Evidence::new();
    let [first, second] = &evidence.chains;
    fs::remove_dir_all(evidence.chain(second)).unwrap();
    copy(&evidence.chain(first), &evidence.chain(second));
    evidence.finds_only(Place::segment(second, 1), "its checkpoint: it is one of `holdpoint/");
    evidence.restore();
    let planted = "ffffffffffffffff";
    copy(&evidence.chain(first), &evidence.chain(planted));
    let report =
        evidence.finds_only(Place::segment(planted, 1), "its checkpoint: it is one of `holdpoint/");
    assert!(report.to_string().contains("it is not in the index"), "{report:#}");
}

#[test]
fn a_chain_that_is_gone_is_named() {
    let evidence = Evidence::new();
    for chain in &evidence.chains {
        fs::remove_dir_all(evidence.chain(chain)).unwrap();
        let report = evidence.finds(Place::chain(chain), "the index lists it, and it is gone");
        let rest = evidence.chains.iter().filter(|rest| *rest != chain);
        for rest in rest.map(String::as_str).chain(["index"]) {
            assert_eq!(evidence.counted(&report, rest), evidence.counted(&evidence.sound, rest));
        }
        evidence.restore();
    }
}

#[test]
fn an_index_that_is_gone_or_was_put_back_is_named() {
    let evidence = Evidence::new();
    fs::remove_dir_all(evidence.chain("index")).unwrap();
    let report =
        evidence.finds(Place::chain("index"), "it is gone: nothing shows which chains there were");
    for chain in &evidence.chains {
        assert_eq!(evidence.counted(&report, chain)["lines"], lines_of(&evidence, chain));
    }
    copy(&evidence.bench.path("older").join("index"), &evidence.chain("index"));
    let report = evidence.finds(Place::chain("index"), "is gone, which chain ");
    for chain in &evidence.chains {
        assert_eq!(evidence.counted(&report, chain), evidence.counted(&evidence.sound, chain));
    }
    // Only its checkpoint is missing, so its content is unsigned.
    evidence.restore();
    fs::remove_file(evidence.checkpoint("index", 1)).unwrap();
    evidence.finds(Place::segment("index", 1), "its checkpoint is gone");
}

fn lines_of(evidence: &Evidence, chain: &str) -> Value {
    evidence.counted(&evidence.sound, chain)["lines"].clone()
}

#[test]
fn a_ledger_that_was_started_over_is_reported() {
    let evidence = Evidence::new();
    fs::remove_dir_all(evidence.folder()).unwrap();
    let home = Home::open(&evidence.bench.home()).unwrap();
    write_calls(&home, 0..2);
    evidence.finds(Place::chain("index"), "it was started over at ");
    // With another key it is a different ledger, which is detected by anyone who kept the old key.
    let old_key =
        evidence.bench.file("old.pub", fs::read(home.receipts_public_key_path()).unwrap());
    fs::remove_dir_all(evidence.folder()).unwrap();
    fs::remove_dir_all(home.path().join("keys")).unwrap();
    write_calls(&Home::open(&evidence.bench.home()).unwrap(), 0..2);
    evidence.verify(&[]).exits(0);
    let answer = evidence.verify(&["--key", old_key.to_str().unwrap()]).exits(14);
    answer.says("chain index, segment 000001: its checkpoint: no known key has signed it");
}

#[test]
fn nothing_but_retention_passes_as_retention() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let remove_first = || {
        fs::remove_file(evidence.segment(chain, 1)).unwrap();
        fs::remove_file(evidence.checkpoint(chain, 1)).unwrap();
    };
    let said = "segments up to 000001 are gone, and no signed record of retention names them";
    remove_first();
    evidence.finds_only(Place::segment(chain, 1), said);
    evidence.restore();
    // A retention record with correct content but no signature.
    let closed = fs::read_to_string(evidence.checkpoint(chain, 1)).unwrap();
    let public = evidence.bench.home().join("keys").join("receipts.pub");
    let keys = Keyring::from_text(&fs::read_to_string(public).unwrap()).unwrap();
    let closed = Checkpoint::open(&closed, &keys).unwrap();
    let dropped = json!({"chain": chain, "first_seq": 0, "lines": closed.size, "root": closed.root, "segment": 1});
    let data = json!({ "dropped": [dropped] });
    evidence.edit(&evidence.segment("index", 1), |lines| {
        let last = lines.last().unwrap();
        let hash = digits(last, "hash");
        let forged = format!(
            r#"{{"by":null,"data":{data},"hash":"{hash}","name":"chain.retention","prev":"{hash}","record":"event","seq":0,"server_id":null,"ts":"2026-11-16T00:00:00.000Z"}}"#
        );
        // `prev` and `hash` must differ before both are replaced.
        let forged = forged.replacen(hash, &"0".repeat(64), 1);
        lines.push(chained(&forged, last));
    });
    let report = evidence.verify(&["--json"]).exits(0).json();
    assert_eq!(report["uncovered_lines"], 1);
    remove_first();
    let report = evidence.finds(Place::segment(chain, 1), said);
    let other = &evidence.chains[1];
    assert_eq!(evidence.counted(&report, other), evidence.counted(&evidence.sound, other));
    // The next act of a person does not sign it either.
    act(&Home::open(&evidence.bench.home()).unwrap(), 90_000);
    evidence.finds(Place::segment(chain, 1), said);
}

#[test]
fn true_retention_verifies() {
    let evidence = Evidence::new();
    let home = Home::open(&evidence.bench.home()).unwrap();
    let keep = store::receipts::Keep { bytes: Some(30_000), age_milliseconds: None };
    drop(Receipts::open(&home, Settings { keep, ..settings() }).unwrap());
    assert!(evidence.chains.iter().any(|chain| !evidence.segment(chain, 1).exists()));
    let report = evidence.verify(&["--json"]).exits(0).json();
    assert!(report["lines"].as_u64() < evidence.sound["lines"].as_u64());
}

#[test]
fn the_loss_of_the_newest_part_is_found_with_a_head_kept_elsewhere() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    // One process continues the first chain, and no other chain records that.
    let home = Home::open(&evidence.bench.home()).unwrap();
    let receipts = Receipts::open(&home, settings()).unwrap();
    assert_eq!(receipts.chain().as_str(), chain);
    receipts.decision(&decision(99, 99_000)).unwrap();
    drop(receipts);
    let heads = evidence.bench.run(["receipts", "prove", "--heads"]).exits(0).out;
    let heads = evidence.bench.file("heads.txt", heads);
    let with_head = ["--head", heads.to_str().unwrap()];
    let proven = "The checkpoints kept elsewhere show that nothing they cover is missing.";
    evidence.verify(&with_head).exits(0).says(proven);
    let unproven = "It cannot prove that the newest part is still there, nor that the whole folder is not an older copy: only a checkpoint kept elsewhere can";
    let is_lost = |from: &Path, chain: &str| {
        let answer = evidence.verify(&[]).exits(0).says("verified: ").says(unproven);
        assert!(!answer.out.contains('✗'), "{}", answer.out);
        let report = evidence.verify(&["--json"]).exits(0).json();
        assert!(report["cannot_prove"].as_str().unwrap().starts_with(unproven), "{from:?}");
        let answer = evidence.verify(&with_head).exits(14).says("the newest are gone");
        answer.says(&format!("chain {chain}: the checkpoint kept elsewhere covers "));
        let report = evidence.verify(&["--json", with_head[0], with_head[1]]).exits(14).json();
        assert_eq!(report["problems"][0]["chain"], chain);
        assert_eq!((&report["verified"], &report["heads_compared"]), (&json!(false), &json!(3)));
    };
    // Restore an earlier state of one chain.
    let kept = evidence.bench.path("kept");
    fs::remove_dir_all(evidence.chain(chain)).unwrap();
    copy(&kept.join(chain), &evidence.chain(chain));
    is_lost(&kept, chain);
    // Restore a much earlier state of the whole folder.
    let older = evidence.bench.path("older");
    fs::remove_dir_all(evidence.folder()).unwrap();
    copy(&older, &evidence.folder());
    is_lost(&older, "index");
    // Delete the whole folder.
    fs::remove_dir_all(evidence.folder()).unwrap();
    evidence.bench.run(["receipts", "verify"]).exits(2).says("there are no receipts yet");
    let all = ["receipts", "verify", with_head[0], with_head[1]];
    evidence.bench.run(all).exits(14).says("its receipts are gone");
}
