use super::*;

const TEXT: &str = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETER: &str = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH: &str = "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";
const PETERS_PRIVATE_KEY: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const PETERS_PUBLIC_KEY: &str =
    "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

fn key(name: &str, seed: u8) -> SigningKey {
    SigningKey::generate(name, [seed; 32]).unwrap()
}

fn ring(keys: &[&SigningKey]) -> Keyring {
    let lines: Vec<String> = keys.iter().map(|key| key.verifying_key().to_string()).collect();
    Keyring::from_text(&lines.join("\n")).unwrap()
}

fn peters() -> Keyring {
    Keyring::from_text(PETERS_PUBLIC_KEY).unwrap()
}

fn opened<'t>(note: &'t str, keys: &Keyring) -> Result<&'t str, NoteError> {
    open(note, keys).map(|(text, _)| text)
}

fn wrong(name: &str) -> Result<&'static str, NoteError> {
    Err(NoteError::WrongSignature { name: name.to_owned() })
}

fn signature_line(name: &str, key_id: u32, signature: &[u8]) -> String {
    let bytes = [&key_id.to_be_bytes(), signature].concat();
    format!("— {name} {}\n", STANDARD.encode(bytes))
}

#[test]
fn the_known_note_opens_with_its_key() {
    let note = format!("{TEXT}\n{PETER}");
    let keys = peters();
    let (text, signer) = open(&note, &keys).unwrap();
    assert_eq!(text, TEXT);
    assert_eq!(signer.name(), "PeterNeumann");
    assert_eq!(signer.key_id(), 0xc74f20a3);
}

#[test]
fn the_known_key_signs_the_known_note() {
    let key = SigningKey::parse(PETERS_PRIVATE_KEY).unwrap();
    assert_eq!(key.verifying_key().to_string(), PETERS_PUBLIC_KEY);
    assert_eq!(key.to_text().as_str(), PETERS_PRIVATE_KEY);
    assert_eq!(sign(TEXT, &key), format!("{TEXT}\n{PETER}"));
}

#[test]
fn what_was_signed_opens_with_that_key_alone() {
    let (ours, other) = (key("holdpoint/a", 1), key("holdpoint/a", 2));
    let note = sign("text\n", &ours);
    assert_eq!(opened(&note, &ring(&[&ours])), Ok("text\n"));
    assert_eq!(opened(&note, &ring(&[&other, &ours])), Ok("text\n"));
    assert_eq!(opened(&note, &ring(&[&other])), Err(NoteError::UnknownSigners));
}

#[test]
fn a_key_under_another_name_is_another_key() {
    let (ours, renamed) = (key("holdpoint/a", 1), key("holdpoint/b", 1));
    assert_ne!(ours.verifying_key().key_id(), renamed.verifying_key().key_id());
    let note = sign("text\n", &renamed);
    assert_eq!(opened(&note, &ring(&[&ours])), Err(NoteError::UnknownSigners));
    // The name of a known key with the number of another.
    let line = note.rsplit_once("— ").unwrap().1.replace("holdpoint/b", "holdpoint/a");
    assert_eq!(
        opened(&format!("text\n\n— {line}"), &ring(&[&ours])),
        Err(NoteError::UnknownSigners)
    );
}

#[test]
fn another_keys_signature_under_a_known_name_and_number_is_refused() {
    let (ours, other) = (key("holdpoint/a", 1), key("holdpoint/a", 2));
    let forged = other.sign_bytes(b"text\n");
    let line = signature_line("holdpoint/a", ours.verifying_key().key_id(), &forged);
    assert_eq!(opened(&format!("text\n\n{line}"), &ring(&[&ours])), wrong("holdpoint/a"));
}

#[test]
fn every_changed_byte_of_a_note_is_noticed() {
    let ours = key("holdpoint/a", 1);
    let keys = ring(&[&ours]);
    let note = sign("a text\nof two lines\n", &ours);
    assert_eq!(opened(&note, &keys), Ok("a text\nof two lines\n"));
    for at in 0..note.len() {
        for bit in 0..7 {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert!(open(&changed, &keys).is_err(), "byte {at}, bit {bit}: {changed:?}");
            }
        }
        let mut shorter = note.clone().into_bytes();
        shorter.remove(at);
        if let Ok(changed) = String::from_utf8(shorter) {
            assert!(open(&changed, &keys).is_err(), "without byte {at}: {changed:?}");
        }
    }
}

