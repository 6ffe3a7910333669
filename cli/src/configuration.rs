//! Turns `holdpoint.toml` into the settings of a gate, a store and an export.

mod admission;
mod entry;
mod export;
mod gate;

pub(crate) use entry::Looser;
pub(crate) use export::{export_settings, start_export};

use crate::failure::Failure;
use ::gate::posture::{Posture, Settings};
use ::gate::server::ServerId;
use settings::{ArgsHash, Fsync, Keys, OnFull};
use std::path::Path;
use store::Location;
use store::receipts;

/// The parsed configuration.
#[derive(Debug, Default)]
pub(crate) struct Configuration(settings::Configuration);

impl Configuration {
    pub(crate) fn read(path: &Path) -> Result<Configuration, Failure> {
        let read = settings::Configuration::read(path).map_err(Failure::usage)?;
        let configuration = Configuration(read);
        // Read every value now, so that a mistake is reported whichever command runs.
        let checked = configuration.check_export().and_then(|()| configuration.check_store());
        checked
            .map_err(|problem| Failure::usage(format!("{}: {problem}", path.display())))
            .map(|()| configuration)
    }

    fn of(&self, server: &ServerId) -> &Keys {
        self.0.of(Some(server))
    }

    fn general(&self) -> &Keys {
        self.0.of(None)
    }

    /// How a server is confined.
    pub(crate) fn sandbox(&self, server: &ServerId) -> &settings::Sandbox {
        &self.of(server).sandbox
    }

    /// The servers that have their own table.
    pub(crate) fn named_servers(&self) -> impl Iterator<Item = ServerId> {
        self.0.servers().cloned()
    }

    /// The settings for a server. A posture from the command line takes precedence.
    pub(crate) fn settings(&self, server: Option<&ServerId>, posture: Option<Posture>) -> Settings {
        self.0.of(server).judging(posture)
    }

    /// Whether decisions may be made without a person at a terminal.
    pub(crate) fn is_unattended(&self) -> bool {
        self.general().approve.unattended
    }

    /// Whether a desktop notice says that something of a server is held.
    pub(crate) fn notifies(&self, server: &ServerId) -> bool {
        self.of(server).notify.desktop.unwrap_or(true)
    }

    /// The directory that is asked what other installs saw.
    pub(crate) fn network(&self) -> &settings::Network {
        &self.general().network
    }

    /// The model that is asked for opinions.
    pub(crate) fn judge(&self) -> &settings::JudgeKeys {
        &self.general().judge
    }

    /// How receipts are written.
    pub(crate) fn receipts(&self) -> receipts::Settings {
        receipt_settings(&self.general().receipts)
    }

    pub(crate) fn store_text(&self) -> &str {
        self.general().store.as_deref().unwrap_or("sqlite")
    }

    /// Checks the store address. A value behind `env:` or `file:` is only looked up when the store
    /// is opened: not every command needs it.
    fn check_store(&self) -> Result<(), String> {
        let text = self.store_text();
        if text.starts_with("env:") || text.starts_with("file:") {
            return Ok(());
        }
        match Location::parse_without_password(text) {
            Ok(Location::SqliteIn(_)) => {
                Err("`store`: another home is named with `--home`".to_owned())
            }
            Ok(Location::Sqlite | Location::Postgres(_)) => Ok(()),
            Err(error) => Err(format!("`store`: {error}")),
        }
    }

    /// The database that holds pins, history and all other data.
    pub(crate) fn store(&self) -> Result<Location, Failure> {
        Location::parse_without_password(self.store_text())
            .map_err(|error| Failure::usage(format!("`store`: {error}")))
    }
}

/// How receipts are written.
pub(crate) fn receipt_settings(keys: &settings::Receipts) -> receipts::Settings {
    let mut settings = receipts::Settings {
        fsync: match keys.fsync {
            Fsync::Always => receipts::Fsync::Always,
            Fsync::Interval => receipts::Fsync::Interval,
            Fsync::Never => receipts::Fsync::Never,
        },
        on_full: match keys.on_full {
            OnFull::Refuse => receipts::OnFull::Refuse,
            OnFull::DropOldest => receipts::OnFull::DropOldest,
        },
        args_hash: match keys.args_hash {
            ArgsHash::Keyed => ledger::record::ArgsHashKind::Keyed,
            ArgsHash::Plain => ledger::record::ArgsHashKind::Plain,
        },
        ..Default::default()
    };
    let (rotate, keep) = (keys.rotate.unwrap_or_default(), keys.keep.unwrap_or_default());
    let rotation = &mut settings.rotation;
    rotation.bytes = rotate.bytes.unwrap_or(rotation.bytes);
    rotation.age_milliseconds = rotate.milliseconds.unwrap_or(rotation.age_milliseconds);
    settings.keep.bytes = keep.bytes;
    settings.keep.age_milliseconds = keep.milliseconds;
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn read(text: &str) -> Configuration {
        Configuration(settings::Configuration::parse(text).unwrap())
    }

    #[test]
    fn receipts_are_written_as_configured() {
        assert_eq!(read("").receipts(), receipts::Settings::default());
        let settings = read(
            "[receipts]\nfsync = \"always\"\non_full = \"drop-oldest\"\nrotate = \"1MiB\"\nkeep = \"90d\"",
        )
        .receipts();
        let usual = receipts::Settings::default();
        assert_eq!(
            (settings.fsync, settings.on_full),
            (receipts::Fsync::Always, receipts::OnFull::DropOldest)
        );
        assert_eq!(settings.rotation.bytes, 1 << 20);
        assert_eq!(settings.rotation.age_milliseconds, usual.rotation.age_milliseconds);
        assert_eq!(
            (settings.keep.age_milliseconds, settings.keep.bytes),
            (Some(90 * 86_400_000), None)
        );
    }

    #[test]
    fn a_store_is_named_without_its_password() {
        for text in ["sqlite", "postgres://ada@db.example.com/x", "env:ANY", "file:/any"] {
            assert_eq!(read(&format!("store = \"{text}\"")).check_store(), Ok(()), "{text}");
        }
        assert!(matches!(read("").store().unwrap(), Location::Sqlite));
        for text in ["mysql://x", "sqlite:/elsewhere"] {
            assert!(read(&format!("store = \"{text}\"")).check_store().is_err(), "{text}");
        }
        let seen = read("store = \"postgres://ada:s3cret@db.example.com/x\"");
        let problem = seen.check_store().unwrap_err();
        assert!(problem.contains("env:VARIABLE") && !problem.contains("s3cret"), "{problem}");
    }
}
