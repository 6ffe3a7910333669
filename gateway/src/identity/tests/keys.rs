//! Static keys: found by their hash, revoked, expired, and of two kinds.

use super::*;
use store::{ApiKeyId, By, Home, Location, NewApiKey};

struct Shop {
    _folder: tempfile::TempDir,
    store: Box<dyn Store>,
    gateway: Authenticator,
}

const ADA: By<'_> = By { name: "ada", at: NOW };

fn shop(are_keys_enabled: bool) -> Shop {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::open(folder.path()).unwrap();
    let store = store::open(&home, &Location::Sqlite).unwrap();
    let gateway = Authenticator::with_sources(Vec::new(), are_keys_enabled, &public_url());
    Shop { _folder: folder, store, gateway }
}

impl Shop {
    fn add(&mut self, name: &str, change: impl FnOnce(&mut NewApiKey)) -> String {
        self.add_at(name, NOW, change)
    }

    fn add_at(&mut self, name: &str, at: Timestamp, change: impl FnOnce(&mut NewApiKey)) -> String {
        let mut new = NewApiKey {
            id: name.parse().unwrap(),
            hash: store::ApiKeyHash([0; 32]),
            sub: "svc:reports".to_owned(),
            actor_type: store::ActorType::Agent,
            org: Some("acme".to_owned()),
            groups: vec!["b".to_owned(), "a".to_owned(), "b".to_owned()],
            clearance: Some("internal".to_owned()),
            admin: false,
            expires_at: None,
        };
        change(&mut new);
        let key = StaticKey::generate(new.admin).unwrap();
        new.hash = key.hash();
        self.store.add_api_key(&new, By { at, ..ADA }).unwrap();
        self.gateway.reload_keys(&*self.store).unwrap();
        key.reveal().to_owned()
    }

    async fn asks(
        &self,
        key: &str,
        resource: Resource<'_>,
        now: Timestamp,
    ) -> Result<Authenticated, AuthenticationFault> {
        let asked = self.gateway.authenticate(&bearer_of(key), None, resource, now).await;
        asked.map_err(|refused| {
            assert_eq!(refused.status, 401);
            refused.fault
        })
    }
}

#[test]
fn keys_are_long_random_and_recognizable() {
    let (key, admin) = (StaticKey::generate(false).unwrap(), StaticKey::generate(true).unwrap());
    assert!(key.reveal().starts_with("hp_") && key.reveal().len() == 3 + 43);
    assert!(admin.reveal().starts_with("hpa_") && admin.reveal().len() == 4 + 43);
    assert_ne!(key.reveal(), StaticKey::generate(false).unwrap().reveal());
    assert_eq!(format!("{key:?}"), "StaticKey(…)");
    assert_eq!(key.hash().0, CredentialHash::of(key.reveal().as_bytes()).0);
}

#[tokio::test]
async fn a_key_names_its_caller() {
    let mut shop = shop(true);
    let key = shop.add("reports", |_| {});
    let caller = shop.asks(&key, MCP, NOW).await.unwrap();
    assert_eq!(caller.caller.identity().issuer, KEY_ISSUER);
    assert_eq!(caller.caller.identity().subject, "svc:reports");
    assert_eq!(caller.caller.identity().proof, IdentityProof::Key);
    assert_eq!(caller.caller.identity().org.as_deref(), Some("acme"));
    assert_eq!(caller.caller.identity().groups, ["a", "b"]);
    assert_eq!(caller.caller.identity().clearance.as_deref(), Some("internal"));
    assert_eq!(caller.expires_at, None);
    for wrong in [format!("{key}x"), "hp_".to_owned(), key.replace("hp_", "hpa_")] {
        assert_eq!(shop.asks(&wrong, MCP, NOW).await, Err(KeyFault::Unknown.into()), "{wrong}");
    }
}

#[tokio::test]
async fn keys_count_only_where_they_are_enabled_and_after_they_were_read() {
    let mut closed = shop(false);
    let key = closed.add("reports", |_| {});
    assert_eq!(closed.asks(&key, MCP, NOW).await, Err(KeyFault::Disabled.into()));
    let mut open = shop(true);
    let key = open.add("reports", |_| {});
    assert!(open.asks(&key, MCP, NOW).await.is_ok());
    open.gateway = Authenticator::with_sources(Vec::new(), true, &public_url());
    assert_eq!(open.asks(&key, MCP, NOW).await, Err(KeyFault::Unknown.into()));
}

#[tokio::test]
async fn an_admin_key_opens_the_admin_api_and_nothing_else() {
    let mut shop = shop(true);
    let plain = shop.add("plain", |_| {});
    let admin = shop.add("admin", |key| key.admin = true);
    assert!(shop.asks(&plain, MCP, NOW).await.is_ok());
    assert!(shop.asks(&admin, Resource::Admin, NOW).await.is_ok());
    assert_eq!(shop.asks(&admin, MCP, NOW).await, Err(KeyFault::AdminKey.into()));
    assert_eq!(shop.asks(&plain, Resource::Admin, NOW).await, Err(KeyFault::NotAdminKey.into()));
}

