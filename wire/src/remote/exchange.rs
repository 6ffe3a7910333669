//! Sends one message and handles the outcome: a POST, its answer as a body or as a stream, and
//! resuming the stream if it breaks off.

use super::answer::{self, IdKey, Relation};
use super::budget::Share;
use super::failure::{RemoteFailure, Unreadable};
use super::limits::{LINGER, MAX_ACCEPTED_BYTES, MAX_RESUMES, RESUMED_PATIENCE};
use super::link::{Link, is_initialize};
use super::stream::{EventStream, Next, Patience, Place, StreamEnd};
use super::{Outbound, one_line};
use crate::http::body;
use crate::http::connect::Live;
use crate::http::headers::{self, SESSION_ID};
use http::header::WWW_AUTHENTICATE;
use http::{Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// What a task that talks to the server reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// A message that is not the answer to the task's request.
    Message(Vec<u8>),
    /// The answer to the request of the task with this ticket.
    Answer(Vec<u8>, u64),
    /// The session is established, so other messages may be sent in it.
    Settled(u64),
    /// The answer's stream has event ids, so it can be resumed.
    Resumable { retry: Option<Duration> },
    /// The stream ended before the answer, and will be resumed after a pause.
    Paused,
}

/// Receives the reports of a task.
pub(crate) trait Reports: Sync {
    fn take(&self, report: Report) -> impl Future<Output = ()> + Send;
}

impl Reports for mpsc::Sender<Report> {
    async fn take(&self, report: Report) {
        // The receiver is gone only if the relay is ending, and this task with it.
        let _ = self.send(report).await;
    }
}

/// One message being sent.
#[derive(Debug)]
pub(crate) struct Exchange<'l, R> {
    pub(crate) link: &'l Link,
    pub(crate) ticket: u64,
    pub(crate) reports: R,
}

