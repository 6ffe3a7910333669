//! The list of servers, and the pages of servers and tools.

use super::{
    Page, Query, ROWS, badge, coded, day, minute, pager, search_form, server_link, shown, tool_link,
};
use crate::crawl::Manifest;
use crate::entry::VisitOutcome;
use crate::model::{Drift, Server, Visit};
use crate::record::log_name;
use crate::serve::site::{Site, Snapshot};
use crate::subject::{SubjectId, encode_segment};
use crate::writer::surface_of;
use contract::surface::{Entry, EntryType, Surface};
use contract::time::Timestamp;
use maud::{Markup, html};
use screen::limits::HonestLimit;
use screen::quality::{Documentation, Installability, QualityFacts, QualityScore, Releases};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::collections::BTreeSet;

/// How many changes a page shows in full; the others are only named.
const SHOWN_CHANGES: usize = 30;
/// The most lines on one side of a comparison.
const MAX_LINES: usize = 400;
const DAY_MS: i64 = 86_400_000;

/// The dimensions that a server failed.
pub(super) fn failed_dimensions(server: &Server) -> Vec<&str> {
    let failed = |value: &&Value| value.get("outcome").and_then(Value::as_str) == Some("fail");
    server
        .dimensions
        .iter()
        .filter(failed)
        .filter_map(|value| value.get("dimension").and_then(Value::as_str))
        .collect()
}

pub(super) fn directive(server: &Server, now: Timestamp) -> &str {
    if now >= server.expires_at.0 || server.surface.is_none() {
        "UNVERIFIED"
    } else {
        &server.directive
    }
}

/// How a visit ended; if it got no contract, the outcome and the cause.
pub(super) fn outcome_text(visit: &Visit) -> Markup {
    match visit.outcome {
        VisitOutcome::Listed => html! { "read" },
        VisitOutcome::NotListed(reason) => html! { (reason.as_str()) ", " (because(visit)) },
    }
}

/// Why a visit got no contract.
fn because(visit: &Visit) -> Markup {
    match (visit.cause, visit.outcome) {
        (Some(cause), _) => coded(&cause.to_string()),
        (None, VisitOutcome::NotListed(reason)) => coded(reason.sentence()),
        (None, VisitOutcome::Listed) => html! {},
    }
}

/// The quality score of a server, from facts in the log.
pub(super) fn quality(server: &Server, now: Timestamp) -> QualityScore {
    let facts = &server.facts;
    let age = facts.published_at.map(|at| (now.0 - at.0.0).max(0) / DAY_MS);
    let (pairs, broken) = server.release_pairs();
    let is_package = server.release.is_some();
    QualityScore::of(&QualityFacts {
        age_days: age.map(|days| u32::try_from(days).unwrap_or(u32::MAX)),
        has_description: Some(facts.has_description),
        has_repository: Some(facts.has_repository),
        has_licence: Some(facts.has_licence),
        has_version: Some(facts.has_version),
        has_launch: Some(facts.has_launch),
        installability: Some(match server.outcome {
            VisitOutcome::Listed => Installability::Listed,
            VisitOutcome::NotListed(reason) => match reason.as_str() {
                "silent" | "unstable" | "unreadable" => Installability::Installed,
                _ => Installability::Failed,
            },
        }),
        documentation: server.surface.as_ref().map(|_| Documentation {
            tools: facts.tools as usize,
            described_tools: facts.tools_described as usize,
            parameters: facts.parameters as usize,
            described_parameters: facts.parameters_described as usize,
        }),
        releases: is_package.then_some(Releases {
            count: server.releases(),
            pairs: pairs as usize,
            breaking_non_major: broken as usize,
        }),
    })
}

