//! Pages on changes: of servers (drift), and of the directory itself (changelog, advisories).

use super::{Page, Query, ROWS, day, minute, pager, server_link, shown, tool_link};
use crate::entry::Moment;
use crate::model::{Drift, is_breaking};
use crate::serve::plot::{Bar, Legend, bars};
use crate::serve::site::{Site, Snapshot};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// The number of changes on the front page.
const NEWEST: usize = 8;

pub(super) fn newest(snapshot: &Snapshot) -> Markup {
    html! {
        h2 { "Newest changes" }
        @if snapshot.model.drifts.is_empty() { p.muted { "None yet." } }
        @else { (table(snapshot.model.drifts.iter().rev().take(NEWEST).map(AsRef::as_ref))) p { a href="/drift" { "All changes" } } }
    }
}

pub(super) fn drift(_: &Site, snapshot: &Snapshot, query: &Query<'_>) -> Page {
    let only_safety = query.get("only").as_deref() == Some("safety");
    let all: Vec<&Drift> = snapshot
        .model
        .drifts
        .iter()
        .rev()
        .map(AsRef::as_ref)
        .filter(|drift| !only_safety || drift.item.safety)
        .collect();
    let page = query.page();
    let rows = all.iter().skip(page.saturating_mul(ROWS)).take(ROWS).copied();
    Page::new(
        "Drift",
        html! {
            h1 { "Drift: what changed" }
            p { "Every change in what a server says of its tools, from one release to the next or from one visit to the next. The page of a tool shows it before and after. A change is not an accusation: most are ordinary work." }
            p { "A change " em { "concerns safety" } " if it changes words that the model reads or what a call does. " a href="/stats" { "Kinds of change" } }
            (over_time(snapshot))
            form method="get" action="/drift" {
                div {
                    label for="only" { "Show" }
                    select id="only" name="only" {
                        option value="" { "all changes" }
                        @if only_safety { option value="safety" selected { "changes that concern safety" } }
                        @else { option value="safety" { "changes that concern safety" } }
                    }
                }
                button type="submit" { "Show" }
            }
            p.muted { (all.len()) " changes." }
            (table(rows))
            (pager("/drift", if only_safety { "only=safety&" } else { "" }, page, all.len()))
        },
    )
}

fn table<'d>(rows: impl Iterator<Item = &'d Drift>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Changes" {
            table {
                thead { tr { th scope="col" { "Server" } th scope="col" { "What" } th scope="col" { "Kind of change" } th scope="col" { "Releases" } th scope="col" { "Seen" } } }
                tbody {
                    @for drift in rows {
                        tr {
                            th scope="row" { (server_link(&drift.server)) }
                            td {
                                @if drift.item.entry_type == "tool" { (tool_link(&drift.server, &drift.item.name)) }
                                @else { (drift.item.entry_type) " " (shown(&drift.item.name)) }
                            }
                            td.kinds { (drift.item.kinds.join(", ")) @if drift.item.safety { " " span.badge.fail { "safety" } } }
                            td { @if let Some(after) = &drift.release_after { (drift.release_before.as_deref().unwrap_or("")) " → " (after) } }
                            td { (day(drift.at)) }
                        }
                    }
                }
            }
        }
    }
}

/// Changes by the month in which the changed release was published.
pub(super) fn over_time(snapshot: &Snapshot) -> Markup {
    let mut months: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for server in snapshot.model.servers.values() {
        for drift in &server.drifts {
            let visit = server
                .visits
                .iter()
                .find(|visit| visit.release == drift.release_after && visit.number >= drift.number);
            let at = visit.and_then(|visit| visit.published_at).unwrap_or(drift.at);
            let month: String = at.to_string().chars().take(7).collect();
            let [breaking, safety, other] = months.entry(month).or_default();
            match (is_breaking(&drift.item), drift.item.safety) {
                (true, _) => *breaking += 1,
                (false, true) => *safety += 1,
                (false, false) => *other += 1,
            }
        }
    }
    let shown: Vec<Bar> =
        months.into_iter().map(|(label, parts)| Bar { label, parts: parts.to_vec() }).collect();
    let legend = Legend { names: &["breaks calls", "concerns safety", "other"], first_colour: 0 };
    bars("Drift over time, by the month of the release", "drift-over-time", &legend, &shown)
}

pub(super) fn changelog(_: &Site, snapshot: &Snapshot, query: &Query<'_>) -> Page {
    let model = &snapshot.model;
    let page = query.page();
    let mut rows: Vec<(Moment, u64, Markup)> = model
        .methodologies
        .iter()
        .map(|(at, number, hash, version)| {
            let line = html! { a href="/methodology" { "Methodology" } " version " (version) ", " code { (hash.get(..16).unwrap_or_default()) } };
            (*at, *number, line)
        })
        .collect();
    for server in model.servers.values() {
        for visit in &server.visits {
            let line = html! {
                (server_link(&server.id)) @if let Some(release) = &visit.release { " " (release) } ": "
                (super::server::outcome_text(visit))
                @if visit.surface.is_some() { ", " (visit.tools) @if visit.tools == 1 { " tool" } @else { " tools" } }
            };
            rows.push((visit.at, visit.number, line));
        }
    }
    for (at, number, advisory) in &model.advisories {
        let line = html! { a href="/advisories" { "Advisory" } " " (shown(&advisory.id)) ": " (advisory.finding.as_str()) };
        rows.push((*at, *number, line));
    }
    rows.sort_by_key(|(_, number, _)| std::cmp::Reverse(*number));
    let count = rows.len();
    Page::new(
        "Changelog",
        html! {
            h1 { "Changelog" }
            p { "What this directory has said, newest first: every visit with its verdict, every advisory and every change of the methodology. The number is that of the entry in the public log." }
            div.scroll tabindex="0" role="region" aria-label="Changelog" {
                table {
                    thead { tr { th.number scope="col" { "Entry" } th scope="col" { "When" } th scope="col" { "What" } } }
                    tbody {
                        @for (at, number, line) in rows.iter().skip(page.saturating_mul(ROWS)).take(ROWS) {
                            tr { td.number { (number) } td { (minute(*at)) } td { (line) } }
                        }
                    }
                }
            }
            (pager("/changelog", "", page, count))
        },
    )
}

pub(super) fn advisories(snapshot: &Snapshot) -> Page {
    Page::new(
        "Advisories",
        html! {
            h1 { "Advisories" }
            p { "Definitions that the operator found dangerous, and findings that no longer count. Members of the network join them with what their agents called." }
            @if snapshot.model.advisories.is_empty() { p.muted { "None has been issued." } }
            @for (at, number, advisory) in snapshot.model.advisories.iter().rev().take(200) {
                h2 { (shown(&advisory.id)) }
                p { (minute(*at)) ", entry " (number) ", " strong { (advisory.finding.as_str()) } @if !advisory.reason_class.is_empty() { ", " (shown(&advisory.reason_class)) } ", " a href=(format!("/log/document/{}", advisory.hashes.text)) { "the text" } }
                ul { @for hash in advisory.hashes.definitions.iter().take(100) { li { code { (hash) } } } }
            }
        },
    )
}
