//! A frame may be any bytes: it is parsed or refused, and the parsed parts equal those that another
//! JSON parser finds.

use serde_json::Value;
use serde_json::value::RawValue;
use wire::envelope::{Element, Envelope, Kind, Outcome, ScanErrorKind, Scanned};
use wire::envelope::{id_of_torn, member_names, members, scan};

pub fn run(bytes: &[u8]) {
    let theirs: Option<&RawValue> =
        std::str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str(text).ok());
    match scan(bytes) {
        Ok(scanned) => {
            assert!(!bytes.contains(&b'\r') && !bytes.contains(&b'\n'));
            let theirs = theirs.expect("what is read is JSON to others");
            match &scanned {
                Scanned::Message(envelope) => {
                    assert_eq!(envelope.raw, theirs.get().as_bytes());
                    check_message(envelope, bytes);
                }
                Scanned::Batch(batch) => {
                    assert_eq!(batch.raw, theirs.get().as_bytes());
                    batch.elements.iter().for_each(|element| check_element(element, bytes));
                }
            }
        }
        Err(error) => {
            let is_no_json = match error.kind {
                ScanErrorKind::NotJson | ScanErrorKind::NotUtf8 => Some(true),
                // Ambiguity is checked before validity, and nothing is checked past the depth
                // limit.
                ScanErrorKind::Ambiguous(_) | ScanErrorKind::TooDeep => None,
                _ => Some(false),
            };
            if let Some(is_no_json) = is_no_json {
                assert_eq!(theirs.is_none(), is_no_json, "{error}");
            }
        }
    }
    let (beginning, end) = bytes.split_at(bytes.len() / 2);
    for id in [id_of_torn(beginning, end), id_of_torn(bytes, bytes)].into_iter().flatten() {
        assert!(serde_json::from_slice::<&RawValue>(id.raw()).is_ok());
    }
    // Also for bytes that were never scanned.
    for (_, value) in members(bytes) {
        assert_inside(value, bytes);
    }
}

fn check_element(element: &Element<'_>, bytes: &[u8]) {
    assert_inside(element.raw, bytes);
    let Ok(envelope) = &element.message else { return };
    assert_eq!(element.raw, envelope.raw);
    check_message(envelope, bytes);
    assert_eq!(scan(element.raw), Ok(Scanned::Message(envelope.clone())));
}

fn check_message(envelope: &Envelope<'_>, bytes: &[u8]) {
    assert_inside(envelope.raw, bytes);
    // serde_json has its own limits: nesting, numbers, lone surrogates.
    let Ok(value) = serde_json::from_slice::<Value>(envelope.raw) else { return };
    assert_eq!(value["jsonrpc"], "2.0");
    match &envelope.kind {
        Kind::Request { id, method } => {
            same(Some(id.raw()), value.get("id"), bytes);
            assert_eq!(value["method"], **method);
        }
        Kind::Notification { method } => {
            assert_eq!(value.get("id"), None);
            assert_eq!(value["method"], **method);
        }
        Kind::Response { id, outcome } => {
            let theirs = value.get("id").filter(|id| !id.is_null());
            same(id.as_ref().map(wire::envelope::Id::raw), theirs, bytes);
            assert_eq!(value.get("method"), None);
            match outcome {
                Outcome::Result(raw) => same(Some(raw), value.get("result"), bytes),
                Outcome::Error(raw) => same(Some(raw), value.get("error"), bytes),
            }
        }
    }
    check_params(envelope, &value, bytes);
}

fn check_params(envelope: &Envelope<'_>, value: &Value, bytes: &[u8]) {
    let theirs = value.get("params");
    same(envelope.params.as_ref().map(|params| params.raw), theirs, bytes);
    let (Some(params), Some(theirs)) = (&envelope.params, theirs) else { return };
    assert_eq!(params.is_object, theirs.is_object());
    if !params.is_object {
        return;
    }
    same(params.arguments, theirs.get("arguments"), bytes);
    same(params.meta, theirs.get("_meta"), bytes);
    same(params.cursor, theirs.get("cursor"), bytes);
    same(params.request_id, theirs.get("requestId"), bytes);
    let texts = [
        ("name", &params.name),
        ("uri", &params.uri),
        ("level", &params.level),
        ("protocolVersion", &params.protocol_version),
    ];
    for (name, text) in texts {
        assert_eq!(text.as_deref(), theirs.get(name).and_then(Value::as_str));
    }
    let is_odd = |name| theirs.get(name).is_some_and(|value| !value.is_string());
    assert_eq!(params.is_odd, texts.iter().any(|(name, _)| is_odd(name)));
    // Names are unique, so each one is found.
    let names: Vec<_> = member_names(params.raw).collect();
    assert_eq!(names.len(), theirs.as_object().map_or(0, serde_json::Map::len));
    assert!(names.iter().all(|name| theirs.get(&**name).is_some()));
}

fn same(ours: Option<&[u8]>, theirs: Option<&Value>, bytes: &[u8]) {
    if let Some(raw) = ours {
        assert_inside(raw, bytes);
    }
    let ours = ours.map(|raw| serde_json::from_slice::<Value>(raw).expect("a span is a value"));
    assert_eq!(ours.as_ref(), theirs);
}

/// Checks that a span points into the frame itself, and is not just an equal copy.
fn assert_inside(span: &[u8], bytes: &[u8]) {
    let (span, bytes) = (span.as_ptr_range(), bytes.as_ptr_range());
    assert!(bytes.start <= span.start && span.end <= bytes.end);
}
