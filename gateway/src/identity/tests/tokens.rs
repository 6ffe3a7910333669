//! Attacks with tokens, each next to the valid token that is accepted.

use super::idp::*;
use super::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

fn fault(fault: TokenFault) -> Result<Authenticated, TokenFault> {
    Err(fault)
}

#[tokio::test]
async fn a_good_token_names_its_caller() {
    let two = two();
    let mut claims = claims();
    for (name, value) in [
        ("actor", json!("user")),
        ("groups", json!(["writers", "admins", "writers"])),
        ("org", json!("acme")),
        ("clearance", json!("internal")),
        ("amr", json!(["pwd", "mfa"])),
        ("azp", json!("editor")),
    ] {
        claims[name] = value;
    }
    let caller = two.says(&claims.to_string()).await.unwrap();
    let identity = Identity {
        issuer: "https://a.example.com".to_owned(),
        subject: "ada".to_owned(),
        actor_type: ActorType::User,
        client_id: Some("editor".to_owned()),
        org: Some("acme".to_owned()),
        groups: vec!["admins".to_owned(), "writers".to_owned()],
        clearance: Some("internal".to_owned()),
        mfa: true,
        proof: IdentityProof::Token,
    };
    assert_eq!(*caller.caller.identity(), identity);
    assert_eq!(caller.expires_at, Some(after(3_600 + CLOCK_SKEW_SECONDS)));
    // Without these claims, the caller is an agent without groups and organization.
    let plain = two.says(&super::idp::claims().to_string()).await.unwrap().caller;
    let plain = plain.identity();
    assert_eq!((plain.actor_type, plain.mfa), (ActorType::Agent, false));
    assert_eq!((&plain.org, plain.groups.len(), &plain.client_id), (&None, 0, &None));
}

#[tokio::test]
async fn every_algorithm_of_the_list_verifies_and_fails_for_another_key() {
    let published = Arc::new(Published::default());
    let signers = [Signer::rsa(), Signer::p256(), Signer::p384(), Signer::ed25519()];
    let names = ["rsa", "p256", "p384", "ed"];
    let keys: Vec<_> = signers.iter().zip(names).map(|(key, name)| key.jwk(name)).collect();
    published.publish(&keys);
    let source: Box<dyn KeySetSource> = Box::new(published);
    let gateway = Authenticator::with_sources(vec![(settings("a"), source)], false, &public_url());
    for (algorithm, at) in [
        ("RS256", 0),
        ("RS384", 0),
        ("RS512", 0),
        ("PS256", 0),
        ("PS384", 0),
        ("PS512", 0),
        ("ES256", 1),
        ("ES384", 2),
        ("EdDSA", 3),
    ] {
        let header = json!({"alg": algorithm, "kid": names[at]}).to_string();
        let token = signers[at].token(algorithm, &header, &claims().to_string());
        let asked = gateway.authenticate(&bearer_of(&token), None, MCP, NOW).await;
        assert!(asked.is_ok(), "{algorithm}: {asked:?}");
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[10] ^= 1;
        let forged = format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes));
        let refused = gateway.authenticate(&bearer_of(&forged), None, MCP, NOW).await.unwrap_err();
        assert_eq!(refused.fault, TokenFault::Signature.into(), "{algorithm}");
        // A key of another type is not accepted for this algorithm.
        let other = json!({"alg": algorithm, "kid": names[(at + 1) % 4]}).to_string();
        let token = signers[at].token(algorithm, &other, &claims().to_string());
        let refused = gateway.authenticate(&bearer_of(&token), None, MCP, NOW).await.unwrap_err();
        assert_eq!(refused.fault, TokenFault::Signature.into(), "{algorithm}");
    }
}

