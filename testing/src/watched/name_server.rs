//! A name server for tests: it answers queries for IPv4 addresses as configured, and has no IPv6
//! addresses.

use super::WORLD;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

const A: u16 = 1;
/// The offset of the name in a query.
const QUESTION: usize = 12;

/// Listens at [`WORLD`] until the process ends.
#[derive(Debug)]
pub struct NameServer(Arc<Mutex<BTreeMap<String, usize>>>);

impl NameServer {
    /// `resolve` gets a name, and how often it was queried before. A name without addresses does
    /// not exist.
    pub fn start(resolve: impl Fn(&str, usize) -> Vec<Ipv4Addr> + Send + 'static) -> NameServer {
        let socket = UdpSocket::bind((WORLD, 53)).unwrap();
        let asked = Arc::<Mutex<BTreeMap<String, usize>>>::default();
        let counts = asked.clone();
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                let Some((name, kind, end)) = read(&question[..length]) else { continue };
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                let count = counts.entry(name.clone()).or_default();
                let addresses = resolve(&name, *count);
                *count += usize::from(kind == A);
                let is_known = !addresses.is_empty();
                let addresses = if kind == A { addresses } else { Vec::new() };
                let answer = answer(&question[..end], is_known, &addresses);
                let _ = socket.send_to(&answer, from);
            }
        });
        NameServer(asked)
    }

    /// How often the addresses of a name were queried.
    pub fn times_asked(&self, name: &str) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(name).copied().unwrap_or_default()
    }
}

/// The name and record type in a query, and where the question ends.
fn read(question: &[u8]) -> Option<(String, u16, usize)> {
    let mut labels = Vec::new();
    let mut at = QUESTION;
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(question.get(at..at + length)?).into_owned());
        at += length;
    }
    let kind = question.get(at..at + 2)?.try_into().map(u16::from_be_bytes).ok()?;
    Some((labels.join("."), kind, at + 4))
}

fn answer(question: &[u8], is_known: bool, addresses: &[Ipv4Addr]) -> Vec<u8> {
    let mut bytes = question.to_vec();
    // An authoritative answer with recursion available, or NXDOMAIN.
    bytes[2..4].copy_from_slice(&if is_known { [0x85, 0x80] } else { [0x85, 0x83] });
    bytes[4..12].copy_from_slice(&[0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    for address in addresses {
        // A pointer to the name in the question; type A, class IN, TTL 0, 4 bytes.
        bytes.extend([0xc0, QUESTION as u8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        bytes.extend(address.octets());
    }
    bytes
}
