//! The server's last known surface, judged: the standing of each entry, and what the client sees of
//! it.
//!
//! A call costs one lookup, however many entries there are. A view is immutable; a new one is built
//! when the server or the pins change.

mod address;
mod answer;
mod by_the_call;
mod handshake;
mod lists;
mod ruling;
mod shape;
mod standing;
mod visible;

pub use answer::{ListAnswer, answer_list};
pub use by_the_call::{HeldTools, MAX_HELD_TOOLS};
pub use handshake::{handshake_surface, shaped_handshake};
pub use lists::{ListView, Page};
pub use ruling::{Use, UseRuling};
pub use shape::with_member;
pub use standing::Standing;
pub use visible::{FilteredPage, Visible};

use address::AddressKey;

use crate::by_the_call::CallRulesCache;
use crate::judge::{Judgement, SurfaceJudgement};
use crate::method::Target;
use crate::pins::PinBook;
use crate::posture::{Posture, Settings};
use crate::reason::Reason;
use crate::server::ServerStatus;
use crate::shown::{ListMode, shown, shown_entries};
use crate::stub::{Stub, stubs};
use crate::words::Reviewer;
use contract::sorted::SortedMap;
use contract::surface::{Entry, EntryBody, EntryId, EntryType, ListKind, Surface};
use std::collections::HashMap;
use std::sync::Arc;

/// How far a held entry's effect reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftScope {
    /// Only the entry itself is held.
    #[default]
    Tool,
    /// While anything is held, nothing of the server is served.
    Server,
}

/// What a view is built from.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Materials<'a> {
    /// The person to name in refusals as the one who decides.
    pub reviewer: Reviewer<'a>,
    pub status: ServerStatus,
    pub book: &'a PinBook,
    pub surface: &'a Surface,
    pub judgement: &'a SurfaceJudgement,
    pub settings: &'a Settings,
    pub mode: ListMode,
    pub scope: DriftScope,
    /// Whether a client may see an entry, accepted or not.
    pub is_offered: &'a dyn Fn(&EntryId) -> bool,
    /// Whether the arguments of calls are checked against the definitions.
    pub checks_input: bool,
    /// The server's original responses for each list.
    pub pages: &'a SortedMap<ListKind, Arc<Vec<Arc<str>>>>,
    /// The rules that were already made for changes.
    pub call_rules: &'a CallRulesCache,
}

