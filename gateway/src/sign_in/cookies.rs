//! The sealed cookies that a browser carries between requests: a sign-in in progress, and the
//! signed-in person.
//!
//! INVARIANT: every cookie's name begins with `__Host-`, so that no other host, subdomain or
//! plain-HTTP page can set it; and no cookie can be read by a script or sent by a page of another
//! site.

use super::records::{after, open, random_id, seal};
use super::refused::SignInRefusal;
use super::request::AuthorizationRequest;
use crate::identity::{RevokedCallers, WrittenIdentity};
use crate::sealed::{Purpose, SealError, Sealer};
use contract::time::Timestamp;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use policy::IdentityProof;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How long a sign-in may take.
pub(super) const TRANSACTION_SECONDS: u64 = 600;
/// How long a browser stays signed in to the gateway's own pages.
pub(super) const PERSON_SECONDS: u64 = 3_600;
/// Browsers drop a cookie that is longer than 4096 bytes with its name and attributes.
const MAX_COOKIE_BYTES: usize = 3_800;

const PERSON: &str = "__Host-holdpoint-person";
const TRANSACTION: &str = "__Host-holdpoint-sign-in-";
/// How many characters of a transaction's id are in its cookie's name, to separate concurrent
/// sign-ins.
const NAMED_CHARACTERS: usize = 8;

/// A sign-in in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Transaction {
    pub(super) id: String,
    /// The token that a form has to send back.
    pub(super) csrf: String,
    pub(super) begun_at: i64,
    pub(super) purpose: TransactionPurpose,
    /// Only set once the person agreed to go to the identity provider.
    pub(super) leg: Option<ProviderLeg>,
}

/// The purpose of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TransactionPurpose {
    /// A client asks for tokens.
    Client(Box<AuthorizationRequest>),
    /// To continue at this path of the gateway's own pages.
    Return { path: String },
}

/// The values that must come back from the identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProviderLeg {
    pub(super) issuer: String,
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) verifier: String,
}

impl Transaction {
    pub(super) fn begin(
        purpose: TransactionPurpose,
        now: Timestamp,
    ) -> Result<Transaction, SealError> {
        let (id, csrf) = (random_id()?, random_id()?);
        Ok(Transaction { id, csrf, begun_at: now.0, purpose, leg: None })
    }

    /// The header that sets the cookie.
    pub(super) fn cookie(&self, sealer: &Sealer) -> Result<HeaderValue, SignInRefusal> {
        let sealed = seal(sealer, Purpose::SignInTransaction, self)?;
        cookie(&transaction_name(&self.id), &sealed, TRANSACTION_SECONDS)
    }

    /// The header that deletes the cookie.
    pub(super) fn forget(id: &str) -> Result<HeaderValue, SignInRefusal> {
        cookie(&transaction_name(id), "", 0)
    }

    /// The transaction with this id, if this browser has it.
    pub(super) fn of(
        headers: &HeaderMap,
        id: &str,
        sealer: &Sealer,
        now: Timestamp,
    ) -> Option<Transaction> {
        let sealed = find(headers, &transaction_name(id))?;
        let read: Transaction = open(sealer, Purpose::SignInTransaction, sealed)?;
        let is_current = now < after(Timestamp(read.begun_at), TRANSACTION_SECONDS);
        (read.id == id && is_current).then_some(read)
    }

    pub(super) fn check_csrf(&self, sent: Option<&str>) -> Result<(), SignInRefusal> {
        same(&self.csrf, sent.unwrap_or_default()).ok_or(SignInRefusal::Csrf)
    }
}

/// A person signed in with this browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Person {
    pub(super) identity: WrittenIdentity,
    pub(super) shown: String,
    pub(super) at: i64,
    pub(super) csrf: String,
}

impl Person {
    pub(super) fn principal(&self) -> String {
        self.identity.principal()
    }

    pub(super) fn cookie(&self, sealer: &Sealer) -> Result<HeaderValue, SignInRefusal> {
        cookie(PERSON, &seal(sealer, Purpose::Person, self)?, PERSON_SECONDS)
    }

    pub(super) fn forget() -> Result<HeaderValue, SignInRefusal> {
        cookie(PERSON, "", 0)
    }

    /// The signed-in person, unless the sign-in has expired or was revoked.
    pub(super) fn of(
        headers: &HeaderMap,
        sealer: &Sealer,
        revoked: &RevokedCallers,
        now: Timestamp,
    ) -> Option<Person> {
        let read: Person = open(sealer, Purpose::Person, find(headers, PERSON)?)?;
        let is_current = now < after(Timestamp(read.at), PERSON_SECONDS);
        let counts = is_current && !is_revoked(&read.identity, Timestamp(read.at), revoked);
        counts.then_some(read)
    }

