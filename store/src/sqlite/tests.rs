//! The SQLite store as a whole: acts, opening, tampering, sizes.

use super::SqliteStore;
use crate::{Act, Home, NewPin, Observation, Store};
use contract::surface::{Entry, EntryId, EntryType, Surface};
use gate::pins::Basis;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;

mod acts;
mod mending;
mod observing;
mod opening;
mod sizes;
mod tampering;

const NOON: Timestamp = Timestamp(1_700_000_000_000);

/// A home in a directory of its own, gone with the test.
struct Bench {
    _directory: TempDir,
    home: Home,
}

impl Bench {
    fn new() -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        Bench { _directory: directory, home }
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.home).unwrap()
    }

    /// Changes the file behind Holdpoint's back.
    fn edit(&self, sql: &str) {
        let connection = Connection::open(self.home.state_path()).unwrap();
        connection
            .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;")
            .unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

fn id(text: &str) -> ServerId {
    text.parse().unwrap()
}

fn tool_id(name: &str) -> EntryId {
    EntryId::new(EntryType::Tool, name)
}

fn tool(name: &str, description: &str) -> Entry {
    let raw = format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object"}}}}"#
    );
    Entry::from_raw(tool_id(name), &raw).unwrap()
}

fn pin(name: &str, description: &str, basis: Basis) -> NewPin {
    NewPin { entry: tool(name, description), basis }
}

fn surface(tools: &[Entry]) -> Surface {
    let mut surface = Surface::default();
    for entry in tools {
        surface.insert(entry.clone());
    }
    surface
}

fn observed(tools: &[Entry]) -> Observation {
    Observation::of(&surface(tools), NOON)
}

/// An act by a person, to be filled in.
fn act<'a>(server: &'a ServerId, name: &'static str) -> Act<'a> {
    Act::new(server, NOON, "ada", name)
}

/// Pins tools of a server on a person's word.
fn pin_tools(store: &mut SqliteStore, server: &str, tools: &[(&str, &str)]) {
    let server = id(server);
    let mut act = act(&server, "server.pin");
    act.status = Some(ServerStatus::Verified);
    act.pins = tools.iter().map(|(name, text)| pin(name, text, Basis::Person)).collect();
    store.record(act).unwrap();
}

/// The descriptions of an entry's pins, oldest first.
fn pinned(store: &SqliteStore, server: &str, name: &str) -> Vec<String> {
    let book = store.pins(&id(server)).unwrap();
    let texts = book.get(&tool_id(name)).map(|pins| {
        pins.iter()
            .map(|pin| {
                let value: serde_json::Value = serde_json::from_str(pin.entry.raw()).unwrap();
                value["description"].as_str().unwrap().to_owned()
            })
            .collect()
    });
    texts.unwrap_or_default()
}

/// Whether nothing is wrong with a server's pins.
fn is_sound(store: &SqliteStore, server: &str) -> bool {
    let book = store.pins(&id(server)).unwrap();
    if let Some(record) = store.server(&id(server)).unwrap() {
        assert_eq!(record.lost, book.lost, "both ways of asking agree");
    }
    book.lost.is_none() && book.tampered.is_empty()
}
