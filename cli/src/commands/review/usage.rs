//! How often the parameters that a change is about were used: what a person would want to know before deciding.

use crate::failure::Failure;
use crate::observation::now;
use crate::screen;
use crate::target::Workplace;
use contract::change::Finding;
use contract::surface::EntryType;
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

/// One parameter that a change is about.
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

    /// The accepted parameters that findings of the entry are about, each once; none where the tool was not called.
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

impl ParameterUsage {
    pub(crate) fn words(&self) -> String {
        format!(
            "the parameter `{}` was used in {} of {} calls in the last {} days",
            screen::readable(&self.parameter),
            self.used,
            self.calls,
            self.days
        )
    }
}

/// The parameter of a call that a finding is about, or is about a part of.
pub(crate) fn parameter(finding: &Finding) -> Option<String> {
    let step = finding.path.strip_prefix("/inputSchema/properties/")?.split('/').next()?;
    Some(step.replace("~1", "/").replace("~0", "~"))
}

/// A parameter that is new was in no call that could have been counted.
fn is_accepted(entry: &Judgement, parameter: &str) -> bool {
    let Some(before) = &entry.before else { return false };
    let tool: serde_json::Value = serde_json::from_str(before.raw()).unwrap_or_default();
    let properties = tool.get("inputSchema").and_then(|schema| schema.get("properties"));
    properties.is_some_and(|properties| properties.get(parameter).is_some())
}
