//! One list being asked for, page by page, within the bounds of `contract`. No I/O: answers come in, the next request's
//! cursor or the outcome comes out.

use crate::reason::ReasonCode;
use crate::session::OwnAnswer;
use contract::surface::{ListKind, MAX_LIST_BYTES, MAX_LIST_PAGES, SurfaceReader};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::envelope::members;
use wire::listing::{Cursor, next_cursor};

/// How long a server may take to answer a list, calls in flight not counted.
pub const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// `method not found`.
const METHOD_NOT_FOUND: i64 = -32601;
/// A server may shorten the age of its lists, but not below this.
const MIN_TTL: Duration = Duration::from_secs(1);

/// What came of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListOutcome {
    /// Shared with the view: a list is kept once.
    Pages(Arc<Vec<Arc<str>>>),
    /// The server does not have it.
    NotOffered,
    Unreadable(String),
}

impl ListOutcome {
    pub fn read_into(&self, list: ListKind, reader: &mut SurfaceReader) {
        match self {
            ListOutcome::Pages(pages) => reader.list_shared(list, pages),
            ListOutcome::NotOffered => {}
            ListOutcome::Unreadable(reason) => reader.unreadable(list, reason.clone()),
        }
    }

    /// How long the server says that its list holds.
    pub fn ttl(&self) -> Option<Duration> {
        let ListOutcome::Pages(pages) = self else { return None };
        let milliseconds = |page: &Arc<str>| {
            let (_, value) = members(page.as_bytes()).find(|(name, _)| name == "ttlMs")?;
            serde_json::from_slice::<u64>(value).ok()
        };
        let shortest = pages.iter().filter_map(milliseconds).min();
        shortest.map(|ttl| Duration::from_millis(ttl).max(MIN_TTL))
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask for the page at this cursor.
    Ask(Option<String>),
    Done(ListOutcome),
    /// The list could not be fetched, which says nothing of what it carries.
    Failed(ReasonCode),
}

/// A list that is being asked for.
#[derive(Debug)]
pub struct Listing {
    list: ListKind,
    pages: Vec<Arc<str>>,
    bytes: usize,
    cursors: HashSet<String>,
    pub begun: Instant,
    /// How long it was waited for while no call was in flight.
    pub waited: Duration,
    /// The id of the request that is out, with its quotes.
    pub request: Vec<u8>,
}

impl Listing {
    pub fn new(list: ListKind, begun: Instant) -> Listing {
        Listing {
            list,
            pages: Vec::new(),
            bytes: 0,
            cursors: HashSet::new(),
            begun,
            waited: Duration::ZERO,
            request: Vec::new(),
        }
    }

    pub fn hear(&mut self, answer: OwnAnswer) -> Step {
        let page = match answer {
            OwnAnswer::Result(page) => page,
            OwnAnswer::Unreadable(reason) => return unreadable(reason),
            OwnAnswer::Failed(reason) => return Step::Failed(reason),
            OwnAnswer::Error { code: METHOD_NOT_FOUND } => {
                return Step::Done(ListOutcome::NotOffered);
            }
            // What carries tools and prompts is closed by an error; resources are then left out.
            OwnAnswer::Error { code } => {
                return match self.list {
                    ListKind::Tools | ListKind::Prompts => {
                        unreadable(format!("answered with error {code}"))
                    }
                    ListKind::Resources | ListKind::ResourceTemplates => {
                        Step::Done(ListOutcome::NotOffered)
                    }
                };
            }
        };
        self.bytes = self.bytes.saturating_add(page.len());
        if self.bytes > MAX_LIST_BYTES {
            return unreadable(format!("larger than {MAX_LIST_BYTES} bytes"));
        }
        let next = next_cursor(&page);
        self.pages.push(page);
        match next {
            Cursor::End | Cursor::Empty => {
                Step::Done(ListOutcome::Pages(Arc::new(std::mem::take(&mut self.pages))))
            }
            Cursor::NotAString => unreadable("a `nextCursor` that is not a string".to_owned()),
            Cursor::Next(_) if self.pages.len() == MAX_LIST_PAGES => {
                unreadable(format!("more than {MAX_LIST_PAGES} pages"))
            }
            Cursor::Next(cursor) if self.cursors.insert(cursor.clone()) => Step::Ask(Some(cursor)),
            Cursor::Next(_) => unreadable("a `nextCursor` that came before".to_owned()),
        }
    }

    /// Time went by without an answer. Returns whether the list is overdue.
    pub fn wait(&mut self, time: Duration) -> bool {
        self.waited += time;
        self.waited >= LIST_PATIENCE
    }
}

fn unreadable(reason: String) -> Step {
    Step::Done(ListOutcome::Unreadable(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        Listing::new(ListKind::Tools, Instant::now())
    }

    fn page(text: &str) -> OwnAnswer {
        OwnAnswer::Result(text.into())
    }

    #[test]
    fn pages_are_followed_to_the_end() {
        let mut listing = listing();
        let first = r#"{"tools":[],"nextCursor":"a"}"#;
        assert_eq!(listing.hear(page(first)), Step::Ask(Some("a".to_owned())));
        let last = r#"{"tools":[]}"#;
        let pages = vec![first.into(), last.into()];
        assert_eq!(listing.hear(page(last)), Step::Done(ListOutcome::Pages(Arc::new(pages))));
    }

    #[test]
    fn a_cursor_that_comes_again_makes_the_list_unreadable() {
        let mut listing = listing();
        let text = r#"{"tools":[],"nextCursor":"a"}"#;
        assert_eq!(listing.hear(page(text)), Step::Ask(Some("a".to_owned())));
        assert!(matches!(listing.hear(page(text)), Step::Done(ListOutcome::Unreadable(_))));
    }

    #[test]
    fn pages_are_counted_at_the_limit_and_one_past_it() {
        let text = |number| format!(r#"{{"tools":[],"nextCursor":"{number}"}}"#);
        let mut listing = listing();
        for number in 1..MAX_LIST_PAGES {
            assert!(matches!(listing.hear(page(&text(number))), Step::Ask(_)), "{number}");
        }
        let mut full = Listing::new(ListKind::Tools, Instant::now());
        full.pages = listing.pages.clone();
        assert!(matches!(full.hear(page("{}")), Step::Done(ListOutcome::Pages(_))));
        let past = listing.hear(page(&text(MAX_LIST_PAGES)));
        assert!(matches!(past, Step::Done(ListOutcome::Unreadable(_))));
    }

    #[test]
    fn a_failed_request_is_no_unreadable_list() {
        let reason = ReasonCode::UpstreamUnreachable;
        assert_eq!(listing().hear(OwnAnswer::Failed(reason)), Step::Failed(reason));
    }

    #[test]
    fn patience_ends_at_its_limit() {
        let mut listing = listing();
        assert!(!listing.wait(LIST_PATIENCE - Duration::from_millis(1)));
        assert!(listing.wait(Duration::from_millis(1)));
    }

    #[test]
    fn a_server_may_shorten_the_age_but_not_below_the_floor() {
        let ttl = |text: &str| ListOutcome::Pages(Arc::new(vec![text.into()])).ttl();
        assert_eq!(ttl(r#"{"tools":[],"ttlMs":5000}"#), Some(Duration::from_secs(5)));
        assert_eq!(ttl(r#"{"tools":[],"ttlMs":1}"#), Some(MIN_TTL));
        assert_eq!(ttl(r#"{"tools":[]}"#), None);
    }
}