#[test]
fn the_text_may_have_empty_lines_and_any_letters() {
    let ours = key("holdpoint/a", 1);
    for text in ["\n", "\n\n", "a\n\nb\n", "è subito sera\n", "— looks like one\n\n— and more\n"]
    {
        assert_eq!(opened(&sign(text, &ours), &ring(&[&ours])), Ok(text));
    }
}

#[test]
fn signatures_of_unknown_keys_and_kinds_are_passed_over() {
    assert_eq!(opened(&format!("{TEXT}\n{PETER}{ENOCH}"), &peters()), Ok(TEXT));
    assert_eq!(opened(&format!("{TEXT}\n{ENOCH}{PETER}"), &peters()), Ok(TEXT));
    assert_eq!(opened(&format!("{TEXT}\n{ENOCH}"), &peters()), Err(NoteError::UnknownSigners));
    // The name of a known key with an unknown number, and vice versa.
    let other_number = signature_line("PeterNeumann", 0xc74f20a4, &[7; 2420]);
    assert_eq!(opened(&format!("{TEXT}\n{other_number}{PETER}"), &peters()), Ok(TEXT));
    assert_eq!(
        opened(&format!("{TEXT}\n{other_number}"), &peters()),
        Err(NoteError::UnknownSigners)
    );
    let other_name = signature_line("PeterNeumann2", 0xc74f20a3, &[7; 64]);
    assert_eq!(opened(&format!("{TEXT}\n{other_name}{PETER}"), &peters()), Ok(TEXT));
}

#[test]
fn one_wrong_signature_of_a_known_key_spoils_the_note() {
    for signature in [&[7; 64][..], &[7; 63], &[7; 65], &[7]] {
        let forged = signature_line("PeterNeumann", 0xc74f20a3, signature);
        assert_eq!(opened(&format!("{TEXT}\n{forged}"), &peters()), wrong("PeterNeumann"));
        assert_eq!(opened(&format!("{TEXT}\n{forged}{PETER}"), &peters()), wrong("PeterNeumann"));
        assert_eq!(opened(&format!("{TEXT}\n{PETER}{forged}"), &peters()), wrong("PeterNeumann"));
    }
    assert_eq!(opened(&format!("{TEXT}\n{PETER}{PETER}"), &peters()), Ok(TEXT));
}

#[test]
fn the_first_known_signer_is_named() {
    let (first, second) = (key("first", 1), key("second", 2));
    let (one, two) = (sign("text\n", &first), sign("text\n", &second));
    let note = format!("{one}{}", two.strip_prefix("text\n\n").unwrap());
    let keys = ring(&[&second, &first]);
    assert_eq!(open(&note, &keys).unwrap().1.name(), "first");
    let keys = ring(&[&second]);
    assert_eq!(open(&note, &keys).unwrap().1.name(), "second");
}

#[test]
fn a_signature_has_one_spelling() {
    let ours = key("holdpoint/a", 1);
    let keys = ring(&[&ours]);
    let key_id = ours.verifying_key().key_id();
    let signature = ours.sign_bytes(b"text\n");
    let note =
        |signature: &[u8]| format!("text\n\n{}", signature_line("holdpoint/a", key_id, signature));
    assert_eq!(opened(&note(&signature), &keys), Ok("text\n"));
    assert_eq!(opened(&note(&with_group_order_added(signature)), &keys), wrong("holdpoint/a"));
    // R is a point of small order, which would allow forging further signatures for a key of small
    // order.
    let mut small = signature;
    small[..32].fill(0);
    small[0] = 1;
    assert_eq!(opened(&note(&small), &keys), wrong("holdpoint/a"));
    let unpadded = note(&signature).replace("=\n", "\n");
    assert_eq!(opened(&unpadded, &keys), Err(NoteError::BadSignatureLine { line: 3 }));
}

/// The same signature for verifiers that do not check that S is below the group order.
fn with_group_order_added(mut signature: [u8; 64]) -> [u8; 64] {
    let order =
        hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
    let mut carry = 0;
    for (byte, addend) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(addend) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(carry, 0);
    signature
}

