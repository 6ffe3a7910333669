//! Plans changes to a file and applies them: exactly what a person was shown is done, even if
//! another program writes the file.

use crate::config::{Config, ReadError, read_bytes, text_of};
use crate::guard;
use crate::journal::{Journal, JournalError, hash};
use crate::replace::{ReplaceError, Swap, check_file, replace, sweep};
use crate::rewrite::{
    self, Choice, GatewayError, Manner, Part, Rewritten, Server, TextError, Wiring, WiringState,
};
use crate::table;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// How often a plan is recomputed because another program wrote the file.
pub const MAX_TRIES: usize = 20;

/// The settings for wiring files.
#[derive(Debug, Clone)]
pub struct Workshop {
    program: String,
    home: Option<String>,
    own_home: Option<String>,
    sandbox: Option<String>,
    journal: Journal,
    /// The folders that are searched for a program named without a folder.
    search: Option<OsString>,
}

/// The goal of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    Wire,
    Unwire,
}

/// The planned changes to a file.
#[derive(Debug, Clone)]
pub struct Plan {
    pub config: Config,
    pub aim: Aim,
    pub before: String,
    pub after: String,
    /// The servers that it changes.
    pub changed: Vec<Server>,
    /// The selected servers that stay unchanged, with their current state.
    pub unchanged: Vec<Server>,
    /// The removed and added text of each changed server, in order.
    pub parts: Vec<Vec<Part>>,
    choice: Choice,
    wirings: Vec<Wiring>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// Whether the plan points the host at a gateway.
    pub fn is_for_gateway(&self) -> bool {
        self.aim == Aim::Wire && self.choice.gateway.is_some()
    }
}

/// The result of applying a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub path: PathBuf,
    pub changed: Vec<Server>,
    /// Whether the file is byte for byte as it was before it was wired.
    pub is_original: bool,
}

/// Why a file could not be wired or unwired.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("`{}` {source}", path.display())]
    Read { path: PathBuf, source: ReadError },
    #[error("`{}` {source}", path.display())]
    Replace { path: PathBuf, source: ReplaceError },
    #[error("`{}`: {source}", path.display())]
    Gateway { path: PathBuf, source: GatewayError },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("`{}` is being written by another program: nothing was changed", path.display())]
    Moving { path: PathBuf },
    #[error("the path `{}` is not text", path.display())]
    Program { path: PathBuf },
    #[error("the program `{}` has to be called `holdpoint`, or its entries are not recognized later", path.display())]
    Name { path: PathBuf },
}

impl Workshop {
    /// `program` is our binary, `journal` a folder in our home, and `home` that home if it is not
    /// the default one.
    pub fn new(program: &Path, journal: &Path, home: Option<&Path>) -> Result<Workshop, WireError> {
        let text = |path: &Path| {
            path.to_str()
                .map(str::to_owned)
                .ok_or_else(|| WireError::Program { path: path.to_owned() })
        };
        let home = home.map(text).transpose()?;
        let program = text(program)?;
        if !guard::is_program(&program) {
            return Err(WireError::Name { path: PathBuf::from(program) });
        }
        // The journal is in the home.
        let own_home = journal.parent().and_then(Path::to_str).map(str::to_owned);
        let journal = Journal::new(journal);
        Ok(Workshop { program, home, own_home, sandbox: None, journal, search: None })
    }

    /// Searches these folders, in the format of `PATH`, for programs named without a folder.
    /// Without this call, such programs are assumed to exist.
    pub fn searching(self, folders: Option<OsString>) -> Workshop {
        Workshop { search: folders, ..self }
    }

    /// Makes wired programs start confined, by this profile.
    pub fn confining(self, profile: Option<&str>) -> Workshop {
        Workshop { sandbox: profile.map(str::to_owned), ..self }
    }

    /// The actual file, whose path the journal uses, with links resolved.
    fn real(config: &Config) -> Result<PathBuf, WireError> {
        let read = |source: std::io::Error| WireError::Read {
            path: config.path.clone(),
            source: source.into(),
        };
        fs::canonicalize(&config.path).map_err(read)
    }

    fn text(config: &Config) -> Result<String, WireError> {
        let read = |source| WireError::Read { path: config.path.clone(), source };
        read_bytes(&config.path).and_then(text_of).map_err(read)
    }

    /// Plans wiring or unwiring the selected servers of a file.
    pub fn plan(&self, config: &Config, aim: Aim, choice: &Choice) -> Result<Plan, WireError> {
        let before = Workshop::text(config)?;
        self.plan_text(config, aim, choice, before)
    }

