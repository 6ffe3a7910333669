//! Older versions stored the words of launches in clear text. Their databases are rewritten when
//! first opened, and again if a running gate of an older version wrote to them later.
//!
//! INVARIANT: a row authenticates afterwards exactly if it did before.

use crate::act::Act;
use crate::authenticate::PinFields;
use crate::database::{Backend, Transaction};
use crate::error::StoreError;
use crate::key::Key;
use crate::launch_key::LaunchKey;
use crate::record::{Launch, Observation};
use crate::tables::history::{Line, Lines};
use crate::tables::observation;
use crate::tables::pins::{PinRow, columns};
use crate::tables::servers::{self, ServerRow, sealed_pins};
use contract::origin::{ProgramOrigin, Redactor, is_hidden, redact_entry};
use contract::surface::{Entry, EntryId, EntryType};
use gate::server::ServerId;
use gate::time::Timestamp;
use std::path::{Path, PathBuf};

/// The name of the marker among the counters; its value is one of the states below.
const MARKER: &str = "launches_redacted";
/// The rows were rewritten, but the database's files may still contain the old data.
const REWRITTEN: i64 = 1;
/// The old data is gone from the database's files as well.
const FINISHED: i64 = 2;
/// Counts the revisions written by versions that redact. Older versions do not increment it, so
/// after an act of theirs the servers' revisions add up to more.
const REVISIONS: &str = "launches_redacted_revisions";

/// The name of the act in history.
const REDACT: &str = "server.redact";
const HOLDPOINT: &str = "holdpoint";
/// The detail recorded in history if the server's id itself was made from such a word.
pub(crate) const IN_ID: &str = "its id, and so its receipts, may hold a word of its launch";
/// Shorter parts of words are no evidence when found in an id.
const MIN_PART: usize = 6;

/// Rewrites the database if that was not done yet, or if an older version wrote to it since. A
/// database that cannot be rewritten now is tried again at the next opening.
pub(crate) fn redact(store: &mut impl Backend) -> Result<(), StoreError> {
    let is_pending = |rows: &dyn Transaction| {
        Ok((counter(rows, MARKER)? < FINISHED || has_older_acts(rows)?) && servers::any(rows)?)
    };
    if !store.read(is_pending)? {
        return Ok(());
    }
    let [open, close] = store.statements_around_history_edit();
    let is_rewritten = store.write(|rows, keys| {
        if counter(rows, MARKER)? >= REWRITTEN && !has_older_acts(rows)? {
            return Ok(true);
        }
        // Without the key, rewritten rows could not be authenticated, and restoring the key would
        // not help any more.
        let Ok(key) = keys.read()? else { return Ok(false) };
        rewrite(rows, &key, &open, &close)?;
        set(rows, REVISIONS, revisions(rows)?)?;
        set(rows, MARKER, REWRITTEN)?;
        Ok(true)
    })?;
    if is_rewritten && store.drop_old_bytes()? {
        store.write(|rows, _| set(rows, MARKER, FINISHED))?;
    }
    Ok(())
}

/// Records, with the first server of a database, that no older version has written to it.
pub(crate) fn begin(rows: &dyn Transaction) -> Result<(), StoreError> {
    if servers::any(rows)? {
        return Ok(());
    }
    set(rows, REVISIONS, 0)?;
    set(rows, MARKER, FINISHED)
}

/// Records that this version incremented a server's revision.
pub(crate) fn count_revision(rows: &dyn Transaction) -> Result<(), StoreError> {
    set(rows, REVISIONS, counter(rows, REVISIONS)?.wrapping_add(1))
}

/// Whether an act was written by a version that does not redact.
fn has_older_acts(rows: &dyn Transaction) -> Result<bool, StoreError> {
    Ok(counter(rows, REVISIONS)? != revisions(rows)?)
}

/// The sum of all servers' revisions. Added here, not in SQL: an edited number must not make the
/// query fail.
fn revisions(rows: &dyn Transaction) -> Result<i64, StoreError> {
    let each = rows.all("SELECT revision FROM servers", &[], |row| Ok(row.cell(0).integer()))?;
    Ok(each.into_iter().flatten().fold(0, i64::wrapping_add))
}

fn counter(rows: &dyn Transaction, name: &str) -> Result<i64, StoreError> {
    let query = "SELECT value FROM counters WHERE name = $1";
    let found = rows.first(query, &[name.into()], |row| Ok(row.cell(0).integer()))?;
    Ok(found.flatten().unwrap_or_default())
}

fn set(rows: &dyn Transaction, name: &str, value: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO counters (name, value) VALUES ($1, $2)
               ON CONFLICT (name) DO UPDATE SET value = $2";
    rows.execute(sql, &[name.into(), value.into()])?;
    Ok(())
}

