//! The launch of a server: without an exact version, a launcher fetches the newest release, which
//! no person has reviewed.

use super::capability::Found;
use crate::dimension::Dimension;
use crate::finding::Severity;
use contract::origin::find_package;

/// A command line that starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchLine {
    pub program: String,
    pub arguments: Vec<String>,
}

/// The finding on a launch, if any.
pub(super) fn unpinned(launch: &LaunchLine) -> Option<Found> {
    let package = find_package(&launch.program, &launch.arguments)?;
    let version = package.version.as_deref().unwrap_or("");
    let is_pinned = match package.registry {
        "npm" => {
            let is_open = |part: &str| matches!(part, "x" | "X" | "*");
            version.starts_with(|first: char| first.is_ascii_digit())
                && !version.contains(['|', ' '])
                && !version.split('.').any(is_open)
        }
        "pypi" => {
            let exact = version.trim_start_matches('=');
            exact.starts_with(|first: char| first.is_ascii_digit())
                && !exact.contains(['*', ',', '<', '>'])
        }
        "oci" => version.contains("sha256:"),
        _ => return None,
    };
    (!is_pinned).then(|| Found {
        rule: "overclaim.unpinned-launcher",
        dimension: Dimension::Overclaim,
        severity: Severity::Low,
        reason: "is started from a package without an exact version: what runs may be other than what was screened",
        pointer: "/arguments".to_owned(),
    })
}
