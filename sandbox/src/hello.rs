//! Reads the server name of a TLS handshake from the first bytes that a client sends. Pure and
//! bounded.

/// How much of a connection is examined. A handshake with post-quantum keys takes about 2 KiB.
pub(crate) const MAX_HELLO_BYTES: usize = 16 * 1024;

/// The result of examining the first bytes of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hello {
    /// More bytes are needed.
    Incomplete,
    /// A client hello with this server name.
    Named(String),
    /// A client hello without a server name.
    Nameless,
    NotTls,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;

pub(crate) fn read(bytes: &[u8]) -> Hello {
    let mut handshake = Vec::new();
    let mut rest = bytes;
    loop {
        match rest {
            [] => {}
            [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] => {}
            [HANDSHAKE, 3, _, high, low, body @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 {
                    return Hello::NotTls;
                }
                handshake.extend(body.iter().take(length));
                if let Some(after) = body.get(length..) {
                    rest = after;
                    if wanted(&handshake).is_some_and(|wanted| handshake.len() < wanted)
                        || handshake.len() < 4
                    {
                        continue;
                    }
                }
            }
            _ => return Hello::NotTls,
        }
        break;
    }
    if handshake.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Hello::NotTls;
    }
    let incomplete = if bytes.len() >= MAX_HELLO_BYTES { Hello::NotTls } else { Hello::Incomplete };
    match wanted(&handshake) {
        Some(wanted) if wanted > MAX_HELLO_BYTES => Hello::NotTls,
        Some(wanted) => match handshake.get(4..wanted) {
            Some(hello) => server_name(hello).unwrap_or(Hello::NotTls),
            None => incomplete,
        },
        None => incomplete,
    }
}

/// The length of the first message including its header, once it is known.
fn wanted(handshake: &[u8]) -> Option<usize> {
    let [_, high, middle, low] = handshake.first_chunk::<4>()?;
    let length = u32::from_be_bytes([0, *high, *middle, *low]);
    Some(usize::try_from(length).ok()?.saturating_add(4))
}

/// Reads the extension. Returns `None` if the message is malformed.
fn server_name(hello: &[u8]) -> Option<Hello> {
    let mut hello = Reader(hello);
    // The version and the random bytes.
    hello.take(2 + 32)?;
    let session = hello.byte()?;
    hello.take(session.into())?;
    let ciphers = hello.short()?;
    hello.take(ciphers.into())?;
    let compressions = hello.byte()?;
    hello.take(compressions.into())?;
    if hello.0.is_empty() {
        return Some(Hello::Nameless);
    }
    let length = hello.short()?;
    let mut extensions = Reader(hello.take(length.into())?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.short()?;
        let length = extensions.short()?;
        let body = extensions.take(length.into())?;
        if kind != SERVER_NAME {
            continue;
        }
        // Two such extensions would be ambiguous.
        if found.replace(name_of(body)?).is_some() {
            return None;
        }
    }
    Some(found.map_or(Hello::Nameless, Hello::Named))
}

/// The only name in the extension, which must be a host name.
fn name_of(extension: &[u8]) -> Option<String> {
    let mut extension = Reader(extension);
    let length = extension.short()?;
    let mut list = Reader(extension.take(length.into())?);
    let (kind, length) = (list.byte()?, list.short()?);
    let name = list.take(length.into())?;
    let is_whole = extension.0.is_empty() && list.0.is_empty() && kind == 0 && !name.is_empty();
    let name = std::str::from_utf8(name).ok().filter(|_| is_whole)?;
    Some(name.to_ascii_lowercase())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests;
