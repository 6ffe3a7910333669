//! The audience and expiry claims of a token that we do not verify. The server that it is sent to
//! verifies it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::json::Document;
use contract::time::Timestamp;

/// The largest tolerated clock difference between two machines.
const CLOCK_SKEW_SECONDS: i64 = 60;

/// A token's claims about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    audiences: Vec<String>,
    /// Seconds since 1970.
    pub(super) expires: Option<i64>,
}

impl Claims {
    /// Returns `None` unless it is a JWT whose payload is an unambiguous JSON object.
    pub(super) fn of(token: &str) -> Option<Claims> {
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let document = Document::parse_bytes(&payload).ok()?;
        let audience = document.root().get("aud");
        let audiences = match audience {
            Some(named) if named.is_array() => {
                let texts = named.items().map(|one| Some(one.as_str()?.into_owned()));
                texts.collect::<Option<Vec<_>>>()?
            }
            Some(named) => vec![named.as_str()?.into_owned()],
            None => Vec::new(),
        };
        let expires = match document.root().get("exp") {
            Some(at) => Some(at.as_number()?.parse().ok()?),
            None => None,
        };
        Some(Claims { audiences, expires })
    }

    pub(super) fn is_for(&self, audience: &str) -> bool {
        self.audiences.iter().any(|named| named == audience)
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| now.0 / 1_000 > at.saturating_add(CLOCK_SKEW_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(payload: &str) -> Option<Claims> {
        Claims::of(&format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(payload)))
    }

    #[test]
    fn a_token_is_for_the_audiences_that_it_names() {
        let one = claims(r#"{"aud":"https://a.example"}"#).unwrap();
        assert!(one.is_for("https://a.example") && !one.is_for("https://a.example/"));
        let two = claims(r#"{"aud":["x","https://a.example"]}"#).unwrap();
        assert!(two.is_for("https://a.example") && two.is_for("x") && !two.is_for("y"));
        assert!(!claims("{}").unwrap().is_for(""));
    }

    #[test]
    fn what_two_readers_could_take_for_different_audiences_is_no_token() {
        for payload in [r#"{"aud":"a","aud":"b"}"#, r#"{"aud":7}"#, r#"{"aud":["a",7]}"#, "[]x"] {
            assert_eq!(claims(payload), None, "{payload}");
        }
        for token in ["", "a.b", "a.!.c", "a.e30.c.d", "opaque"] {
            assert_eq!(Claims::of(token), None, "{token}");
        }
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let token = claims(r#"{"exp":1000}"#).unwrap();
        let at = |second: i64| Timestamp(second * 1_000);
        assert!(!token.is_expired(at(1_000 + CLOCK_SKEW_SECONDS)));
        assert!(token.is_expired(at(1_000 + CLOCK_SKEW_SECONDS + 1)));
        assert_eq!(claims(r#"{"exp":"1000"}"#), None);
        assert_eq!(claims(r#"{"exp":1000.5}"#), None);
    }
}
