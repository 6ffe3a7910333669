use super::*;
use crate::client::Discovery;
use crate::metadata::ServerMetadata;

const NOW: Timestamp = Timestamp(1_000_000);

fn pending(dpop: Option<DpopKey>) -> Pending {
    Pending {
        state: Secret::new("s".into()),
        verifier: Secret::new("v".into()),
        redirect_uri: String::new(),
        scopes: vec!["a".into()],
        client: RegisteredClient::public("c".into()),
        dpop,
        found: Discovery {
            endpoint: "https://a.example".into(),
            resource: "https://a.example".into(),
            scopes: Vec::new(),
            takes_dpop: false,
            server: ServerMetadata::default(),
        },
    }
}

fn grant(body: &str) -> Result<Grant, Problem> {
    Grant::of(pending(None), body.as_bytes(), NOW)
}

#[test]
fn a_grant_is_fresh_then_ending_then_ended() {
    let grant = grant(
        r#"{"access_token":"t","token_type":"bearer","expires_in":3600,"refresh_token":"r"}"#,
    )
    .unwrap();
    let at = |seconds: i64| grant.freshness(Timestamp(NOW.0 + seconds * 1_000));
    assert_eq!(at(0), Freshness::Fresh);
    assert_eq!(at(3_539), Freshness::Fresh);
    assert_eq!(at(3_540), Freshness::Ending);
    assert_eq!(at(3_599), Freshness::Ending);
    assert_eq!(at(3_600), Freshness::Ended);
    assert_eq!(grant.scopes, ["a"]);
    assert!(grant.can_refresh());
}

#[test]
fn a_short_lifetime_has_a_short_margin_and_an_untold_one_none() {
    let short = grant(r#"{"access_token":"t","token_type":"Bearer","expires_in":10}"#).unwrap();
    assert_eq!(short.freshness(Timestamp(NOW.0 + 7_999)), Freshness::Fresh);
    assert_eq!(short.freshness(Timestamp(NOW.0 + 8_000)), Freshness::Ending);
    let untold = grant(r#"{"access_token":"t","token_type":"Bearer"}"#).unwrap();
    assert_eq!(untold.freshness(Timestamp(i64::MAX)), Freshness::Fresh);
    let none = Grant { access_token: None, ..untold };
    assert_eq!(none.freshness(NOW), Freshness::Ended);
}

#[test]
fn a_rotated_refresh_token_replaces_the_old_one_and_none_keeps_it() {
    let first =
        grant(r#"{"access_token":"t","token_type":"Bearer","refresh_token":"r1"}"#).unwrap();
    let kept = first.refreshed(br#"{"access_token":"u","token_type":"Bearer"}"#, NOW).unwrap();
    assert_eq!(kept.refresh_token.as_ref().unwrap().expose(), "r1");
    let body = br#"{"access_token":"u","token_type":"Bearer","refresh_token":"r2","scope":"a b"}"#;
    let rotated = first.refreshed(body, NOW).unwrap();
    assert_eq!(rotated.refresh_token.as_ref().unwrap().expose(), "r2");
    assert_eq!(rotated.scopes, ["a", "b"]);
    assert!(first.is_replaced_by(&rotated) && !first.is_replaced_by(&first));
}

#[test]
fn a_bound_token_needs_the_key_that_it_is_bound_to() {
    let bound = r#"{"access_token":"t","token_type":"DPoP"}"#;
    assert!(grant(bound).is_err());
    let key = DpopKey::generate().unwrap();
    assert!(Grant::of(pending(Some(key.clone())), bound.as_bytes(), NOW).unwrap().dpop.is_some());
    let plain = br#"{"access_token":"t","token_type":"Bearer"}"#;
    assert!(Grant::of(pending(Some(key)), plain, NOW).unwrap().dpop.is_none());
}

#[test]
fn answers_that_are_no_token_responses_are_refused() {
    let of_length = |length: usize| {
        grant(&format!(r#"{{"access_token":"{}","token_type":"Bearer"}}"#, "x".repeat(length)))
    };
    assert!(of_length(MAX_TOKEN_BYTES).is_ok());
    assert!(of_length(MAX_TOKEN_BYTES + 1).is_err());
    for body in [
        r#"{"access_token":"t"}"#,
        r#"{"token_type":"Bearer"}"#,
        r#"{"access_token":"","token_type":"Bearer"}"#,
        r#"{"access_token":"a b","token_type":"Bearer"}"#,
        r#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#,
        r#"{"access_token":"t","token_type":"mac"}"#,
        r#"{"access_token":"t","token_type":"Bearer","expires_in":"1h"}"#,
        r#"{"access_token":"t","token_type":"Bearer","expires_in":3.5}"#,
        r#"{"access_token":"t","token_type":"Bearer","expires_in":-1}"#,
        r#"{"access_token":"t","access_token":"u","token_type":"Bearer"}"#,
        "access_token=t&token_type=bearer",
    ] {
        assert!(grant(body).is_err(), "{body}");
    }
}

#[test]
fn what_is_kept_is_read_back_and_debugging_shows_no_token() {
    let body = r#"{"access_token":"SECRET1","token_type":"Bearer","refresh_token":"SECRET2"}"#;
    let grant = grant(body).unwrap();
    let kept = serde_json::to_string(&grant).unwrap();
    let again: Grant = serde_json::from_str(&kept).unwrap();
    assert!(!grant.is_replaced_by(&again));
    assert!(!format!("{grant:?}").contains("SECRET"));
}
