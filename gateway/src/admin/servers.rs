//! Reports on servers: their status, what waits and since when, and everything that is pinned.

use super::access::Access;
use super::refusal::AdminError;
use super::{AdminInput, AdminVisit};
use crate::catalog::CatalogServer;
use crate::inventory::inventory_of;
use crate::metrics::Scrape;
use crate::node::Node;
use contract::surface::{Entry, EntryId, EntryType, ListKind, Surface};
use engine::acts::{RecordedServer, Review, Since};
use engine::consult::Opinions;
use engine::document::{EntryDocument, VerdictDocument};
use engine::network::NetworkFolder;
use engine::recorder::now;
use engine::server_text::{Printable, ServerText};
use gate::pins::EntryPins;
use gate::posture::Settings;
use gate::server::ServerId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{IncidentStore, Store, Witnessed};

impl AdminVisit {
    /// The state of every server that the caller may see.
    pub(super) fn servers(&self, access: &Access) -> Result<Value, AdminError> {
        let store = self.node.shared.open_store()?;
        let catalog = self.node.catalog();
        let mut servers = Vec::new();
        for (id, known) in catalog.servers.iter().filter(|(id, _)| access.has(id)) {
            let review = self.review(&store, id)?;
            servers.push(summary(&self.node, known, &review, &store)?);
        }
        let is_incident = store.incident()?.incident.is_some();
        Ok(json!({"incident": is_incident, "servers": servers}))
    }

    /// One server in full: what waits, before and after, and what is pinned.
    pub(super) fn server(&self, id: &ServerId, input: &AdminInput) -> Result<Value, AdminError> {
        // A person may read unaccepted text; an agent must not find here what was kept from it.
        let text = match input.switch("server_text")? {
            true => {
                self.need_user()?;
                ServerText::Shown
            }
            false => ServerText::Located,
        };
        let store = self.node.shared.open_store()?;
        let catalog = self.node.catalog();
        let known =
            catalog.servers.get(id).ok_or_else(|| AdminError::UnknownServer(id.to_string()))?;
        let review = self.review(&store, id)?;
        let since = Since::read(&store.history(id)?);
        let mut waiting: Vec<Value> =
            review.waiting().map(|entry| waiting(entry, &review, since, text)).collect();
        // The server's text may have steered the model, so its opinion is only for people, as the
        // text is.
        if self.is_user() {
            let folder = NetworkFolder::of(self.node.shared.home.path());
            add_opinions(&mut waiting, &review, &Opinions::read(&folder), text);
        }
        let judgement = &review.judgement;
        let mut verdict = VerdictDocument::of(judgement, text);
        if review.status() == gate::server::ServerStatus::Quarantined {
            verdict.quarantined();
        }
        let unreadable: Vec<_> =
            judgement.unreadable.iter().map(|words| text.unreadable(words)).collect();
        let mut document = summary(&self.node, known, &review, &store)?;
        if let Value::Object(members) = &mut document {
            members.insert("waiting".to_owned(), waiting.into());
            members.insert("unreadable".to_owned(), json!(unreadable));
            members.insert("check".to_owned(), json!(verdict));
            members.insert("entries".to_owned(), entries(&review).into());
        }
        Ok(document)
    }

    /// The accepted tools of each server.
    pub(super) fn inventory(&self, access: &Access) -> Result<Value, AdminError> {
        let store = self.node.shared.open_store()?;
        let settings = &self.node.shared.settings();
        let permitted = settings.servers.values().filter(|server| access.has(&server.id));
        let servers: Result<Vec<Value>, _> = permitted
            .map(|server| inventory_of(server, &store, self.node.shared.home.path()))
            .collect();
        Ok(json!({"servers": servers?}))
    }

    pub(super) fn review(&self, store: &Witnessed, id: &ServerId) -> Result<Review, AdminError> {
        let settings = self.node.judging(id);
        Ok(Review::of(RecordedServer::read(store, id, settings, now())?)?)
    }
}

impl Node {
    /// The settings for judging a server. Servers that other gates added to the store are judged
    /// with the defaults.
    pub(super) fn judging(&self, id: &ServerId) -> Settings {
        let settings = &self.shared.settings();
        match settings.servers.get(id) {
            Some(server) => settings.engine_keys(server).judging(None),
            None => Settings::default(),
        }
    }

    /// Counters since the gateway started.
    pub(super) fn stats(&self) -> Value {
        let scrape = Scrape::of(self);
        let mut requests: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for (method, decision, count) in scrape.requests.iter().filter(|(.., count)| *count > 0) {
            requests.entry(method).or_default().insert(decision, *count);
        }
        let servers: Vec<Value> = scrape
            .servers
            .iter()
            .map(|server| {
                json!({
                    "id": server.id,
                    "links": server.links,
                    "children": server.children,
                    "breaker": if server.is_breaker_open { "open" } else { "closed" },
                })
            })
            .collect();
        let mean = |latency: &crate::counts::LatencySnapshot| match latency.count {
            0 => None,
            #[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
            count => Some((latency.sum_seconds * 1_000_000.0 / count as f64).round()),
        };
        json!({
            "started_at": self.started_at,
            "requests": requests,
            "outcomes": scrape.outcomes.iter().copied().collect::<BTreeMap<_, _>>(),
            "latency_us_mean": {"ours": mean(&scrape.ours), "theirs": mean(&scrape.theirs)},
            "receipts": {"written": scrape.receipts, "failed": scrape.receipts_failed},
            "strangers_refused": scrape.strangers,
            "sessions_begun": scrape.sessions_begun,
            "streams": scrape.streams,
            "calls_in_flight": scrape.in_flight,
            "statuses": scrape.statuses,
            "servers": servers,
        })
    }
}

