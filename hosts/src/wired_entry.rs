//! What a wired entry gives to the gate that it starts. The gate reads it when it starts: what `wire` wrote down would be
//! out of date once a person edits the entry.

use crate::config::{Config, candidates, matches, read_bytes, syntax_of, text_of};
use crate::journal::Journal;
use crate::rewrite;
use crate::surroundings::Surroundings;
use crate::table::{self, Scope};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Variables that say where a user's files are.
const HOME_VARIABLES: &[&str] = &["HOME", "USERPROFILE"];

/// The names of the variables that an entry sets, and whose file it is in. Values stay in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WiredEntry {
    pub variables: BTreeSet<String>,
    /// [`Scope::User`] only for a file where a host keeps a user's own servers.
    pub scope: Scope,
}

/// The entry that starts the gate with this id, if `wire` wrote it. `None` if it is not known exactly which variables the
/// entry sets: no wired file or several have the id, or the host reads more variables from another file.
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

/// Whose file it is. Variables of the entry itself do not decide that: the file of a project could name its own folder in
/// them.
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
