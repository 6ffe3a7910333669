//! The stream on which a server may send messages on its own: opened once a session has begun, and
//! kept open.

use super::exchange::Report;
use super::failure::RemoteFailure;
use super::link::Link;
use super::stream::{EventStream, Next, Place, StreamEnd};
use crate::http::headers;
use contract::trip::trip;
use http::StatusCode;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Passes on what the server sends, for as long as it offers such a stream.
pub(super) async fn listen(
    link: &Link,
    reports: &mpsc::Sender<Report>,
) -> Result<(), RemoteFailure> {
    let mut place = Place::start();
    loop {
        trip("listen", b"open");
        match open(link, &place).await? {
            Opened::Stream(mut stream) => loop {
                let text = match stream.next(&mut place).await {
                    Ok(Next::Message(text)) => text,
                    Ok(Next::Resumable { .. }) => continue,
                    Err(
                        StreamEnd::Finished
                        | StreamEnd::Silent
                        | StreamEnd::Broken(_)
                        | StreamEnd::Failed(_),
                    ) => break,
                };
                if reports.send(Report::Message(text)).await.is_err() {
                    return Ok(());
                }
            },
            Opened::NotNow => {}
            Opened::NotOffered => return Ok(()),
        }
        sleep(place.pause()).await;
        place.failures = place.failures.saturating_add(1);
    }
}

enum Opened<'l> {
    Stream(Box<EventStream<'l>>),
    NotNow,
    NotOffered,
}

async fn open<'l>(link: &'l Link, place: &Place) -> Result<Opened<'l>, RemoteFailure> {
    let request = link.get(place.last_id.as_ref());
    let in_session = request.headers().contains_key(headers::SESSION_ID);
    let Ok((live, response)) = link.ask(request).await else { return Ok(Opened::NotNow) };
    let status = response.status();
    if in_session && status == StatusCode::NOT_FOUND {
        return Err(RemoteFailure::SessionEnded);
    }
    let is_stream = headers::is_event_stream(response.headers());
    Ok(match status {
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Opened::NotNow
        }
        status
            if status.is_success() && is_stream && headers::plain_encoding(response.headers()) =>
        {
            Opened::Stream(Box::new(EventStream::new(link, live, response)))
        }
        // Most servers have none and respond with 405. Repeating the request would not help with
        // another refusal either.
        _ => Opened::NotOffered,
    })
}
