use super::*;
use oauth::{RegisteredClient, Secret};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SOON: i64 = 3_600_000;

fn grant(token: &str, renew_in: i64, refresh: Option<&str>) -> Grant {
    Grant {
        issuer: "http://127.0.0.1:1".into(),
        endpoint: "http://127.0.0.1:1/mcp".into(),
        resource: "http://127.0.0.1:1/mcp".into(),
        scopes: vec!["a".into()],
        client: RegisteredClient::public("c".into()),
        token_endpoint: "http://127.0.0.1:1/token".into(),
        revocation_endpoint: None,
        access_token: Some(Secret::new(token.into())),
        refresh_token: refresh.map(|token| Secret::new(token.into())),
        renew_at: Some(now().0 + renew_in),
        expires_at: Some(now().0 + renew_in + 1_000),
        dpop: None,
        since: 0,
    }
}

#[derive(Debug, Default)]
struct MemoryVault(StdMutex<Option<Grant>>);

impl Vault for MemoryVault {
    fn load(&self) -> Result<Option<Grant>, VaultError> {
        Ok(self.0.lock().unwrap().clone())
    }
    fn save(&self, grant: &Grant) -> Result<(), VaultError> {
        *self.0.lock().unwrap() = Some(grant.clone());
        Ok(())
    }
    fn delete(&self) -> Result<(), VaultError> {
        *self.0.lock().unwrap() = None;
        Ok(())
    }
    fn lock(&self) -> Result<Box<dyn Send>, VaultError> {
        Ok(Box::new(()))
    }
}

/// A person who signs in, or does not.
#[derive(Debug, Clone, Default)]
struct Person {
    asked: Arc<AtomicUsize>,
    scopes: Arc<StdMutex<Vec<String>>>,
    is_unwilling: bool,
}

impl AskPerson for Person {
    fn sign_in<'a>(&'a self, _: Option<Challenge>, scopes: Vec<String>) -> Asking<'a> {
        Box::pin(async move {
            let count = self.asked.fetch_add(1, Ordering::Relaxed);
            self.scopes.lock().unwrap().clone_from(&scopes);
            match self.is_unwilling {
                true => Err(SignInError::Denied { code: "access_denied".into() }),
                false => {
                    let mut grant = grant(&format!("asked-{count}"), SOON, None);
                    grant.scopes = if scopes.is_empty() { grant.scopes } else { scopes };
                    Ok(grant)
                }
            }
        })
    }
}

struct Bench {
    sign_in: PersonalSignIn,
    vault: Arc<MemoryVault>,
    person: Person,
    events: Arc<StdMutex<Vec<SignInEvent>>>,
}

fn bench(kept: Option<Grant>, is_unwilling: bool) -> Bench {
    bench_with(kept, is_unwilling, Remedy::Command("holdpoint sign-in it".into()))
}

fn bench_with(kept: Option<Grant>, is_unwilling: bool, remedy: Remedy) -> Bench {
    let vault = Arc::new(MemoryVault(StdMutex::new(kept)));
    let person = Person { is_unwilling, ..Person::default() };
    let events = Arc::new(StdMutex::new(Vec::new()));
    let told = events.clone();
    let sign_in = PersonalSignIn::new(
        Client::default(),
        vault.clone(),
        Box::new(person.clone()),
        remedy,
        Box::new(move |event| told.lock().unwrap().push(event.clone())),
    );
    Bench { sign_in, vault, person, events }
}

fn refusal(status: u16, challenge: &str) -> CredentialRefusal {
    let status = http::StatusCode::from_u16(status).unwrap();
    CredentialRefusal { status, challenges: vec![challenge.as_bytes().to_vec()] }
}

impl Bench {
    /// The credential that a request finally presents to a server that requires a token.
    async fn shown(&self) -> Result<String, String> {
        let words = |withheld: Withheld| withheld.words;
        let credential = match self.sign_in.obtain().await.map_err(words)? {
            Some(credential) => Some(credential),
            None => self.sign_in.renew(None, refusal(401, "Bearer")).await.map_err(words)?,
        };
        Ok(credential.unwrap().value().to_str().unwrap().to_owned())
    }

    async fn refused(&self, status: u16, challenge: &str) -> Result<Option<String>, String> {
        let credential = self.sign_in.obtain().await.unwrap();
        let refusal = refusal(status, challenge);
        let renewed = self.sign_in.renew(credential.as_ref(), refusal).await;
        let shown = |credential: Arc<Credential>| credential.value().to_str().unwrap().to_owned();
        renewed.map(|renewed| renewed.map(shown)).map_err(|withheld| withheld.words)
    }

