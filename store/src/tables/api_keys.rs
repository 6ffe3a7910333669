//! Rows of API keys. A row that cannot be read is an error, so that its key opens nothing.

use super::events::Event;
use super::incident::signed;
use super::switch_seal;
use crate::act::within;
use crate::api_key::{
    ActorType, ApiKey, ApiKeyHash, ApiKeyId, ApiKeyStore, MAX_API_KEYS, NewApiKey,
};
use crate::by::By;
use crate::database::{Backend, Cell, Row, Transaction};
use crate::error::{Refusal, StoreError};
use crate::statistics::Day;
use gate::time::Timestamp;

const COLUMNS: &str =
    "id, hash, sub, actor_type, org, group_names, created_at, created_by, expires_at, revoked_at,
                       revoked_by, last_used_day, admin, clearance";

const GARBLED: StoreError = StoreError::Garbled { what: "an API key" };

impl<B: Backend> ApiKeyStore for B {
    fn add_api_key(&mut self, key: &NewApiKey, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        key.check_limits()?;
        switch_seal::change(self, |rows| add(rows, key, by))
    }

    fn api_key(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM api_keys WHERE hash = $1");
        self.read(|rows| {
            if let Some(reason) = switch_seal::read(rows, &self.keys())?.doubt {
                return Err(StoreError::OlderStore { reason });
            }
            rows.first(&query, &[hash.0.as_slice().into()], |row| from_row(row).ok_or(GARBLED))
        })
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM api_keys ORDER BY id");
        self.read(|rows| rows.all(&query, &[], |row| from_row(row).ok_or(GARBLED)))
    }

    fn sealed_api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM api_keys ORDER BY id");
        // Read the seal and the rows in one transaction.
        self.read(|rows| {
            if let Some(reason) = switch_seal::read(rows, &self.keys())?.doubt {
                return Err(StoreError::OlderStore { reason });
            }
            rows.all(&query, &[], |row| from_row(row).ok_or(GARBLED))
        })
    }

    fn revoke_api_key(&mut self, id: &ApiKeyId, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        switch_seal::change(self, |rows| {
            check_known(rows, id)?;
            let sql = "UPDATE api_keys SET revoked_at = $2, revoked_by = $3
                       WHERE id = $1 AND revoked_at IS NULL";
            let values = [id.as_str().into(), by.at.0.into(), by.name.into()];
            if rows.execute(sql, &values)? == 0 {
                return Ok(());
            }
            let subject = Some(id.as_str());
            Event { action: "key.revoke", subject, detail: None }.write(rows, by)
        })
    }

    fn note_api_key_use(&mut self, id: &ApiKeyId, day: Day) -> Result<(), StoreError> {
        let noted = "SELECT id FROM api_keys WHERE id = $1 AND last_used_day >= $2";
        let values = [id.as_str().into(), day.0.into()];
        // Read first: a key is used many times a day, and a write would wake every process.
        if self.read(|rows| rows.any(noted, &values))? {
            return Ok(());
        }
        self.write(|rows, _| {
            check_known(rows, id)?;
            let sql = "UPDATE api_keys SET last_used_day = $2 WHERE id = $1";
            rows.execute(sql, &values).map(drop)
        })
    }
}

fn add(rows: &dyn Transaction, key: &NewApiKey, by: By<'_>) -> Result<(), StoreError> {
    let known = "SELECT id FROM api_keys WHERE id = $1 OR hash = $2";
    let (id, hash) = (key.id.as_str(), key.hash.0.as_slice());
    if rows.any(known, &[id.into(), hash.into()])? {
        return Err(Refusal::Taken { what: "an API key", name: id.to_owned() }.into());
    }
    let count = rows.count("SELECT count(*) FROM api_keys", &[])?;
    within("the number of API keys", count.saturating_add(1), MAX_API_KEYS)?;
    rows.execute(
        "INSERT INTO api_keys (id, hash, sub, actor_type, org, group_names, created_at, created_by, expires_at, admin, clearance)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        &[
            id.into(),
            hash.into(),
            (&key.sub).into(),
            actor_type_name(key.actor_type).into(),
            key.org.as_ref().into(),
            (&serde_json::json!(key.groups).to_string()).into(),
            by.at.0.into(),
            by.name.into(),
            key.expires_at.map(|expires| expires.0).into(),
            i64::from(key.admin).into(),
            key.clearance.as_ref().into(),
        ],
    )?;
    Event { action: "key.create", subject: Some(id), detail: Some(&key.sub) }.write(rows, by)
}

fn check_known(rows: &dyn Transaction, id: &ApiKeyId) -> Result<(), StoreError> {
    if rows.any("SELECT id FROM api_keys WHERE id = $1", &[id.as_str().into()])? {
        Ok(())
    } else {
        Err(Refusal::Unknown { what: "API key", name: id.to_string() }.into())
    }
}

fn from_row(row: &dyn Row) -> Option<ApiKey> {
    let text = |index| row.cell(index).text();
    let number = |index| row.cell(index).optional(Cell::integer);
    Some(ApiKey {
        key: NewApiKey {
            id: text(0)?.parse().ok()?,
            hash: ApiKeyHash(row.cell(1).blob()?.try_into().ok()?),
            sub: text(2)?.to_owned(),
            actor_type: actor_type_named(text(3)?)?,
            org: row.cell(4).optional(Cell::text)?.map(str::to_owned),
            groups: serde_json::from_str(text(5)?).ok()?,
            expires_at: number(8)?.map(Timestamp),
            admin: match row.cell(12).integer()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            clearance: row.cell(13).optional(Cell::text)?.map(str::to_owned),
        },
        created: signed(row, 6, 7)?,
        revoked: match row.cell(9) {
            Cell::Null => None,
            _ => Some(signed(row, 9, 10)?),
        },
        last_used: number(11)?.map(Day),
    })
}

const ACTOR_TYPES: [ActorType; 3] = [ActorType::User, ActorType::Agent, ActorType::System];

const fn actor_type_name(actor_type: ActorType) -> &'static str {
    match actor_type {
        ActorType::User => "user",
        ActorType::Agent => "agent",
        ActorType::System => "system",
    }
}

fn actor_type_named(text: &str) -> Option<ActorType> {
    ACTOR_TYPES.into_iter().find(|known| actor_type_name(*known) == text)
}