#[tokio::test]
async fn unsigned_tokens_and_hmac_with_the_public_key_are_refused() {
    let two = two();
    let claims = claims().to_string();
    for algorithm in ["none", "None", "HS256", "HS384", "HS512", "ES512", "ES256K", ""] {
        let header = json!({"alg": algorithm, "kid": "key-a"}).to_string();
        let message =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(&claims));
        let public = URL_SAFE_NO_PAD.decode(two.a.jwk("key-a")["x"].as_str().unwrap()).unwrap();
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public);
        let tag = ring::hmac::sign(&key, message.as_bytes());
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag));
        let refused = two.asks(&token, MCP, NOW).await.unwrap_err();
        assert_eq!(refused, TokenFault::Algorithm.into(), "{algorithm}");
    }
    let token = two.a.token("ES256", &header("key-a"), &claims);
    assert!(two.asks(&token, MCP, NOW).await.is_ok());
    let (message, _) = token.rsplit_once('.').unwrap();
    for cut in [format!("{message}."), message.to_owned(), format!("{token}.x"), "..".to_owned()] {
        assert_eq!(two.asks(&cut, MCP, NOW).await, Err(TokenFault::NotAToken.into()), "{cut}");
    }
}

#[tokio::test]
async fn the_header_must_name_a_key_and_nothing_critical() {
    let two = two();
    let claims = claims().to_string();
    for (header, expected) in [
        (json!({"alg": "ES256"}), TokenFault::NoKeyId),
        (json!({"alg": "ES256", "kid": ""}), TokenFault::NoKeyId),
        (json!({"alg": "ES256", "kid": 1}), TokenFault::NoKeyId),
        (json!({"alg": "ES256", "kid": "x".repeat(257)}), TokenFault::NoKeyId),
        (
            json!({"alg": "ES256", "kid": "key-a", "crit": ["b64"], "b64": false}),
            TokenFault::Critical,
        ),
        (json!({"alg": ["ES256"], "kid": "key-a"}), TokenFault::Algorithm),
        (json!({"kid": "key-a"}), TokenFault::Algorithm),
    ] {
        let token = two.a.token("ES256", &header.to_string(), &claims);
        assert_eq!(two.asks(&token, MCP, NOW).await, Err(expected.into()), "{header}");
    }
    let twice = "{\"alg\":\"ES256\",\"kid\":\"key-a\",\"alg\":\"none\"}";
    let token = two.a.token("ES256", twice, &claims);
    assert_eq!(two.asks(&token, MCP, NOW).await, Err(TokenFault::NotJson.into()));
    // A key inside the token does not become a key of the issuer.
    let attacker = Signer::p256();
    let header = json!({"alg": "ES256", "kid": "key-a", "jwk": attacker.jwk("key-a"), "jku": "https://evil.example/jwks"});
    let token = attacker.token("ES256", &header.to_string(), &claims);
    assert_eq!(two.asks(&token, MCP, NOW).await, Err(TokenFault::Signature.into()));
}

#[tokio::test]
async fn the_issuer_is_one_that_is_configured() {
    let two = two();
    assert!(two.says(&with("iss", json!("https://a.example.com"))).await.is_ok());
    for issuer in ["https://evil.example", "https://a.example.com/", "https://A.example.com", ""] {
        let said = two.says(&with("iss", json!(issuer))).await;
        assert_eq!(said, fault(TokenFault::UnknownIssuer), "{issuer}");
    }
    let several = json!(["https://a.example.com", "https://evil.example"]);
    assert_eq!(two.says(&with("iss", several)).await, fault(TokenFault::WrongType("iss")));
    assert_eq!(two.says(&without("iss")).await, fault(TokenFault::Missing("iss")));
}

#[tokio::test]
async fn a_key_counts_for_its_own_issuer_only() {
    let two = two();
    let claims = claims().to_string();
    // Issuer b signs a token that claims to be from issuer a, under its own key id and under a's.
    for (id, expected) in [("key-b", TokenFault::UnknownKey), ("key-a", TokenFault::Signature)] {
        let token = two.b.token("ES256", &header(id), &claims);
        assert_eq!(two.asks(&token, MCP, NOW).await, Err(expected.into()), "{id}");
    }
    let own = claims.replace("https://a.example.com", "https://b.example.com");
    let token = two.b.token("ES256", &header("key-b"), &own);
    assert_eq!(
        two.asks(&token, MCP, NOW).await.unwrap().caller.identity().issuer,
        "https://b.example.com"
    );
}

