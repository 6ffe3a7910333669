//! Rows of sign-ins. Every step is a single statement under the writers' lock, so that of two
//! processes only one can use a code or replace a token.

use crate::act::within;
use crate::database::{Backend, Row, Transaction};
use crate::error::StoreError;
use crate::sign_in::{
    ClaimId, Claimed, MAX_SIGN_INS_PER_OWNER, SignIn, SignInKind, SignInName, SignInStore,
};
use gate::time::Timestamp;

const COLUMNS: &str = "kind, id, owner, at, expires_at, sealed";
const GARBLED: StoreError = StoreError::Garbled { what: "a sign-in" };

impl<B: Backend> SignInStore for B {
    fn put_sign_in(&mut self, record: &SignIn) -> Result<(), StoreError> {
        record.check_limits()?;
        self.write(|rows, _| {
            let values = [record.kind.as_str().into(), record.name.as_str().into()];
            rows.execute("DELETE FROM sign_ins WHERE kind = $1 AND id = $2", &values)?;
            insert(rows, record)
        })
    }

    fn add_sign_in(&mut self, record: &SignIn) -> Result<bool, StoreError> {
        record.check_limits()?;
        self.write(|rows, _| {
            if one(rows, record.kind, &record.name)?.is_some() {
                return Ok(false);
            }
            insert(rows, record).map(|()| true)
        })
    }

    fn sign_in(&self, kind: SignInKind, name: &SignInName) -> Result<Option<SignIn>, StoreError> {
        self.read(|rows| one(rows, kind, name))
    }

    fn sign_ins_of(&self, kind: SignInKind, owner: &str) -> Result<Vec<SignIn>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM sign_ins WHERE kind = $1 AND owner = $2 ORDER BY at, id"
        );
        let values = [kind.as_str().into(), owner.into()];
        self.read(|rows| rows.all(&query, &values, |row| from_row(row).ok_or(GARBLED)))
    }

    fn sign_ins(&self, kind: SignInKind) -> Result<Vec<SignIn>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM sign_ins WHERE kind = $1 ORDER BY at, id");
        let values = [kind.as_str().into()];
        self.read(|rows| rows.all(&query, &values, |row| from_row(row).ok_or(GARBLED)))
    }

    fn remove_sign_in(&mut self, kind: SignInKind, name: &SignInName) -> Result<bool, StoreError> {
        let sql = "DELETE FROM sign_ins WHERE kind = $1 AND id = $2";
        let values = [kind.as_str().into(), name.as_str().into()];
        self.write(|rows, _| Ok(rows.execute(sql, &values)? > 0))
    }

    fn claim_sign_in(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Claimed, StoreError> {
        let sql = "UPDATE sign_ins SET claim = $3, claimed_until = $4
                   WHERE kind = $1 AND id = $2 AND (claim IS NULL OR claimed_until <= $5)";
        let values = [
            kind.as_str().into(),
            name.as_str().into(),
            claim.as_str().into(),
            until.0.into(),
            now.0.into(),
        ];
        self.write(|rows, _| {
            let Some(record) = one(rows, kind, name)? else { return Ok(Claimed::Unknown) };
            match rows.execute(sql, &values)? {
                0 => Ok(Claimed::Elsewhere),
                _ => Ok(Claimed::Yours(Box::new(record))),
            }
        })
    }

    fn end_claim(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        replacement: Option<&SignIn>,
    ) -> Result<bool, StoreError> {
        if let Some(replacement) = replacement {
            replacement.check_limits()?;
        }
        let sql = "UPDATE sign_ins SET claim = NULL, claimed_until = NULL
                   WHERE kind = $1 AND id = $2 AND claim = $3";
        let values = [kind.as_str().into(), name.as_str().into(), claim.as_str().into()];
        self.write(|rows, _| {
            if rows.execute(sql, &values)? == 0 {
                return Ok(false);
            }
            if let Some(replacement) = replacement {
                let sql =
                    "UPDATE sign_ins SET sealed = $3, expires_at = $4 WHERE kind = $1 AND id = $2";
                let values = [
                    kind.as_str().into(),
                    name.as_str().into(),
                    (&replacement.sealed).into(),
                    replacement.expires_at.0.into(),
                ];
                rows.execute(sql, &values)?;
            }
            Ok(true)
        })
    }

    fn expire_sign_ins(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        // Read first: a write would wake every process, and mostly nothing is due.
        let due = "SELECT id FROM sign_ins WHERE expires_at <= $1";
        if !self.read(|rows| rows.any(due, &[now.0.into()]))? {
            return Ok(0);
        }
        let sql = "DELETE FROM sign_ins WHERE expires_at <= $1";
        self.write(|rows, _| rows.execute(sql, &[now.0.into()]))
    }
}

fn insert(rows: &dyn Transaction, record: &SignIn) -> Result<(), StoreError> {
    let (kind, owner) = (record.kind.as_str(), record.owner.as_str());
    let query = "SELECT count(*) FROM sign_ins WHERE kind = $1 AND owner = $2";
    let count = rows.count(query, &[kind.into(), owner.into()])?;
    within(
        "the number of sign-ins of one person",
        count.saturating_add(1),
        MAX_SIGN_INS_PER_OWNER,
    )?;
    rows.execute(
        "INSERT INTO sign_ins (kind, id, owner, at, expires_at, sealed) VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            kind.into(),
            record.name.as_str().into(),
            owner.into(),
            record.at.0.into(),
            record.expires_at.0.into(),
            (&record.sealed).into(),
        ],
    )?;
    Ok(())
}

fn one(
    rows: &dyn Transaction,
    kind: SignInKind,
    name: &SignInName,
) -> Result<Option<SignIn>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM sign_ins WHERE kind = $1 AND id = $2");
    let values = [kind.as_str().into(), name.as_str().into()];
    rows.first(&query, &values, |row| from_row(row).ok_or(GARBLED))
}

fn from_row(row: &dyn Row) -> Option<SignIn> {
    let text = |index| row.cell(index).text();
    let kind = text(0)?;
    Some(SignIn {
        kind: SignInKind::ALL.into_iter().find(|known| known.as_str() == kind)?,
        name: text(1)?.parse().ok()?,
        owner: text(2)?.to_owned(),
        at: Timestamp(row.cell(3).integer()?),
        expires_at: Timestamp(row.cell(4).integer()?),
        sealed: text(5)?.to_owned(),
    })
}
