//! The pure functions, for programs that compare captures themselves and for the data of `conformance/`.

use contract::canonical::{Position, canonical_text};
use contract::json::{Document, ReadError};
use contract::markers::{ToolNames, scan};
use contract::surface::{Surface, read_capture};
use gate::document::VerdictDocument;
use gate::judge::judge_surface;
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::server_text::ServerText;
use gate::time::Timestamp;
use serde_json::json;

fn read(capture: &str) -> Result<Surface, String> {
    read_capture(capture.as_bytes()).map_err(|error| error.to_string())
}

/// The hashes of a capture, as `holdpoint hash --json` prints them.
pub fn hash(capture: &str) -> Result<String, String> {
    let surface = read(capture)?;
    if let Some((list, why)) = surface.unreadable().iter().next() {
        return Err(format!("{}: {why}", list.method()));
    }
    let entries: Vec<_> = surface
        .entries()
        .map(|entry| {
            json!({
                "type": entry.entry_type(),
                "key": entry.key(),
                "entry_hash": entry.entry_hash(),
                "definition_hash": entry.definition_hash(),
            })
        })
        .collect();
    Ok(json!({"surface_hash": surface.surface_hash(), "entries": entries}).to_string())
}

/// What changed between two captures and what a posture makes of it, as `holdpoint diff --json` prints it.
pub fn diff(old: &str, new: &str, posture: &str) -> Result<String, String> {
    let posture: Posture = posture.parse().map_err(|error| format!("{error}"))?;
    let (old, new) = (read(old)?, read(new)?);
    let mut book = PinBook::default();
    for entry in old.entries().cloned() {
        let at = Timestamp::default();
        book.push(Pin { entry, basis: Basis::Person, at, by: String::new() });
    }
    let judgement = judge_surface(&book, &new, &Settings::with_posture(posture), 0);
    let document = VerdictDocument::of(&judgement, ServerText::Shown);
    serde_json::to_string(&document).map_err(|error| error.to_string())
}

/// The canonical form of a JSON text, as it stands in a schema (`"schema"`) or anywhere else (`"plain"`). A refusal is the
/// name of its reason.
pub fn canonical(text: &str, position: &str) -> Result<String, String> {
    let position = match position {
        "schema" => Position::Schema,
        _ => Position::Plain,
    };
    let document = Document::parse(text).map_err(|error| reason(&error).to_owned())?;
    Ok(canonical_text(document.root(), position))
}

fn reason(error: &ReadError) -> &'static str {
    match error {
        ReadError::Syntax { .. } => "syntax",
        ReadError::NotUtf8 { .. } => "not-utf-8",
        ReadError::DuplicateMember { .. } => "duplicate-member",
        ReadError::LoneSurrogate { .. } => "lone-surrogate",
        ReadError::TooDeep { .. } => "too-deep",
        ReadError::NumberTooLong { .. } => "number-too-long",
        ReadError::ExponentTooLarge { .. } => "exponent-too-large",
        ReadError::TooLong => "too-long",
    }
}

/// The markers of one entry's JSON; `tools` are the names of the server's own, separated by spaces.
pub fn markers(entry: &str, tools: &str) -> Result<String, String> {
    let document = Document::parse(entry).map_err(|error| error.to_string())?;
    let found = scan(document.root(), &ToolNames::new(tools.split_whitespace()));
    let found: Vec<_> = found
        .iter()
        .map(|marker| {
            json!({
                "class": marker.class.as_str(),
                "pointer": marker.pointer,
                "rule": marker.rule,
                "excerpt": marker.excerpt,
            })
        })
        .collect();
    Ok(json!(found).to_string())
}
