//! `holdpoint approve ID [KEY…] --hash H`: approves exactly what was reviewed.

use crate::approver;
use crate::arguments::{ApproveCommand, Options};
use crate::commands::remote;
use crate::commands::review::show_change;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::remote_gateway::RemoteGateway;
use crate::report::count;
use crate::screen;
use crate::server_text::ServerText;
use crate::sharing;
use crate::target::Workplace;
use engine::acts::{Decided, ReviewedHash, approve};
use gate::server::ServerId;

pub(crate) fn run(command: &ApproveCommand, options: &Options) -> Result<Exit, Failure> {
    let id = &command.id;
    let hash: ReviewedHash = command.hash.parse().map_err(|error| {
        Failure::usage(format!("`--hash` is {error}, as `holdpoint review` prints it"))
    })?;
    if let Some(gateway) = RemoteGateway::of(&command.gateway)? {
        return remote::approve(command, &gateway, options);
    }
    let mut workplace = Workplace::open(options)?;
    let review = workplace.review(id, now())?;
    let choice = review.choose(&command.keys, &hash)?;
    let what = match choice.entries.as_slice() {
        [_] => format!("This is one entry of server `{id}`, hash {hash}."),
        many => format!("These are {} entries of server `{id}`, hash {hash}.", many.len()),
    };
    let what = sharing::decided_on(what, &review.server.siblings);
    approver::confirm(&workplace.configuration, &what, || {
        choice.entries.iter().for_each(|entry| show_change(entry, ServerText::Shown));
    })?;
    let by = approver::name();
    let Decided { status, shared } = {
        let (store, configured) = workplace.acting();
        approve(store, &choice, &configured, approver::by(&by))?
    };
    if options.json {
        let approved: Vec<String> =
            choice.entries.iter().map(|entry| entry.id.to_string()).collect();
        let document = serde_json::json!({ "server": id, "approved": approved, "status": status });
        screen::print_json(&sharing::with_shared(document, &shared))?;
    } else {
        let entries = count(choice.entries.len(), "entry", "entries");
        let left = what_is_left(&workplace, id)?;
        screen::say(format!("approved {entries} of {id}; {left}"));
        sharing::say(&shared);
    }
    Ok(sharing::exit(shared, Exit::Fine))
}

/// What still waits after an approval.
fn what_is_left(workplace: &Workplace, id: &ServerId) -> Result<String, Failure> {
    let review = workplace.review(id, now())?;
    let (held, deferred): (Vec<_>, Vec<_>) =
        review.waiting().partition(|entry| entry.verdict.is_held());
    let still = match (held.len(), deferred.len()) {
        (0, 0) => return Ok(format!("no other is waiting; the server is {}", review.status())),
        (held, 0) => format!("{held} still held"),
        (0, deferred) => format!("{deferred} still deferred"),
        (held, deferred) => format!("{held} still held, {deferred} deferred"),
    };
    Ok(format!("{still}: holdpoint review {id}"))
}
