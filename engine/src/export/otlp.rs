//! OTLP/HTTP logs in the JSON encoding: the request body, and the interpretation of the collector's
//! response.

use super::fields::fields;
use contract::time::Timestamp;
use http::{HeaderMap, StatusCode};
use ledger::export::{Weight, message, weight_of};
use ledger::receipt::Item;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// How much of a collector's message is shown, in characters.
const MAX_TOLD_CHARACTERS: usize = 200;

/// The body of one request.
pub(super) fn body(items: &[Item], observed: Timestamp) -> Result<Vec<u8>, serde_json::Error> {
    let records = items.iter().map(|item| record(item, observed)).collect::<Result<Vec<_>, _>>()?;
    let version = env!("CARGO_PKG_VERSION");
    serde_json::to_vec(&json!({
        "resourceLogs": [{
            "resource": { "attributes": [
                attribute("service.name", &json!("holdpoint")),
                attribute("service.version", &json!(version)),
            ] },
            "scopeLogs": [{
                "scope": { "name": "holdpoint.receipts", "version": version },
                "logRecords": records,
            }],
        }],
    }))
}

fn record(item: &Item, observed: Timestamp) -> Result<Value, serde_json::Error> {
    let (number, text) = match weight_of(item) {
        Weight::Informational => (9, "INFO"),
        Weight::Low => (13, "WARN"),
        Weight::Medium => (14, "WARN2"),
        Weight::High => (17, "ERROR"),
    };
    let name = match item {
        Item::Receipt(_) => "holdpoint.call".to_owned(),
        Item::Event(event) => format!("holdpoint.{}", event.name),
    };
    let attributes = fields(item)?
        .iter()
        .map(|(name, value)| attribute(&format!("holdpoint.{name}"), value))
        .collect::<Vec<_>>();
    let mut record = json!({
        "timeUnixNano": nanoseconds(item.ts()),
        "observedTimeUnixNano": nanoseconds(observed),
        "severityNumber": number,
        "severityText": text,
        "eventName": name,
        "body": { "stringValue": message(item) },
        "attributes": attributes,
    });
    if let (Item::Receipt(receipt), Some(members)) = (item, record.as_object_mut())
        && let Some(id) = receipt.trace_id.as_deref().filter(|id| is_trace_id(id))
    {
        // Unlike in other protobuf JSON, OTLP ids are hexadecimal rather than base64.
        members.insert("traceId".to_owned(), json!(id));
    }
    Ok(record)
}

/// 64-bit integers are strings in protobuf's JSON.
fn nanoseconds(moment: Timestamp) -> String {
    (i128::from(moment.0.max(0)) * 1_000_000).to_string()
}

fn is_trace_id(text: &str) -> bool {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.len() == 32 && is_hex && text.bytes().any(|byte| byte != b'0')
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({ "key": key, "value": any_value(value) })
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().map(any_value).collect();
            json!({ "arrayValue": { "values": values } })
        }
        Value::Null | Value::Object(_) => json!({ "stringValue": value.to_string() }),
    }
}

/// What a response means for the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted, but the collector discarded `rejected` items, which must not be sent again.
    Taken { rejected: u64, why: String },
    /// To be sent again, after the given delay if the collector names one.
    Later { after: Option<Duration>, why: String },
    /// This collector will never accept this batch.
    Never { why: String },
}

pub(super) fn verdict(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Verdict {
    if status.is_success() {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let partial = answer.get("partialSuccess").cloned().unwrap_or_default();
        let rejected = partial.get("rejectedLogRecords").map_or(0, count);
        let why = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
        return Verdict::Taken { rejected, why: told(why) };
    }
    let why = format!("it answered {status}");
    match status {
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => Verdict::Never { why },
        // This includes a wrong path or a missing credential: the operator can fix those, and
        // nothing is lost in the meantime.
        _ => Verdict::Later { after: retry_after(headers, now), why },
    }
}

/// A number, or a number in a string, as protobuf's JSON allows.
fn count(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn told(text: &str) -> String {
    text.chars().take(MAX_TOLD_CHARACTERS).collect()
}

/// Parses a number of seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH);
    let now = Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    Some(moment.unwrap_or_default().saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn judged(status: u16, retry: Option<&str>, body: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        if let Some(retry) = retry {
            headers.insert("retry-after", HeaderValue::from_str(retry).unwrap());
        }
        let now = Timestamp::parse("1994-11-06T08:49:00Z").unwrap();
        verdict(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), now)
    }

    #[test]
    fn partial_success_is_taken_and_told() {
        let taken = |rejected, why: &str| Verdict::Taken { rejected, why: why.to_owned() };
        for body in ["", "{}", "no json", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":null}"#]
        {
            assert_eq!(judged(200, None, body), taken(0, ""), "{body}");
        }
        let body = r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}"#;
        assert_eq!(judged(200, None, body), taken(3, "too old"));
        let body = r#"{"partialSuccess":{"rejectedLogRecords":3}}"#;
        assert_eq!(judged(202, None, body), taken(3, ""));
        let long = format!(r#"{{"partialSuccess":{{"errorMessage":"{}"}}}}"#, "x".repeat(201));
        assert_eq!(judged(200, None, &long), taken(0, &"x".repeat(MAX_TOLD_CHARACTERS)));
    }

    #[test]
    fn a_collector_that_says_when_is_asked_again_then() {
        let after = |status, retry| match judged(status, retry, "") {
            Verdict::Later { after, .. } => after.map(|after| after.as_secs()),
            other => panic!("{other:?}"),
        };
        for status in [429, 502, 503, 504, 401, 404] {
            assert_eq!(after(status, Some("7")), Some(7));
            assert_eq!(after(status, None), None);
        }
        assert_eq!(after(503, Some("Sun, 06 Nov 1994 08:49:37 GMT")), Some(37));
        assert_eq!(after(503, Some("Sun, 06 Nov 1994 08:00:00 GMT")), Some(0));
        assert_eq!(after(503, Some("soon")), None);
    }

    #[test]
    fn what_a_collector_cannot_read_is_not_sent_to_it_for_ever() {
        for status in [400, 413, 422] {
            assert!(matches!(judged(status, None, ""), Verdict::Never { .. }), "{status}");
        }
    }

    #[test]
    fn only_a_trace_id_is_sent_as_one() {
        assert!(is_trace_id("0af7651916cd43dd8448eb211c80319c"));
        for text in [
            "",
            "00000000000000000000000000000000",
            "0AF7651916CD43DD8448EB211C80319C",
            "0af7",
            "zaf7651916cd43dd8448eb211c80319c",
        ] {
            assert!(!is_trace_id(text), "{text}");
        }
    }
}
