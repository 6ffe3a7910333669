//! The pages. Rendered here, usable without script; every text of a server is escaped, with its hidden characters shown.

mod changes;
mod claims;
mod numbers;
mod server;

use super::markdown;
use super::site::{Site, Snapshot};
use crate::subject::{SubjectId, decode_segment, encode_segment};
use crate::writer::METHODOLOGY;
use ::http::StatusCode;
use contract::hash::sha256_hex;
use gate::words::escape_hidden;
use maud::{DOCTYPE, Markup, html};

/// The longest text of a server on a page, in characters.
const MAX_SHOWN: usize = 4_000;
/// Rows of one page of a list.
pub(super) const ROWS: usize = 100;

const MENU: &[(&str, &str)] = &[
    ("/screen", "Servers"),
    ("/drift", "Drift"),
    ("/stats", "Numbers"),
    ("/leaderboard", "Quality"),
    ("/queue", "Queue"),
    ("/methodology", "Methodology"),
    ("/changelog", "Changelog"),
    ("/status", "Status"),
];

/// The page of a path.
pub(super) fn render(site: &Site, path: &str, query: Option<&str>) -> (StatusCode, String) {
    let snapshot = site.snapshot();
    let query = Query(query.unwrap_or_default());
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let found = match segments.as_slice() {
        [""] => Some(home(site, &snapshot)),
        ["screen"] => Some(server::list(site, &snapshot, &query)),
        ["server", id] => subject(id).and_then(|id| server::page(site, &snapshot, &id)),
        ["server", id, "tool", name] => subject(id)
            .zip(decode_segment(name))
            .and_then(|(id, name)| server::tool(site, &snapshot, &id, &name)),
        ["stats"] => Some(numbers::stats(site, &snapshot)),
        ["leaderboard"] => Some(numbers::leaderboard(site, &snapshot, &query)),
        ["status"] => Some(numbers::status(site, &snapshot)),
        ["queue"] => Some(numbers::queue(site, &snapshot, &query)),
        ["drift"] => Some(changes::drift(site, &snapshot, &query)),
        ["changelog"] => Some(changes::changelog(site, &snapshot, &query)),
        ["advisories"] => Some(changes::advisories(&snapshot)),
        ["claims"] => Some(claims::list(&snapshot, &query)),
        ["methodology"] => Some(methodology(&snapshot)),
        _ => None,
    };
    match found {
        Some(page) => (StatusCode::OK, layout(path, &page)),
        None => (StatusCode::NOT_FOUND, layout(path, &not_found())),
    }
}

/// A page: its title and what is in it.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) body: Markup,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, body: Markup) -> Page {
        Page { title: title.into(), body }
    }
}

fn subject(segment: &str) -> Option<SubjectId> {
    decode_segment(segment)?.parse().ok()
}

/// What follows the `?` of an address.
pub(super) struct Query<'q>(&'q str);

impl Query<'_> {
    /// The value of a name, decoded; nothing where it is empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let pair = self.0.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value = decode_segment(&pair?.replace('+', " "))?;
        (!value.is_empty() && value.len() <= 256).then_some(value)
    }

    /// The page of a list, from 0.
    pub(super) fn page(&self) -> usize {
        self.get("page").and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// A text of a server: nothing in it is hidden, and it is not without end. Escaping is the template's.
pub(super) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    let more = if cut.len() < text.len() { " … (cut)" } else { "" };
    format!("{}{more}", escape_hidden(&cut))
}

pub(super) fn badge(directive: &str) -> Markup {
    html! { span class=(format!("badge {directive}")) { (directive) } }
}

pub(super) fn server_link(id: &SubjectId) -> Markup {
    html! { a href=(format!("/server/{}", id.encoded())) { (id) } }
}

pub(super) fn tool_link(id: &SubjectId, name: &str) -> Markup {
    html! { a href=(format!("/server/{}/tool/{}", id.encoded(), encode_segment(name))) { (shown(name)) } }
}

