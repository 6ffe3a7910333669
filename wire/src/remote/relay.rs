//! The loop between the queue and the server: sends messages when they are allowed, and tracks
//! those in flight.

use super::answer::{self, IdKey};
use super::exchange::{Exchange, Report};
use super::failure::RemoteFailure;
use super::lane::{self, Lane};
use super::limits::{CANCEL_GRACE, HEARD_MESSAGES, MAX_WAITING, MAX_WAITING_BYTES};
use super::link::{Link, is_initialize};
use super::listen::listen;
use super::{Inbound, Outbound};
use crate::limits::GOODBYE_TIMEOUT;
use contract::trip::trip;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

type Hear<'h> = &'h mut dyn FnMut(Inbound<'_>);
type Joined = Result<(task::Id, Result<(), RemoteFailure>), JoinError>;

/// A message in flight.
struct Flight {
    ticket: u64,
    /// `None` for the stream of the server's own messages.
    lane: Option<Lane>,
    /// The id of a request that has not been answered yet.
    id: Option<Vec<u8>>,
    mark: Option<[u8; 16]>,
    /// The message announces that the session is ready, after which the server's stream may be
    /// opened.
    announces: bool,
    is_stateless: bool,
    initializes: bool,
    cancel: Option<oneshot::Sender<Duration>>,
}

/// The state of the relay.
pub(super) struct Relay<'h> {
    link: Arc<Link>,
    hear: Hear<'h>,
    waiting: VecDeque<Outbound>,
    waiting_bytes: usize,
    flights: HashMap<task::Id, Flight>,
    tasks: JoinSet<Result<(), RemoteFailure>>,
    reports: mpsc::Sender<Report>,
    heard: mpsc::Receiver<Report>,
    /// The task that receives what the server sends on its own.
    listener: Option<AbortHandle>,
    /// The message that must be accepted before any other is sent.
    barrier: Option<u64>,
    tickets: u64,
    /// The request being taken or launched, which is in none of the other fields meanwhile.
    handled: Option<Vec<u8>>,
}

impl<'h> Relay<'h> {
    pub(super) fn new(link: Arc<Link>, hear: Hear<'h>) -> Self {
        let (reports, heard) = mpsc::channel(HEARD_MESSAGES);
        Relay {
            link,
            hear,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flights: HashMap::new(),
            tasks: JoinSet::new(),
            reports,
            heard,
            listener: None,
            barrier: None,
            tickets: 0,
            handled: None,
        }
    }

