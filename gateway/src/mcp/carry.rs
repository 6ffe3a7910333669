//! Waits for the events of a request and builds the client's response: a single body, or an event
//! stream if anything comes before the answer.

use super::resume::Carried;
use super::rounds::{Rounds, UNOFFERED, asks_unoffered, input_required};
use super::subscribe::KEEP_ALIVE_PAUSE;
use super::tasks::{NOT_THE_TASK, TaskPart, made_task};
use super::{Visit, with_result_type};
use crate::asking::AskedFor;
use crate::flight::InFlight;
use crate::frame::{self, Edits, member};
use crate::greeting::Era;
use crate::link::{Given, Link, LinkRequest};
use crate::node::Node;
use crate::pending::Answer;
use crate::reply::{self, Reply};
use crate::request_state::{self, StateBinding};
use bytes::Bytes;
use http::StatusCode;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use wire::envelope::{Envelope, Kind, Outcome, Scanned, scan};

/// How the answer is transformed for the client.
#[derive(Debug, Default)]
pub(super) struct Showing {
    /// The request that a `requestState` in the answer is bound to.
    pub(super) binding: Option<StateBinding>,
    pub(super) task: TaskPart,
}

/// A request whose answer is sent in a stream, after other messages.
struct Streamed {
    node: Arc<Node>,
    visit: Box<Visit>,
    request: LinkRequest,
    showing: Showing,
    rounds: Option<Rounds>,
    in_flight: InFlight,
    /// Whether the answer may ask the client for something.
    may_ask: bool,
    sender: mpsc::Sender<Bytes>,
}

/// What happens to a stream when an answer arrives.
enum Streaming {
    /// The answer is the last event of the stream.
    Ends(Bytes),
    /// The request was repeated; another answer follows.
    GoesOn,
    /// The client has disconnected.
    Left,
}

impl Node {
    /// Waits for a request: responds with the answer as JSON, or with a stream if anything comes
    /// before it.
    pub(super) async fn carry(
        self: &Arc<Self>,
        visit: Box<Visit>,
        id: &[u8],
        mut request: LinkRequest,
        showing: Showing,
        rounds: Option<Rounds>,
    ) -> Reply {
        // If neither end uses the stateless era, no answer asks for input.
        let may_ask = showing.binding.is_some() || rounds.is_some();
        let asks_in_stream = rounds.is_some() && visit.session.is_some();
        let in_flight = self.in_flight(&visit, id);
        let limit = Duration::from_secs(self.shared.glance().front.limits.call_max_seconds);
        let over = sleep(limit);
        tokio::pin!(over);
        let first = loop {
            let given = tokio::select! {
                given = request.next() => given,
                () = &mut over => {
                    request.cancel();
                    return timed_out(id);
                }
                () = in_flight.cancelled() => {
                    request.cancel();
                    return cancelled(id);
                }
            };
            match given {
                Given::Answer(answer)
                    if may_ask && asks_unoffered(request.link(), answer.bytes()) =>
                {
                    let refusal = frame::error(id, -32603, UNOFFERED);
                    return reply::json(StatusCode::OK, [refusal.into()]);
                }
                Given::Answer(answer)
                    if asks_in_stream && input_required(answer.bytes()).is_some() =>
                {
                    break Given::Answer(answer);
                }
                Given::Answer(answer) => {
                    let status = status_of(&answer, visit.era);
                    let shown = self.shown(&visit, request.link(), &answer, id, &showing);
                    return reply::json(status, shown);
                }
                Given::Message(message) if visit.hears(&message) => {
                    break Given::Message(message);
                }
                Given::Resumable { retry } => {
                    let replay = self.replay_of(&visit, retry).filter(|_| rounds.is_none());
                    if let Some(replay) = replay {
                        let deadline = over.deadline();
                        let carried = Carried { visit, request, showing, in_flight, deadline };
                        return self.carry_resumable(carried, &replay);
                    }
                }
                Given::Paused => {}
                // A client that accepts no stream cannot be asked either.
                Given::Message(message) => {
                    self.questions.pass(None, request.link(), &message);
                }
            }
        };
        let (sender, receiver) = mpsc::channel(16);
        let node = self.clone();
        let streamed =
            Streamed { node, visit, request, showing, rounds, in_flight, may_ask, sender };
        tokio::spawn(streamed.run(first, over.deadline()));
        reply::events(receiver)
    }

