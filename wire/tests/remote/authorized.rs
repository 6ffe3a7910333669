//! The credentials that requests show, and requests that are repeated when the server refuses one.

use crate::client::{Client, Heard, endpoint, limits};
use crate::server::{Gate, Seen, Server, Step, json, respond, result};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use wire::HttpEndpoint;
use wire::authorizer::{Authorizer, Credential, CredentialRefusal, Obtaining, Prove, Withheld};
use wire::remote::FailureKind;

/// Shows `Bearer 0`, then `Bearer 1` and so on each time the server refuses, until no credential is
/// left.
#[derive(Debug, Default)]
struct Counting {
    shown: AtomicUsize,
    most: usize,
    starts_with_nothing: bool,
    refusals: Mutex<Vec<CredentialRefusal>>,
}

fn bearer(number: usize) -> Arc<Credential> {
    let value = HeaderValue::from_str(&format!("Bearer {number}")).unwrap();
    Arc::new(Credential::new(AUTHORIZATION, value))
}

impl Authorizer for Counting {
    fn obtain(&self) -> Obtaining<'_, Option<Arc<Credential>>> {
        Box::pin(async {
            let number = self.shown.load(Ordering::Relaxed);
            Ok((number > 0 || !self.starts_with_nothing).then(|| bearer(number)))
        })
    }

    fn renew<'a>(
        &'a self,
        _: Option<&'a Arc<Credential>>,
        refusal: CredentialRefusal,
    ) -> Obtaining<'a, Option<Arc<Credential>>> {
        self.refusals.lock().unwrap().push(refusal.clone());
        let number = self.shown.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move {
            match (number > self.most, refusal.status.as_u16()) {
                (true, 403) => Ok(None),
                (true, _) => Err(Withheld { words: "sign in again".to_owned() }),
                (false, _) => Ok(Some(bearer(number))),
            }
        })
    }
}

/// What the client receives for one request, and what the server saw.
fn ask(
    most: usize,
    answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
) -> (Heard, Vec<String>, Arc<Counting>) {
    ask_with(Counting { most, ..Counting::default() }, answer)
}

fn ask_with(
    counting: Counting,
    answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
) -> (Heard, Vec<String>, Arc<Counting>) {
    let server = Server::start(answer);
    let authorizer = Arc::new(counting);
    let endpoint = HttpEndpoint { authorizer: Some(authorizer.clone()), ..endpoint(&server.url()) };
    let client = Client::with(endpoint, limits());
    client.ask(1, "a");
    let heard = client.hear();
    client.finish();
    let shown = |seen: &Seen| seen.header("authorization").unwrap_or("nothing").to_owned();
    (heard, server.seen().iter().map(shown).collect(), authorizer)
}

fn unauthorized() -> Vec<Step> {
    respond("401 Unauthorized", "www-authenticate: Bearer error=\"invalid_token\"\r\n", "")
}

#[test]
fn a_refused_credential_is_renewed_and_the_request_sent_again() {
    let (heard, shown, authorizer) = ask(1, |seen| match seen.header("authorization") {
        Some("Bearer 1") => json(&result(seen, "{}")),
        _ => unauthorized(),
    });
    assert!(matches!(heard, Heard::Message(_)), "{heard:?}");
    assert_eq!(shown, ["Bearer 0", "Bearer 1"]);
    let refusals = authorizer.refusals.lock().unwrap();
    assert_eq!(refusals[0].challenges, [b"Bearer error=\"invalid_token\"".to_vec()]);
}

#[test]
fn a_server_that_does_not_ask_is_shown_nothing_and_one_that_asks_gets_it() {
    let nothing = || Counting { most: 1, starts_with_nothing: true, ..Counting::default() };
    let (heard, shown, _) = ask_with(nothing(), |seen| json(&result(seen, "{}")));
    assert!(matches!(heard, Heard::Message(_)), "{heard:?}");
    assert_eq!(shown, ["nothing"]);
    let (_, shown, _) = ask_with(nothing(), |seen| match seen.header("authorization") {
        Some(_) => json(&result(seen, "{}")),
        None => unauthorized(),
    });
    assert_eq!(shown, ["nothing", "Bearer 1"]);
}

#[test]
fn where_there_is_nothing_to_show_the_request_fails_with_the_words_for_it() {
    let (heard, shown, _) = ask(0, |_| unauthorized());
    let Heard::Failed { kind, text, .. } = heard else { panic!("{heard:?}") };
    assert_eq!((kind, text.as_str()), (FailureKind::CredentialRefused, "sign in again"));
    assert_eq!(shown, ["Bearer 0"]);
}

#[test]
fn a_credential_is_renewed_only_so_often_for_one_request() {
    let (heard, shown, _) = ask(100, |_| unauthorized());
    assert!(matches!(heard, Heard::Failed { .. }), "{heard:?}");
    assert_eq!(shown, ["Bearer 0", "Bearer 1", "Bearer 2"]);
}

