//! Decides how the server of a command is confined: by the command line, by the configuration, or
//! as at its last start.

use crate::arguments::sandbox::{SandboxArguments, SandboxProfile};
use crate::commands::wiring;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::screen;
use crate::target::{JOURNAL, Reach};
use contract::origin::container_options;
use engine::confinement::{
    Confiner, ConfinerParts, Folders, KnownPackages, RecordFile, container_opened_by,
};
use engine::recorder::now;
use gate::server::ServerId;
use sandbox::{EgressSwitch, FilePolicy, NetworkPolicy};
use settings::{ConfinedPath, Parsed, Sandbox, Text};
use std::path::Path;
use std::sync::Arc;
use wire::{StdioLaunch, Upstream};

/// How to confine a server if neither the command line nor the configuration says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Not confined, and recorded as such: for a gate.
    Unconfined,
    /// As when a gate last started the server: for commands that inspect it.
    AsBefore,
}

/// The home and configuration that a server is confined for, and whether remarks are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfinedIn<'a> {
    pub(crate) home: &'a Path,
    pub(crate) configuration: &'a Configuration,
    pub(crate) is_quiet: bool,
}

impl Reach {
    /// Starts the server confined if confinement is asked for. This call itself starts and installs
    /// nothing.
    pub(crate) fn confined(
        mut self,
        id: &ServerId,
        arguments: &SandboxArguments,
        place: ConfinedIn<'_>,
        otherwise: Otherwise,
    ) -> Result<Reach, Failure> {
        let Upstream::Stdio(launch) = &mut self.upstream else { return Ok(self) };
        let record = RecordFile::of(place.home, id);
        let asked = asked(arguments, place.configuration.sandbox(id))?;
        let asked = match otherwise {
            Otherwise::Unconfined => asked,
            Otherwise::AsBefore if asked.is_some() => asked,
            Otherwise::AsBefore => before(id, &record)?,
        };
        let keys = match asked {
            Some(keys) if !is_left_to_container(launch, id, &keys)? => keys,
            Some(_) | None => {
                if otherwise == Otherwise::Unconfined {
                    // Ignored: only `status` reads the record.
                    let _ = record.note_unconfined(now());
                }
                return Ok(self);
            }
        };
        let confiner = confiner(id, keys, place)?;
        confiner.outline(launch).map_err(|error| Failure::usage(format!("`{id}`: {error}")))?;
        let confiner = Arc::new(confiner);
        launch.confinement = Some(confiner.clone());
        self.confiner = Some(confiner);
        Ok(self)
    }
}

/// The confinement asked for when a gate last started the server.
fn before(id: &ServerId, record: &RecordFile) -> Result<Option<Sandbox>, Failure> {
    let record = record.try_read().map_err(|error| {
        let path = record.path().display();
        Failure::usage(format!(
            "how `{id}` was confined cannot be read from `{path}`: {error}; start it with `holdpoint run` again, or configure `[server.{id}.sandbox]`"
        ))
    })?;
    Ok(record.started.and_then(|started| started.keys))
}

/// A confiner for a server of this home.
pub(crate) fn confiner(
    id: &ServerId,
    keys: Sandbox,
    ConfinedIn { home, is_quiet, .. }: ConfinedIn<'_>,
) -> Result<Confiner, Failure> {
    let known = KnownPackages::read(home).map_err(Failure::usage)?;
    let helper = std::env::current_exe().map_err(|error| {
        Failure::internal(format!("cannot find this program's own file: {error}"))
    })?;
    let entry = wiring::surroundings()
        .ok()
        .and_then(|here| hosts::wired_entry(&home.join(JOURNAL), id.as_str(), &here));
    Ok(Confiner::new(ConfinerParts {
        server: id.clone(),
        keys,
        folders: Folders::of(home),
        known: Arc::new(known),
        variables: entry.map(|entry| entry.variables.into_iter().collect()).unwrap_or_default(),
        switch: EgressSwitch::default(),
        helper,
        remark: Box::new(move |sentence| {
            if !is_quiet {
                screen::remark(format!("holdpoint: {}", screen::readable(sentence)));
            }
        }),
    }))
}

/// Combines the command line with the configuration, the command line first; `None` if neither asks
/// for confinement.
pub(crate) fn asked(
    arguments: &SandboxArguments,
    configured: &Sandbox,
) -> Result<Option<Sandbox>, Failure> {
    let Some(profile) = arguments.sandbox else {
        return Ok(Some(configured.clone()).filter(Sandbox::is_asked));
    };
    let mut keys = configured.clone();
    let files = match profile {
        SandboxProfile::Isolated | SandboxProfile::Workspace => FilePolicy::WorkspaceOnly,
        SandboxProfile::ReadOnly => FilePolicy::ReadOnly,
    };
    keys.fs = Some(Parsed(files));
    let here = || std::env::current_dir().map_err(Failure::internal);
    let named = arguments.workspace.as_ref().map(|named| {
        let path = here()?.join(named);
        path.canonicalize().map_err(|error| {
            Failure::usage(format!("`--workspace`: `{}`: {error}", named.display()))
        })
    });
    keys.workspace = match (profile, named.transpose()?, keys.workspace) {
        (_, Some(named), _) => Some(ConfinedPath::new(named)),
        (_, None, Some(configured)) => Some(configured),
        (SandboxProfile::Isolated, None, None) => None,
        (SandboxProfile::Workspace | SandboxProfile::ReadOnly, None, None) => {
            Some(ConfinedPath::new(here()?))
        }
    };
    if !arguments.net_allow.is_empty() {
        keys.net = Some(Parsed(NetworkPolicy::Allowlist));
        let more = arguments.net_allow.iter().cloned().map(Parsed);
        keys.net_allow.get_or_insert_default().extend(more);
    }
    for name in &arguments.pass_env {
        let name = Text::try_from(name.clone())
            .map_err(|error| Failure::usage(format!("`--pass-env`: {error}")))?;
        keys.env.get_or_insert_default().push(name);
    }
    Ok(Some(keys))
}

/// Whether a container engine confines the server; a remark says so. Refuses a container that is
/// given rights on the machine, and any container where full confinement by Holdpoint is required.
fn is_left_to_container(
    launch: &StdioLaunch,
    id: &ServerId,
    keys: &Sandbox,
) -> Result<bool, Failure> {
    let program = launch.program.to_string_lossy();
    let words: Vec<String> =
        launch.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if container_options(&program, &words).is_none() || keys.required == Some(true) {
        return Ok(false);
    }
    if let Some(option) = container_opened_by(&program, &words) {
        return Err(Failure::usage(format!(
            "`{option}` gives the container of `{id}` rights of this machine, so that nothing confines it: remove the option, or start it without `--sandbox`"
        )));
    }
    screen::remark(format!(
        "holdpoint: `{program}` confines `{id}`, Holdpoint does not: the server can use the files and the network of its container"
    ));
    Ok(true)
}
