use super::*;
use crate::ServerText;

fn listing() -> Listing {
    Listing::new(ListKind::Tools)
}

fn page(text: &str) -> Answer {
    Answer::Result(text.into())
}

fn is_unreadable(step: &Step) -> bool {
    matches!(step, Step::Done(ListOutcome::Unreadable(_)))
}

#[test]
fn pages_are_followed_to_the_end() {
    let mut listing = listing();
    let first = r#"{"tools":[],"nextCursor":"a"}"#;
    assert_eq!(listing.hear(page(first)), Step::Ask("a".to_owned()));
    assert_eq!(listing.page(), 2);
    let last = r#"{"tools":[]}"#;
    let pages = vec![first.into(), last.into()];
    assert_eq!(listing.hear(page(last)), Step::Done(ListOutcome::Pages(Arc::new(pages))));
    assert_eq!(listing.into_note(), None);
}

#[test]
fn a_cursor_that_comes_again_or_is_no_string_makes_the_list_unreadable() {
    let mut listing = listing();
    let text = r#"{"tools":[],"nextCursor":"a"}"#;
    assert_eq!(listing.hear(page(text)), Step::Ask("a".to_owned()));
    assert!(is_unreadable(&listing.hear(page(text))));
    assert!(is_unreadable(&super::tests::listing().hear(page(r#"{"nextCursor":7}"#))));
}

#[test]
fn an_empty_cursor_is_the_end_with_a_note() {
    let mut listing = listing();
    let step = listing.hear(page(r#"{"tools":[],"nextCursor":""}"#));
    assert!(matches!(step, Step::Done(ListOutcome::Pages(_))));
    assert!(listing.into_note().unwrap().contains("empty `nextCursor`"));
}

#[test]
fn pages_are_counted_at_the_limit_and_one_past_it() {
    let text = |number| format!(r#"{{"tools":[],"nextCursor":"{number}"}}"#);
    let mut listing = listing();
    for number in 1..MAX_LIST_PAGES {
        assert!(matches!(listing.hear(page(&text(number))), Step::Ask(_)), "{number}");
    }
    let mut full = super::tests::listing();
    full.pages = listing.pages.clone();
    assert!(matches!(full.hear(page("{}")), Step::Done(ListOutcome::Pages(_))));
    assert!(is_unreadable(&listing.hear(page(&text(MAX_LIST_PAGES)))));
}

#[test]
fn a_page_that_reads_two_ways_makes_the_list_unreadable() {
    let step = listing().hear(page(r#"{"tools":[{"name":"a","name":"b"}]}"#));
    let Step::Done(ListOutcome::Unreadable(reason)) = step else { panic!("{step:?}") };
    assert!(reason.contains("`name` appears twice"), "{reason}");
}

#[test]
fn a_refusal_closes_tools_and_leaves_resources_out() {
    let error = |code, message: &str| Answer::Error { code, message: ServerText::line(message) };
    let reason = "answered with error -32603: `no`".to_owned();
    let refused = listing().hear(error(-32603, "no"));
    assert_eq!(refused, Step::Done(ListOutcome::Unreadable(reason)));
    let unworded = listing().hear(error(-32603, ""));
    let reason = "answered with error -32603".to_owned();
    assert_eq!(unworded, Step::Done(ListOutcome::Unreadable(reason)));
    let unknown = listing().hear(error(METHOD_NOT_FOUND, "no"));
    assert_eq!(unknown, Step::Done(ListOutcome::NotOffered));
    let mut resources = Listing::new(ListKind::Resources);
    assert_eq!(resources.hear(error(-32603, "no")), Step::Done(ListOutcome::NotOffered));
    assert!(resources.into_note().unwrap().contains("left out"));
}

#[test]
fn a_server_may_shorten_the_age_but_not_below_the_floor() {
    let ttl = |text: &str| ListOutcome::Pages(Arc::new(vec![text.into()])).ttl();
    assert_eq!(ttl(r#"{"tools":[],"ttlMs":5000}"#), Some(Duration::from_secs(5)));
    assert_eq!(ttl(r#"{"tools":[],"ttlMs":1}"#), Some(MIN_TTL));
    assert_eq!(ttl(r#"{"tools":[],"\u0074tlMs":5000}"#), Some(Duration::from_secs(5)));
    assert_eq!(ttl(r#"{"tools":[{"name":"ttlMs"}]}"#), None);
    assert_eq!(ttl(r#"{"tools":[]}"#), None);
}
