//! Identifies launches of the same server. To a person, entries of several hosts that start the
//! same program with the same words and variables are one server.

use crate::commands::wiring;
use crate::target::JOURNAL;
use engine::program::find_program;
use gate::server::ServerId;
use hosts::{Scope, WiredEntry};
use std::collections::BTreeMap;
use std::ffi::OsString;
use store::{EntryFile, Home, LaunchIdentity, LaunchKey, StartedProgram};
use wire::{HttpEndpoint, StdioLaunch, Upstream};

/// The identity of a gate's launch. `None` if anything that decides what is started is unknown: the
/// variables that the host's entry sets are only known for entries written by `wire`.
pub(crate) fn of_gate(
    id: &ServerId,
    upstream: &Upstream,
    key: &LaunchKey,
    home: &Home,
) -> Option<LaunchIdentity> {
    let entry = wiring::surroundings()
        .ok()
        .and_then(|here| hosts::wired_entry(&home.path().join(JOURNAL), id.as_str(), &here));
    let file = match entry.as_ref().map(|entry| entry.scope) {
        Some(Scope::User) => EntryFile::User,
        Some(Scope::Project) | None => EntryFile::Project,
    };
    let hash = match upstream {
        Upstream::Stdio(launch) => hash_program(launch, &entry?, key)?,
        Upstream::Http(endpoint) => hash_address(endpoint, key),
    };
    Some(LaunchIdentity { hash, file })
}

fn hash_program(
    launch: &StdioLaunch,
    entry: &WiredEntry,
    key: &LaunchKey,
) -> Option<store::LaunchHash> {
    let name = launch.program.to_string_lossy();
    let variables: BTreeMap<String, Option<OsString>> =
        entry.variables.iter().map(|name| (name.clone(), std::env::var_os(name))).collect();
    Some(key.hash_program(&StartedProgram {
        program: &find_program(&name, launch.directory.as_deref())?,
        name: &name,
        arguments: &launch.arguments,
        folder: &std::env::current_dir().ok()?,
        variables: &variables,
    }))
}

fn hash_address(endpoint: &HttpEndpoint, key: &LaunchKey) -> store::LaunchHash {
    let headers: Vec<(&str, &[u8])> =
        endpoint.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    key.hash_address(endpoint.url.as_str(), &headers)
}
