//! Lines and folders of receipts may be any bytes: verification terminates and detects each changed
//! byte. Content that a holder of the key could have signed is also read to its end.

use contract::hash::sha256_hex;
use contract::time::Timestamp;
use ledger::chain::{ChainWriter, Rotation, head, read_signed_tail, read_tail};
use ledger::checkpoint::{Checkpoint, origin};
use ledger::folder::{ChainId, Folder, SegmentNumber};
use ledger::index::{CHAIN_LISTED, listed_data};
use ledger::line::{LineHash, Place, encode, scan};
use ledger::lines::{LineReader, Piece};
use ledger::memory::MemoryFolder;
use ledger::note::{Keyring, SigningKey};
use ledger::prove::heads;
use ledger::record::{Event, Record};
use ledger::tree::{Frontier, leaf};
use ledger::verify::{Report, verify};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const NOW: Timestamp = Timestamp(1_763_253_195_123);

/// Small, so that a few lines fill several segments.
const ROTATION: Rotation = Rotation { bytes: 1_500, age_milliseconds: i64::MAX };

/// The names of the events in a signed folder.
const NAMES: [&str; 8] = [
    "chain.opened",
    "chain.segment",
    "chain.resumed",
    "chain.listed",
    "chain.retention",
    "chain.anew",
    "server.approve",
    "incident.on",
];

/// The most events in a signed folder: each chain and segment costs a signature.
const MAX_EVENTS: usize = 32;

static KEY: LazyLock<Arc<SigningKey>> = LazyLock::new(|| {
    Arc::new(SigningKey::generate("holdpoint/0011223344556677", [7; 32]).expect("a key"))
});
static KEYS: LazyLock<Keyring> = LazyLock::new(|| KEY.verifying_key().clone().into());

// The first byte selects how the others are used.
pub fn run(input: &[u8]) {
    let [what, bytes @ ..] = input else { return };
    match what % 4 {
        0 => {
            split(bytes);
            read_lines(bytes);
        }
        1 => edit(bytes),
        2 => read_all(&as_files(bytes)),
        _ => read_all(&as_signed(bytes)),
    }
}

fn chain(byte: u8) -> ChainId {
    match byte % 4 {
        0 => ChainId::index(),
        number => ChainId::from_random([number; 8]),
    }
}

/// The pieces contain all of the bytes, in order.
fn split(bytes: &[u8]) {
    let mut reader = LineReader::new(bytes);
    let mut whole = Vec::new();
    while let Some(piece) = reader.next_piece().expect("memory can be read") {
        match piece {
            Piece::Line(line) => whole.extend_from_slice(&[line, b"\n"].concat()),
            Piece::Tail(tail) => whole.extend_from_slice(tail),
            Piece::TooLong => return,
        }
    }
    assert_eq!(whole, bytes);
}

/// Lines as they are, and with their correct hash.
fn read_lines(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = scan(line);
        if let Some(sealed) = sealed(line)
            && let Ok(read) = scan(&sealed)
        {
            assert_eq!(read.bytes, sealed);
        }
    }
}

/// The line with a correct `hash`, if it has the member.
fn sealed(line: &[u8]) -> Option<Vec<u8>> {
    const NAME: &[u8] = b"\"hash\":\"";
    let at = line.windows(NAME.len()).position(|part| part == NAME)?;
    let (digits, end) = (at + NAME.len(), at + NAME.len() + 64);
    let without = [line.get(..at)?, line.get(end + 2..)?].concat();
    Some([line.get(..digits)?, sha256_hex(&without).as_bytes(), line.get(end..)?].concat())
}

/// The files of a folder, separated by the byte 0xff. Each starts with its chain, its number, and
/// whether it is a checkpoint.
fn as_files(bytes: &[u8]) -> MemoryFolder {
    let folder = MemoryFolder::default();
    for file in bytes.split(|byte| *byte == 0xff) {
        let [which, number, contents @ ..] = file else { continue };
        let place = (chain(*which), SegmentNumber(u32::from(*number) + 1));
        if which & 4 == 0 {
            folder.contents().segments.insert(place, contents.to_vec());
        } else {
            let text = String::from_utf8_lossy(contents).into_owned();
            folder.contents().checkpoints.insert(place, text);
        }
    }
    folder
}

