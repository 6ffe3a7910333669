//! The network inside the sandbox: every address is local, our resolver answers names, listeners
//! accept connections to allowed ports, and a packet socket sees attempts at all other ports.

use super::dns::RESOLVER;
use super::plan::NetworkPlan;
use super::sys;
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Ipv4Addr, Ipv6Addr, RecvFlags, SendFlags, SocketAddrV4, SocketAddrV6,
    SocketFlags, SocketType, sockopt,
};
use seccompiler::sock_filter;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

const LOOPBACK_INDEX: u32 = 1;
const BACKLOG: i32 = 128;
const DNS_PORT: u16 = 53;

/// The helper's listening sockets.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) resolver: UdpSocket,
    pub(super) ports: Vec<(u16, TcpListener)>,
    pub(super) packets: OwnedFd,
}

/// Sets up the network of this namespace. Requires privileges in it.
pub(super) fn set_up(plan: &NetworkPlan) -> io::Result<Listening> {
    let flags = SocketFlags::CLOEXEC;
    // The default protocol of this family is routing.
    let route = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    ask(&route, &loopback_up())?;
    ask(&route, &everything_is_local(AddressFamily::INET))?;
    // Without IPv6 there is nothing to route.
    let has_v6 = ask(&route, &everything_is_local(AddressFamily::INET6)).is_ok();
    let packets = sys::packet_socket(&ATTEMPTS)?;
    let resolver = UdpSocket::bind((RESOLVER, DNS_PORT))?;
    resolver.set_nonblocking(true)?;
    let mut numbers: Vec<u16> = plan.rules.iter().map(crate::host_rule::HostRule::port).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ports = Vec::with_capacity(numbers.len());
    for number in numbers {
        ports.push((number, listen(number, has_v6)?));
    }
    Ok(Listening { resolver, ports, packets })
}

fn listen(port: u16, has_v6: bool) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = if has_v6 {
        let socket =
            rustix::net::socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
        sockopt::set_ipv6_v6only(&socket, false)?;
        rustix::net::bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0))?;
        socket
    } else {
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
        socket
    };
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

// rtnetlink messages, in the machine's byte order.
const NEW_LINK: u16 = 16;
const NEW_ROUTE: u16 = 24;
const REQUEST_AND_ACKNOWLEDGE: u16 = 0x5;
const CREATE_OR_REPLACE: u16 = 0x500;
const ERROR: u16 = 2;

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST_AND_ACKNOWLEDGE | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn loopback_up() -> Vec<u8> {
    const UP: u32 = 1;
    let mut body = vec![0; 4];
    body.extend(LOOPBACK_INDEX.to_ne_bytes());
    body.extend(UP.to_ne_bytes());
    body.extend(UP.to_ne_bytes());
    message(NEW_LINK, 0, &body)
}

/// The route that makes every address of a family local: nothing is sent anywhere, and a listener
/// receives connections to any address on its port.
fn everything_is_local(family: AddressFamily) -> Vec<u8> {
    const TABLE_LOCAL: u8 = 255;
    const PROTOCOL_BOOT: u8 = 3;
    const SCOPE_HOST: u8 = 254;
    const TYPE_LOCAL: u8 = 2;
    const OUTPUT_INTERFACE: u16 = 4;
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    let mut body = vec![family, 0, 0, 0, TABLE_LOCAL, PROTOCOL_BOOT, SCOPE_HOST, TYPE_LOCAL];
    body.extend([0; 4]);
    body.extend(8_u16.to_ne_bytes());
    body.extend(OUTPUT_INTERFACE.to_ne_bytes());
    body.extend(LOOPBACK_INDEX.to_ne_bytes());
    message(NEW_ROUTE, CREATE_OR_REPLACE, &body)
}

fn ask(route: &OwnedFd, message: &[u8]) -> io::Result<()> {
    rustix::net::send(route, message, SendFlags::empty())?;
    let mut answer = [0_u8; 4096];
    let (read, _) = rustix::net::recv(route, &mut answer, RecvFlags::empty())?;
    let answer = answer.get(..read).unwrap_or_default();
    let kind =
        answer.get(4..6).and_then(<[u8]>::first_chunk::<2>).map(|kind| u16::from_ne_bytes(*kind));
    let code =
        answer.get(16..).and_then(<[u8]>::first_chunk::<4>).map(|code| i32::from_ne_bytes(*code));
    match (kind, code) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(code)) => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

const fn load_byte(at: u32) -> sock_filter {
    sock_filter { code: 0x30, jt: 0, jf: 0, k: at }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const IF_EQUAL: u16 = 0x15;
const AND: u16 = 0x54;
const INDEX_BY_HEADER: u16 = 0xb1;
const LOAD_BYTE_INDEXED: u16 = 0x50;
const RETURN: u16 = 0x06;
/// Enough for the addresses and ports of either family.
const KEPT_BYTES: u32 = 128;

/// Accepts the first packet of each TCP connection, and every packet that is neither TCP nor a
/// kernel response (ICMP).
const ATTEMPTS: [sock_filter; 19] = [
    load_byte(0),
    jump(AND, 0xf0, 0, 0),
    jump(IF_EQUAL, 0x40, 0, 7),
    // IPv4: the protocol and, for TCP, the flags after a header of variable length.
    load_byte(9),
    jump(IF_EQUAL, 1, 13, 0),
    jump(IF_EQUAL, 6, 0, 11),
    jump(INDEX_BY_HEADER, 0, 0, 0),
    jump(LOAD_BYTE_INDEXED, 13, 0, 0),
    jump(AND, 0x12, 0, 0),
    jump(IF_EQUAL, 0x02, 7, 8),
    // IPv6 without extension headers, which local packets normally do not have.
    jump(IF_EQUAL, 0x60, 0, 7),
    load_byte(6),
    jump(IF_EQUAL, 58, 5, 0),
    jump(IF_EQUAL, 6, 0, 3),
    load_byte(53),
    jump(AND, 0x12, 0, 0),
    jump(IF_EQUAL, 0x02, 0, 1),
    jump(RETURN, KEPT_BYTES, 0, 0),
    jump(RETURN, 0, 0, 0),
];

/// The destination of a packet that the filter accepted. `None` if it has no port.
pub(super) fn destination(packet: &[u8]) -> Option<SocketAddr> {
    let (address, transport): (IpAddr, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            let address = packet.get(16..)?.first_chunk::<4>()?;
            let transport = packet.get(header..)?;
            (
                Ipv4Addr::from(*address).into(),
                matches!(packet.get(9)?, 6 | 17).then_some(transport)?,
            )
        }
        6 => {
            let address = packet.get(24..)?.first_chunk::<16>()?;
            let transport = packet.get(40..)?;
            (
                Ipv6Addr::from(*address).into(),
                matches!(packet.get(6)?, 6 | 17).then_some(transport)?,
            )
        }
        _ => return None,
    };
    let port = transport.get(2..)?.first_chunk::<2>()?;
    Some(SocketAddr::new(address, u16::from_be_bytes(*port)))
}

pub(super) fn is_udp(packet: &[u8]) -> bool {
    let at = if packet.first().is_some_and(|first| first >> 4 == 4) { 9 } else { 6 };
    packet.get(at) == Some(&17)
}

/// Whether a packet is a response of our resolver.
pub(super) fn is_reply(packet: &[u8]) -> bool {
    packet.first() == Some(&0x45)
        && packet.get(12..16) == Some(&RESOLVER.octets())
        && packet.get(20..22) == Some(&DNS_PORT.to_be_bytes())
}
