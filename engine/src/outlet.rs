//! Where messages go: to the client, and to the server.

use crate::errands::OwnMessage;
use std::io::{self, IoSlice, Write};
use store::receipts::Settled;
use wire::remote::{Outbound, ParameterHeader, RemoteSender};

/// A message on its way to the server, and what a transport may have to know of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outgoing<'a> {
    /// The bytes as they came, without a line feed.
    pub frame: &'a [u8],
    /// Of a request or a notification.
    pub method: Option<&'a str>,
    /// The id of a request, as it came.
    pub id: Option<&'a [u8]>,
    /// The tool, prompt or resource that it is about.
    pub name: Option<&'a str>,
    /// Where the message itself names one.
    pub protocol_version: Option<&'a str>,
    /// Arguments that go into headers as well, where the transport has headers.
    pub parameters: &'a [ParameterHeader],
    /// What a request is told by from a later one with the same id.
    pub mark: Option<[u8; 16]>,
}

/// A message on its way to the client.
#[derive(Debug, Clone, Copy)]
pub struct ToClient<'a> {
    /// The message, in parts that need not lie together.
    pub parts: &'a [&'a [u8]],
    /// The raw id of the request that it answers; `None` for a notification or a request. In a message of the server's that
    /// is forwarded as it is, it is a slice of that message.
    pub answers: Option<&'a [u8]>,
}

/// The way to the client.
pub trait ClientOutlet: Send {
    /// Sends a message now, behind what was gathered.
    fn write(&mut self, message: &ToClient<'_>) -> io::Result<()>;

    /// Keeps a message to be sent with others.
    fn gather(&mut self, message: &ToClient<'_>) -> io::Result<()>;

    /// Sends what was gathered.
    fn flush(&mut self) -> io::Result<()>;
}

/// Larger messages are not gathered with others: copying them would cost more than a write.
const GATHERED_BYTES: usize = 16 * 1024;

/// A message that needs no receipt: a notification, an answer of the client, or a request of the gate's own.
#[derive(Debug, Clone, Copy)]
pub struct FreeMessage<'a>(Outgoing<'a>);

impl<'a> FreeMessage<'a> {
    pub fn notification(frame: &'a [u8], method: &'a str) -> FreeMessage<'a> {
        FreeMessage(Outgoing { frame, method: Some(method), ..Outgoing::default() })
    }

    /// The client's answer to a request of the server.
    pub fn answer(frame: &'a [u8]) -> FreeMessage<'a> {
        FreeMessage(Outgoing { frame, ..Outgoing::default() })
    }

    /// A request or notification of the gate's own.
    pub fn own(message: &'a OwnMessage) -> FreeMessage<'a> {
        FreeMessage(Outgoing {
            frame: message.frame.as_bytes(),
            method: Some(message.method),
            id: message.id.as_deref().map(str::as_bytes),
            protocol_version: message.protocol_version.as_deref(),
            ..Outgoing::default()
        })
    }

    pub fn as_outgoing(&self) -> &Outgoing<'a> {
        &self.0
    }
}

/// The way to the server. It may block while the server does not read.
///
/// INVARIANT: a request of a client leaves by [`ServerOutlet::flush`] alone, which takes the ledger's proof that its decision
/// is written. Everything else is a [`FreeMessage`].
pub trait ServerOutlet: Send {
    /// Sends a message now. What is gathered stays where it is.
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()>;

