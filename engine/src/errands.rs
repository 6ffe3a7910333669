//! What the gate itself sends to the server: its own requests, and calls that waited for a view.
//!
//! A server may stop reading for any length of time, which blocks a thread that writes to it. That
//! is this thread, and never the keeper, which has to answer waiting requests.

use crate::outlet::FreeMessage;
use crate::reason::ReasonCode;
use crate::session::boundary::trip;
use crate::session::{DecidedRequest, Session};
use std::sync::mpsc::Receiver;

/// Something to be sent to the server.
#[derive(Debug)]
pub enum Errand {
    /// One of the gate's own messages.
    Send(OwnMessage),
    /// A request that timed out, by its id as it was sent, and by its mark if the id may be reused.
    GiveUp { id: Vec<u8>, mark: Option<[u8; 16]> },
    /// A request that waited and is now to be sent. If it has ended in the meantime, there is
    /// nothing to do.
    Resume(Box<DecidedRequest>),
}

/// A request or notification of the gate's own.
#[derive(Debug)]
pub struct OwnMessage {
    pub frame: String,
    pub method: &'static str,
    /// The id of a request, with its quotes.
    pub id: Option<String>,
    pub protocol_version: Option<String>,
}

/// Runs a session's errands until no more can arrive.
pub fn run(session: &Session, errands: &Receiver<Errand>) {
    while let Ok(errand) = errands.recv() {
        run_one(session, &errand);
    }
}

/// Runs an errand. It may block while the server does not read.
pub fn run_one(session: &Session, errand: &Errand) {
    let bytes = match errand {
        Errand::Send(message) => message.frame.len(),
        Errand::GiveUp { .. } | Errand::Resume(_) => 0,
    };
    if session.contain(bytes, || carry_out(session, errand)).is_none() {
        match errand {
            Errand::Resume(decided) => session.release_failed(decided.request.id(), "", 0),
            Errand::Send(OwnMessage { id: Some(id), .. }) => {
                let reason = ReasonCode::Internal;
                session.contain(0, || session.own_request_failed(id.as_bytes(), reason));
            }
            Errand::Send(_) | Errand::GiveUp { .. } => {}
        }
    }
}

fn carry_out(session: &Session, errand: &Errand) {
    match errand {
        Errand::Resume(decided) => {
            trip("errands", b"resume");
            session.send_decided(decided);
        }
        Errand::GiveUp { id, mark } => session.give_up(id, *mark),
        Errand::Send(message) => {
            trip("errands", message.frame.as_bytes());
            if session.tell_server(&FreeMessage::own(message)).is_err()
                && let Some(id) = &message.id
            {
                session.own_request_failed(id.as_bytes(), ReasonCode::UpstreamUnreachable);
            }
        }
    }
}
