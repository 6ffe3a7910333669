//! Asking for the lists: every page, within the bounds of `contract`, as the bytes they came as.

use super::handshake::stateless_meta;
use super::{ListOutcome, Progress, Session, Stop};
use crate::correlate::Answer;
use crate::error::{Awaited, ObserveError, seconds};
use crate::http::Asked;
use crate::listing::{Cursor, is_offered, next_cursor};
use crate::message::{METHOD_NOT_FOUND, Request};
use crate::revision::Era;
use crate::server_text::ServerText;
use contract::surface::{ListKind, MAX_LIST_BYTES, MAX_LIST_PAGES};
use serde_json::Value;
use std::collections::HashSet;
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
        let deadline = Instant::now() + self.limits.list_timeout;
        let mut pages = Vec::new();
        let mut bytes = 0_usize;
        let mut cursors = HashSet::new();
        let mut cursor: Option<String> = None;
        loop {
            if pages.len() == MAX_LIST_PAGES {
                return Ok(unreadable(format!("more than {MAX_LIST_PAGES} pages")));
            }
            (self.progress)(Progress::Listing(list, pages.len() + 1));
            let page = match self.page(era, list, cursor.as_deref(), deadline).await? {
                Ok(page) => page,
                Err(outcome) => return Ok(outcome),
            };
            bytes = bytes.saturating_add(page.len());
            if bytes > MAX_LIST_BYTES {
                return Ok(unreadable(format!("larger than {MAX_LIST_BYTES} bytes")));
            }
            let next = next_cursor(&page);
            pages.push(page);
            match next {
                Cursor::End => return Ok(ListOutcome::Pages(pages)),
                Cursor::Empty => {
                    self.notes.push(format!(
                        "`{}` ended with an empty `nextCursor`, taken for the end",
                        list.method()
                    ));
                    return Ok(ListOutcome::Pages(pages));
                }
                Cursor::NotAString => {
                    return Ok(unreadable("a `nextCursor` that is not a string".to_owned()));
                }
                Cursor::Next(next) => {
                    if !cursors.insert(next.clone()) {
                        return Ok(unreadable("a `nextCursor` that came before".to_owned()));
                    }
                    cursor = Some(next);
                }
            }
        }
    }

    /// One page's result, or what the whole list comes to.
    async fn page(
        &mut self,
        era: Era,
        list: ListKind,
        cursor: Option<&str>,
        deadline: Instant,
    ) -> Result<Result<String, ListOutcome>, Stop> {
        let mut params = Vec::new();
        if let Some(cursor) = cursor {
            params.push(format!(r#""cursor":{}"#, Value::from(cursor)));
        }
        if let Era::Stateless { .. } = era {
            params.push(format!(r#""_meta":{}"#, stateless_meta(self.client)));
        }
        let params = format!("{{{}}}", params.join(","));
        let id = self.ids.next().map_err(ObserveError::NoRandomness)?;
        let request = Request::new(id, list.method(), &params);
        Ok(match self.connection.ask(&request, Awaited::List(list), deadline).await? {
            Asked::Answer(Answer::Result(result)) => Ok(result),
            Asked::Answer(Answer::Unreadable(reason)) => Err(ListOutcome::Unreadable(reason)),
            Asked::Answer(Answer::Error { code: METHOD_NOT_FOUND, .. }) => {
                Err(ListOutcome::NotOffered)
            }
            Asked::Answer(Answer::Error { code, message }) => {
                let message = ServerText::line(&message);
                Err(self.refused(list, format!("answered with error {code}: `{message}`")))
            }
            Asked::Status(status) => {
                Err(self.refused(list, format!("answered with status {status}")))
            }
            Asked::Nothing => Err(ListOutcome::Unreadable(format!(
                "not answered in full within {} s",
                seconds(self.limits.list_timeout)
            ))),
        })
    }

    /// What carries tools and prompts is closed by an error; resources are then left out, with a note.
    fn refused(&mut self, list: ListKind, reason: String) -> ListOutcome {
        match list {
            ListKind::Tools | ListKind::Prompts => ListOutcome::Unreadable(reason),
            ListKind::Resources | ListKind::ResourceTemplates => {
                self.notes.push(format!("`{}` was {reason}; left out", list.method()));
                ListOutcome::NotOffered
            }
        }
    }
}

fn unreadable(reason: String) -> ListOutcome {
    ListOutcome::Unreadable(reason)
}
