use super::*;

/// A lexicon of one rule, matched against a text.
fn matches(phrase: &str, text: &str) -> bool {
    let source =
        format!("[sets]\n[[rule]]\nclass = \"role-tag\"\nid = \"a.b\"\nphrases = [\"{phrase}\"]\n");
    let lexicon: &'static Lexicon = Box::leak(Box::new(Lexicon::parse(&source).unwrap()));
    let mut matcher = Matcher::new(lexicon);
    matcher.begin(Place::Anywhere);
    !matcher.find(text.as_bytes()).is_empty()
}

#[test]
fn a_gap_allows_so_many_words_and_no_more() {
    assert!(matches("a ~2 b", "a b") && matches("a ~2 b", "a x b") && matches("a ~2 b", "a x y b"));
    assert!(!matches("a ~2 b", "a x y z b"));
    assert!(matches("a b", "a, b") && !matches("a b", "a x b") && !matches("a b", "b a"));
}

#[test]
fn the_latest_beginning_counts_and_one_word_fills_one_place() {
    assert!(matches("a ~1 b ~1 c", "a x a b x c"));
    assert!(matches("a ~1 b ~1 c", "a b b b c") && !matches("a ~1 b ~1 c", "a x x b c"));
    assert!(!matches("a a", "a") && matches("a a", "a a") && matches("a,b b,c", "b b"));
}

#[test]
fn words_are_compared_whole_without_case_apostrophes_and_look_alike_digits() {
    assert!(matches("dont tell", "Don't TELL") && matches("dont tell", "d0n't te1l"));
    assert!(
        !matches("tool", "toolbox") && !matches("tool", "stool") && matches("tool", "a_tool-x")
    );
}

#[test]
fn camel_case_is_split_unless_the_whole_is_known() {
    assert!(
        matches("ignore previous", "ignorePrevious")
            && matches("ignore previous", "iGnOrE PREVious")
    );
    assert!(!matches("ignore previous", "ignoreprevious"));
}

#[test]
fn punctuation_that_a_word_asks_for_has_to_be_there() {
    assert!(matches(".env", "cat .env") && matches(".env", "a/.env") && matches(".env", ".env"));
    assert!(
        !matches(".env", "process.env") && !matches(".env", "env") && !matches(".env", "f().env")
    );
    assert!(matches("<system>", "<System>") && matches("<system>", "<system a=1>"));
    assert!(
        !matches("<system>", "system>")
            && !matches("<system>", "<system-id>")
            && !matches("<system>", "<system")
    );
}

#[test]
fn nothing_is_carried_over_from_one_text_to_the_next() {
    let mut matcher = Matcher::new(Lexicon::built_in());
    matcher.begin(Place::Anywhere);
    assert!(matcher.find(b"ignore all previous").is_empty());
    assert!(matcher.find(b"instructions").is_empty());
    assert_eq!(matcher.find(b"ignore all previous instructions").len(), 1);
    assert!(
        matcher.find(b"ignore all previous instructions").is_empty(),
        "reported once in a string"
    );
    matcher.begin(Place::Anywhere);
    assert_eq!(matcher.find(b"ignore all previous instructions").len(), 1);
}

#[test]
fn a_word_count_that_runs_long_begins_anew() {
    let mut matcher = Matcher::new(Lexicon::built_in());
    matcher.word = u32::MAX / 2 + 1;
    matcher.begin(Place::Anywhere);
    assert_eq!(matcher.find(b"ignore all previous instructions").len(), 1);
    assert_eq!(matcher.word, 4);
}
