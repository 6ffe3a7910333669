//! Messages between the helper and the program that started it, over a private socket. The helper
//! ends when the socket closes.

use crate::event::Blocked;
use crate::observed::Access;
use crate::support::Support;
use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The largest message. A path is at most 4 KiB long.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// The helper's reports.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The program was started confined.
    Ready,
    Failed(String),
    /// The program connected to a host; the connection's descriptor accompanies the message. The
    /// host is the name that the program resolved, or otherwise the address.
    Connection {
        host: String,
        port: u16,
    },
    Blocked(Blocked),
    Access(Access),
    Ended {
        code: i32,
    },
    Offered(Box<Support>),
}

pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok(pair)
}

/// Sends a message, with a descriptor if there is one to pass.
pub(super) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let handed: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !handed.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&handed));
    }
    let flags = flags | SendFlags::NOSIGNAL;
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, flags) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next message with its descriptor; `None` at the end.
pub(super) fn receive<T: for<'a> Deserialize<'a>>(
    socket: impl AsFd,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut bytes = vec![0; MAX_MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let read = loop {
        let mut slice = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(&socket, &mut slice, &mut ancillary, flags) {
            Ok(message) => break message.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match bytes.get(..read) {
        None | Some([]) => Ok(None),
        Some(message) => Ok(Some((serde_json::from_slice(message)?, descriptor))),
    }
}
