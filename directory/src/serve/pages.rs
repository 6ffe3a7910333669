//! Renders the pages, which work without scripts. Every server text is escaped, with its hidden
//! characters made visible.

mod changes;
mod claims;
mod numbers;
mod server;

use super::markdown;
use super::site::{Site, Snapshot};
use crate::entry::Moment;
use crate::subject::{SubjectId, decode_segment, encode_segment};
use crate::writer::METHODOLOGY;
use ::http::StatusCode;
use contract::hash::sha256_hex;
use gate::words::escape_hidden;
use maud::{DOCTYPE, Markup, html};

/// The longest server text on a page, in characters.
const MAX_SHOWN: usize = 4_000;
/// The highest page number of a list.
const MAX_PAGE: usize = 1_000_000;
/// The number of rows per page of a list.
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

/// Renders the page at a path.
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

/// A page: its title and content.
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

/// The query string of a URL.
pub(super) struct Query<'q>(&'q str);

impl Query<'_> {
    /// The decoded value of a parameter; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let pair = self.0.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value = decode_segment(&pair?.replace('+', " "))?;
        (!value.is_empty() && value.len() <= 256).then_some(value)
    }

    /// The page number of a list, from 0.
    pub(super) fn page(&self) -> usize {
        self.get("page").and_then(|text| text.parse().ok()).unwrap_or(0).min(MAX_PAGE)
    }
}

/// A server's text, cut to the limit, with hidden characters made visible. The template escapes it.
pub(super) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    let more = if cut.len() < text.len() { " … (cut)" } else { "" };
    format!("{}{more}", escape_hidden(&cut))
}

/// A day, with the exact time in an attribute and as a tooltip.
pub(super) fn day(at: Moment) -> Markup {
    let exact = at.to_string();
    html! { time.word datetime=(exact) title=(exact) { (exact.get(..10).unwrap_or_default()) } }
}

/// A time, to the minute.
pub(super) fn minute(at: Moment) -> Markup {
    let exact = at.to_string();
    let (date, time) = (exact.get(..10).unwrap_or_default(), exact.get(11..16).unwrap_or_default());
    // In a narrow column, only break the line between date and time.
    html! { time datetime=(exact) { span.word { (date) } " " span.word { (time) " UTC" } } }
}

/// A fixed sentence, with the text between backticks as code.
pub(super) fn coded(sentence: &str) -> Markup {
    html! {
        @for (at, part) in sentence.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

pub(super) fn badge(directive: &str) -> Markup {
    html! { span class=(format!("badge {directive}")) { (directive) } }
}

pub(super) fn server_link(id: &SubjectId) -> Markup {
    // Break a long name after its namespace, not within a word.
    let (namespace, name) = id.as_str().rsplit_once('/').unwrap_or(("", id.as_str()));
    html! {
        a href=(format!("/server/{}", id.encoded())) {
            @if !namespace.is_empty() { (namespace) "/" wbr; }
            (name)
        }
    }
}

pub(super) fn tool_link(id: &SubjectId, name: &str) -> Markup {
    html! { a href=(format!("/server/{}/tool/{}", id.encoded(), encode_segment(name))) { (shown(name)) } }
}

/// Links to the previous and next page of a list.
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
                link rel="icon" href="/icon.svg" type="image/svg+xml";
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
                        "Advice to read before you use a server. It stops no call, and nothing here says that a server is safe. "
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
        "Look up an MCP server before you use it",
        html! {
            h1 { "Look up an MCP server before you use it" }
            p {
                "MCP servers offer tools to AI agents, and an agent acts on what a server says about its tools. This directory starts published servers in a sandbox, reads what they say the way an attacker might have written it, and records what changes from release to release."
            }
            (search_form(""))
            (numbers::cards(site, snapshot))
            h2 { "What a verdict means" }
            dl {
                dt { (badge("REVIEW")) } dd { "The server's texts were read. Look at the findings before you use it; where there is none, nothing was found, which does not make it safe." }
                dt { (badge("UNVERIFIED")) } dd { "Nothing is known: it could not be read, or what was read is too old." }
                dt { (badge("ALLOW")) " " (badge("DENY")) } dd { "Not given yet. " a href="/methodology" { "How a verdict is made" } " says what is missing." }
            }
            (changes::newest(snapshot))
            h2 { "Check it yourself" }
            p { "Every verdict and every change is an entry of a public log. This command reads the whole log and checks that no entry was changed or removed:" }
            pre { "holdpoint directory log verify --url " (site.parts().public_url) " --key log.pub" }
            p { "The log's public key is at " a href="/log/key" { "/log/key" } ". Compare it with a copy from another place: a forged log would come with a forged key." }
        },
    )
}

pub(super) fn search_form(value: &str) -> Markup {
    html! {
        form method="get" action="/screen" role="search" {
            div {
                label for="q" { "Part of a server's name" }
                input id="q" name="q" type="search" maxlength="200" placeholder="for example: memory" value=(value);
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
                    p { "Version " (version) ", entry " (number) " of the log, " (minute(*at)) "." }
                }
                None => { p.note.alarm { "This text is not in the log yet, so no verdict names it." } }
            }
            p { "SHA-256: " code { (hash) } " · " a href=(format!("/log/document/{hash}")) { "the text" } }
            h2 { "Cite this" }
            p { "\"Holdpoint directory: how a verdict is made\", version " (crate::writer::METHODOLOGY_VERSION) ", SHA-256 " code { (hash.get(..16).unwrap_or_default()) } "." }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_a_page_is_too_large() {
        let page = Query("page=18446744073709551615").page();
        let links = pager("/drift", "", page, 10 * ROWS).into_string();
        assert!(links.contains("of 10"), "{links}");
        assert_eq!(Query("page=99999999999999999999").page(), 0);
        assert_eq!(Query("page=-1").page(), 0);
    }
}
