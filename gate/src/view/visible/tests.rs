use super::*;
use crate::view::lists::{consists_of, shown_array};
use crate::view::{View, answer_list};
use contract::surface::{EntryId, EntryType, ListKind};

const NAMES: [&str; 5] = ["add", "ask", "cut", "dig", "end"];

fn entries() -> Vec<(EntryId, String)> {
    let entry =
        |name: &str| (EntryId::new(EntryType::Tool, name), format!(r#"{{"name":"{name}"}}"#));
    NAMES.map(entry).to_vec()
}

fn borrowed(entries: &[(EntryId, String)]) -> Vec<(&EntryId, &str)> {
    entries.iter().map(|(id, raw)| (id, raw.as_str())).collect()
}

fn as_sent(page: &str, entries: &[(EntryId, String)]) -> ListView {
    let pages: Arc<Vec<Arc<str>>> = Arc::new(vec![page.into()]);
    let array = shown_array(ListKind::Tools, pages[0].as_bytes(), &[], true).unwrap();
    ListView::as_sent(ListKind::Tools, &pages, array, &borrowed(entries))
}

fn sent() -> ListView {
    let page = r#"{"ttlMs":5,"tools":[{"name":"add"}, {"name":"ask"},{"name":"cut"},{"name":"dig"},{"name":"end"}],"x":1}"#;
    as_sent(page, &entries())
}

/// Three pages with two, two and one entries.
fn paged() -> ListView {
    let pages: Vec<Arc<str>> = (0..3).map(|_| r#"{"tools":[]}"#.into()).collect();
    ListView::of(ListKind::Tools, &pages, &borrowed(&entries()), false)
}

fn among(names: &[&str]) -> impl Fn(&str) -> bool {
    |key| names.contains(&key)
}

fn is_kept(visible: &Visible) -> bool {
    matches!(visible.filter, Filter::Pages(_))
}

/// Checks a page built for the response and a cached one.
#[track_caller]
fn check(view: &ListView, names: &[&str], number: usize, expected: Option<(&str, bool)>) {
    *view.filtered.0.lock().unwrap() = Kept::default();
    let visible = [0, MAX_KEPT_BYTES].map(|max| view.visible_within(max, among(names)));
    assert_eq!(visible.each_ref().map(is_kept), [false, true]);
    for visible in &visible {
        let page = view.filtered(visible, number);
        let page = page.as_ref().map(|page| (str::from_utf8(&page.result).unwrap(), page.has_next));
        assert_eq!(page, expected, "{names:?}, page {number}");
    }
}

#[test]
fn a_caller_is_shown_what_it_may_see_and_nothing_else() {
    for (names, expected) in [
        (vec!["ask"], r#"{"ttlMs":5,"tools":[{"name":"ask"}],"x":1}"#),
        (vec![], r#"{"ttlMs":5,"tools":[],"x":1}"#),
        (
            vec!["add", "ask", "end"],
            r#"{"ttlMs":5,"tools":[{"name":"add"}, {"name":"ask"},{"name":"end"}],"x":1}"#,
        ),
        (vec!["unknown", "dig"], r#"{"ttlMs":5,"tools":[{"name":"dig"}],"x":1}"#),
    ] {
        check(&sent(), &names, 0, Some((expected, false)));
        check(&sent(), &names, 1, None);
    }
}

#[test]
fn a_caller_that_may_see_everything_is_shown_the_same_bytes() {
    for view in [sent(), paged()] {
        let mut number = 0;
        while let Some(page) = view.page(number) {
            let expected = Some((str::from_utf8(page.result).unwrap(), page.has_next));
            check(&view, &NAMES, number, expected);
            number += 1;
        }
        check(&view, &NAMES, number, None);
    }
}

#[test]
fn every_set_of_entries_is_shown_as_a_list_of_them_alone_would_be() {
    let (whole, entries) = (paged(), entries());
    for set in 1..1_u8 << NAMES.len() {
        let is_in = |at: &usize| set & (1 << *at) != 0;
        let some: Vec<_> = (0..NAMES.len()).filter(is_in).map(|at| entries[at].clone()).collect();
        let names: Vec<&str> = some.iter().map(|(id, _)| id.key.as_str()).collect();
        let chunks = some.chunks(2);
        let count = chunks.len();
        for (number, chunk) in chunks.enumerate() {
            let alone = ListView::of(ListKind::Tools, &[], &borrowed(chunk), false);
            let expected = str::from_utf8(alone.page(0).unwrap().result).unwrap();
            check(&whole, &names, number, Some((expected, number + 1 < count)));
        }
        check(&whole, &names, count, None);
    }
}

#[test]
fn a_copy_of_an_entry_in_another_member_is_not_taken_for_it() {
    let page = r#"{"_meta":{"x":{"name":"add"}},"tools":[{"name":"add"},{"name":"ask"}]}"#;
    let view = as_sent(page, &entries()[..2]);
    let expected = r#"{"_meta":{"x":{"name":"add"}},"tools":[{"name":"ask"}]}"#;
    check(&view, &["ask"], 0, Some((expected, false)));
}

#[test]
fn a_list_that_no_entry_was_read_from_is_shown_empty() {
    for (page, expected) in [
        (r#"{"ttlMs":5,"tools":[]}"#, r#"{"ttlMs":5,"tools":[]}"#),
        (r#"{"tools":[1],"tools":[{"name":"add"}],"x":1}"#, r#"{"tools":[]}"#),
        (r#"["add"]"#, r#"{"tools":[]}"#),
    ] {
        let view = ListView::verbatim(ListKind::Tools, &Arc::new(vec![page.into()]));
        check(&view, &NAMES, 0, Some((expected, false)));
        check(&view, &NAMES, 1, None);
    }
}

#[test]
fn a_filter_shows_nothing_of_another_list() {
    let (before, now) = (sent(), sent());
    let visible = before.visible(among(&["ask"]));
    assert!(before.filtered(&visible, 0).is_some());
    assert_eq!(now.filtered(&visible, 0), None);
}

#[test]
fn callers_that_may_see_the_same_share_its_pages() {
    let view = paged();
    let (one, same) = (view.visible(among(&["add"])), view.visible(among(&["add", "unknown"])));
    let other = view.visible(among(&["ask"]));
    let pages =
        [&one, &same, &other].map(|visible| match view.filtered(visible, 0).unwrap().result {
            Cow::Borrowed(bytes) => bytes.as_ptr(),
            Cow::Owned(_) => unreachable!("all of it is kept"),
        });
    assert_eq!(pages[0], pages[1]);
    assert_ne!(pages[0], pages[2]);
    assert_eq!(view.filtered.0.lock().unwrap().pages.len(), 2);
}

#[test]
fn pages_are_kept_up_to_the_limit() {
    let view = sent();
    let page = r#"{"ttlMs":5,"tools":[{"name":"add"}],"x":1}"#;
    let each = page.len() + size_of::<usize>();
    assert!(is_kept(&view.visible_within(2 * each, among(&["add"]))));
    assert!(!is_kept(&view.visible_within(2 * each - 1, among(&["ask"]))));
    assert!(is_kept(&view.visible_within(2 * each, among(&["cut"]))));
    // A cached page takes no additional room.
    assert!(is_kept(&view.visible_within(2 * each, among(&["add"]))));
    assert!(!is_kept(&view.visible_within(2 * each, among(&["dig"]))));
}

#[test]
fn the_cursor_of_each_filtered_page_leads_to_the_next() {
    let lists = [(ListKind::Tools, paged())].into_iter().collect();
    let view = View { lists, ..View::default() };
    let list = view.list(ListKind::Tools).unwrap();
    let first = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"add"},{"name":"cut"}],"nextCursor":"holdpoint-page-1"}}"#;
    let second = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"end"}]}}"#;
    for max_kept in [0, MAX_KEPT_BYTES] {
        let visible = list.visible_within(max_kept, among(&["add", "cut", "end"]));
        let answer = |cursor| answer_list(&view, ListKind::Tools, Some(&visible), cursor, b"7");
        for (cursor, expected) in [
            (None, first),
            (Some(b"null".as_slice()), first),
            (Some(br#""holdpoint-page-0""#), first),
            (Some(br#""holdpoint-page-1""#), second),
        ] {
            let answer = answer(cursor);
            assert!(!answer.is_error);
            assert_eq!(str::from_utf8(&answer.parts().concat()).unwrap(), expected);
            assert_eq!(answer.bytes(), expected.len());
        }
        for cursor in [br#""holdpoint-page-2""#.as_slice(), br#""page-1""#, b"1"] {
            assert!(answer(Some(cursor)).is_error);
        }
    }
}

/// The second copy of an entry may have members that the first does not have and that do not count
/// for its hash.
#[test]
fn an_array_with_more_than_its_entries_is_recognized() {
    let (id, add, ask) =
        (EntryId::new(EntryType::Tool, "add"), r#"{"name":"add"}"#, r#"{"name":"ask"}"#);
    let check = |array: &str, entries: &[&str], expected: bool| {
        let entries: Vec<(&EntryId, &str)> = entries.iter().map(|raw| (&id, *raw)).collect();
        assert_eq!(consists_of(array.as_bytes(), &entries), expected, "{array}");
    };
    check("[]", &[], true);
    check(" [ ] ", &[], true);
    check(&format!("[{add},{ask}]"), &[add, ask], true);
    check(&format!("[ {add} ,\n{ask}\t]"), &[add, ask], true);
    check(&format!("[{add}]"), &[], false);
    check(&format!("[{add},{add}]"), &[add], false);
    check(&format!("[{add},{ask},{add}]"), &[add, ask], false);
    check(&format!("[{add},{add},{ask}]"), &[add, ask], false);
    check(&format!("[{ask},{add}]"), &[add, ask], false);
    check(&format!("[{add}]"), &[add, ask], false);
    check(r#"[{"name":"add","_meta":{}}]"#, &[add], false);
}

/// The entries of a page are passed over where they lie in it: what is found has to be what is found without.
#[test]
fn the_array_of_a_page_is_found_around_its_entries_as_by_reading_all_of_it() {
    let add = r#"{"name":"add","x":"]}"}"#;
    let check = |page: &str, shows_all: bool| {
        let id = EntryId::new(EntryType::Tool, "add");
        let places = page.match_indices(add).map(|(at, _)| &page[at..at + add.len()]);
        let entries: Vec<(&EntryId, &str)> = places.map(|raw| (&id, raw)).collect();
        // A list says of an entry once what the page says twice.
        let listed = if page.contains("twice") { &entries[..1] } else { &entries[..] };
        let all = shown_array(ListKind::Tools, page.as_bytes(), &[], shows_all);
        let around = shown_array(ListKind::Tools, page.as_bytes(), listed, shows_all);
        assert_eq!(around, all, "{page}");
        all.is_some()
    };
    assert!(check(&format!(r#"{{"tools":[{add}]}}"#), false));
    assert!(check(
        &format!(r#" {{ "ttlMs" : 5 , "tools" : [ {add} , {add} ] , "cacheScope":"x" }} "#),
        false
    ));
    assert!(check(&format!(r#"{{"_meta":{{"twice":[1]}},"tools":[{add},{add}]}}"#), true));
    assert!(!check(&format!(r#"{{"tools":[{add}],"_meta":{{"a":"b"}}}}"#), false));
    assert!(check(&format!(r#"{{"tools":[{add}],"_meta":{{"tools":[]}}}}"#), true));
}
