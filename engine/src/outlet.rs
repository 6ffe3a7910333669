//! Where messages go: to the client, and to the server.

use std::io::{self, IoSlice, Write};
use wire::remote::{Outbound, RemoteSender};

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
}

/// The way to the server. It may block while the server does not read.
pub trait ServerOutlet: Send {
    fn send(&mut self, message: &Outgoing<'_>) -> io::Result<()>;

    /// Nothing more will come.
    fn close(&mut self);
}

/// Messages, one a line.
pub struct LineOutlet<W> {
    output: Option<W>,
}

impl<W> std::fmt::Debug for LineOutlet<W> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LineOutlet").field("is_open", &self.output.is_some()).finish()
    }
}

impl<W: Write> LineOutlet<W> {
    pub fn new(output: W) -> LineOutlet<W> {
        LineOutlet { output: Some(output) }
    }

    pub fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let output = self.output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let written = write_line(output, line);
        if written.is_err() {
            // Half a line may be there: whatever follows would be read as a part of it.
            self.output = None;
        }
        written
    }
}

impl<W: Write + Send> ServerOutlet for LineOutlet<W> {
    fn send(&mut self, message: &Outgoing<'_>) -> io::Result<()> {
        self.write_line(message.frame)
    }

    fn close(&mut self) {
        self.output = None;
    }
}

/// Messages to a remote server, through its queue.
#[derive(Debug)]
pub struct RemoteOutlet {
    sender: Option<RemoteSender>,
}

impl RemoteOutlet {
    pub fn new(sender: RemoteSender) -> RemoteOutlet {
        RemoteOutlet { sender: Some(sender) }
    }
}

impl ServerOutlet for RemoteOutlet {
    fn send(&mut self, message: &Outgoing<'_>) -> io::Result<()> {
        let sender = self.sender.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let outbound = Outbound {
            body: message.frame.to_vec(),
            method: message.method.map(str::to_owned),
            id: message.id.map(<[u8]>::to_vec),
            name: message.name.map(str::to_owned),
            protocol_version: message.protocol_version.map(str::to_owned),
        };
        sender.send(outbound).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn close(&mut self) {
        self.sender = None;
    }
}

/// A line and its line feed, with one system call where the other side has room.
fn write_line(output: &mut impl Write, line: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(line), IoSlice::new(b"\n")];
    let mut parts = parts.as_mut_slice();
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
        outlet.write_line(b"one message").unwrap();
        outlet.write_line(b"two").unwrap();
        assert_eq!(outlet.output.unwrap().taken, b"one message\ntwo\n");
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
        assert!(outlet.write_line(b"one").is_err());
        assert!(outlet.output.is_none());
    }
}
