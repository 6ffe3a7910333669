//! `gateway.toml` as a command finds it: where it is named, or in the home.

use crate::failure::Failure;
use settings::gateway::GatewaySettings;
use std::path::{Path, PathBuf};
use store::{Home, Location};

/// The file's name in the home.
pub(crate) const GATEWAY_FILE: &str = "gateway.toml";

/// The settings of the file that is named, or of the home's. `None` if no file is named and the home has none.
pub(crate) fn read(home: &Home, named: Option<&Path>) -> Result<Option<GatewaySettings>, Failure> {
    let path: PathBuf = match named {
        Some(path) => path.to_owned(),
        None => home.path().join(GATEWAY_FILE),
    };
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return Ok(None);
        }
        Err(error) => return Err(wrong(error.to_string())),
        Ok(text) => text,
    };
    let absolute = std::path::absolute(&path).map_err(|error| wrong(error.to_string()))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    GatewaySettings::read(&text, folder).map(Some).map_err(|mistakes| {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        wrong(mistakes.join("\n"))
    })
}

/// The store that the gateway uses. `None`: that of `holdpoint.toml`.
pub(crate) fn location(settings: &GatewaySettings) -> Result<Option<Location>, Failure> {
    let Some(text) = &settings.store else { return Ok(None) };
    let wrong = |problem: String| Failure::usage(format!("`gateway.store`: {problem}"));
    match Location::parse_without_password(text) {
        Ok(Location::SqliteIn(_)) => Err(wrong("another home is named with `--home`".to_owned())),
        Ok(location) => Ok(Some(location)),
        Err(error) => Err(wrong(error.to_string())),
    }
}