#[test]
fn a_403_counts_only_with_a_challenge_and_may_stand() {
    let forbidden = |headers: &'static str| move |_: &Seen| respond("403 Forbidden", headers, "");
    let (_, shown, authorizer) = ask(0, forbidden(""));
    assert_eq!((shown.len(), authorizer.refusals.lock().unwrap().len()), (1, 0));
    let challenge = "www-authenticate: Bearer error=\"insufficient_scope\"\r\n";
    let (heard, shown, authorizer) = ask(0, forbidden(challenge));
    assert_eq!((shown.len(), authorizer.refusals.lock().unwrap().len()), (1, 1));
    let Heard::Failed { text, .. } = heard else { panic!("{heard:?}") };
    assert!(text.contains("403"), "{text}");
}

/// Proves with the nonce that it has stored.
#[derive(Debug, Default)]
struct Nonce(Mutex<Option<String>>);

impl Prove for Nonce {
    fn nonce(&self) -> Option<String> {
        self.0.lock().unwrap().clone()
    }

    fn prove(&self, method: &Method, url: &str, nonce: Option<&str>) -> Option<HeaderValue> {
        let (path, nonce) = (url.rsplit('/').next()?, nonce.unwrap_or("none"));
        HeaderValue::from_str(&format!("{method} {path} {nonce}")).ok()
    }

    fn take_nonce(&self, nonce: &HeaderValue) -> Option<String> {
        let nonce = nonce.to_str().unwrap().to_owned();
        *self.0.lock().unwrap() = Some(nonce.clone());
        Some(nonce)
    }
}

#[derive(Debug)]
struct Proving(Arc<Credential>);

impl Authorizer for Proving {
    fn obtain(&self) -> Obtaining<'_, Option<Arc<Credential>>> {
        Box::pin(async { Ok(Some(self.0.clone())) })
    }

    fn renew<'a>(
        &'a self,
        _: Option<&'a Arc<Credential>>,
        _: CredentialRefusal,
    ) -> Obtaining<'a, Option<Arc<Credential>>> {
        Box::pin(async { Ok(None) })
    }
}

#[test]
fn a_proof_is_made_again_with_the_nonce_of_the_server_and_only_once() {
    for (wanted, count) in [("POST mcp n1", 2), ("never", 2)] {
        let server = Server::start(move |seen| match seen.header("dpop") {
            Some(proof) if proof == wanted => json(&result(seen, "{}")),
            _ => respond("401 Unauthorized", "dpop-nonce: n1\r\n", ""),
        });
        let value = HeaderValue::from_static("DPoP token");
        let credential = Credential::new(AUTHORIZATION, value).proven_by(Arc::<Nonce>::default());
        let authorizer: Arc<dyn Authorizer> = Arc::new(Proving(Arc::new(credential)));
        let url = format!("{}?key=1", server.url());
        let endpoint = HttpEndpoint { authorizer: Some(authorizer), ..endpoint(&url) };
        let client = Client::with(endpoint, limits());
        client.ask(1, "a");
        client.hear();
        client.finish();
        let proofs: Vec<_> =
            server.seen().iter().map(|seen| seen.header("dpop").unwrap().to_owned()).collect();
        assert_eq!(proofs.len(), count, "{proofs:?}");
        assert_eq!(proofs, ["POST mcp none", "POST mcp n1"]);
    }
}

/// Two requests whose proofs were made before either was answered: the nonce stored by one is new
/// to the other too.
#[test]
fn each_of_several_requests_at_once_is_proven_again_with_the_nonce() {
    let both = Gate::new();
    let held = both.clone();
    let server = Server::start(move |seen| match seen.header("dpop") {
        Some("POST mcp n1") => json(&result(seen, "{}")),
        _ => {
            let mut steps = respond("401 Unauthorized", "dpop-nonce: n1\r\n", "");
            steps.insert(0, Step::Wait(held.clone()));
            steps
        }
    });
    let value = HeaderValue::from_static("DPoP token");
    let credential = Credential::new(AUTHORIZATION, value).proven_by(Arc::<Nonce>::default());
    let authorizer: Arc<dyn Authorizer> = Arc::new(Proving(Arc::new(credential)));
    let endpoint = HttpEndpoint { authorizer: Some(authorizer), ..endpoint(&server.url()) };
    let client = Client::with(endpoint, limits());
    client.ask(1, "a");
    client.ask(2, "a");
    server.wait_for(|seen| seen.header("dpop") == Some("POST mcp none"), 2);
    both.open();
    for _ in 0..2 {
        let heard = client.hear();
        assert!(matches!(heard, Heard::Message(_)), "{heard:?}");
    }
    client.finish();
    assert_eq!(server.seen().len(), 4);
}