#[test]
fn what_is_no_signed_note_is_refused() {
    let no_signatures = || Err(NoteError::NoSignatures);
    assert_eq!(opened("", &peters()), no_signatures());
    assert_eq!(opened("\n", &peters()), no_signatures());
    assert_eq!(opened("\n\n", &peters()), no_signatures());
    assert_eq!(opened(TEXT, &peters()), no_signatures());
    assert_eq!(opened(&format!("{TEXT}\n"), &peters()), no_signatures());
    assert_eq!(opened(&format!("{TEXT}{PETER}"), &peters()), no_signatures());
    assert_eq!(opened(&format!("\n{PETER}"), &peters()), no_signatures());
    assert_eq!(opened(format!("{TEXT}\n{PETER}").trim_end(), &peters()), no_signatures());
    assert_eq!(opened(&format!("{TEXT}\n{PETER}\n"), &peters()), no_signatures());
    assert_eq!(opened(&format!("{TEXT}\n\n{PETER}"), &peters()), wrong("PeterNeumann"));
    assert_eq!(opened(&format!("x{TEXT}\n{PETER}"), &peters()), wrong("PeterNeumann"));
}

#[test]
fn lines_that_are_no_signatures_are_refused() {
    let encoded = PETER.trim_end().rsplit_once(' ').unwrap().1;
    for line in [
        format!("-- PeterNeumann {encoded}"),
        format!("- PeterNeumann {encoded}"),
        format!("—PeterNeumann {encoded}"),
        format!("—\u{a0}PeterNeumann {encoded}"),
        format!("—  PeterNeumann {encoded}"),
        format!("— PeterNeumann  {encoded}"),
        format!("— PeterNeumann {encoded} "),
        format!("— Peter+Neumann {encoded}"),
        format!("— Peter\u{2003}Neumann {encoded}"),
        format!("— {encoded}"),
        "— PeterNeumann ".to_owned(),
        "— PeterNeumann x08goA==".to_owned(),
        "— PeterNeumann x08gow==".to_owned(),
        format!("— PeterNeumann {}", encoded.replace('/', "_")),
        format!("— {} {encoded}", "n".repeat(MAX_NAME_BYTES + 1)),
        "and a word".to_owned(),
    ] {
        let bad_line = |line| Err(NoteError::BadSignatureLine { line });
        assert_eq!(opened(&format!("{TEXT}\n{line}\n{PETER}"), &peters()), bad_line(4));
        assert_eq!(opened(&format!("{TEXT}\n{PETER}{line}\n"), &peters()), bad_line(5));
    }
}

#[test]
fn control_characters_are_refused_by_line() {
    let control = |line| Err(NoteError::ControlCharacter { line });
    assert_eq!(opened(&format!("{TEXT}\n{PETER}").replace('\n', "\r\n"), &peters()), control(1));
    assert_eq!(opened(&format!("{TEXT}\n{}\r\n", PETER.trim_end()), &peters()), control(4));
    assert_eq!(opened(&format!("{TEXT}\t\n\n{PETER}"), &peters()), control(3));
    assert_eq!(opened(&format!("{TEXT}\0\n\n{PETER}"), &peters()), control(3));
    // Go's notes allow DEL and the characters after it, and so do these.
    let ours = key("holdpoint/a", 1);
    assert_eq!(opened(&sign("\u{7f}\u{85}\n", &ours), &ring(&[&ours])), Ok("\u{7f}\u{85}\n"));
}

#[test]
fn as_many_signatures_as_allowed_open_and_one_more_does_not() {
    let most = format!("{TEXT}\n{}{PETER}", ENOCH.repeat(MAX_SIGNATURES - 1));
    assert_eq!(opened(&most, &peters()), Ok(TEXT));
    let more = format!("{TEXT}\n{PETER}{}", ENOCH.repeat(MAX_SIGNATURES));
    assert_eq!(opened(&more, &peters()), Err(NoteError::TooManySignatures));
}

#[test]
fn the_longest_note_opens_and_a_longer_one_does_not() {
    let ours = key("holdpoint/a", 1);
    let around = sign("\n", &ours).len();
    let text = |length: usize| format!("{}\n", "x".repeat(length - around));
    let longest = sign(&text(MAX_NOTE_BYTES), &ours);
    assert_eq!(longest.len(), MAX_NOTE_BYTES);
    assert_eq!(opened(&longest, &ring(&[&ours])), Ok(text(MAX_NOTE_BYTES).as_str()));
    let longer = sign(&text(MAX_NOTE_BYTES + 1), &ours);
    assert_eq!(opened(&longer, &ring(&[&ours])), Err(NoteError::TooLong));
}
