//! How often the parameters that a change affects were used, to help a person decide.

use crate::failure::Failure;
use crate::observation::now;
use crate::screen;
use crate::target::Workplace;
use contract::change::Finding;
use contract::surface::EntryType;
use engine::acts::Review;
use gate::by_the_call::{CallReach, ReachedParameters};
use gate::counters::{Counter, parameter_used, tool_called};
use gate::judge::Judgement;
use gate::server::ServerId;
use serde::Serialize;
use std::collections::HashMap;
use store::{Day, StatisticsStore};

/// How far back calls are counted.
const DAYS: u64 = 30;

/// How often a server's tools and their parameters were used.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    counts: HashMap<(ServerId, Counter), u64>,
}

/// A parameter that a change affects.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ParameterUsage {
    pub(crate) parameter: String,
    used: u64,
    calls: u64,
    days: u64,
}

impl Usage {
    pub(crate) fn read(workplace: &Workplace) -> Result<Usage, Failure> {
        let today = Day::of(now());
        let first = Day(today.0.saturating_sub_unsigned(DAYS - 1));
        let mut usage = Usage::default();
        for count in workplace.store.counts(first, today)? {
            if let Some(counter @ (Counter::ToolCalled(_) | Counter::ParameterUsed(_))) =
                Counter::parse(&count.name)
            {
                let sum = usage.counts.entry((count.server, counter)).or_default();
                *sum = sum.saturating_add(count.value);
            }
        }
        Ok(usage)
    }

    fn count(&self, server: &ServerId, counter: Counter) -> u64 {
        self.counts.get(&(server.clone(), counter)).copied().unwrap_or(0)
    }

    /// The accepted parameters that findings of the entry concern, each once; empty if the tool was
    /// not called.
    pub(crate) fn of(&self, server: &ServerId, entry: &Judgement) -> Vec<ParameterUsage> {
        let calls = self.count(server, tool_called(&entry.id.key));
        if entry.id.entry_type != EntryType::Tool || calls == 0 {
            return Vec::new();
        }
        let mut told: Vec<ParameterUsage> = Vec::new();
        for parameter in entry.findings.iter().filter_map(parameter) {
            let is_told = told.iter().any(|usage| usage.parameter == parameter);
            if !is_told && is_accepted(entry, &parameter) {
                let used = self.count(server, parameter_used(&entry.id.key, &parameter));
                told.push(ParameterUsage { parameter, used, calls, days: DAYS });
            }
        }
        told
    }
}

/// How many of the recorded calls a waiting change would have stopped.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StoppedCalls {
    at_least: u64,
    at_most: u64,
    calls: u64,
    days: u64,
}

impl StoppedCalls {
    pub(crate) fn words(&self) -> String {
        let StoppedCalls { at_least, at_most, calls, days } = *self;
        let stopped = match (at_least, at_most, calls) {
            (_, 0, 1) => "would not have stopped the only call".to_owned(),
            (0, _, 1) => "may have stopped the only call".to_owned(),
            (_, _, 1) => "would have stopped the only call".to_owned(),
            (_, 0, _) => format!("would have stopped none of the {calls} calls"),
            (all, _, _) if all == calls => format!("would have stopped all {calls} calls"),
            (least, most, _) if least == most => {
                format!("would have stopped {least} of the {calls} calls")
            }
            (least, most, _) => {
                format!("would have stopped between {least} and {most} of the {calls} calls")
            }
        };
        format!("the change {stopped} of the last {days} days")
    }
}

impl Usage {
    /// How many of the recent calls a waiting change would have stopped. An estimate from the names
    /// of the parameters that they used. `None` if the change stops no call or the tool was not
    /// called.
    pub(crate) fn stopped(
        &self,
        server: &ServerId,
        review: &Review,
        entry: &Judgement,
    ) -> Option<StoppedCalls> {
        let calls = self.count(server, tool_called(&entry.id.key));
        let reach = review.reach(entry).filter(|_| calls > 0)?;
        let (at_least, at_most) = match reach {
            CallReach::Every => (calls, calls),
            CallReach::Parameters(ReachedParameters { used, left_out, by_value, is_open }) => {
                let count = |name: &String| {
                    self.count(server, parameter_used(&entry.id.key, name)).min(calls)
                };
                let certain = used.iter().map(count);
                let certain = certain.chain(left_out.iter().map(|name| calls - count(name)));
                let certain: Vec<u64> = certain.collect();
                let possible: u64 = certain.iter().copied().chain(by_value.iter().map(count)).sum();
                // Two parameters may have been used by the same calls or by different ones.
                let at_most = if is_open { calls } else { possible.min(calls) };
                (certain.into_iter().max().unwrap_or(0), at_most)
            }
        };
        Some(StoppedCalls { at_least, at_most, calls, days: DAYS })
    }
}

impl ParameterUsage {
    pub(crate) fn words(&self) -> String {
        let ParameterUsage { used, calls, days, .. } = *self;
        let used = match (used, calls) {
            (0, 1) => "was not used in the only call".to_owned(),
            (_, 1) => "was used in the only call".to_owned(),
            (0, _) => format!("was used in none of the {calls} calls"),
            _ => format!("was used in {used} of the {calls} calls"),
        };
        let parameter = screen::readable(&self.parameter);
        format!("the parameter `{parameter}` {used} of the last {days} days")
    }
}

/// The parameter that a finding concerns, in whole or in part.
pub(crate) fn parameter(finding: &Finding) -> Option<String> {
    let step = finding.path.strip_prefix("/inputSchema/properties/")?.split('/').next()?;
    Some(step.replace("~1", "/").replace("~0", "~"))
}

/// Whether the parameter existed before. A new one cannot have been used by a counted call.
fn is_accepted(entry: &Judgement, parameter: &str) -> bool {
    let Some(before) = &entry.before else { return false };
    let tool: serde_json::Value = serde_json::from_str(before.raw()).unwrap_or_default();
    let properties = tool.get("inputSchema").and_then(|schema| schema.get("properties"));
    properties.is_some_and(|properties| properties.get(parameter).is_some())
}
