//! `holdpoint status`: servers, their pins and the basis of each, and what is held or waits and
//! since when.

mod short;

use crate::arguments::{Options, StatusCommand};
use crate::commands::remote;
use crate::commands::review::usage::{StoppedCalls, Usage};
use crate::failure::{Exit, Failure};
use crate::hosting;
use crate::last_check::LastCheck;
use crate::observation::now;
use crate::remote_gateway::RemoteGateway;
use crate::report::{self, EntryDocument, name_of};
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::server_text::{self, Printable, ServerText};
use crate::sign_in::KnownSignIns;
use crate::target::{Workplace, unknown_server};
use contract::hash::SurfaceHash;
use contract::surface::EntryType;
use engine::acts::{Review, Since};
use engine::confinement::{LastStart, RecordFile};
use gate::judge::Judgement;
use gate::pins::{Basis, EntryPins};
use gate::posture::Posture;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use gate::words;
use groups::{OneByLaunch, one_by_launch};
use sandbox::{FilePolicy, Level, NetworkPolicy};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use store::{IncidentStore, Launch, Store};

mod groups;

#[derive(Debug, Serialize)]
struct ServerDocument<'a> {
    id: &'a ServerId,
    status: ServerStatus,
    posture: Posture,
    first_seen: Option<Timestamp>,
    last_seen: Option<Timestamp>,
    observed_at: Option<Timestamp>,
    server_version: Option<&'a str>,
    launch: Option<&'a Launch>,
    shared_with: &'a [ServerId],
    pinned: BTreeMap<&'static str, usize>,
    basis: BTreeMap<&'static str, usize>,
    surface_hash: Option<SurfaceHash>,
    waiting: Vec<WaitingDocument<'a>>,
    admission: Option<&'a LastCheck>,
    /// How the server's process was last confined; `None` if the server is not a program.
    sandbox: Option<SandboxDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'a str>,
}

#[derive(Debug, Clone, Serialize)]
struct SandboxDocument {
    level: Level,
    fs_policy: FilePolicy,
    net_policy: NetworkPolicy,
}

#[derive(Debug, Serialize)]
struct WaitingDocument<'a> {
    since: Option<Timestamp>,
    /// How many of the recent calls the change would have stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<StoppedCalls>,
    #[serde(flatten)]
    entry: EntryDocument<'a>,
}

pub(crate) fn run(command: &StatusCommand, options: &Options) -> Result<Exit, Failure> {
    if let Some(gateway) = RemoteGateway::of(&command.gateway)? {
        return remote::status(command, &gateway, options);
    }
    if command.short {
        return short::run(command, options);
    }
    let workplace = Workplace::open(options)?;
    let ids: Vec<ServerId> = match &command.id {
        Some(id) => vec![id.clone()],
        None => ids_to_show(&workplace)?,
    };
    let at = now();
    let usage = Usage::read(&workplace)?;
    let mut servers = Vec::new();
    for id in &ids {
        let check = LastCheck::of(&workplace, id)?;
        let server = workplace.recorded(id, at)?;
        let is_denied = check.as_ref().is_some_and(LastCheck::is_denied);
        if server.snapshot.server.is_none() && !is_denied {
            return Err(unknown_server(id, &workplace));
        }
        let judged = Review::of(server)?;
        let since = Since::read(&workplace.store.history(id)?);
        let start = RecordFile::of(workplace.home.path(), id).read().started;
        servers.push(Standing { id, judged, since, check, start });
    }
    if let Some(full) = crate::disk::full(workplace.home.path()) {
        screen::remark(format!("{} {full}", styled(RED.bold(), "!")));
    }
    let state = workplace.store.incident()?;
    let incident = &state.incident;
    let text = server_text::on_standard_output(command.text.server_text);
    if options.json {
        let documents: Vec<_> =
            servers.iter().map(|standing| document(standing, text, &usage)).collect();
        let document = serde_json::json!({ "incident": incident.is_some(), "servers": documents });
        screen::print_json(&document)?;
        return Ok(Exit::Fine);
    }
    if incident.is_some() {
        let warning = "! an incident is on: calls are denied. See: holdpoint incident status";
        screen::say(styled(RED.bold(), warning));
    }
    for (is_so, words) in [
        (state.egress_blocked.is_some(), "outgoing connections are blocked"),
        (!state.quarantines.is_empty(), "sessions are quarantined: their calls are denied"),
    ] {
        if is_so {
            let warning = format!("! {words}. See: holdpoint incident status");
            screen::say(styled(RED.bold(), warning));
        }
    }
    if servers.is_empty() {
        screen::say("no server is pinned yet");
        let next = match hosting::guarded_ids().len() {
            0 => "start with: holdpoint wire, or holdpoint pin -- CMD…".to_owned(),
            wired => {
                let servers = report::count(wired, "server is wired", "servers are wired");
                format!("{servers}; restart your hosts: a server is pinned when it first starts")
            }
        };
        screen::say(styled(DIM, next));
        say_unguarded(options);
        return Ok(Exit::Fine);
    }
    let groups = one_by_launch(&servers);
    groups.iter().for_each(|group| say_server(group, text, &usage, options));
    let tools: usize =
        groups.iter().map(|group| pinned(&group.first.judged, EntryType::Tool)).sum();
    if !options.quiet {
        screen::say(styled(
            DIM,
            format!(
                "{} pinned on {}",
                report::count(tools, "tool", "tools"),
                report::count(groups.len(), "server", "servers")
            ),
        ));
    }
    say_unconfined(&groups, options);
    say_sign_ins(&ids, &workplace, options);
    if command.id.is_none() {
        say_unguarded(options);
    }
    Ok(Exit::Fine)
}

