//! The gate's own lists: which are asked for, how fresh they are, and what waits for them.

use super::Session;
use crate::actions::{Action, Fault};
use contract::json::{SharedDocument, escape_into};
use contract::sorted::SortedMap;
use contract::surface::{ListKind, SurfaceReader};
use envelope::listing::{LIST_PATIENCE, ListOutcome, Listing, Step};
use envelope::{Answer, Id, Outcome};
use std::sync::Arc;

/// The beginning of the ids of the gate's own requests.
const OWN: &str = "hp-";
/// The longest seed that is taken over.
const MAX_SEED: usize = 64;

/// A list that was fetched.
#[derive(Debug)]
struct Fetched {
    outcome: ListOutcome,
    /// When it was asked for.
    begun: i64,
    ttl: Option<i64>,
}

impl Fetched {
    /// What was fetched, if it is the one page that this answer is.
    fn page_like(&self, answer: &Answer) -> Option<ListOutcome> {
        match (&self.outcome, answer) {
            (ListOutcome::Pages(pages), Answer::Result(page)) => {
                (pages.as_slice() == std::slice::from_ref(page)).then(|| self.outcome.clone())
            }
            _ => None,
        }
    }
}

/// A list that is being asked for.
#[derive(Debug)]
struct Open {
    listing: Listing,
    begun: i64,
    /// The key of the request that is out.
    request: Box<[u8]>,
}

/// The lists of one server.
#[derive(Debug)]
pub(super) struct Lists {
    /// What the ids of our requests begin with, with its quote.
    prefix: String,
    count: u64,
    fetched: SortedMap<ListKind, Fetched>,
    open: SortedMap<ListKind, Open>,
    /// Lists that the server said to have changed since they were asked for.
    outdated: Vec<ListKind>,
    /// The list that came last, parsed, until it is judged.
    heard: Option<SharedDocument>,
}

impl Lists {
    pub(super) fn new(seed: &str) -> Lists {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric();
        let seed: String = seed.chars().filter(is_plain).take(MAX_SEED).collect();
        Lists {
            prefix: format!("\"{OWN}{seed}-"),
            count: 0,
            fetched: SortedMap::new(),
            open: SortedMap::new(),
            outdated: Vec::new(),
            heard: None,
        }
    }

    pub(super) fn is_own(&self, id: &Id<'_>) -> bool {
        id.key().starts_with(self.prefix.as_bytes())
    }

    pub(super) fn outdate(&mut self, list: ListKind) {
        if !self.outdated.contains(&list) {
            self.outdated.push(list);
        }
    }

    fn is_outdated(&self, list: ListKind) -> bool {
        self.outdated.contains(&list)
    }

    pub(super) fn is_fresh(&self, list: ListKind, now: i64, max_age: i64) -> bool {
        let Some(fetched) = self.fetched.get(&list) else { return false };
        let max_age = fetched.ttl.map_or(max_age, |ttl| ttl.min(max_age));
        // A clock that was set back makes no list younger.
        let age = now.saturating_sub(fetched.begun);
        (0..max_age).contains(&age) && !self.is_outdated(list) && !self.open.contains_key(&list)
    }

    pub(super) fn is_open(&self, list: ListKind) -> bool {
        self.open.contains_key(&list)
    }

    /// Whether an answer is waited for.
    pub(super) fn is_asking(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn are_overdue(&self, now: i64) -> bool {
        let patience = milliseconds(LIST_PATIENCE);
        self.open.values().any(|open| now.saturating_sub(open.begun) >= patience)
    }

    /// The lists that came, as they came.
    pub(super) fn pages(&self) -> SortedMap<ListKind, Arc<Vec<Arc<str>>>> {
        let pages = self.fetched.iter().filter_map(|(list, fetched)| match &fetched.outcome {
            ListOutcome::Pages(pages) => Some((*list, pages.clone())),
            ListOutcome::NotOffered | ListOutcome::Unreadable(_) => None,
        });
        pages.collect()
    }

    pub(super) fn read_into(&mut self, reader: &mut SurfaceReader) {
        let heard = self.heard.take();
        for (list, fetched) in &self.fetched {
            let is_only = |page: &&SharedDocument| match &fetched.outcome {
                ListOutcome::Pages(pages) => {
                    matches!(pages.as_slice(), [only] if Arc::ptr_eq(only, page.text()))
                }
                ListOutcome::NotOffered | ListOutcome::Unreadable(_) => false,
            };
            match heard.as_ref().filter(is_only) {
                Some(page) => reader.list_read(*list, page),
                None => fetched.outcome.read_into(*list, reader),
            }
        }
    }
}

impl Session {
    /// Asks for a list, and for all that the server offers and that were never asked for: a server is judged as a whole.
    pub(super) fn fetch(&mut self, wanted: ListKind, now: i64, out: &mut Vec<Action>) {
        let was_idle = self.lists.open.is_empty();
        for list in ListKind::ALL {
            let is_new = !self.lists.fetched.contains_key(&list) && self.greeting.offers(list);
            if (list == wanted || is_new) && !self.lists.open.contains_key(&list) {
                self.lists.outdated.retain(|outdated| *outdated != list);
                let request = self.ask(list, None, out);
                self.lists
                    .open
                    .insert(list, Open { listing: Listing::new(list), begun: now, request });
            }
        }
        if was_idle && !self.lists.open.is_empty() {
            out.push(Action::Wake(milliseconds(LIST_PATIENCE)));
        }
    }

