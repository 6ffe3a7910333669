//! A list as clients see it: entries in our own pages.

use super::shape::{Kept, offset, with_member};
use super::visible::FilteredPages;
use contract::surface::{EntryId, ListKind};
use envelope::members;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

/// One list, ready to be sent: the `result` of each page, except for the cursor of the next one.
#[derive(Debug)]
pub struct ListView {
    list: ListKind,
    pages: Pages,
    /// The position of each entry, in the order shown.
    pub(super) entries: Vec<ListEntry>,
    pub(super) filtered: Arc<FilteredPages>,
}

#[derive(Debug)]
enum Pages {
    /// As sent by the server.
    Sent(Arc<Vec<Arc<str>>>),
    Made(Vec<Vec<u8>>),
}

#[derive(Debug)]
pub(super) struct ListEntry {
    pub(super) key: Box<str>,
    pub(super) page: usize,
    pub(super) span: Range<usize>,
}

/// A page, and whether it is followed by another one.
#[derive(Debug, Clone, Copy)]
pub struct Page<'v> {
    /// The JSON of `result`, without `nextCursor`.
    pub result: &'v [u8],
    pub has_next: bool,
}

impl ListView {
    /// The server's original pages.
    pub(super) fn verbatim(list: ListKind, pages: &Arc<Vec<Arc<str>>>) -> ListView {
        ListView::without_entries(list, Pages::Sent(Arc::clone(pages)))
    }

    /// The server's single original page, with the array of its entries. `entries` are those that
    /// it contains.
    pub(super) fn as_sent(
        list: ListKind,
        pages: &Arc<Vec<Arc<str>>>,
        array: &[u8],
        entries: &[(&EntryId, &str)],
    ) -> ListView {
        let mut view = ListView::verbatim(list, pages);
        let page = pages.first().map_or(&[][..], |page| page.as_bytes());
        view.locate(page, array, 0, &mut entries.iter().peekable());
        view
    }

    /// The given entries, in pages as long as the longest of the server's. Other members of a page
    /// are the server's text too: unless everything is shown, only those that the protocol needs
    /// are kept.
    pub(super) fn of(
        list: ListKind,
        server_pages: &[Arc<str>],
        entries: &[(&EntryId, &str)],
        shows_all: bool,
    ) -> ListView {
        let template = server_pages.first().map_or("{}", |page| page).as_bytes();
        // A page is mostly its entries: without them first, so that what follows passes over few bytes.
        let template = with_member(template, list.member(), Some(b"[]"));
        let template = with_member(&template, "nextCursor", None);
        let template = if shows_all { template } else { bare(list, &template) };
        let array = members(&template).find(|(name, _)| name == list.member());
        let place = array.map_or(template.len(), |(_, array)| offset(&template, array));
        let per_page = match server_pages.len() {
            0 | 1 => usize::MAX,
            pages => entries.len().div_ceil(pages).max(1),
        };
        let mut view = ListView::without_entries(list, Pages::Made(Vec::new()));
        let mut made = Vec::new();
        for chunk in entries.chunks(per_page.min(entries.len().max(1))) {
            let page = with_entries(&template, list, chunk);
            let entries = page.get(place..).unwrap_or_default();
            view.locate(&page, entries, made.len(), &mut chunk.iter().peekable());
            made.push(page);
        }
        if made.is_empty() {
            made.push(with_entries(&template, list, &[]));
        }
        view.pages = Pages::Made(made);
        view
    }

    fn without_entries(list: ListKind, pages: Pages) -> ListView {
        ListView { list, pages, entries: Vec::new(), filtered: Arc::default() }
    }

