//! The caller of a remote in tests: a thread that receives events, and methods to send messages.

use crate::server::{PATIENCE, Server};
use std::sync::mpsc;
use std::thread::JoinHandle;
use wire::HttpEndpoint;
use wire::remote::{
    Closed, FailureKind, Inbound, Outbound, RemoteLimits, RemoteSender, TlsKey, remote,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Message(String),
    Failed { id: String, kind: FailureKind, text: String },
    Fault,
    Ended { kind: FailureKind, text: String },
}

pub struct Client {
    pub sender: Option<RemoteSender>,
    pub key: TlsKey,
    heard: mpsc::Receiver<Heard>,
    thread: JoinHandle<()>,
}

pub fn endpoint(url: &str) -> HttpEndpoint {
    HttpEndpoint {
        url: url.parse().unwrap(),
        headers: Vec::new(),
        allow_private: false,
        authorizer: None,
    }
}

pub fn limits() -> RemoteLimits {
    RemoteLimits { frame_bytes: 10_000, ..RemoteLimits::default() }
}

impl Client {
    pub fn new(server: &Server) -> Client {
        Client::with(endpoint(&server.url()), limits())
    }

    pub fn with(endpoint: HttpEndpoint, limits: RemoteLimits) -> Client {
        let (sender, remote) = remote(endpoint, limits);
        let key = remote.tls_key();
        let (tell, heard) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            remote.serve(&mut |inbound| {
                let _ = tell.send(match inbound {
                    Inbound::Message(text) => {
                        Heard::Message(String::from_utf8(text.to_vec()).unwrap())
                    }
                    Inbound::Failed { id, failure } => Heard::Failed {
                        id: String::from_utf8(id).unwrap(),
                        kind: failure.kind(),
                        text: failure.to_string(),
                    },
                    Inbound::Fault => Heard::Fault,
                    Inbound::Ended(failure) => {
                        Heard::Ended { kind: failure.kind(), text: failure.to_string() }
                    }
                });
            });
        });
        Client { sender: Some(sender), key, heard, thread }
    }

    pub fn send(&self, message: Outbound) -> Result<(), Closed> {
        self.sender.as_ref().unwrap().send(message)
    }

    pub fn ask(&self, id: u32, method: &str) {
        self.send(request(id, method)).unwrap();
    }

    pub fn tell(&self, method: &str) {
        self.send(notification(method, "{}")).unwrap();
    }

    pub fn hear(&self) -> Heard {
        self.heard.recv_timeout(PATIENCE).expect("nothing was heard")
    }

    pub fn hear_message(&self) -> String {
        match self.hear() {
            Heard::Message(text) => text,
            other => panic!("expected a message, heard {other:?}"),
        }
    }

    /// The kind and the text of the failure of the request with this id.
    pub fn hear_failure(&self, of: u32) -> (FailureKind, String) {
        match self.hear() {
            Heard::Failed { id, kind, text } if id == of.to_string() => (kind, text),
            other => panic!("expected the failure of {of}, heard {other:?}"),
        }
    }

    /// Waits until the relay has taken every message sent before this one, while requests must
    /// wait. No other event may arrive meanwhile. The request that proves it must wait too, so it
    /// is cancelled without reaching the server.
    pub fn barrier(&self) {
        const ID: u32 = 9_999;
        self.ask(ID, "barrier");
        self.send(cancel(ID)).unwrap();
        assert_eq!(self.hear_failure(ID).0, FailureKind::Cancelled);
    }

    /// Does the handshake of a session.
    pub fn initialize(&self) {
        self.ask(0, "initialize");
        assert!(self.hear_message().contains("protocolVersion"));
        self.tell("notifications/initialized");
    }

    /// Drops the sender, so that nothing more can be sent.
    pub fn close(&mut self) {
        self.sender = None;
    }

    /// Drops the sender, and returns the events received until the remote has ended.
    pub fn finish(mut self) -> Vec<Heard> {
        self.close();
        self.thread.join().unwrap();
        self.heard.try_iter().collect()
    }
}

pub fn request(id: u32, method: &str) -> Outbound {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
    Outbound {
        body: body.into_bytes(),
        method: Some(method.to_owned()),
        id: Some(id.to_string().into_bytes()),
        ..Outbound::default()
    }
}

pub fn stateless(id: u32, method: &str, name: Option<&str>) -> Outbound {
    Outbound {
        name: name.map(str::to_owned),
        protocol_version: Some("2026-07-28".to_owned()),
        ..request(id, method)
    }
}

pub fn notification(method: &str, params: &str) -> Outbound {
    let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
    let method = Some(method.to_owned());
    Outbound { body: body.into_bytes(), method, ..Outbound::default() }
}

pub fn cancel(id: u32) -> Outbound {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

pub fn response(id: u32) -> Outbound {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into_bytes();
    Outbound { body, ..Outbound::default() }
}
