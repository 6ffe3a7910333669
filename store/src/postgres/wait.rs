//! Waits for a future without a runtime: the calling thread sleeps until the connection's thread
//! wakes it.
//!
//! The store's methods block, and may be called inside a runtime, where `block_on` would panic.
//! This works there too.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The future's output, or `None` if that takes longer than `patience`.
pub(super) fn wait<T>(future: impl Future<Output = T>, patience: Duration) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    let deadline = Instant::now() + patience;
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return Some(answer);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::wait;
    use std::time::{Duration, Instant};

    #[test]
    fn an_answer_that_another_thread_gives_wakes_the_one_that_waits() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = std::thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(wait(receiver, Duration::from_secs(10)), Some(Ok(7)));
        other.join().unwrap();
    }

    #[test]
    fn waiting_ends_where_patience_does() {
        let start = Instant::now();
        assert_eq!(wait(std::future::pending::<()>(), Duration::from_millis(20)), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}
