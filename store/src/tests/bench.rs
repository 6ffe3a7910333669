//! The fixtures for tests of both databases: a home of its own, a database for it, and ways to
//! bypass the store.

use crate::write::Limits;
use crate::{
    Act, Address, ArgsHash, CallBinding, Home, Location, NewPin, Observation, PostgresStore,
    SqliteStore, Store, StoreError,
};
use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId, EntryType, Surface};
use gate::pins::Basis;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
pub(crate) use testing::postgres_url;

pub(crate) const NOON: Timestamp = Timestamp(1_700_000_000_000);

/// The database that a test uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// Generates two tests from each function: one per database.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test]
            fn $name() {
                super::$name($crate::tests::bench::Kind::Sqlite);
            })*
        }
        mod on_postgres {
            $(#[test]
            fn $name() {
                if $crate::tests::bench::postgres_url().is_some() {
                    super::$name($crate::tests::bench::Kind::Postgres);
                }
            })*
        }
    };
}
pub(crate) use on_both;

/// A home in its own directory and a database, both removed at the end of the test.
#[derive(Debug)]
pub(crate) struct Bench {
    directory: TempDir,
    pub(crate) home: Home,
    /// For PostgreSQL: the address of a schema that no other test uses.
    pub(crate) url: Option<String>,
}

impl Bench {
    pub(crate) fn new(kind: Kind) -> Bench {
        match kind {
            Kind::Sqlite => Bench::with(None),
            Kind::Postgres => Bench::on(&postgres_url().unwrap()),
        }
    }

    /// Uses a server of the test's choice.
    pub(crate) fn on(server: &str) -> Bench {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        run_sql(server, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).unwrap();
        Bench::with(Some(format!("{server}?schema={schema}")))
    }

    fn with(url: Option<String>) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        Bench { directory, home, url }
    }

    pub(crate) fn store(&self) -> Box<dyn Store> {
        self.try_store().unwrap()
    }

    pub(crate) fn try_store(&self) -> Result<Box<dyn Store>, StoreError> {
        let location = self.url.as_deref().unwrap_or("sqlite");
        crate::open(&self.home, &Location::parse(location).unwrap())
    }

    /// Opens the store with lower limits.
    pub(crate) fn limited(&self, limits: Limits) -> Box<dyn Store> {
        if self.url.is_none() {
            let mut store = self.sqlite();
            store.limits = limits;
            return Box::new(store);
        }
        let mut store = self.postgres().unwrap();
        store.limits = limits;
        Box::new(store)
    }

    pub(crate) fn sqlite(&self) -> SqliteStore {
        SqliteStore::open(&self.home).unwrap()
    }

    pub(crate) fn postgres(&self) -> Result<PostgresStore, StoreError> {
        PostgresStore::open(&self.home, &self.address())
    }

    pub(crate) fn address(&self) -> Address {
        Address::parse(self.url.as_ref().unwrap()).unwrap()
    }

    /// A second home for the same database: another node.
    pub(crate) fn another_home(&self, name: &str) -> Home {
        Home::open(&self.directory.path().join(name)).unwrap()
    }

    pub(crate) fn key_path(&self) -> PathBuf {
        self.home.pins_key_path()
    }

    /// Changes the database without going through Holdpoint, with constraints and triggers
    /// disabled.
    pub(crate) fn edit(&self, sql: &str) {
        let aside = match &self.url {
            None => "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;",
            Some(_) => "SET session_replication_role = replica;",
        };
        self.edit_plainly(&format!("{aside}{sql}")).unwrap();
    }

    /// The same with constraints and triggers in force.
    pub(crate) fn edit_plainly(&self, sql: &str) -> Result<(), String> {
        let Some(url) = &self.url else {
            let connection = rusqlite::Connection::open(self.home.state_path()).unwrap();
            return connection.execute_batch(sql).map_err(|error| error.to_string());
        };
        let (server, schema) = url.split_once("?schema=").unwrap();
        run_sql(server, &format!("SET search_path TO {schema};{sql}"))
    }

    /// The first column of a query's result.
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        let Some(url) = &self.url else {
            let connection = rusqlite::Connection::open(self.home.state_path()).unwrap();
            let mut statement = connection.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap();
            return rows.map(Result::unwrap).collect();
        };
        let (server, schema) = url.split_once("?schema=").unwrap();
        ask_sql(server, &format!("SET search_path TO {schema};{sql}")).unwrap()
    }

    pub(crate) fn columns_of(&self, table: &str) -> Vec<String> {
        self.ask(&match &self.url {
            None => format!("SELECT name FROM pragma_table_info('{table}')"),
            Some(_) => format!(
                "SELECT column_name FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name = '{table}'"
            ),
        })
    }
}