impl<R: Reports> Exchange<'_, R> {
    /// Sends a notification or a response, and waits until the server has accepted it.
    pub(crate) async fn tell(&self, mut message: Outbound) -> Result<(), RemoteFailure> {
        let body = Bytes::from(std::mem::take(&mut message.body));
        let request = self.link.post(&message, body);
        let in_session = request.headers().contains_key(SESSION_ID);
        let after = self.link.limits.accept_timeout;
        let sent = match timeout(after, self.link.send(request)).await {
            Ok(sent) => sent,
            Err(_) => return Err(RemoteFailure::Silent { after }),
        };
        let (mut live, mut response) = sent?;
        match response.status() {
            StatusCode::NOT_FOUND if in_session => return Err(RemoteFailure::SessionEnded),
            status if !status.is_success() => return Err(RemoteFailure::Status { status }),
            _ => {}
        }
        // It is already accepted. Read a possible body only briefly, to be able to keep the
        // connection.
        let rest = body::read(&mut live.line, response.body_mut(), MAX_ACCEPTED_BYTES);
        if let Ok(Ok(Some(_))) = timeout(LINGER, rest).await {
            self.link.keep(live);
        }
        Ok(())
    }

    /// Sends a request and reports everything received for it, up to the answer.
    pub(crate) async fn ask(&self, mut message: Outbound) -> Result<(), RemoteFailure> {
        let body = Bytes::from(std::mem::take(&mut message.body));
        let request = self.link.post(&message, body);
        let id = message.id.as_deref().unwrap_or_default();
        let in_session = request.headers().contains_key(SESSION_ID);
        let (live, response) = self.link.ask(request).await?;
        check(&response)?;
        let initializes = is_initialize(&message);
        if initializes && response.status().is_success() {
            self.link.enter_session(headers::session_id(response.headers()));
            self.report(Report::Settled(self.ticket)).await;
        }
        let resumable = !self.link.is_stateless(&message);
        let asked = Asked { id, key: IdKey::new(id), initializes, resumable };
        if headers::is_event_stream(response.headers()) && response.status().is_success() {
            // Boxed because most answers are bodies: the stream's code would make the future of
            // every request larger.
            let stream = EventStream::new(self.link, live, response);
            return Box::pin(self.follow(stream, &asked)).await;
        }
        let status = response.status();
        let body = self.whole(live, response).await;
        let answer = body.and_then(|body| judge(status, body, &asked));
        // A 404 may also mean that the server lacks the method. It then names the request, and the
        // session still exists.
        let is_named = answer.as_ref().is_ok_and(|answer| answer.names_request);
        if in_session && status == StatusCode::NOT_FOUND && !is_named {
            return Err(RemoteFailure::SessionEnded);
        }
        self.answered(answer?.text, &asked).await;
        Ok(())
    }

    /// Reads the whole body. The connection is kept if the body was complete.
    async fn whole(
        &self,
        mut live: Live,
        mut response: Response<Incoming>,
    ) -> Result<Vec<u8>, RemoteFailure> {
        let (after, limit) = (self.link.limits.idle_timeout, self.link.limits.frame_bytes);
        let status = response.status();
        let mut share = Share::new(&self.link.budget);
        let mut held = Ok(());
        let Live { line, silence } = &mut live;
        let reading = body::read_while(line, response.body_mut(), limit, |bytes| {
            held = share.hold(bytes);
            held.is_ok()
        });
        match silence.within(after, reading).await {
            Some(Ok(Some(body))) => {
                self.link.keep(live);
                Ok(body)
            }
            Some(Ok(None)) if !status.is_success() => Err(RemoteFailure::Status { status }),
            Some(Ok(None)) => Err(held.err().unwrap_or(Unreadable::TooLong { limit }).into()),
            Some(Err(source)) => Err(self.link.lost(source)),
            None => Err(RemoteFailure::Silent { after }),
        }
    }

    async fn answered(&self, text: Vec<u8>, asked: &Asked<'_>) {
        if asked.initializes
            && let Some(version) = answer::initialized(&text)
        {
            self.link.begin(version.as_deref());
        }
        self.report(Report::Answer(text, self.ticket)).await;
    }

    /// Reads a stream up to the answer, over as many connections as necessary.
    async fn follow<'l>(
        &'l self,
        mut stream: EventStream<'l>,
        asked: &Asked<'_>,
    ) -> Result<(), RemoteFailure> {
        let mut place = Place::start();
        loop {
            let failure = match self.read(&mut stream, asked, &mut place).await {
                Ok(()) => {
                    self.linger(stream, &mut place).await;
                    return Ok(());
                }
                Err(StreamEnd::Failed(failure)) => return Err(failure),
                Err(StreamEnd::Finished) => Unreadable::StreamEnded.into(),
                Err(StreamEnd::Broken(failure)) => failure,
                Err(StreamEnd::Silent) => {
                    let after = self.link.limits.idle_timeout;
                    if place.moved.elapsed() >= after {
                        return Err(RemoteFailure::Silent { after });
                    }
                    place.failures = 0;
                    RemoteFailure::Silent { after }
                }
            };
            if !asked.resumable || place.last_id.is_none() {
                return Err(failure);
            }
            self.report(Report::Paused).await;
            stream = self.resume(&mut place, failure).await?;
        }
    }

    async fn read(
        &self,
        stream: &mut EventStream<'_>,
        asked: &Asked<'_>,
        place: &mut Place,
    ) -> Result<(), StreamEnd> {
        loop {
            let text = match stream.next(place).await? {
                Next::Message(text) => text,
                Next::Resumable { retry } => {
                    if asked.resumable {
                        self.report(Report::Resumable { retry }).await;
                    }
                    continue;
                }
            };
            match answer::relation(&text, &asked.key) {
                Relation::Result | Relation::Error | Relation::InBatch => {
                    self.answered(text, asked).await;
                    return Ok(());
                }
                Relation::StrayError(_) | Relation::Other => {
                    self.report(Report::Message(text)).await;
                }
            }
        }
    }

    /// Passes on what follows the answer. If the stream then ends, its connection can be reused.
    async fn linger(&self, mut stream: EventStream<'_>, place: &mut Place) {
        let rest = async {
            loop {
                match stream.next(place).await {
                    Ok(Next::Message(text)) => self.report(Report::Message(text)).await,
                    Ok(Next::Resumable { .. }) => {}
                    Err(end) => return matches!(end, StreamEnd::Finished),
                }
            }
        };
        if let Ok(true) = timeout(LINGER, rest).await {
            stream.keep();
        }
    }

    /// Requests the rest of a stream that ended with `failure`.
    async fn resume(
        &self,
        place: &mut Place,
        mut failure: RemoteFailure,
    ) -> Result<EventStream<'_>, RemoteFailure> {
        while place.failures < MAX_RESUMES {
            sleep(place.pause()).await;
            place.failures += 1;
            let request = self.link.get(place.last_id.as_ref());
            let in_session = request.headers().contains_key(SESSION_ID);
            let (live, response) = match self.link.ask(request).await {
                Ok(answered) => answered,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            match response.status() {
                StatusCode::NOT_FOUND if in_session => {
                    return Err(RemoteFailure::SessionEnded);
                }
                status if status.is_server_error() => {
                    failure = RemoteFailure::Status { status };
                    continue;
                }
                // The server cannot resume streams, so the rest is lost.
                status if !status.is_success() => return Err(failure),
                _ => {}
            }
            check(&response)?;
            if !headers::is_event_stream(response.headers()) {
                return Err(failure);
            }
            let patience = Patience::Events(RESUMED_PATIENCE.min(self.link.limits.idle_timeout));
            let stream = EventStream::new(self.link, live, response);
            return Ok(stream.with_patience(patience));
        }
        Err(failure)
    }

    async fn report(&self, report: Report) {
        self.reports.take(report).await;
    }
}