#[tokio::test]
async fn the_audience_is_the_url_that_was_asked_for_or_the_issuers() {
    let two = two();
    let files = Resource::Mcp { path: "/servers/files/mcp" };
    let exact = "https://mcp.example.com/servers/files/mcp";
    let admin = "https://mcp.example.com/admin";
    for (audience, at_mcp, at_files, at_admin) in [
        (json!("https://mcp.example.com"), true, true, false),
        (json!([exact, "https://other.example"]), false, true, false),
        (json!(admin), false, false, true),
        (json!([admin, "https://other.example"]), false, false, true),
        // A token for both would let an agent approve its own drift.
        (json!([admin, exact]), false, false, false),
        (json!([admin, "https://mcp.example.com"]), false, false, false),
        (json!("https://other.example"), false, false, false),
        (json!("https://mcp.example.com/"), false, false, false),
        (json!("https://mcp.example.com.evil.example"), false, false, false),
        (json!([]), false, false, false),
    ] {
        let token = two.a.token("ES256", &header("key-a"), &with("aud", audience.clone()));
        for (resource, expected) in [(MCP, at_mcp), (files, at_files), (Resource::Admin, at_admin)]
        {
            let asked = two.asks(&token, resource, NOW).await;
            assert_eq!(asked.is_ok(), expected, "{audience} at {resource:?}");
            if !expected {
                assert_eq!(asked, Err(TokenFault::Audience.into()));
            }
        }
    }
    for wrong in [json!(7), json!({"a": 1}), json!(null), json!([1])] {
        let said = two.says(&with("aud", wrong.clone())).await;
        assert_eq!(said, fault(TokenFault::WrongType("aud")), "{wrong}");
    }
    assert_eq!(two.says(&without("aud")).await, fault(TokenFault::Missing("aud")));
}

#[tokio::test]
async fn times_are_whole_seconds_and_counted_with_a_minute_of_skew() {
    let two = two();
    let seconds = NOW.0 / 1_000;
    let token = two.a.token("ES256", &header("key-a"), &with("exp", json!(seconds + 10)));
    assert!(two.asks(&token, MCP, after(10 + 59)).await.is_ok());
    let expired = two.asks(&token, MCP, after(10 + 60)).await;
    assert_eq!(expired, Err(TokenFault::Expired.into()));
    let early = two.a.token("ES256", &header("key-a"), &with("nbf", json!(seconds + 100)));
    assert_eq!(two.asks(&early, MCP, after(39)).await, Err(TokenFault::NotYetValid.into()));
    assert!(two.asks(&early, MCP, after(40)).await.is_ok());
    for name in ["exp", "nbf", "iat"] {
        for wrong in [
            format!("\"{}\"", seconds + 3_600),
            format!("{}.5", seconds + 3_600),
            format!("{}.0", seconds + 3_600),
            "1.8e9".to_owned(),
            "-1".to_owned(),
            "null".to_owned(),
            "true".to_owned(),
            "[1]".to_owned(),
            "99999999999999999999".to_owned(),
        ] {
            let claims = with(name, json!("HERE")).replace("\"HERE\"", &wrong);
            let said = two.says(&claims).await;
            assert_eq!(said, fault(TokenFault::WrongType(name)), "{name} {wrong}");
        }
    }
    assert_eq!(two.says(&without("exp")).await, fault(TokenFault::Missing("exp")));
    // Many issuers leave it out.
    assert!(two.says(&without("nbf")).await.is_ok());
}

#[tokio::test]
async fn duplicate_claims_are_refused() {
    let two = two();
    let once = claims().to_string();
    for twice in ["\"sub\":\"root\"", "\"exp\":4000000000", "\"aud\":\"x\"", "\"x\":1,\"x\":1"] {
        let claims = format!("{{{twice},{}", &once[1..]);
        assert_eq!(two.says(&claims).await, fault(TokenFault::NotJson), "{twice}");
    }
    assert!(two.says(&format!("{{\"x\":1,{}", &once[1..])).await.is_ok());
    for not_an_object in ["[]", "\"x\"", "", "{"] {
        assert_eq!(two.says(not_an_object).await, fault(TokenFault::NotJson), "{not_an_object}");
    }
}

