use super::*;

fn server() -> ServerId {
    "reports".parse().unwrap()
}

fn pin(basis: Basis, at: i64, description: &str) -> Pin {
    let raw = format!(r#"{{"name":"a","description":"{description}", "inputSchema":{{"x":1.0}}}}"#);
    let entry = Entry::from_raw(EntryId::new(EntryType::Tool, "a"), &raw).unwrap();
    Pin { entry, basis, at: Timestamp(at), by: "ada".to_owned() }
}

fn kept(pins: Vec<Pin>) -> Kept {
    let mut book = PinBook::default();
    pins.into_iter().for_each(|pin| book.push(pin));
    Kept { book, revision: 7 }
}

fn document_of(kept: &Kept, now: i64) -> String {
    document(&kept.book, kept.revision, &server(), Timestamp(now))
}

#[test]
fn what_is_written_is_read_again_byte_for_byte() {
    let gone =
        Pin { entry: Entry::gone(EntryId::new(EntryType::Tool, "a")), ..pin(Basis::Person, 3, "") };
    let kept = kept(vec![pin(Basis::FirstUse, 1, "one"), pin(Basis::Auto, 2, "two"), gone]);
    let read = Kept::read(&document_of(&kept, 4), &server()).unwrap();
    assert_eq!((read.book, read.revision), (kept.book, 7));
}

#[test]
fn an_automatic_pin_is_kept_while_it_counts_or_is_the_newest() {
    let check = |now: i64, expected: usize| {
        let kept = kept(vec![
            pin(Basis::FirstUse, 0, "one"),
            pin(Basis::Auto, 1_000, "two"),
            pin(Basis::Auto, 2_000, "three"),
        ]);
        let read = Kept::read(&document_of(&kept, now), &server()).unwrap();
        let pins: usize = read.book.iter().map(|(_, pins)| pins.iter().count()).sum();
        assert_eq!(pins, expected, "{now}");
    };
    check(1_000 + AUTO_PIN_MILLISECONDS - 1, 3);
    check(1_000 + AUTO_PIN_MILLISECONDS, 2);
    check(i64::MAX, 2);
}

#[test]
fn automatic_pins_are_counted_for_a_day() {
    let kept = kept(vec![pin(Basis::FirstUse, 0, "one"), pin(Basis::Auto, 1_000, "two")]);
    assert_eq!(kept.auto_pins_today(Timestamp(1_000 + AUTO_PIN_MILLISECONDS - 1)), 1);
    assert_eq!(kept.auto_pins_today(Timestamp(1_000 + AUTO_PIN_MILLISECONDS)), 0);
}

#[test]
fn a_document_that_is_not_ours_is_refused_in_words() {
    let ours = document_of(&kept(vec![pin(Basis::FirstUse, 1, "one")]), 2);
    let check = |text: &str, words: &str| {
        let error = Kept::read(text, &server()).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    };
    check("", "not a document");
    check("{}", "not a document");
    check(r#"{"holdpoint":"pins"}"#, "not a document");
    check(ours.get(..ours.len() / 2).unwrap(), "not a document");
    check(&ours.replace("\"version\":1", "\"version\":2"), "another version");
    check(&ours.replace("\"server\":\"reports\"", "\"server\":\"mail\""), "`mail`");
    check(&ours.replace("first-use", "guess"), "the pin of the tool `a`");
    check(&ours.replace("\"type\":\"tool\"", "\"type\":\"tune\""), "the pin of the tune `a`");
    check(&ours.replace("\"by\"", "\"bye\""), "not a document");
}
