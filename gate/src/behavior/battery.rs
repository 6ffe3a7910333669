//! The test calls for one tool, made from its own definition.
//!
//! A validator decides which of them the definition accepts. Calls that it cannot decide on are not
//! made.

use super::{Leg, arguments};
use crate::by_the_call::Undecided;
use crate::by_the_call::input::{Arguments, InputRule, InputRules, ResultRules, UndeclaredMembers};
use contract::surface::Entry;
use serde_json::{Map, Value, json};

/// The most calls in one battery.
pub const MAX_PROBES: usize = 24;
/// The most valid calls among them.
const MAX_VALID: usize = 4;
/// How many times arguments are generated to obtain one valid call.
const ATTEMPTS: usize = 40;
/// The most parameters that are omitted or invalidated, one at a time.
const MAX_PARAMETERS: usize = 8;

/// One test call.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    pub arguments: Value,
    pub expected: Expected,
}

/// How a server that keeps its contract responds to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Accepted,
    Refused,
}

/// What a tool declares about its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claims {
    /// `readOnlyHint` is true.
    pub only_reads: bool,
    pub open_world: Option<bool>,
}

impl Claims {
    fn of(tool: &Value) -> Claims {
        let hint = |name: &str| tool.get("annotations")?.get(name)?.as_bool();
        Claims { only_reads: hint("readOnlyHint") == Some(true), open_world: hint("openWorldHint") }
    }
}

/// Why a tool cannot be tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoBattery {
    #[error("its definition cannot be checked: {0}")]
    Undecided(#[from] Undecided),
    #[error("no valid call could be made from its input schema")]
    NoValidCall,
    #[error(
        "no call is certain to be refused: the tool has no required parameter and does not declare itself read-only"
    )]
    NothingToRefuse,
}

/// The calls, and the claims to compare their results with.
#[derive(Debug)]
pub struct Battery {
    pub tool: String,
    pub leg: Leg,
    pub claims: Claims,
    pub probes: Vec<Probe>,
    pub results: Option<ResultRules>,
}

impl Battery {
    pub fn of(tool: &Entry, leg: Leg) -> Result<Battery, NoBattery> {
        let rules = InputRules::compile(tool)?;
        let results = ResultRules::compile(tool)?;
        let value: Value = serde_json::from_str(tool.raw()).map_err(|_| Undecided::Unreadable)?;
        let empty = json!({});
        let schema = value.get("inputSchema").unwrap_or(&empty);
        let claims = Claims::of(&value);
        let mut probes = match leg {
            Leg::Sandbox => in_sandbox(schema, &rules)?,
            Leg::ReadOnly => harmless(schema, &rules, claims)?,
        };
        probes.truncate(MAX_PROBES);
        Ok(Battery { tool: tool.key().to_owned(), leg, claims, probes, results })
    }
}

/// Valid calls, and variants of the first one with a parameter omitted or invalid.
fn in_sandbox(schema: &Value, rules: &InputRules) -> Result<Vec<Probe>, NoBattery> {
    let mut valid: Vec<Value> = Vec::new();
    let mut made = 0_u64;
    for percent in [0, 100, 50, 33] {
        for _ in 0..ATTEMPTS {
            made += 1;
            let mut steps = made;
            let call = arguments(schema, percent, &mut |end| spread(&mut steps) % end.max(1));
            if verdict(rules, &call) == Some(Expected::Accepted) && !valid.contains(&call) {
                valid.push(call);
                break;
            }
        }
    }
    valid.truncate(MAX_VALID);
    let first = valid.first().and_then(Value::as_object).ok_or(NoBattery::NoValidCall)?.clone();
    let accepted = |arguments| Probe { arguments, expected: Expected::Accepted };
    let mut probes: Vec<Probe> = valid.iter().cloned().map(accepted).collect();
    let spoiled = schema_names(schema).into_iter().flat_map(|name| spoiled(schema, &first, name));
    probes.extend(refused(rules, spoiled));
    Ok(probes)
}

