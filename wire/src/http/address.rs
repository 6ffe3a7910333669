//! Which addresses may be reached. Pure: it judges an address that has already been resolved, and
//! the caller connects to that same address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    Public,
    Loopback,
    Private,
    /// Carrier-grade address translation, 100.64.0.0/10.
    Shared,
    LinkLocal,
    /// A cloud metadata service, which hands out credentials.
    Metadata,
    /// Documentation and benchmarking.
    Documentation,
    Unspecified,
    Multicast,
    Reserved,
}

impl AddressClass {
    pub fn of(address: IpAddr) -> AddressClass {
        classify(address)
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            AddressClass::Public => "a public address",
            AddressClass::Loopback => "a loopback address",
            AddressClass::Private => "a private address",
            AddressClass::Shared => "a shared address",
            AddressClass::LinkLocal => "a link-local address",
            AddressClass::Metadata => "the address of a metadata service",
            AddressClass::Documentation => "an address for documentation or benchmarks",
            AddressClass::Unspecified => "an unspecified address",
            AddressClass::Multicast => "a multicast address",
            AddressClass::Reserved => "a reserved address",
        })
    }
}

/// Whether an address may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Reach {
    Allowed,
    /// Allowed only if private addresses are allowed.
    NeedsAllowPrivate,
    Refused,
}

pub(crate) fn reach(class: AddressClass) -> Reach {
    match class {
        AddressClass::Public | AddressClass::Loopback => Reach::Allowed,
        AddressClass::Private
        | AddressClass::Shared
        | AddressClass::LinkLocal
        | AddressClass::Metadata
        | AddressClass::Documentation => Reach::NeedsAllowPrivate,
        AddressClass::Unspecified | AddressClass::Multicast | AddressClass::Reserved => {
            Reach::Refused
        }
    }
}

pub(crate) fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [0, 0, 0, 0] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        // AWS, Azure, GCP and others; then Oracle's and Alibaba's own addresses.
        [169, 254, 169, 254] | [169, 254, 170, 2] | [192, 0, 0, 192] | [100, 100, 100, 200] => {
            AddressClass::Metadata
        }
        // Azure's, within public address space.
        [168, 63, 129, 16] => AddressClass::Metadata,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Shared,
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18..=19, ..] => {
            AddressClass::Documentation
        }
        [224..=239, ..] => AddressClass::Multicast,
        // "This network", protocol assignments, the old 6to4 relay, and everything from 240 up
        // including broadcast.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let [a, b, c, d, e, f, g, h] = address.segments();
    match [a, b, c, d, e, f, g, h] {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // The kernel treats an IPv4-mapped IPv6 address as the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => classify_v4(embedded(high, low)),
        // A translator along the way would map loopback to its own host.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            match classify_v4(embedded(high, low)) {
                AddressClass::Loopback => AddressClass::Reserved,
                class => class,
            }
        }
        [0x64, 0xff9b, 1, ..] => AddressClass::Private,
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::Metadata
        }
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        // Site-local: deprecated, and private if still in use.
        [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 2, 0, ..] => {
            AddressClass::Documentation
        }
        // Teredo, ORCHID and the other protocol assignments in 2001::/23.
        [0x2001, 0..=0x1ff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        // Only 2000::/3 is allocated; the rest (including IPv4-compatible and discard-only
        // addresses) is unassigned.
        _ => AddressClass::Reserved,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_its_class_at_its_edges() {
        use AddressClass::*;
        let table = [
            ("1.1.1.1", Public),
            ("9.255.255.255", Public),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("11.0.0.0", Public),
            ("100.63.255.255", Public),
            ("100.64.0.0", Shared),
            ("100.127.255.255", Shared),
            ("100.128.0.0", Public),
            ("100.100.100.200", Metadata),
            ("126.255.255.255", Public),
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.0", Public),
            ("168.63.129.16", Metadata),
            ("169.253.255.255", Public),
            ("169.254.0.0", LinkLocal),
            ("169.254.169.254", Metadata),
            ("169.254.255.255", LinkLocal),
            ("169.255.0.0", Public),
            ("172.15.255.255", Public),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("192.0.0.8", Reserved),
            ("192.0.0.192", Metadata),
            ("192.0.1.255", Public),
            ("192.0.2.0", Documentation),
            ("192.0.3.0", Public),
            ("192.88.99.1", Reserved),
            ("192.167.255.255", Public),
            ("192.168.0.0", Private),
            ("192.168.255.255", Private),
            ("192.169.0.0", Public),
            ("198.17.255.255", Public),
            ("198.18.0.0", Documentation),
            ("198.19.255.255", Documentation),
            ("198.20.0.0", Public),
            ("198.51.100.7", Documentation),
            ("203.0.113.7", Documentation),
            ("223.255.255.255", Public),
            ("224.0.0.0", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.0", Reserved),
            ("255.255.255.255", Reserved),
            ("0.0.0.0", Unspecified),
            ("0.0.0.1", Reserved),
            ("::", Unspecified),
            ("::1", Loopback),
            ("::2", Reserved),
            ("::127.0.0.1", Reserved),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:169.254.169.254", Metadata),
            ("::ffff:1.1.1.1", Public),
            ("64:ff9b::1.1.1.1", Public),
            ("64:ff9b::10.0.0.1", Private),
            ("64:ff9b::127.0.0.1", Reserved),
            ("64:ff9b::169.254.169.254", Metadata),
            ("64:ff9b:1::1.1.1.1", Private),
            ("100::1", Reserved),
            ("2001::1", Reserved),
            ("2001:2::1", Documentation),
            ("2001:200::1", Public),
            ("2001:db8::1", Documentation),
            ("2001:db9::1", Public),
            ("2002:0a00:0001::1", Private),
            ("2002:7f00:0001::1", Reserved),
            ("2002:0101:0101::1", Public),
            ("2606:4700::1", Public),
            ("3fff:fff::1", Documentation),
            ("3fff:1000::1", Public),
            ("4000::1", Reserved),
            ("fbff::1", Reserved),
            ("fc00::1", Private),
            ("fd00:ec2::254", Metadata),
            ("fdff::1", Private),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
        ];
        for (text, expected) in table {
            assert_eq!(classify(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_network_at_all_is_refused_whatever_is_allowed() {
        for class in [AddressClass::Unspecified, AddressClass::Multicast, AddressClass::Reserved] {
            assert_eq!(reach(class), Reach::Refused);
        }
        assert_eq!(reach(AddressClass::Metadata), Reach::NeedsAllowPrivate);
        assert_eq!(reach(AddressClass::Loopback), Reach::Allowed);
    }
}