/// Lists those of these servers that Holdpoint holds a credential for.
fn say_sign_ins(ids: &[ServerId], workplace: &Workplace, options: &Options) {
    let known = KnownSignIns::read(workplace.home.path());
    for sign_in in ids.iter().filter_map(|id| known.of(id)).filter(|_| !options.quiet) {
        screen::say(styled(DIM, sign_in.words()));
    }
}

/// A server and its state.
#[derive(Debug)]
struct Standing<'a> {
    id: &'a ServerId,
    judged: Review,
    since: Since,
    check: Option<LastCheck>,
    /// How the server was last started, if it ever was confined.
    start: Option<LastStart>,
}

impl Standing<'_> {
    /// How the server's process is confined; `None` if the server is not a program.
    fn sandbox(&self) -> Option<SandboxDocument> {
        let server = self.judged.server.snapshot.server.as_ref()?;
        match server.launch.as_ref()? {
            Launch::Url { .. } => None,
            Launch::Program { .. } => Some(match &self.start {
                Some(LastStart { level, files, network, .. }) => {
                    SandboxDocument { level: *level, fs_policy: *files, net_policy: *network }
                }
                None => SandboxDocument {
                    level: Level::None,
                    fs_policy: FilePolicy::None,
                    net_policy: NetworkPolicy::None,
                },
            }),
        }
    }
}

/// Warns of servers that run with all rights of the user.
fn say_unconfined(groups: &[OneByLaunch<'_>], options: &Options) {
    let is_open = |group: &&OneByLaunch<'_>| {
        group.first.sandbox().is_some_and(|sandbox| sandbox.level == Level::None)
    };
    let count = groups.iter().filter(is_open).count();
    if count > 0 && !options.quiet {
        let servers = report::count(count, "server runs", "servers run");
        let sentence = format!("{servers} with all your rights: `--sandbox` confines them");
        screen::say(styled(DIM, sentence));
    }
}

/// Warns of hosts' servers that start without the gate: the list above says nothing about them.
fn say_unguarded(options: &Options) {
    let unguarded = hosting::count_unguarded();
    if unguarded > 0 && !options.quiet {
        let servers = report::count(unguarded, "server of a host is", "servers of hosts are");
        screen::say(styled(YELLOW, format!("{servers} not guarded: holdpoint wire")));
    }
}

/// The servers in the store, and servers that were never admitted: a gate ran for those, but they
/// have no pins.
fn ids_to_show(workplace: &Workplace) -> Result<Vec<ServerId>, Failure> {
    let mut ids: BTreeSet<ServerId> =
        workplace.store.servers()?.into_iter().map(|server| server.id).collect();
    let wired = hosting::guarded_ids().into_iter().filter_map(|id| id.parse().ok());
    let others: BTreeSet<ServerId> = workplace.configuration.named_servers().chain(wired).collect();
    for id in others {
        if !ids.contains(&id)
            && LastCheck::of(workplace, &id)?.is_some_and(|check| check.is_denied())
        {
            ids.insert(id);
        }
    }
    Ok(ids.into_iter().collect())
}

fn pinned(judged: &Review, entry_type: EntryType) -> usize {
    let pins = judged.server.snapshot.pins.iter();
    pins.filter(|(id, pins)| id.entry_type == entry_type && !pins.is_gone()).count()
}

