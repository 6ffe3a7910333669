//! `quarantine`, `release`, `rollback`: acts of a person on a server or an entry, other than
//! approving.

use crate::approver;
use crate::arguments::{
    Options, ReleaseCommand, RollbackCommand, ServerCommand, UpstreamArguments,
};
use crate::commands::remote;
use crate::confinement::Otherwise;
use crate::failure::{Exit, Failure};
use crate::observation::{now, observe, surface_of};
use crate::remote_gateway::RemoteGateway;
use crate::screen;
use crate::sharing;
use crate::target::{Reach, Source, Target, Workplace, known_client};
use crate::vouching::admit_before_look;
use contract::surface::Surface;
use engine::acts::{self, Quarantine, Review, RolledBack, Shared};
use gate::server::{ServerId, ServerStatus};

pub(crate) fn quarantine(command: &ServerCommand, options: &Options) -> Result<Exit, Failure> {
    if let Some(gateway) = RemoteGateway::of(&command.gateway)? {
        return remote::quarantine(&command.id, &gateway, options);
    }
    let mut workplace = Workplace::open(options)?;
    let by = approver::name();
    let review = workplace.review(&command.id, now()).ok();
    let (store, configured) = workplace.acting();
    let review = review.as_ref();
    let stopped = acts::quarantine(store, &command.id, review, &configured, approver::by(&by))?;
    let words = match stopped.outcome {
        Quarantine::Stopped => "stopped",
        Quarantine::Already => "stopped already",
    };
    print_result(&command.id, ServerStatus::Quarantined, words, stopped.shared, options)
}

/// Ends a quarantine: a new check of the server decides its status.
pub(crate) fn release(command: &ReleaseCommand, options: &Options) -> Result<Exit, Failure> {
    let id = &command.id;
    if let Some(gateway) = RemoteGateway::of(&command.gateway)? {
        return remote::release(id, &gateway, options);
    }
    let mut workplace = Workplace::open(options)?;
    let review = workplace.review(id, now())?;
    review.server.check_release()?;
    let question = match review.server.siblings.as_slice() {
        [] => format!("Release server `{id}` from quarantine?"),
        others => format!(
            "Release server `{id}`, and with it {} (launched the same way), from quarantine?",
            sharing::list(others)
        ),
    };
    approver::confirm_yes(&workplace.configuration, &question)?;
    let surface = look_again(&workplace, &review, &command.upstream, options)?;
    let by = approver::name();
    let (store, configured) = workplace.acting();
    let by = approver::by(&by);
    let decided = acts::release(store, &review.server, &surface, &configured, by)?;
    print_result(id, decided.status, "released", decided.shared, options)
}

/// The server as it is now. Returns the last observation if the server was pinned from a capture,
/// or if it cannot be started because a word of its command was not stored.
fn look_again(
    workplace: &Workplace,
    review: &Review,
    upstream: &UpstreamArguments,
    options: &Options,
) -> Result<Surface, Failure> {
    let id = &review.server.id;
    let is_named = upstream.url.is_some() || !upstream.command.is_empty();
    if is_named {
        let reach = Reach::of(upstream)?.for_client(known_client(id, workplace)?);
        let place = workplace.confined_in();
        let reach = reach.configured_by(id, &workplace.configuration, upstream).confined(
            id,
            &upstream.sandbox,
            place,
            Otherwise::AsBefore,
        )?;
        admit_before_look(id, &reach, &workplace.configuration, workplace.home.path())?;
        return observe(&reach, &workplace.launch_key, options);
    }
    let last_seen = || Ok(review.surface.clone().unwrap_or_default());
    let server = review.server.snapshot.server.as_ref();
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

/// Withdraws the newest pin of an entry.
pub(crate) fn rollback(command: &RollbackCommand, options: &Options) -> Result<Exit, Failure> {
    let id = &command.id;
    let mut workplace = Workplace::open(options)?;
    let review = workplace.review(id, now())?;
    let by = approver::name();
    let (store, configured) = workplace.acting();
    let back = acts::rollback(store, &review, &command.key, &configured, approver::by(&by))?;
    let RolledBack { entry, status, shared } = back;
    print_result(id, status, &format!("{entry}: the previous pin applies again"), shared, options)
}

fn print_result(
    id: &ServerId,
    status: ServerStatus,
    words: &str,
    shared: Vec<Shared>,
    options: &Options,
) -> Result<Exit, Failure> {
    if options.json {
        let document = serde_json::json!({ "server": id, "status": status });
        screen::print_json(&sharing::with_shared(document, &shared))?;
    } else {
        screen::say(format!("{id}: {}; the server is {status}", screen::readable(words)));
        sharing::say(&shared);
    }
    Ok(sharing::exit(shared, Exit::Fine))
}
