//! `quarantine`, `release`, `rollback`: what a person does with a server or an entry beside approving.

use crate::approver;
use crate::arguments::{
    Options, ReleaseCommand, RollbackCommand, ServerCommand, UpstreamArguments,
};
use crate::commands::approve;
use crate::failure::{Exit, Failure};
use crate::judging::{has_baseline, judge_for_status, judge_recorded, status_after};
use crate::observation::{now, observe, surface_of};
use crate::screen;
use crate::target::{Reach, Source, Target, Workplace, known_client, unknown_server};
use crate::vouching::admit_before_look;
use contract::surface::{EntryId, Surface};
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use store::{Act, Observation, Store};

pub(crate) fn quarantine(command: &ServerCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open(options)?;
    let Some(server) = workplace.store.server(&command.id)? else {
        return Err(unknown_server(&command.id, &workplace));
    };
    if server.status == ServerStatus::Quarantined && server.lost.is_none() {
        return tell(&command.id, ServerStatus::Quarantined, "stopped already", options);
    }
    approve::quarantine(&mut workplace, &command.id)?;
    tell(&command.id, ServerStatus::Quarantined, "stopped; nothing of it is served", options)
}

/// Ends a quarantine: the server becomes what a fresh look at it makes of it.
pub(crate) fn release(command: &ReleaseCommand, options: &Options) -> Result<Exit, Failure> {
    let id = &command.id;
    let mut workplace = Workplace::open(options)?;
    let snapshot = workplace.store.snapshot(id)?;
    let Some(server) = &snapshot.server else { return Err(unknown_server(id, &workplace)) };
    let has_baseline = has_baseline(&snapshot.pins);
    let released = next(server.status, Happening::Released { has_baseline })
        .map_err(|error| Failure::usage(format!("`{id}`: {error}")))?;
    approver::confirm_yes(
        &workplace.configuration,
        &format!("Release server `{id}` from quarantine?"),
    )?;
    let surface = look_again(&workplace, id, &command.upstream, options)?;
    let judgement = judge_for_status(&workplace, id, &snapshot, &surface, now())?;
    let status = if has_baseline { status_after(released, &judgement) } else { released };
    let (at, by) = (now(), approver::name());
    let observation = Observation::of(&surface, at);
    let mut act = Act::new(id, at, &by, "server.release");
    act.expect = Some(snapshot.revision());
    act.observation = Some(&observation);
    act.status = Some(status);
    workplace.store.record(act)?;
    tell(id, status, "released", options)
}

/// The server as it is now. Returns what was last seen of one that was pinned from a capture, or that cannot be started
/// again because a word of its command was not stored.
fn look_again(
    workplace: &Workplace,
    id: &ServerId,
    upstream: &UpstreamArguments,
    options: &Options,
) -> Result<Surface, Failure> {
    let is_named = upstream.url.is_some() || !upstream.command.is_empty();
    if is_named {
        let reach = Reach::of(upstream)?.for_client(known_client(id, workplace)?);
        let reach = reach.configured_by(id, &workplace.configuration, upstream)?;
        admit_before_look(id, &reach, &workplace.configuration, workplace.home.path())?;
        return observe(&reach, &workplace.launch_key, options);
    }
    let last_seen = || -> Result<Surface, Failure> {
        Ok(judge_recorded(workplace, id, None, now())?.surface.unwrap_or_default())
    };
    let server = workplace.store.server(id)?;
    if server.is_some_and(|server| server.launch.is_none()) {
        return last_seen();
    }
    let target = match Target::recorded(id, workplace, upstream) {
        Err(failure) if failure.exit == Exit::Unreachable => {
            if !options.quiet {
                screen::remark(
                    "note: the server cannot be started from here, so it is judged by what it last said; \
                     the gate lists its tools again before the next call",
                );
            }
            return last_seen();
        }
        target => target?,
    };
    if let Source::Server(reach) = &target.source {
        admit_before_look(id, reach, &workplace.configuration, workplace.home.path())?;
    }
    surface_of(&target.source, &workplace.launch_key, options)
}

/// Takes back the newest pin of an entry.
pub(crate) fn rollback(command: &RollbackCommand, options: &Options) -> Result<Exit, Failure> {
    let id = &command.id;
    let mut workplace = Workplace::open(options)?;
    let judged = judge_recorded(&workplace, id, None, now())?;
    let named: Vec<EntryId> = judged
        .snapshot
        .pins
        .iter()
        .filter(|(entry, _)| approve::names(entry, &command.key))
        .map(|(entry, _)| entry.clone())
        .collect();
    let entry = match named.as_slice() {
        [one] => one.clone(),
        [] if judged.entries().any(|entry| approve::names(entry, &command.key)) => {
            return Err(Failure::usage(format!(
                "`{}` of server `{id}` has no pin yet: there is nothing to take back",
                command.key
            )));
        }
        [] => {
            let pinned = judged.snapshot.pins.iter().map(|(entry, _)| entry);
            return Err(approve::unknown_entry(&command.key, id, pinned, "is pinned"));
        }
        _ => {
            return Err(Failure::usage(format!(
                "`{0}` names several entries: say `tool:{0}` or the like",
                command.key
            )));
        }
    };
    let pins = judged.snapshot.pins.get(&entry).map_or(0, |pins| pins.iter().count());
    if pins < 2 {
        return Err(Failure::usage(format!(
            "`{entry}` has one pin only: there is nothing to go back to"
        )));
    }
    let status = status_without(&workplace, id, &judged, &entry)?;
    let by = approver::name();
    let mut act = Act::new(id, now(), &by, "server.rollback");
    act.expect = Some(judged.snapshot.revision());
    act.withdraw = vec![entry.clone()];
    act.status = Some(status);
    act.detail = Some(format!("{:.200}", entry.to_string()));
    workplace.store.record(act)?;
    tell(id, status, &format!("{entry}: the pin before counts again"), options)
}

fn status_without(
    workplace: &Workplace,
    id: &ServerId,
    judged: &crate::judging::Judged,
    entry: &EntryId,
) -> Result<ServerStatus, Failure> {
    let mut snapshot = judged.snapshot.clone();
    snapshot.pins = snapshot.pins.without_newest(entry);
    let surface = judged.surface.clone().unwrap_or_default();
    let judgement = judge_for_status(workplace, id, &snapshot, &surface, now())?;
    Ok(status_after(judged.status(), &judgement))
}

fn tell(
    id: &ServerId,
    status: ServerStatus,
    words: &str,
    options: &Options,
) -> Result<Exit, Failure> {
    if options.json {
        screen::print_json(&serde_json::json!({ "server": id, "status": status }))?;
    } else {
        screen::say(format!("{id}: {}; the server is {status}", screen::readable(words)));
    }
    Ok(Exit::Fine)
}
