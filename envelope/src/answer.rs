//! What a server answered to a request of Holdpoint's own.

use crate::{Outcome, ServerText, members};
use std::sync::Arc;

/// `method not found`.
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
    /// It came, and is invalid or ambiguous.
    Unreadable(String),
}

impl Answer {
    /// A code that is no integer of 64 bits is 0.
    pub fn of(outcome: Outcome<'_>) -> Answer {
        match outcome {
            // A frame is UTF-8, and checking that is much quicker than looking for what is not.
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

    /// Drops the server's text. The gate shows no text that was not accepted.
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
