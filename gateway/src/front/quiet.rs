//! Connections on which nothing is asked for a while are ended. They are limited in number, and a stranger that asks nothing
//! must not hold them.

use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Whether something is asked on a connection, and since when nothing is.
#[derive(Debug)]
pub(super) struct Quiet(Mutex<State>);

#[derive(Debug)]
struct State {
    open: usize,
    since: Instant,
}

impl Quiet {
    pub(super) fn new() -> Arc<Quiet> {
        Arc::new(Quiet(Mutex::new(State { open: 0, since: Instant::now() })))
    }

    /// A request has come. It is open until this is dropped.
    pub(super) fn begin(self: &Arc<Quiet>) -> OpenRequest {
        self.state().open += 1;
        OpenRequest(self.clone())
    }

    /// Returns once nothing was asked for so long.
    pub(super) async fn lasts(&self, patience: Duration) {
        while let Some(left) = self.left(Instant::now(), patience) {
            tokio::time::sleep(left).await;
        }
    }

    /// How long to wait until it is looked at again; `None` if nothing was asked for so long.
    fn left(&self, now: Instant, patience: Duration) -> Option<Duration> {
        let State { open, since } = *self.state();
        if open > 0 {
            return Some(patience);
        }
        let left = patience.saturating_sub(now.saturating_duration_since(since));
        (!left.is_zero()).then_some(left)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is not answered to its end.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<Quiet>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open = state.open.saturating_sub(1);
        state.since = Instant::now();
    }
}

/// A body whose request is open for as long as it is.
#[derive(Debug)]
pub(super) struct OpenBody<B> {
    pub(super) body: B,
    pub(super) _request: OpenRequest,
}

impl<B: Body + Unpin> Body for OpenBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_quiet_while_no_request_is_open() {
        let (quiet, patience) = (Quiet::new(), Duration::from_secs(5));
        let now = Instant::now();
        assert!(quiet.left(now, patience).is_some());
        assert_eq!(quiet.left(now + patience, patience), None);
        let request = quiet.begin();
        assert_eq!(quiet.left(now + patience, patience), Some(patience));
        let another = quiet.begin();
        drop(request);
        assert_eq!(quiet.left(now + patience, patience), Some(patience));
        drop(another);
        assert!(quiet.left(Instant::now(), patience).is_some());
        assert_eq!(quiet.left(Instant::now() + patience, patience), None);
    }
}
