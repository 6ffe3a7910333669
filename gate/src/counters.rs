//! The counters that a gate keeps, and what each is called where counts are stored.
//!
//! Names of tools and parameters are counted by a fingerprint, never in the clear: who reads the counters of a home
//! learns how often something was called, and what it was only where the name is known already.

use crate::posture::Posture;
use contract::hash::sha256_hex;
use std::fmt;

/// The bucket of added latency that has no end: all from 2^29 microseconds on, nine minutes, is in it.
pub const MAX_ADDED_BUCKET: u8 = 30;

/// Something that is counted by day and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Calls that were decided: of tools and prompts, and reads of resources.
    Calls,
    /// Requests that are no calls: lists, refused ones too, pings and the rest.
    Requests,
    /// Calls that were held.
    Held,
    /// Calls that were denied, by anything but a hold.
    Denied,
    /// Calls that failed by the upstream's or Holdpoint's own fault.
    Failed,
    /// Changes that began to be held, each once however many calls it held.
    HoldsBegun,
    /// Changes that were accepted as benign and pinned automatically.
    Repinned,
    /// Changes that were noted and held nothing.
    Notes,
    /// Lists that the gate asked for itself.
    Relists,
    /// Calls that this posture would have held.
    WouldHold(Posture),
    /// Calls whose contract had changed, by the highest tier that was asked.
    Tier(u8),
    /// Calls whose own share of the time was less than 2^k microseconds, each in the smallest bucket that it fits; the last
    /// has no end.
    Added(u8),
    /// Calls of one tool.
    ToolCalled(Fingerprint),
    /// Calls of one tool that had one parameter.
    ParameterUsed(Fingerprint),
}

/// Eight bytes that stand for a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The first 16 digits of the hash over the names, a zero byte between them.
    fn of(names: &[&str]) -> Fingerprint {
        let hash = sha256_hex(names.join("\0").as_bytes());
        Fingerprint(u64::from_str_radix(hash.get(..16).unwrap_or_default(), 16).unwrap_or_default())
    }

    fn parse(text: &str) -> Option<Fingerprint> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 16 || !text.bytes().all(is_hex) {
            return None;
        }
        u64::from_str_radix(text, 16).ok().map(Fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({self})")
    }
}

/// The counter of a tool's calls.
pub fn tool_called(tool: &str) -> Counter {
    Counter::ToolCalled(Fingerprint::of(&[tool]))
}

/// The counter of those calls of a tool that had a parameter.
pub fn parameter_used(tool: &str, parameter: &str) -> Counter {
    Counter::ParameterUsed(Fingerprint::of(&[tool, parameter]))
}

/// The counter of calls that took so long because of Holdpoint.
pub fn added_bucket(microseconds: u64) -> Counter {
    let bits = u64::BITS - microseconds.leading_zeros();
    Counter::Added(u8::try_from(bits).unwrap_or(MAX_ADDED_BUCKET).min(MAX_ADDED_BUCKET))
}

impl Counter {
    /// What the counter is called where it is stored.
    pub fn name(&self) -> String {
        match self {
            Counter::WouldHold(posture) => format!("would-hold.{posture}"),
            Counter::Tier(tier) => format!("tier.{tier}"),
            Counter::Added(bucket) => format!("added.{bucket}"),
            Counter::ToolCalled(tool) => format!("tool.{tool}"),
            Counter::ParameterUsed(parameter) => format!("parameter.{parameter}"),
            Counter::Calls => "calls".to_owned(),
            Counter::Requests => "requests".to_owned(),
            Counter::Held => "held".to_owned(),
            Counter::Denied => "denied".to_owned(),
            Counter::Failed => "failed".to_owned(),
            Counter::HoldsBegun => "holds-begun".to_owned(),
            Counter::Repinned => "repinned".to_owned(),
            Counter::Notes => "notes".to_owned(),
            Counter::Relists => "relists".to_owned(),
        }
    }

    /// The counter that is called so. One that a newer Holdpoint keeps is not known here.
    pub fn parse(name: &str) -> Option<Counter> {
        let Some((family, member)) = name.split_once('.') else { return Counter::plain(name) };
        match family {
            "would-hold" => member.parse().ok().map(Counter::WouldHold),
            "tier" => number(member).map(Counter::Tier),
            "added" => number(member).map(Counter::Added),
            "tool" => Fingerprint::parse(member).map(Counter::ToolCalled),
            "parameter" => Fingerprint::parse(member).map(Counter::ParameterUsed),
            _ => None,
        }
    }

    fn plain(name: &str) -> Option<Counter> {
        Some(match name {
            "calls" => Counter::Calls,
            "requests" => Counter::Requests,
            "held" => Counter::Held,
            "denied" => Counter::Denied,
            "failed" => Counter::Failed,
            "holds-begun" => Counter::HoldsBegun,
            "repinned" => Counter::Repinned,
            "notes" => Counter::Notes,
            "relists" => Counter::Relists,
            _ => return None,
        })
    }
}

/// A number as it is printed, and in no other way: a counter has one name.
fn number(text: &str) -> Option<u8> {
    let number: u8 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests;
