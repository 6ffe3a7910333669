//! Where a store is: the home's SQLite file, or a PostgreSQL database that several homes share.

use crate::Store;
use crate::error::StoreError;
use crate::home::Home;
use crate::postgres::{Address, AddressError, MAX_ADDRESS_BYTES, PostgresStore};
use crate::sqlite::SqliteStore;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// A place where a store can be opened.
#[derive(Debug, Clone, Default)]
pub enum Location {
    /// `state.db` in the home.
    #[default]
    Sqlite,
    /// `state.db` in another home.
    SqliteIn(PathBuf),
    Postgres(Box<Address>),
}

/// Why a text does not name a store. The text is not repeated: it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error("expected `sqlite`, `sqlite:DIR`, `postgres://…`, `env:VARIABLE` or `file:PATH`")]
    Unknown,
    #[error("the variable `{0}` is not set")]
    NoVariable(String),
    #[error("`{0}`: {1}")]
    NoFile(String, String),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(
        "a password does not belong here: name a place that has the address, with `env:VARIABLE` or `file:PATH`"
    )]
    PasswordInSight,
}

impl Location {
    /// Parses `sqlite`, `sqlite:DIR` or `postgres://…`, or reads one of these through
    /// `env:VARIABLE` or `file:PATH`.
    pub fn parse(text: &str) -> Result<Location, LocationError> {
        match text.split_once(':') {
            Some(("env", variable)) => {
                let value = std::env::var(variable)
                    .map_err(|_| LocationError::NoVariable(variable.to_owned()))?;
                Location::direct(value.trim())
            }
            Some(("file", path)) => Location::direct(read_address(path)?.trim()),
            _ => Location::direct(text),
        }
    }

    /// Like [`Location::parse`], for a text that others can see: a password in it is refused.
    pub fn parse_without_password(text: &str) -> Result<Location, LocationError> {
        let location = Location::parse(text)?;
        if location.shows_password(text) {
            Err(LocationError::PasswordInSight)
        } else {
            Ok(location)
        }
    }

    /// Whether the text itself, rather than what it refers to, contains a password.
    pub fn shows_password(&self, text: &str) -> bool {
        let is_direct = !text.starts_with("env:") && !text.starts_with("file:");
        is_direct && matches!(self, Location::Postgres(address) if address.has_password())
    }

    /// Whether both locations are the same database, given their homes.
    pub(crate) fn is_same_database(
        &self,
        home: &Home,
        other: &Location,
        other_home: &Home,
    ) -> bool {
        match (self, other) {
            (Location::Postgres(one), Location::Postgres(two)) => {
                one.to_string() == two.to_string()
            }
            (Location::Postgres(_), _) | (_, Location::Postgres(_)) => false,
            (Location::Sqlite | Location::SqliteIn(_), _) => home == other_home,
        }
    }

    fn direct(text: &str) -> Result<Location, LocationError> {
        match text.split_once(':') {
            None if text == "sqlite" => Ok(Location::Sqlite),
            Some(("sqlite", directory)) if !directory.is_empty() => {
                Ok(Location::SqliteIn(directory.into()))
            }
            Some(("postgres" | "postgresql", _)) => {
                Ok(Location::Postgres(Box::new(Address::parse(text)?)))
            }
            _ => Err(LocationError::Unknown),
        }
    }
}

impl fmt::Display for Location {
    /// Displays the location without its password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Sqlite => formatter.write_str("sqlite"),
            Location::SqliteIn(directory) => write!(formatter, "sqlite:{}", directory.display()),
            Location::Postgres(address) => address.fmt(formatter),
        }
    }
}

fn read_address(path: &str) -> Result<String, LocationError> {
    let problem = |error: std::io::Error| LocationError::NoFile(path.to_owned(), error.to_string());
    let mut text = String::new();
    let file = File::open(path).map_err(problem)?;
    // Read one byte more than an address may have, and some for the line ending.
    file.take(MAX_ADDRESS_BYTES as u64 + 16).read_to_string(&mut text).map_err(problem)?;
    Ok(text)
}

/// Opens the store of a home.
pub fn open(home: &Home, location: &Location) -> Result<Box<dyn Store>, StoreError> {
    Ok(match location {
        Location::Sqlite => Box::new(SqliteStore::open(home)?),
        Location::SqliteIn(directory) => Box::new(SqliteStore::open(&Home::open(directory)?)?),
        Location::Postgres(address) => Box::new(PostgresStore::open(home, address)?),
    })
}

#[cfg(test)]
mod tests {
    use super::{Location, LocationError};

    fn parse(text: &str) -> Result<String, LocationError> {
        Location::parse(text).map(|location| location.to_string())
    }

    #[test]
    fn places_are_read_directly_or_from_where_they_are_kept() {
        assert_eq!(parse("sqlite").unwrap(), "sqlite");
        assert_eq!(parse("sqlite:/srv/home").unwrap(), "sqlite:/srv/home");
        let shown = "postgres://ada@localhost:5432/x";
        assert_eq!(parse("postgres://ada:s3cret@localhost/x").unwrap(), shown);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("address");
        std::fs::write(&path, "postgres://ada:s3cret@localhost/x\n").unwrap();
        let text = format!("file:{}", path.display());
        assert_eq!(parse(&text).unwrap(), shown);
        // The content of a file or variable is not resolved again.
        std::fs::write(&path, &text).unwrap();
        assert_eq!(parse(&text), Err(LocationError::Unknown));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(parse(&text), Err(LocationError::NoFile(..))));
        let variable = "HOLDPOINT_NO_SUCH_VARIABLE";
        let missing = LocationError::NoVariable(variable.to_owned());
        assert_eq!(parse(&format!("env:{variable}")), Err(missing));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "sqlite:", "mysql://x", "nonsense", "SQLITE"] {
            assert_eq!(parse(text), Err(LocationError::Unknown), "{text}");
        }
        assert!(matches!(parse("postgres:x"), Err(LocationError::Address(_))));
    }

    #[test]
    fn a_password_that_others_can_see_is_told_from_one_they_cannot() {
        let seen = "postgres://ada:s3cret@localhost/x";
        let refused = Location::parse_without_password(seen).unwrap_err();
        assert_eq!(refused, LocationError::PasswordInSight);
        assert!(Location::parse_without_password("postgres://ada@localhost/x").is_ok());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("address");
        std::fs::write(&path, seen).unwrap();
        let text = format!("file:{}", path.display());
        assert!(Location::parse_without_password(&text).is_ok());
        for (location, text) in [(Location::parse(seen), seen), (Location::parse(&text), &text)] {
            assert_eq!(location.unwrap().shows_password(text), text == seen);
        }
    }
}