    /// Asks for a page. Returns the key of the request.
    fn ask(&mut self, list: ListKind, cursor: Option<&str>, out: &mut Vec<Action>) -> Box<[u8]> {
        self.lists.count += 1;
        let key = format!("{}{}\"", self.lists.prefix, self.lists.count);
        let mut request =
            format!(r#"{{"jsonrpc":"2.0","id":{key},"method":"{}""#, list.method()).into_bytes();
        let mut params = Vec::new();
        if let Some(meta) = &self.meta {
            params.extend_from_slice(br#""_meta":"#);
            params.extend_from_slice(meta.as_bytes());
        }
        if let Some(cursor) = cursor {
            params.extend_from_slice(if params.is_empty() { b"" } else { b"," });
            params.extend_from_slice(br#""cursor":"#);
            escape_into(cursor, &mut params);
        }
        if !params.is_empty() {
            request.extend_from_slice(br#","params":{"#);
            request.extend_from_slice(&params);
            request.push(b'}');
        }
        request.push(b'}');
        out.push(Action::ToServer(request.into()));
        key.into_bytes().into()
    }

    /// Takes the answer to one of the gate's own requests.
    pub(super) fn hear(
        &mut self,
        id: &Id<'_>,
        outcome: Outcome<'_>,
        now: i64,
        out: &mut Vec<Action>,
    ) {
        let asked = self.lists.open.iter().find(|(_, open)| *open.request == *id.key());
        let Some(list) = asked.map(|(list, _)| *list) else { return };
        let Some(open) = self.lists.open.get_mut(&list) else { return };
        let answer = Answer::of(outcome).without_words();
        if let Answer::Result(page) = &answer {
            self.heard = Some((page.clone(), String::from_utf8_lossy(id.raw()).into_owned()));
        }
        // A page that is a whole list, and that was read before, is not read again.
        let known = self.lists.fetched.get(&list).and_then(|fetched| fetched.page_like(&answer));
        let step = match known.filter(|_| open.listing.page() == 1) {
            Some(known) => Step::Done(known),
            None => open.listing.hear(answer),
        };
        self.lists.heard = open.listing.take_only_page();
        match step {
            Step::Ask(cursor) => {
                let request = self.ask(list, Some(&cursor), out);
                if let Some(open) = self.lists.open.get_mut(&list) {
                    open.request = request;
                }
            }
            Step::Done(outcome) => {
                let begun = open.begun;
                self.lists.open.remove(&list);
                match self.lists.fetched.get_mut(&list) {
                    // What is kept is shared with the view: the same text is not kept twice.
                    Some(before) if before.outcome == outcome => before.begun = begun,
                    _ => {
                        let ttl = outcome.ttl().map(milliseconds);
                        self.lists.fetched.insert(list, Fetched { outcome, begun, ttl });
                        self.is_unjudged = true;
                    }
                }
                if self.lists.open.is_empty() {
                    self.take_in(now, out);
                }
                // Kept for no longer: it is as much memory as the page itself.
                self.lists.heard = None;
            }
        }
    }

    /// Ends what was asked for, and what waits for it. What was judged before does not count for it.
    pub(super) fn end_listings(&mut self, fault: Fault, why: &str, out: &mut Vec<Action>) {
        let ended: Vec<ListKind> = std::mem::take(&mut self.lists.open).into_keys().collect();
        ended.into_iter().for_each(|list| self.lists.outdate(list));
        for waiting in std::mem::take(&mut self.waiting) {
            let message = format!("○ holdpoint — {why}, so the server's contract is unknown");
            let refusal = fault.refusal(waiting.ticket, self.server.as_str(), message);
            out.push(Action::Refuse(refusal));
        }
    }

    /// Lets go what waited, or waits once more for a list that changed while it was fetched, or that was too old already when
    /// the message came.
    pub(super) fn release(&mut self, now: i64, out: &mut Vec<Action>) {
        for mut waiting in std::mem::take(&mut self.waiting) {
            let list = waiting.list;
            let is_behind = match waiting.joined_at {
                Some(at) => !self.lists.is_fresh(list, at, self.relist_max_age),
                None => self.lists.is_outdated(list),
            };
            if is_behind && !waiting.has_waited_twice {
                waiting.has_waited_twice = true;
                self.waiting.push(waiting);
                self.fetch(list, now, out);
            } else if self.lists.is_open(list) {
                self.waiting.push(waiting);
            } else {
                self.decide_kept(&waiting, out);
            }
        }
    }
}

fn milliseconds(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
