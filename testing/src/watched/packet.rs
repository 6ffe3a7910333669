//! A packet sent by the product, parsed as far as tests need it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hardware address of the product's end, which identifies packets sent by the product.
pub(super) const PRODUCT_ADDRESS: &str = "02:00:00:00:01:17";
const PRODUCT_BYTES: [u8; 6] = [2, 0, 0, 0, 1, 0x17];
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

#[derive(Clone, PartialEq, Eq, Default)]
pub struct Packet {
    /// `None` for packets that are not IP, such as ARP.
    pub to: Option<IpAddr>,
    /// The IP protocol number; 6 is TCP and 17 is UDP.
    pub protocol: Option<u8>,
    pub from_port: u16,
    pub to_port: u16,
    /// The sequence number of a TCP segment, and whether it opens the connection.
    sequence: (u32, bool),
    pub payload: Vec<u8>,
    /// Whether it is an IPv6 neighbour or multicast announcement, which a kernel sends for every
    /// device. No program sends these.
    pub is_of_the_kernel: bool,
}

impl fmt::Debug for Packet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packet { to, protocol, to_port, payload, .. } = self;
        let text = String::from_utf8_lossy(payload);
        write!(formatter, "to {to:?}, protocol {protocol:?}, port {to_port}: {text:?}")
    }
}

impl Packet {
    /// Returns `None` for packets sent by the world.
    pub(super) fn of_frame(frame: &[u8]) -> Option<Packet> {
        let (source, kind) = (frame.get(6..12)?, u16_at(frame, 12)?);
        (source == PRODUCT_BYTES).then(|| Packet::of_ip(kind, &frame[14..]).unwrap_or_default())
    }

    fn of_ip(kind: u16, bytes: &[u8]) -> Option<Packet> {
        let (protocol, to, rest): (u8, IpAddr, &[u8]) = match kind {
            0x0800 => {
                let length = usize::from(bytes.first()? & 0x0f) * 4;
                let to: [u8; 4] = bytes.get(16..20)?.try_into().ok()?;
                // Bytes after the packet are padding of a short frame.
                let end = usize::from(u16_at(bytes, 2)?);
                (*bytes.get(9)?, Ipv4Addr::from(to).into(), bytes.get(length..end)?)
            }
            0x86dd => {
                let to: [u8; 16] = bytes.get(24..40)?.try_into().ok()?;
                let end = 40 + usize::from(u16_at(bytes, 4)?);
                let (next, rest) = without_options(*bytes.get(6)?, bytes.get(40..end)?)?;
                (next, Ipv6Addr::from(to).into(), rest)
            }
            _ => return None,
        };
        let has_ports = matches!(protocol, TCP | UDP);
        let port = |at: usize| if has_ports { u16_at(rest, at) } else { Some(0) };
        let is_opening = protocol == TCP && rest.get(13)? & 2 != 0;
        let first = match protocol {
            TCP => rest.get(4..8)?.try_into().map(u32::from_be_bytes).ok()?,
            _ => 0,
        };
        let header = match protocol {
            TCP => usize::from(rest.get(12)? >> 4) * 4,
            UDP => 8,
            _ => 0,
        };
        Some(Packet {
            to: Some(to),
            protocol: Some(protocol),
            from_port: port(0)?,
            to_port: port(2)?,
            sequence: (first, is_opening),
            payload: rest.get(header..)?.to_vec(),
            is_of_the_kernel: protocol == ICMPV6 && matches!(rest.first(), Some(130..=136 | 143)),
        })
    }

    /// Whether it is a DNS query, or an attempt to connect to a name server.
    pub fn is_name_look_up(&self) -> bool {
        self.to_port == 53
    }
}

/// Skips the hop-by-hop options before an announcement of multicast groups.
fn without_options(next: u8, bytes: &[u8]) -> Option<(u8, &[u8])> {
    const HOP_BY_HOP: u8 = 0;
    if next != HOP_BY_HOP {
        return Some((next, bytes));
    }
    let length = (usize::from(*bytes.get(1)?) + 1) * 8;
    Some((*bytes.first()?, bytes.get(length..)?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The bytes that the product sent over each TCP connection, in the order in which the connections
/// were opened. Retransmitted bytes are included once.
pub fn streams(packets: &[Packet]) -> Vec<Vec<u8>> {
    let mut begun: Vec<(u16, u16)> = Vec::new();
    let mut segments: BTreeMap<(u16, u16), (u32, Vec<&Packet>)> = BTreeMap::new();
    for packet in packets.iter().filter(|it| it.protocol == Some(TCP)) {
        let connection = (packet.from_port, packet.to_port);
        let (first, is_opening) = packet.sequence;
        if is_opening && !begun.contains(&connection) {
            begun.push(connection);
            segments.insert(connection, (first.wrapping_add(1), Vec::new()));
        }
        if let Some((_, sent)) = segments.get_mut(&connection) {
            sent.push(packet);
        }
    }
    let joined = |connection: &(u16, u16)| {
        let (first, sent) = &segments[connection];
        let mut bytes = Vec::new();
        for packet in sent.iter().filter(|it| !it.payload.is_empty()) {
            let at = packet.sequence.0.wrapping_sub(*first) as usize;
            let end = at + packet.payload.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(&packet.payload);
        }
        bytes
    };
    begun.iter().map(joined).collect()
}
