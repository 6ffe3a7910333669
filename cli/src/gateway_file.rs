//! Finds and reads `gateway.toml`: the named file, or the one in the home.

use crate::configuration::Configuration;
use crate::failure::Failure;
use settings::gateway::GatewaySettings;
use std::path::{Path, PathBuf};
use store::Location;

/// The file's name in the home.
pub(crate) const GATEWAY_FILE: &str = "gateway.toml";

/// The named file, or else the one in the home.
pub(crate) fn path(home: &Path, named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| home.join(GATEWAY_FILE), Path::to_owned)
}

/// The settings of a file, and the folder that its relative paths start from.
pub(crate) fn read(path: &Path) -> Result<(GatewaySettings, PathBuf), Failure> {
    let text = read_bounded(path, settings::MAX_CONFIGURATION_BYTES)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = std::path::absolute(folder.unwrap_or(Path::new(".")))
        .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
    match GatewaySettings::read(&text, &folder) {
        Ok(settings) => Ok((settings, folder)),
        Err(mistakes) => {
            let lines = mistakes.iter().map(|mistake| format!("`{}`: {mistake}", path.display()));
            Err(Failure::usage(lines.collect::<Vec<_>>().join("\n")))
        }
    }
}

/// Reads a text file of at most `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
    if std::fs::metadata(path).map_err(failed)?.len() > limit {
        let sentence = format!("`{}` is larger than {limit} bytes", path.display());
        return Err(Failure::usage(sentence));
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// The store that the gateway uses: the one named in its file, or else the one in `holdpoint.toml`.
pub(crate) fn location(
    settings: &GatewaySettings,
    configuration: &Configuration,
) -> Result<Location, Failure> {
    let Some(text) = &settings.store else { return configuration.store() };
    let wrong = |problem: String| Failure::usage(format!("`gateway.store`: {problem}"));
    match Location::parse_without_password(text) {
        Ok(Location::SqliteIn(_)) => Err(wrong("another home is named with `--home`".to_owned())),
        Ok(location) => Ok(location),
        Err(error) => Err(wrong(error.to_string())),
    }
}
