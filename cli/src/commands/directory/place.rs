//! The settings and folders of the directory that a command is about.

use crate::arguments::Options;
use crate::arguments::directory::DirectoryPlace;
use crate::failure::Failure;
use crate::observation::now;
use crate::target::home_path;
use directory::database::Database;
use directory::log::lease::LeaseError;
use directory::log::publish::create_private_folder;
use directory::writer::{Folders, LogWriter, WriteError};
use settings::directory::DirectorySettings;
use store::Home;

/// What happened to statements queued for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saying {
    Published,
    /// Left for the running directory, which publishes them shortly.
    Left,
}

impl Saying {
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Saying::Published => "published in the log",
            Saying::Left => "left for the directory that writes: it is in the log within seconds",
        }
    }
}

pub(crate) struct Place {
    pub(crate) settings: DirectorySettings,
    pub(crate) folders: Folders,
}

impl Place {
    pub(crate) fn read(named: &DirectoryPlace, options: &Options) -> Result<Place, Failure> {
        let home = home_path(options)?;
        let path = named.config.clone().unwrap_or_else(|| home.join("directory.toml"));
        if named.config.is_some() && !path.exists() {
            return Err(Failure::usage(format!("`{}` does not exist", path.display())));
        }
        let settings = DirectorySettings::read(&path).map_err(Failure::usage)?;
        let home = Home::open(&home)?;
        let data = named.data.clone().or_else(|| settings.data.clone());
        let data = data.unwrap_or_else(|| home.path().join("directory"));
        let data = std::path::absolute(data)?;
        let keys = home.keys_path().join("directory");
        Ok(Place { settings, folders: Folders { data, keys } })
    }

    /// Opens the database, for operations that need no lease.
    pub(crate) fn database(&self) -> Result<Database, Failure> {
        create_private_folder(&self.folders.data)?;
        Database::open(&self.folders.database()).map_err(Failure::usage)
    }

    /// Publishes the queued statements, unless a running directory does.
    pub(crate) fn say_waiting(&self) -> Result<Saying, Failure> {
        let url = self.settings.public_url();
        match LogWriter::open(&self.folders, &url, self.settings.signer.as_deref(), now()) {
            Ok(mut writer) => {
                writer.say_waiting(now()).map_err(Failure::usage)?;
                writer.publish().map_err(Failure::usage)?;
                Ok(Saying::Published)
            }
            Err(WriteError::Lease(LeaseError::Held { .. })) => Ok(Saying::Left),
            Err(error @ (WriteError::Publish(_) | WriteError::Log { .. })) => {
                Err(Failure::evidence(error))
            }
            Err(error) => Err(Failure::usage(error)),
        }
    }

    /// Takes the lease and opens the log.
    pub(crate) fn writer(&self) -> Result<LogWriter, Failure> {
        let url = self.settings.public_url();
        LogWriter::open(&self.folders, &url, self.settings.signer.as_deref(), now()).map_err(
            |error| match error {
                WriteError::Lease(_) => Failure::usage(format!(
                    "{error}: one process writes at a time. Stop the other, or start `holdpoint directory` with `--reader` and crawl at the same time"
                )),
                WriteError::Publish(_) | WriteError::Log { .. } => Failure::evidence(error),
                error => Failure::usage(error),
            },
        )
    }
}
