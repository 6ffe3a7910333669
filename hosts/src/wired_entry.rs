//! What a wired entry sets for the gate that it starts. The gate reads this when it starts, because
//! anything recorded by `wire` would be outdated once a person edits the entry.

use crate::config::{Config, candidates, matches, read_bytes, syntax_of, text_of};
use crate::journal::Journal;
use crate::rewrite;
use crate::surroundings::Surroundings;
use crate::table::{self, Scope};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Variables that determine where a user's files are.
const HOME_VARIABLES: &[&str] = &["HOME", "USERPROFILE"];

/// The names of the variables that an entry sets, and whom its file applies to. Values stay in the
/// file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WiredEntry {
    pub variables: BTreeSet<String>,
    /// [`Scope::User`] only for a file in which a host stores a user's own servers.
    pub scope: Scope,
}

/// The entry that starts the gate with this id, if `wire` wrote it. Returns `None` if it is not
/// known exactly which variables the entry sets: no wired file or several have the id, or the host
/// reads additional variables from another file.
pub fn wired_entry(journal: &Path, id: &str, surroundings: &Surroundings) -> Option<WiredEntry> {
    let (path, host) = Journal::new(journal).file_with(id)?;
    let config = Config {
        host: table::host(&host).unwrap_or(&table::OTHER),
        scope: Scope::Project,
        syntax: syntax_of(&path)?,
        path,
        apart: None,
        taken: BTreeSet::new(),
    };
    let text = text_of(read_bytes(&config.path).ok()?).ok()?;
    let variables = rewrite::variables_of(&text, &config.manner(), id).ok()??;
    let scope = scope_of(&config.path, &variables, surroundings);
    Some(WiredEntry { variables, scope })
}

/// Whom the file applies to. The entry's own variables are ignored, because a project's file could
/// name its own folder in them.
fn scope_of(path: &Path, variables: &BTreeSet<String>, surroundings: &Surroundings) -> Scope {
    if HOME_VARIABLES.iter().any(|name| variables.contains(*name)) {
        return Scope::Project;
    }
    let mut surroundings = Surroundings { projects: Vec::new(), ..surroundings.clone() };
    surroundings.variables.retain(|name, _| !variables.contains(name));
    let is_it = |known: &Path| fs::canonicalize(known).is_ok_and(|known| known == path);
    let candidates = candidates(&surroundings).into_iter();
    let mut users = candidates.filter(|candidate| candidate.scope == Scope::User);
    let is_users = users.any(|candidate| matches(&candidate.path).iter().any(|known| is_it(known)));
    if is_users { Scope::User } else { Scope::Project }
}
