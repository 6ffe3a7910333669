use super::*;
use crate::database::{Contributed, QuotaMessage};
use crate::feed::{advisory_page, drift_page, parameters};
use crate::writer::{Folders, LogWriter};
use gate::network::{
    AdvisoryKind, Bucket, CorpusRow, DriftReport, Fingerprint, Hour, MAX_BUCKET_ROWS,
    MAX_CONTRIBUTIONS_A_DAY, Salt, bucket_of,
};

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const DAY_MS: i64 = 86_400_000;

struct Place {
    _folder: tempfile::TempDir,
    folders: Folders,
    database: Database,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders { data: folder.path().join("data"), keys: folder.path().join("keys") };
    std::fs::create_dir_all(&folders.data).unwrap();
    let database = Database::open(&folders.database()).unwrap();
    Place { _folder: folder, folders, database }
}

fn hash(byte: u8) -> DefinitionHash {
    DefinitionHash::from_bytes([byte; 32])
}

fn all() -> Bucket {
    Bucket::new(0, 0).unwrap()
}

impl Place {
    fn say(&mut self, owner: &str, definition: DefinitionHash, verdict: CorpusVerdict) {
        let reason_class = ReasonClass::Injection;
        let row = CorpusRow { definition_hash: definition, verdict, reason_class };
        let kept = self.database.write::<_, DatabaseError>(|it| it.contribute(owner, &row, NOW));
        assert_eq!(kept.unwrap(), Contributed::Kept);
    }

    fn served(&self) -> Vec<(DefinitionHash, &'static str)> {
        let rows = self.database.corpus_bucket(all(), MAX_BUCKET_ROWS).unwrap();
        rows.iter().map(|row| (row.definition_hash, row.verdict.as_str())).collect()
    }

    fn judge(&mut self, definition: DefinitionHash, verdict: CorpusVerdict) -> Decided {
        adjudicate(&mut self.database, definition, verdict, ReasonClass::Injection, None, NOW)
            .unwrap()
    }

    /// The advisories that members see once the writer has published what waits.
    fn advisories(&self) -> Vec<(DefinitionHash, AdvisoryKind)> {
        let mut writer = LogWriter::open(&self.folders, "https://d.example", None, NOW).unwrap();
        writer.say_waiting(NOW).unwrap();
        assert_eq!(writer.say_waiting(NOW).unwrap(), 0, "said once");
        writer.publish().unwrap();
        let page = advisory_page(writer.model(), 0);
        page.advisories.iter().map(|one| (one.definition_hash, one.kind)).collect()
    }
}

#[test]
fn three_owners_make_a_danger_served_and_one_owner_three_times_does_not() {
    let mut place = place();
    for owner in ["a", "a", "a", "b"] {
        place.say(owner, hash(1), CorpusVerdict::Dangerous);
    }
    assert!(place.served().is_empty());
    place.say("c", hash(1), CorpusVerdict::Dangerous);
    assert_eq!(place.served(), [(hash(1), "dangerous")]);
    place.say("d", hash(1), CorpusVerdict::Cleared);
    assert!(place.served().is_empty(), "a conflict is never served");
    // The latest contribution of an owner counts.
    place.say("d", hash(1), CorpusVerdict::Dangerous);
    assert_eq!(place.served(), [(hash(1), "dangerous")]);
    assert!(
        place.advisories().is_empty(),
        "a definition that owners alone spoke of stays out of the public log"
    );
}

#[test]
fn cleared_needs_the_operator_and_a_later_warning_takes_it_back() {
    let mut place = place();
    for owner in ["a", "b", "c", "d"] {
        place.say(owner, hash(1), CorpusVerdict::Cleared);
    }
    assert!(place.served().is_empty());
    let decided = place.judge(hash(1), CorpusVerdict::Cleared);
    assert!(decided.advisories.is_empty());
    assert_eq!(place.served(), [(hash(1), "cleared")]);
    place.say("e", hash(1), CorpusVerdict::Dangerous);
    assert!(place.served().is_empty());
    place.judge(hash(1), CorpusVerdict::Cleared);
    place.say("e", hash(1), CorpusVerdict::Dangerous);
    assert_eq!(place.served(), [(hash(1), "cleared")], "the operator knew of it");
}