    /// Records the positions of entries in a page that contains them in this order, as far as the
    /// page goes.
    fn locate<'e>(
        &mut self,
        page: &[u8],
        array: &[u8],
        number: usize,
        entries: &mut Peekable<impl Iterator<Item = &'e (&'e EntryId, &'e str)>>,
    ) {
        // INVARIANT: the search starts at the list's own array and each time at the end of the last
        // entry, so that it finds the entry itself and not a copy of its text in another member.
        let mut from = offset(page, array);
        let end = from + array.len();
        while let Some((id, raw)) = entries.peek() {
            let rest = page.get(from..end).unwrap_or_default();
            let Some(at) = find_entry(rest, raw.as_bytes()) else { return };
            let span = from + at..from + at + raw.len();
            from = span.end;
            self.entries.push(ListEntry { key: id.key.as_str().into(), page: number, span });
            entries.next();
        }
    }

    pub(super) fn bytes(&self, page: usize) -> Option<&[u8]> {
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

    /// The entries in the order shown, each with its JSON.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|entry| {
            let raw = self.bytes(entry.page)?.get(entry.span.clone())?;
            Some((&*entry.key, raw))
        })
    }

    pub fn page(&self, number: usize) -> Option<Page<'_>> {
        let result = self.bytes(number)?;
        Some(Page { result, has_next: number + 1 < self.count() })
    }

    /// The bytes before and after the entries of the first page. Returns `None` if the page has no
    /// entries.
    pub(super) fn frame(&self) -> Option<(&[u8], &[u8])> {
        let page = self.bytes(0)?;
        let mut first = self.entries.iter().take_while(|entry| entry.page == 0);
        let start = first.next()?;
        let end = first.last().unwrap_or(start);
        Some((page.get(..start.span.start)?, page.get(end.span.end..)?))
    }

    /// A page without entries. Monitor shows lists whose entries could not be read; nothing of such
    /// a list is included here.
    pub(super) fn empty_page(&self) -> Vec<u8> {
        let kept = Kept { as_they_are: &[], if_plain: &PROTOCOL };
        let template = with_member(&kept.of(self.bytes(0).unwrap_or_default()), "nextCursor", None);
        with_entries(&template, self.list, &[])
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

/// The members of a page that belong to the protocol, besides its entries.
const PROTOCOL: [&str; 4] = ["nextCursor", "resultType", "ttlMs", "cacheScope"];

/// The position of an entry in the remainder of its array, behind a separator.
fn find_entry(rest: &[u8], entry: &[u8]) -> Option<usize> {
    let is_between = |byte: &u8| matches!(byte, b'[' | b',' | b' ' | b'\t' | b'\n' | b'\r');
    let at = rest.iter().position(|byte| !is_between(byte))?;
    after(rest.get(at..)?, entry).map(|_| at)
}

/// Whether an array consists of these entries in this order and of nothing else. A server may list
/// an entry twice, and the second copy may have members that the first, accepted one does not have.
pub(super) fn consists_of(array: &[u8], entries: &[(&EntryId, &str)]) -> bool {
    let end = || {
        let mut rest = after(array.trim_ascii(), b"[")?;
        for (index, (_, entry)) in entries.iter().enumerate() {
            if index > 0 {
                rest = after(rest, b",")?;
            }
            rest = after(rest, entry.as_bytes())?;
        }
        Some(rest)
    };
    end() == Some(b"]")
}

/// What follows a token and white space. Returns `None` if the text does not begin with the token.
fn after<'t>(text: &'t [u8], token: &[u8]) -> Option<&'t [u8]> {
    let (there, rest) = text.split_at_checked(token.len())?;
    // Most entries are slices of the page, so comparing pointers is usually enough.
    (std::ptr::eq(there, token) || there == token).then(|| rest.trim_ascii_start())
}

/// The array of a page's entries, if all other members belong to the protocol or everything is
/// shown. `entries` are the entries of the page.
pub(super) fn shown_array<'p>(
    list: ListKind,
    page: &'p [u8],
    entries: &[(&EntryId, &str)],
    shows_all: bool,
) -> Option<&'p [u8]> {
    let around = around_entries(list, page, entries, shows_all);
    around.or_else(|| array_of(list, page, shows_all))
}

/// The same for entries that are slices of the page: only the text around them is parsed.
fn around_entries<'p>(
    list: ListKind,
    page: &'p [u8],
    entries: &[(&EntryId, &str)],
    shows_all: bool,
) -> Option<&'p [u8]> {
    let place = |entry: &(&EntryId, &str)| {
        let entry = entry.1.as_bytes();
        let start = offset(page, entry);
        let there = page.get(start..start.checked_add(entry.len())?)?;
        std::ptr::eq(there, entry).then_some(start..start + entry.len())
    };
    let (start, end) = (place(entries.first()?)?.start, place(entries.last()?)?.end);
    let around = [page.get(..start)?, page.get(end..)?].concat();
    let array = array_of(list, &around, shows_all)?;
    let first = offset(&around, array);
    let last = first + array.len();
    // The entries are between the brackets of this array, unless an entry was listed twice.
    (first < start && start < last).then(|| page.get(first..last + end.checked_sub(start)?))?
}

fn array_of(list: ListKind, page: &[u8], shows_all: bool) -> Option<&[u8]> {
    let kept = Kept { as_they_are: &[list.member()], if_plain: &PROTOCOL };
    let mut array = None;
    for (name, value) in members(page) {
        if !shows_all && !kept.has(&name, value) {
            return None;
        }
        array = array.or_else(|| (name == list.member()).then_some(value));
    }
    array
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
