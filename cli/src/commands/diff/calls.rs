//! `diff --call` and `diff --calls`: reads the calls and judges each.

use crate::arguments::DiffCommand;
use crate::failure::Failure;
use crate::report::CallDocument;
use crate::target::read_file;
use contract::change::ChangeKind;
use gate::call_verdict::{CallCase, CallVerdict};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most calls per command.
const MAX_CALLS: usize = 100_000;

/// One call. Its arguments are kept as bytes: a duplicate member is part of what is judged.
struct NamedCall {
    tool: String,
    arguments: Option<Box<RawValue>>,
}

/// A line of `--calls`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    tool: String,
    arguments: Option<Box<RawValue>>,
}

/// The verdicts of the calls that a command names, in their order; `None` if it names none.
pub(super) fn judged(
    command: &DiffCommand,
    case: &CallCase<'_>,
) -> Result<Option<Vec<CallDocument>>, Failure> {
    if command.call.is_empty() && command.calls.is_none() {
        return Ok(None);
    }
    let mut calls = Vec::new();
    for text in &command.call {
        calls.push(read_option(text)?);
    }
    if let Some(path) = &command.calls {
        let bytes = read_file(path)?;
        let is_empty = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
        for (place, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if is_empty(line) {
                continue;
            }
            let line: Line = serde_json::from_slice(line).map_err(|error| {
                Failure::usage(format!("`{}`, line {}: {error}", path.display(), place + 1))
            })?;
            calls.push(NamedCall { tool: line.tool, arguments: line.arguments });
        }
    }
    if calls.len() > MAX_CALLS {
        return Err(Failure::usage(format!("these are more than {MAX_CALLS} calls")));
    }
    calls.into_iter().map(|call| judge(call, case)).collect::<Result<_, _>>().map(Some)
}

/// Parses `TOOL=ARGUMENTS`. A tool's name may contain `=`, so the arguments begin at the first
/// `={`.
fn read_option(text: &str) -> Result<NamedCall, Failure> {
    let wrong = |why: String| Failure::usage(format!("`--call {text}`: {why}"));
    let Some(at) = text.find("={") else {
        return Err(wrong("write it as TOOL='{\"parameter\":\"value\"}'".to_owned()));
    };
    let (tool, arguments) = (text.get(..at), text.get(at + 1..));
    let arguments = RawValue::from_string(arguments.unwrap_or_default().to_owned())
        .map_err(|error| wrong(error.to_string()))?;
    let tool = tool.unwrap_or_default().to_owned();
    Ok(NamedCall { tool, arguments: Some(arguments) })
}

fn judge(call: NamedCall, case: &CallCase<'_>) -> Result<CallDocument, Failure> {
    let NamedCall { tool, arguments } = call;
    if !case.knows(&tool) {
        let message = format!("neither capture has a tool `{}`", gate::words::escape_hidden(&tool));
        return Err(Failure::usage(message));
    }
    let arguments = arguments.as_ref().map(|arguments| arguments.get().as_bytes());
    let CallVerdict { verdict, kinds, parameters, why } = case.judge(&tool, arguments);
    let kinds = kinds.into_iter().map(ChangeKind::as_str).collect();
    Ok(CallDocument { tool, verdict, kinds, parameters, why })
}
