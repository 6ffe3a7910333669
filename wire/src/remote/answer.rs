//! How a message from the server relates to the posted request, and the few members that this
//! transport reads.

use super::Outbound;
use crate::envelope::{self, Batch, Envelope, Kind, Outcome, Scanned};
use contract::json::Document;
use std::borrow::Cow;

/// The key that ids are compared by: the bytes of numbers and the text of strings, as in
/// [`envelope::Id::key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdKey<'a>(Cow<'a, [u8]>);

impl IdKey<'_> {
    pub(super) fn new(raw: &[u8]) -> IdKey<'_> {
        if !raw.starts_with(b"\"") {
            return IdKey(Cow::Borrowed(raw));
        }
        let document = Document::parse_bytes(raw).ok();
        let text = document.as_ref().and_then(|document| document.root().as_str());
        IdKey(text.map_or(Cow::Borrowed(raw), |text| format!("\"{text}\"").into_bytes().into()))
    }
}

/// How a message relates to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation<'a> {
    /// The request's result.
    Result,
    Error,
    /// The answer is part of a batch. Batches occur in streams but not in bodies.
    InBatch,
    /// An error as raw JSON, without an id or with the id of another request.
    StrayError(&'a [u8]),
    Other,
}

/// Determines how a message relates to the request with this id.
pub(super) fn relation<'a>(text: &'a [u8], id: &IdKey<'_>) -> Relation<'a> {
    let kind = match envelope::scan(text) {
        Ok(Scanned::Message(envelope)) => envelope.kind,
        Ok(Scanned::Batch(batch)) if answers(&batch, id) => return Relation::InBatch,
        Ok(Scanned::Batch(_)) | Err(_) => return Relation::Other,
    };
    let Kind::Response { id: own, outcome } = kind else { return Relation::Other };
    let is_own = own.is_some_and(|own| own.key() == &*id.0);
    match outcome {
        Outcome::Result(_) if is_own => Relation::Result,
        Outcome::Error(_) if is_own => Relation::Error,
        Outcome::Result(_) => Relation::Other,
        Outcome::Error(error) => Relation::StrayError(error),
    }
}

/// Whether a batch contains the answer to a request. Revision 2025-03-26 lets servers send batches.
fn answers(batch: &Batch<'_>, id: &IdKey<'_>) -> bool {
    batch.elements.iter().any(|element| match &element.message {
        Ok(Envelope { kind: Kind::Response { id: Some(own), .. }, .. }) => own.key() == &*id.0,
        Ok(_) | Err(_) => false,
    })
}

/// Turns an error into the answer to the request with this id.
pub(super) fn readdress(error: &[u8], raw_id: &[u8]) -> Vec<u8> {
    [br#"{"jsonrpc":"2.0","id":"#, raw_id, br#","error":"#, error, b"}"].concat()
}

/// If a message is a successful answer to `initialize`, the protocol version in it, if any.
pub(super) fn initialized(text: &[u8]) -> Option<Option<String>> {
    let envelope = scan(text)?;
    let Kind::Response { outcome: Outcome::Result(result), .. } = envelope.kind else {
        return None;
    };
    let version = envelope::members(result).find(|(name, _)| name == "protocolVersion");
    let version = version.and_then(|(_, raw)| {
        let document = Document::parse_bytes(raw).ok()?;
        document.root().as_str().map(std::borrow::Cow::into_owned)
    });
    Some(version)
}

/// The id of the request that this message cancels, if it is a cancellation.
pub(super) fn cancelled(message: &Outbound) -> Option<IdKey<'_>> {
    if message.method.as_deref() != Some("notifications/cancelled") {
        return None;
    }
    scan(&message.body)?.params?.request_id.map(IdKey::new)
}

fn scan(text: &[u8]) -> Option<Envelope<'_>> {
    match envelope::scan(text) {
        Ok(Scanned::Message(envelope)) => Some(envelope),
        Ok(Scanned::Batch(_)) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_response_with_the_same_id_is_the_answer() {
        let check = |text: &str, expected| {
            assert_eq!(relation(text.as_bytes(), &IdKey::new(b"1")), expected, "{text}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#, Relation::Result);
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, Relation::Error);
        check(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#, Relation::Other);
        check(r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#, Relation::Other);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Relation::Other);
        check(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, Relation::Other);
        check(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, Relation::StrayError(b"{}"));
        check(r#"{"jsonrpc":"2.0","id":2,"error":{}}"#, Relation::StrayError(b"{}"));
        check(r#"{"jsonrpc":"2.0","error":{}}"#, Relation::StrayError(b"{}"));
        check(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Relation::Other);
        check(r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#, Relation::Other);
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Relation::Other);
        check(
            r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"error":{}}]"#,
            Relation::InBatch,
        );
        check(r#"{"error":"not_found"}"#, Relation::Other);
        check("not JSON", Relation::Other);
    }

    #[test]
    fn ids_that_say_the_same_are_the_same() {
        let answer = br#"{"jsonrpc":"2.0","id":"a/b","result":{}}"#;
        assert_eq!(relation(answer, &IdKey::new(br#""a\/b""#)), Relation::Result);
        assert_eq!(relation(answer, &IdKey::new(br#""a\\b""#)), Relation::Other);
    }

    #[test]
    fn a_stray_error_gets_the_id_of_the_request() {
        let text = readdress(br#"{ "code": 1.0 }"#, br#""a""#);
        assert_eq!(text, br#"{"jsonrpc":"2.0","id":"a","error":{ "code": 1.0 }}"#);
    }

    #[test]
    fn what_is_cancelled_is_read_from_that_notification_only() {
        let message = |method: &str| Outbound {
            body: format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":7}}}}"#)
                .into_bytes(),
            method: Some(method.to_owned()),
            ..Outbound::default()
        };
        assert_eq!(cancelled(&message("notifications/cancelled")), Some(IdKey::new(b"7")));
        assert_eq!(cancelled(&message("notifications/other")), None);
    }

    #[test]
    fn the_version_is_read_from_a_result_only() {
        let check = |text: &str, expected: Option<Option<&str>>| {
            let version = initialized(text.as_bytes());
            assert_eq!(version, expected.map(|version| version.map(str::to_owned)), "{text}");
        };
        let result =
            r#"{"jsonrpc":"2.0","id":1,"result":{"x":{},"protocolVersion":"2025\u002d11-25"}}"#;
        check(result, Some(Some("2025-11-25")));
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}"#, Some(None));
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(None));
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"protocolVersion":"x"}}"#, None);
    }
}