    /// Runs until every sender is dropped and their messages are done, or until the session has
    /// ended.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Outbound>) {
        let mut deadline = None;
        loop {
            self.contain(Relay::dispatch);
            if deadline.is_some() && self.is_done() {
                break;
            }
            let has_room = self.has_room();
            let over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(report) = self.heard.recv() => {
                    self.contain(|relay| relay.pass(report));
                }
                Some(joined) = self.tasks.join_next_with_id() => {
                    if let Some(Err(failure)) = self.contain(|relay| relay.land(joined)) {
                        self.fail_all(&|| RemoteFailure::SessionEnded);
                        return refuse_all(&mut queue, self.hear, failure);
                    }
                }
                message = queue.recv(), if deadline.is_none() && has_room => match message {
                    Some(message) => {
                        self.contain(|relay| relay.take(message));
                    }
                    None => deadline = Some(Instant::now() + self.link.limits.shutdown_grace),
                },
                () = over => break,
            }
        }
        self.fail_all(&|| RemoteFailure::Closing);
        if let Some(goodbye) = self.link.delete() {
            let _ = timeout(GOODBYE_TIMEOUT, self.link.send(goodbye)).await;
        }
    }

    /// Runs one step. After a panic no state here is trusted: every pending request is reported as
    /// failed, and the next message finds the relay in its initial state.
    fn contain<T>(&mut self, step: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if let Ok(done) = catch_unwind(AssertUnwindSafe(|| step(self))) {
            return Some(done);
        }
        (self.hear)(Inbound::Fault);
        if let Some(id) = self.handled.take() {
            (self.hear)(Inbound::Failed { id, failure: RemoteFailure::Internal });
        }
        self.fail_all(&|| RemoteFailure::Internal);
        (self.waiting_bytes, self.barrier) = (0, None);
        if self.listener.take().is_some() {
            self.listen();
        }
        None
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING && self.waiting_bytes < MAX_WAITING_BYTES
    }

    /// Whether nothing is waiting and nothing but the server's own stream is in flight.
    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.flights.values().all(|flight| flight.lane.is_none())
    }

    /// Takes a message from the queue.
    fn take(&mut self, message: Outbound) {
        self.handled.clone_from(&message.id);
        trip("relay", &message.body);
        if let Some(key) = answer::cancelled(&message)
            && self.cancel(&key, &message)
        {
            return;
        }
        self.waiting_bytes = self.waiting_bytes.saturating_add(message.body.len());
        self.waiting.push_back(message);
        self.handled = None;
    }

    /// Cancels a request locally. Returns whether the server need not be notified.
    fn cancel(&mut self, key: &IdKey<'_>, message: &Outbound) -> bool {
        let is_given_up = message.mark.is_some();
        let is_it = |id: &Option<Vec<u8>>, mark: Option<[u8; 16]>| {
            id.as_deref().is_some_and(|id| IdKey::new(id) == *key)
                && (!is_given_up || mark == message.mark)
        };
        if let Some(index) = self.waiting.iter().position(|other| is_it(&other.id, other.mark)) {
            let removed = self.remove(index).and_then(|message| message.id);
            if let Some(id) = removed.filter(|_| !is_given_up) {
                (self.hear)(Inbound::Failed { id, failure: RemoteFailure::Cancelled });
            }
            return true;
        }
        let found = self.flights.values_mut().find(|flight| is_it(&flight.id, flight.mark));
        let Some(flight) = found else {
            // Without a session the server does not know the request.
            return is_given_up || self.link.is_stateless(message) || !self.link.has_begun();
        };
        if is_given_up {
            // Its id may have been reused for another request.
            flight.id = None;
        }
        // Without a session, closing the stream is the cancellation. With a session the server is
        // told; many servers never close the stream of a cancelled request, so it is dropped after
        // a grace period. An `initialize` is dropped without telling the server: there is no
        // session yet to cancel it in, and all other messages wait for it.
        let is_silent = flight.is_stateless || flight.initializes;
        let grace = if is_silent { Duration::ZERO } else { CANCEL_GRACE };
        if let Some(cancel) = flight.cancel.take() {
            let _ = cancel.send(grace);
        }
        is_silent
    }

    /// Sends the waiting messages in order. A message without room in its lane is overtaken by
    /// messages in other lanes.
    fn dispatch(&mut self) {
        let mut index = 0;
        while self.barrier.is_none()
            && let Some(message) = self.waiting.get(index)
        {
            let lane = Lane::of(message);
            let is_barrier = lane::holds_others_back(message);
            let busy = self.flights.values().filter(|flight| flight.lane == Some(lane)).count();
            if busy < lane.limit() {
                if let Some(message) = self.remove(index) {
                    let ticket = self.launch(message, lane);
                    self.barrier = is_barrier.then_some(ticket);
                }
            } else if is_barrier {
                return;
            } else {
                index += 1;
            }
        }
    }

    fn remove(&mut self, index: usize) -> Option<Outbound> {
        let message = self.waiting.remove(index)?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(message.body.len());
        Some(message)
    }

    fn launch(&mut self, message: Outbound, lane: Lane) -> u64 {
        self.handled.clone_from(&message.id);
        let ticket = self.next_ticket();
        let (cancel, cancelled) = oneshot::channel();
        let flight = Flight {
            ticket,
            lane: Some(lane),
            id: message.id.clone(),
            mark: message.mark,
            announces: lane::is_announcement(&message),
            is_stateless: self.link.is_stateless(&message),
            initializes: is_initialize(&message),
            cancel: Some(cancel),
        };
        let (link, reports) = (Arc::clone(&self.link), self.reports.clone());
        let handle = self.tasks.spawn(async move {
            let exchange = Exchange { link: &link, ticket, reports };
            let talk = async {
                trip("exchange", &message.body);
                match message.id {
                    Some(_) => exchange.ask(message).await,
                    None => exchange.tell(message).await,
                }
            };
            tokio::select! {
                outcome = talk => outcome,
                () = after(cancelled) => Err(RemoteFailure::Cancelled),
            }
        });
        self.flights.insert(handle.id(), flight);
        self.handled = None;
        ticket
    }

    fn listen(&mut self) {
        let ticket = self.next_ticket();
        let (link, reports) = (Arc::clone(&self.link), self.reports.clone());
        let handle = self.tasks.spawn(async move { listen(&link, &reports).await });
        let flight = Flight {
            ticket,
            lane: None,
            id: None,
            mark: None,
            announces: false,
            is_stateless: false,
            initializes: false,
            cancel: None,
        };
        self.flights.insert(handle.id(), flight);
        // A new session replaces the old one's stream with its own.
        if let Some(former) = self.listener.replace(handle) {
            former.abort();
        }
    }

    fn next_ticket(&mut self) -> u64 {
        self.tickets = self.tickets.wrapping_add(1);
        self.tickets
    }

    /// Passes on the report of a task.
    fn pass(&mut self, report: Report) {
        match report {
            Report::Message(text) => (self.hear)(Inbound::Message(&text)),
            Report::Answer(text, ticket) => {
                let answered = self.flights.values_mut().find(|flight| flight.ticket == ticket);
                if let Some(flight) = answered {
                    flight.id = None;
                    (self.hear)(Inbound::Message(&text));
                }
            }
            Report::Settled(ticket) => self.lift(ticket),
            // The client of a process sees a single stream, whatever carries it.
            Report::Resumable { .. } | Report::Paused => {}
        }
    }

    fn lift(&mut self, ticket: u64) {
        if self.barrier == Some(ticket) {
            self.barrier = None;
        }
    }

    /// Handles a task that has ended, after its remaining reports. An error means that the session
    /// has ended.
    fn land(&mut self, joined: Joined) -> Result<(), RemoteFailure> {
        while let Ok(report) = self.heard.try_recv() {
            self.pass(report);
        }
        let (task, outcome) = match joined {
            Ok((task, outcome)) => (task, outcome),
            Err(error) if error.is_panic() => (error.id(), Err(RemoteFailure::Panicked)),
            // A stream that was dropped in favor of another one.
            Err(error) => (error.id(), Err(RemoteFailure::Cancelled)),
        };
        let Some(flight) = self.flights.remove(&task) else { return Ok(()) };
        self.lift(flight.ticket);
        if matches!(outcome, Err(RemoteFailure::Panicked)) && flight.id.is_none() {
            (self.hear)(Inbound::Fault);
            if flight.lane.is_none() {
                self.listen();
            }
            return Ok(());
        }
        let failure = match outcome {
            Ok(()) if flight.announces && self.link.has_begun() => {
                self.listen();
                return Ok(());
            }
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        let ends = matches!(failure, RemoteFailure::SessionEnded);
        if let Some(id) = flight.id {
            (self.hear)(Inbound::Failed { id, failure });
        }
        if ends { Err(RemoteFailure::SessionEnded) } else { Ok(()) }
    }

    /// Reports every unanswered request as failed.
    fn fail_all(&mut self, why: &dyn Fn() -> RemoteFailure) {
        while let Ok(report) = self.heard.try_recv() {
            self.pass(report);
        }
        self.tasks.abort_all();
        let flying = self.flights.drain().filter_map(|(_, flight)| flight.id);
        let waiting = self.waiting.drain(..).filter_map(|message| message.id);
        for id in flying.chain(waiting) {
            (self.hear)(Inbound::Failed { id, failure: why() });
        }
    }
}

