//! Checks that apply to every server, however it is reached.

use super::ServerSettings;
use super::reach::Written;
use crate::gateway::mistake::{Mistakes, Place};
use crate::gateway::tables::ServerTable;
use crate::keys::{Admission, Preflight};
use crate::sandbox::Sandbox;
use crate::value::Parsed;
use attest::{Flavor, Scheme};
use gate::server::ServerId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The settings that all servers share.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) struct Common<'a> {
    pub(in crate::gateway) admission: &'a Admission,
    /// Whether there is a `[vault]` table.
    pub(in crate::gateway) has_vault: bool,
    pub(in crate::gateway) has_age: bool,
    /// Whether people can sign in to the gateway with a browser.
    pub(in crate::gateway) has_sign_in: bool,
    pub(in crate::gateway) folder: &'a Path,
}

pub(in crate::gateway) fn read(
    tables: &[ServerTable],
    common: Common<'_>,
    mistakes: &mut Mistakes<'_>,
) -> BTreeMap<ServerId, Arc<ServerSettings>> {
    let mut servers = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (index, table) in tables.iter().enumerate() {
        let place = Place::top().key("server").index(index);
        let id = id(table, &place, mistakes);
        if id.as_ref().is_some_and(|id| !seen.insert(id.clone())) {
            mistakes.add(&place.key("id"), "another server has this id: choose a different one");
        }
        if let Some(settings) = server(table, id, common, place, mistakes) {
            servers.insert(settings.id.clone(), Arc::new(settings));
        }
    }
    servers
}

fn id(table: &ServerTable, place: &Place, mistakes: &mut Mistakes<'_>) -> Option<ServerId> {
    let place = place.key("id");
    let Some(text) = table.id.as_deref() else {
        mistakes.add(&place, "missing: type `id = \"…\"`, a short name such as `files`");
        return None;
    };
    match text.parse::<ServerId>() {
        // `a_` with the tool `b` would become `a___b`, which could be read as the tool `_b` of `a`.
        Ok(_) if text.ends_with('_') => {
            mistakes
                .add(&place, format!("`{text}` ends in `_`: tools are shown as `server__tool`"));
            None
        }
        Ok(id) => Some(id),
        Err(error) => {
            mistakes.add(&place, format!("{error}"));
            None
        }
    }
}

