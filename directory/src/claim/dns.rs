//! Looks up TXT records through the system's resolver, over TCP.
//!
//! Claims only need one type of query, so this is no resolver of its own: the system's resolver
//! does the work. It uses TCP, which every resolver must support (RFC 7766), because responses over
//! UDP can be forged by off-path attackers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The timeout per resolver.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most resolvers that are tried.
const MAX_RESOLVERS: usize = 3;
/// The largest response that is read.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// The most records of a response that are read.
const MAX_RECORDS: usize = 256;
/// The most aliases (CNAME records) that are followed.
const MAX_ALIASES: usize = 8;
/// The most compression pointers in one name.
const MAX_JUMPS: usize = 32;
const HEADER_BYTES: usize = 12;
const TXT: u16 = 16;
const CNAME: u16 = 5;
const INTERNET: u16 = 1;
const DNS_PORT: u16 = 53;
const RESOLVERS_FILE: &str = "/etc/resolv.conf";

/// Why a lookup failed.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    #[error("no resolver is configured: name one in `claims.resolvers`")]
    NoResolver,
    #[error("`{0}` is no name that can be looked up")]
    Name(String),
    #[error("the resolver {resolver} did not answer: {source}")]
    Io { resolver: SocketAddr, source: io::Error },
    #[error("the resolver {resolver} gave an answer that cannot be read")]
    Unreadable { resolver: SocketAddr },
    #[error("the resolver {resolver} failed with code {code}")]
    Failed { resolver: SocketAddr, code: u8 },
}

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer {
    Texts(Vec<String>),
    /// The resolver could not answer.
    Failed(u8),
}

/// Sends queries to resolvers.
#[derive(Debug, Clone)]
pub struct Resolver {
    resolvers: Vec<SocketAddr>,
}

impl Resolver {
    /// Uses the named resolvers, or else the system's.
    pub fn new(named: &[SocketAddr]) -> Resolver {
        let resolvers = match named {
            [] => read_resolvers(&std::fs::read_to_string(RESOLVERS_FILE).unwrap_or_default()),
            named => named.to_vec(),
        };
        Resolver { resolvers }
    }

    /// The TXT records of a name; empty if it has none.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>, DnsError> {
        let mut last = DnsError::NoResolver;
        for resolver in self.resolvers.iter().take(MAX_RESOLVERS).copied() {
            let mut id = [0; 2];
            let _ = getrandom::fill(&mut id);
            let id = u16::from_be_bytes(id);
            let question = question(id, name).ok_or_else(|| DnsError::Name(name.to_owned()))?;
            let asked = timeout(PATIENCE, exchange(resolver, &question)).await;
            let asked = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            last = match asked {
                Ok(bytes) => match read_answer(&bytes, id, name) {
                    Some(DnsAnswer::Texts(texts)) => return Ok(texts),
                    Some(DnsAnswer::Failed(code)) => DnsError::Failed { resolver, code },
                    None => DnsError::Unreadable { resolver },
                },
                Err(source) => DnsError::Io { resolver, source },
            };
        }
        Err(last)
    }
}

/// The addresses in the `nameserver` lines of a resolver configuration.
fn read_resolvers(text: &str) -> Vec<SocketAddr> {
    let addresses = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == "nameserver").then(|| words.next())?
    });
    addresses
        .filter_map(|word| word.parse::<IpAddr>().ok())
        .map(|address| SocketAddr::new(address, DNS_PORT))
        .collect()
}