    fn plan_text(
        &self,
        config: &Config,
        aim: Aim,
        choice: &Choice,
        before: String,
    ) -> Result<Plan, WireError> {
        let manner = self.manner(config);
        let wrong = |source: TextError| WireError::Read {
            path: config.path.clone(),
            source: source.into(),
        };
        let servers = rewrite::servers(&before, &manner).map_err(wrong)?;
        let mut choice = choice.clone();
        let rewritten = match (aim, &choice.gateway) {
            (Aim::Wire, Some(gateway)) => {
                let path = config.path.clone();
                rewrite::add_gateway(&before, &manner, gateway)
                    .map_err(|source| WireError::Gateway { path, source })?
            }
            (Aim::Wire, None) => {
                choice.gone = self.gone(&servers);
                rewrite::wire(&before, &manner, &choice).map_err(wrong)?
            }
            (Aim::Unwire, _) => self.unwired(config, &before, &choice)?,
        };
        let Rewritten { text: after, changed, wirings, parts } = rewritten;
        let is_changed = |server: &Server| changed.iter().any(|other| other.id == server.id);
        let unchanged = servers.into_iter().filter(|server| !is_changed(server)).collect();
        let config = config.clone();
        Ok(Plan { config, aim, before, after, changed, unchanged, parts, choice, wirings })
    }

    /// The text without the gate: the original bytes if no other program wrote since, otherwise the
    /// text without our changes.
    fn unwired(
        &self,
        config: &Config,
        text: &str,
        choice: &Choice,
    ) -> Result<Rewritten, WireError> {
        let wrong = |source: TextError| WireError::Read {
            path: config.path.clone(),
            source: source.into(),
        };
        let manner = self.manner(config);
        let real = Workshop::real(config)?;
        // An unreadable record is treated as missing, because the entries themselves contain enough
        // information.
        let record = self.journal.record(&real).ok().flatten();
        let known = record.as_ref().map(|record| record.wirings.as_slice());
        let wirings = known.unwrap_or_default();
        let original = record.as_ref().and_then(|record| record.original_of(text));
        let mut rewritten = match (rewrite::unwire(text, &manner, choice, known), &original) {
            // The original bytes are right even if the text cannot be taken apart.
            (Err(TextError::Unsafe), Some(original)) if choice.servers.is_empty() => {
                let servers = rewrite::servers(text, &manner).map_err(wrong)?;
                let changed: Vec<Server> =
                    servers.into_iter().filter(|server| is_remembered(server, wirings)).collect();
                let parts = changed.iter().map(|_| Vec::new()).collect();
                let text = original.clone();
                return Ok(Rewritten { text, changed, wirings: Vec::new(), parts });
            }
            (rewritten, _) => rewritten.map_err(wrong)?,
        };
        if let Some(original) = original {
            let left = rewrite::servers(&rewritten.text, &manner).map_err(wrong)?;
            let is_all = !left.iter().any(|server| is_remembered(server, wirings));
            let before = rewrite::servers(&original, &manner).map_err(wrong)?;
            // A gate that a person wrote may have been pointed to our program, which is undone with
            // the rest.
            let is_fit = match choice.servers.as_slice() {
                [] => {
                    !rewritten.changed.is_empty()
                        && without_programs(&before) == without_programs(&left)
                }
                _ => before == left,
            };
            if is_all && is_fit {
                rewritten.text = original;
            }
        }
        Ok(rewritten)
    }

    /// Applies a plan. If the file has changed, plans the same servers again.
    pub fn apply(&self, plan: Plan) -> Result<Done, WireError> {
        let config = plan.config.clone();
        let real = Workshop::real(&config)?;
        let _lock = self.journal.lock(&real)?;
        sweep(&real);
        // Consent was given for these servers, not for one that was added later.
        let servers = plan.changed.iter().map(|server| server.id.clone()).collect();
        let choice = Choice { servers, ..plan.choice.clone() };
        let attempt = |plan: &Plan| self.carry_out(&real, plan);
        keep_trying(plan, attempt, |aim| self.plan(&config, aim, &choice))
    }

    /// One attempt. Returns `None` if the file turned out to have changed.
    fn carry_out(&self, real: &Path, plan: &Plan) -> Result<Option<Done>, WireError> {
        let config = &plan.config;
        let replaced = |source| WireError::Replace { path: config.path.clone(), source };
        let swap = |before: &str, after: &str| {
            replace(real, before.as_bytes(), after.as_bytes()).map_err(replaced)
        };
        let record = self.journal.record(real).ok().flatten();
        let old = record.as_ref().map(|record| record.wirings.clone()).unwrap_or_default();
        let done = |is_original| {
            Some(Done { path: config.path.clone(), changed: plan.changed.clone(), is_original })
        };
        match plan.aim {
            Aim::Wire => {
                // Do not record anything about a file that could not be replaced anyway.
                check_file(real).map_err(replaced)?;
                // Write the record before changing the file, so that it exists even if the process
                // dies in between. If there is no earlier record, the current file, including any
                // gates, counts as the original.
                let base = match &record {
                    Some(_) => self.unwired(config, &plan.before, &Choice::default())?.text,
                    None => plan.before.clone(),
                };
                let mut wirings = old;
                wirings.retain(|wiring| !plan.wirings.iter().any(|new| new.id == wiring.id));
                wirings.extend(plan.wirings.iter().cloned());
                self.journal.write(real, config.host.id, &base, &plan.after, wirings)?;
                Ok(match swap(&plan.before, &plan.after)? {
                    Swap::Done => done(false),
                    Swap::Moved => None,
                })
            }
            Aim::Unwire => {
                let original = record.as_ref().map(|record| record.original.clone());
                if swap(&plan.before, &plan.after)? == Swap::Moved {
                    return Ok(None);
                }
                let is_left =
                    |wiring: &Wiring| !plan.changed.iter().any(|server| server.id == wiring.id);
                let left: Vec<Wiring> = old.into_iter().filter(is_left).collect();
                if left.is_empty() {
                    self.journal.forget(real)?;
                } else {
                    let base = self.unwired(config, &plan.after, &Choice::default())?.text;
                    self.journal.write(real, config.host.id, &base, &plan.after, left)?;
                }
                Ok(done(original == Some(hash(plan.after.as_bytes()))))
            }
        }
    }

