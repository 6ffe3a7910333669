//! Rate limits of the API, per address or per key.

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, HeaderValue};
use contract::time::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The requests per minute allowed for an address without a key.
pub const ANONYMOUS_PER_MINUTE: u64 = 60;
/// The requests per minute allowed for a key.
pub const KEYED_PER_MINUTE: u64 = 600;
/// The most callers that are counted at a time; above it, the oldest minute is forgotten.
pub const MAX_CALLERS: usize = 200_000;
const SHARDS: usize = 16;
const MINUTE_MS: i64 = 60_000;
/// The longest `Authorization` header that is read.
const MAX_HEADER_BYTES: usize = 512;

/// The caller that is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// An IPv4 address, or the first 64 bits of an IPv6 address.
    Address([u8; 8]),
    Key(usize),
}

impl Caller {
    pub fn address(address: IpAddr) -> Caller {
        Caller::Address(network(address, 8))
    }
}

/// The network part of an address: all of an IPv4 address, or the first bytes of an IPv6 address.
pub fn network(address: IpAddr, ipv6_bytes: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    match address.to_canonical() {
        // Marked, so that it cannot equal an IPv6 network.
        IpAddr::V4(address) => {
            let marked = [0, 0, 0, 4].into_iter().chain(address.octets());
            bytes.iter_mut().zip(marked).for_each(|(to, byte)| *to = byte);
        }
        IpAddr::V6(address) => {
            let first = address.octets().into_iter().take(ipv6_bytes);
            bytes.iter_mut().zip(first).for_each(|(to, byte)| *to = byte);
        }
    }
    bytes
}

/// An API key, identified by the hash of its secret.
#[derive(Debug, Clone)]
pub struct ApiKey {
    pub owner: String,
    pub hash: [u8; 32],
    pub expires: Timestamp,
}

impl ApiKey {
    pub fn new(owner: &str, secret: &[u8], expires: Timestamp) -> ApiKey {
        ApiKey { owner: owner.to_owned(), hash: Sha256::digest(secret).into(), expires }
    }

