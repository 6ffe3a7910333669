//! A list as clients are shown it: entries in pages of our own, and a filter for callers that may see only some of them.

use super::shape::{Kept, offset, with_member};
use contract::surface::{EntryId, ListKind};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use wire::envelope::members;

/// One list, ready to be sent: the `result` of each page, but for where the next one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListView {
    pages: Pages,
    /// Where each entry lies, in the order in which they are shown.
    entries: Vec<ListEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pages {
    /// As the server sent them.
    Sent(Arc<Vec<Arc<str>>>),
    Made(Vec<Vec<u8>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ListEntry {
    key: Box<str>,
    page: usize,
    span: Range<usize>,
}

/// A page, and whether there is another after it.
#[derive(Debug, Clone, Copy)]
pub struct Page<'v> {
    /// The JSON of `result`, without `nextCursor`.
    pub result: &'v [u8],
    pub has_next: bool,
}

/// The entries of a list that one caller may see, by their places. Made once for all callers that may see the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible(Box<[usize]>);

/// A page of what one caller may see, in parts that lie in the pages of the list.
#[derive(Debug, Clone)]
pub struct FilteredPage<'v> {
    /// Together they are the JSON of `result`, without `nextCursor`.
    pub parts: Vec<&'v [u8]>,
    pub has_next: bool,
}

impl ListView {
    /// The server's pages, as they came. `entries` are those that they carry, as they are in them.
    pub(super) fn verbatim(
        list: ListKind,
        pages: &Arc<Vec<Arc<str>>>,
        entries: &[(&EntryId, &str)],
    ) -> ListView {
        let mut view = ListView { pages: Pages::Sent(Arc::clone(pages)), entries: Vec::new() };
        let mut entries = entries.iter().peekable();
        for (number, page) in pages.iter().enumerate() {
            view.locate(list, page.as_bytes(), number, &mut entries);
        }
        view
    }

    /// Some entries, in pages as long as the longest of the server's. Members beside the entries are the server's words too:
    /// unless all of it is shown, those that the protocol needs are left.
    pub(super) fn of(
        list: ListKind,
        server_pages: &[Arc<str>],
        entries: &[(&EntryId, &str)],
        shows_all: bool,
    ) -> ListView {
        let template = server_pages.first().map_or("{}", |page| page).as_bytes();
        let template = with_member(template, "nextCursor", None);
        let template = if shows_all { template } else { bare(list, &template) };
        let per_page = match server_pages.len() {
            0 | 1 => usize::MAX,
            pages => entries.len().div_ceil(pages).max(1),
        };
        let mut view = ListView { pages: Pages::Made(Vec::new()), entries: Vec::new() };
        let mut made = Vec::new();
        for chunk in entries.chunks(per_page.min(entries.len().max(1))) {
            let page = with_entries(&template, list, chunk);
            view.locate(list, &page, made.len(), &mut chunk.iter().peekable());
            made.push(page);
        }
        if made.is_empty() {
            made.push(with_entries(&template, list, &[]));
        }
        view.pages = Pages::Made(made);
        view
    }

    /// Notes where entries lie in a page that carries them in this order, as many as it has.
    fn locate<'e>(
        &mut self,
        list: ListKind,
        page: &[u8],
        number: usize,
        entries: &mut Peekable<impl Iterator<Item = &'e (&'e EntryId, &'e str)>>,
    ) {
        // INVARIANT: the search begins at the list's own array and each time where the last entry ended, so that what is
        // found is the entry itself and not a copy of its text in another member.
        let array = members(page).find(|(name, _)| name == list.member()).map(|(_, array)| array);
        let Some(array) = array else { return };
        let mut from = offset(page, array);
        let end = from + array.len();
        while let Some((id, raw)) = entries.peek() {
            let rest = page.get(from..end).unwrap_or_default();
            let Some(at) = memchr::memmem::find(rest, raw.as_bytes()) else { return };
            let span = from + at..from + at + raw.len();
            from = span.end;
            self.entries.push(ListEntry { key: id.key.as_str().into(), page: number, span });
            entries.next();
        }
    }

    fn bytes(&self, page: usize) -> Option<&[u8]> {
        match &self.pages {
            Pages::Sent(pages) => pages.get(page).map(|page| page.as_bytes()),
            Pages::Made(pages) => pages.get(page).map(Vec::as_slice),
        }
    }

    fn count(&self) -> usize {
        match &self.pages {
            Pages::Sent(pages) => pages.len(),
            Pages::Made(pages) => pages.len(),
        }
    }

    pub fn page(&self, number: usize) -> Option<Page<'_>> {
        let result = self.bytes(number)?;
        Some(Page { result, has_next: number + 1 < self.count() })
    }

    /// The entries that a caller may see.
    pub fn visible(&self, is_visible: impl Fn(&str) -> bool) -> Visible {
        let places = self.entries.iter().enumerate();
        Visible(places.filter(|(_, entry)| is_visible(&entry.key)).map(|(at, _)| at).collect())
    }

    /// A page of what a caller may see. Nothing of the list is copied: entries that lie next to each other are one part.
    pub fn filtered(&self, visible: &Visible, number: usize) -> Option<FilteredPage<'_>> {
        // As many entries a page as the list itself has.
        let per_page = self.entries.iter().take_while(|entry| entry.page == 0).count().max(1);
        let mut pages = visible.0.chunks(per_page);
        let (count, chunk) = (pages.len().max(1), pages.nth(number).unwrap_or_default());
        if number >= count {
            return None;
        }
        let (head, tail) = self.frame()?;
        let mut parts = vec![head];
        let mut run: Option<(usize, Range<usize>, usize)> = None;
        let push = |parts: &mut Vec<_>, (page, span, _): (usize, Range<usize>, usize)| {
            if parts.len() > 1 {
                parts.push(b",".as_slice());
            }
            parts.extend(self.bytes(page).and_then(|bytes| bytes.get(span)));
        };
        for at in chunk {
            let Some(entry) = self.entries.get(*at) else { continue };
            run = match run.take() {
                // Only a comma and white space lie between an entry and the next one of its page.
                Some((page, span, last)) if page == entry.page && last + 1 == *at => {
                    Some((page, span.start..entry.span.end, *at))
                }
                before => {
                    before.into_iter().for_each(|run| push(&mut parts, run));
                    Some((entry.page, entry.span.clone(), *at))
                }
            };
        }
        run.into_iter().for_each(|run| push(&mut parts, run));
        parts.push(tail);
        Some(FilteredPage { parts, has_next: number + 1 < count })
    }

    /// What stands before and after the entries of a page.
    fn frame(&self) -> Option<(&[u8], &[u8])> {
        let page = self.bytes(0)?;
        let mut first = self.entries.iter().filter(|entry| entry.page == 0);
        let Some(start) = first.next() else { return Some((page, b"")) };
        let end = first.next_back().unwrap_or(start);
        Some((page.get(..start.span.start)?, page.get(end.span.end..)?))
    }

    pub(super) fn shows_the_same(&self, other: &ListView) -> bool {
        let mut number = 0;
        loop {
            match (self.page(number), other.page(number)) {
                (None, None) => return true,
                (Some(ours), Some(theirs)) if ours.result == theirs.result => number += 1,
                _ => return false,
            }
        }
    }
}