async fn exchange(resolver: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(resolver).await?;
    let length = u16::try_from(question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_ANSWER_BYTES {
        return Err(io::Error::other("the answer is too large"));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// A query for the TXT records of a name.
pub fn question(id: u16, name: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + name.len() + 6);
    bytes.extend(id.to_be_bytes());
    // One question, recursion desired.
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let name_begins = bytes.len();
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        bytes.push(length);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    if bytes.len() - name_begins > 255 {
        return None;
    }
    bytes.extend(TXT.to_be_bytes());
    bytes.extend(INTERNET.to_be_bytes());
    Some(bytes)
}

/// Parses the response to a query for the TXT records of a name. Follows aliases within the
/// response.
pub fn read_answer(bytes: &[u8], id: u16, name: &str) -> Option<DnsAnswer> {
    let mut reader = Reader { bytes, at: 0 };
    let known = reader.number()? == id;
    let flags = reader.number()?;
    let is_answer = flags & 0x8000 != 0 && flags & 0x7800 == 0;
    let (questions, answers) = (reader.number()?, reader.number()?);
    let _ = (reader.number()?, reader.number()?);
    let is_cut = flags & 0x0200 != 0;
    if !known || !is_answer || is_cut || questions != 1 {
        return None;
    }
    let asked = reader.name()?;
    let is_asked = asked.eq_ignore_ascii_case(name.as_bytes());
    if !is_asked || reader.number()? != TXT || reader.number()? != INTERNET {
        return None;
    }
    match (flags & 0x000f) as u8 {
        0 => {}
        // NXDOMAIN: the name does not exist.
        3 => return Some(DnsAnswer::Texts(Vec::new())),
        code => return Some(DnsAnswer::Failed(code)),
    }
    let (mut texts, mut aliases) = (Vec::new(), Vec::new());
    for _ in 0..usize::from(answers).min(MAX_RECORDS) {
        let owner = reader.name()?;
        let (kind, class) = (reader.number()?, reader.number()?);
        // Skip class and TTL: nothing is cached.
        let _ = (reader.number()?, reader.number()?);
        let length = usize::from(reader.number()?);
        let begins = reader.at;
        let data = reader.take(length)?;
        match (kind, class) {
            (TXT, INTERNET) => texts.push((owner, text(data)?)),
            (CNAME, INTERNET) => {
                let mut inside = Reader { bytes, at: begins };
                aliases.push((owner, inside.name()?));
            }
            _ => {}
        }
    }
    let mut current = asked;
    for _ in 0..MAX_ALIASES {
        let next = aliases.iter().find(|(owner, _)| owner.eq_ignore_ascii_case(&current));
        match next {
            Some((_, target)) => current.clone_from(target),
            None => break,
        }
    }
    let own = texts.into_iter().filter(|(owner, _)| owner.eq_ignore_ascii_case(&current));
    Some(DnsAnswer::Texts(own.filter_map(|(_, text)| String::from_utf8(text).ok()).collect()))
}

/// The concatenated strings of a TXT record.
fn text(data: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader { bytes: data, at: 0 };
    let mut joined = Vec::with_capacity(data.len());
    while reader.at < data.len() {
        let length = usize::from(reader.byte()?);
        joined.extend_from_slice(reader.take(length)?);
    }
    Some(joined)
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        let [high, low] = *self.take(2)?.first_chunk::<2>()?;
        Some(u16::from_be_bytes([high, low]))
    }

    /// Reads a possibly compressed name, with dots between its labels.
    fn name(&mut self) -> Option<Vec<u8>> {
        let (mut name, mut jumps, mut after) = (Vec::new(), 0, None);
        loop {
            let length = self.byte()?;
            match length {
                0 => break,
                1..=63 => {
                    if !name.is_empty() {
                        name.push(b'.');
                    }
                    name.extend_from_slice(self.take(usize::from(length))?);
                    if name.len() > 255 {
                        return None;
                    }
                }
                0xc0..=0xff => {
                    let low = self.byte()?;
                    after.get_or_insert(self.at);
                    jumps += 1;
                    // Pointers must go backwards, so that every name ends.
                    let to = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                    if jumps > MAX_JUMPS || to >= self.at {
                        return None;
                    }
                    self.at = to;
                }
                _ => return None,
            }
        }
        if let Some(after) = after {
            self.at = after;
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests;