#[tokio::test]
async fn claims_of_the_wrong_type_or_size_are_refused() {
    let two = two();
    let long = "x".repeat(1_025);
    for (claim, named, wrong) in [
        ("sub", "sub", vec![json!(""), json!(7), json!(long), json!(null)]),
        ("actor", "actor_type", vec![json!("root"), json!(["user"]), json!("")]),
        ("org", "org", vec![json!(1), json!(["acme"]), json!(""), json!(long), json!(null)]),
        ("clearance", "clearance", vec![json!(3), json!({})]),
        (
            "groups",
            "groups",
            vec![
                json!("admins"),
                json!([1]),
                json!({"a": 1}),
                json!([long]),
                json!(vec!["g"; 257]),
            ],
        ),
        ("amr", "amr", vec![json!("mfa"), json!([1])]),
        ("client_id", "client_id", vec![json!(1)]),
        ("azp", "azp", vec![json!([])]),
    ] {
        for value in wrong {
            let said = two.says(&with(claim, value.clone())).await;
            assert_eq!(said, fault(TokenFault::WrongType(named)), "{claim}: {value}");
        }
    }
    assert_eq!(two.says(&without("sub")).await, fault(TokenFault::Missing("sub")));
    let most: Vec<String> = (0..256).map(|number| format!("g{number:03}")).collect();
    assert_eq!(
        two.says(&with("groups", json!(most))).await.unwrap().caller.identity().groups,
        most
    );
}

#[tokio::test]
async fn an_oversized_token_is_not_looked_at() {
    let two = two();
    let padded = |length: usize| {
        let token = two.a.token("ES256", &header("key-a"), &with("pad", json!("x".repeat(length))));
        (token.len(), token)
    };
    let (short, _) = padded(0);
    let fitting = (MAX_TOKEN_BYTES - short) / 4 * 3 - 4;
    let (length, token) = padded(fitting);
    assert!(length <= MAX_TOKEN_BYTES);
    assert!(two.asks(&token, MCP, NOW).await.is_ok());
    let (length, token) = padded(fitting + 9);
    assert!(length > MAX_TOKEN_BYTES, "{length}");
    assert_eq!(two.asks(&token, MCP, NOW).await, Err(TokenFault::TooLong.into()));
}

#[tokio::test]
async fn a_flood_of_unknown_key_ids_causes_one_fetch_an_interval() {
    let two = two();
    assert!(two.says(&claims().to_string()).await.is_ok());
    assert_eq!(two.published.fetches(), 1);
    let claims = claims().to_string();
    let flood = |from: usize, at: Timestamp| {
        let two = &two;
        let tokens: Vec<String> = (from..from + 50)
            .map(|number| two.a.token("ES256", &header(&format!("made-up-{number}")), &claims))
            .collect();
        async move {
            for token in &tokens {
                assert_eq!(two.asks(token, MCP, at).await, Err(TokenFault::UnknownKey.into()));
            }
        }
    };
    flood(0, NOW).await;
    assert_eq!(two.published.fetches(), 1, "just fetched");
    flood(50, after(FETCH_INTERVAL_SECONDS)).await;
    assert_eq!(two.published.fetches(), 2);
    flood(100, after(2 * FETCH_INTERVAL_SECONDS - 1)).await;
    assert_eq!(two.published.fetches(), 2);
    // The first token that names the issuer's new key triggers a fetch once the interval has
    // passed.
    let new = Signer::p256();
    two.published.publish(&[two.a.jwk("key-a"), new.jwk("key-new")]);
    let token = new.token("ES256", &header("key-new"), &claims);
    let at = after(2 * FETCH_INTERVAL_SECONDS);
    assert!(two.asks(&token, MCP, at).await.is_ok());
    assert_eq!(two.published.fetches(), 3);
}

#[tokio::test]
async fn requests_at_the_same_time_wait_for_one_fetch() {
    let two = two();
    let token = two.a.token("ES256", &header("key-a"), &claims().to_string());
    let asked = futures_util::future::join_all((0..20).map(|_| two.asks(&token, MCP, NOW))).await;
    assert!(asked.iter().all(Result::is_ok));
    assert_eq!(two.published.fetches(), 1);
}