/// The state of a server, with the member names of `status --json`.
fn summary(
    node: &Node,
    known: &CatalogServer,
    review: &Review,
    store: &Witnessed,
) -> Result<Value, AdminError> {
    let settings = &known.server.settings;
    let snapshot = &review.server.snapshot;
    let (server, observation) = (snapshot.server.as_ref(), snapshot.observation.as_ref());
    let mut pinned: BTreeMap<&str, usize> = BTreeMap::new();
    let mut basis: BTreeMap<&str, usize> = BTreeMap::new();
    let accepted = review.server.pins().iter().filter(|(_, pins)| !pins.is_gone());
    for (id, pins) in accepted {
        *pinned.entry(id.entry_type.as_str()).or_default() += 1;
        if let Some(pin) = pins.accepted() {
            *basis.entry(pin.basis.as_str()).or_default() += 1;
        }
    }
    let held = review.waiting().filter(|entry| entry.verdict.is_held()).count();
    let deferred = review.waiting().filter(|entry| entry.is_deferred).count();
    let since = Since::read(&store.history(&settings.id)?);
    let since = review.waiting().filter_map(|entry| since.of(entry)).min();
    let numbers = known.server.numbers();
    Ok(json!({
        "id": settings.id,
        "status": review.status(),
        "posture": review.judgement.posture,
        "trust": settings.trust.as_str(),
        "risk": settings.risk.as_str(),
        "orgs": settings.orgs,
        "first_seen": server.map(|server| server.first_seen),
        "last_seen": server.map(|server| server.last_seen),
        "observed_at": observation.map(|observation| observation.observed_at),
        "shared_with": review.server.siblings,
        "pinned": pinned,
        "basis": basis,
        "held": held,
        "deferred": deferred,
        "since": since,
        "surface_hash": review.surface.as_ref().map(Surface::surface_hash),
        "tools_served": tools_served(known),
        "links": numbers.links,
        "children": numbers.children,
        "breaker": if numbers.is_breaker_open { "open" } else { "closed" },
        "calls_in_flight": numbers.calls,
        "rechecked_at": node.rechecks.last(&settings.id),
        "lost": review.server.pins().lost,
    }))
}

/// How many tools callers can find, policies permitting.
fn tools_served(known: &CatalogServer) -> usize {
    let situation = known.situation.as_ref().filter(|situation| !situation.is_closed());
    let list = situation.and_then(|situation| situation.view.list(ListKind::Tools));
    list.map_or(0, |list| list.entries().count())
}

fn waiting(
    entry: &gate::judge::Judgement,
    review: &Review,
    since: Since,
    text: ServerText,
) -> Value {
    let printable = Printable::new(entry, text);
    let mut document = json!(EntryDocument::of(entry, text));
    if let Value::Object(members) = &mut document {
        members.insert("since".to_owned(), json!(since.of(entry)));
        members.insert("first_approval".to_owned(), review.awaits_first_approval().into());
        members.insert("before".to_owned(), json!(printable.before().map(Entry::raw)));
        members.insert("after".to_owned(), json!(printable.after().map(Entry::raw)));
        if let Some(withheld) = printable.withheld() {
            members.insert("withheld".to_owned(), json!(withheld));
        }
    }
    document
}

/// Adds the model's opinions to the waiting definitions.
fn add_opinions(waiting: &mut [Value], review: &Review, opinions: &Opinions, text: ServerText) {
    for (document, entry) in waiting.iter_mut().zip(review.waiting()) {
        let kept = entry.after.as_ref().and_then(|after| opinions.newest(after.entry_hash()));
        if let (Value::Object(members), Some(kept)) = (document, kept) {
            let opinion = kept.document(text == ServerText::Shown);
            members.insert("opinion".to_owned(), opinion);
        }
    }
}

/// Everything that is pinned, without texts.
fn entries(review: &Review) -> Vec<Value> {
    let accepted = review.server.pins().iter();
    let accepted = accepted.filter_map(|(id, pins): (&EntryId, &EntryPins)| {
        let pin = pins.accepted().filter(|_| !pins.is_gone())?;
        let is_tool = id.entry_type == EntryType::Tool;
        Some(json!({
            "type": id.entry_type,
            "key": id.key,
            "entry_hash": pin.entry.entry_hash(),
            "definition_hash": is_tool.then(|| pin.entry.definition_hash()).flatten(),
            "basis": pin.basis,
            "at": pin.at,
            "by": pin.by,
        }))
    });
    accepted.collect()
}
