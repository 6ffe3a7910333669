//! A proxy between a store and its PostgreSQL server that fails at a chosen moment.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

/// What the proxy does with the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    Pass,
    /// New connections are closed at once, and existing ones are cut.
    Away,
    /// New connections are accepted but get no response.
    Silent,
    /// The commit does not reach the server; the connection is cut instead.
    CutBeforeCommit,
    /// The commit reaches the server, but its response does not come back.
    CutAfterCommit,
    /// The same, and later connections fail too.
    LostAtCommit,
}

/// The commit message in the wire protocol.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    mode: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn before(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = Arc::new(AtomicU8::new(Mode::Pass as u8));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (own_mode, own_open) = (Arc::clone(&mode), Arc::clone(&open));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accept(client, &server, &own_mode, &own_open);
            }
        });
        Proxy { port, mode, open }
    }

    pub(crate) fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
        if mode == Mode::Away {
            for stream in self.open.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

fn is(mode: &AtomicU8, wanted: Mode) -> bool {
    mode.load(Ordering::SeqCst) == wanted as u8
}

fn accept(client: TcpStream, server: &str, mode: &Arc<AtomicU8>, open: &Mutex<Vec<TcpStream>>) {
    if is(mode, Mode::Away) {
        return;
    }
    let mut open = open.lock().unwrap();
    open.push(client.try_clone().unwrap());
    if is(mode, Mode::Silent) {
        open.push(client);
        return;
    }
    let upstream = TcpStream::connect(server).unwrap();
    open.push(upstream.try_clone().unwrap());
    for stream in [&client, &upstream] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut to, mut from) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
    let forward_mode = Arc::clone(mode);
    std::thread::spawn(move || {
        pump(&mut from, &mut to, |bytes, from, to| forward(bytes, from, to, &forward_mode));
    });
    let (mut to, mut from) = (client, upstream);
    std::thread::spawn(move || {
        pump(&mut from, &mut to, |bytes, _, to| to.write_all(bytes).is_ok());
    });
}

/// Forwards bytes until one side ends or `carry` returns false, then closes both.
fn pump(
    from: &mut TcpStream,
    to: &mut TcpStream,
    mut carry: impl FnMut(&[u8], &mut TcpStream, &mut TcpStream) -> bool,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !carry(&buffer[..read], from, to) {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn forward(bytes: &[u8], from: &TcpStream, to: &mut TcpStream, mode: &AtomicU8) -> bool {
    let is_commit = bytes.windows(COMMIT.len()).any(|window| window == COMMIT);
    if is_commit && is(mode, Mode::CutBeforeCommit) {
        return false;
    }
    if is_commit && is(mode, Mode::LostAtCommit) {
        mode.store(Mode::Away as u8, Ordering::SeqCst);
        return false;
    }
    if is_commit && is(mode, Mode::CutAfterCommit) {
        // The client receives nothing more; the server reads the commit and then finds the
        // connection closed.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.write_all(bytes);
        return false;
    }
    to.write_all(bytes).is_ok()
}
