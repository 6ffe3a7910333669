//! Assesses a battery after it was sent: any departure from the contract fails it, and unobserved
//! behavior clears nothing.

use super::Leg;
use super::battery::{Battery, Expected, Probe};
use crate::naming::shown_name;
use crate::tiers::Behavior;
use serde_json::Value;
use std::fmt;

/// JSON-RPC's codes by which a server reports that the call itself is wrong.
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMETERS: i64 = -32602;
/// The most parts of a path that are shown.
const MAX_PARTS: usize = 8;

/// The outcome of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The raw JSON of the result.
    Result(String),
    /// A JSON-RPC error.
    Error { code: i64 },
    /// An answer that is too long, invalid or ambiguous.
    Unreadable,
    /// No answer in time, though the server still responds.
    Slow,
    /// No answer in time, and the server does not respond to anything else either.
    NoAnswer,
    /// The server ended.
    Ended,
}

/// Observations of the server during the calls, apart from its answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sighting {
    /// Files that were written outside of the server's own temporary folder.
    pub written: Vec<String>,
    /// Attempts to connect to anything over a network.
    pub sockets: Vec<String>,
    /// How many answers arrived for requests that were not waiting for one.
    pub stray_answers: u64,
}

/// A way in which the tool departed from its contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    RefusesDeclared,
    AcceptsMalformed,
    ResultOffSchema,
    UnreadableAnswer,
    NoAnswer,
    EndsOnCall,
    AnswersOthers,
    Writes(String),
    Connects(String),
}

impl Departure {
    pub fn code(&self) -> &'static str {
        match self {
            Departure::RefusesDeclared => "refuses_declared_input",
            Departure::AcceptsMalformed => "accepts_malformed_input",
            Departure::ResultOffSchema => "result_off_schema",
            Departure::UnreadableAnswer => "unreadable_answer",
            Departure::NoAnswer => "no_answer",
            Departure::EndsOnCall => "ends_on_call",
            Departure::AnswersOthers => "answers_what_was_not_asked",
            Departure::Writes(_) => "writes_though_read_only",
            Departure::Connects(_) => "reaches_out",
        }
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Departure::RefusesDeclared => "it refuses arguments that its input schema accepts",
            Departure::AcceptsMalformed => "it accepts arguments that its input schema refuses",
            Departure::ResultOffSchema => "its result does not match its output schema",
            Departure::UnreadableAnswer => "its answer is too long, invalid or ambiguous",
            Departure::NoAnswer => "the server stops answering once it is called",
            Departure::EndsOnCall => "the server ended when it was called",
            Departure::AnswersOthers => "the server answered requests that it was not asked",
            Departure::Writes(path) => {
                let path = plain(path);
                return write!(formatter, "it declares itself read-only, but wrote `{path}`");
            }
            Departure::Connects(address) => {
                let address = plain(address);
                return write!(
                    formatter,
                    "it tried to reach `{address}`, which its annotations rule out"
                );
            }
        };
        formatter.write_str(words)
    }
}

/// Neutralizes a path or an address that the server chose, so that no part of it can carry a
/// message.
fn plain(text: &str) -> String {
    let parts = text.split_inclusive(['/', ':']).take(MAX_PARTS);
    let shown = parts.map(|part| match part.char_indices().next_back() {
        Some((0, '/' | ':')) => part.to_owned(),
        Some((end, mark @ ('/' | ':'))) => {
            format!("{}{mark}", shown_name(part.get(..end).unwrap_or_default(), false))
        }
        Some(_) | None => shown_name(part, false),
    });
    shown.collect()
}

/// Why no assessment could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unobserved {
    /// No valid call returned a result.
    NothingAccepted,
    /// The tool needs a network, which the sandbox does not provide.
    NeedsNetwork,
    /// A call takes longer than the time limit.
    Slow,
    /// The battery could not be made or sent, with the reason.
    NotTried(String),
}

impl fmt::Display for Unobserved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Unobserved::NothingAccepted => {
                "every valid call of it ended in an error of the tool's own, so nothing of what it does was seen"
            }
            Unobserved::NeedsNetwork => {
                "it tried to use the network, which the sandbox does not have, so not all of what it does was seen"
            }
            Unobserved::Slow => "a call of it takes longer than it is waited for",
            Unobserved::NotTried(why) => why,
        })
    }
}

/// The result of a battery.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assessment {
    Declined,
    Unavailable(Unobserved),
    /// How many calls were made.
    Cleared(usize),
    /// The departures that were seen, one per kind, in order.
    Failed(Vec<Departure>),
}