    /// The answer for the client: with the client's own id, and what its era requires.
    pub(super) fn shown(
        &self,
        visit: &Visit,
        link: &Link,
        answer: &Answer,
        id: &[u8],
        Showing { binding, task }: &Showing,
    ) -> Vec<Bytes> {
        let has_task = !matches!(task, TaskPart::Nothing);
        let binding = binding.as_ref().filter(|_| visit.era == Era::Stateless);
        if binding.is_none() && !has_task {
            return answer.with_id(id).into();
        }
        let Ok(Scanned::Message(Envelope {
            kind: Kind::Response { outcome: Outcome::Result(result), .. },
            ..
        })) = scan(answer.bytes())
        else {
            return answer.with_id(id).into();
        };
        let whose = (&visit.principal_id, visit.era);
        match self.shown_task(link, result, task, whose) {
            Some(Ok(result)) => return answered(id, result.into()),
            Some(Err(words)) => return vec![frame::error(id, -32603, words).into()],
            None => {}
        }
        let Some(binding) = binding else { return answer.with_id(id).into() };
        if made_task(result, visit.era).is_some() {
            return vec![frame::error(id, -32603, NOT_THE_TASK).into()];
        }
        let sealed = request_state::seal(&self.shared.sealer, binding, result);
        let has_type = member(result, "resultType").is_some();
        let is_read = member(result, "contents").is_some();
        if sealed.is_none() && has_type && !is_read {
            return answer.with_id(id).into();
        }
        let result = sealed.as_deref().unwrap_or(result);
        let mut result =
            if has_type { Bytes::copy_from_slice(result) } else { with_result_type(result) };
        if is_read {
            result = private(&result);
        }
        answered(id, result)
    }
}

impl Streamed {
    /// Sends all events of the request to the client, up to the answer.
    async fn run(mut self, first: Given, deadline: Instant) {
        let over = sleep_until(deadline);
        tokio::pin!(over);
        let session = self.visit.session.as_ref().map(|session| session.number);
        let mut asked_for = AskedFor::new(self.node.clone(), session);
        let mut given = Some(first);
        loop {
            let next = match given.take() {
                Some(given) => Some(given),
                None => tokio::select! {
                    given = self.request.next() => Some(given),
                    () = sleep(KEEP_ALIVE_PAUSE) => None,
                    () = self.sender.closed() => return,
                    () = self.in_flight.cancelled() => return self.request.cancel(),
                    () = &mut over => {
                        self.request.cancel();
                        let late = frame::error(self.in_flight.id(), -32011, TOOK_TOO_LONG);
                        let _ = self.sender.try_send(reply::event(&[&late]));
                        return;
                    }
                },
            };
            let event = match next {
                None => reply::KEEP_ALIVE,
                Some(Given::Message(message)) if !self.visit.hears(&message) => continue,
                Some(Given::Resumable { .. } | Given::Paused) => continue,
                Some(Given::Message(message)) => {
                    match asked_for.pass(self.request.link(), &message) {
                        Some(message) => reply::event(&[&message]),
                        None => continue,
                    }
                }
                Some(Given::Answer(answer)) => match self.answered(&answer, over.as_mut()).await {
                    Streaming::GoesOn => continue,
                    Streaming::Left => return,
                    Streaming::Ends(event) => {
                        tokio::select! {
                            _ = self.sender.send(event) => {}
                            () = &mut over => {}
                        }
                        return;
                    }
                },
            };
            // A client that does not read cannot hold resources longer than a call may take.
            let is_sent = tokio::select! {
                sent = self.sender.send(event) => sent.is_ok(),
                () = &mut over => {
                    self.request.cancel();
                    false
                }
            };
            if !is_sent {
                return;
            }
        }
    }

