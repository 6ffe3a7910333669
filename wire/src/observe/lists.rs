//! Requests the lists: every page, by the rules of [`crate::listing`], as its original bytes.

use super::handshake::stateless_meta;
use super::{Progress, Session};
use crate::client::{Asked, Stop};
use crate::error::{Awaited, seconds};
use crate::listing::{ListOutcome, Listing, Step, is_offered};
use crate::revision::Era;
use contract::surface::ListKind;
use serde_json::Value;
use tokio::time::Instant;

impl Session<'_> {
    pub(super) async fn list_all(
        &mut self,
        era: Era,
        handshake: &str,
    ) -> Result<Vec<(ListKind, ListOutcome)>, Stop> {
        let mut lists = Vec::with_capacity(ListKind::ALL.len());
        for list in ListKind::ALL {
            let outcome = if is_offered(handshake, list) {
                self.list(era, list).await?
            } else {
                ListOutcome::NotOffered
            };
            lists.push((list, outcome));
        }
        Ok(lists)
    }

    async fn list(&mut self, era: Era, list: ListKind) -> Result<ListOutcome, Stop> {
        let patience = self.limits.list_timeout;
        let deadline = Instant::now() + patience;
        let mut listing = Listing::new(list);
        let mut cursor = None;
        loop {
            (self.progress)(Progress::Listing(list, listing.page()));
            let step = match self.page(era, list, cursor.as_deref(), deadline).await? {
                Asked::Answer(answer) => listing.hear(answer),
                Asked::Status(status) => listing.refused(format!("answered with status {status}")),
                Asked::Nothing => {
                    let after = seconds(patience);
                    let reason = format!("not answered in full within {after} s");
                    Step::Done(ListOutcome::Unreadable(reason))
                }
            };
            match step {
                Step::Ask(next) => cursor = Some(next),
                Step::Done(outcome) => {
                    self.notes.extend(listing.into_note());
                    return Ok(outcome);
                }
            }
        }
    }

    async fn page(
        &mut self,
        era: Era,
        list: ListKind,
        cursor: Option<&str>,
        deadline: Instant,
    ) -> Result<Asked, Stop> {
        let mut params = Vec::new();
        if let Some(cursor) = cursor {
            params.push(format!(r#""cursor":{}"#, Value::from(cursor)));
        }
        let stateless = era.stateless();
        if stateless.is_some() {
            params.push(format!(r#""_meta":{}"#, stateless_meta(self.client)));
        }
        let params = format!("{{{}}}", params.join(","));
        let (method, awaited) = (list.method(), Awaited::List(list));
        self.server.ask(method, &params, stateless, awaited, deadline).await
    }
}
