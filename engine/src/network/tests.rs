use super::*;
use contract::surface::EntryId;
use gate::network::{Bucket, CorpusBucket, Parameters, ReasonClass, Salt, bucket_of};
use gate::tiers::CorpusAnswer;

const URL: &str = "https://d.example";

fn row(first: u8, verdict: CorpusVerdict) -> CorpusRow {
    let definition_hash = definition(first);
    CorpusRow { definition_hash, verdict, reason_class: ReasonClass::Unstated }
}

fn definition(first: u8) -> DefinitionHash {
    let mut bytes = [1; 32];
    bytes[0] = first;
    DefinitionHash::from_bytes(bytes)
}

fn folder() -> (tempfile::TempDir, NetworkFolder) {
    let home = tempfile::tempdir().unwrap();
    let folder = NetworkFolder::of(home.path());
    (home, folder)
}

fn cache(
    folder: &NetworkFolder,
    contracts: u64,
    rows: &[CorpusRow],
    at: Timestamp,
) -> VerdictCache {
    let mut cache = VerdictCache::default();
    cache.take_parameters(folder, URL, Parameters::new(contracts, Salt::from_bytes([2; 32])), at);
    let bits = cache.bits().unwrap();
    for index in 0..1_u32 << bits {
        let bucket = Bucket::new(bits, index).unwrap();
        let own = rows.iter().filter(|row| bucket.contains(row.definition_hash.as_bytes()));
        let answer = CorpusBucket::new(bucket, own.copied().collect());
        cache.take_bucket(folder, URL, bucket, &answer, at);
    }
    cache
}

#[test]
fn verdicts_count_for_an_hour_and_a_warning_until_it_is_asked_for_again() {
    let (_home, folder) = folder();
    let rows = vec![row(3, CorpusVerdict::Dangerous), row(4, CorpusVerdict::Cleared)];
    let at = Timestamp(1_000_000);
    let cache = cache(&folder, 10, &rows, at);
    let answer = |first: u8, age: i64| {
        let known = cache.answer(definition(first), Timestamp(at.0 + age));
        (known.answer, known.is_fresh)
    };
    for age in [0, CACHED_FOR - 1] {
        assert_eq!(answer(3, age), (Some(CorpusAnswer::Dangerous), true));
        assert_eq!(answer(4, age), (Some(CorpusAnswer::Cleared), true));
        assert_eq!(answer(5, age), (Some(CorpusAnswer::Unknown), true));
    }
    // Setting the clock back does not make an answer recent.
    for age in [CACHED_FOR, -1] {
        assert_eq!(answer(3, age), (Some(CorpusAnswer::Dangerous), false));
        assert_eq!(answer(4, age), (None, false));
        assert_eq!(answer(5, age), (None, false));
    }
}

/// The directory claims to know many more contracts, and is then prevented from responding.
#[test]
fn a_warning_outlives_another_width_of_buckets_until_the_new_bucket_comes() {
    let (_home, folder) = folder();
    let at = Timestamp(1_000_000);
    let rows = [row(3, CorpusVerdict::Dangerous), row(4, CorpusVerdict::Cleared)];
    let mut cache = cache(&folder, 10, &rows, at);
    let wider = Parameters::new(1_024 << 6, Salt::from_bytes([2; 32]));
    cache.take_parameters(&folder, URL, wider, at);
    let answer = |cache: &VerdictCache, first: u8| {
        let known = cache.answer(definition(first), at);
        (known.answer, known.is_fresh)
    };
    assert_eq!(answer(&cache, 3), (Some(CorpusAnswer::Dangerous), false));
    assert_eq!(cache.row(definition(3)), Some(rows[0]));
    assert_eq!(answer(&cache, 4), (None, false), "only a warning");
    let bucket = bucket_of(definition(3).as_bytes(), 6);
    let empty = CorpusBucket::new(bucket, Vec::new());
    cache.take_bucket(&folder, URL, bucket, &empty, at);
    assert_eq!(answer(&cache, 3), (Some(CorpusAnswer::Unknown), true));
}

#[test]
fn two_rows_about_one_definition_raise() {
    let (_home, folder) = folder();
    for rows in [
        vec![row(3, CorpusVerdict::Dangerous), row(3, CorpusVerdict::Cleared)],
        vec![row(3, CorpusVerdict::Cleared), row(3, CorpusVerdict::Dangerous)],
    ] {
        let cache = cache(&folder, 10, &rows, Timestamp(0));
        let known = cache.answer(definition(3), Timestamp(0));
        assert_eq!(known.answer, Some(CorpusAnswer::Dangerous));
    }
}