    /// Checks whether a plan could be applied, as far as possible without writing anything.
    pub fn check(&self, plan: &Plan) -> Result<(), WireError> {
        if plan.is_empty() {
            return Ok(());
        }
        let path = &plan.config.path;
        check_file(path).map_err(|source| WireError::Replace { path: path.clone(), source })
    }

    /// The ids of a file's servers that were wired and not unwired since.
    pub fn remembered(&self, config: &Config) -> Result<BTreeSet<String>, WireError> {
        let record = self.journal.record(&Workshop::real(config)?)?;
        let wirings = record.map(|record| record.wirings).unwrap_or_default();
        Ok(wirings.into_iter().map(|wiring| wiring.id).collect())
    }

    fn manner<'m>(&'m self, config: &'m Config) -> Manner<'m> {
        let (home, own_home) = (self.home.as_deref(), self.own_home.as_deref());
        let sandbox = self.sandbox.as_deref();
        Manner { program: &self.program, home, own_home, sandbox, ..config.manner() }
    }

    /// The programs of wired entries that no longer exist.
    fn gone(&self, servers: &[Server]) -> BTreeSet<String> {
        let programs = servers.iter().filter_map(|server| match &server.state {
            WiringState::Wired { program, is_fetched: false, .. } => Some(program),
            WiringState::Wired { .. }
            | WiringState::Unwired
            | WiringState::Gateway { .. }
            | WiringState::Unguarded(_) => None,
        });
        programs.filter(|program| self.is_gone(Path::new(program))).cloned().collect()
    }

    /// A relative path is resolved by the host, in a folder that is unknown here.
    fn is_gone(&self, program: &Path) -> bool {
        if program.components().count() == 1 && !program.is_absolute() {
            let folders = self.search.iter().flat_map(std::env::split_paths);
            let mut places = folders.map(|folder| folder.join(program));
            let is_there = |place: PathBuf| {
                place.is_file() || cfg!(windows) && place.with_extension("exe").is_file()
            };
            return self.search.is_some() && !places.any(is_there);
        }
        program.is_absolute() && !program.exists()
    }

    /// Removes leftovers of our interrupted processes, and the record of a file in which nothing of
    /// ours is left.
    pub fn tidy(&self, config: &Config) -> Result<(), WireError> {
        let real = Workshop::real(config)?;
        let Some(record) = self.journal.record(&real).ok().flatten() else { return Ok(()) };
        let _lock = self.journal.lock(&real)?;
        sweep(&real);
        self.journal.sweep();
        let is_ours = |server: &Server| is_remembered(server, &record.wirings);
        if config.servers().is_ok_and(|servers| !servers.iter().any(is_ours)) {
            self.journal.forget(&real)?;
        }
        Ok(())
    }

    /// Every file that was wired and not unwired, including ones outside the table.
    pub fn wired_files(
        &self,
        surroundings: &crate::Surroundings,
    ) -> Result<Vec<Config>, WireError> {
        let files = self.journal.files()?.into_iter();
        let named = |(path, host): (PathBuf, String)| {
            Config::named(&path, table::host(&host), surroundings).ok()
        };
        Ok(files.filter_map(named).collect())
    }
}

/// Attempts a plan until it succeeds, each time for the current content of the file.
fn keep_trying(
    mut plan: Plan,
    mut attempt: impl FnMut(&Plan) -> Result<Option<Done>, WireError>,
    mut plan_anew: impl FnMut(Aim) -> Result<Plan, WireError>,
) -> Result<Done, WireError> {
    for _ in 0..MAX_TRIES {
        if plan.is_empty() {
            let path = plan.config.path;
            return Ok(Done { path, changed: Vec::new(), is_original: false });
        }
        match attempt(&plan)? {
            Some(done) => return Ok(done),
            None => plan = plan_anew(plan.aim)?,
        }
    }
    Err(WireError::Moving { path: plan.config.path })
}

/// The same servers, ignoring which program starts each gate.
fn without_programs(servers: &[Server]) -> Vec<Server> {
    let mut servers = servers.to_vec();
    for server in &mut servers {
        if let WiringState::Wired { program, .. } = &mut server.state {
            program.clear();
        }
    }
    servers
}

fn is_remembered(server: &Server, wirings: &[Wiring]) -> bool {
    matches!(server.state, WiringState::Wired { .. } | WiringState::Gateway { .. })
        && wirings.iter().any(|wiring| wiring.id == server.id)
}

#[cfg(test)]
mod tests;
