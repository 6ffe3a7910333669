//! Handles the sandbox's reports: a blocked attempt to reach the network results in a receipt, a
//! count, a line in the server's record, and a remark with the entry that would allow it.

use super::OnBlocked;
use super::record::RecordFile;
use crate::recorder::{Recorder, now};
use gate::server::ServerId;
use sandbox::{Blocked, Event};
use serde_json::json;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most attempts that are kept until the ledger is open.
const MAX_WAITING: usize = 256;
/// The most hosts for which a process makes a remark.
const MAX_REMARKED: usize = 64;

/// Receives the sandbox's reports about one server.
pub struct Reporter {
    server: ServerId,
    record: RecordFile,
    state: Mutex<State>,
    blocked: AtomicU64,
    remark: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct State {
    recorder: Option<Arc<Recorder>>,
    /// Attempts that were blocked before the ledger was open.
    waiting: Vec<Blocked>,
    remarked: HashSet<String>,
    on_blocked: Option<Arc<OnBlocked>>,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reporter").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Reporter {
    pub(super) fn new(
        server: ServerId,
        record: RecordFile,
        remark: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Reporter {
        Reporter { server, record, state: Mutex::default(), blocked: AtomicU64::new(0), remark }
    }

    /// From now on blocked attempts are written as receipts, including those kept so far.
    pub fn record_to(&self, recorder: Arc<Recorder>) {
        let mut state = self.state();
        for blocked in std::mem::take(&mut state.waiting) {
            write(&recorder, &self.server, &blocked);
        }
        state.recorder = Some(recorder);
    }

    /// From now on this is called with the number of blocked attempts, including those so far.
    pub fn tell(&self, on_blocked: Arc<OnBlocked>) {
        match self.blocked() {
            0 => {}
            count => on_blocked(count),
        }
        self.state().on_blocked = Some(on_blocked);
    }

    /// How many attempts to reach the network were blocked.
    pub fn blocked(&self) -> u64 {
        self.blocked.load(Ordering::Relaxed)
    }

    pub(super) fn remark(&self, sentence: &str) {
        (self.remark)(sentence);
    }

    pub(super) fn hear(&self, event: &Event) {
        match event {
            Event::Blocked(blocked) => self.hear_blocked(blocked),
            Event::Failed(why) => self.remark(&format!("the server was not started: {why}")),
            Event::Connected { .. } | Event::Access(_) | Event::Ended { .. } => {}
        }
    }

    fn hear_blocked(&self, blocked: &Blocked) {
        self.blocked.fetch_add(blocked.count, Ordering::Relaxed);
        // If the record cannot be written, `review` lacks a hint, but the receipt still contains
        // the attempt.
        let _ = self.record.note_blocked(blocked, now());
        let (is_new, on_blocked) = {
            let mut state = self.state();
            match state.recorder.clone() {
                Some(recorder) => write(&recorder, &self.server, blocked),
                None if state.waiting.len() < MAX_WAITING => state.waiting.push(blocked.clone()),
                None => {}
            }
            let is_new =
                state.remarked.len() < MAX_REMARKED && state.remarked.insert(place_of(blocked));
            (is_new, state.on_blocked.clone())
        };
        if let Some(on_blocked) = on_blocked {
            on_blocked(blocked.count);
        }
        if is_new {
            self.remark(&sentence(&self.server, blocked));
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(recorder: &Recorder, server: &ServerId, blocked: &Blocked) {
    let data = json!({
        "host": shown(&blocked.host),
        "port": blocked.port,
        "reason": blocked.reason.code(),
        "count": blocked.count,
    });
    recorder.event(server.as_str(), "egress.blocked", None, &data);
}

/// A host as named by the server: bounded, and safe for a terminal.
fn shown(host: &str) -> String {
    host.chars().take(253).flat_map(char::escape_default).collect()
}

fn place_of(blocked: &Blocked) -> String {
    match blocked.port {
        Some(port) => format!("{}:{port}", shown(&blocked.host)),
        None => shown(&blocked.host),
    }
}

fn sentence(server: &ServerId, blocked: &Blocked) -> String {
    let place = place_of(blocked);
    let way = match blocked.allow_entry() {
        Some(entry) => format!("; to allow it, add \"{}\" to its `net_allow`", shown(&entry)),
        None => String::new(),
    };
    format!("`{server}` was kept from the network: {place} {}{way}", blocked.reason)
}
