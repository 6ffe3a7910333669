//! A reusable timeout, for waits that come with every call and rarely take long.
//!
//! A runtime keeps its timers in one list that all threads contend for. So a connection keeps its
//! timer registered between calls, with a deadline that may be too early; when that fires, the
//! timer is reset to the actual deadline.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timeout that is used repeatedly.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    /// Waits for a future. Returns `None` if it takes longer than `patience`.
    pub(crate) async fn within<T>(
        &mut self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        let mut until = None;
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let until = *until.get_or_insert_with(|| Instant::now() + patience);
            self.poll_until(until, context).map(|()| None)
        })
        .await
    }

    fn poll_until(&mut self, until: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() > until {
            timer.as_mut().reset(until);
        }
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn each_wait_has_its_own_end_whatever_the_timer_was_set_to() {
        let mut silence = Silence::default();
        let soon = Duration::from_millis(20);
        assert_eq!(silence.within(soon, ready(1)).await, Some(1));
        assert!(silence.timer.is_none(), "what is there at once needs no timer");
        for patience in [3, 1, 2] {
            let began = Instant::now();
            assert_eq!(silence.within(soon * patience, pending::<()>()).await, None);
            assert!(began.elapsed() >= soon * patience, "{patience}");
        }
        // Leaves the timer at a later moment than the end of the next wait.
        let answered = silence.within(Duration::from_secs(60), tokio::time::sleep(soon)).await;
        assert!(answered.is_some());
        assert_eq!(silence.within(soon, pending::<()>()).await, None);
    }
}
