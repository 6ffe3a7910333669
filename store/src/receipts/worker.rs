//! The two threads of this process that look after all of its chains: one brings lines to the disk, one signs.
//!
//! Two, because a sync may take long, and calls would have to sign for themselves meanwhile. No chain has a thread of its
//! own, and a panic on behalf of one chain ends that chain alone.

use super::signer::Desk;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often lines are brought to the disk where `fsync = "interval"`.
pub const SYNC_INTERVAL_MILLISECONDS: u64 = 1_000;

/// What the threads need is little, and most of it is for retention, which reads old segments.
const STACK_BYTES: usize = 512 * 1024;

const ENDED: &str = "the thread that brings receipts to the disk has ended";

/// A chain, as the thread for the disk sees it.
pub(super) trait Tended: Send + Sync {
    /// Whether the chain asked to be looked after before its time. Asked once, it is no more.
    fn take_asked(&self) -> bool;
    /// Brings lines to the disk, and does what else is due.
    fn tend(&self);
    /// Nothing may be written any more.
    fn fail(&self, why: &str);
}

#[derive(Debug, Default)]
pub(super) struct Worker {
    duty: Mutex<Duty>,
    changed: Condvar,
    desks: Mutex<VecDeque<Arc<Desk>>>,
    given: Condvar,
}

#[derive(Default)]
struct Duty {
    chains: Vec<(u64, Weak<dyn Tended>)>,
    is_asked: bool,
    /// The chain that is being looked after.
    busy_with: Option<u64>,
    is_over: bool,
}

impl std::fmt::Debug for Duty {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Duty").field("chains", &self.chains.len()).finish_non_exhaustive()
    }
}

impl Worker {
    /// The worker of this process. Its threads are started with the first chain.
    pub(super) fn of_process() -> io::Result<Arc<Worker>> {
        static WORKER: Mutex<Option<Arc<Worker>>> = Mutex::new(None);
        let mut worker = WORKER.lock().map_err(|_| io::Error::other(ENDED))?;
        match &*worker {
            Some(worker) if worker.duty.lock().is_ok_and(|duty| !duty.is_over) => {
                Ok(worker.clone())
            }
            _ => Ok(worker.insert(Worker::start()?).clone()),
        }
    }

    pub(super) fn start() -> io::Result<Arc<Worker>> {
        let worker = Arc::new(Worker::default());
        let spawn = |name: &str, work: fn(&Worker)| {
            let worker = worker.clone();
            let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
            thread.spawn(move || work(&worker))
        };
        spawn("receipts-disk", Worker::look_after_disk)?;
        spawn("receipts-sign", Worker::sign_all)?;
        Ok(worker)
    }

    /// Looks after a chain from now on.
    pub(super) fn add(&self, id: u64, chain: Weak<dyn Tended>) -> io::Result<()> {
        let mut duty = self.duty()?;
        duty.chains.push((id, chain));
        self.changed.notify_all();
        Ok(())
    }

    /// Looks after a chain no more: when this returns, no thread here has to do with it.
    pub(super) fn remove(&self, id: u64) {
        let Ok(mut duty) = self.duty() else { return };
        duty.chains.retain(|(known, _)| *known != id);
        while duty.busy_with == Some(id) {
            let Ok(woken) = self.changed.wait(duty) else { return };
            duty = woken;
        }
    }

    /// A chain has something to do that does not wait for the next round.
    pub(super) fn ask(&self) {
        if let Ok(mut duty) = self.duty() {
            duty.is_asked = true;
        }
        self.changed.notify_all();
    }

    /// Has a checkpoint signed.
    pub(super) fn sign(&self, desk: Arc<Desk>) {
        // With the lock poisoned, only the chain itself signs, when it has to.
        // One that is there still is one whose chain took a checkpoint back.
        if let Ok(mut desks) = self.desks.lock()
            && !desks.iter().any(|known| Arc::ptr_eq(known, &desk))
        {
            desks.push_back(desk);
        }
        self.given.notify_one();
    }

    fn duty(&self) -> io::Result<MutexGuard<'_, Duty>> {
        let duty = self.duty.lock().map_err(|_| io::Error::other(ENDED))?;
        if duty.is_over { Err(io::Error::other(ENDED)) } else { Ok(duty) }
    }

    fn look_after_disk(&self) {
        let _end = EndOfDuty(self);
        let pause = Duration::from_millis(SYNC_INTERVAL_MILLISECONDS);
        let mut next_round = Instant::now() + pause;
        while let Ok(duty) = self.duty() {
            let left = next_round.saturating_duration_since(Instant::now());
            let is_idle = |duty: &mut Duty| !duty.is_asked;
            let woken = if duty.chains.is_empty() {
                self.changed.wait_while(duty, |duty| duty.chains.is_empty()).ok()
            } else {
                self.changed.wait_timeout_while(duty, left, is_idle).ok().map(|woken| woken.0)
            };
            let Some(mut duty) = woken else { return };
            duty.is_asked = false;
            let chains = duty.chains.clone();
            drop(duty);
            let is_round = Instant::now() >= next_round;
            if is_round {
                next_round = Instant::now() + pause;
            }
            for (id, chain) in chains {
                self.look_after_one(id, &chain, is_round);
            }
        }
    }

    fn look_after_one(&self, id: u64, chain: &Weak<dyn Tended>, is_round: bool) {
        // The chain itself is held only between these two, so that who removes it knows when it is let go.
        if !self.duty().is_ok_and(|mut duty| {
            let is_known = duty.chains.iter().any(|(known, _)| *known == id);
            duty.busy_with = is_known.then_some(id);
            is_known
        }) {
            return;
        }
        let _end = EndOfVisit(self);
        let Some(chain) = chain.upgrade() else { return };
        if (chain.take_asked() || is_round)
            && catch_unwind(AssertUnwindSafe(|| chain.tend())).is_err()
        {
            chain.fail("the thread that brings them to the disk has panicked");
        }
    }

    fn sign_all(&self) {
        give_way();
        while let Ok(desks) = self.desks.lock() {
            let Ok(mut desks) = self.given.wait_while(desks, |desks| desks.is_empty()) else {
                return;
            };
            let desk = desks.pop_front();
            drop(desks);
            // A panic is the outcome that the chain finds on its desk.
            let _ = catch_unwind(AssertUnwindSafe(|| desk.iter().for_each(|desk| desk.work())));
        }
    }
}

struct EndOfVisit<'w>(&'w Worker);

impl Drop for EndOfVisit<'_> {
    fn drop(&mut self) {
        if let Ok(mut duty) = self.0.duty() {
            duty.busy_with = None;
        }
        self.0.changed.notify_all();
    }
}

/// However the thread for the disk ends, no chain goes on as if lines still came to the disk.
struct EndOfDuty<'w>(&'w Worker);

impl Drop for EndOfDuty<'_> {
    fn drop(&mut self) {
        let mut duty = match self.0.duty.lock() {
            Ok(duty) => duty,
            Err(poisoned) => poisoned.into_inner(),
        };
        duty.is_over = true;
        duty.busy_with = None;
        let chains = std::mem::take(&mut duty.chains);
        drop(duty);
        self.0.changed.notify_all();
        chains.iter().filter_map(|(_, chain)| chain.upgrade()).for_each(|chain| chain.fail(ENDED));
    }
}

/// Signing takes as long as a call, so threads that make calls have priority. Without support of the system nothing is lost.
fn give_way() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), LOWEST_PRIORITY);
}

#[cfg(target_os = "linux")]
const LOWEST_PRIORITY: i32 = 19;

#[cfg(test)]
mod tests;