#[tokio::test]
async fn a_revoked_key_and_an_expired_one_open_nothing() {
    let mut shop = shop(true);
    let key = shop.add("short", |key| key.expires_at = Some(after(60)));
    let caller = shop.asks(&key, MCP, after(59)).await.unwrap();
    assert_eq!(caller.expires_at, Some(after(60)));
    assert_eq!(shop.asks(&key, MCP, after(60)).await, Err(KeyFault::Expired.into()));
    let key = shop.add("gone", |_| {});
    assert!(shop.asks(&key, MCP, NOW).await.is_ok());
    shop.store.revoke_api_key(&"gone".parse().unwrap(), ADA).unwrap();
    shop.gateway.reload_keys(&*shop.store).unwrap();
    assert_eq!(shop.asks(&key, MCP, NOW).await, Err(KeyFault::Revoked.into()));
}

#[tokio::test]
async fn of_a_revoked_principal_only_keys_that_were_made_later_count() {
    let mut shop = shop(true);
    let (early, other) =
        (shop.add("early", |_| {}), shop.add("other", |key| key.sub = "ada".to_owned()));
    let found = shop.asks(&early, MCP, after(5)).await.unwrap();
    assert_eq!(found.since, NOW);
    let by = By { at: after(10), ..ADA };
    shop.store.revoke(store::RevokedKind::Principal, "svc:reports", by).unwrap();
    shop.gateway.reload_keys(&*shop.store).unwrap();
    assert_eq!(shop.asks(&early, MCP, after(11)).await, Err(AuthenticationFault::Revoked));
    assert!(!shop.gateway.still_counts(&found, after(11)), "its streams end");
    assert!(shop.asks(&other, MCP, after(11)).await.is_ok());
    let late = shop.add_at("late", after(20), |_| {});
    assert!(shop.asks(&late, MCP, after(21)).await.is_ok(), "restored");
    assert_eq!(shop.asks(&early, MCP, after(21)).await, Err(AuthenticationFault::Revoked));
}

#[tokio::test]
async fn a_key_is_revoked_by_its_id_or_by_itself() {
    let mut shop = shop(true);
    let (one, two) = (shop.add("one", |_| {}), shop.add("two", |_| {}));
    shop.store.revoke(store::RevokedKind::Key, "one", ADA).unwrap();
    shop.store.revoke(store::RevokedKind::Key, &two, ADA).unwrap();
    let three = shop.add("three", |_| {});
    for key in [&one, &two] {
        assert_eq!(shop.asks(key, MCP, NOW).await, Err(AuthenticationFault::Revoked));
    }
    assert!(shop.asks(&three, MCP, NOW).await.is_ok());
}

#[tokio::test]
async fn keys_that_another_program_wrote_close_all_of_them() {
    let mut shop = shop(true);
    let key = shop.add("reports", |_| {});
    assert!(shop.asks(&key, MCP, NOW).await.is_ok());
    let database = shop._folder.path().join("state.db");
    let edited = rusqlite::Connection::open(database).unwrap();
    edited.execute("UPDATE api_keys SET admin = 1", []).unwrap();
    assert!(shop.gateway.reload_keys(&*shop.store).is_err());
    assert_eq!(shop.asks(&key, MCP, NOW).await, Err(KeyFault::Unknown.into()));
    assert_eq!(shop.asks(&key, Resource::Admin, NOW).await, Err(KeyFault::Unknown.into()));
}

#[tokio::test]
async fn the_day_of_use_is_written_later_and_once() {
    let mut shop = shop(true);
    let key = shop.add("reports", |_| {});
    let id: ApiKeyId = "reports".parse().unwrap();
    let last_used = |store: &dyn Store| {
        store.api_keys().unwrap().iter().find(|key| key.key.id == id).unwrap().last_used
    };
    shop.asks(&key, MCP, NOW).await.unwrap();
    shop.asks(&key, MCP, NOW).await.unwrap();
    assert_eq!(last_used(&*shop.store), None, "nothing is written while a request waits");
    shop.gateway.write_key_uses(&mut *shop.store).unwrap();
    assert_eq!(last_used(&*shop.store).unwrap().0, NOW.0 / 86_400_000);
    shop.gateway.reload_keys(&*shop.store).unwrap();
    let version = shop.store.version().unwrap();
    shop.asks(&key, MCP, NOW).await.unwrap();
    shop.gateway.write_key_uses(&mut *shop.store).unwrap();
    assert_eq!(shop.store.version().unwrap(), version, "the day was noted already");
}
