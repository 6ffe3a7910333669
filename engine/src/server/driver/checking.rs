//! The thread that checks the server's admission: unlike the driver, it may wait for the network.

use super::{Check, Driver, Event, Wake};
use crate::admission::{Checked, Checker};
use crate::requests::SessionKey;
use crate::server::Server;
use crate::session::Session;
use crate::session::boundary::trip;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use wire::attestation::Greeting;

/// The checks of a server's admission. Only one runs at a time.
#[derive(Debug, Default)]
pub(super) struct Checking {
    checker: Option<Box<Checker>>,
    /// The checking thread, once the first check was started.
    thread: Option<Sender<CheckInput>>,
    running: Option<Running>,
}

/// The running check.
#[derive(Debug)]
struct Running {
    session: SessionKey,
    /// The handshake that it examines. It may not cover the handshakes of other sessions.
    handshake: Option<Arc<str>>,
    began: Instant,
}

/// The input of a check: the server's handshake if there was one, and otherwise how to do it.
type CheckInput = (Option<Arc<str>>, Greeting);

impl Checking {
    pub(super) fn by(checker: Option<Checker>) -> Checking {
        Checking { checker: checker.map(Box::new), ..Checking::default() }
    }

    /// Starts a check unless one is running. Returns whether one is running afterwards.
    pub(super) fn begin(&mut self, session: &Arc<Session>) -> bool {
        if self.running.is_some() {
            return true;
        }
        if let Some(checker) = self.checker.take() {
            self.thread = start(*checker, &session.server);
        }
        let handshake = session.state().handshake.clone();
        let asked = (handshake.clone(), session.greeting());
        let is_begun = self.thread.as_ref().is_some_and(|thread| thread.send(asked).is_ok());
        let running = Running { session: session.key(), handshake, began: Instant::now() };
        self.running = is_begun.then_some(running);
        is_begun
    }
}

/// Starts a thread that checks on request, until the driver is gone.
fn start(mut checker: Checker, server: &Arc<Server>) -> Option<Sender<CheckInput>> {
    let (ask, asked) = channel::<CheckInput>();
    let server = server.clone();
    let thread = std::thread::Builder::new().name("admission".to_owned());
    let started = thread.spawn(move || {
        while let Ok((handshake, greeting)) = asked.recv() {
            let checked = server.contain(|| {
                trip("admission", b"check");
                checker.check(handshake.as_deref(), greeting)
            });
            server.wake(
                checked.map_or(Wake::NotChecked, |checked| Wake::Admitted(Box::new(checked))),
            );
        }
    });
    started.is_ok().then_some(ask)
}

impl Driver {
    /// Handles the end of a check; `None` if it has no outcome. Every session that waits for one
    /// continues.
    pub(super) fn end_check(&mut self, checked: Option<Checked>) {
        let Some(running) = self.checking.running.take() else { return };
        let Running { session: own, handshake: checked_with, began } = running;
        let checked = checked.map(Arc::new);
        let is_news = checked.as_ref().map(|checked| self.admit(checked));
        // Sessions with equal handshakes share the text.
        let mut covered: HashMap<*const u8, bool> = HashMap::new();
        let mut covers = |handshake: &Arc<str>| {
            let covers = || {
                checked_with.as_ref() == Some(handshake)
                    || checked.as_ref().is_some_and(|checked| checked.covers(handshake))
            };
            *covered.entry(handshake.as_ptr()).or_insert_with(covers)
        };
        let server = self.server.clone();
        // The session that started the check is first: it judges for the others of its view.
        let others = server.sessions().into_iter().filter(|session| session.key() != own);
        let mut has_leader = false;
        for session in server.session(own).into_iter().chain(others) {
            let is_own = session.key() == own;
            let is_covered = is_news.is_some() && session.take_check(&mut covers);
            let is_joined =
                self.kept.get(&session.key()).is_some_and(|kept| kept.keeper.is_checking());
            if has_leader && !is_joined && !session.waits_for_check() {
                continue;
            }
            let is_leader = !std::mem::replace(&mut has_leader, true);
            self.handle(&session, |driver| {
                let event = match is_news {
                    None => Event::NotChecked,
                    Some(_) if !is_covered => Event::NotCovered,
                    Some(is_news) => {
                        // What the check covers may have arrived after another session started the
                        // check.
                        let began = if is_own { began } else { Instant::now() };
                        Event::Checked(Check { began, is_news, is_leader })
                    }
                };
                driver.tell(&session, event);
            });
        }
    }

    /// Applies the outcome of a check from now on. Returns whether it differs from the last one.
    fn admit(&self, checked: &Arc<Checked>) -> bool {
        let admitted = checked.admitted.clone();
        let is_news = self.server.admit(checked);
        if !is_news {
            return false;
        }
        let failure = admitted.failure();
        let is_warned = failure.is_some() && admitted.denied().is_none();
        let (signer, clearance) = match (admitted.verified(), failure) {
            (Some(verified), _) => (Some(verified.signer()), Some(verified.clearance())),
            (None, Some(denial)) => (denial.signer(), denial.clearance()),
            (None, None) => (None, None),
        };
        let data = json!({
            "level": clearance.map(attest::Clearance::name),
            "signer": signer.map(attest::KeyId::as_str),
            "reason": failure.map(|denial| denial.reason().as_str()),
            "note": is_warned.then_some(attest::WARN_ONLY),
        });
        self.server.recorder.event(self.server.id.as_str(), admitted.event(), None, &data);
        if let Some(denial) = failure {
            let what = match is_warned {
                true => "is not attested and is used all the same (open flavor: warn-only)",
                false => "is not admitted",
            };
            let (reason, detail) = (denial.reason(), denial.detail());
            self.server.remark(&format!("the server {what}: {reason}: {detail}"));
        }
        true
    }
}
