//! Passes sign-ins through: the gateway seals their content, and records people's actions in its
//! own ledger.

use super::Witnessed;
use crate::error::StoreError;
use crate::sign_in::{ClaimId, Claimed, SignIn, SignInKind, SignInName, SignInStore};
use gate::time::Timestamp;

impl SignInStore for Witnessed {
    fn put_sign_in(&mut self, record: &SignIn) -> Result<(), StoreError> {
        self.store.put_sign_in(record)
    }

    fn add_sign_in(&mut self, record: &SignIn) -> Result<bool, StoreError> {
        self.store.add_sign_in(record)
    }

    fn sign_in(&self, kind: SignInKind, name: &SignInName) -> Result<Option<SignIn>, StoreError> {
        self.store.sign_in(kind, name)
    }

    fn sign_ins_of(&self, kind: SignInKind, owner: &str) -> Result<Vec<SignIn>, StoreError> {
        self.store.sign_ins_of(kind, owner)
    }

    fn sign_ins(&self, kind: SignInKind) -> Result<Vec<SignIn>, StoreError> {
        self.store.sign_ins(kind)
    }

    fn remove_sign_in(&mut self, kind: SignInKind, name: &SignInName) -> Result<bool, StoreError> {
        self.store.remove_sign_in(kind, name)
    }

    fn claim_sign_in(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Claimed, StoreError> {
        self.store.claim_sign_in(kind, name, claim, now, until)
    }

    fn end_claim(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        replacement: Option<&SignIn>,
    ) -> Result<bool, StoreError> {
        self.store.end_claim(kind, name, claim, replacement)
    }

    fn expire_sign_ins(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        self.store.expire_sign_ins(now)
    }
}
