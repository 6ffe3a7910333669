//! Calls whose stream a client may resume, on the path of a single server whose own stream can be
//! resumed.

use super::carry::{Showing, TOOK_TOO_LONG};
use super::subscribe::KEEP_ALIVE_PAUSE;
use super::{INVALID_REQUEST, Visit, fault};
use crate::asking::AskedFor;
use crate::catalog::Scope;
use crate::flight::InFlight;
use crate::frame;
use crate::greeting::{Era, NEWEST_WITH_SESSIONS};
use crate::link::{Given, LinkRequest};
use crate::node::Node;
use crate::replay::{Owner, Replay};
use crate::reply::{self, Reply};
use bytes::Bytes;
use engine::reason::ReasonCode;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A call in progress, and the client that waits for it.
pub(super) struct Carried {
    pub(super) visit: Box<Visit>,
    pub(super) request: LinkRequest,
    pub(super) showing: Showing,
    pub(super) in_flight: InFlight,
    pub(super) deadline: Instant,
}

fn owner(visit: &Visit) -> Option<Owner> {
    let session = visit.session.as_ref()?;
    Some(Owner { principal: visit.principal_id, session: session.number })
}

impl Node {
    /// The buffer for the stream of a call, if its client can resume it.
    pub(super) fn replay_of(&self, visit: &Visit, retry: Option<Duration>) -> Option<Arc<Replay>> {
        let is_one_server = matches!(visit.scope, Scope::Server(_));
        // Clients of earlier revisions do not expect an event without a message.
        let is_known =
            visit.session.as_ref().is_some_and(|session| session.version == NEWEST_WITH_SESSIONS);
        let may = is_one_server && is_known && visit.era == Era::Sessions && visit.takes_events;
        self.replays.begin(owner(visit).filter(|_| may)?, retry)
    }

    /// Carries a call to its answer, whether or not its client stays connected, and streams the
    /// buffered events.
    pub(super) fn carry_resumable(
        self: &Arc<Self>,
        carried: Carried,
        replay: &Arc<Replay>,
    ) -> Reply {
        tokio::spawn(self.clone().fill(carried, replay.clone()));
        self.stream_from(replay, 0)
    }

    async fn fill(self: Arc<Self>, carried: Carried, replay: Arc<Replay>) {
        let Carried { visit, mut request, showing, in_flight, deadline } = carried;
        let session = visit.session.as_ref().map(|session| session.number);
        let mut asked_for = AskedFor::new(self.clone(), session);
        let over = tokio::time::sleep_until(deadline);
        tokio::pin!(over);
        loop {
            let given = tokio::select! {
                given = request.next() => given,
                () = in_flight.cancelled() => {
                    request.cancel();
                    break;
                }
                () = &mut over => {
                    request.cancel();
                    replay.push(frame::error(in_flight.id(), ReasonCode::Timeout.code(), TOOK_TOO_LONG).into());
                    break;
                }
            };
            match given {
                Given::Message(message) if !visit.hears(&message) => {}
                Given::Message(message) => {
                    if let Some(message) = asked_for.pass(request.link(), &message) {
                        replay.push(message.into());
                    }
                }
                Given::Resumable { .. } => {}
                Given::Paused => replay.pause(),
                Given::Answer(answer) => {
                    let parts =
                        self.shown(&visit, request.link(), &answer, in_flight.id(), &showing);
                    replay.push(parts.into_iter().flatten().collect::<Bytes>());
                    break;
                }
            }
        }
        replay.end();
    }

    fn stream_from(self: &Arc<Self>, replay: &Arc<Replay>, place: u64) -> Reply {
        let (sender, receiver) = mpsc::channel(16);
        let sealer = self.shared.sealer.clone();
        tokio::spawn(replay.clone().follow(sealer, place, sender, KEEP_ALIVE_PAUSE));
        reply::events(receiver)
    }

    /// Resumes a stream after the last event that the client read.
    pub(crate) fn resume_stream(self: &Arc<Self>, visit: &Visit, last_event_id: &str) -> Reply {
        let sealer = &self.shared.sealer;
        let found = owner(visit).and_then(|owner| self.replays.find(sealer, owner, last_event_id));
        match found.filter(|(replay, place)| replay.has(place + 1)) {
            Some((replay, place)) => self.stream_from(&replay, place + 1),
            None => {
                self.note_refused(visit, ReasonCode::UnknownTool, 0);
                let words = "unknown event: its stream has ended or is not yours";
                fault(StatusCode::BAD_REQUEST, INVALID_REQUEST, words)
            }
        }
    }
}
