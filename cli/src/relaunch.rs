//! Starts or reaches a recorded server again. Values that may be secret are not recorded: they are
//! read again from the host's file in which the server was wired.

use crate::arguments::UpstreamArguments;
use crate::commands::wiring;
use crate::target::{JOURNAL, Workplace, read_address};
use engine::origin::Origin;
use gate::server::ServerId;
use hosts::{GuardedLaunch, Workshop};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use store::{Launch, LaunchKey};
use wire::{StdioLaunch, Upstream};

/// The arguments that start or reach a server the same way again.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) arguments: UpstreamArguments,
    /// Variables from the host's entry.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: Option<String>,
}

/// How to repeat a recorded launch. The error says what is missing.
pub(crate) fn again(
    id: &ServerId,
    launch: &Launch,
    arguments: &UpstreamArguments,
    workplace: &Workplace,
) -> Result<Again, String> {
    let entry = entry_of(id, workplace);
    match launch {
        Launch::Program { command, directory, environment_names, .. } => {
            let missing = environment_names.iter().find(|name| std::env::var_os(name).is_none());
            let mut again = Again {
                arguments: arguments.clone(),
                environment: Vec::new(),
                directory: directory.clone(),
            };
            let is_same = |entry: &GuardedLaunch| {
                kept_command(entry, directory.as_deref(), &workplace.launch_key) == *command
            };
            let words = match entry {
                Some((path, entry)) if entry.env_file.is_some() => {
                    return Err(format!(
                        "its variables are in the file that `envFile` names in `{}`, which only its host reads",
                        path.display()
                    ));
                }
                Some((_, entry)) if is_same(&entry) && !entry.has_variables => {
                    again.environment = entry.environment;
                    entry.command
                }
                entry if launch.has_secrets() => {
                    return Err(not_stored("a word of its command", entry));
                }
                _ => match missing {
                    Some(name) => return Err(format!("the variable `{name}` is not set")),
                    None => command.clone(),
                },
            };
            again.arguments.command = words.into_iter().map(OsString::from).collect();
            Ok(again)
        }
        Launch::Url { url, header_names, .. } => {
            let name_of = |header: &String| header.split('=').next().unwrap_or_default().to_owned();
            let is_same = |entry: &GuardedLaunch| {
                kept_address(entry, &workplace.launch_key).as_ref() == Some(url)
                    && entry.headers.iter().map(name_of).collect::<Vec<_>>() == *header_names
            };
            let mut arguments = arguments.clone();
            let mut environment = Vec::new();
            match entry {
                Some((_, entry)) if is_same(&entry) && !entry.has_variables => {
                    arguments.header = entry.headers;
                    arguments.allow_private |= entry.allow_private;
                    arguments.url = entry.url;
                    environment = entry.environment;
                }
                entry if launch.has_secrets() => {
                    return Err(not_stored("a part of its address", entry));
                }
                entry if !header_names.is_empty() && arguments.header.is_empty() => {
                    let names = header_names.join("`, `");
                    return Err(not_stored(&format!("the value of its header `{names}`"), entry));
                }
                _ => arguments.url = Some(url.clone()),
            }
            Ok(Again { arguments, environment, directory: None })
        }
    }
}

/// Why a launch cannot be repeated, and what the host's file has to do with it.
fn not_stored(what: &str, entry: Option<(PathBuf, GuardedLaunch)>) -> String {
    match entry {
        None => format!("{what} was not stored, because it may be a secret"),
        Some((path, entry)) if entry.has_variables => format!(
            "{what} was not stored, and in `{}` its host fills in variables that are not known here",
            path.display()
        ),
        Some((path, _)) => format!(
            "{what} was not stored, and its entry in `{}` was changed since the host last started it",
            path.display()
        ),
    }
}

/// The current entry of a server in the files that were wired. Only those files are read: any other
/// file could name an arbitrary program under this id.
pub(crate) fn entry_of(id: &ServerId, workplace: &Workplace) -> Option<(PathBuf, GuardedLaunch)> {
    let surroundings = wiring::surroundings().ok()?;
    let journal = workplace.home.path().join(JOURNAL);
    let workshop = Workshop::new(Path::new(crate::hosting::PROGRAM), &journal, None).ok()?;
    let files = workshop.wired_files(&surroundings).ok()?;
    files.into_iter().find_map(|config| {
        let launch = config.guarded_launch(id.as_str()).ok().flatten()?;
        Some((config.path, launch))
    })
}

/// The command of an entry in the form that is recorded.
fn kept_command(entry: &GuardedLaunch, directory: Option<&str>, key: &LaunchKey) -> Vec<String> {
    let Some((program, arguments)) = entry.command.split_first() else { return Vec::new() };
    let upstream = Upstream::Stdio(StdioLaunch {
        program: program.into(),
        arguments: arguments.iter().map(OsString::from).collect(),
        environment: Vec::new(),
        directory: directory.map(PathBuf::from),
        confinement: None,
    });
    match Origin::of(&upstream, key) {
        Origin::Program(origin) => {
            std::iter::once(origin.program).chain(origin.arguments).collect()
        }
        Origin::Address { .. } => Vec::new(),
    }
}

/// The address of an entry in the form that is recorded.
fn kept_address(entry: &GuardedLaunch, key: &LaunchKey) -> Option<String> {
    let url = read_address(entry.url.as_ref()?, &entry.environment).ok()?;
    let endpoint = wire::HttpEndpoint {
        url: url.parse().ok()?,
        headers: Vec::new(),
        allow_private: entry.allow_private,
        authorizer: None,
    };
    match Origin::of(&Upstream::Http(endpoint), key) {
        Origin::Address { url, .. } => Some(url),
        Origin::Program(_) => None,
    }
}