/// The facts about a request that are needed while it waits for its answer.
#[derive(Debug)]
struct Asked<'a> {
    id: &'a [u8],
    key: IdKey<'a>,
    initializes: bool,
    /// Whether its stream may be resumed. The stateless era has no such feature.
    resumable: bool,
}

/// An answer received as a body.
struct Judged {
    text: Vec<u8>,
    /// The server's message had the request's id.
    names_request: bool,
}

/// Refuses responses that cannot be an answer to any request.
fn check(response: &Response<Incoming>) -> Result<(), RemoteFailure> {
    let (status, headers) = (response.status(), response.headers());
    if status == StatusCode::UNAUTHORIZED {
        let challenged = headers.contains_key(WWW_AUTHENTICATE);
        return Err(RemoteFailure::NeedsSignIn { challenged });
    }
    if status.is_redirection() {
        let target = headers::redirect_target(headers);
        return Err(RemoteFailure::RedirectRefused { status, target });
    }
    if !headers::plain_encoding(headers) {
        return Err(Unreadable::Encoded.into());
    }
    Ok(())
}

/// The answer in a body. The body is the response to this request, so an error in it is about this
/// request whatever its id: a server that could not read a request does not know its id.
fn judge(
    status: StatusCode,
    mut body: Vec<u8>,
    asked: &Asked<'_>,
) -> Result<Judged, RemoteFailure> {
    let is_line = one_line::make(&mut body).is_ok();
    let refused = || match status.is_success() {
        true if !is_line => Unreadable::BreakInString.into(),
        true => Unreadable::NotTheAnswer { status }.into(),
        false => RemoteFailure::Status { status },
    };
    if !is_line {
        return Err(refused());
    }
    match answer::relation(&body, &asked.key) {
        Relation::Result if status.is_success() => Ok(Judged { text: body, names_request: true }),
        Relation::Error => Ok(Judged { text: body, names_request: true }),
        Relation::StrayError(error) => {
            Ok(Judged { text: answer::readdress(error, asked.id), names_request: false })
        }
        Relation::Result | Relation::InBatch | Relation::Other => Err(refused()),
    }
}