/// The members of the protocol in a page, beside its entries.
const PROTOCOL: [&str; 4] = ["nextCursor", "resultType", "ttlMs", "cacheScope"];

/// Whether a page has nothing but its entries and what the protocol needs.
pub(super) fn is_bare(list: ListKind, page: &[u8]) -> bool {
    Kept { as_they_are: &[list.member()], if_plain: &PROTOCOL }.has_all(page)
}

fn bare(list: ListKind, page: &[u8]) -> Vec<u8> {
    Kept { as_they_are: &[list.member()], if_plain: &PROTOCOL }.of(page)
}

fn with_entries(template: &[u8], list: ListKind, entries: &[(&EntryId, &str)]) -> Vec<u8> {
    let bytes = entries.iter().map(|(_, entry)| entry.len() + 1).sum::<usize>() + 2;
    let mut array = Vec::with_capacity(bytes);
    array.push(b'[');
    for (index, (_, entry)) in entries.iter().enumerate() {
        if index > 0 {
            array.push(b',');
        }
        array.extend_from_slice(entry.as_bytes());
    }
    array.push(b']');
    with_member(template, list.member(), Some(&array))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::surface::EntryType;

    fn entries() -> Vec<(EntryId, String)> {
        let entry =
            |name: &str| (EntryId::new(EntryType::Tool, name), format!(r#"{{"name":"{name}"}}"#));
        ["add", "ask", "cut", "dig", "end"].map(entry).to_vec()
    }

    fn borrowed(entries: &[(EntryId, String)]) -> Vec<(&EntryId, &str)> {
        entries.iter().map(|(id, raw)| (id, raw.as_str())).collect()
    }

    fn whole(view: &ListView, names: &[&str], number: usize) -> Option<(String, bool)> {
        let visible = view.visible(|key| names.contains(&key));
        let page = view.filtered(&visible, number)?;
        Some((String::from_utf8(page.parts.concat()).unwrap(), page.has_next))
    }

    fn sent() -> ListView {
        let page = r#"{"ttlMs":5,"tools":[{"name":"add"}, {"name":"ask"},{"name":"cut"},{"name":"dig"},{"name":"end"}],"x":1}"#;
        ListView::verbatim(ListKind::Tools, &Arc::new(vec![page.into()]), &borrowed(&entries()))
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
            assert_eq!(whole(&sent(), &names, 0), Some((expected.to_owned(), false)));
            assert_eq!(whole(&sent(), &names, 1), None);
        }
    }

    #[test]
    fn a_caller_that_may_see_everything_is_shown_the_same_bytes() {
        let names = ["add", "ask", "cut", "dig", "end"];
        let page = sent();
        let shown = whole(&page, &names, 0).unwrap().0;
        assert_eq!(shown.as_bytes(), page.page(0).unwrap().result);
    }

    #[test]
    fn a_copy_of_an_entry_in_another_member_is_not_taken_for_it() {
        let page = r#"{"_meta":{"x":{"name":"add"}},"tools":[{"name":"add"},{"name":"ask"}]}"#;
        let entries = entries();
        let entries = borrowed(&entries[..2]);
        let view = ListView::verbatim(ListKind::Tools, &Arc::new(vec![page.into()]), &entries);
        let expected = r#"{"_meta":{"x":{"name":"add"}},"tools":[{"name":"ask"}]}"#;
        assert_eq!(whole(&view, &["ask"], 0), Some((expected.to_owned(), false)));
    }

    #[test]
    fn a_filtered_list_has_pages_of_the_same_length() {
        let pages: Vec<Arc<str>> = (0..3).map(|_| r#"{"tools":[]}"#.into()).collect();
        let entries = entries();
        let view = ListView::of(ListKind::Tools, &pages, &borrowed(&entries), false);
        assert_eq!(view.count(), 3);
        let names = ["add", "cut", "end"];
        let first = r#"{"tools":[{"name":"add"},{"name":"cut"}]}"#.to_owned();
        assert_eq!(whole(&view, &names, 0), Some((first, true)));
        assert_eq!(
            whole(&view, &names, 1),
            Some((r#"{"tools":[{"name":"end"}]}"#.to_owned(), false))
        );
        assert_eq!(whole(&view, &names, 2), None);
    }
}
