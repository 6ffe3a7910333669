//! A future that wakes itself while it is polled is polled again at once.
//!
//! hyper's server wakes itself for every request that has a body. A runtime with several threads queues such a task and wakes
//! another thread for it, so a connection would move from thread to thread in the middle of each call. That took longer than
//! everything the gateway does for the call.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often a future is polled in a row. One that still wakes itself after that is queued, so that others get their turn.
const MAX_POLLS: usize = 8;

/// The states of [`Wakes`]: the future waits, is being polled, or was woken while it was polled.
const WAITS: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// Polls a future again where it woke itself.
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
        let order = (Ordering::AcqRel, Ordering::Acquire);
        if self.state.compare_exchange(POLLED, WOKEN, order.0, order.1) == Err(WAITS) {
            self.task().wake_by_ref();
        }
    }
}

impl<F> Eager<F> {
    pub(super) fn new(future: F) -> Eager<F> {
        let task = Mutex::new(Waker::noop().clone());
        let wakes = Arc::new(Wakes { state: AtomicU8::new(WAITS), task });
        Eager { future, waker: wakes.clone().into(), wakes }
    }

    /// The future itself.
    pub(super) fn inner(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for Eager<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Eager { future, wakes, waker } = &mut *self;
        wakes.task().clone_from(context.waker());
        for _ in 0..MAX_POLLS {
            wakes.state.store(POLLED, Ordering::Release);
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(waker));
            let state = wakes.state.swap(WAITS, Ordering::AcqRel);
            if polled.is_ready() || state != WOKEN {
                return polled;
            }
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
    fn a_future_that_waits_is_woken_through_its_task() {
        let task = Arc::new(Counter::default());
        let waker = Waker::from(task.clone());
        let inner = Arc::new(Mutex::new(None));
        let kept = inner.clone();
        let mut future = Eager::new(std::future::poll_fn(move |context| {
            *kept.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        inner.lock().unwrap().take().unwrap().wake();
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
    }
}