    /// Keeps a request to be sent with others. Returns whether as much is gathered as should be.
    fn gather(&mut self, request: &Outgoing<'_>) -> bool;

    /// The same for a message that needs no receipt.
    fn gather_free(&mut self, message: &FreeMessage<'_>) -> bool {
        self.gather(message.as_outgoing())
    }

    /// Sends what was gathered, and one more request behind it, with one write.
    fn flush(&mut self, settled: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()>;

    /// Sends what was gathered where no request is among it.
    fn flush_free(&mut self) -> io::Result<()>;

    /// Forgets what was gathered.
    fn discard(&mut self);

    /// The answer to a request is not waited for any longer. What it holds on the way to the server is given back.
    fn give_up(&mut self, _id: &[u8], _mark: Option<[u8; 16]>) {}

    /// Nothing more will come.
    fn close(&mut self);
}

/// Messages, one a line.
pub struct LineOutlet<W> {
    output: Option<W>,
    gathered: Vec<u8>,
}

impl<W> std::fmt::Debug for LineOutlet<W> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LineOutlet").field("is_open", &self.output.is_some()).finish()
    }
}

impl<W: Write> LineOutlet<W> {
    pub fn new(output: W) -> LineOutlet<W> {
        LineOutlet { output: Some(output), gathered: Vec::new() }
    }

    /// Writes a line now, behind what was gathered. Its parts need not lie together.
    pub fn write_line(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        if self.gathered.is_empty() {
            return self.write_alone(parts);
        }
        // With one write: each write wakes the reader.
        let gathered = std::mem::take(&mut self.gathered);
        let all = [gathered.as_slice()]
            .into_iter()
            .chain(parts.iter().copied())
            .chain([b"\n".as_slice()]);
        let written = self.write_slices(&mut all.map(IoSlice::new).collect::<Vec<_>>());
        self.keep(gathered);
        written
    }

    /// Keeps a line to be written with others; a long one is written at once, behind them.
    pub fn gather_line(&mut self, line: &[u8]) -> io::Result<()> {
        if line.len() > GATHERED_BYTES {
            return self.write_line(&[line]);
        }
        self.gathered.extend_from_slice(line);
        self.gathered.push(b'\n');
        if self.gathered.len() > GATHERED_BYTES { self.write_gathered() } else { Ok(()) }
    }

    pub fn write_gathered(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        let written = self.write_slices(&mut [IoSlice::new(&gathered)]);
        self.keep(gathered);
        written
    }

    /// The room that lines were gathered in, for the next ones.
    fn keep(&mut self, mut gathered: Vec<u8>) {
        gathered.clear();
        self.gathered = gathered;
    }

    fn write_alone(&mut self, line: &[&[u8]]) -> io::Result<()> {
        if let [line] = line {
            return self.write_slices(&mut [IoSlice::new(line), IoSlice::new(b"\n")]);
        }
        let parts = line.iter().copied().chain([b"\n".as_slice()]);
        self.write_slices(&mut parts.map(IoSlice::new).collect::<Vec<_>>())
    }

    fn write_slices(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let output = self.output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let written = write_all(output, parts);
        if written.is_err() {
            // Half a line may be there: whatever follows would be read as a part of it.
            self.output = None;
        }
        written
    }
}

impl<W: Write + Send> ClientOutlet for LineOutlet<W> {
    fn write(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        self.write_line(message.parts)
    }