impl Kind {
    /// A blob literal in SQL.
    pub(crate) fn blob(self, bytes: &[u8]) -> String {
        match self {
            Kind::Sqlite => format!("x'{}'", hex::encode(bytes)),
            Kind::Postgres => format!("'\\x{}'::bytea", hex::encode(bytes)),
        }
    }

    /// A text that Holdpoint would not write; invalid UTF-8 if the database allows it.
    pub(crate) fn nonsense(self) -> &'static str {
        match self {
            Kind::Sqlite => "CAST(x'ff00fe' AS TEXT)",
            Kind::Postgres => "'nonsense'",
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some((server, schema)) = self.url.as_ref().and_then(|url| url.split_once("?schema="))
        {
            // The server may have been stopped on purpose.
            let _ = run_sql(server, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
        }
    }
}

/// Runs statements on a separate connection.
pub(crate) fn run_sql(server: &str, sql: &str) -> Result<(), String> {
    ask_sql(server, sql).map(drop)
}

/// The first column of the result of the last statement.
pub(crate) fn ask_sql(server: &str, sql: &str) -> Result<Vec<String>, String> {
    use tokio_postgres::{NoTls, SimpleQueryMessage};
    let (server, sql) = (server.to_owned(), sql.to_owned());
    // On a separate thread, so that tests may run inside a runtime.
    let running = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connected = tokio_postgres::connect(&server, NoTls).await;
            let (client, connection) = connected.map_err(|error| format!("{error:?}"))?;
            tokio::spawn(connection);
            let messages = client.simple_query(&sql).await.map_err(|error| format!("{error:?}"))?;
            let first = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            };
            Ok(messages.iter().filter_map(first).collect())
        })
    });
    running.join().unwrap()
}

pub(crate) fn id(text: &str) -> ServerId {
    text.parse().unwrap()
}

pub(crate) fn tool_id(name: &str) -> EntryId {
    EntryId::new(EntryType::Tool, name)
}

pub(crate) fn tool(name: &str, description: &str) -> Entry {
    let raw = format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object"}}}}"#
    );
    Entry::from_raw(tool_id(name), &raw).unwrap()
}

pub(crate) fn pin(name: &str, description: &str, basis: Basis) -> NewPin {
    NewPin { entry: tool(name, description), basis }
}

pub(crate) fn surface(tools: &[Entry]) -> Surface {
    let mut surface = Surface::default();
    for entry in tools {
        surface.insert(entry.clone());
    }
    surface
}

pub(crate) fn observed(tools: &[Entry]) -> Observation {
    Observation::of(&surface(tools), NOON)
}

/// An act by a person, to be filled in.
pub(crate) fn act<'a>(server: &'a ServerId, name: &'static str) -> Act<'a> {
    Act::new(server, NOON, "ada", name)
}

/// Pins tools of a server as approved by a person.
pub(crate) fn pin_tools(store: &mut dyn Store, server: &str, tools: &[(&str, &str)]) {
    let server = id(server);
    let mut act = act(&server, "server.pin");
    act.status = Some(ServerStatus::Verified);
    act.pins = tools.iter().map(|(name, text)| pin(name, text, Basis::Person)).collect();
    store.record(act).unwrap();
}

/// The descriptions of an entry's pins, oldest first.
pub(crate) fn pinned(store: &dyn Store, server: &str, name: &str) -> Vec<String> {
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

/// Whether all pins of a server authenticate.
pub(crate) fn is_sound(store: &dyn Store, server: &str) -> bool {
    let book = store.pins(&id(server)).unwrap();
    if let Some(record) = store.server(&id(server)).unwrap() {
        assert_eq!(record.lost, book.lost, "both ways of asking agree");
    }
    book.lost.is_none() && book.tampered.is_empty()
}

/// A call that needs approval.
pub(crate) fn call() -> CallBinding {
    CallBinding {
        principal: "ada".to_owned(),
        server: id("reports"),
        tool: "make\0it".to_owned(),
        contract_hash: EntryHash::of(b"contract"),
        args_hash: ArgsHash([7; 32]),
    }
}
