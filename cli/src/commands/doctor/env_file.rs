//! Reads the file that an entry names with `envFile`. The host passes its variables to the gate as
//! well.

use hosts::{Config, Scope, is_own_variable};
use std::path::{Path, PathBuf};

/// The largest file that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The variables in the file that affect the gate itself. `None` if the file cannot be found or
/// read from here.
pub(super) fn own_variables(named: &str, config: &Config) -> Option<Vec<(String, String)>> {
    let path = locate(named, config)?;
    if std::fs::metadata(&path).ok()?.len() > MAX_BYTES {
        return None;
    }
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    let own = text.lines().filter_map(variable).filter(|(name, _)| is_own_variable(name));
    Some(own.collect())
}

/// The path of the file. A name with variables cannot be resolved: only the host knows their
/// values.
fn locate(named: &str, config: &Config) -> Option<PathBuf> {
    let project = match config.scope {
        // `.vscode/mcp.json` and similar files are one folder below the project's.
        Scope::Project => config.path.parent().and_then(Path::parent),
        Scope::User => None,
    };
    let user = std::env::home_dir();
    let inside = |prefix: &str| named.strip_prefix(prefix).map(|rest| rest.trim_start_matches('/'));
    let path = if let Some(rest) = inside("${workspaceFolder}") {
        project?.join(rest)
    } else if let Some(rest) = inside("${userHome}").or_else(|| inside("~/")) {
        user?.join(rest)
    } else if Path::new(named).is_absolute() {
        PathBuf::from(named)
    } else {
        project?.join(named)
    };
    (!path.to_string_lossy().contains('$')).then_some(path)
}

/// Parses a line the way common readers of such files do.
fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let value = value.trim().trim_matches(['"', '\'']);
    Some((name.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn variables_are_read_in_every_usual_spelling() {
        let home = ("HOLDPOINT_HOME".to_owned(), "/x".to_owned());
        for line in ["HOLDPOINT_HOME=/x", " export HOLDPOINT_HOME = '/x' ", "HOLDPOINT_HOME=\"/x\""]
        {
            assert_eq!(variable(line), Some(home.clone()), "{line}");
        }
        assert_eq!(variable("# nothing"), None);
    }
}