/// Calls that a server must refuse, and that contain no usable value for any parameter.
fn harmless(schema: &Value, rules: &InputRules, claims: Claims) -> Result<Vec<Probe>, NoBattery> {
    let required = required(schema);
    if required.is_empty() && !claims.only_reads {
        return Err(NoBattery::NothingToRefuse);
    }
    let spoil = |names: &[&str]| {
        let members =
            names.iter().filter_map(|name| Some(((*name).to_owned(), wrong(schema, name)?)));
        Value::Object(members.collect::<Map<String, Value>>())
    };
    let names = schema_names(schema);
    let alone = names.iter().map(|name| spoil(&[name]));
    let all = [json!({}), spoil(&required), spoil(&names)];
    let probes: Vec<Probe> = refused(rules, all.into_iter().chain(alone)).collect();
    match probes.is_empty() {
        true => Err(NoBattery::NothingToRefuse),
        false => Ok(probes),
    }
}

/// The calls that the definition refuses, without duplicates.
fn refused<'r>(
    rules: &'r InputRules,
    calls: impl Iterator<Item = Value> + 'r,
) -> impl Iterator<Item = Probe> + 'r {
    let mut known: Vec<Value> = Vec::new();
    calls.filter_map(move |arguments| {
        let is_new =
            verdict(rules, &arguments) == Some(Expected::Refused) && !known.contains(&arguments);
        is_new.then(|| {
            known.push(arguments.clone());
            Probe { arguments, expected: Expected::Refused }
        })
    })
}

/// What the definition requires for a call; `None` if that is undecidable.
///
/// Undeclared members are ignored: servers made with the official SDKs declare that they accept
/// none, and silently drop them.
fn verdict(rules: &InputRules, call: &Value) -> Option<Expected> {
    let text = call.to_string();
    let arguments = Arguments::read(Some(text.as_bytes())).ok()?;
    match rules.check(&arguments, UndeclaredMembers::Allow) {
        Ok(()) => Some(Expected::Accepted),
        Err(violation) => match violation.rule {
            InputRule::Keyword(_) => Some(Expected::Refused),
            InputRule::Declared
            | InputRule::Object
            | InputRule::Exact
            | InputRule::Decidable(_) => None,
        },
    }
}

/// Variants of a call with one parameter omitted, of another type, or with a value that the schema
/// excludes.
fn spoiled(schema: &Value, valid: &Map<String, Value>, name: &str) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut left_out = valid.clone();
    if left_out.remove(name).is_some() {
        calls.push(Value::Object(left_out));
    }
    let declared = property(schema, name);
    let excluded = declared.iter().flat_map(|declared| excluded(declared));
    for value in wrong(schema, name).into_iter().chain(excluded) {
        let mut call = valid.clone();
        call.insert(name.to_owned(), value);
        calls.push(Value::Object(call));
    }
    calls
}

/// A value that no reader takes for the declared type, not even one that converts values.
fn wrong(schema: &Value, name: &str) -> Option<Value> {
    let declared = property(schema, name)?;
    let is_of = |kind: &str| match declared.get("type") {
        Some(Value::String(known)) => known == kind,
        Some(Value::Array(known)) => known.iter().any(|known| known == kind),
        _ => declared.get("properties").is_some() && kind == "object",
    };
    match is_of("object") {
        true => Some(json!("holdpoint probe")),
        false => Some(json!({"holdpoint": "probe"})),
    }
}

/// Values of the declared type that the schema excludes.
fn excluded(declared: &Value) -> Vec<Value> {
    let number = |keyword: &str| declared.get(keyword).and_then(Value::as_i64);
    let text = declared.get("enum").map(|_| json!("holdpoint-none-of-these"));
    let above = number("maximum").and_then(|most| most.checked_add(1)).map(|above| json!(above));
    let below = number("minimum").and_then(|least| least.checked_sub(1)).map(|below| json!(below));
    [text, above, below].into_iter().flatten().collect()
}

fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).take(MAX_PARAMETERS).collect()
}

/// The required parameters, then the others.
fn schema_names(schema: &Value) -> Vec<&str> {
    let mut names = required(schema);
    let declared = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let others: Vec<&str> =
        declared.map(|(name, _)| name.as_str()).filter(|name| !names.contains(name)).collect();
    names.extend(others);
    names.truncate(MAX_PARAMETERS);
    names
}

/// The next of a sequence of numbers that is the same on every run.
fn spread(state: &mut u64) -> usize {
    *state = state.wrapping_mul(25_214_903_917).wrapping_add(11);
    // 32 bits, so that the numbers are the same on targets with a 32-bit `usize`.
    (*state >> 16) as u32 as usize
}
