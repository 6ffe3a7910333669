//! Pages with statistics: the number of servers, coverage, the leaderboard, the queue, and the
//! state of the directory itself.

use super::server::{directive, failed_dimensions, quality};
use super::{Page, Query, ROWS, badge, day, minute, pager, server_link};
use crate::crawl::NotListed;
use crate::demand;
use crate::entry::{Moment, VisitOutcome};
use crate::log::anchor::AnchorState;
use crate::log::ots::Proof;
use crate::model::Server;
use crate::serve::plot::{Bar, Legend, bars};
use crate::serve::site::{Site, Snapshot};
use contract::change::{ChangeClass, ChangeKind};
use ledger::checkpoint::Checkpoint;
use ledger::note::split;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// The counts on the statistics page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) servers: usize,
    pub(super) npm: usize,
    pub(super) pypi: usize,
    pub(super) listed: usize,
    pub(super) releases: usize,
    pub(super) tools: usize,
    pub(super) drifts: usize,
    pub(super) safety_drifts: usize,
    pub(super) breaking_drifts: usize,
    pub(super) entries: u64,
    pub(super) directives: BTreeMap<String, usize>,
    pub(super) outcomes: BTreeMap<&'static str, usize>,
    /// Why the last visits got no contract.
    pub(super) causes: BTreeMap<&'static str, usize>,
    pub(super) failed: BTreeMap<String, usize>,
    pub(super) kinds: BTreeMap<String, usize>,
}

impl Counts {
    fn of(site: &Site, snapshot: &Snapshot) -> Counts {
        let (model, now) = (&snapshot.model, site.now());
        let servers = || model.servers.values();
        let with = |start: &str| servers().filter(|it| it.id.as_str().starts_with(start)).count();
        let mut counts = Counts {
            servers: model.servers.len(),
            npm: with("npm:"),
            pypi: with("pypi:"),
            listed: servers().filter(|server| server.outcome == VisitOutcome::Listed).count(),
            releases: servers().map(Server::releases).sum(),
            tools: servers().map(|server| server.tools.len()).sum(),
            drifts: model.drifts.len(),
            safety_drifts: model.drifts.iter().filter(|drift| drift.item.safety).count(),
            breaking_drifts: model
                .drifts
                .iter()
                .filter(|drift| crate::model::is_breaking(&drift.item))
                .count(),
            entries: model.size,
            ..Counts::default()
        };
        for server in servers() {
            *counts.directives.entry(directive(server, now).to_owned()).or_default() += 1;
            let outcome = match server.outcome {
                VisitOutcome::Listed => "listed",
                VisitOutcome::NotListed(reason) => reason.as_str(),
            };
            *counts.outcomes.entry(outcome).or_default() += 1;
            if let Some(cause) = server.visits.last().and_then(|visit| visit.cause) {
                *counts.causes.entry(cause.kind.summary()).or_default() += 1;
            }
            for dimension in failed_dimensions(server) {
                *counts.failed.entry(dimension.to_owned()).or_default() += 1;
            }
        }
        for drift in &model.drifts {
            for kind in &drift.item.kinds {
                *counts.kinds.entry(kind.clone()).or_default() += 1;
            }
        }
        counts
    }
}

pub(super) fn cards(site: &Site, snapshot: &Snapshot) -> Markup {
    let counts = Counts::of(site, snapshot);
    html! {
        ul.cards {
            li { b { (counts.servers) } "servers" }
            li { b { (counts.releases) } "releases" }
            li { b { (counts.tools) } "tools" }
            li { b { (counts.drifts) } "changes between releases" }
            li { b { (counts.safety_drifts) } "changes that concern safety" }
            li { b { (counts.entries) } "log entries" }
        }
    }
}

