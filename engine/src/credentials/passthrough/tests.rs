//! Every form of a token is found, and other texts are not.

use super::*;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.uJ8k3vRr7cQz_1Tn-5YpXw0aBfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuv_-7w";
/// Another token of the same issuer: only the signature differs.
const OTHER: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.Zr8k3vRr7cQz_1Tn-5YpXw0aBfGhIjKlMnOpQrStUvWxYz9123456789abcdefghijklmnopqrstuv_-7w";

fn percent(text: &str, upper: bool) -> String {
    text.bytes()
        .map(|byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") })
        .collect()
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

fn found(text: &str) -> bool {
    Needles::of(TOKEN.as_bytes()).occur_in(text.as_bytes())
}

/// Checks a text, and its counterpart that contains another token.
fn check(name: &str, form: impl Fn(&str) -> String) {
    assert!(found(&form(TOKEN)), "{name}");
    assert!(!found(&form(OTHER)), "{name}: the twin");
}

#[test]
fn a_token_is_found_as_it_is() {
    check("alone", str::to_owned);
    check("in arguments", |token| format!(r#"{{"arguments":{{"path":"a {token} b"}}}}"#));
    check("without its first and last characters", |token| token[50..token.len() - 5].to_owned());
}

#[test]
fn a_token_is_found_in_base64_at_every_alignment() {
    for before in 0..7 {
        for behind in 0..4 {
            let around =
                |token: &str| format!("{}{token}{}", "u".repeat(before), ":".repeat(behind));
            check("standard", |token| STANDARD.encode(around(token)));
            check("for URLs", |token| URL_SAFE.encode(around(token)));
            check("for URLs, without padding", |token| URL_SAFE_NO_PAD.encode(around(token)));
            check("in JSON", |token| {
                let text = STANDARD.encode(around(token)).replace('/', r"\/");
                format!(r#"{{"a":"{text}"}}"#)
            });
            check("percent-encoded", |token| percent(&STANDARD.encode(around(token)), true));
        }
    }
}

#[test]
fn a_token_is_found_percent_encoded_wholly_or_in_part() {
    check("upper case", |token| percent(token, true));
    check("lower case", |token| percent(token, false));
    check("in part", |token| token.replace('Q', "%51").replace('_', "%5F"));
    check("twice", |token| percent(&percent(token, false), true));
    check("three times", |token| percent(&percent(&percent(token, false), true), false));
    assert!(!found(&percent(&percent(&percent(&percent(TOKEN, true), true), true), true)));
    check("behind a percent sign that encodes nothing", |token| {
        format!("100% {}", percent(token, true))
    });
}

#[test]
fn a_token_is_found_behind_escapes_of_json() {
    check("wholly", escaped);
    check("in part", |token| token.replace('Q', r"\u0051"));
    check("with percent-encoding inside", |token| escaped(&percent(token, true)));
    // An escaped backslash: a reader of this text sees `\u0051` as six characters.
    assert!(!found(&TOKEN.replace('Q', r"\\u0051")));
}

#[test]
fn a_key_is_found_although_it_has_no_dots() {
    let key = "hp_Zk3vRr7cQz_1Tn-5YpXw0aBfGhIjKlMnOpQrStUvWxY";
    let needles = Needles::of(key.as_bytes());
    assert!(needles.occur_in(format!("x {key}").as_bytes()));
    assert!(needles.occur_in(STANDARD.encode(format!("user:{key}")).as_bytes()));
    assert!(!needles.occur_in(b"hp_ is how keys begin, and this text has none of them in it"));
}

#[test]
fn what_is_not_a_token_is_not_taken_for_one() {
    let (header_and_payload, _) = TOKEN.rsplit_once('.').unwrap();
    assert!(!found(header_and_payload), "what is not secret of it may be sent");
    assert!(!found(""));
    assert!(!found("%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%"));
    assert!(!found(&"\\".repeat(100)));
    assert!(!found(&r"\u00".repeat(50)));
    let many: String = (0..4_000).map(|number| format!("{number:x}%2e\\u0041")).collect();
    assert!(!found(&many));
}

#[test]
fn nothing_of_a_token_is_in_debug_output() {
    let shown = format!("{:?}", Needles::of(TOKEN.as_bytes()));
    assert_eq!(shown, "Needles { forms: 4 }", "{shown}");
}