fn rewrite(
    rows: &dyn Transaction,
    key: &Key,
    open_history: &str,
    close_history: &str,
) -> Result<(), StoreError> {
    let launch_key = LaunchKey::of(key);
    for row in servers::rows(rows)? {
        rewrite_server(rows, key, &launch_key, row)?;
    }
    // The text of discarded origin pins is not needed any more.
    let query = "SELECT seq FROM history WHERE entry_type = 'origin' AND raw IS NOT NULL LIMIT 1";
    if rows.any(query, &[])? {
        rows.execute(open_history, &[])?;
        rows.execute("UPDATE history SET raw = NULL WHERE entry_type = 'origin'", &[])?;
        rows.execute(close_history, &[])?;
    }
    Ok(())
}

fn rewrite_server(
    rows: &dyn Transaction,
    key: &Key,
    launch_key: &LaunchKey,
    mut row: ServerRow,
) -> Result<(), StoreError> {
    let is_sound = row.wrong_seal(sealed_pins(rows, key, &row.id)?.seal).is_none();
    let launch = row.launch.as_deref().and_then(|text| serde_json::from_str::<Launch>(text).ok());
    let directory = launch.as_ref().and_then(Launch::directory).map(PathBuf::from);
    let hash = |word: &str| launch_key.hash(word);
    let exists = |path: &str| exists(path, directory.as_deref());
    let redactor = Redactor { exists: &exists, keyed_hash: &hash };
    let kept = launch.as_ref().map(|launch| launch.redacted(&redactor));
    let has_words = launch != kept;
    let in_id =
        launch.as_ref().zip(kept.as_ref()).is_some_and(|(old, new)| is_in_id(&row.id, old, new));
    row.launch = kept.map(|launch| serde_json::json!(launch).to_string());
    let redact = |raw: &str| redact_entry(raw, &redactor);
    let pins = rewrite_pins(rows, key, &row.id, &redact, Untrusted::Emptied)?;
    let id = row.id.parse::<ServerId>().ok();
    if let Some(id) = &id {
        rewrite_observation(rows, id, &redact)?;
    }
    if is_sound {
        let seal = sealed_pins(rows, key, &row.id)?.seal;
        row.seal = Some(seal.finish(row.sealed_fields()).to_vec());
    }
    row.revision = row.revision.saturating_add(1);
    row.write(rows)?;
    if let (Some(id), true) = (&id, has_words || pins > 0) {
        let act = Act::new(id, Timestamp(row.last_seen), HOLDPOINT, REDACT);
        let detail = in_id.then(|| IN_ID.to_owned());
        Lines::new(rows, &act, Line { action: REDACT, detail, ..Line::default() })?.finish()?;
    }
    Ok(())
}

/// Rewrites the pinned origin of a server if `renew` returns an equivalent text for it.
pub(crate) fn renew_origin(
    store: &mut impl Backend,
    id: &ServerId,
    renew: Renew<'_>,
) -> Result<(), StoreError> {
    let is_pending = |rows: &dyn Transaction| {
        let query = "SELECT raw FROM pins WHERE server = $1 AND entry_type = 'origin'";
        let pinned = rows.all(query, &[id.as_str().into()], |row| {
            Ok(row.cell(0).text().is_some_and(|raw| renew(raw).is_some()))
        })?;
        Ok(pinned.contains(&true))
    };
    if !store.read(is_pending)? {
        return Ok(());
    }
    store.write(|rows, keys| {
        let (Ok(key), Some(mut row)) = (keys.read()?, ServerRow::read(rows, id)?) else {
            return Ok(());
        };
        // A record that is not trusted is left for a person to review.
        if row.wrong_seal(sealed_pins(rows, &key, &row.id)?.seal).is_some() {
            return Ok(());
        }
        rewrite_pins(rows, &key, &row.id, renew, Untrusted::Left)?;
        let seal = sealed_pins(rows, &key, &row.id)?.seal;
        row.seal = Some(seal.finish(row.sealed_fields()).to_vec());
        row.revision = row.revision.saturating_add(1);
        count_revision(rows)?;
        row.write(rows)
    })
}

/// Returns the new text of an origin; `None` if it stays.
type Renew<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What to do with the text of a pin that does not authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Untrusted {
    Emptied,
    Left,
}

/// The new content of a pin's row.
struct Rewritten {
    seq: i64,
    raw: String,
    entry_hash: String,
    definition_hash: Option<String>,
    authentication: Vec<u8>,
}

/// Rewrites a server's origin pins, and returns how many.
fn rewrite_pins(
    rows: &dyn Transaction,
    key: &Key,
    server: &str,
    renew: Renew<'_>,
    untrusted: Untrusted,
) -> Result<usize, StoreError> {
    let query =
        format!("SELECT {} FROM pins WHERE server = $1 AND entry_type = 'origin'", columns());
    let found = rows.all(&query, &[server.into()], |row| {
        let seq = row.cell(0).integer().unwrap_or_default();
        Ok((seq, PinRow::from_row(row).and_then(|pin| rewritten(&pin, key, renew))))
    })?;
    let mut count = 0;
    for (seq, pin) in found {
        // A row with any other text is not trusted: empty the text, so that the row stays
        // untrusted.
        let empty = || Rewritten {
            seq,
            raw: "{}".to_owned(),
            entry_hash: String::new(),
            definition_hash: None,
            authentication: Vec::new(),
        };
        let pin = match (pin, untrusted) {
            (Some(Some(pin)), Untrusted::Left) if pin.authentication.is_empty() => continue,
            (Some(Some(pin)), _) => pin,
            (None, Untrusted::Emptied) => empty(),
            (Some(None), _) | (None, Untrusted::Left) => continue,
        };
        count += 1;
        rows.execute(
            "UPDATE pins SET raw = $2, entry_hash = $3, definition_hash = $4, authentication = $5 WHERE seq = $1",
            &[
                pin.seq.into(),
                (&pin.raw).into(),
                (&pin.entry_hash).into(),
                pin.definition_hash.as_ref().into(),
                pin.authentication.as_slice().into(),
            ],
        )?;
    }
    Ok(count)
}