pub(super) fn stats(site: &Site, snapshot: &Snapshot) -> Page {
    let counts = Counts::of(site, snapshot);
    let pairs = |title: &str, about: &str, head: &str, rows: Vec<(String, usize)>| {
        html! {
            h2 { (title) }
            p.muted { (about) }
            @if rows.is_empty() { p.muted { "None." } } @else {
                table {
                    thead { tr { th scope="col" { (head) } th.number scope="col" { "Count" } } }
                    tbody { @for (name, count) in rows { tr { th scope="row" { (name) } td.number { (count) } } } }
                }
            }
        }
    };
    let owned = |map: &BTreeMap<String, usize>| {
        map.iter().map(|(name, count)| (name.clone(), *count)).collect::<Vec<_>>()
    };
    let outcomes = outcomes(&counts.outcomes);
    let kinds = kinds(owned(&counts.kinds));
    Page::new(
        "Numbers",
        html! {
            h1 { "Numbers" }
            p { "All of this is counted from the public log of " (counts.entries) " entries, so that you can count it again." }
            (cards(site, snapshot))
            table {
                tbody {
                    tr { th scope="row" { "npm packages" } td.number { (counts.npm) } }
                    tr { th scope="row" { "PyPI packages" } td.number { (counts.pypi) } }
                    tr { th scope="row" { "Servers that answered at the last visit" } td.number { (counts.listed) } }
                    tr { th scope="row" { "Changes that break calls" } td.number { (counts.breaking_drifts) } }
                }
            }
            (coverage(snapshot))
            (super::changes::over_time(snapshot))
            (pairs("Verdicts on servers", "REVIEW: the server's texts were read. UNVERIFIED: nothing is known.", "Verdict", owned(&counts.directives)))
            (outcomes)
            (pairs("Why visits read nothing", "What kept the newest visit to a server from reading it. Older entries of the log do not say it.", "Cause", counts.causes.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()))
            (pairs("Servers with findings", "A server is counted once for each dimension in which something was found at its newest release.", "Dimension", owned(&counts.failed)))
            (kinds)
        },
    )
}

/// How the last visits ended, with the meaning of each outcome.
fn outcomes(counts: &BTreeMap<&'static str, usize>) -> Markup {
    let meaning = |name: &str| match NotListed::from_word(name) {
        Some(reason) => reason.sentence(),
        None => "the server answered twice with the same lists",
    };
    html! {
        h2 { "Last visits" }
        p.muted { "How the newest visit to each server ended." }
        table {
            thead { tr { th scope="col" { "Outcome" } th scope="col" { "Meaning" } th.number scope="col" { "Count" } } }
            tbody { @for (name, count) in counts { tr { th scope="row" { (name) } td { (meaning(name)) } td.number { (count) } } } }
        }
    }
}

/// The kinds of change, most frequent first, with what a change of each kind can do.
fn kinds(mut counts: Vec<(String, usize)>) -> Markup {
    counts.sort_by(|(a, m), (b, n)| n.cmp(m).then(a.cmp(b)));
    let class =
        |name: &str| ChangeKind::ALL.iter().find(|kind| kind.as_str() == name).map(|it| it.class());
    let meaning = |class| match class {
        ChangeClass::Metadata => "changes no call",
        ChangeClass::Widening => "accepts more than before",
        ChangeClass::Additive => "adds something",
        ChangeClass::Text => "changes words that the model reads",
        ChangeClass::Behavioral => "announces another behavior",
        ChangeClass::Breaking => "can break calls that worked",
        ChangeClass::FailSafe => "cannot be compared",
        ChangeClass::Marker => "adds suspicious words",
    };
    html! {
        h2 { "Kinds of change" }
        p.muted { "One change can be of several kinds." }
        @if counts.is_empty() { p.muted { "None." } } @else {
            table {
                thead { tr { th scope="col" { "Kind" } th scope="col" { "Meaning" } th.number scope="col" { "Count" } } }
                tbody { @for (name, count) in counts { tr { th scope="row" { (name) } td { (class(&name).map_or("", meaning)) } td.number { (count) } } } }
            }
        }
    }
}

/// How many servers were listed at the end of each day, with and without a contract.
fn coverage(snapshot: &Snapshot) -> Markup {
    let mut days: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for server in snapshot.model.servers.values() {
        let day: String = server.first_at.to_string().chars().take(10).collect();
        let count = days.entry(day).or_default();
        match server.last_surface() {
            Some(_) => count.0 += 1,
            None => count.1 += 1,
        }
    }
    let (mut with, mut without) = (0, 0);
    let shown: Vec<Bar> = days
        .into_iter()
        .map(|(label, (more_with, more_without))| {
            (with, without) = (with + more_with, without + more_without);
            Bar { label, parts: vec![with, without] }
        })
        .collect();
    bars(
        "Coverage: servers in the directory, by day",
        "coverage",
        &Legend { names: &["read", "not read yet"], first_colour: 2 },
        &shown,
    )
}

