//! A list as the client is shown it, in pages of our own.

use super::shape::with_member;
use contract::surface::ListKind;

/// One list, ready to be sent: the `result` of each page, but for where the next one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListView {
    pages: Vec<Vec<u8>>,
}

/// A page, and whether there is another after it.
#[derive(Debug, Clone, Copy)]
pub struct Page<'v> {
    /// The JSON of `result`, without `nextCursor`.
    pub result: &'v [u8],
    pub has_next: bool,
}

impl ListView {
    /// The server's only page, as it came.
    pub(super) fn verbatim(page: &str) -> ListView {
        ListView { pages: vec![page.as_bytes().to_vec()] }
    }

    /// Some entries, in pages as long as the longest of the server's.
    pub(super) fn of(list: ListKind, server_pages: &[String], entries: &[&str]) -> ListView {
        let template = server_pages.first().map_or("{}", String::as_str).as_bytes();
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
        ListView { pages }
    }

    pub fn page(&self, number: usize) -> Option<Page<'_>> {
        let result = self.pages.get(number)?;
        Some(Page { result, has_next: number + 1 < self.pages.len() })
    }

    pub(super) fn shows_the_same(&self, other: &ListView) -> bool {
        self.pages == other.pages
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