/// The standing of an entry.
#[derive(Debug, Clone)]
enum Place {
    Unchanged(EntryBody),
    Changed(Arc<Standing>),
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy)]
pub enum Found<'v> {
    /// The entry matches its accepted version.
    Unchanged(&'v EntryBody),
    /// The entry changed; the standing says what that means for a call.
    Changed(&'v Arc<Standing>),
    /// Neither the pins nor the server have it.
    Unknown,
}

#[derive(Debug, Default)]
pub struct View {
    places: SortedMap<EntryType, HashMap<Box<str>, Place>>,
    lists: SortedMap<ListKind, ListView>,
    /// Lists that could not be read unambiguously: their entries are held, and the lists are not
    /// shown.
    unreadable: HashMap<ListKind, Arc<Standing>>,
    /// If set, the reason why only the handshake, `ping` and our own lists are forwarded.
    stopped: Option<Arc<Standing>>,
    /// If set, the reason why no call proceeds and no list is shown.
    closed: Option<Arc<Standing>>,
    /// The held resources, by normalized address.
    held_addresses: HashMap<AddressKey, Arc<Standing>>,
    /// The definitions that arguments are checked against, if they are checked.
    definitions: HashMap<Box<str>, Entry>,
    /// The accepted instructions, unless the server may not be used.
    instructions: Option<Box<str>>,
    /// The accepted capabilities of the server, as JSON.
    capabilities: Option<Box<str>>,
}

impl View {
    pub fn of(materials: &Materials<'_>) -> View {
        let mut places: SortedMap<EntryType, HashMap<Box<str>, Place>> = SortedMap::new();
        for entry in materials.surface.entries() {
            let place = Place::Unchanged(entry.body().clone());
            places.get_or_default(entry.entry_type()).insert(entry.key().into(), place);
        }
        let mut held_server = None;
        for judgement in &materials.judgement.entries {
            let standing = Arc::new(Standing::of(judgement, materials));
            if holds_server(judgement) {
                held_server.get_or_insert_with(|| standing.clone());
            }
            let of_type = places.get_or_default(judgement.id.entry_type);
            of_type.insert(judgement.id.key.as_str().into(), Place::Changed(standing));
        }
        let Materials { reviewer, book, surface, judgement, mode, .. } = *materials;
        let stubs = stubs(reviewer, book, surface, judgement, mode);
        if let Some(tools) = places.get_mut(&EntryType::Tool) {
            add_stubs(tools, &stubs);
        }
        let stopped = stopped_by_status(materials).or(held_server);
        let closed = stopped.clone().or_else(|| closed_by_scope(materials));
        let definitions = definitions(materials);
        let lists = ListKind::ALL
            .into_iter()
            .filter_map(|list| {
                let stubs = if list == ListKind::Tools { stubs.as_slice() } else { &[] };
                Some((list, list_view(materials, list, closed.is_some(), stubs)?))
            })
            .collect();
        let unreadable = unreadable(materials);
        let held_addresses = held_addresses(&places);
        let instructions = match closed {
            Some(_) => None,
            None => handshake::accepted_instructions(book, surface, judgement),
        };
        let capabilities = handshake::accepted_capabilities(book, surface, judgement);
        View {
            capabilities,
            places,
            lists,
            unreadable,
            stopped,
            closed,
            held_addresses,
            definitions,
            instructions,
        }
    }

    pub fn stopped(&self) -> Option<&Arc<Standing>> {
        self.stopped.as_ref()
    }

    /// Why the server may not be used: it is stopped, or held as a whole.
    pub fn closed(&self) -> Option<&Arc<Standing>> {
        self.closed.as_ref()
    }

    pub fn find(&self, target: Target<'_>) -> Found<'_> {
        if let Some(closed) = &self.closed {
            return Found::Changed(closed);
        }
        match self.places.get(&target.entry_type).and_then(|of_type| of_type.get(target.key)) {
            Some(Place::Unchanged(body)) => Found::Unchanged(body),
            Some(Place::Changed(standing)) => Found::Changed(standing),
            None => self.held_address(target).map_or(Found::Unknown, Found::Changed),
        }
    }

    /// A held resource is held under every spelling of its address.
    fn held_address(&self, target: Target<'_>) -> Option<&Arc<Standing>> {
        if target.entry_type != EntryType::Resource || self.held_addresses.is_empty() {
            return None;
        }
        let key = AddressKey::of(target.key);
        let found = self.held_addresses.get(&key);
        found.or_else(|| self.held_addresses.get(&key.without_query()?))
    }

    /// The definition of a tool that the client saw: the approved one, except under monitor.
    pub fn definition(&self, target: Target<'_>) -> Option<&Entry> {
        let is_tool = target.entry_type == EntryType::Tool;
        self.definitions.get(target.key).filter(|_| is_tool)
    }

    /// The standing of an entry that neither the pins nor the server have.
    pub fn unknown(&self, target: Target<'_>, reviewer: Reviewer<'_>) -> Arc<Standing> {
        let list = target.entry_type.list();
        if let Some(standing) = list.and_then(|list| self.unreadable.get(&list)) {
            return standing.clone();
        }
        Arc::new(Standing::for_server(Reason::NoPin, reviewer, Some(target)))
    }

    /// Why a list cannot be shown, if it could not be read.
    pub fn unreadable(&self, list: ListKind) -> Option<&Arc<Standing>> {
        self.unreadable.get(&list)
    }

    /// The server's accepted capabilities as JSON.
    pub fn capabilities(&self) -> Option<&str> {
        self.capabilities.as_deref()
    }

    /// The server's accepted instructions.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    pub fn list(&self, list: ListKind) -> Option<&ListView> {
        self.lists.get(&list)
    }

    /// Whether any list is known yet.
    pub fn has_lists(&self) -> bool {
        !self.lists.is_empty()
    }

    /// Whether the server is known not to have a list, because it was asked.
    pub fn lacks(&self, list: ListKind) -> bool {
        self.has_lists() && !self.lists.contains_key(&list) && !self.unreadable.contains_key(&list)
    }

    /// Whether a client would see the same list in both views.
    pub fn is_shown_like(&self, other: &View, list: ListKind) -> bool {
        match (self.lists.get(&list), other.lists.get(&list)) {
            (Some(ours), Some(theirs)) => self.is_closed_like(other) && ours.shows_the_same(theirs),
            (None, None) => true,
            _ => false,
        }
    }

    /// A refused list differs from an empty one, and the refusal's text says what a person has to
    /// do.
    fn is_closed_like(&self, other: &View) -> bool {
        let ours = self.closed.as_ref().map(|standing| standing.message());
        ours == other.closed.as_ref().map(|standing| standing.message())
    }
}

fn definitions(materials: &Materials<'_>) -> HashMap<Box<str>, Entry> {
    let Materials { book, surface, judgement, mode, .. } = *materials;
    if !materials.checks_input {
        return HashMap::new();
    }
    let tools = shown_entries(book, surface, judgement, ListKind::Tools, mode).into_iter();
    tools.map(|(id, entry)| (id.key.as_str().into(), entry.clone())).collect()
}

/// Makes a call of a stub equivalent to a call of the tool that it represents.
fn add_stubs(tools: &mut HashMap<Box<str>, Place>, stubs: &[Stub<'_>]) {
    for stub in stubs.iter().filter(|stub| stub.name != stub.id.key) {
        if let Some(place) = tools.get(stub.id.key.as_str()).cloned() {
            tools.entry(stub.name.as_str().into()).or_insert(place);
        }
    }
}

fn held_addresses(
    places: &SortedMap<EntryType, HashMap<Box<str>, Place>>,
) -> HashMap<AddressKey, Arc<Standing>> {
    let resources = places.get(&EntryType::Resource).into_iter().flatten();
    resources
        .filter_map(|(address, place)| match place {
            Place::Changed(standing) if standing.is_held() => {
                Some((AddressKey::of(address), standing.clone()))
            }
            Place::Changed(_) | Place::Unchanged(_) => None,
        })
        .collect()
}

/// Identity and origin are about the server as a whole.
fn holds_server(judgement: &Judgement) -> bool {
    matches!(judgement.id.entry_type, EntryType::Identity | EntryType::Origin)
        && judgement.verdict.is_held()
}

fn stopped_by_status(materials: &Materials<'_>) -> Option<Arc<Standing>> {
    let reason = match materials.status {
        ServerStatus::Quarantined => Reason::ServerQuarantined,
        ServerStatus::Pending => Reason::ServerPending,
        ServerStatus::Unbaselined | ServerStatus::Verified | ServerStatus::Changed => {
            let is_lost = materials.book.lost.is_some();
            let is_holding = materials.settings.posture != Posture::Monitor;
            return (is_lost && is_holding).then(|| {
                Arc::new(Standing::for_server(Reason::BaselineLost, materials.reviewer, None))
            });
        }
    };
    Some(Arc::new(Standing::for_server(reason, materials.reviewer, None)))
}

fn closed_by_scope(materials: &Materials<'_>) -> Option<Arc<Standing>> {
    let is_held = materials.judgement.held().next().is_some();
    (materials.scope == DriftScope::Server && is_held)
        .then(|| Arc::new(Standing::for_server(Reason::ServerChanged, materials.reviewer, None)))
}

fn unreadable(materials: &Materials<'_>) -> HashMap<ListKind, Arc<Standing>> {
    if materials.settings.posture == Posture::Monitor {
        return HashMap::new();
    }
    let standing = |list: &ListKind| {
        Arc::new(Standing::for_list(Reason::SurfaceUnreadable, materials.reviewer, *list))
    };
    materials.surface.unreadable().keys().map(|list| (*list, standing(list))).collect()
}

fn list_view(
    materials: &Materials<'_>,
    list: ListKind,
    is_closed: bool,
    stubs: &[Stub<'_>],
) -> Option<ListView> {
    let pages = materials.pages.get(&list);
    if is_closed {
        // The list is refused rather than shown, but it is known that the server has one.
        let is_there = pages.is_some() || materials.surface.unreadable().contains_key(&list);
        return is_there.then(|| ListView::of(list, &[], &[], true));
    }
    let pages = pages?;
    let Materials { book, surface, judgement, mode, .. } = *materials;
    if judgement.posture == Posture::Monitor && surface.unreadable().contains_key(&list) {
        // Monitor shows what the server reported, even if no entry could be read from it.
        return Some(ListView::verbatim(list, pages));
    }
    let mut entries = shown(book, surface, judgement, list, mode);
    entries.extend(stubs.iter().map(|stub| (stub.id, stub.definition.as_str())));
    entries.retain(|(id, _)| (materials.is_offered)(id));
    let is_as_sent = || {
        let mut shown = entries.iter().map(|(_, raw)| *raw);
        // Most entries share the observed text, so comparing pointers is usually enough.
        let is_shown = |observed: &str| {
            shown.next().is_some_and(|shown| std::ptr::eq(shown, observed) || shown == observed)
        };
        surface.list(list).map(contract::surface::Entry::raw).all(is_shown)
            && shown.next().is_none()
    };
    let shows_all = mode == ListMode::Observed || judgement.posture == Posture::Monitor;
    if let [page] = pages.as_slice()
        && surface.unreadable().is_empty()
        && is_as_sent()
        && let Some(array) = lists::shown_array(list, page.as_bytes(), &entries, shows_all)
        && lists::consists_of(array, &entries)
    {
        return Some(ListView::as_sent(list, pages, array, &entries));
    }
    Some(ListView::of(list, pages, &entries, shows_all))
}
