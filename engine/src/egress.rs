//! Which addresses a confined server may reach, according to the address table in `wire`.

use sandbox::Reach;
use std::net::{IpAddr, Ipv6Addr};
use wire::AddressClass;

/// Judges an address, because a name that a confined server may reach can still resolve to a
/// forbidden one.
pub fn egress_reach(address: IpAddr) -> Reach {
    if matches!(address, IpAddr::V6(address) if is_translated(address)) {
        return Reach::Refused;
    }
    match AddressClass::of(address) {
        AddressClass::Public => Reach::Allowed,
        AddressClass::Loopback
        | AddressClass::Private
        | AddressClass::Shared
        | AddressClass::LinkLocal
        | AddressClass::Metadata
        | AddressClass::Documentation => Reach::NeedsPermission,
        AddressClass::Unspecified | AddressClass::Multicast | AddressClass::Reserved => {
            Reach::Refused
        }
    }
}

/// NAT64 and 6to4: a translator on the way decides where such an address leads.
fn is_translated(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    matches!((a, b), (0x64, 0xff9b) | (0x2002, _))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_need_no_permission() {
        for (text, expected) in [
            ("1.1.1.1", Reach::Allowed),
            ("2606:4700::1", Reach::Allowed),
            ("127.0.0.1", Reach::NeedsPermission),
            ("::1", Reach::NeedsPermission),
            ("::ffff:127.0.0.1", Reach::NeedsPermission),
            ("10.0.0.1", Reach::NeedsPermission),
            ("100.64.0.1", Reach::NeedsPermission),
            ("169.254.1.1", Reach::NeedsPermission),
            ("169.254.169.254", Reach::NeedsPermission),
            ("fd00:ec2::254", Reach::NeedsPermission),
            ("fe80::1", Reach::NeedsPermission),
            ("64:ff9b::1.1.1.1", Reach::Refused),
            ("64:ff9b:1::1.1.1.1", Reach::Refused),
            ("2002:0101:0101::1", Reach::Refused),
            ("0.0.0.0", Reach::Refused),
            ("224.0.0.1", Reach::Refused),
        ] {
            assert_eq!(egress_reach(text.parse().unwrap()), expected, "{text}");
        }
    }
}
