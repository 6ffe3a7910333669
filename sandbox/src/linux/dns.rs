//! The resolver that a confined program asks: it gives each allowed name a local address and sends no query anywhere.
//!
//! No name leaves the sandbox by a question. The egress proxy resolves a name when the program connects to its address.

use crate::host_rule::{HostRule, is_name};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Addresses are given out from the range that is reserved for benchmarks, 198.18.0.0/15: no host has one of them.
const FIRST_ADDRESS: u32 = 0xc612_0100;
/// The resolver's own address.
pub(super) const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// How many names get an address. A wildcard covers any number of them.
const MAX_NAMES: usize = 4096;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_INTERNET: u16 = 1;
/// Names are answered for as long: they do not change, and a program that keeps them asks less.
const SECONDS_TO_LIVE: u32 = 600;

/// The names that were given an address.
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

    /// The name that was given an address.
    pub(super) fn name_of(&self, address: Ipv4Addr) -> Option<&str> {
        let index = address.to_bits().checked_sub(FIRST_ADDRESS)?;
        self.in_order.get(usize::try_from(index).ok()?).map(String::as_str)
    }
}

/// What becomes of a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    /// The name, if it is not on the allowlist.
    pub(super) refused: Option<String>,
}

/// Answers a question. `None` where it cannot be understood.
pub(super) fn answer(rules: &[HostRule], names: &mut Names, query: &[u8]) -> Option<Reply> {
    let header = query.first_chunk::<12>()?;
    let [id_high, id_low, flags, _, 0, 1, ..] = header else { return None };
    // A response, or another kind of question than a plain one.
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
        // The name is that of the question, by a pointer to it.
        bytes.extend([0xc0, 12, 0, 1, 0, 1]);
        bytes.extend(SECONDS_TO_LIVE.to_be_bytes());
        bytes.extend([0, 4]);
        bytes.extend(address.octets());
    }
    // A program asks for both kinds of address at once; that is one attempt.
    let refused = (!is_allowed && kind != TYPE_AAAA).then_some(name);
    Some(Reply { bytes, refused })
}

const NAME_UNKNOWN: u8 = 3;

/// Reads a name and returns it with the number of its bytes.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        // A pointer or something newer: no question has one.
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