pub(super) fn list(site: &Site, snapshot: &Snapshot, query: &Query<'_>) -> Page {
    let wanted = query.get("q").unwrap_or_default();
    let lower = wanted.to_lowercase();
    let now = site.now();
    let found: Vec<&Server> = snapshot
        .model
        .servers
        .values()
        .filter(|server| server.id.as_str().to_lowercase().contains(&lower))
        .collect();
    let page = query.page();
    let rows = found.iter().skip(page.saturating_mul(ROWS)).take(ROWS);
    let pages_query =
        if wanted.is_empty() { String::new() } else { format!("q={}&", encode_segment(&wanted)) };
    Page::new(
        "Servers",
        html! {
            h1 { "Servers" }
            (search_form(&wanted))
            p { "Published servers whose texts were read, by name. " strong { "Findings in" } " names what was found suspicious at the newest release; a page for each server says where." }
            p.muted { (found.len()) " of " (snapshot.model.servers.len()) " servers." }
            @if found.is_empty() {
                p.note { "No server with this name is in the directory. That is no good sign and no bad one: treat it as unverified." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Servers" {
                    table {
                        thead { tr {
                            th scope="col" { "Server" } th scope="col" { "Verdict" } th scope="col" { "Findings in" }
                            th.number scope="col" { "Tools" } th.number scope="col" { "Changes" } th.number scope="col" { "Quality" }
                        } }
                        tbody {
                            @for server in rows {
                                tr {
                                    th scope="row" { (server_link(&server.id)) }
                                    td { (badge(directive(server, now))) }
                                    td { (failed_dimensions(server).join(", ")) }
                                    td.number { (server.tools.len()) }
                                    td.number { (server.drifts.len()) }
                                    td.number { (format!("{:.0}", quality(server, now).total())) }
                                }
                            }
                        }
                    }
                }
                (pager("/screen", &pages_query, page, found.len()))
            }
        },
    )
}

pub(super) fn page(site: &Site, snapshot: &Snapshot, id: &SubjectId) -> Option<Page> {
    let server = snapshot.model.servers.get(id)?;
    let now = site.now();
    let manifest = site.database().blob(&server.manifest).ok().flatten();
    let manifest: Manifest =
        manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let drifts: Vec<&Drift> = server.drifts.iter().rev().map(AsRef::as_ref).collect();
    Some(Page::new(
        id.as_str(),
        html! {
            h1 { (id) }
            p { (badge(directive(server, now))) " " span.muted { (verdict_note(directive(server, now), &server.dimensions)) } }
            p.muted { "Evidence " (server.evidence_grade) ", good until " (day(server.expires_at)) ". " a href="/methodology" { "How a verdict is made" } }
            @if let Some(last) = server.visits.last().filter(|last| last.outcome != VisitOutcome::Listed) {
                p.note { "The last visit, on " (day(last.at)) ", read nothing: " (because(last)) "." }
            }
            (about(&manifest, server))
            h2 { "What was found" }
            p.muted { "All texts of the newest release that was read, in seven dimensions. Findings name the tool and the place in its definition." }
            (dimensions(&server.dimensions))
            (limits(server.tools.values().next().map(|tool| tool.item.honest_limits.as_slice())))
            h2 { "Tools" }
            (tools(server, now))
            h2 { "Changes" }
            @if drifts.is_empty() { p.muted { "None was seen in the releases below." } }
            (before_and_after(site, server, &drifts))
            h2 { "Quality score" }
            (score(&quality(server, now)))
            h2 { "History" }
            (history(server))
            (owner(server))
            (cite(site, id.as_str(), &format!("/server/{}", id.encoded()), server.visits.last().map_or(0, |visit| visit.number)))
        },
    ))
}

