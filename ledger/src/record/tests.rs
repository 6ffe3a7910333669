use super::*;

fn written(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap()
}

#[test]
fn texts_are_cut_one_past_the_limit_and_not_at_it() {
    let full = "a".repeat(MAX_TEXT_BYTES);
    assert_eq!(written(Text(&full)), format!("\"{full}\""));
    let long = format!("{full}b");
    let cut = written(Text(&long));
    assert!(cut.ends_with("a…\""), "{cut}");
    assert_eq!(cut.len(), MAX_TEXT_BYTES + 2);
    // A character that the cut would split is removed entirely.
    let wide = "é".repeat(MAX_TEXT_BYTES);
    assert!(written(Text(&wide)).len() <= MAX_TEXT_BYTES + 2);
}

#[test]
fn lists_of_words_are_cut_one_past_the_limit_and_not_at_it() {
    let words = vec!["x"; MAX_WORDS + 1];
    let count = |words: &[&str]| written(Words(words)).matches("\"x\"").count();
    assert_eq!(count(&words[..MAX_WORDS]), MAX_WORDS);
    assert!(!written(Words(&words[..MAX_WORDS])).contains('…'));
    assert_eq!(count(&words), MAX_WORDS);
    assert!(written(Words(&words)).ends_with("\"…\"]"));
}

#[test]
fn receipt_ids_read_back_as_they_print() {
    let id = ReceiptId([0xab; 16]);
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!(written(id), format!("\"{id}\""));
    assert_eq!("ab".parse::<ReceiptId>(), Err(BadReceiptId));
    assert_eq!("g".repeat(32).parse::<ReceiptId>(), Err(BadReceiptId));
}
