//! The best-known attack on MCP: a description that gains an instruction to the model overnight.
//! The change is held, shown, and stopped.

use super::gone_wrong;
use super::session::{Called, Launch, Stage};
use super::story::{Teller, pinned, through};
use crate::approver;
use crate::failure::Failure;
use crate::screen::{DIM, GREEN, RED, styled};
use engine::acts::{self, Review};
use gate::server::ServerId;
use serde_json::json;

const SERVER: &str = "notes";
const SCENARIO: &str = "poisoned_description";
const TOOL: &str = "read_note";

/// Plays the attack and returns the held change.
pub(super) fn tell(teller: &Teller, stage: &Stage) -> Result<Review, Failure> {
    let id: ServerId = SERVER.parse().map_err(Failure::internal)?;
    let launch = Launch { id: &id, scenario: SCENARIO, gate_options: &[], server_options: &[] };
    let mut session = stage.start(&launch)?;
    teller.heading("A description gains an order to the model");
    teller.step(1, "On Monday your agent uses a server of notes. Holdpoint pins its tools.");
    for (name, hash) in pinned(&mut session)? {
        teller.say(format!("   {} {name}  {}", styled(GREEN, "pinned"), styled(DIM, hash)));
    }
    teller.say(format!("   {}", through(session.call(TOOL, &json!({ "title": "Monday" }))?)?));
    teller.step(
        2,
        "On Tuesday the description tells the model to read a key. The agent calls the tool:",
    );
    stage.change(&id)?;
    // The server announces the change before it answers, so once the ping is answered the gate has
    // seen it.
    session.ask("ping", &json!({}))?;
    let banner = held(session.call(TOOL, &json!({ "title": "Tuesday" }))?)?;
    if stage.has_reached(&id, "Tuesday")? {
        return Err(gone_wrong("the call reached the server"));
    }
    teller.say("");
    teller.say(format!("   {}", styled(RED, banner)));
    teller.say("");
    teller.say("   The call did not reach the server, and the order did not reach the model.");
    teller.step(3, "Only you see it, on your terminal:");
    teller.say("");
    let review = stage.judged(&id)?;
    teller.show(&review);
    teller.step(4, "You stop the server, and no call goes through until you release it:");
    teller.say(format!("   $ holdpoint quarantine {id}"));
    let by = approver::name();
    let mut workplace = stage.workplace()?;
    let (store, configured) = workplace.acting();
    acts::quarantine(store, &id, Some(&review), &configured, approver::by(&by))?;
    held(session.call(TOOL, &json!({ "title": "Wednesday" }))?)?;
    teller.say(format!("   {} the next call too", styled(RED, "held")));
    session.end()?;
    Ok(review)
}

fn held(called: Called) -> Result<String, Failure> {
    match called {
        Called::Held(held) => Ok(held.message),
        Called::Through(_) => Err(gone_wrong("the call went through")),
    }
}
