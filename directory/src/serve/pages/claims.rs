//! The page on claims of ownership, waiting ones first: owners can object until a claim becomes
//! valid.

use super::{Page, Query, ROWS, minute, pager, server_link, shown};
use crate::entry::{ClaimState, ClaimStatement, Moment};
use crate::model::Server;
use crate::serve::site::Snapshot;
use maud::{Markup, html};

/// The log's statement on a claim, as a sentence.
pub(super) fn sentence(at: Moment, claim: &ClaimStatement) -> Markup {
    html! {
        (minute(at)) ": " (shown(&claim.domain)) " by " (shown(&claim.method)) ", " strong { (claim.state.as_str()) }
        @if let Some(from) = claim.counts_from { ", counts from " (minute(from)) }
        " " span.muted { "key " code { (claim.hashes.key.get(..16).unwrap_or_default()) } }
    }
}

const fn order(state: ClaimState) -> u8 {
    match state {
        ClaimState::Waiting => 0,
        ClaimState::Verified => 1,
        ClaimState::Suspended => 2,
    }
}

pub(super) fn list(snapshot: &Snapshot, query: &Query<'_>) -> Page {
    let mut claims: Vec<(&Server, Moment, &ClaimStatement)> = Vec::new();
    for server in snapshot.model.servers.values() {
        claims.extend(server.current_claims().into_iter().map(|(at, claim)| (server, *at, claim)));
    }
    claims.sort_by_key(|(server, at, claim)| (order(claim.state), *at, &server.id));
    let page = query.page();
    let rows = claims.iter().skip(page.saturating_mul(ROWS)).take(ROWS);
    Page::new(
        "Claims",
        html! {
            h1 { "Claims of ownership" }
            p { "Who controls a server's domain or publishes its package can claim it. A claim permits deeper checks; it never changes or hides a verdict. A second claimant waits seven days, in public. Each claim is looked at daily and suspended after three failures." }
            @if claims.is_empty() { p.muted { "There are none." } } @else {
                div.scroll tabindex="0" role="region" aria-label="Claims" {
                    table {
                        thead { tr { th scope="col" { "Server" } th scope="col" { "State" } th scope="col" { "Shown by" } th scope="col" { "Since" } } }
                        tbody {
                            @for (server, at, claim) in rows {
                                tr {
                                    th scope="row" { (server_link(&server.id)) }
                                    td.word { (claim.state.as_str()) @if let Some(from) = claim.counts_from { ", counts from " (minute(from)) } }
                                    td { (shown(&claim.domain)) " (" (shown(&claim.method)) "), key " code { (claim.hashes.key.get(..16).unwrap_or_default()) } }
                                    td { (minute(*at)) }
                                }
                            }
                        }
                    }
                }
                (pager("/claims", "", page, claims.len()))
            }
        },
    )
}
