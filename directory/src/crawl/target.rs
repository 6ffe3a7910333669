//! Parses a file of servers to crawl, one per line.
//!
//! ```text
//! npm:@scope/name                        the newest release
//! npm:@scope/name@1.2.3                  this release
//! pypi:name API_KEY=none -- --read-only  with variables and arguments
//! com.example/weather https://mcp.example.com/mcp
//! ```

use crate::subject::SubjectId;
use serde::{Deserialize, Serialize};

/// The most servers per file.
pub const MAX_TARGETS: usize = 100_000;
/// The most words per line.
const MAX_WORDS: usize = 64;

/// A server, and how it is started or reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub id: SubjectId,
    pub way: Way,
}

/// How a server is started or reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    Package(PackageWay),
    Remote { url: String },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageWay {
    /// The named releases; empty for the newest.
    pub releases: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub arguments: Vec<String>,
}

/// A line that does not name a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadTarget {
    pub line: usize,
    pub problem: String,
}

/// The servers of a file. Lines with several releases of one package are combined.
pub fn read_targets(text: &str) -> Result<Vec<Target>, BadTarget> {
    let mut targets: Vec<Target> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line_text = line.trim();
        if line_text.is_empty() || line_text.starts_with('#') {
            continue;
        }
        let bad = |problem: String| BadTarget { line: number + 1, problem };
        let target = read_line(line_text).map_err(bad)?;
        let is_full = targets.len() == MAX_TARGETS;
        match (targets.iter_mut().find(|known| known.id == target.id), &target.way) {
            (Some(Target { way: Way::Package(known), .. }), Way::Package(more)) => {
                known.releases.extend(more.releases.iter().cloned());
            }
            (Some(_), _) => return Err(bad(format!("`{}` is named twice", target.id))),
            (None, _) if is_full => {
                return Err(bad(format!("more than {MAX_TARGETS} servers")));
            }
            (None, _) => targets.push(target),
        }
    }
    Ok(targets)
}

fn read_line(line: &str) -> Result<Target, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() > MAX_WORDS {
        return Err(format!("more than {MAX_WORDS} words"));
    }
    let Some((name, rest)) = words.split_first() else { return Err("it is empty".to_owned()) };
    if let [url] = rest
        && (url.starts_with("https://") || url.starts_with("http://"))
    {
        let id: SubjectId = name.parse().map_err(|error| format!("{error}"))?;
        if id.as_package().is_some() {
            return Err(format!("`{id}` is a package, and a URL follows it"));
        }
        return Ok(Target { id, way: Way::Remote { url: (*url).to_owned() } });
    }
    let (id, release) = split_release(name)?;
    let is_end = |word: &&&str| **word == "--";
    let end = rest.iter().position(|word| is_end(&word)).unwrap_or(rest.len());
    let (variables, arguments) = rest.split_at(end);
    let environment = variables.iter().map(|word| {
        let pair = word.split_once('=').filter(|(name, _)| !name.is_empty());
        let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| format!("`{word}` is not `NAME=value`; arguments come behind `--`"))
    });
    let way = PackageWay {
        releases: release.into_iter().collect(),
        environment: environment.collect::<Result<_, _>>()?,
        arguments: arguments.iter().skip(1).map(|word| (*word).to_owned()).collect(),
    };
    Ok(Target { id, way: Way::Package(way) })
}

/// Splits `npm:@scope/name@1.2.3` into id and release.
fn split_release(text: &str) -> Result<(SubjectId, Option<String>), String> {
    let cut =
        text.rfind('@').filter(|at| !text.get(..*at).unwrap_or_default().ends_with([':', '/']));
    let (id, release) = match cut.and_then(|at| text.split_at_checked(at)) {
        Some((id, release)) => (id, release.strip_prefix('@').map(str::to_owned)),
        None => (text, None),
    };
    let id: SubjectId = id.parse().map_err(|error| format!("`{text}`: {error}"))?;
    match (id.as_package(), release) {
        (None, _) => Err(format!("`{id}` is not a package, and no URL follows it")),
        (Some(_), Some(release)) if !is_release(&release) => {
            Err(format!("`{text}` does not name a release"))
        }
        (Some(_), release) => Ok((id, release)),
    }
}

/// Whether a text is a version as npm and PyPI write them, and nothing that an installer could take
/// for an option or a range.
pub fn is_release(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_!".contains(&byte);
    (1..=64).contains(&text.len())
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && text.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_releases_variables_arguments_and_remotes_are_read() {
        let text = "# servers\nnpm:@a/b\npypi:c@1.0\npypi:c@1.1\nnpm:d KEY=none -- --read-only /srv\n\ncom.example/e https://e.example/mcp\n";
        let targets = read_targets(text).unwrap();
        let ids: Vec<&str> = targets.iter().map(|target| target.id.as_str()).collect();
        assert_eq!(ids, ["npm:@a/b", "pypi:c", "npm:d", "com.example/e"]);
        let Way::Package(c) = &targets[1].way else { panic!() };
        assert_eq!(c.releases, ["1.0", "1.1"]);
        let Way::Package(d) = &targets[2].way else { panic!() };
        assert_eq!(d.environment, [("KEY".to_owned(), "none".to_owned())]);
        assert_eq!(d.arguments, ["--read-only", "/srv"]);
        assert!(matches!(&targets[3].way, Way::Remote { url } if url == "https://e.example/mcp"));
    }

    #[test]
    fn what_could_reach_an_installer_as_an_option_is_refused() {
        for line in [
            "npm:--global",
            "npm:a@latest",
            "npm:a@^1",
            "pypi:-r",
            "npm:@a",
            "npm:../x",
            "npm:a b",
            "pypi:a@1.0;import",
            "com.example/e",
            "npm:a https://e.example/",
            "npm:a =x",
        ] {
            assert!(read_targets(line).is_err(), "{line}");
        }
    }
}
