//! The servers that were signed in to, for `status`, `doctor` and `sign-out`. Contains no secrets:
//! those are in the keyring.

use crate::screen;
use contract::time::Timestamp;
use gate::server::ServerId;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "sign-ins.json";
/// The largest file that is read, and the most sign-ins in it.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_SIGN_INS: usize = 1_000;

/// A recorded sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownSignIn {
    pub(crate) id: String,
    /// The name of its entry in the keyring.
    pub(crate) key: String,
    /// The host of the server, and its authorization server.
    pub(crate) host: String,
    pub(crate) issuer: String,
    /// Unix time in milliseconds.
    pub(crate) since: i64,
    pub(crate) allow_private: bool,
}

impl KnownSignIn {
    pub(crate) fn words(&self) -> String {
        let KnownSignIn { id, host, issuer, since, .. } = self;
        let (since, issuer) = (Timestamp(*since), screen::readable(issuer));
        format!(
            "`{id}` is signed in to {host} at {issuer} since {since}: Holdpoint holds its tokens, in the keyring of this system"
        )
    }
}

/// All sign-ins of a home.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownSignIns {
    sign_ins: Vec<KnownSignIn>,
}

impl KnownSignIns {
    /// Reads the file. One that cannot be read counts as empty: the tokens themselves are in the
    /// keyring.
    pub(crate) fn read(home: &Path) -> KnownSignIns {
        let path = home.join(FILE);
        let is_small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= MAX_BYTES);
        let text = is_small.then(|| std::fs::read_to_string(&path).ok()).flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    pub(crate) fn of(&self, id: &ServerId) -> Option<&KnownSignIn> {
        self.sign_ins.iter().find(|known| known.id == id.as_str())
    }

    pub(crate) fn all(&self) -> &[KnownSignIn] {
        &self.sign_ins
    }

    /// The ids of the servers that share a sign-in.
    pub(crate) fn sharing(&self, key: &str) -> Vec<&str> {
        let shared = self.sign_ins.iter().filter(|known| known.key == key);
        shared.map(|known| known.id.as_str()).collect()
    }

    pub(super) fn remember(home: &Path, new: KnownSignIn) {
        KnownSignIns::change(home, |all| {
            all.retain(|known| known.id != new.id);
            all.push(new);
            let past = all.len().saturating_sub(MAX_SIGN_INS);
            all.drain(..past);
        });
    }

    pub(crate) fn forget(home: &Path, key: &str) {
        KnownSignIns::change(home, |all| all.retain(|known| known.key != key));
    }

    fn change(home: &Path, change: impl FnOnce(&mut Vec<KnownSignIn>)) {
        let _lock = super::keyring::lock_file(&home.join("sign-ins.lock"));
        let mut all = KnownSignIns::read(home);
        change(&mut all.sign_ins);
        // A failure to write is ignored: the sign-in works without this record.
        let written = tempfile::NamedTempFile::new_in(home).and_then(|file| {
            serde_json::to_writer(&file, &all)?;
            file.persist(home.join(FILE)).map(drop).map_err(|error| error.error)
        });
        let _ = written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: &str, key: &str) -> KnownSignIn {
        KnownSignIn {
            id: id.into(),
            key: key.into(),
            host: "a.example".into(),
            issuer: "https://as.example".into(),
            since: 1,
            allow_private: false,
        }
    }

    #[test]
    fn sign_ins_are_remembered_once_for_each_server_and_forgotten_together() {
        let home = tempfile::tempdir().unwrap();
        for (id, key) in [("a", "1"), ("b", "1"), ("c", "2"), ("a", "1")] {
            KnownSignIns::remember(home.path(), known(id, key));
        }
        let all = KnownSignIns::read(home.path());
        assert_eq!(all.all().len(), 3);
        assert_eq!(all.sharing("1"), ["b", "a"]);
        KnownSignIns::forget(home.path(), "1");
        let all = KnownSignIns::read(home.path());
        assert!(all.of(&"a".parse().unwrap()).is_none() && all.of(&"c".parse().unwrap()).is_some());
    }

    #[test]
    fn no_more_are_remembered_than_the_limit() {
        let home = tempfile::tempdir().unwrap();
        let all = (0..MAX_SIGN_INS).map(|number| known(&format!("s{number}"), "k")).collect();
        KnownSignIns::change(home.path(), |kept| *kept = all);
        KnownSignIns::remember(home.path(), known("new", "n"));
        let all = KnownSignIns::read(home.path());
        assert_eq!(all.all().len(), MAX_SIGN_INS);
        assert!(
            all.of(&"new".parse().unwrap()).is_some() && all.of(&"s0".parse().unwrap()).is_none()
        );
    }
}
