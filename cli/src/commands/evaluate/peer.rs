//! Runs another program, `mcp-pin grade-drift`, on the same cases. It reports what a changed tool
//! definition introduces.

use crate::failure::Failure;
use contract::surface::EntryType;
use measure::evaluation::Case;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many characters of a description its lock file keeps.
const PREVIEW: usize = 160;

#[derive(Debug)]
pub(super) struct Peer(PathBuf);

/// Its result for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// The change introduces something: its graded mode refuses the tool.
    Introduced,
    /// Its graded mode lets the tool through.
    Nothing,
    /// Not run: the case is not about a change of a single tool.
    NotAsked,
}

impl Peer {
    pub(super) fn new(program: &Path) -> Peer {
        Peer(program.to_owned())
    }

    pub(super) fn judge(&self, case: &Case) -> Result<Said, Failure> {
        let raw = |surface: &contract::surface::Surface| {
            let entry = surface.entry(&case.entry)?;
            serde_json::from_str::<Value>(entry.raw()).ok()
        };
        let shown =
            case.shown.last().and_then(raw).filter(|_| case.entry.entry_type == EntryType::Tool);
        let Some(definition) = shown else { return Ok(Said::NotAsked) };
        let before = case.approved.as_ref().and_then(raw);
        let preview: String = before
            .iter()
            .filter_map(|tool| tool.get("description").and_then(Value::as_str))
            .flat_map(|text| text.chars().take(PREVIEW))
            .collect();
        let question =
            json!({ "recorded": { "description_preview": preview }, "definition": definition });
        let answer: Value = serde_json::from_slice(&self.ask(&question.to_string())?)?;
        let is_empty = answer.get("introduced").and_then(Value::as_array).is_none_or(Vec::is_empty);
        Ok(if is_empty { Said::Nothing } else { Said::Introduced })
    }

    fn ask(&self, question: &str) -> Result<Vec<u8>, Failure> {
        let named = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("`{}`: {error}", self.0.display()))
        };
        let mut child = Command::new(&self.0)
            .arg("grade-drift")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| named(&error))?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(question.as_bytes()).map_err(|error| named(&error))?;
        }
        let output = child.wait_with_output().map_err(|error| named(&error))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(named(&"it did not answer a case")),
        }
    }
}
