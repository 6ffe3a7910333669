//! Responses of the trust API. They contain no server text: only names under the rules of refusals,
//! kinds, hashes and fixed sentences.

use crate::entry::{Moment, VisitOutcome};
use crate::model::{Model, Server, Tool, Visit};
use crate::subject::{SubjectId, decode_segment};
use bytes::Bytes;
use contract::hash::DefinitionHash;
use contract::time::Timestamp;
use gate::naming::shown_name;
use screen::limits::HonestLimit;
use screen::verdict::{CALIBRATED, VERDICT_CONTRACT_VERSION};
use serde::Serialize;
use serde_json::{Value, json};

/// The path prefix of the API.
pub const PREFIX: &str = "/api/v1/trust/";
/// The most tools listed in the response about a server.
pub const MAX_LISTED_TOOLS: usize = 1_000;
/// The description of the API.
pub const OPENAPI: &str = include_str!("api/openapi.json");

/// The subject of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    Tool { server: SubjectId, tool: String },
    Server(SubjectId),
    Definition(String),
}

/// A response, and until when it is valid.
#[derive(Debug, Clone)]
pub struct Told {
    pub body: Bytes,
    pub until: Option<Timestamp>,
}

/// The response document with one verdict.
#[derive(Debug, Serialize)]
struct Document<'a> {
    subject: Value,
    status: &'a str,
    directive: &'a str,
    granularity: Option<&'a str>,
    dimensions: &'a [Value],
    expires_at: Option<Moment>,
    honest_limits: Vec<&'a str>,
    verdict_contract_version: &'static str,
    evidence_grade: &'a str,
    definition_hash: Option<&'a str>,
    entry_hash: Option<&'a str>,
    calibrated: bool,
    release: Option<&'a str>,
    methodology_hash: Option<&'a str>,
    /// The log entry with the verdict.
    log_entry: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    /// For a server whose last visit got no contract: the outcome and the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_visit: Option<Value>,
    /// The claims to the server. They affect nothing else in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<Value>,
}

impl Question {
    /// Parses a path of the API.
    pub fn read(path: &str) -> Option<Question> {
        let rest = path.strip_prefix(PREFIX)?;
        let (kind, rest) = rest.split_once('/')?;
        let server = |text: &str| decode_segment(text)?.parse::<SubjectId>().ok();
        match kind {
            "tool" => {
                let (id, tool) = rest.split_once('/')?;
                let tool =
                    decode_segment(tool).filter(|tool| !tool.is_empty() && tool.len() <= 4_096)?;
                let is_one = !rest.get(id.len() + 1..).unwrap_or_default().contains('/');
                is_one.then_some(())?;
                Some(Question::Tool { server: server(id)?, tool })
            }
            "server" => (!rest.contains('/')).then(|| server(rest)).flatten().map(Question::Server),
            "verdict" => {
                let hash: DefinitionHash = rest.parse().ok()?;
                (hash.to_string() == rest).then(|| Question::Definition(rest.to_owned()))
            }
            _ => None,
        }
    }

    /// The response at a moment. If the caller expects a certain hash, any other hash is
    /// UNVERIFIED.
    pub fn answer(&self, model: &Model, expected: Option<&str>, now: Timestamp) -> Told {
        match self {
            Question::Tool { server, tool } => {
                let subject = json!({
                    "server_id": server.as_str(),
                    "tool_name": shown_name(tool, true),
                });
                let name = crate::record::log_name(tool);
                let known = model.servers.get(server).and_then(|server| server.tools.get(&name));
                tool_answer(subject, known, expected, now)
            }
            Question::Definition(hash) => {
                let subject = json!({ "definition_hash": hash });
                tool_answer(subject, strictest(model, hash, now), expected, now)
            }
            Question::Server(id) => server_answer(id, model.servers.get(id), now),
        }
    }

    /// The publicly listed server in the question, whose demand is counted.
    pub fn listed_server<'m>(&self, model: &'m Model) -> Option<&'m SubjectId> {
        let id = match self {
            Question::Tool { server, .. } | Question::Server(server) => server,
            Question::Definition(_) => return None,
        };
        model.servers.get_key_value(id).map(|(id, _)| id)
    }
}

/// The strictest unexpired verdict among all tools with one definition.
fn strictest<'m>(model: &'m Model, hash: &str, now: Timestamp) -> Option<&'m Tool> {
    let tools = model.tools_with(hash).iter().filter_map(|(server, name)| {
        model.servers.get(server)?.tools.get(name).filter(|tool| tool.item.definition_hash == hash)
    });
    let strictness = |directive: &str| match directive {
        "DENY" => 3,
        "REVIEW" => 2,
        "ALLOW" => 1,
        _ => 0,
    };
    let current = tools.filter(|tool| now < tool.expires_at.0);
    current.max_by_key(|tool| (strictness(&tool.item.directive), tool.number))
}