/// Each line of the input is an event: its chain, whether a segment starts, its name, and its data
/// as JSON. All are signed.
fn as_signed(bytes: &[u8]) -> MemoryFolder {
    let folder = MemoryFolder::default();
    for which in 0..4 {
        let chain = chain(which);
        let (mut tree, mut prev, mut number) = (Frontier::new(), LineHash::NONE, 1);
        let mut signed = BTreeMap::new();
        for line in bytes.split(|byte| *byte == b'\n').take(MAX_EVENTS) {
            let [of, kind, data @ ..] = line else { continue };
            if of % 4 != which {
                continue;
            }
            number += u32::from(of & 4 != 0);
            let data = serde_json::from_slice::<Value>(data).ok();
            let event = Event {
                ts: NOW,
                name: NAMES[usize::from(*kind) % NAMES.len()],
                by: None,
                server_id: Some("files".into()),
                data: data.as_ref(),
            };
            let (mut out, place) = (Vec::new(), Place { seq: tree.size(), prev });
            let Ok(hash) = encode(&Record::Event(&event), place, &mut out) else { continue };
            prev = hash;
            tree.push(leaf(&hash.0));
            let key = (chain.clone(), SegmentNumber(number));
            folder.contents().segments.entry(key).or_default().extend_from_slice(&out);
            signed.insert(number, (tree.size(), tree.root()));
        }
        for (number, (size, root)) in signed {
            let checkpoint = Checkpoint { origin: origin(KEY.name(), &chain), size, root };
            let key = (chain.clone(), SegmentNumber(number));
            folder.contents().checkpoints.insert(key, checkpoint.sign(&KEY));
        }
    }
    folder
}

/// Runs everything that reads a folder.
fn read_all(folder: &MemoryFolder) {
    let report = verified(folder);
    assert!(report.is_sound() || !report.problems.is_empty());
    let _ = heads(folder, &KEYS);
    let listing = folder.listing().expect("memory can be listed");
    for (chain, files) in &listing.chains {
        let _ = head(folder, chain, files, &KEYS);
        let _ = read_tail(folder, chain, files, &KEYS);
        let _ = read_signed_tail(folder, chain, files, &KEYS);
    }
}

fn verified(folder: &MemoryFolder) -> Report {
    verify(folder, &KEYS, &[], &|_| {}).expect("memory can be listed")
}

/// A copy of a home that verifies.
fn sound() -> MemoryFolder {
    static SOUND: LazyLock<MemoryFolder> = LazyLock::new(written);
    let (folder, original) = (MemoryFolder::default(), SOUND.contents());
    folder.contents().segments = original.segments.clone();
    folder.contents().checkpoints = original.checkpoints.clone();
    folder
}

/// A home with an index and a chain of several segments.
fn written() -> MemoryFolder {
    let folder = MemoryFolder::default();
    let create = |chain: &ChainId, rotation| {
        let files = folder.chain(chain);
        ChainWriter::create(files, KEY.clone(), chain.clone(), rotation, &[], NOW).expect("memory")
    };
    let mut index = create(&ChainId::index(), Rotation::NEVER);
    let mut writer = create(&chain(1), ROTATION);
    let listed = listed_data(&chain(1), writer.head().hash);
    let event = |name, data| Event { ts: NOW, name, by: None, server_id: None, data };
    index.append(&Record::Event(&event(CHAIN_LISTED, Some(&listed)))).expect("memory");
    index.checkpoint().expect("memory");
    for _ in 0..12 {
        writer.append(&Record::Event(&event("server.check", None))).expect("memory");
    }
    writer.checkpoint().expect("memory");
    assert!(verified(&folder).is_sound());
    folder
}

/// Changes one byte of one file.
fn edit(bytes: &[u8]) {
    let [file, high, low, value, ..] = bytes else { return };
    let (offset, value) = (u16::from_be_bytes([*high, *low]), *value);
    let folder = sound();
    {
        let mut contents = folder.contents();
        let segments = contents.segments.len();
        let place = usize::from(*file) % (segments + contents.checkpoints.len());
        if let Some(bytes) = contents.segments.values_mut().nth(place) {
            let at = usize::from(offset) % bytes.len();
            if bytes[at] == value {
                return;
            }
            bytes[at] = value;
        } else {
            let text = contents.checkpoints.values_mut().nth(place - segments).expect("a file");
            let mut bytes = text.clone().into_bytes();
            let at = usize::from(offset) % bytes.len();
            if bytes[at] == value {
                return;
            }
            bytes[at] = value;
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    assert!(!verified(&folder).is_sound(), "file {file}, byte {offset}, {value}");
}