/// Takes no more messages, reports those in the queue as not sent, and reports the end.
pub(super) fn refuse_all(
    queue: &mut mpsc::Receiver<Outbound>,
    hear: &mut dyn FnMut(Inbound<'_>),
    why: RemoteFailure,
) {
    queue.close();
    while let Ok(message) = queue.try_recv() {
        if let Some(id) = message.id {
            hear(Inbound::Failed { id, failure: RemoteFailure::NeverReached });
        }
    }
    hear(Inbound::Ended(why));
}

/// Returns once the request has been cancelled and the grace period is over.
async fn after(cancelled: oneshot::Receiver<Duration>) {
    match cancelled.await {
        Ok(grace) => sleep(grace).await,
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tls::TlsKey;
    use crate::remote::RemoteLimits;
    use crate::upstream::HttpEndpoint;

    #[tokio::test]
    async fn messages_are_taken_until_their_number_or_their_bytes_are_at_the_limit() {
        let url = "http://127.0.0.1:1/".parse().unwrap();
        let endpoint =
            HttpEndpoint { url, headers: Vec::new(), allow_private: false, authorizer: None };
        let limits = RemoteLimits::default();
        let link = Arc::new(
            Link::open(&endpoint, None, TlsKey::default(), limits, GOODBYE_TIMEOUT).await.unwrap(),
        );
        let has_room = |sizes: &[usize]| {
            let mut hear = |_: Inbound<'_>| {};
            let mut relay = Relay::new(Arc::clone(&link), &mut hear);
            for &size in sizes {
                relay.take(Outbound { body: vec![0; size], ..Outbound::default() });
            }
            let had_room = relay.has_room();
            while relay.remove(0).is_some() {}
            assert!(relay.has_room() && relay.waiting_bytes == 0);
            had_room
        };
        assert!(has_room(&[1; MAX_WAITING - 1]));
        assert!(!has_room(&[1; MAX_WAITING]));
        assert!(has_room(&[MAX_WAITING_BYTES / 2, MAX_WAITING_BYTES / 2 - 1]));
        assert!(!has_room(&[MAX_WAITING_BYTES / 2, MAX_WAITING_BYTES / 2]));
    }
}
