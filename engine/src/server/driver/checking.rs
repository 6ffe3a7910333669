//! The thread that checks the server's admission: the network may take its time, and the driver may not.

use super::{Driver, Wake};
use crate::admission::{Checked, Checker};
use crate::session::Session;
use crate::session::boundary::trip;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use wire::attestation::Greeting;

/// Who checks the server's admission.
#[derive(Debug, Default)]
pub(super) enum Checking {
    #[default]
    Never,
    /// Until the first check is begun.
    Unstarted(Box<Checker>),
    Started(Sender<Asked>),
}

/// What a check needs to know: the server's handshake if it was greeted, and how to greet it if not.
type Asked = (Option<Arc<str>>, Greeting);

impl Checking {
    pub(super) fn by(checker: Option<Checker>) -> Checking {
        checker.map_or(Checking::Never, |checker| Checking::Unstarted(Box::new(checker)))
    }

    /// Begins a check. Returns whether it could be begun.
    pub(super) fn begin(&mut self, session: &Arc<Session>) -> bool {
        *self = match std::mem::take(self) {
            Checking::Unstarted(checker) => {
                start(*checker, session).map_or(Checking::Never, Checking::Started)
            }
            other => other,
        };
        let Checking::Started(checker) = self else { return false };
        let handshake = session.state().handshake.clone();
        checker.send((handshake, session.greeting())).is_ok()
    }
}

/// A thread that checks when it is asked to, until the driver is gone.
fn start(mut checker: Checker, session: &Arc<Session>) -> Option<Sender<Asked>> {
    let (ask, asked) = channel::<Asked>();
    let session = session.clone();
    let thread = std::thread::Builder::new().name("admission".to_owned());
    let started = thread.spawn(move || {
        while let Ok((handshake, greeting)) = asked.recv() {
            let checked = session.contain(0, || {
                trip("admission", b"check");
                checker.check(handshake.as_deref(), greeting)
            });
            session.wake(
                checked.map_or(Wake::NotChecked, |checked| Wake::Admitted(Box::new(checked))),
            );
        }
    });
    started.is_ok().then_some(ask)
}

impl Driver {
    /// The outcome of a check counts from now on. Returns whether it is not what the last one found.
    pub(super) fn admit(&mut self, checked: Checked) -> bool {
        let admitted = checked.admitted.clone();
        let is_news = self.session.admit(checked);
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
        self.session.record_event(admitted.event(), &data);
        if let Some(denial) = failure {
            let what = match is_warned {
                true => "is not attested and is used all the same (open flavor: warn-only)",
                false => "is not admitted",
            };
            let (reason, detail) = (denial.reason(), denial.detail());
            self.session.remark(&format!("the server {what}: {reason}: {detail}"));
        }
        self.session.state().is_unjudged = true;
        true
    }
}