pub(super) fn leaderboard(site: &Site, snapshot: &Snapshot, query: &Query<'_>) -> Page {
    let now = site.now();
    let mut ranked: Vec<(&Server, f64)> = snapshot
        .model
        .servers
        .values()
        .filter(|server| failed_dimensions(server).is_empty() && server.surface.is_some())
        .map(|server| (server, quality(server, now).total()))
        .collect();
    ranked.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.id.cmp(&b.id)));
    let left_out = snapshot.model.servers.len() - ranked.len();
    let page = query.page();
    let rows = ranked.iter().enumerate().skip(page.saturating_mul(ROWS)).take(ROWS);
    Page::new(
        "Quality",
        html! {
            h1 { "Quality" }
            p { "How mature a server looks by public facts, from 0 to 100: how fresh the release is, whether it is described, whether it starts, how well its tools are documented, and whether its versions announce breaking changes. It says nothing about safety. " a href="/methodology" { "The formula" } }
            @if left_out > 0 {
                p.muted { "Left out: " (left_out) @if left_out == 1 { " server" } @else { " servers" } " that could not be read, or in whose texts something was found." }
            }
            div.scroll tabindex="0" role="region" aria-label="Quality" {
                table.ranking {
                    thead { tr { th.number scope="col" { "Rank" } th scope="col" { "Server" } th.number scope="col" { "Score" } th scope="col" { "Verdict" } } }
                    tbody {
                        @for (rank, (server, score)) in rows {
                            tr {
                                td.number { (rank + 1) }
                                th scope="row" { (server_link(&server.id)) }
                                td.number { (format!("{score:.1}")) }
                                td { (badge(directive(server, now))) }
                            }
                        }
                    }
                }
            }
            (pager("/leaderboard", "", page, ranked.len()))
        },
    )
}

pub(super) fn queue(site: &Site, snapshot: &Snapshot, query: &Query<'_>) -> Page {
    let networks = site.demand().networks(&snapshot.model).unwrap_or_default();
    let queue = demand::queue(&snapshot.model, &networks);
    let page = query.page();
    let rows = queue.iter().enumerate().skip(page.saturating_mul(ROWS)).take(ROWS);
    Page::new(
        "Queue",
        html! {
            h1 { "What is looked at next" }
            p { "The crawler visits the servers that are due in this order: first those with findings or with changes that concern safety, then those that most networks looked up in the last seven days, then those whose last entry is oldest. Look-ups are counted by salted hashes of networks, and only for servers that are in this directory." }
            div.scroll tabindex="0" role="region" aria-label="Queue" {
                table {
                    thead { tr { th.number scope="col" { "Place" } th scope="col" { "Server" } th scope="col" { "Comes first because of" } th.number scope="col" { "Networks that asked" } th scope="col" { "Last entry" } } }
                    tbody {
                        @for (place, queued) in rows {
                            tr {
                                td.number { (place + 1) }
                                th scope="row" { (server_link(queued.server)) }
                                td { @if queued.is_alarming { "findings or changes that concern safety" } }
                                td.number { (queued.networks) }
                                td { (day(Moment(queued.since))) }
                            }
                        }
                    }
                }
            }
            (pager("/queue", "", page, queue.len()))
        },
    )
}

pub(super) fn status(site: &Site, snapshot: &Snapshot) -> Page {
    let checkpoint =
        snapshot.note.as_deref().and_then(split).and_then(|(text, _)| Checkpoint::read(text).ok());
    let signatures =
        snapshot.note.as_deref().and_then(split).map_or(0, |(_, lines)| lines.lines().count());
    let anchors = site.database().anchors(20).unwrap_or_default();
    Page::new(
        "Status",
        html! {
            h1 { "Status" }
            p { "The state of the signed log that all pages are made from, and of what vouches for it from outside." }
            dl {
                dt { "Log" }
                @match &checkpoint {
                    Some(checkpoint) => { dd { (checkpoint.size) " entries, root " code { (checkpoint.root.base64()) } } }
                    None => { dd { "nothing is published yet" } }
                }
                dt { "Newest entry" } dd { @match snapshot.model.last_at() { Some(at) => (minute(at)), None => "none" } }
                dt { "Cosignatures of witnesses" }
                dd { (signatures.saturating_sub(1)) @if signatures <= 1 { ": without a witness, this log could show different histories to different readers" } }
                @if let Some(url) = &site.parts().mirror_of { dt { "Mirror of" } dd { (url) } }
                dt { "Contact" } dd { (site.parts().contact) }
            }
            h2 { "Anchors" }
            p.muted { "An anchor shows that the log had its first entries before a block of the Bitcoin chain was made." }
            @if anchors.is_empty() { p.muted { "None: no calendar is configured, or none has answered yet." } } @else {
                table {
                    thead { tr { th.number scope="col" { "Entries" } th scope="col" { "Submitted" } th scope="col" { "State" } } }
                    tbody {
                        @for anchor in &anchors {
                            tr {
                                td.number { (anchor.size) }
                                td { (minute(Moment(anchor.at))) }
                                td { @match Proof::read(&anchor.proof) { Ok(proof) => (AnchorState::of(&proof)), Err(_) => "unreadable" } }
                            }
                        }
                    }
                }
            }
        },
    )
}