#[tokio::test]
async fn a_cached_token_is_dropped_when_its_key_leaves_the_set() {
    let two = two();
    let token = two.a.token("ES256", &header("key-a"), &claims().to_string());
    assert!(two.asks(&token, MCP, NOW).await.is_ok());
    let at = after(FETCH_INTERVAL_SECONDS);
    assert!(two.gateway.renew_key_sets(at).await.is_empty());
    assert!(two.asks(&token, MCP, at).await.is_ok(), "the key is still there");
    // The issuer now publishes a different key with the same id.
    let new = Signer::p256();
    two.published.publish(&[new.jwk("key-a")]);
    let at = after(2 * FETCH_INTERVAL_SECONDS);
    assert!(two.gateway.renew_key_sets(at).await.is_empty());
    assert_eq!(two.asks(&token, MCP, at).await, Err(TokenFault::Signature.into()));
    two.published.publish(&[new.jwk("key-new")]);
    let at = after(3 * FETCH_INTERVAL_SECONDS);
    assert!(two.gateway.renew_key_sets(at).await.is_empty());
    assert_eq!(two.asks(&token, MCP, at).await, Err(TokenFault::UnknownKey.into()));
}

#[tokio::test]
async fn a_token_is_cached_for_five_minutes_and_never_past_its_end() {
    let two = two();
    let seconds = NOW.0 / 1_000;
    for (lifetime, expected) in [(3_600, 300), (100, 100)] {
        let token = two.a.token("ES256", &header("key-a"), &with("exp", json!(seconds + lifetime)));
        assert!(two.asks(&token, MCP, NOW).await.is_ok());
        let hash = CredentialHash::of(token.as_bytes());
        assert!(two.gateway.cached(&hash, after(expected - 1)).is_some());
        assert!(two.gateway.cached(&hash, after(expected)).is_none());
    }
    let refused = two.a.token("ES256", &header("key-a"), &with("exp", json!(seconds - 3_600)));
    assert!(two.asks(&refused, MCP, NOW).await.is_err());
    assert_eq!(two.gateway.tokens.len(), 0, "what is refused is not kept");
}

#[tokio::test]
async fn keys_that_cannot_be_renewed_count_for_a_day() {
    let two = two();
    let long = with("exp", json!(NOW.0 / 1_000 + 10 * 86_400));
    let token = two.a.token("ES256", &header("key-a"), &long);
    two.published.go_down();
    assert_eq!(two.asks(&token, MCP, NOW).await, Err(TokenFault::NoKeys.into()));
    two.published.publish(&[two.a.jwk("key-a")]);
    assert!(two.asks(&token, MCP, after(FETCH_INTERVAL_SECONDS)).await.is_ok());
    two.published.go_down();
    let problems = two.gateway.renew_key_sets(after(100)).await;
    assert_eq!(problems, [("https://a.example.com".to_owned(), "down".to_owned())]);
    let last = FETCH_INTERVAL_SECONDS + MAX_KEY_SET_AGE_SECONDS;
    assert!(two.asks(&token, MCP, after(last)).await.is_ok());
    assert_eq!(two.asks(&token, MCP, after(last + 1)).await, Err(TokenFault::NoKeys.into()));
}

#[tokio::test]
async fn keys_for_other_purposes_and_weak_ones_verify_nothing() {
    let key = Signer::p256();
    let token = key.token("ES256", &header("k"), &claims().to_string());
    let altered = |name: &str, value: serde_json::Value| {
        let mut jwk = key.jwk("k");
        jwk[name] = value;
        jwk
    };
    for (jwk, is_good) in [
        (key.jwk("k"), true),
        (altered("use", json!("sig")), true),
        (altered("alg", json!("ES256")), true),
        (altered("key_ops", json!(["verify"])), true),
        (altered("use", json!("enc")), false),
        (altered("alg", json!("ES384")), false),
        (altered("alg", json!("HS256")), false),
        (altered("key_ops", json!(["sign"])), false),
        (altered("crv", json!("P-384")), false),
        (altered("kty", json!("oct")), false),
        (altered("x", json!("AA")), false),
    ] {
        let published = Arc::new(Published::default());
        published.publish(std::slice::from_ref(&jwk));
        let source: Box<dyn KeySetSource> = Box::new(published);
        let gateway =
            Authenticator::with_sources(vec![(settings("a"), source)], false, &public_url());
        let asked = gateway.authenticate(&bearer_of(&token), None, MCP, NOW).await;
        assert_eq!(asked.is_ok(), is_good, "{jwk}: {asked:?}");
    }
}

