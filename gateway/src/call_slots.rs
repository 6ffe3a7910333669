//! Limits the calls in flight: per caller, so that no caller takes up the whole gateway, and per
//! server.

use crate::sessions::PrincipalId;
use crate::traces::CallSpan;
use foldhash::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of shards that callers are counted in, so that calls of different callers rarely
/// contend.
const TABLES: usize = 16;

/// The calls in flight of every caller.
#[derive(Debug, Default)]
pub(crate) struct CallSlots {
    tables: [Mutex<HashMap<PrincipalId, usize>>; TABLES],
}

/// The number of calls in flight to one server.
pub(crate) type ServerCalls = Arc<AtomicUsize>;

/// The most calls that may be in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotLimits {
    pub(crate) per_caller: usize,
    pub(crate) per_server: usize,
}

/// The limit that prevents a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoSlot {
    #[error("this caller has {0} calls in flight, and may have no more (limits.calls_per_caller)")]
    Caller(usize),
    #[error(
        "{0} calls to the server are in flight, and there may be no more (limits.calls_per_server)"
    )]
    Server(usize),
}

/// A call in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    caller: PrincipalId,
    server: ServerCalls,
    span: Option<Arc<CallSpan>>,
}

impl CallSlot {
    /// Connects the request's span, which records when the server's part begins and ends.
    pub(crate) fn traced(mut self, span: Arc<CallSpan>) -> CallSlot {
        self.span = Some(span);
        self
    }

    /// Records that the call was decided, and dispatched if it is permitted.
    pub(crate) fn dispatched(&self) {
        if let Some(span) = &self.span {
            span.decided();
        }
    }
}

impl CallSlots {
    pub(crate) fn take(
        self: &Arc<Self>,
        caller: &PrincipalId,
        server: &ServerCalls,
        limits: SlotLimits,
    ) -> Result<CallSlot, NoSlot> {
        {
            let mut table = self.table(caller);
            let count = table.entry(*caller).or_default();
            if *count >= limits.per_caller {
                return Err(NoSlot::Caller(limits.per_caller));
            }
            *count += 1;
        }
        // From here on, dropping the slot releases both counts.
        let slot =
            CallSlot { slots: self.clone(), caller: *caller, server: server.clone(), span: None };
        if server.fetch_add(1, Ordering::AcqRel) >= limits.per_server {
            return Err(NoSlot::Server(limits.per_server));
        }
        Ok(slot)
    }

    fn table(&self, caller: &PrincipalId) -> MutexGuard<'_, HashMap<PrincipalId, usize>> {
        let [first, ..] = caller;
        let [only, ..] = &self.tables;
        let table = self.tables.get(usize::from(*first) % TABLES).unwrap_or(only);
        table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        if let Some(span) = &self.span {
            span.answered();
        }
        self.server.fetch_sub(1, Ordering::AcqRel);
        let mut table = self.slots.table(&self.caller);
        if let Some(count) = table.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                table.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: PrincipalId = [1; 32];
    const EVE: PrincipalId = [2; 32];

    #[test]
    fn a_caller_and_a_server_have_as_many_calls_as_they_may() {
        let (slots, server) = (Arc::new(CallSlots::default()), ServerCalls::default());
        let limits = SlotLimits { per_caller: 2, per_server: 3 };
        let take = |caller: &PrincipalId| slots.take(caller, &server, limits);
        let first = take(&ADA).unwrap();
        let second = take(&ADA).unwrap();
        assert_eq!(take(&ADA).unwrap_err(), NoSlot::Caller(2));
        let third = take(&EVE).unwrap();
        assert_eq!(take(&EVE).unwrap_err(), NoSlot::Server(3));
        drop(first);
        let again = take(&ADA).unwrap();
        assert_eq!(take(&EVE).unwrap_err(), NoSlot::Server(3));
        drop((second, third, again));
        assert_eq!(server.load(Ordering::Relaxed), 0);
        assert!(slots.tables.iter().all(|table| table.lock().unwrap().is_empty()));
    }
}