pub(super) fn tool(site: &Site, snapshot: &Snapshot, id: &SubjectId, name: &str) -> Option<Page> {
    let server = snapshot.model.servers.get(id)?;
    let name = log_name(name);
    let drifts: Vec<&Drift> = server
        .drifts
        .iter()
        .rev()
        .map(AsRef::as_ref)
        .filter(|drift| drift.item.entry_type == "tool" && drift.item.name == name)
        .collect();
    let known = server.tools.get(&name);
    if known.is_none() && drifts.is_empty() {
        return None;
    }
    let now = site.now();
    let surface = server.last_surface().and_then(|visit| visit.surface.clone());
    let surface = surface.and_then(|hash| surface_of(&site.database(), &hash).ok().flatten());
    let definition = surface.as_ref().and_then(|surface| entry_of(surface, "tool", &name));
    Some(Page::new(
        format!("{} of {id}", shown(&name)),
        html! {
            p { (server_link(id)) }
            h1 { (shown(&name)) }
            @match known {
                Some(tool) => {
                    @let directive = if now < tool.expires_at.0 { tool.item.directive.as_str() } else { "UNVERIFIED" };
                    p { (badge(directive)) " " span.muted { (verdict_note(directive, &tool.item.dimensions)) } }
                    p.muted { "Evidence " (tool.evidence_grade) ", good until " (day(tool.expires_at)) ". " a href="/methodology" { "How a verdict is made" } }
                    h2 { "What was found" }
                    (dimensions(&tool.item.dimensions))
                    (limits(Some(&tool.item.honest_limits)))
                    h2 { "What the verdict is about" }
                    p.muted { "This exact definition. If your client sees another one, its hash differs and the verdict does not count." }
                    dl {
                        dt { "definition hash" } dd { code { (tool.item.definition_hash) } }
                        dt { "entry hash" } dd { code { (tool.item.entry_hash) } }
                        dt { "release" } dd { (tool.release.as_deref().unwrap_or("none")) }
                        dt { "entry of the log" } dd { (tool.number) }
                    }
                }
                None => { p.note { "The newest release that was read no longer has this tool." } }
            }
            @if let Some(definition) = definition {
                h2 { "Definition" }
                p.muted { "The server's own words, as the model would read them. They are data, not advice." }
                pre { (shown_json(definition.raw())) }
            }
            h2 { "Changes" }
            @if drifts.is_empty() { p.muted { "None was seen in the releases that were read." } }
            (before_and_after(site, server, &drifts))
            @if let Some(tool) = known {
                (cite(site, &format!("{} of {id}", shown(&name)), &format!("/server/{}/tool/{}", id.encoded(), encode_segment(&name)), tool.number))
            }
        },
    ))
}

fn about(manifest: &Manifest, server: &Server) -> Markup {
    html! {
        dl {
            @if let Some(text) = &manifest.description { dt { "It says of itself" } dd { (shown(text)) } }
            @if let Some(release) = &server.release { dt { "Release" } dd { (release) @if let Some(at) = server.facts.published_at { ", published " (day(at)) } } }
            @if let Some(licence) = &manifest.licence { dt { "Licence" } dd { (shown(licence)) } }
            @if let Some(url) = &manifest.repository {
                dt { "Repository" }
                // Only link to https.
                dd { @if url.starts_with("https://") { a href=(url) rel="nofollow noopener noreferrer" { (shown(url)) } } @else { (shown(url)) } }
            }
            dt { "First and last entry" } dd { (minute(server.first_at)) " · " (minute(server.at)) }
        }
    }
}

/// Findings without duplicates of the same text: several rules can match at one place.
fn different(findings: &[Value]) -> impl Iterator<Item = &Value> {
    let mut told = BTreeSet::new();
    let parts = ["severity", "reason", "entry", "pointer"];
    findings.iter().filter(move |finding| {
        told.insert(parts.map(|part| finding.get(part).and_then(Value::as_str)))
    })
}

/// A verdict as a sentence.
fn verdict_note(directive: &str, dimensions: &[Value]) -> &'static str {
    let failed = |value: &Value| value.get("outcome").and_then(Value::as_str) == Some("fail");
    match directive {
        "UNVERIFIED" => "Nothing is known: it could not be read, or what was read is too old.",
        _ if dimensions.iter().any(failed) => {
            "Its texts were read, and something was found. Look at it before you use it."
        }
        _ => "Its texts were read, and nothing was found. That does not make it safe.",
    }
}

