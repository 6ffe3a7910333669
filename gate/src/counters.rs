//! The counters that a gate keeps, and the names they are stored under.
//!
//! Tool and parameter names are stored as fingerprints, never in clear. A reader of a home's
//! counters learns how often something was called, but what it was only if the name is already
//! known.

use crate::posture::Posture;
use contract::hash::sha256_hex;
use std::fmt;

/// The last bucket of added latency, which is unbounded: everything from 2^29 microseconds (nine
/// minutes) on.
pub const MAX_ADDED_BUCKET: u8 = 30;

/// A quantity that is counted per day and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Calls that were decided: uses of tools and prompts, and reads of resources.
    Calls,
    /// Requests that are not calls: lists (including refused ones), pings and the rest.
    Requests,
    /// Calls that were held.
    Held,
    /// Calls that were denied for any reason other than a hold.
    Denied,
    /// Calls that failed because of the upstream or Holdpoint itself.
    Failed,
    /// Changes that started to be held, each counted once however many calls it held.
    HoldsBegun,
    /// Changes that were accepted as benign and pinned automatically.
    Repinned,
    /// Changes that were noted without holding anything.
    Notes,
    /// Lists that the gate requested itself.
    Relists,
    /// Calls that this posture would have held.
    WouldHold(Posture),
    /// Calls whose contract had changed, by the highest tier that was consulted.
    Tier(u8),
    /// Calls to which Holdpoint added less than 2^k microseconds, each in the smallest bucket that
    /// fits. The last bucket is unbounded.
    Added(u8),
    /// Calls of one tool.
    ToolCalled(Fingerprint),
    /// Calls of one tool that passed one parameter.
    ParameterUsed(Fingerprint),
}

/// Eight bytes derived from a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The first 16 hex digits of the hash over the names, separated by zero bytes.
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

/// The counter of a tool's calls that passed a parameter.
pub fn parameter_used(tool: &str, parameter: &str) -> Counter {
    Counter::ParameterUsed(Fingerprint::of(&[tool, parameter]))
}

/// The counter of calls to which Holdpoint added this much latency.
pub fn added_bucket(microseconds: u64) -> Counter {
    let bits = u64::BITS - microseconds.leading_zeros();
    Counter::Added(u8::try_from(bits).unwrap_or(MAX_ADDED_BUCKET).min(MAX_ADDED_BUCKET))
}

impl Counter {
    /// The name that the counter is stored under.
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

    /// Parses a stored name. Returns `None` for a counter of a newer Holdpoint version.
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

/// Parses a number in its canonical spelling only, so that each counter has one name.
fn number(text: &str) -> Option<u8> {
    let number: u8 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests;