fn server(
    table: &ServerTable,
    id: Option<ServerId>,
    Common { admission: general, has_vault, has_age, has_sign_in, folder }: Common<'_>,
    place: Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<ServerSettings> {
    let trust = table.trust.map(|Parsed(trust)| trust).unwrap_or_default();
    check_sandbox(table, &place, mistakes);
    let preflight = preflight(table, &place, mistakes);
    let orgs = orgs(table, &place, mistakes);
    check_names(table, &place, mistakes);
    let admission = super::super::resolve(admission(table, general, &place, mistakes), folder);
    let allowed_tools = allowed_tools(table, &admission, &place, mistakes);
    let written = Written { table, trust, folder, has_vault, has_age, has_sign_in, place };
    let reach = written.reach(mistakes);
    Some(ServerSettings {
        id: id?,
        reach: reach?,
        trust,
        risk: table.risk.map(|Parsed(risk)| risk).unwrap_or_default(),
        tool_risk: table
            .tool_risk
            .iter()
            .map(|(tool, Parsed(risk))| (tool.clone(), *risk))
            .collect(),
        allowed_tools,
        names: table.names.clone(),
        orgs,
        admission,
        preflight,
        recheck_seconds: table.recheck_seconds.map(|seconds| seconds.0),
    })
}

fn check_sandbox(table: &ServerTable, place: &Place, mistakes: &mut Mistakes<'_>) {
    let place = place.key("sandbox");
    if let Some((key, why)) = table.sandbox.as_ref().and_then(Sandbox::mistake)
        && !mistakes.is_unreadable(&place)
    {
        mistakes.add(&place.key(key), why);
    }
}

fn preflight(table: &ServerTable, place: &Place, mistakes: &mut Mistakes<'_>) -> Preflight {
    let place = place.key("preflight");
    let preflight = table.preflight.clone().unwrap_or_default();
    if preflight.schema.is_some() {
        let problem = "remove it: a gateway always checks arguments against the approved schema";
        mistakes.add(&place.key("schema"), problem);
    }
    if let Some((key, why)) = preflight.mistake()
        && !mistakes.is_unreadable(&place)
    {
        mistakes.add(&place.key(key), why);
    }
    preflight
}

fn orgs(
    table: &ServerTable,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<BTreeSet<String>> {
    let place = place.key("orgs");
    let written = table.orgs.as_ref()?;
    if written.is_empty() {
        mistakes.add(
            &place,
            "is empty, so no caller is served: name organizations, or remove it to serve all",
        );
    }
    let mut orgs = BTreeSet::new();
    for (index, org) in written.iter().enumerate() {
        let is_path_part = org.len() <= 256
            && org.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~@:".contains(&byte))
            && !matches!(&**org, "." | "..");
        if !is_path_part {
            mistakes.add(
                &place.index(index),
                format!("`{}` cannot be part of a path: use letters, digits, `-`, `.`, `_`, `~`, `@` and `:`", &**org),
            );
        }
        if !orgs.insert(org.to_string()) {
            mistakes.add(&place.index(index), format!("`{}` is named twice", &**org));
        }
    }
    Some(orgs)
}

/// Displayed names must be distinct, otherwise they would cause a collision instead of resolving
/// one.
fn check_names(table: &ServerTable, place: &Place, mistakes: &mut Mistakes<'_>) {
    let mut shown = BTreeSet::new();
    for (own, name) in &table.names {
        let place = place.key("names").key(own);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
        if name.is_empty() || name.len() > 128 || !name.bytes().all(is_plain) {
            mistakes.add(
                &place,
                format!("`{name}` cannot be a tool's name: use letters, digits, `_`, `-`, `.` and `/`, at most 128"),
            );
        }
        if !shown.insert(name) {
            mistakes.add(&place, format!("`{name}` is given to two tools: choose another name"));
        }
    }
}

/// The general admission settings, with the server's own keys applied.
fn admission(
    table: &ServerTable,
    general: &Admission,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Admission {
    let own = |written: &Option<crate::value::Text>, general: &Option<crate::value::Text>| {
        written.clone().or_else(|| general.clone())
    };
    let admission = Admission {
        required: own(&table.required_clearance, &general.required),
        attestation: table.attestation.clone(),
        program_digest: table.program_digest.clone(),
        package: table.package.clone(),
        version: table.version.clone(),
        integrity: table.integrity.clone(),
        allow_tools: table.allowed_tools.clone(),
        ..general.clone()
    };
    if let Err(missing) = admission.bindings() {
        let key = missing.trim_start_matches("admission.");
        let problem =
            "missing: a package is named by `package`, `version` and `integrity` together";
        mistakes.add(&place.key(key), problem);
    }
    let is_root_unreadable =
        mistakes.is_unreadable(&Place::top().key("admission").key("trust_root"));
    match (&admission.trust_root, &admission.required) {
        (Some(_), Some(_)) => {}
        (None, None) if table.attestation.is_none() => {}
        (None, _) if !is_root_unreadable => {
            let key = if table.required_clearance.is_some() {
                "required_clearance"
            } else {
                "attestation"
            };
            mistakes.add(
                &place.key(key),
                "an attestation is checked against a trust root: set `admission.trust_root`",
            );
        }
        (None, _) => {}
        (Some(_), None) => mistakes.add(
            &place.key("required_clearance"),
            "missing: a trust root is set, so say which clearance this server's attestation needs",
        ),
    }
    check_level(table, &admission, place, mistakes);
    admission
}

/// Refuses a level that a built-in scheme does not have.
fn check_level(
    table: &ServerTable,
    admission: &Admission,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) {
    let scheme = Scheme::built_in(admission.scheme.as_deref().unwrap_or("default"));
    if let (Some(scheme), Some(level)) = (scheme, table.required_clearance.as_deref())
        && scheme.level(level).is_none()
    {
        let levels: Vec<&str> = scheme.levels().iter().map(attest::Level::name).collect();
        let problem = format!(
            "`{level}` is not a level of the scheme `{}`: use one of {}",
            scheme.id(),
            levels.join(", ")
        );
        mistakes.add(&place.key("required_clearance"), problem);
    }
}

/// Without a list, all tools may be served under the flavor `open`, and none under `enclaved`.
fn allowed_tools(
    table: &ServerTable,
    admission: &Admission,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Option<BTreeSet<String>> {
    let default_flavor = admission.trust_root.as_ref().map(|_| Flavor::Enclaved);
    let flavor = admission.flavor.map(|Parsed(flavor)| flavor).or(default_flavor);
    let tools = match (&table.allowed_tools, flavor) {
        (Some(tools), _) => tools.iter().cloned().collect::<BTreeSet<_>>(),
        (None, Some(Flavor::Enclaved)) => BTreeSet::new(),
        (None, Some(Flavor::Open) | None) => return None,
    };
    if tools.contains("") {
        mistakes.add(&place.key("allowed_tools"), "has an empty name: remove it");
    }
    let is_listed = table.allowed_tools.is_some();
    for tool in table.tool_risk.keys().filter(|tool| is_listed && !tools.contains(*tool)) {
        let problem = format!("`{tool}` is not in `allowed_tools`: add it there or remove it here");
        mistakes.add(&place.key("tool_risk").key(tool), problem);
    }
    Some(tools)
}
