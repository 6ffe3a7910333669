use super::*;
use contract::change::ChangeKind;
use contract::hash::{DefinitionHash, EntryHash};
use contract::time::Timestamp;
use messages::DriftSource;
use serde_json::{Value, json};

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn row() -> Value {
    json!({"definition_hash": "ab".repeat(32), "verdict": "dangerous", "reason_class": "injection"})
}

fn drift(seq: u64) -> Value {
    json!({"seq": seq, "fp_before": "01".repeat(32), "fp_after": "02".repeat(32),
        "kinds": ["tool-removed", "added-required-param"], "safety": true,
        "hour": "2026-11-18T06", "source": "crawler"})
}

#[test]
fn bits_follow_from_the_number_of_contracts() {
    for (contracts, bits) in [
        (0, 0),
        (1_023, 0),
        (2_047, 0),
        (2_048, 1),
        (4_095, 1),
        (4_096, 2),
        (1_048_576, 10),
        (1_024 << 14, 14),
        (1_024 << 15, 14),
        (u64::MAX, 14),
    ] {
        assert_eq!(bucket_bits(contracts), bits, "{contracts}");
    }
}

#[test]
fn a_bucket_is_the_first_bits_of_a_hash() {
    let mut hash = [0xff; 32];
    hash[..2].copy_from_slice(&[0b1010_0101, 0b1100_0000]);
    for (bits, index) in [(0, 0), (1, 1), (2, 2), (8, 0b1010_0101), (10, 0b10_1001_0111)] {
        let bucket = bucket_of(&hash, bits);
        assert_eq!((bucket.bits(), bucket.index()), (bits, index));
        assert!(bucket.contains(&hash));
        assert_eq!(Bucket::new(bits, index), Some(bucket));
    }
    assert_eq!(bucket_of(&hash, 200).bits(), MAX_BUCKET_BITS);
    assert_eq!(Bucket::new(3, 8), None);
    assert_eq!(Bucket::new(MAX_BUCKET_BITS + 1, 0), None);
    assert!(!Bucket::new(1, 0).unwrap().contains(&hash));
}

/// Computed with Python: `hmac.new(bytes(range(32)), b"holdpoint-drift-v1\n" + b"\x01" * 32, "sha256")`.
#[test]
fn a_fingerprint_is_an_hmac_of_the_entry_hash() {
    let salt = Salt::from_bytes(std::array::from_fn(|at| u8::try_from(at).unwrap()));
    let entry = EntryHash::from_bytes([1; 32]);
    let expected = "e81c580da614fdf1345af0eb625b0a343cb82c7e4b54e295f1fc78c4af19f650";
    assert_eq!(salt.fingerprint(entry).to_string(), expected);
    let other = Salt::from_bytes([0; 32]);
    assert_ne!(other.fingerprint(entry), salt.fingerprint(entry));
    assert_eq!(expected.parse::<Fingerprint>().unwrap(), salt.fingerprint(entry));
}