    fn gather(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        match message.parts {
            [line] => self.gather_line(line),
            parts => self.write_line(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_gathered()
    }
}

impl<W: Write + Send> ServerOutlet for LineOutlet<W> {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.write_alone(&[message.0.frame])
    }

    fn gather(&mut self, message: &Outgoing<'_>) -> bool {
        self.gathered.extend_from_slice(message.frame);
        self.gathered.push(b'\n');
        self.gathered.len() > GATHERED_BYTES
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        match last {
            Some(last) => self.write_line(&[last.frame]),
            None => self.write_gathered(),
        }
    }

    fn flush_free(&mut self) -> io::Result<()> {
        self.write_gathered()
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    fn close(&mut self) {
        self.output = None;
    }
}

/// Messages to a remote server, through its queue.
#[derive(Debug)]
pub struct RemoteOutlet {
    sender: Option<RemoteSender>,
    gathered: Vec<Outbound>,
}

impl RemoteOutlet {
    pub fn new(sender: RemoteSender) -> RemoteOutlet {
        RemoteOutlet { sender: Some(sender), gathered: Vec::new() }
    }

    fn put(&mut self, outbound: Outbound) -> io::Result<()> {
        let sender = self.sender.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        sender.send(outbound).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// A message as it goes to a remote server.
pub fn outbound(message: &Outgoing<'_>) -> Outbound {
    Outbound {
        body: message.frame.to_vec(),
        method: message.method.map(str::to_owned),
        id: message.id.map(<[u8]>::to_vec),
        // Only requests that name their version name what they are about a second time.
        name: message.name.filter(|_| message.protocol_version.is_some()).map(str::to_owned),
        protocol_version: message.protocol_version.map(str::to_owned),
        parameters: message.parameters.to_vec(),
        headers: Vec::new(),
        mark: message.mark,
    }
}

impl ServerOutlet for RemoteOutlet {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.put(outbound(&message.0))
    }

    fn gather(&mut self, message: &Outgoing<'_>) -> bool {
        self.gathered.push(outbound(message));
        true
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        self.gathered.extend(last.map(outbound));
        self.flush_free()
    }

    fn flush_free(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        gathered.into_iter().try_for_each(|outbound| self.put(outbound))
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    /// A request that is never answered has a connection to itself until then.
    fn give_up(&mut self, id: &[u8], mark: Option<[u8; 16]>) {
        let method = "notifications/cancelled";
        let beginning = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":"#);
        let body = [beginning.as_bytes(), id, b"}}"].concat();
        // Where nothing can be sent any more there is nothing to give back.
        let method = Some(method.to_owned());
        let _ = self.put(Outbound { body, method, mark, ..Outbound::default() });
    }

    fn close(&mut self) {
        self.sender = None;
    }
}

/// All of it, with one system call where the other side has room.
fn write_all(output: &mut impl Write, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match output.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes at a time, and sometimes none.
    struct Reluctant {
        taken: Vec<u8>,
        calls: usize,
    }

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            match self.calls % 3 {
                0 => Err(io::ErrorKind::Interrupted.into()),
                1 => Err(io::ErrorKind::WouldBlock.into()),
                _ => {
                    let count = bytes.len().min(3);
                    self.taken.extend_from_slice(&bytes[..count]);
                    Ok(count)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_arrives_whole_however_the_other_side_takes_it() {
        let mut outlet = LineOutlet::new(Reluctant { taken: Vec::new(), calls: 0 });
        outlet.write_line(&[b"one ", b"", b"mess", b"age"]).unwrap();
        outlet.write_line(&[b"two"]).unwrap();
        assert_eq!(outlet.output.unwrap().taken, b"one message\ntwo\n");
    }

    #[test]
    fn what_was_gathered_goes_with_the_next_line_in_one_write() {
        #[derive(Default)]
        struct Writes(Vec<Vec<u8>>);
        impl Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.write_vectored(&[IoSlice::new(bytes)])
            }
            fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
                let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                let count = whole.len();
                self.0.push(whole);
                Ok(count)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut outlet = LineOutlet::new(Writes::default());
        outlet.gather_line(b"one").unwrap();
        outlet.gather_line(b"two").unwrap();
        outlet.write_line(&[b"thr", b"ee"]).unwrap();
        outlet.write_line(&[b"four"]).unwrap();
        ServerOutlet::gather(&mut outlet, &Outgoing { frame: b"one", ..Outgoing::default() });
        outlet.gather_free(&FreeMessage::answer(b"two"));
        outlet.flush_free().unwrap();
        outlet.flush_free().unwrap();
        let written = outlet.output.unwrap().0;
        assert_eq!(
            written,
            [b"one\ntwo\nthree\n".to_vec(), b"four\n".to_vec(), b"one\ntwo\n".to_vec()]
        );
    }

    #[test]
    fn nothing_follows_a_line_that_could_not_be_written_whole() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut outlet = LineOutlet::new(Broken);
        assert!(outlet.write_line(&[b"one"]).is_err());
        assert!(outlet.output.is_none());
    }
}
