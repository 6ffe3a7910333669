//! A server's answer to one of Holdpoint's own requests.

use crate::{Outcome, ServerText, members};
use std::sync::Arc;

/// JSON-RPC's `method not found`.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The raw JSON of `result`.
    Result(Arc<str>),
    Error {
        code: i64,
        message: ServerText,
    },
    /// An answer arrived, but it is invalid or ambiguous. The text gives the reason.
    Unreadable(String),
}

impl Answer {
    /// Reads an outcome. An error code that is not a 64-bit integer is read as 0.
    pub fn of(outcome: Outcome<'_>) -> Answer {
        match outcome {
            // A frame is valid UTF-8. Checking that first is much faster than the lossy conversion.
            Outcome::Result(result) => Answer::Result(match std::str::from_utf8(result) {
                Ok(result) => result.into(),
                Err(_) => String::from_utf8_lossy(result).into(),
            }),
            Outcome::Error(error) => {
                let member = |name| members(error).find(|(member, _)| member == name);
                let code = member("code").and_then(|(_, raw)| serde_json::from_slice(raw).ok());
                let message = member("message");
                let message: Option<String> =
                    message.and_then(|(_, raw)| serde_json::from_slice(raw).ok());
                Answer::Error {
                    code: code.unwrap_or(0),
                    message: ServerText::line(&message.unwrap_or_default()),
                }
            }
        }
    }

    /// Drops the server's text, because the gate does not show unapproved text.
    pub fn without_words(self) -> Answer {
        match self {
            Answer::Error { code, .. } => Answer::Error { code, message: ServerText::default() },
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_by_its_code_and_message() {
        let check = |error: &str, code: i64, message: &str| {
            let expected = Answer::Error { code, message: ServerText::line(message) };
            assert_eq!(Answer::of(Outcome::Error(error.as_bytes())), expected, "{error}");
        };
        check(r#"{"code":-32601,"message":"no\nsuch"}"#, -32601, "no\nsuch");
        check(r#"{"code":1e3,"message":7}"#, 0, "");
        check("7", 0, "");
        let quiet = Answer::of(Outcome::Error(br#"{"code":1,"message":"x"}"#)).without_words();
        assert_eq!(quiet, Answer::Error { code: 1, message: ServerText::default() });
    }
}