/// Links to the pages of a list before and after.
pub(super) fn pager(path: &str, query: &str, page: usize, all: usize) -> Markup {
    let pages = all.div_ceil(ROWS).max(1);
    let link = |number: usize| format!("{path}?{query}page={number}");
    html! {
        @if pages > 1 {
            nav aria-label="Pages of this list" {
                p {
                    @if page > 0 { a rel="prev" href=(link(page - 1)) { "Previous" } " · " }
                    "page " (page + 1) " of " (pages)
                    @if page + 1 < pages { " · " a rel="next" href=(link(page + 1)) { "Next" } }
                }
            }
        }
    }
}

fn layout(path: &str, page: &Page) -> String {
    let here = format!("/{}", path.trim_matches('/').split('/').next().unwrap_or_default());
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · Holdpoint directory" }
                link rel="stylesheet" href="/style.css";
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    strong { a href="/" { "Holdpoint directory" } }
                    nav aria-label="Main" {
                        ul {
                            @for (target, name) in MENU {
                                li {
                                    @if *target == here { a href=(target) aria-current="page" { (name) } }
                                    @else { a href=(target) { (name) } }
                                }
                            }
                        }
                    }
                }
                main id="main" { (page.body) }
                footer {
                    p {
                        "Advice before a server is used: it stops no call, and nothing here says that a server is safe. "
                        a href="/methodology" { "How verdicts are made" } " · "
                        a href="/advisories" { "Advisories" } " · "
                        a href="/claims" { "Claims" } " · "
                        a href="/api/v1/openapi.json" { "API" } " · "
                        a href="/log/checkpoint" { "Log" }
                    }
                }
            }
        }
    };
    markup.into_string()
}

fn not_found() -> Page {
    Page::new(
        "Not found",
        html! {
            h1 { "Nothing is on file here" }
            p { "No verdict is not a good verdict: treat a server that is not listed as unverified." }
            p { a href="/screen" { "Look for a server" } }
        },
    )
}

fn home(site: &Site, snapshot: &Snapshot) -> Page {
    Page::new(
        "What MCP servers say, and what changed",
        html! {
            h1 { "What an MCP server says of itself, before you wire it" }
            p {
                "A crawler lists published servers, a screen reads their contracts adversarially, and every verdict and every change is an entry of a log that anybody can verify."
            }
            (search_form(""))
            (numbers::cards(site, snapshot))
            h2 { "Check it yourself" }
            pre { "holdpoint directory log verify --url " (site.parts().public_url) " --key log.pub" }
            p { "The log's public key: " a href="/log/key" { "/log/key" } ". Take it from a second place too." }
            (changes::newest(snapshot))
        },
    )
}

pub(super) fn search_form(value: &str) -> Markup {
    html! {
        form method="get" action="/screen" role="search" {
            div {
                label for="q" { "Server" }
                input id="q" name="q" type="search" maxlength="200" value=(value);
            }
            button type="submit" { "Look up" }
        }
    }
}

fn methodology(snapshot: &Snapshot) -> Page {
    let hash = sha256_hex(METHODOLOGY.as_bytes());
    let known = snapshot.model.methodologies.iter().find(|(_, _, known, _)| *known == hash);
    Page::new(
        "Methodology",
        html! {
            (markdown::render(METHODOLOGY))
            h2 { "This page in the log" }
            @match known {
                Some((at, number, _, version)) => {
                    p { "Version " (version) ", entry " (number) " of the log, " (at) "." }
                }
                None => { p.note.alarm { "This text is not in the log yet, so no verdict names it." } }
            }
            p { "SHA-256: " code { (hash) } " · " a href=(format!("/log/document/{hash}")) { "the text" } }
            h2 { "Cite this" }
            p { "\"Holdpoint directory: how a verdict is made\", version " (crate::writer::METHODOLOGY_VERSION) ", SHA-256 " code { (hash.get(..16).unwrap_or_default()) } "." }
        },
    )
}