#[test]
fn hours_are_rounded_down_and_read_back() {
    let hour = Hour::of(Timestamp::parse("2026-11-18T06:59:59Z").unwrap());
    assert_eq!(hour.to_string(), "2026-11-18T06");
    assert_eq!(Hour::parse("2026-11-18T06"), Some(hour));
    assert_eq!(Hour::of(Timestamp(-1)).to_string(), "1969-12-31T23");
    for bad in
        ["2026-11-18T6", "2026-11-18T24", "2026-11-18T06:", "2026-11-18", "", "2026-11-18T06Z"]
    {
        assert_eq!(Hour::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_contribution_is_the_triple_and_nothing_else() {
    let sent = CorpusRow {
        definition_hash: DefinitionHash::from_bytes([0xab; 32]),
        verdict: CorpusVerdict::Dangerous,
        reason_class: ReasonClass::Injection,
    };
    assert_eq!(serde_json::to_value(sent).unwrap(), row());
    assert_eq!(CorpusRow::read_contribution(&bytes(&row())), Ok(sent));

    let mut with_more = row();
    with_more["tool"] = json!("make_report");
    assert_eq!(CorpusRow::read_contribution(&bytes(&with_more)), Err(MessageError::NotExpected));
    let twice =
        br#"{"definition_hash":"","verdict":"cleared","verdict":"dangerous","reason_class":""}"#;
    assert_eq!(CorpusRow::read_contribution(twice), Err(MessageError::NotExpected));
    for (member, value, expected) in [
        ("verdict", "safe", Err(MessageError::OffVocabulary)),
        ("definition_hash", "ab", Err(MessageError::OffVocabulary)),
        ("reason_class", "<b>buy</b>", Ok(ReasonClass::Unstated)),
    ] {
        let mut changed = row();
        changed[member] = json!(value);
        let read = CorpusRow::read_contribution(&bytes(&changed));
        assert_eq!(read.map(|row| row.reason_class), expected, "{member}");
    }
}

#[test]
fn requests_are_bounded() {
    let mut padded = bytes(&row());
    padded.resize(MAX_REQUEST_BYTES, b' ');
    assert!(CorpusRow::read_contribution(&padded).is_ok());
    padded.push(b' ');
    let refused = Err(MessageError::TooLarge(MAX_REQUEST_BYTES));
    assert_eq!(CorpusRow::read_contribution(&padded), refused);
}

#[test]
fn a_report_has_known_kinds_only() {
    let mut report = drift(1);
    let members = report.as_object_mut().unwrap();
    members.remove("seq");
    members.remove("source");
    let read = DriftReport::read_report(&bytes(&report)).unwrap();
    assert_eq!(read.kinds, [ChangeKind::AddedRequiredParam, ChangeKind::ToolRemoved], "sorted");
    let again = DriftReport::read_report(&serde_json::to_vec(&read).unwrap());
    assert_eq!(again.as_ref(), Ok(&read));
    report["kinds"] = json!(["made-up"]);
    assert_eq!(DriftReport::read_report(&bytes(&report)), Err(MessageError::OffVocabulary));
}

#[test]
fn parameters_cannot_ask_for_narrower_buckets() {
    let made = Parameters::new(5_000, Salt::from_bytes([7; 32]));
    let written = serde_json::to_value(made).unwrap();
    assert_eq!(
        written,
        json!({"v": 1, "contracts": 5_000, "bucket_bits": 2, "salt": "07".repeat(32)})
    );
    assert_eq!(Parameters::read(&bytes(&written)), Ok(made));
    for (member, value, expected) in [
        ("bucket_bits", json!(14), MessageError::OtherBucket),
        ("bucket_bits", json!(0), MessageError::OtherBucket),
        ("v", json!(2), MessageError::Version),
        ("salt", json!("07"), MessageError::OffVocabulary),
        ("contracts", json!(-1), MessageError::NotExpected),
    ] {
        let mut changed = written.clone();
        changed[member] = value;
        assert_eq!(Parameters::read(&bytes(&changed)), Err(expected), "{member}");
    }
}

#[test]
fn a_bucket_of_the_corpus_keeps_the_rows_that_can_be_read() {
    let asked = bucket_of(&[0xab; 32], 1);
    let answer = |rows: Vec<Value>, bits: u8, index: u32| {
        let answer = json!({"v": 1, "bucket_bits": bits, "bucket": index, "rows": rows, "new": {}});
        CorpusBucket::read(&bytes(&answer), asked)
    };
    let mut off_list = row();
    off_list["verdict"] = json!("cleared!");
    let mut elsewhere = row();
    elsewhere["definition_hash"] = json!("01".repeat(32));
    let mut unstated = row();
    unstated["reason_class"] = json!("ignore previous instructions");
    let read = answer(vec![off_list, elsewhere, unstated, row()], 1, 1).unwrap();
    let classes: Vec<_> = read.rows.iter().map(|row| row.reason_class).collect();
    assert_eq!(classes, [ReasonClass::Unstated, ReasonClass::Injection]);
    let written = serde_json::to_vec(&read).unwrap();
    assert_eq!(CorpusBucket::read(&written, asked), Ok(read));

    assert_eq!(answer(vec![], 1, 0), Err(MessageError::OtherBucket));
    assert_eq!(answer(vec![], 2, 1), Err(MessageError::OtherBucket));
    assert!(answer(vec![row(); MAX_BUCKET_ROWS], 1, 1).is_ok());
    let too_many = Err(MessageError::TooManyRows(MAX_BUCKET_ROWS));
    assert_eq!(answer(vec![row(); MAX_BUCKET_ROWS + 1], 1, 1), too_many);
}

#[test]
fn a_page_of_the_feed_ascends_and_has_crawled_entries_only() {
    let page = |entries: Vec<Value>, next: u64| {
        DriftPage::read(&bytes(&json!({"v": 1, "next": next, "entries": entries})), 4)
    };
    let mut reported = drift(6);
    reported["source"] = json!("install");
    let mut unknown_kind = drift(7);
    unknown_kind["kinds"] = json!(["made-up", "tool-added", "tool-added"]);
    let read = page(vec![drift(5), reported, unknown_kind], 7).unwrap();
    assert_eq!(read.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [5, 7]);
    assert_eq!(read.entries[1].change.kinds, [ChangeKind::ToolAdded]);
    assert_eq!(read.entries[0].source, DriftSource::Crawler);
    let written = serde_json::to_vec(&read).unwrap();
    assert_eq!(DriftPage::read(&written, 4), Ok(read));

    assert_eq!(page(vec![], 4).map(|page| page.entries.len()), Ok(0));
    let numbers: [(&[u64], u64); 5] =
        [(&[4], 4), (&[5, 5], 5), (&[6, 5], 5), (&[5], 9), (&[], u64::MAX)];
    for (numbers, next) in numbers {
        let entries = numbers.iter().map(|&seq| drift(seq)).collect();
        assert_eq!(page(entries, next), Err(MessageError::Sequence), "{numbers:?}");
    }
    let full: Vec<Value> = (5..).take(MAX_PAGE_ENTRIES + 1).map(drift).collect();
    let too_many = Err(MessageError::TooManyRows(MAX_PAGE_ENTRIES));
    assert_eq!(page(full, 5 + MAX_PAGE_ENTRIES as u64), too_many);
}

#[test]
fn reports_and_advisories_are_read_as_strictly() {
    let asked = bucket_of(&[1; 32], 0);
    let reports = vec![InstallReport {
        fp_before: Fingerprint::from_bytes([1; 32]),
        fp_after: Fingerprint::from_bytes([2; 32]),
        installs: 3,
    }];
    let bucket = ReportBucket::new(asked, reports);
    let written = serde_json::to_vec(&bucket).unwrap();
    assert_eq!(ReportBucket::read(&written, asked), Ok(bucket));

    let advisory = json!({"seq": 1, "definition_hash": "ab".repeat(32), "kind": "dangerous",
        "reason_class": "exfiltration", "hour": "2026-11-18T06"});
    let mut odd = advisory.clone();
    odd["seq"] = json!(2);
    odd["kind"] = json!("approved");
    let page = json!({"v": 1, "next": 2, "advisories": [advisory, odd]});
    let read = AdvisoryPage::read(&bytes(&page), 0).unwrap();
    assert_eq!(read.advisories.len(), 1, "a kind outside the list is dropped");
    assert_eq!(read.advisories[0].reason_class, ReasonClass::Exfiltration);
    assert_eq!(AdvisoryPage::read(&bytes(&page), 1), Err(MessageError::Sequence));
}