#[test]
fn the_operators_findings_and_withdrawals_are_advisories_of_the_log() {
    let mut place = place();
    assert_eq!(place.judge(hash(1), CorpusVerdict::Dangerous).advisories.len(), 1);
    assert!(place.judge(hash(1), CorpusVerdict::Dangerous).advisories.is_empty(), "said once");
    place.say("a", hash(1), CorpusVerdict::Cleared);
    assert_eq!(place.served(), [(hash(1), "dangerous")], "no owner silences the operator");
    place.judge(hash(2), CorpusVerdict::Dangerous);
    place.judge(hash(2), CorpusVerdict::Cleared);
    let decided = invalidate(&mut place.database, &[hash(1), hash(9)], None, NOW).unwrap();
    assert_eq!(decided.advisories.len(), 1);
    let again = invalidate(&mut place.database, &[hash(1)], None, NOW).unwrap();
    assert!(again.advisories.is_empty(), "it was withdrawn already");
    for owner in ["b", "c", "d"] {
        place.say(owner, hash(1), CorpusVerdict::Dangerous);
    }
    assert_eq!(place.served(), [(hash(2), "cleared")], "what was withdrawn stays withdrawn");
    let expected = [
        (hash(1), AdvisoryKind::Dangerous),
        (hash(2), AdvisoryKind::Dangerous),
        (hash(2), AdvisoryKind::Withdrawn),
        // No verdict was ever served on the other definition, so it is not named publicly.
        (hash(1), AdvisoryKind::Withdrawn),
    ];
    assert_eq!(place.advisories(), expected);
    let entries = place.database.corpus_entries(Some("invalidated"), 10).unwrap();
    assert_eq!(entries.iter().map(|it| it.definition).collect::<Vec<_>>(), [hash(1), hash(9)]);
}

#[test]
fn an_owner_can_be_removed_with_everything_that_rested_on_it() {
    let mut place = place();
    for owner in ["a", "b", "bad"] {
        place.say(owner, hash(1), CorpusVerdict::Dangerous);
        place.say(owner, hash(2), CorpusVerdict::Dangerous);
    }
    place.say("c", hash(2), CorpusVerdict::Dangerous);
    place.say("bad", hash(3), CorpusVerdict::Cleared);
    let decided = invalidate_owner(&mut place.database, "bad", Some("a stolen key"), NOW).unwrap();
    assert_eq!((decided.settled.len(), decided.advisories.len()), (3, 1));
    assert_eq!(place.served(), [(hash(2), "dangerous")]);
    assert_eq!(place.advisories(), [(hash(1), AdvisoryKind::Withdrawn)]);
}

#[test]
fn a_bucket_has_the_rows_of_its_bits_and_no_others() {
    let mut place = place();
    for byte in [0x00, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff] {
        place.judge(hash(byte), CorpusVerdict::Dangerous);
    }
    for bits in 0..=3 {
        let mut found = 0;
        for index in 0..1_u32 << bits {
            let bucket = Bucket::new(bits, index).unwrap();
            let rows = place.database.corpus_bucket(bucket, MAX_BUCKET_ROWS).unwrap();
            assert!(rows.iter().all(|row| bucket.contains(row.definition_hash.as_bytes())));
            found += rows.len();
        }
        assert_eq!(found, 8, "{bits}");
    }
    let one = bucket_of(hash(0xff).as_bytes(), 14);
    assert_eq!(place.database.corpus_bucket(one, 10).unwrap().len(), 1);
}

