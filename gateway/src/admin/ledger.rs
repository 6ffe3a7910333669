//! The newest receipts: those of this node and of every other node that answers.

use super::access::Access;
use super::peers::merged;
use super::refusal::AdminError;
use super::{AdminInput, AdminVisit};
use crate::peer::RelayKind;
use engine::recorder::now;
use http::Method;
use ledger::receipt::{Filter, Item, moment, newest};
use ledger::record::RulingResult;
use serde_json::{Value, json};
use store::receipts::DiskFolder;

const USUAL_COUNT: usize = 100;
const MAX_COUNT: usize = 1_000;

impl AdminVisit {
    /// Receipts, newest first.
    pub(super) async fn receipts(
        self,
        access: &Access,
        input: &AdminInput,
    ) -> Result<Value, AdminError> {
        let count = count(input)?;
        let others = self.clone();
        let (own, others) = tokio::join!(
            self.own_receipts(access, input),
            others.ask_peers(RelayKind::Receipts, Method::GET)
        );
        Ok(merged(&own?, others, count))
    }

    /// The receipts of this node.
    async fn own_receipts(self, access: &Access, input: &AdminInput) -> Result<Value, AdminError> {
        let filter = filter(access, input)?;
        let (count, has_events) = (count(input)?, input.switch("events")?);
        // A filter that matches little reads much, so the number of concurrent readings is limited.
        let node = self.node.clone();
        let _turn = node.ledger_readers.acquire().await.map_err(|_| AdminError::Internal)?;
        self.blocking(move |visit| {
            let shared = &visit.node.shared;
            // Write pending outcomes first, so that an answered call is shown with its outcome.
            let _ = shared.recorder.flush();
            let is_shown = |item: &Item| match item {
                Item::Receipt(_) => true,
                Item::Event(event) => has_events && !event.is_bookkeeping(),
            };
            let path = shared.home.receipts_path();
            let found = newest(&DiskFolder::new(&path), &filter, &is_shown, count)?;
            let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
            let receipts: Vec<&Item> = found.items.iter().rev().collect();
            Ok(json!({"receipts": receipts, "notes": notes}))
        })
        .await
    }
}

fn count(input: &AdminInput) -> Result<usize, AdminError> {
    let Some(text) = input.query("limit") else { return Ok(USUAL_COUNT) };
    let count = text.parse::<usize>().ok().filter(|count| (1..=MAX_COUNT).contains(count));
    count.ok_or_else(|| AdminError::Input(format!("`limit` is a number from 1 to {MAX_COUNT}")))
}

fn filter(access: &Access, input: &AdminInput) -> Result<Filter, AdminError> {
    let decision = match input.query("decision") {
        None => None,
        Some("allowed") => Some(RulingResult::Allow),
        Some("held") => Some(RulingResult::RequireApproval),
        Some("denied") => Some(RulingResult::Deny),
        Some(_) => {
            let words = "`decision` is `allowed`, `held` or `denied`";
            return Err(AdminError::Input(words.to_owned()));
        }
    };
    let since = input.query("since").map(|text| moment(text, now())).transpose();
    let since = since.map_err(|error| AdminError::Input(format!("`since`: {error}")))?;
    let server = match access {
        Access::Server(id) => Some(id.to_string()),
        Access::Gateway | Access::Servers(_) => None,
    };
    let principal = input.query("sub").map(str::to_owned);
    let (tool, reason) = (input.query("tool"), input.query("reason"));
    Ok(Filter {
        server,
        principal,
        decision,
        since,
        tool: tool.map(str::to_owned),
        reason: reason.map(str::to_owned),
        ..Filter::default()
    })
}