/// Returns `Some(None)` for a pin that stays as it is, and `None` for one that cannot be read.
fn rewritten(pin: &PinRow<'_>, key: &Key, renew: Renew<'_>) -> Option<Option<Rewritten>> {
    let fields = pin.fields;
    let is_authentic = fields.matches(key, pin.authentication);
    let raw = match renew(fields.raw) {
        Some(raw) if raw != fields.raw => raw,
        Some(_) => return Some(None),
        // A removed entry has no words.
        None => return is_authentic.then_some(None),
    };
    let entry = Entry::from_raw(EntryId::only(EntryType::Origin), &raw).ok()?;
    let entry_hash = entry.entry_hash().to_string();
    let definition_hash =
        fields.definition_hash.and(entry.definition_hash()).map(|hash| hash.to_string());
    let renewed = PinFields {
        raw: &raw,
        entry_hash: &entry_hash,
        definition_hash: definition_hash.as_deref(),
        ..fields
    };
    let authentication =
        if is_authentic { renewed.authentication(key).to_vec() } else { Vec::new() };
    let seq = fields.seq;
    Some(Some(Rewritten { seq, entry_hash, definition_hash, authentication, raw: raw.clone() }))
}

/// Rewrites the observation. One that cannot be read is removed: the next check of the server
/// replaces it.
fn rewrite_observation(
    rows: &dyn Transaction,
    id: &ServerId,
    renew: Renew<'_>,
) -> Result<(), StoreError> {
    let seen = match observation::read(rows, id) {
        Ok(None) => return Ok(()),
        Ok(Some(seen)) if seen.origin.is_none() => return Ok(()),
        Ok(Some(seen)) => redacted_observation(&seen, renew),
        Err(StoreError::Unreadable { .. }) => None,
        Err(error) => return Err(error),
    };
    match seen {
        Some(seen) => observation::write(rows, id, &seen),
        None => observation::remove(rows, id),
    }
}

fn redacted_observation(seen: &Observation, renew: Renew<'_>) -> Option<Observation> {
    let raw = renew(seen.origin.as_deref()?)?;
    let mut surface = seen.surface().ok()?;
    surface.insert(Entry::from_raw(EntryId::only(EntryType::Origin), &raw).ok()?);
    Some(Observation::of(&surface, seen.observed_at))
}

/// Whether a path of a launch exists, relative to the folder that it starts in.
pub fn exists(path: &str, directory: Option<&Path>) -> bool {
    let home = || std::env::home_dir();
    let path = match path.strip_prefix("~/") {
        Some(inside) => home().map(|home| home.join(inside)),
        None => Some(directory.map_or_else(|| PathBuf::from(path), |folder| folder.join(path))),
    };
    path.is_some_and(|path| path.exists())
}

/// Whether the id contains a part of a word that is now hidden.
fn is_in_id(id: &str, old: &Launch, new: &Launch) -> bool {
    let words = old.words().into_iter().zip(new.words()).filter(|(old, new)| old != new);
    let in_id = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain = |part: &str| part.chars().map(in_id).take(40).collect::<String>();
    let mut parts = words.flat_map(|(old, _)| old.split(['/', '=', ':', '@', '?', '&', ' ', '#']));
    parts.any(|part| part.len() >= MIN_PART && id.contains(plain(part).trim_matches('-')))
}

impl Launch {
    fn directory(&self) -> Option<&str> {
        match self {
            Launch::Program { directory, .. } => directory.as_deref(),
            Launch::Url { .. } => None,
        }
    }

    fn words(&self) -> Vec<&str> {
        match self {
            Launch::Program { command, .. } => command.iter().map(String::as_str).collect(),
            Launch::Url { url, .. } => vec![url],
        }
    }

    /// The launch in the form that is stored now.
    fn redacted(&self, redactor: &Redactor<'_>) -> Launch {
        let mut kept = self.clone();
        match &mut kept {
            Launch::Program { command, has_secrets, .. } => {
                if let Some((program, arguments)) = command.split_first() {
                    let origin = ProgramOrigin::again(program, arguments, redactor);
                    *has_secrets |= origin.has_secrets;
                    *command = std::iter::once(origin.program).chain(origin.arguments).collect();
                }
            }
            Launch::Url { url, has_secrets, .. } if !is_hidden(url) => {
                let address = redactor.address(url);
                *has_secrets |= address != *url;
                *url = address;
            }
            Launch::Url { .. } => {}
        }
        kept
    }
}
