//! A list as the client is shown it, in pages of our own.

use super::shape::with_member;
use contract::surface::ListKind;
use std::sync::Arc;

/// One list, ready to be sent: the `result` of each page, but for where the next one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListView {
    pages: Pages,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pages {
    /// As the server sent them.
    Sent(Arc<Vec<Arc<str>>>),
    Made(Vec<Vec<u8>>),
}

/// A page, and whether there is another after it.
#[derive(Debug, Clone, Copy)]
pub struct Page<'v> {
    /// The JSON of `result`, without `nextCursor`.
    pub result: &'v [u8],
    pub has_next: bool,
}

impl ListView {
    /// The server's pages, as they came.
    pub(super) fn verbatim(pages: Arc<Vec<Arc<str>>>) -> ListView {
        ListView { pages: Pages::Sent(pages) }
    }

    /// Some entries, in pages as long as the longest of the server's.
    pub(super) fn of(list: ListKind, server_pages: &[Arc<str>], entries: &[&str]) -> ListView {
        let template = server_pages.first().map_or("{}", |page| page).as_bytes();
        let template = with_member(template, "nextCursor", None);
        let per_page = match server_pages.len() {
            0 | 1 => usize::MAX,
            pages => entries.len().div_ceil(pages).max(1),
        };
        let mut pages: Vec<Vec<u8>> = entries
            .chunks(per_page.min(entries.len().max(1)))
            .map(|chunk| with_entries(&template, list, chunk))
            .collect();
        if pages.is_empty() {
            pages.push(with_entries(&template, list, &[]));
        }
        ListView { pages: Pages::Made(pages) }
    }

    pub fn page(&self, number: usize) -> Option<Page<'_>> {
        let (result, count) = match &self.pages {
            Pages::Sent(pages) => (pages.get(number)?.as_bytes(), pages.len()),
            Pages::Made(pages) => (pages.get(number)?.as_slice(), pages.len()),
        };
        Some(Page { result, has_next: number + 1 < count })
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

fn with_entries(template: &[u8], list: ListKind, entries: &[&str]) -> Vec<u8> {
    let mut array =
        Vec::with_capacity(entries.iter().map(|entry| entry.len() + 1).sum::<usize>() + 2);
    array.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            array.push(b',');
        }
        array.extend_from_slice(entry.as_bytes());
    }
    array.push(b']');
    with_member(template, list.member(), Some(&array))
}