    pub(super) fn check_csrf(&self, sent: Option<&str>) -> Result<(), SignInRefusal> {
        same(&self.csrf, sent.unwrap_or_default()).ok_or(SignInRefusal::Csrf)
    }
}

/// Whether a person was revoked since a moment.
pub(super) fn is_revoked(
    identity: &WrittenIdentity,
    since: Timestamp,
    revoked: &RevokedCallers,
) -> bool {
    let identity = identity.clone().read(IdentityProof::Token);
    identity.is_none_or(|identity| revoked.principal(&identity).is_some_and(|at| at >= since))
}

/// Compares two texts by their hashes, so that timing does not reveal where they differ.
pub(super) fn same(one: &str, other: &str) -> Option<()> {
    (Sha256::digest(one.as_bytes()) == Sha256::digest(other.as_bytes())).then_some(())
}

fn transaction_name(id: &str) -> String {
    let named = id.chars().filter(char::is_ascii_hexdigit).take(NAMED_CHARACTERS);
    format!("{TRANSACTION}{}", named.collect::<String>())
}

fn cookie(name: &str, value: &str, seconds: u64) -> Result<HeaderValue, SignInRefusal> {
    if name.len() + value.len() > MAX_COOKIE_BYTES {
        return Err(SignInRefusal::BadRequest("it is too long"));
    }
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax");
    HeaderValue::from_str(&text).map_err(|_| SignInRefusal::BadRequest("it is not plain text"))
}

/// The value of a cookie. Returns `None` if it is there twice, since ours cannot be told from the
/// other.
fn find<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let pairs = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let mut found = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer() -> Sealer {
        Sealer::of(&[7; 32]).unwrap()
    }

    fn begun() -> Transaction {
        let purpose = TransactionPurpose::Return { path: "/account".to_owned() };
        Transaction::begin(purpose, Timestamp(1_000)).unwrap()
    }

    fn sent(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        headers
    }

    fn pair(set: &HeaderValue) -> String {
        set.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_cookie_belongs_to_this_host_and_to_no_script() {
        let set = begun().cookie(&sealer()).unwrap();
        let text = set.to_str().unwrap();
        assert!(text.starts_with("__Host-holdpoint-sign-in-"), "{text}");
        for attribute in ["Path=/", "Secure", "HttpOnly", "SameSite=Lax", "Max-Age=600"] {
            assert!(text.contains(&format!("; {attribute}")), "{text}");
        }
        assert!(!text.contains("Domain"), "{text}");
    }

    #[test]
    fn a_transaction_is_found_by_its_id_in_the_browser_that_began_it() {
        let (transaction, sealer) = (begun(), sealer());
        let cookie = pair(&transaction.cookie(&sealer).unwrap());
        let of = |cookies: &[&str], id: &str, now: i64| {
            Transaction::of(&sent(cookies), id, &sealer, Timestamp(now))
        };
        assert_eq!(of(&[&cookie], &transaction.id, 2_000), Some(transaction.clone()));
        assert_eq!(
            of(&["a=b", &format!("x=y; {cookie}")], &transaction.id, 2_000),
            Some(transaction.clone())
        );
        assert_eq!(of(&[], &transaction.id, 2_000), None, "another browser");
        assert_eq!(of(&[&cookie], &begun().id, 2_000), None, "another sign-in");
        assert_eq!(of(&[&cookie], &transaction.id, 601_000), None, "too late");
        assert_eq!(of(&[&cookie, &cookie], &transaction.id, 2_000), None, "two of them");
        let id = format!("{}{}", &transaction.id[..8], "0".repeat(24));
        assert_eq!(of(&[&cookie], &id, 2_000), None, "the name alone does not count");
        let other = Sealer::of(&[8; 32]).unwrap();
        assert_eq!(
            Transaction::of(&sent(&[&cookie]), &transaction.id, &other, Timestamp(2_000)),
            None
        );
    }

    #[test]
    fn a_form_needs_the_token_of_its_own_transaction() {
        let (one, other) = (begun(), begun());
        assert!(one.check_csrf(Some(&one.csrf)).is_ok());
        for sent in [None, Some(""), Some(other.csrf.as_str())] {
            assert!(matches!(one.check_csrf(sent), Err(SignInRefusal::Csrf)), "{sent:?}");
        }
    }

    #[test]
    fn a_sign_in_that_no_browser_would_keep_is_refused() {
        let long = TransactionPurpose::Return { path: "x".repeat(MAX_COOKIE_BYTES) };
        let transaction = Transaction { purpose: long, ..begun() };
        assert!(transaction.cookie(&sealer()).is_err());
    }
}