    fn asked(&self) -> usize {
        self.person.asked.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_sign_in_that_is_kept_is_used_without_asking() {
    let bench = bench(Some(grant("kept", SOON, None)), false);
    assert_eq!(bench.shown().await.unwrap(), "Bearer kept");
    assert_eq!(bench.asked(), 0);
}

#[tokio::test]
async fn a_server_that_does_not_ask_is_shown_nothing() {
    let bench = bench(None, false);
    assert!(bench.sign_in.obtain().await.unwrap().is_none());
    assert_eq!(bench.asked(), 0);
}

#[tokio::test]
async fn a_person_is_asked_once_at_the_start_and_what_they_did_is_kept() {
    let bench = bench(None, false);
    assert_eq!(bench.shown().await.unwrap(), "Bearer asked-0");
    assert_eq!(bench.shown().await.unwrap(), "Bearer asked-0");
    assert_eq!(bench.asked(), 1);
    assert!(bench.vault.load().unwrap().is_some());
    assert_eq!(bench.events.lock().unwrap()[0].name(), "sign_in.complete");
}

#[tokio::test]
async fn a_person_who_refused_is_not_asked_again_and_a_later_sign_in_elsewhere_counts() {
    let bench = bench(None, true);
    let words = bench.shown().await.unwrap_err();
    assert!(words.contains("holdpoint sign-in it") && words.contains("access_denied"), "{words}");
    assert!(bench.shown().await.is_err());
    assert_eq!(bench.asked(), 1);
    assert_eq!(bench.events.lock().unwrap()[0], SignInEvent::Refused { code: "denied" });
    bench.vault.save(&grant("elsewhere", SOON, None)).unwrap();
    assert_eq!(bench.shown().await.unwrap(), "Bearer elsewhere");
}

#[tokio::test]
async fn a_refused_token_without_a_refresh_token_ends_the_sign_in_with_what_to_type() {
    let bench = bench(Some(grant("kept", SOON, None)), false);
    let words = bench.refused(401, "Bearer error=\"invalid_token\"").await.unwrap_err();
    assert!(words.contains("holdpoint sign-in it"), "{words}");
    assert!(bench.vault.load().unwrap().is_none());
    assert_eq!(bench.asked(), 0);
    assert_eq!(bench.events.lock().unwrap()[0].name(), "sign_in.end");
}

#[tokio::test]
async fn a_token_that_another_process_replaced_is_taken_over() {
    let bench = bench(Some(grant("old", SOON, None)), false);
    assert_eq!(bench.shown().await.unwrap(), "Bearer old");
    bench.vault.save(&grant("new", SOON, None)).unwrap();
    let renewed = bench.refused(401, "Bearer").await.unwrap();
    assert_eq!(renewed.as_deref(), Some("Bearer new"));
}

#[tokio::test]
async fn more_scopes_are_asked_for_and_the_same_ones_are_not() {
    let bench = bench(Some(grant("kept", SOON, None)), false);
    let more = "Bearer error=\"insufficient_scope\", scope=\"a b\"";
    assert_eq!(bench.refused(403, more).await.unwrap().as_deref(), Some("Bearer asked-0"));
    assert_eq!(*bench.person.scopes.lock().unwrap(), ["a", "b"]);
    assert_eq!(bench.refused(403, more).await.unwrap(), None);
    assert_eq!(bench.refused(403, "Bearer").await.unwrap(), None);
    assert_eq!(bench.asked(), 1);
}

#[tokio::test]
async fn a_person_is_asked_for_more_scopes_only_so_often() {
    let bench = bench(Some(grant("kept", SOON, None)), false);
    for count in 0..=MAX_STEP_UPS {
        let more = format!("Bearer error=\"insufficient_scope\", scope=\"s{count}\"");
        assert_eq!(bench.refused(403, &more).await.unwrap().is_some(), count < MAX_STEP_UPS);
    }
    assert_eq!(bench.asked(), MAX_STEP_UPS);
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_a_token_that_still_counts_in_use() {
    // Nothing listens at the token endpoint.
    let bench = bench(Some(grant("ending", -500, Some("r"))), false);
    assert_eq!(bench.shown().await.unwrap(), "Bearer ending");
    let ended = self::bench(Some(grant("ended", -2_000, Some("r"))), false);
    let words = ended.shown().await.unwrap_err();
    assert!(words.contains("could not be refreshed"), "{words}");
    assert!(ended.vault.load().unwrap().is_some());
    assert_eq!(ended.asked(), 0);
}

#[tokio::test]
async fn without_a_place_for_all_processes_the_person_is_asked_again_and_only_so_often() {
    let bench = bench_with(None, false, Remedy::AskAgain);
    assert_eq!(bench.shown().await.unwrap(), "Bearer asked-0");
    for count in 1..MAX_ASKS {
        let renewed = bench.refused(401, "Bearer").await.unwrap();
        assert_eq!(renewed, Some(format!("Bearer asked-{count}")));
    }
    let words = bench.refused(401, "Bearer").await.unwrap_err();
    assert!(words.contains("restarts this server"), "{words}");
    assert_eq!(bench.asked(), MAX_ASKS);
}
