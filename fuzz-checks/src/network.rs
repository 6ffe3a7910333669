//! Messages of the network may be any bytes. A parsed message is written back as the same message,
//! consisting only of closed words.

use gate::network::{
    AdvisoryPage, Bucket, CorpusBucket, CorpusRow, DriftPage, DriftReport, Parameters, ReportBucket,
};

pub fn run(bytes: &[u8]) {
    if let Ok(row) = CorpusRow::read_contribution(bytes) {
        assert_eq!(CorpusRow::read_contribution(&written(&row)), Ok(row));
    }
    if let Ok(report) = DriftReport::read_report(bytes) {
        assert_eq!(DriftReport::read_report(&written(&report)), Ok(report));
    }
    if let Ok(parameters) = Parameters::read(bytes) {
        assert!(Bucket::new(parameters.bucket_bits, 0).is_some());
        assert_eq!(Parameters::read(&written(&parameters)), Ok(parameters));
    }
    for asked in [Bucket::new(0, 0), Bucket::new(3, 5)].into_iter().flatten() {
        if let Ok(bucket) = CorpusBucket::read(bytes, asked) {
            assert!(bucket.rows.iter().all(|row| asked.contains(row.definition_hash.as_bytes())));
            assert_eq!(CorpusBucket::read(&written(&bucket), asked), Ok(bucket));
        }
        if let Ok(bucket) = ReportBucket::read(bytes, asked) {
            assert!(bucket.reports.iter().all(|one| asked.contains(one.fp_before.as_bytes())));
            assert_eq!(ReportBucket::read(&written(&bucket), asked), Ok(bucket));
        }
    }
    if let Ok(page) = DriftPage::read(bytes, 4) {
        assert!(page.next >= 4 && page.entries.iter().all(|entry| entry.seq <= page.next));
    }
    if let Ok(page) = AdvisoryPage::read(bytes, 4) {
        assert!(page.next >= 4 && page.advisories.iter().all(|one| one.seq <= page.next));
    }
}

fn written(message: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("a message is JSON")
}
