use super::*;

fn full() -> WriteError {
    WriteError::Io(io::ErrorKind::StorageFull.into())
}

fn progress() -> Progress {
    Progress::new(PathBuf::from("receipts"))
}

fn is_settled(progress: &Progress, first: u64, last: u64) -> Option<bool> {
    progress.verdict(first, last).map(|verdict| verdict.is_ok())
}

#[test]
fn a_record_is_settled_when_it_is_done_and_not_among_the_failed() {
    let progress = progress();
    assert_eq!(is_settled(&progress, 0, 0), None);
    progress.note_failure(3, 5, &full());
    progress.note_written(9);
    assert!(progress.is_written(8) && !progress.is_written(9));
    assert_eq!(is_settled(&progress, 0, 0), None, "it is written, and not on disk");
    progress.note_done(9);
    for (first, last, expected) in [
        (0, 2, Some(true)),
        (2, 3, Some(false)),
        (3, 4, Some(false)),
        (0, 8, Some(false)),
        (4, 5, Some(false)),
        (5, 8, Some(true)),
        (8, 9, None),
    ] {
        assert_eq!(is_settled(&progress, first, last), expected, "{first} {last}");
    }
    assert!(progress.verdict(3, 3).unwrap().unwrap_err().is_disk_full());
    progress.fail("it ended");
    assert_eq!(is_settled(&progress, 5, 8), Some(true));
    assert_eq!(is_settled(&progress, 8, 9), Some(false));
    assert!(progress.fault().unwrap().to_string().ends_with("it ended"));
}

#[test]
fn failures_are_remembered_to_their_limit_and_what_is_forgotten_counts_as_failed() {
    let progress = progress();
    let failures = MAX_FAILURES as u64;
    // Every second record fails; those that follow each other are one.
    for number in 0..failures {
        progress.note_failure(4 * number, 4 * number + 1, &full());
        progress.note_failure(4 * number + 1, 4 * number + 2, &full());
    }
    progress.note_done(u64::MAX);
    let end = 4 * failures;
    assert_eq!(is_settled(&progress, 0, 1), Some(false));
    assert_eq!(is_settled(&progress, 2, 3), Some(true));
    progress.note_failure(end, end + 2, &full());
    assert_eq!(is_settled(&progress, 0, 1), Some(false));
    assert_eq!(is_settled(&progress, 2, 3), Some(true));
    // Two failures are forgotten with the next but one: who came before the end of the second may be among them.
    progress.note_failure(end + 4, end + 6, &full());
    assert_eq!(is_settled(&progress, 2, 3), Some(false));
    assert_eq!(is_settled(&progress, 6, 7), Some(true));
}