fn document<'a>(standing: &'a Standing<'_>, text: ServerText, usage: &Usage) -> ServerDocument<'a> {
    let Standing { id, judged, since, check, .. } = standing;
    let server = judged.server.snapshot.server.as_ref();
    let observation = judged.server.snapshot.observation.as_ref();
    let count = |entry_type: EntryType| (entry_type.as_str(), pinned(judged, entry_type));
    ServerDocument {
        id,
        status: judged.status(),
        posture: judged.judgement.posture,
        first_seen: server.map(|server| server.first_seen),
        last_seen: server.map(|server| server.last_seen),
        observed_at: observation.map(|observation| observation.observed_at),
        server_version: observation
            .and_then(|observation| observation.server_version.as_deref())
            .and_then(|version| text.version(version)),
        launch: server.and_then(|server| server.launch.as_ref()),
        shared_with: &judged.server.siblings,
        pinned: EntryType::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect(),
        basis: bases(judged),
        surface_hash: judged.surface.as_ref().map(contract::surface::Surface::surface_hash),
        waiting: judged
            .waiting()
            .map(|entry| WaitingDocument {
                since: since.of(entry),
                stopped: usage.stopped(id, judged, entry),
                entry: EntryDocument::of(entry, text),
            })
            .collect(),
        admission: check.as_ref(),
        sandbox: standing.sandbox(),
        lost: judged.server.snapshot.pins.lost.as_deref(),
    }
}

fn bases(judged: &Review) -> BTreeMap<&'static str, usize> {
    let mut bases = BTreeMap::new();
    let newest =
        judged.server.snapshot.pins.iter().filter_map(|(_, pins): (_, &EntryPins)| pins.accepted());
    for basis in newest.map(|pin| pin.basis) {
        *bases.entry(Basis::as_str(basis)).or_insert(0) += 1;
    }
    bases
}

fn say_server(group: &OneByLaunch<'_>, text: ServerText, usage: &Usage, options: &Options) {
    let Standing { id, judged, since, check, .. } = group.first;
    let style = match judged.status() {
        ServerStatus::Verified => GREEN,
        ServerStatus::Changed => RED,
        ServerStatus::Pending | ServerStatus::Unbaselined => YELLOW,
        ServerStatus::Quarantined => RED,
    };
    let bases: Vec<String> =
        bases(judged).iter().map(|(basis, count)| format!("{count} {basis}")).collect();
    screen::say(format!(
        "{}  {}  {}, {} pinned{}",
        styled(BOLD, group.names()),
        styled(style.bold(), judged.status()),
        report::count(pinned(judged, EntryType::Tool), "tool", "tools"),
        report::count(judged.server.snapshot.pins.iter().count(), "entry", "entries"),
        if bases.is_empty() { String::new() } else { format!(" ({})", bases.join(", ")) },
    ));
    if let Some(sentence) = group.sentence() {
        screen::say(styled(DIM, format!("    {sentence}")));
    }
    if let Some(SandboxDocument { level, fs_policy, net_policy }) = group.first.sandbox()
        && level > Level::None
    {
        let sentence = format!("    confined: {level} (files {fs_policy}, network {net_policy})");
        screen::say(styled(DIM, sentence));
    }
    if judged.status() == ServerStatus::Changed && judged.judgement.posture == Posture::Monitor {
        screen::say(styled(YELLOW, "    still served: posture monitor"));
    }
    if let Some(lost) = &judged.server.snapshot.pins.lost {
        screen::say(format!("    {}", styled(RED, lost)));
    }
    if let Some(warning) = check.as_ref().and_then(LastCheck::warning) {
        screen::say(format!("    {}", styled(YELLOW, screen::readable(&warning))));
    }
    for entry in judged.waiting() {
        screen::say(format!("    {}", waiting_line(entry, since.of(entry), text)));
        if let Some(stopped) = usage.stopped(id, judged, entry) {
            screen::say(styled(DIM, format!("        {}", stopped.words())));
        }
    }
    if judged.waiting().next().is_some() && !options.quiet {
        screen::say(styled(DIM, format!("    look: holdpoint review {id}")));
    }
}

fn waiting_line(entry: &Judgement, since: Option<Timestamp>, text: ServerText) -> String {
    let state = report::state_of(entry);
    let mut kinds: Vec<&str> = entry.findings.iter().map(|finding| finding.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let printable = Printable::new(entry, text);
    let decides = words::deciding(&entry.findings, entry.verdict);
    let reason = match decides.map(|finding| printable.say(finding)) {
        None => entry.reason.map_or("", |reason| reason.as_str()).to_owned(),
        Some(sentence) => {
            let more = match entry.findings.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            format!("{sentence}{more} {}", styled(DIM, format!("[{}]", kinds.join(", "))))
        }
    };
    let since = since.map(|since| styled(DIM, format!(" since {since}"))).unwrap_or_default();
    format!("{state}  {} {}: {reason}{since}", entry.id.entry_type, name_of(entry, text))
}
