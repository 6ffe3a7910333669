//! A future that is polled when it was woken, and only then; where it wakes itself while it is polled, at once.
//!
//! hyper's server wakes itself for every request that has a body. A runtime with several threads queues such a task and wakes
//! another thread for it, so a connection would move from thread to thread in the middle of each call. That took longer than
//! everything the gateway does for the call. And a task that waits for several things polls all of them when one has
//! happened: what ends a connection once would be asked about several times in each call.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often a future is polled in a row. One that still wakes itself after that is queued, so that others get their turn.
const MAX_POLLS: usize = 8;

/// The states of [`Wakes`]: the future waits, is being polled, or was woken.
const WAITS: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// Polls a future where it was woken.
#[derive(Debug)]
pub(super) struct Eager<F> {
    future: F,
    wakes: Arc<Wakes>,
    /// The waker that the future gets.
    waker: Waker,
}

#[derive(Debug)]
struct Wakes {
    state: AtomicU8,
    /// The task that polls the future.
    task: Mutex<Waker>,
}

impl Wakes {
    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // One that is being polled is polled again by whoever does that.
        if self.state.swap(WOKEN, Ordering::AcqRel) == WAITS {
            self.task().wake_by_ref();
        }
    }
}

impl<F> Eager<F> {
    pub(super) fn new(future: F) -> Eager<F> {
        let task = Mutex::new(Waker::noop().clone());
        let wakes = Arc::new(Wakes { state: AtomicU8::new(WOKEN), task });
        Eager { future, waker: wakes.clone().into(), wakes }
    }

    /// The future itself, to do something with it. It is polled the next time.
    pub(super) fn inner(&mut self) -> &mut F {
        self.wakes.state.store(WOKEN, Ordering::Release);
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for Eager<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Eager { future, wakes, waker } = &mut *self;
        // INVARIANT: the task is known before the state is looked at, so a wake that comes afterwards reaches it.
        wakes.task().clone_from(context.waker());
        for polls in 0.. {
            if wakes.state.load(Ordering::Acquire) == WAITS {
                return Poll::Pending;
            }
            if polls == MAX_POLLS {
                break;
            }
            wakes.state.store(POLLED, Ordering::Release);
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(waker));
            if polled.is_ready() {
                return polled;
            }
            let order = (Ordering::AcqRel, Ordering::Acquire);
            let _ = wakes.state.compare_exchange(POLLED, WAITS, order.0, order.1);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls a future that wakes itself so often before it waits. Returns how often it was polled and its task was woken.
    fn check(own_wakes: usize) -> (usize, usize) {
        let (task, polls) = (Arc::new(Counter::default()), AtomicUsize::new(0));
        let waker = Waker::from(task.clone());
        let mut future = Eager::new(std::future::poll_fn(|context| {
            if polls.fetch_add(1, Ordering::SeqCst) < own_wakes {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        }));
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        (polls.load(Ordering::SeqCst), task.0.load(Ordering::SeqCst))
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_and_its_task_is_not_woken() {
        assert_eq!(check(0), (1, 0));
        assert_eq!(check(1), (2, 0));
        assert_eq!(check(MAX_POLLS - 1), (MAX_POLLS, 0));
    }

    #[test]
    fn a_future_that_wakes_itself_without_end_leaves_the_thread_to_others() {
        assert_eq!(check(MAX_POLLS), (MAX_POLLS, 1));
        assert_eq!(check(usize::MAX), (MAX_POLLS, 1));
    }

    #[test]
    fn a_future_that_waits_is_polled_once_it_was_woken_through_its_task() {
        let task = Arc::new(Counter::default());
        let waker = Waker::from(task.clone());
        let inner = Arc::new(Mutex::new(None));
        let (kept, polls) = (inner.clone(), AtomicUsize::new(0));
        let mut future = Eager::new(std::future::poll_fn(|context| {
            polls.fetch_add(1, Ordering::SeqCst);
            *kept.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        let poll = |future: &mut Eager<_>| {
            assert!(Pin::new(future).poll(&mut Context::from_waker(&waker)).is_pending());
            (polls.load(Ordering::SeqCst), task.0.load(Ordering::SeqCst))
        };
        assert_eq!(poll(&mut future), (1, 0));
        assert_eq!(poll(&mut future), (1, 0), "it was not woken");
        let wake = || inner.lock().unwrap().take().unwrap().wake();
        wake();
        assert_eq!(poll(&mut future), (2, 1));
        future.inner();
        assert_eq!(poll(&mut future), (3, 1), "something was done with it");
        wake();
        assert_eq!(poll(&mut future), (4, 2));
    }
}
