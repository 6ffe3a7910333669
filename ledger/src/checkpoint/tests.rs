use super::*;
use crate::tree::tests::leaves;

const HOME: &str = "holdpoint/0011223344556677";
const CHAIN: &str = "8899aabbccddeeff";

fn key(name: &str, seed: u8) -> SigningKey {
    SigningKey::generate(name, [seed; 32]).unwrap()
}

fn keys() -> Keyring {
    key(HOME, 1).verifying_key().clone().into()
}

fn checkpoint(size: u64) -> Checkpoint {
    Checkpoint { origin: origin(HOME, &CHAIN.parse().unwrap()), size, root: leaves(1)[0] }
}

/// Opens an arbitrary text signed with the home's key.
fn open_signed(body: &str) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::open(&note::sign(body, &key(HOME, 1)), &keys())
}

#[test]
fn a_checkpoint_reads_as_the_specification_has_it() {
    let root = NodeHash([0; 32]);
    let text = Checkpoint { root, ..checkpoint(42) }.sign(&key(HOME, 1));
    let lines: Vec<&str> = text.split('\n').collect();
    let [origin, size, root, empty, signature, end] = lines[..] else { panic!("{text}") };
    assert_eq!(origin, "holdpoint/0011223344556677/8899aabbccddeeff");
    assert_eq!((size, root), ("42", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    assert_eq!((empty, end), ("", ""));
    assert!(signature.starts_with("— holdpoint/0011223344556677 "), "{signature}");
}

#[test]
fn what_was_signed_opens() {
    for size in [0, 1, 42, MAX_SIZE] {
        let opened = Checkpoint::open(&checkpoint(size).sign(&key(HOME, 1)), &keys());
        assert_eq!(opened, Ok(checkpoint(size)));
    }
    let index = Checkpoint { origin: origin(HOME, &ChainId::index()), ..checkpoint(3) };
    let opened = Checkpoint::open(&index.sign(&key(HOME, 1)), &keys()).unwrap();
    assert_eq!(opened.chain(), Some(ChainId::index()));
    assert_eq!(checkpoint(3).chain(), CHAIN.parse().ok());
}

#[test]
fn another_keys_checkpoint_is_refused() {
    let unknown = Err(CheckpointError::Note(NoteError::UnknownSigners));
    assert_eq!(Checkpoint::open(&checkpoint(1).sign(&key(HOME, 2)), &keys()), unknown);
    assert_eq!(Checkpoint::open(&checkpoint(1).sign(&key("other", 1)), &keys()), unknown);
    let wrong = CheckpointError::Note(NoteError::WrongSignature { name: HOME.to_owned() });
    let text = checkpoint(41).sign(&key(HOME, 1)).replace("\n41\n", "\n42\n");
    assert_eq!(Checkpoint::open(&text, &keys()), Err(wrong));
}

#[test]
fn no_trusted_key_speaks_for_the_chains_of_another() {
    let (ours, other) = (key(HOME, 1), key("holdpoint/7766554433221100", 2));
    let text = format!("{}\n{}\n", ours.verifying_key(), other.verifying_key());
    let both = Keyring::from_text(&text).unwrap();
    assert!(Checkpoint::open(&checkpoint(1).sign(&ours), &both).is_ok());
    let foreign = CheckpointError::Origin { signer: other.name().to_owned() };
    assert_eq!(Checkpoint::open(&checkpoint(1).sign(&other), &both), Err(foreign));
    // A second key of the same home can sign as well.
    let rotated = key(HOME, 3);
    assert!(
        Checkpoint::open(&checkpoint(1).sign(&rotated), &rotated.verifying_key().clone().into())
            .is_ok()
    );
}

#[test]
fn origins_that_name_no_chain_of_the_signer_are_refused() {
    let root = leaves(1)[0].base64();
    let foreign = CheckpointError::Origin { signer: HOME.to_owned() };
    for origin in [
        HOME.to_owned(),
        CHAIN.to_owned(),
        format!("{HOME}/"),
        format!("{HOME}/{CHAIN}/"),
        format!("{HOME}//{CHAIN}"),
        format!("{HOME}/x/{CHAIN}"),
        format!("{HOME}/{}", CHAIN.to_uppercase()),
        format!("{HOME}/{CHAIN} "),
        format!("x{HOME}/{CHAIN}"),
    ] {
        let opened = open_signed(&format!("{origin}\n1\n{root}\n"));
        assert_eq!(opened, Err(foreign.clone()), "{origin}");
    }
}

#[test]
fn a_size_is_a_decimal_number_in_one_spelling() {
    let root = leaves(1)[0].base64();
    let with_size = |size: &str| open_signed(&format!("{HOME}/{CHAIN}\n{size}\n{root}\n"));
    assert!(with_size("0").is_ok());
    assert!(with_size("9007199254740991").is_ok());
    for size in [
        "00",
        "01",
        "+1",
        "-1",
        "-0",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "١",
        "x",
        "9007199254740992",
        "18446744073709551615",
        "18446744073709551616",
        "100000000000000000000000000000000000000000",
    ] {
        assert_eq!(with_size(size), Err(CheckpointError::Size), "{size}");
    }
}

#[test]
fn a_root_is_a_hash_in_base64() {
    let with_root = |root: &str| open_signed(&format!("{HOME}/{CHAIN}\n1\n{root}\n"));
    let root = leaves(1)[0];
    assert!(with_root(&root.base64()).is_ok());
    for text in [root.to_string(), root.base64().replace('=', ""), format!("{} ", root.base64())] {
        assert_eq!(with_root(&text), Err(CheckpointError::Root), "{text}");
    }
}

#[test]
fn lines_after_the_root_are_let_be() {
    let body = format!("{HOME}/{CHAIN}\n42\n{}\n", checkpoint(42).root.base64());
    assert_eq!(open_signed(&body), Ok(checkpoint(42)));
    assert_eq!(open_signed(&format!("{body}an extension\n43\n")), Ok(checkpoint(42)));
    // They are still covered by the signature.
    let signed = note::sign(&format!("{body}an extension\n"), &key(HOME, 1));
    let changed = signed.replace("an extension", "another");
    assert!(matches!(Checkpoint::open(&changed, &keys()), Err(CheckpointError::Note(_))));
}

#[test]
fn missing_and_empty_lines_are_refused() {
    let root = leaves(1)[0].base64();
    let origin = format!("{HOME}/{CHAIN}");
    assert_eq!(open_signed("x\n"), Err(CheckpointError::Lines));
    assert_eq!(open_signed(&format!("{origin}\n1\n")), Err(CheckpointError::Lines));
    assert_eq!(open_signed(&format!("\n1\n{root}\n")), Err(CheckpointError::Lines));
    assert_eq!(open_signed(&format!("{origin}\n1\n{root}\n\n")), Err(CheckpointError::Lines));
    assert_eq!(
        open_signed(&format!("{origin}\n1\n{root}\n\nmore\n")),
        Err(CheckpointError::NotOne)
    );
    assert_eq!(Checkpoint::open("", &keys()), Err(CheckpointError::Note(NoteError::NoSignatures)));
}

#[test]
fn several_checkpoints_come_one_by_one() {
    let texts: Vec<String> = (1..=3).map(|size| checkpoint(size).sign(&key(HOME, 1))).collect();
    for between in ["", "\n", "\n\n\n"] {
        for around in ["", "\n", "\n\n"] {
            let text = format!("{around}{}{around}", texts.join(between));
            let found: Vec<&str> = split_checkpoints(&text).collect();
            assert_eq!(found, texts, "{text:?}");
        }
    }
    // Additional signatures stay with their checkpoint.
    let witnessed = format!("{}— witness AAAAAAA=\n", texts[0]);
    let text = format!("{witnessed}{}", texts[1]);
    assert_eq!(split_checkpoints(&text).collect::<Vec<_>>(), [&witnessed, &texts[1]]);
    assert_eq!(split_checkpoints("").count(), 0);
    assert_eq!(split_checkpoints("\n\n\n").count(), 0);
}

#[test]
fn what_stands_between_checkpoints_is_not_passed_over() {
    let one = checkpoint(1).sign(&key(HOME, 1));
    for stray in ["x\n", "x", "x\n\n", "x\n\ny\n", "— x\n", "— x\n\n", "\r\n", " \n"] {
        for text in
            [format!("{stray}{one}"), format!("{one}{stray}"), format!("{one}\n{stray}\n{one}")]
        {
            let is_whole = |piece| Checkpoint::open(piece, &keys()).is_ok();
            assert!(!split_checkpoints(&text).all(is_whole), "{text:?}");
        }
    }
    let text = one.replace('\n', "\r\n");
    assert!(split_checkpoints(&text).any(|piece| Checkpoint::open(piece, &keys()).is_err()));
}

#[test]
fn as_many_checkpoints_as_allowed_open_and_one_more_does_not() {
    let one = checkpoint(1).sign(&key(HOME, 1));
    let open_last = |text: &str| {
        let pieces: Vec<&str> = split_checkpoints(text).collect();
        assert_eq!(pieces.len(), MAX_HEADS);
        assert!(pieces[..MAX_HEADS - 1].iter().all(|piece| *piece == one));
        Checkpoint::open(pieces[MAX_HEADS - 1], &keys())
    };
    let most = one.repeat(MAX_HEADS);
    assert_eq!(open_last(&most), Ok(checkpoint(1)));
    assert_eq!(open_last(&format!("{most}\n\n")), Ok(checkpoint(1)));
    assert_eq!(open_last(&format!("{most}{one}")), Err(CheckpointError::NotOne));
    assert_eq!(open_last(&format!("{most}\n{one}")), Err(CheckpointError::NotOne));
    let many = open_last(&most.repeat(2));
    assert_eq!(many, Err(CheckpointError::Note(NoteError::TooLong)));
}