    /// The id of the key in the directory's tables. It does not reveal the hash of the secret.
    pub fn id(&self) -> String {
        let digest = Sha256::new_with_prefix(b"holdpoint-key-id\n").chain_update(self.hash);
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What a caller may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Turn {
    Go,
    /// Wait this many seconds.
    Wait(u64),
    /// The key is unknown or expired.
    BadKey,
}

/// Counts requests by caller and minute.
#[derive(Debug)]
pub struct Rates {
    anonymous: u64,
    keyed: u64,
    keys: Vec<ApiKey>,
    shards: Vec<Mutex<HashMap<Caller, (i64, u64)>>>,
    hasher: RandomState,
}

impl Rates {
    pub fn new(anonymous: u64, keyed: u64, keys: Vec<ApiKey>) -> Rates {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Rates { anonymous, keyed, keys, shards, hasher: RandomState::new() }
    }

    /// Counts a request.
    pub fn take(&self, headers: &HeaderMap, address: IpAddr, now: Timestamp) -> Turn {
        match headers.contains_key(AUTHORIZATION) {
            false => self.count(Caller::address(address), self.anonymous, now),
            true => self.member(headers, address, now).map_or_else(|turn| turn, |_| Turn::Go),
        }
    }

    /// Counts a request that needs a key, and returns the key.
    pub fn member(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<&ApiKey, Turn> {
        let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = value.and_then(|value| value.strip_prefix(b"Bearer "));
        let token = token.filter(|token| token.len() <= MAX_HEADER_BYTES);
        let (caller, limit, found) = match token.and_then(|token| self.key(token, now)) {
            Some((at, key)) => (Caller::Key(at), self.keyed, Some(key)),
            // Guessing keys counts as a request of the address.
            None => (Caller::address(address), self.anonymous, None),
        };
        match self.count(caller, limit, now) {
            Turn::Go => found.ok_or(Turn::BadKey),
            other => Err(other),
        }
    }

    fn key(&self, token: &[u8], now: Timestamp) -> Option<(usize, &ApiKey)> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        // Compare hashes, so that timing reveals nothing about the secret.
        self.keys.iter().enumerate().find(|(_, key)| key.hash == hash && now < key.expires)
    }

    fn count(&self, caller: Caller, limit: u64, now: Timestamp) -> Turn {
        let minute = now.0.div_euclid(MINUTE_MS);
        let place = self.hasher.hash_one(&caller) as usize % SHARDS;
        let Some(shard) = self.shards.get(place) else { return Turn::Go };
        let mut counts = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_CALLERS / SHARDS && !counts.contains_key(&caller) {
            counts.retain(|_, (counted, _)| *counted == minute);
            if counts.len() >= MAX_CALLERS / SHARDS {
                counts.clear();
            }
        }
        let (counted, used) = counts.entry(caller).or_insert((minute, 0));
        if *counted != minute {
            (*counted, *used) = (minute, 0);
        }
        if *used >= limit {
            let left = MINUTE_MS - now.0.rem_euclid(MINUTE_MS);
            return Turn::Wait(left.unsigned_abs().div_ceil(1_000).max(1));
        }
        *used += 1;
        Turn::Go
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_790_000_040_000);

    fn rates() -> Rates {
        let key = ApiKey::new("acme", b"secret", Timestamp(START.0 + 1_000_000));
        Rates::new(3, 5, vec![key])
    }

    fn take(rates: &Rates, address: &str, token: Option<&str>, later: i64) -> Turn {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        rates.take(&headers, address.parse().unwrap(), Timestamp(START.0 + later))
    }

    #[test]
    fn an_address_has_so_many_requests_a_minute_and_no_more() {
        let rates = rates();
        for _ in 0..3 {
            assert_eq!(take(&rates, "1.1.1.1", None, 0), Turn::Go);
        }
        assert_eq!(take(&rates, "1.1.1.1", None, 20_000), Turn::Wait(40));
        assert_eq!(take(&rates, "::ffff:1.1.1.1", None, 0), Turn::Wait(60));
        assert_eq!(take(&rates, "1.1.1.2", None, 0), Turn::Go);
        assert_eq!(take(&rates, "1.1.1.1", None, 60_000), Turn::Go);
    }

    #[test]
    fn an_ipv6_network_counts_as_one() {
        let rates = rates();
        for last in 1..=3 {
            assert_eq!(take(&rates, &format!("2001:db8:1:1::{last}"), None, 0), Turn::Go);
        }
        assert!(matches!(take(&rates, "2001:db8:1:1:ffff::1", None, 0), Turn::Wait(_)));
        assert_eq!(take(&rates, "2001:db8:1:2::1", None, 0), Turn::Go);
    }

    #[test]
    fn a_key_has_its_own_count_until_it_expires_and_guessing_counts() {
        let rates = rates();
        for address in ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5"] {
            assert_eq!(take(&rates, address, Some("secret"), 0), Turn::Go);
        }
        assert!(matches!(take(&rates, "1.1.1.6", Some("secret"), 0), Turn::Wait(_)));
        assert_eq!(take(&rates, "1.1.1.6", Some("secret"), 1_000_000), Turn::BadKey);
        for _ in 0..3 {
            assert_eq!(take(&rates, "9.9.9.9", Some("guess"), 0), Turn::BadKey);
        }
        assert!(matches!(take(&rates, "9.9.9.9", Some("guess"), 0), Turn::Wait(_)));
    }

    #[test]
    fn callers_without_number_are_forgotten_not_kept() {
        let rates = Rates::new(1, 1, Vec::new());
        for number in 0..(MAX_CALLERS as u32 + 10_000) {
            let address = IpAddr::from(number.to_be_bytes());
            assert_eq!(rates.take(&HeaderMap::new(), address, START), Turn::Go);
        }
        let counted: usize = rates.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(counted <= MAX_CALLERS);
    }
}