#[test]
fn a_bucket_that_is_too_full_keeps_what_the_operator_decided() {
    let mut place = place();
    for byte in 1..=3 {
        for owner in ["a", "b", "c"] {
            place.say(owner, hash(byte), CorpusVerdict::Dangerous);
        }
    }
    place.judge(hash(9), CorpusVerdict::Dangerous);
    let rows = place.database.corpus_bucket(all(), 2).unwrap();
    let kept: Vec<_> = rows.iter().map(|row| row.definition_hash).collect();
    assert_eq!(kept, [hash(9), hash(1)]);
}

#[test]
fn a_key_has_a_quota_for_each_utc_day() {
    let mut place = place();
    let mut count = |key: &str, message, now| {
        let counted = place
            .database
            .write::<_, DatabaseError>(|writing| writing.count_message(key, "acme", message, now));
        counted.unwrap()
    };
    let start = Timestamp(NOW.0.div_euclid(DAY_MS) * DAY_MS);
    for number in 0..MAX_CONTRIBUTIONS_A_DAY {
        let message = match number % 2 {
            0 => QuotaMessage::Contribution,
            _ => QuotaMessage::Report,
        };
        let at = Timestamp(start.0 + i64::from(number) * 60_000);
        assert_eq!(count("k", message, at), Contributed::Kept);
    }
    let end = Timestamp(start.0 + DAY_MS - 1);
    assert_eq!(count("k", QuotaMessage::Contribution, end), Contributed::Spent);
    assert_eq!(count("other", QuotaMessage::Contribution, end), Contributed::Kept);
    let tomorrow = Timestamp(start.0 + DAY_MS);
    assert_eq!(count("k", QuotaMessage::Contribution, tomorrow), Contributed::Kept);
    let hours = place.database.activity_since(start).unwrap();
    let refused: u64 = hours.iter().filter(|hour| hour.key == "k").map(|hour| hour.refused).sum();
    assert_eq!(refused, 1);
    let much_later = Timestamp(start.0 + 40 * DAY_MS);
    place.database.write::<_, DatabaseError>(|it| it.forget_activity(much_later)).unwrap();
    assert!(place.database.activity_since(Timestamp(0)).unwrap().is_empty());
}

#[test]
fn reports_are_counted_by_owners_and_forgotten_after_ninety_days() {
    let mut place = place();
    let report = |before: u8| DriftReport {
        fp_before: Fingerprint::from_bytes([before; 32]),
        fp_after: Fingerprint::from_bytes([2; 32]),
        kinds: Vec::new(),
        safety: true,
        hour: Hour::of(NOW),
    };
    for (owner, before) in [("a", 1), ("a", 1), ("b", 1), ("c", 0x81)] {
        let kept = place
            .database
            .write::<_, DatabaseError>(|it| it.keep_report(owner, &report(before), NOW));
        assert_eq!(kept.unwrap(), Contributed::Kept);
    }
    let reports = place.database.report_bucket(Bucket::new(1, 0).unwrap(), 10).unwrap();
    assert_eq!(reports.iter().map(|it| it.installs).collect::<Vec<_>>(), [2]);
    assert_eq!(place.database.report_bucket(all(), 10).unwrap().len(), 2);
    let later = Timestamp(NOW.0 + 91 * DAY_MS);
    place.database.write::<_, DatabaseError>(|it| it.forget_reports(later)).unwrap();
    assert!(place.database.report_bucket(all(), 10).unwrap().is_empty());
}

#[test]
fn pages_after_the_end_are_empty_and_stay_where_they_are() {
    let place = place();
    let writer = LogWriter::open(&place.folders, "https://d.example", None, NOW).unwrap();
    let salt = Salt::from_bytes([1; 32]);
    assert_eq!(drift_page(writer.model(), &salt, 7).next, 7);
    assert_eq!(advisory_page(writer.model(), u64::MAX).next, u64::MAX);
    assert_eq!(parameters(writer.model(), 5_000, salt).bucket_bits, 2);
}
