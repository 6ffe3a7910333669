use super::*;

/// The header of Bitcoin's first block.
const GENESIS: &str = "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c";

fn proof() -> Proof {
    let pending = Timestamp {
        attestations: vec![Attestation::Pending("https://a.example".to_owned())],
        operations: Vec::new(),
    };
    let confirmed = Timestamp {
        attestations: vec![Attestation::Bitcoin(800_000)],
        operations: vec![(Operation::Reverse, pending.clone())],
    };
    let hashed = Timestamp {
        attestations: vec![Attestation::Unknown([7; 8], vec![1, 2, 3])],
        operations: vec![
            (Operation::Prepend(vec![9; 200]), pending),
            (Operation::Append(vec![1]), confirmed),
        ],
    };
    let timestamp =
        Timestamp { attestations: Vec::new(), operations: vec![(Operation::Sha256, hashed)] };
    Proof { digest: [5; 32], timestamp }
}

#[test]
fn a_proof_is_read_as_it_was_written() {
    let bytes = proof().write();
    let again = Proof::read(&bytes).unwrap();
    assert_eq!(again.write(), bytes);
    assert_eq!(again.bitcoin_height(), Some(800_000));
    assert_eq!(again.attestations().len(), 4);
}

#[test]
fn any_cut_is_refused_and_so_is_anything_behind_the_end() {
    let bytes = proof().write();
    for end in 0..bytes.len() {
        assert!(Proof::read(&bytes[..end]).is_err(), "{end}");
    }
    assert_eq!(Proof::read(&[bytes.as_slice(), &[0]].concat()), Err(BadProof::Length));
}

#[test]
fn depth_steps_and_values_are_bounded() {
    let header = |rest: &[u8]| [MAGIC, &[VERSION, SHA256], &[0; 32], rest].concat();
    let deep = |levels: usize| {
        let mut rest = vec![SHA256; levels];
        rest.push(ATTESTATION);
        rest.extend_from_slice(&BITCOIN);
        rest.extend_from_slice(&[1, 1]);
        header(&rest)
    };
    assert!(Proof::read(&deep(MAX_DEPTH)).is_ok());
    assert_eq!(Proof::read(&deep(MAX_DEPTH + 1)), Err(BadProof::TooLarge));
    let huge = header(&[APPEND, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    assert_eq!(Proof::read(&huge), Err(BadProof::TooLarge));
    assert_eq!(Proof::read(&header(&[0x02])), Err(BadProof::Operation(0x02)));
    let script = [&[ATTESTATION][..], &PENDING, &[5, 4], b"<s>!"].concat();
    assert_eq!(Proof::read(&header(&script)), Err(BadProof::Uri));
}

#[test]
fn what_a_calendar_adds_is_merged() {
    let mut proof = proof();
    let message = Operation::Append(vec![1]).apply(&Operation::Sha256.apply(&proof.digest));
    let mut more = Timestamp::default();
    more.attestations.push(Attestation::Bitcoin(799_999));
    proof.timestamp.at_mut(&[5; 32], &message).unwrap().merge(more.clone());
    assert_eq!(proof.bitcoin_height(), Some(799_999));
    let once = proof.clone();
    proof.timestamp.at_mut(&[5; 32], &message).unwrap().merge(more);
    assert_eq!(proof, once);
    assert!(proof.timestamp.at_mut(&[5; 32], &[0; 32]).is_none());
}

#[test]
fn a_header_needs_its_proof_of_work() {
    let header = BlockHeader::read(GENESIS).unwrap();
    assert_eq!(header.hash, "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f");
    assert_eq!(header.seconds, 1_231_006_505);
    let other_root = GENESIS.replacen("3ba3", "3ba4", 1);
    assert_eq!(BlockHeader::read(&other_root), Err(BadBlockHeader::Work));
    let easy = GENESIS.replacen("ffff001d", "ffffff22", 1);
    assert_eq!(BlockHeader::read(&easy), Err(BadBlockHeader::Target));
    assert_eq!(BlockHeader::read("00"), Err(BadBlockHeader::Length));
}