impl Assessment {
    /// Compares the outcomes with the contract. `outcomes` may cover only the first calls, because
    /// nothing further is sent to a server that ended or hung.
    pub fn of(battery: &Battery, outcomes: &[Outcome], sighting: &Sighting) -> Assessment {
        let mut departures: Vec<Departure> = Vec::new();
        let mut accepted = 0_usize;
        let mut is_slow = false;
        for (probe, outcome) in battery.probes.iter().zip(outcomes) {
            match read(battery, probe, outcome) {
                Read::AsDeclared { is_accepted } => accepted += usize::from(is_accepted),
                Read::OwnError => {}
                Read::Unseen => is_slow = true,
                Read::Departs(departure) => departures.push(departure),
            }
        }
        departures.extend(seen(battery, sighting));
        let mut known: Vec<&'static str> = Vec::new();
        departures.retain(|departure| {
            let is_new = !known.contains(&departure.code());
            known.push(departure.code());
            is_new
        });
        if !departures.is_empty() {
            return Assessment::Failed(departures);
        }
        let is_whole = outcomes.len() >= battery.probes.len() && !outcomes.is_empty();
        match battery.leg {
            _ if is_slow => Assessment::Unavailable(Unobserved::Slow),
            _ if !is_whole => {
                let why = "not every call of the battery could be made".to_owned();
                Assessment::Unavailable(Unobserved::NotTried(why))
            }
            Leg::Sandbox if !sighting.sockets.is_empty() => {
                Assessment::Unavailable(Unobserved::NeedsNetwork)
            }
            Leg::Sandbox if accepted == 0 => Assessment::Unavailable(Unobserved::NothingAccepted),
            Leg::Sandbox | Leg::ReadOnly => Assessment::Cleared(outcomes.len()),
        }
    }

    pub fn not_tried(why: impl fmt::Display) -> Assessment {
        Assessment::Unavailable(Unobserved::NotTried(why.to_string()))
    }

    pub fn behavior(&self) -> Behavior {
        match self {
            Assessment::Declined => Behavior::Declined,
            Assessment::Unavailable(_) => Behavior::Unavailable,
            Assessment::Cleared(_) => Behavior::Cleared,
            Assessment::Failed(_) => Behavior::Failed,
        }
    }

    /// The sentence to show to a person.
    pub fn words(&self) -> String {
        match self {
            Assessment::Declined => {
                "the configuration does not say that the server is the operator's own".to_owned()
            }
            Assessment::Unavailable(why) => why.to_string(),
            Assessment::Cleared(calls) => {
                let were = if *calls == 1 { "call was" } else { "calls were" };
                format!(
                    "{calls} {were} answered as the contract says; that does not prove the tool safe"
                )
            }
            Assessment::Failed(departures) => {
                let words: Vec<String> = departures.iter().map(ToString::to_string).collect();
                words.join("; ")
            }
        }
    }
}

/// The interpretation of one answer.
enum Read {
    AsDeclared {
        is_accepted: bool,
    },
    /// A valid call that the tool could not serve: neither accepted nor refused.
    OwnError,
    /// A call whose answer did not arrive in time.
    Unseen,
    Departs(Departure),
}

fn read(battery: &Battery, probe: &Probe, outcome: &Outcome) -> Read {
    let result = match outcome {
        Outcome::Unreadable => return Read::Departs(Departure::UnreadableAnswer),
        Outcome::Slow => return Read::Unseen,
        Outcome::NoAnswer => return Read::Departs(Departure::NoAnswer),
        Outcome::Ended => return Read::Departs(Departure::EndsOnCall),
        Outcome::Error { code } => {
            return match (probe.expected, *code) {
                (Expected::Refused, _) => Read::AsDeclared { is_accepted: false },
                (Expected::Accepted, INVALID_PARAMETERS | UNKNOWN_METHOD) => {
                    Read::Departs(Departure::RefusesDeclared)
                }
                (Expected::Accepted, _) => Read::OwnError,
            };
        }
        Outcome::Result(result) => result,
    };
    let Ok(Value::Object(result)) = serde_json::from_str::<Value>(result) else {
        return Read::Departs(Departure::UnreadableAnswer);
    };
    let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
    match (probe.expected, is_error) {
        (Expected::Refused, true) => Read::AsDeclared { is_accepted: false },
        (Expected::Refused, false) => Read::Departs(Departure::AcceptsMalformed),
        (Expected::Accepted, true) => Read::OwnError,
        (Expected::Accepted, false) => {
            let structured = result.get("structuredContent");
            let is_declared = battery
                .results
                .as_ref()
                .is_none_or(|rules| structured.is_some_and(|structured| rules.accept(structured)));
            match is_declared {
                true => Read::AsDeclared { is_accepted: true },
                false => Read::Departs(Departure::ResultOffSchema),
            }
        }
    }
}

/// Departures observed apart from the answers: behavior that contradicts the tool's claims.
fn seen(battery: &Battery, sighting: &Sighting) -> Vec<Departure> {
    let claims = battery.claims;
    // A tool that declares an open world may legitimately read there.
    let stays_inside =
        claims.open_world == Some(false) || claims.only_reads && claims.open_world != Some(true);
    let written = sighting.written.first().filter(|_| claims.only_reads);
    let socket = sighting.sockets.first().filter(|_| stays_inside);
    let mut departures = Vec::new();
    departures.extend(written.map(|path| Departure::Writes(path.clone())));
    departures.extend(socket.map(|address| Departure::Connects(address.clone())));
    departures.extend((sighting.stray_answers > 0).then_some(Departure::AnswersOthers));
    departures
}