#[test]
fn a_key_set_is_bounded_and_strict() {
    use crate::identity::key_set::KeySet;
    let many = |count: usize| json!({"keys": vec![json!({}); count]}).to_string();
    assert!(KeySet::parse(many(100).as_bytes()).is_ok());
    assert_eq!(KeySet::parse(many(101).as_bytes()).unwrap_err(), BadKeySet::TooMany);
    assert_eq!(KeySet::parse(b"{}").unwrap_err(), BadKeySet::NoKeys);
    assert_eq!(KeySet::parse(b"{\"keys\":{}}").unwrap_err(), BadKeySet::NoKeys);
    for text in ["", "{\"keys\":[],\"keys\":[]}", "[]x"] {
        let refused = KeySet::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(refused, BadKeySet::NotJson(_)), "{text}");
    }
}

#[tokio::test]
async fn a_clock_that_was_set_back_does_not_stop_fetches() {
    let two = two();
    let lasting = json!({
        "iss": "https://a.example.com", "sub": "ada", "aud": "https://mcp.example.com",
        "exp": NOW.0 / 1_000 + 3_600,
    });
    let token = two.a.token("ES256", &header("key-a"), &lasting.to_string());
    assert!(two.asks(&token, MCP, NOW).await.is_ok());
    let new = Signer::p256();
    two.published.publish(&[new.jwk("key-new")]);
    let token = new.token("ES256", &header("key-new"), &lasting.to_string());
    assert_eq!(two.asks(&token, MCP, after(-29)).await, Err(TokenFault::UnknownKey.into()));
    assert!(two.asks(&token, MCP, after(-30)).await.is_ok());
}

/// The complete path: settings, a key set over HTTP on loopback, a token.
#[tokio::test]
async fn keys_are_fetched_from_the_configured_address() {
    use std::io::{Read, Write};
    let signer = Signer::p256();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = json!({"keys": [signer.jwk("key-a")]}).to_string();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1_024];
        let length = stream.read(&mut request).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let jwks_uri = format!("http://{address}/tenant/jwks").parse().unwrap();
    let issuers = vec![IssuerSettings { jwks_uri, ..settings("a") }];
    let auth = AuthSettings { issuers, keys: false };
    let gateway = Authenticator::new(&auth, &public_url()).unwrap();
    let token = signer.token("ES256", &header("key-a"), &claims().to_string());
    assert!(gateway.authenticate(&bearer_of(&token), None, MCP, NOW).await.is_ok());
    assert!(served.join().unwrap().starts_with("GET /tenant/jwks HTTP/1.1"));
    // The server is gone, but its keys are known.
    assert!(gateway.authenticate(&bearer_of(&token), None, MCP, after(1)).await.is_ok());
}

#[tokio::test]
async fn key_sets_at_private_addresses_are_not_fetched() {
    let jwks_uri = "https://169.254.169.254/jwks".parse().unwrap();
    let issuers = vec![IssuerSettings { jwks_uri, ..settings("a") }];
    let auth = AuthSettings { issuers, keys: false };
    let gateway = Authenticator::new(&auth, &public_url()).unwrap();
    let problems = gateway.renew_key_sets(NOW).await;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].1.contains("169.254.169.254"), "{problems:?}");
}

#[tokio::test]
async fn no_change_of_one_character_leaves_a_token_valid() {
    let two = two();
    let token = two.a.token("ES256", &header("key-a"), &claims().to_string());
    assert!(two.asks(&token, MCP, NOW).await.is_ok());
    for at in 0..token.len() {
        for other in ["A", "B", "_", ".", "="] {
            let mut changed = token.clone();
            changed.replace_range(at..=at, other);
            if changed != token {
                assert!(two.asks(&changed, MCP, NOW).await.is_err(), "{other} at {at}");
            }
        }
        if at > 0 {
            assert!(two.asks(&token[..at], MCP, NOW).await.is_err(), "cut at {at}");
        }
    }
}