    /// Handles an answer. An answer that asks the client for input is not the last one.
    async fn answered(&mut self, answer: &Answer, over: Pin<&mut Sleep>) -> Streaming {
        let Streamed { node, visit, request, showing, rounds, in_flight, sender, .. } = self;
        let id = in_flight.id();
        let asks = self.may_ask && input_required(answer.bytes()).is_some();
        if asks && asks_unoffered(request.link(), answer.bytes()) {
            return Streaming::Ends(reply::event(&[&frame::error(id, -32603, UNOFFERED)]));
        }
        let session = visit.session.as_ref().map(|session| session.number);
        let (Some(rounds), Some(session), true) = (rounds, session, asks) else {
            let parts = node.shown(visit, request.link(), answer, id, showing);
            let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
            return Streaming::Ends(reply::event(&parts));
        };
        // A question ends with its request.
        let next = tokio::select! {
            next = node.next_round(rounds, answer, session, sender) => next,
            () = in_flight.cancelled() => return Streaming::Left,
            () = sender.closed() => return Streaming::Left,
            () = over => Err(TOOK_TOO_LONG),
        };
        match next {
            Ok(mut next) => {
                request.give_slot(&mut next);
                *request = next;
                Streaming::GoesOn
            }
            Err(words) => Streaming::Ends(reply::event(&[&frame::error(id, -32603, words)])),
        }
    }
}

fn answered(id: &[u8], result: Bytes) -> Vec<Bytes> {
    let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","result":"#].concat();
    vec![beginning.into(), result, Bytes::from_static(b"}")]
}

/// Marks a resource as private, so that no shared cache stores it: access is decided for each
/// caller.
fn private(result: &[u8]) -> Bytes {
    let mut edits = Edits::of(result);
    match member(result, "cacheScope") {
        Some(scope) => edits.replace(scope, *br#""private""#),
        None => edits.insert(result, "cacheScope", br#""private""#),
    }
    if member(result, "ttlMs").is_none() {
        edits.insert(result, "ttlMs", b"0");
    }
    edits.finish().into()
}

/// The HTTP status of an answer. The stateless era assigns statuses to some errors.
fn status_of(answer: &Answer, era: Era) -> StatusCode {
    if era == Era::Sessions {
        return StatusCode::OK;
    }
    let Ok(Scanned::Message(Envelope {
        kind: Kind::Response { outcome: Outcome::Error(error), .. },
        ..
    })) = scan(answer.bytes())
    else {
        return StatusCode::OK;
    };
    match member(error, "code") {
        Some(b"-32020" | b"-32021" | b"-32022") => StatusCode::BAD_REQUEST,
        Some(b"-32601") => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

pub(super) const TOOK_TOO_LONG: &str =
    "○ holdpoint — the call took longer than it may (limits.call_max_seconds)";

fn timed_out(id: &[u8]) -> Reply {
    reply::json(StatusCode::OK, [frame::error(id, -32011, TOOK_TOO_LONG).into()])
}

pub(crate) fn cancelled(id: &[u8]) -> Reply {
    reply::json(
        StatusCode::OK,
        [frame::error(id, -32011, "○ holdpoint — the call was cancelled").into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_caller_read_is_kept_for_no_other() {
        let check = |result: &str, expected: &str| {
            let shown = private(result.as_bytes());
            let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
            assert_eq!(
                shown,
                serde_json::from_str::<serde_json::Value>(expected).unwrap(),
                "{result}"
            );
        };
        check(r#"{"contents":[]}"#, r#"{"contents":[],"ttlMs":0,"cacheScope":"private"}"#);
        check(
            r#"{"contents":[],"ttlMs":60000,"cacheScope":"public"}"#,
            r#"{"contents":[],"ttlMs":60000,"cacheScope":"private"}"#,
        );
    }
}