fn tool_answer(
    subject: Value,
    known: Option<&Tool>,
    expected: Option<&str>,
    now: Timestamp,
) -> Told {
    let Some(tool) = known else { return unverified(subject, HonestLimit::NoVerdict, None) };
    if now >= tool.expires_at.0 {
        return unverified(subject, HonestLimit::Expired, None);
    }
    if expected.is_some_and(|expected| expected != tool.item.definition_hash) {
        return unverified(subject, HonestLimit::DefinitionChanged, Some(tool.expires_at.0));
    }
    let item = &tool.item;
    told(
        &Document {
            subject,
            status: &item.status,
            directive: &item.directive,
            granularity: item.granularity.as_deref(),
            dimensions: &item.dimensions,
            expires_at: Some(tool.expires_at),
            honest_limits: item.honest_limits.iter().map(String::as_str).collect(),
            verdict_contract_version: VERDICT_CONTRACT_VERSION,
            evidence_grade: &tool.evidence_grade,
            definition_hash: Some(&item.definition_hash),
            entry_hash: Some(&item.entry_hash),
            calibrated: CALIBRATED,
            release: tool.release.as_deref(),
            methodology_hash: Some(&tool.methodology),
            log_entry: Some(tool.number),
            tools: None,
            last_visit: None,
            claims: None,
        },
        Some(tool.expires_at.0),
    )
}

fn server_answer(id: &SubjectId, known: Option<&Server>, now: Timestamp) -> Told {
    let subject = json!({ "server_id": id.as_str() });
    let Some(server) = known else { return unverified(subject, HonestLimit::NoVerdict, None) };
    if now >= server.expires_at.0 {
        return unverified(subject, HonestLimit::Expired, None);
    }
    if server.surface.is_none() {
        let last_visit = server.visits.last().and_then(visit_value);
        let document =
            Document { last_visit, ..unverified_document(subject, HonestLimit::NoVerdict) };
        return told(&document, Some(server.expires_at.0));
    }
    let shown = |(name, tool): (&String, &Tool)| {
        json!({
            "tool_name": shown_name(name, true),
            "directive": if now < tool.expires_at.0 { tool.item.directive.as_str() } else { "UNVERIFIED" },
            "definition_hash": tool.item.definition_hash,
        })
    };
    let listed: Vec<Value> = server.tools.iter().take(MAX_LISTED_TOOLS).map(shown).collect();
    let limits = server.tools.values().next().map(|tool| &tool.item.honest_limits);
    let no_tools = [HonestLimit::Advisory.as_str().to_owned()];
    let limits = limits.map_or(&no_tools[..], Vec::as_slice);
    // The response changes when the first tool expires.
    let tools_until = server.tools.values().map(|tool| tool.expires_at.0).filter(|end| now < *end);
    let until = tools_until.chain([server.expires_at.0]).min();
    told(
        &Document {
            subject,
            status: &server.status,
            directive: &server.directive,
            granularity: Some("definition"),
            dimensions: &server.dimensions,
            expires_at: Some(server.expires_at),
            honest_limits: limits.iter().map(String::as_str).collect(),
            verdict_contract_version: VERDICT_CONTRACT_VERSION,
            evidence_grade: &server.evidence_grade,
            definition_hash: None,
            entry_hash: None,
            calibrated: CALIBRATED,
            release: server.release.as_deref(),
            methodology_hash: Some(&server.methodology),
            log_entry: server.visits.last().map(|visit| visit.number),
            tools: Some(json!({ "count": server.tools.len(), "listed": listed })),
            last_visit: None,
            claims: Some(super::claims::claims_value(server)),
        },
        until,
    )
}

/// How a visit without a contract ended, in fixed words.
fn visit_value(visit: &Visit) -> Option<Value> {
    let VisitOutcome::NotListed(outcome) = visit.outcome else { return None };
    let because = visit.cause.map_or_else(|| outcome.sentence().to_owned(), |it| it.to_string());
    Some(json!({ "at": visit.at, "outcome": outcome, "cause": visit.cause, "because": because }))
}

fn unverified(subject: Value, why: HonestLimit, until: Option<Timestamp>) -> Told {
    told(&unverified_document(subject, why), until)
}

/// No verdict: the agent must not infer trust. This is a regular response, not an HTTP error.
fn unverified_document(subject: Value, why: HonestLimit) -> Document<'static> {
    let limits = [why, HonestLimit::NoVerdict, HonestLimit::Advisory, HonestLimit::NotCalibrated];
    let mut codes: Vec<&'static str> = limits.iter().map(|limit| limit.as_str()).collect();
    codes.dedup();
    Document {
        subject,
        status: "ERROR",
        directive: "UNVERIFIED",
        granularity: None,
        dimensions: &[],
        expires_at: None,
        honest_limits: codes,
        verdict_contract_version: VERDICT_CONTRACT_VERSION,
        evidence_grade: "unverified",
        definition_hash: None,
        entry_hash: None,
        calibrated: CALIBRATED,
        release: None,
        methodology_hash: None,
        log_entry: None,
        tools: None,
        last_visit: None,
        claims: None,
    }
}

fn told(document: &Document<'_>, until: Option<Timestamp>) -> Told {
    let body = serde_json::to_vec(document).unwrap_or_default();
    Told { body: body.into(), until }
}