fn dimensions(dimensions: &[Value]) -> Markup {
    let text = |value: &Value, name: &str| -> String {
        value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    html! {
        @if dimensions.is_empty() { p.muted { "Nothing was read." } } @else {
            div.scroll.dimensions tabindex="0" role="region" aria-label="Dimensions" {
                table {
                    thead { tr { th scope="col" { "Dimension" } th scope="col" { "Outcome" } th scope="col" { "Findings" } } }
                    tbody {
                        @for value in dimensions {
                            @let outcome = text(value, "outcome");
                            tr {
                                th scope="row" { (text(value, "dimension")) }
                                td { span class=(outcome.clone()) { (outcome.replace('-', " ")) } }
                                td {
                                    @let findings = value.get("findings").and_then(Value::as_array);
                                    @if findings.is_none_or(Vec::is_empty) { span.muted { (text(value, "rationale")) } }
                                    @else {
                                        ul.plain {
                                            @for finding in different(findings.map_or(&[], Vec::as_slice)) {
                                                li {
                                                    span class=(text(finding, "severity")) { (text(finding, "severity")) } ": "
                                                    strong { (shown(&text(finding, "entry"))) } " " (text(finding, "reason"))
                                                    @let pointer = text(finding, "pointer");
                                                    @if !pointer.is_empty() { " " span.muted { "at " code { (shown(&pointer)) } } }
                                                }
                                            }
                                        }
                                        @let all = value.get("finding_count").and_then(Value::as_u64).unwrap_or(0);
                                        @if all as usize > findings.map_or(0, Vec::len) { p.muted { (all) " findings in all" } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn limits(codes: Option<&[String]>) -> Markup {
    let known =
        |code: &String| HonestLimit::ALL.iter().find(|limit| limit.as_str() == code).copied();
    html! {
        @if let Some(codes) = codes {
            details { summary { "What this does not say" } ul { @for limit in codes.iter().filter_map(known) { li { (limit.sentence()) } } } }
        }
    }
}

fn tools(server: &Server, now: Timestamp) -> Markup {
    html! {
        @if server.tools.is_empty() { p.muted { "None on file." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Tools" {
                table {
                    thead { tr { th scope="col" { "Tool" } th scope="col" { "Verdict" } th scope="col" { "Hash of its definition" } } }
                    tbody {
                        @for (name, tool) in server.tools.iter().take(1_000) {
                            tr {
                                th scope="row" { (tool_link(&server.id, name)) }
                                td { (badge(if now < tool.expires_at.0 { &tool.item.directive } else { "UNVERIFIED" })) }
                                td { code { (tool.item.definition_hash.get(..16).unwrap_or_default()) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn entry_of<'s>(surface: &'s Surface, entry_type: &str, name: &str) -> Option<&'s Entry> {
    let entry_type: EntryType = entry_type.parse().ok()?;
    surface
        .entries()
        .find(|entry| entry.entry_type() == entry_type && log_name(entry.key()) == name)
}

/// Formatted JSON, with hidden characters made visible.
fn shown_json(raw: &str) -> String {
    let value: Option<Value> = serde_json::from_str(raw).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = text.unwrap_or_else(|| raw.to_owned());
    let lines: Vec<String> = text.lines().take(MAX_LINES).map(shown).collect();
    let more = if text.lines().count() > MAX_LINES { "\n… (cut)" } else { "" };
    format!("{}{more}", lines.join("\n"))
}

/// Each change with the text before and after.
fn before_and_after(site: &Site, server: &Server, drifts: &[&Drift]) -> Markup {
    html! {
        @for drift in drifts.iter().take(SHOWN_CHANGES) {
            details {
                summary {
                    (shown(&drift.item.name)) ": " (drift.item.kinds.join(", "))
                    " " span.muted { (drift.release_before.as_deref().unwrap_or("before")) " → " (drift.release_after.as_deref().unwrap_or("now")) }
                    @if drift.item.safety { " " span.badge.fail { "concerns safety" } }
                }
                (comparison(site, server, drift))
                p.muted { "Seen " (day(drift.at)) ", entry " (drift.number) " of the log." }
            }
        }
        @if drifts.len() > SHOWN_CHANGES {
            details {
                summary { (drifts.len() - SHOWN_CHANGES) " older changes" }
                ul { @for drift in drifts.iter().skip(SHOWN_CHANGES).take(1_000) { li { (day(drift.at)) " " (shown(&drift.item.name)) ": " (drift.item.kinds.join(", ")) } } }
            }
        }
    }
}

fn comparison(site: &Site, server: &Server, drift: &Drift) -> Markup {
    let raw = |release: &Option<String>, hash: &Option<String>, is_after: bool| -> Option<String> {
        hash.as_ref()?;
        // The visit that recorded the change is the first with this number or a higher one; the
        // visit before it is the last with a lower number.
        let mut visits = server.visits.iter().filter(|visit| visit.surface.is_some());
        let visit = match is_after {
            true => visits.find(|visit| visit.number >= drift.number),
            false => visits.rfind(|visit| visit.number < drift.number && visit.release == *release),
        }?;
        let surface = surface_of(&site.database(), visit.surface.as_deref()?).ok().flatten()?;
        let entry = entry_of(&surface, &drift.item.entry_type, &drift.item.name)?;
        Some(shown_json(entry.raw()))
    };
    let before = raw(&drift.release_before, &drift.item.entry_before, false);
    let after = raw(&drift.release_after, &drift.item.entry_after, true);
    let (old, new) = (before.clone().unwrap_or_default(), after.clone().unwrap_or_default());
    let diff = TextDiff::from_lines(&old, &new);
    let side = |hidden: ChangeTag| -> Markup {
        html! {
            @for change in diff.iter_all_changes().filter(|change| change.tag() != hidden) {
                @match change.tag() {
                    ChangeTag::Equal => { span.same { (change.value().trim_end_matches('\n')) } }
                    ChangeTag::Delete => { del { (change.value().trim_end_matches('\n')) } }
                    ChangeTag::Insert => { ins { (change.value().trim_end_matches('\n')) } }
                }
            }
        }
    };
    html! {
        div.diff {
            div { h4 { "Before" } @if before.is_some() { pre { (side(ChangeTag::Insert)) } } @else { p.muted { "It did not exist." } } }
            div { h4 { "After" } @if after.is_some() { pre { (side(ChangeTag::Delete)) } } @else { p.muted { "It is gone." } } }
        }
    }
}

fn score(score: &QualityScore) -> Markup {
    html! {
        p { strong { (format!("{:.0}", score.total())) } " of 100. Maturity by public facts; it says nothing about safety. " a href="/methodology" { "The formula" } }
        table {
            thead { tr { th scope="col" { "Part" } th.number scope="col" { "Points" } th.number scope="col" { "Of" } } }
            tbody {
                @for part in &score.parts {
                    tr {
                        th scope="row" { (part.name) }
                        td.number { @match part.points { Some(points) => (format!("{points:.1}")), None => "unknown" } }
                        td.number { (format!("{:.0}", part.most)) }
                    }
                }
            }
        }
    }
}

fn history(server: &Server) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="History" {
            table {
                thead { tr { th scope="col" { "Recorded" } th scope="col" { "Release" } th scope="col" { "Outcome" } th.number scope="col" { "Tools" } th.number scope="col" { "Entry" } } }
                tbody {
                    @for visit in server.visits.iter().rev().take(200) {
                        tr {
                            td { (day(visit.at)) }
                            td { (visit.release.as_deref().unwrap_or("")) }
                            td { (outcome_text(visit)) }
                            td.number { (visit.tools) }
                            td.number { (visit.number) }
                        }
                    }
                }
            }
        }
    }
}

fn owner(server: &Server) -> Markup {
    html! {
        @if !server.claims.is_empty() {
            h2 { "Ownership" }
            p.muted { "A claim permits deeper checks. It never changes or hides a verdict. " a href="/claims" { "All claims" } }
            @if server.permits_probes() { p { "Its owner permits probes. This directory makes none yet." } }
            ul { @for (at, claim) in server.current_claims().into_iter().take(20) { li { (super::claims::sentence(*at, claim)) } } }
            @if server.claims.len() > 1 {
                details {
                    summary { "History of the claims" }
                    ul { @for (at, claim) in server.claims.iter().rev().take(100) { li { (super::claims::sentence(*at, claim)) } } }
                }
            }
        }
    }
}

fn cite(site: &Site, name: &str, path: &str, number: u64) -> Markup {
    html! {
        h2 { "Cite this" }
        pre { "Holdpoint directory, \"" (shown(name)) "\", log entry " (number) ", " (site.parts().public_url) (path) }
    }
}
