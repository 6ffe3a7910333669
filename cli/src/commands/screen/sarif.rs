//! A screening as a SARIF 2.1.0 document, for code scanning. Never contains the server's text.

use super::Screened;
use ::screen::finding::{Finding, Severity};
use contract::surface::{Entry, EntryId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

pub(super) fn document(screened: &Screened) -> Value {
    let mut rules: BTreeMap<&str, &Finding> = BTreeMap::new();
    for finding in screened.screening.findings() {
        rules.entry(finding.rule).or_insert(finding);
    }
    let number = |rule: &str| rules.keys().position(|known| *known == rule);
    let results: Vec<Value> = screened
        .screening
        .findings()
        .map(|finding| {
            let mut location = json!({ "logicalLocations": [{
                "name": finding.entry_name(),
                "fullyQualifiedName": format!("{}/{}{}", finding.entry.entry_type, finding.entry_name(), finding.place()),
                "kind": "member",
            }] });
            if let (Some((name, text)), Some(members)) = (&screened.file, location.as_object_mut()) {
                members.insert("physicalLocation".to_owned(), json!({
                    "artifactLocation": { "uri": percent(name) },
                    "region": { "startLine": line(screened, &finding.entry, text) },
                }));
            }
            json!({
                "ruleId": finding.rule,
                "ruleIndex": number(finding.rule),
                "level": level(finding.severity),
                "message": { "text": format!("The {} `{}` {}.", finding.entry.entry_type, finding.entry_name(), finding.reason) },
                "locations": [location],
                "partialFingerprints": { "holdpointEntry/v1": fingerprint(screened, finding) },
            })
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "holdpoint screen",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.values().map(|finding| rule(finding)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(finding: &Finding) -> Value {
    json!({
        "id": finding.rule,
        "shortDescription": { "text": finding.reason },
        "defaultConfiguration": { "level": level(finding.severity) },
        "properties": {
            "tags": ["security", "mcp", finding.dimension],
            "security-severity": match finding.severity {
                Severity::High => "8.0",
                Severity::Medium => "5.0",
                Severity::Low => "2.0",
            },
        },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

/// The line of the file on which the entry begins.
fn line(screened: &Screened, entry: &EntryId, text: &str) -> usize {
    let raw = screened.surface.entry(entry).map(Entry::raw);
    let at = raw.and_then(|raw| text.find(raw)).unwrap_or(0);
    1 + text.get(..at).unwrap_or("").matches('\n').count()
}

/// A fingerprint that is stable for the same finding on the same definition.
fn fingerprint(screened: &Screened, finding: &Finding) -> String {
    let entry = screened.surface.entry(&finding.entry);
    let hash = entry.map(|entry| entry.entry_hash().to_string()).unwrap_or_default();
    contract::hash::sha256_hex(format!("{hash} {} {}", finding.rule, finding.pointer).as_bytes())
}

/// A path as a relative reference, with characters that a URI cannot contain percent-encoded.
fn percent(path: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const KEPT: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'%')
        .add(b'<')
        .add(b'>')
        .add(b'?')
        .add(b'`')
        .add(b'{')
        .add(b'}');
    utf8_percent_encode(path.trim_start_matches("./"), KEPT).to_string()
}
