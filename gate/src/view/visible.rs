//! What one caller may see of a list. Pages are built once for all callers with the same access,
//! and cached.

use super::lists::ListView;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The most bytes of filtered pages cached per list. Beyond that, a page is built for each
/// response.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The entries of a list that one caller may see.
#[derive(Debug, Clone)]
pub struct Visible {
    /// The page cache of the list that this was made for.
    list: Weak<FilteredPages>,
    filter: Filter,
}

#[derive(Debug, Clone)]
enum Filter {
    /// All pages, shared by callers with the same access.
    Pages(Arc<[Vec<u8>]>),
    /// The indices of the entries in the list.
    Places(Arc<[usize]>),
}

/// A page of what one caller may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredPage<'v> {
    /// The JSON of `result`, without `nextCursor`.
    pub result: Cow<'v, [u8]>,
    pub has_next: bool,
}

/// The cached filtered pages of a list.
#[derive(Debug, Default)]
pub(super) struct FilteredPages(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Pages by the indices of their entries.
    pages: HashMap<Box<[usize]>, Arc<[Vec<u8>]>>,
    bytes: usize,
}

impl Visible {
    /// Whether it was made for this list.
    pub fn is_for(&self, list: &ListView) -> bool {
        std::ptr::eq(self.list.as_ptr(), Arc::as_ptr(&list.filtered))
    }
}

impl ListView {
    /// The entries that a caller may see.
    pub fn visible(&self, is_visible: impl Fn(&str) -> bool) -> Visible {
        self.visible_within(MAX_KEPT_BYTES, is_visible)
    }

    fn visible_within(&self, max_kept: usize, is_visible: impl Fn(&str) -> bool) -> Visible {
        let keys = self.entries.iter().enumerate();
        let places: Box<[usize]> =
            keys.filter(|(_, entry)| is_visible(&entry.key)).map(|(at, _)| at).collect();
        let mut kept = self.filtered.0.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = match kept.pages.get(&places) {
            Some(pages) => Filter::Pages(Arc::clone(pages)),
            None => {
                let chunks = (0..).map_while(|number| self.chunk(&places, number));
                let pages: Arc<[_]> = chunks.map(|(chunk, _)| self.page_of(chunk)).collect();
                let bytes = size_of_val(&*places) + pages.iter().map(Vec::len).sum::<usize>();
                if kept.bytes + bytes > max_kept {
                    Filter::Places(places.into())
                } else {
                    kept.bytes += bytes;
                    kept.pages.insert(places, Arc::clone(&pages));
                    Filter::Pages(pages)
                }
            }
        };
        Visible { list: Arc::downgrade(&self.filtered), filter }
    }

    /// A page of what a caller may see. Returns `None` past the last page.
    pub fn filtered<'v>(&self, visible: &'v Visible, number: usize) -> Option<FilteredPage<'v>> {
        // INVARIANT: a filter is used only with the list that it was made for. In another list the
        // indices mean other entries.
        if !visible.is_for(self) {
            return None;
        }
        Some(match &visible.filter {
            Filter::Pages(pages) => FilteredPage {
                result: pages.get(number)?.into(),
                has_next: number + 1 < pages.len(),
            },
            Filter::Places(places) => {
                let (chunk, has_next) = self.chunk(places, number)?;
                FilteredPage { result: self.page_of(chunk).into(), has_next }
            }
        })
    }

    /// The indices on one page, and whether another page follows. There is always at least one
    /// page.
    fn chunk<'p>(&self, places: &'p [usize], number: usize) -> Option<(&'p [usize], bool)> {
        // As many entries per page as the list itself has.
        let per_page = self.entries.iter().take_while(|entry| entry.page == 0).count().max(1);
        let mut chunks = places.chunks(per_page);
        let count = chunks.len().max(1);
        (number < count).then(|| (chunks.nth(number).unwrap_or_default(), number + 1 < count))
    }

    /// The first page of the list, with the entries at the given indices instead of its own.
    fn page_of(&self, places: &[usize]) -> Vec<u8> {
        let Some((head, tail)) = self.frame() else { return self.empty_page() };
        let mut page = head.to_vec();
        let mut last = None;
        for at in places {
            let Some(entry) = self.entries.get(*at) else { continue };
            let start = match last {
                None => entry.span.start,
                // Adjacent entries of a page are separated only by a comma and white space.
                Some((before, before_page, end))
                    if before + 1 == *at && before_page == entry.page =>
                {
                    end
                }
                Some(_) => {
                    page.push(b',');
                    entry.span.start
                }
            };
            let bytes = self.bytes(entry.page).and_then(|bytes| bytes.get(start..entry.span.end));
            page.extend_from_slice(bytes.unwrap_or_default());
            last = Some((*at, entry.page, entry.span.end));
        }
        page.extend_from_slice(tail);
        page
    }
}

#[cfg(test)]
mod tests;
