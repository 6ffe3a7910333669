//! The resolver of a confined program: it assigns a local address to each allowed name, and never
//! sends a query anywhere.
//!
//! No data can leave the sandbox through a DNS query. The egress proxy resolves a name when the
//! program connects to its address.

use crate::host_rule::{HostRule, is_name};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Assigned addresses come from the range reserved for benchmarks, 198.18.0.0/15, which no host
/// uses.
const FIRST_ADDRESS: u32 = 0xc612_0100;
/// The resolver's own address.
pub(super) const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The most names that are assigned an address. A wildcard matches any number of them.
const MAX_NAMES: usize = 4096;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_INTERNET: u16 = 1;
/// The TTL of responses. Assignments never change, and caching reduces the number of queries.
const SECONDS_TO_LIVE: u32 = 600;

/// The names that were assigned an address.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: HashMap<String, Ipv4Addr>,
    in_order: Vec<String>,
}

impl Names {
    fn address_of(&mut self, name: &str) -> Option<Ipv4Addr> {
        if let Some(address) = self.by_name.get(name) {
            return Some(*address);
        }
        let index = self.in_order.len();
        if index >= MAX_NAMES {
            return None;
        }
        let address = Ipv4Addr::from_bits(FIRST_ADDRESS + u32::try_from(index).ok()?);
        self.in_order.push(name.to_owned());
        self.by_name.insert(name.to_owned(), address);
        Some(address)
    }

    /// The name that an address was assigned to.
    pub(super) fn name_of(&self, address: Ipv4Addr) -> Option<&str> {
        let index = address.to_bits().checked_sub(FIRST_ADDRESS)?;
        self.in_order.get(usize::try_from(index).ok()?).map(String::as_str)
    }
}

/// The result of a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    /// The name, if the allowlist does not contain it.
    pub(super) refused: Option<String>,
}

/// Answers a query. Returns `None` if it is not understood.
pub(super) fn answer(rules: &[HostRule], names: &mut Names, query: &[u8]) -> Option<Reply> {
    let header = query.first_chunk::<12>()?;
    let [id_high, id_low, flags, _, 0, 1, ..] = header else { return None };
    // It is a response, or not a standard query.
    if flags & 0xf8 != 0 {
        return None;
    }
    let (name, end) = read_name(query.get(12..)?)?;
    let question = query.get(12..12 + end + 4)?;
    let [kind_high, kind_low, class_high, class_low] = query.get(12 + end..)?.first_chunk::<4>()?;
    let kind = u16::from_be_bytes([*kind_high, *kind_low]);
    let is_internet = u16::from_be_bytes([*class_high, *class_low]) == CLASS_INTERNET;
    let is_allowed = is_internet && rules.iter().any(|rule| rule.covers_name(&name));
    let address = (is_allowed && kind == TYPE_A).then(|| names.address_of(&name)).flatten();
    let exists = is_allowed && (kind != TYPE_A || address.is_some());
    let recursion_desired = flags & 1;
    let outcome = if exists { 0 } else { NAME_UNKNOWN };
    let answers = u8::from(address.is_some());
    let mut bytes = vec![*id_high, *id_low, 0x80 | recursion_desired, 0x80 | outcome, 0, 1];
    bytes.extend([0, answers, 0, 0, 0, 0]);
    bytes.extend(question);
    if let Some(address) = address {
        // The name is a compression pointer to the one in the question.
        bytes.extend([0xc0, 12, 0, 1, 0, 1]);
        bytes.extend(SECONDS_TO_LIVE.to_be_bytes());
        bytes.extend([0, 4]);
        bytes.extend(address.octets());
    }
    // Programs query both kinds of address at once, which counts as one attempt.
    let refused = (!is_allowed && kind != TYPE_AAAA).then_some(name);
    Some(Reply { bytes, refused })
}

const NAME_UNKNOWN: u8 = 3;

/// Reads a name. Returns it with its length in bytes.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        // A compression pointer or an unknown label type, which no query contains.
        if length > 63 {
            return None;
        }
        let label = std::str::from_utf8(bytes.get(at..at + length)?).ok()?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&label.to_ascii_lowercase());
        at += length;
    }
    is_name(&name).then_some((name, at))
}

#[cfg(test)]
mod tests;