#[test]
fn what_was_kept_is_read_again_for_the_same_directory_only() {
    let (_home, folder) = folder();
    let at = Timestamp(5);
    cache(&folder, 5_000, &[row(0x83, CorpusVerdict::Dangerous)], at);
    let read = VerdictCache::read(&folder, URL);
    assert_eq!(read.bits(), Some(2));
    assert_eq!(read.answer(definition(0x83), at).answer, Some(CorpusAnswer::Dangerous));
    assert_eq!(read.row(definition(0x83)), Some(row(0x83, CorpusVerdict::Dangerous)));
    assert_eq!(read.answer(definition(0x84), at).answer, Some(CorpusAnswer::Unknown));
    let other = VerdictCache::read(&folder, "https://other.example");
    assert_eq!(other.answer(definition(0x83), at).answer, None);
    for name in folder.names() {
        folder.write(&name, b"{not json").unwrap();
    }
    assert_eq!(VerdictCache::read(&folder, URL).answer(definition(0x83), at).answer, None);
}

#[test]
fn only_so_many_buckets_are_kept() {
    let (_home, folder) = folder();
    let mut cache = VerdictCache::default();
    let many = 1_024 << 6;
    cache.take_parameters(
        &folder,
        URL,
        Parameters::new(many, Salt::from_bytes([2; 32])),
        Timestamp(0),
    );
    for index in 0..64 {
        let bucket = Bucket::new(6, index).unwrap();
        let answer = CorpusBucket::new(bucket, Vec::new());
        cache.take_bucket(&folder, URL, bucket, &answer, Timestamp(i64::from(index)));
    }
    let kept = folder.names().iter().filter(|name| name.starts_with("corpus-")).count();
    assert_eq!(kept, 16);
    let newest = definition(0xff);
    assert_eq!(bucket_of(newest.as_bytes(), 6).index(), 63);
    assert!(cache.answer(newest, Timestamp(63)).is_fresh);
    assert!(!cache.answer(definition(0), Timestamp(63)).is_fresh);
}

#[test]
fn a_request_says_its_path_and_body_and_nothing_else() {
    let bucket = Bucket::new(3, 5).unwrap();
    let row = row(3, CorpusVerdict::Dangerous);
    for (request, path, has_body) in [
        (NetworkRequest::Parameters, "/api/v1/network/parameters", false),
        (NetworkRequest::Corpus(bucket), "/api/v1/network/corpus/3/5", false),
        (NetworkRequest::Contribute(row), "/api/v1/network/corpus", true),
        (NetworkRequest::Drift { after: 7 }, "/api/v1/network/drift?after=7", false),
        (NetworkRequest::Reports(bucket), "/api/v1/network/reports/3/5", false),
        (NetworkRequest::Advisories { after: 0 }, "/api/v1/network/advisories?after=0", false),
    ] {
        assert_eq!(request.path(), path);
        assert_eq!(request.body().is_some(), has_body);
        assert_eq!(request.is_contribution(), has_body);
    }
    let body = NetworkRequest::Contribute(row).body().unwrap();
    assert_eq!(CorpusRow::read_contribution(&body), Ok(row));
}

#[test]
fn the_record_of_what_was_sent_is_bounded() {
    let (_home, folder) = folder();
    let log = SentLog::of(&folder);
    let line = vec![b'x'; 100_000];
    for number in 0..40 {
        log.note(Timestamp(number), "d.example:443", &line).unwrap();
    }
    let size: u64 = folder
        .names()
        .iter()
        .filter(|name| name.starts_with("sent"))
        .map(|name| std::fs::metadata(folder.path().join(name)).unwrap().len())
        .sum();
    assert!(size <= 2 * MAX_SENT_BYTES + 2 * 101_000, "{size}");
    let kept = log.read();
    assert_eq!(kept.last().unwrap().at, Timestamp(39).to_string(), "the newest are kept");
    assert!(kept.len() < 40);
    folder.turn_off().unwrap();
    assert!(log.note(Timestamp(40), "d.example:443", b"GET").is_err(), "off counts at once");
    folder.turn_on().unwrap();
    assert!(log.note(Timestamp(41), "d.example:443", b"GET").is_ok());
}

#[test]
fn only_changes_of_public_contracts_are_reported() {
    let entry = |entry_type: EntryType, text: &str| {
        let id = match entry_type {
            EntryType::Tool => EntryId::new(entry_type, "t"),
            _ => EntryId::only(entry_type),
        };
        let raw = match entry_type {
            EntryType::Tool => {
                format!(r#"{{"name":"t","description":"{text}","inputSchema":{{}}}}"#)
            }
            _ => format!(r#""{text}""#),
        };
        Entry::from_raw(id, &raw).ok()
    };
    let change = |entry_type: EntryType| {
        let (before, after) = (entry(entry_type, "a"), entry(entry_type, "b"));
        let finding = contract::change::Finding::new(
            contract::change::ChangeKind::DescriptionOnly,
            "",
            None,
            None,
        );
        let judgement = Judgement {
            id: EntryId::only(entry_type),
            verdict: gate::verdict::Verdict::Hold,
            reason: None,
            is_deferred: false,
            is_by_the_call: false,
            is_accepted: false,
            before,
            after,
            findings: vec![finding],
            not_inert: None,
            renamed_to: None,
            detail: None,
            climbed: None,
            advisory: None,
        };
        MetChange::of(&judgement, Timestamp(0)).is_some()
    };
    assert!(change(EntryType::Tool) && change(EntryType::Instructions));
    assert!(!change(EntryType::Identity) && !change(EntryType::Origin));
}
