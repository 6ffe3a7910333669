//! The default demonstration: a server is pinned, called, changed, held, reviewed, approved, and
//! called again.

use super::session::{Called, Launch, Session, Stage};
use super::{gone_wrong, poisoned};
use crate::approver;
use crate::arguments::Options;
use crate::failure::{Exit, Failure};
use crate::report::{self, VerdictDocument};
use crate::screen::{self, BOLD, DIM, GREEN, RED, styled};
use crate::server_text::ServerText;
use crate::side_by_side;
use contract::surface::{EntryType, read_capture};
use engine::acts::{self, Review};
use gate::server::ServerId;
use gate::verdict::Verdict;
use serde_json::{Value, json};
use std::time::Duration;

const SERVER: &str = "reports";
const SCENARIO: &str = "added_required";
const TOOL: &str = "make_report";
/// How old the gate's view may get if the server does not announce its change.
const MAX_AGE_SECONDS: &str = "1";
/// Long enough for the view to exceed that age.
const UNTIL_TOO_OLD: Duration = Duration::from_millis(1_100);

/// How the change reaches the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The server announces that its list changed.
    Announced,
    /// The server does not announce it.
    Withheld,
    /// The change is made while neither server nor gate runs.
    WhileDown,
}

impl Ending {
    fn gate_options(self) -> &'static [&'static str] {
        match self {
            Ending::Withheld => &["--relist-max-age", MAX_AGE_SECONDS],
            Ending::Announced | Ending::WhileDown => &[],
        }
    }

    fn server_options(self) -> &'static [&'static str] {
        match self {
            Ending::Withheld => &["--withhold"],
            Ending::Announced | Ending::WhileDown => &[],
        }
    }

    fn words(self) -> &'static str {
        match self {
            Ending::Announced => {
                "On Tuesday the tool's definition changes. Nothing in MCP stops the agent from calling it:"
            }
            Ending::Withheld => {
                "On Tuesday the tool's definition changes, and the server does not announce it. The agent calls it:"
            }
            Ending::WhileDown => {
                "The gate and the server are killed, and the tool changes. They start again, and the agent calls it:"
            }
        }
    }
}

pub(super) fn run(ending: Ending, options: &Options) -> Result<Exit, Failure> {
    let teller = Teller { is_silent: options.json };
    let stage = Stage::new(options)?;
    // The default demonstration starts with the poisoned description.
    let poisoned = match ending {
        Ending::Announced => Some(poisoned::tell(&teller, &stage)?),
        Ending::Withheld | Ending::WhileDown => None,
    };
    if poisoned.is_some() {
        teller.heading("A tool gains a required parameter");
    }
    let id: ServerId = SERVER.parse().map_err(Failure::internal)?;
    let launch = Launch {
        id: &id,
        scenario: SCENARIO,
        gate_options: ending.gate_options(),
        server_options: ending.server_options(),
    };
    let mut session = stage.start(&launch)?;
    teller.step(
        1,
        "On Monday your agent meets a server. Holdpoint pins the definitions of its tools.",
    );
    for (name, hash) in pinned(&mut session)? {
        teller.say(format!("   {} {name}  {}", styled(GREEN, "pinned"), styled(DIM, hash)));
    }
    teller.say(format!("   {}", through(session.call(TOOL, &json!({ "title": "Monday" }))?)?));
    teller.step(2, ending.words());
    session = change(ending, &stage, &launch, session)?;
    let banner = match session.call(TOOL, &json!({ "title": "Tuesday" }))? {
        Called::Held(held) => held.message,
        Called::Through(_) => return Err(gone_wrong("the call went through")),
    };
    if stage.has_reached(&id, "Tuesday")? {
        return Err(gone_wrong("the call reached the server"));
    }
    teller.say(format!("\n   {}\n", styled(RED, banner)));
    teller.say("   Nothing of that call reached the server.");
    let held = stage.judged(&id)?;
    teller.step(3, "You look at what changed, before and after:\n");
    teller.show(&held);
    let hash = approve(&stage, &held)?;
    teller.step(4, "It is what the vendor announced, so you approve it, by its hash:");
    // Too long for one line of most terminals, so continue it the way a shell does.
    teller.say(format!("   $ holdpoint approve {id} \\"));
    teller.say(format!("       --hash {hash}"));
    teller.step(5, "The next call goes through:");
    let arguments = json!({ "title": "Wednesday", "owner": "you" });
    teller.say(format!("   {}", through(session.call(TOOL, &arguments)?)?));
    let after = stage.judged(&id)?;
    teller.say(format!("   {}\n", report::summary(&after.judgement)));
    session.end()?;
    teller.close(poisoned.as_ref(), &held, &after)
}

/// The tools that the client sees, each with its hash.
pub(super) fn pinned(session: &mut Session) -> Result<Vec<(String, String)>, Failure> {
    let answer = session.ask("tools/list", &json!({}))?;
    let listed = answer.get("result").map(Value::to_string).unwrap_or_default();
    let surface = read_capture(listed.as_bytes()).map_err(gone_wrong)?;
    let tools = surface.entries().filter(|entry| entry.entry_type() == EntryType::Tool);
    let tools: Vec<(String, String)> = tools
        .map(|tool| (tool.key().to_owned(), format!("{:.16}…", tool.entry_hash().to_string())))
        .collect();
    if tools.is_empty() { Err(gone_wrong("no tool was listed")) } else { Ok(tools) }
}

/// Changes the server, and brings the client to a state in which it can call again.
fn change(
    ending: Ending,
    stage: &Stage,
    launch: &Launch<'_>,
    mut session: Session,
) -> Result<Session, Failure> {
    match ending {
        Ending::Announced => {
            stage.change(launch.id)?;
            // The server announces the change before it answers, so once the ping is answered the
            // gate has seen it.
            session.ask("ping", &json!({}))?;
            Ok(session)
        }
        Ending::Withheld => {
            stage.change(launch.id)?;
            std::thread::sleep(UNTIL_TOO_OLD);
            Ok(session)
        }
        Ending::WhileDown => {
            session.kill()?;
            stage.change(launch.id)?;
            stage.start(launch)
        }
    }
}

/// Approves everything that waits, and returns the hash that was approved.
fn approve(stage: &Stage, held: &Review) -> Result<String, Failure> {
    let hash = held.surface_hash().ok_or_else(|| gone_wrong("nothing was observed"))?;
    let by = approver::name();
    let choice = held.choose(&[], &hash)?;
    let mut workplace = stage.workplace()?;
    let (store, configured) = workplace.acting();
    acts::approve(store, &choice, &configured, approver::by(&by))?;
    Ok(hash.to_string())
}

pub(super) fn through(called: Called) -> Result<String, Failure> {
    match called {
        Called::Through(text) => Ok(format!("{} {text}", styled(GREEN, "answered"))),
        Called::Held(held) => Err(gone_wrong(held.message)),
    }
}

/// Prints the demonstration's text, unless it is silent.
#[derive(Debug)]
pub(super) struct Teller {
    is_silent: bool,
}

impl Teller {
    pub(super) fn heading(&self, text: &str) {
        self.say("");
        self.say(styled(BOLD, format!("━━ {text} ━━")));
    }

    pub(super) fn say(&self, line: impl std::fmt::Display) {
        if !self.is_silent {
            line.to_string().split('\n').for_each(screen::say);
        }
    }

    pub(super) fn step(&self, number: usize, text: &str) {
        self.say(format!("\n{} {text}", styled(BOLD, format!("{number}."))));
    }

    pub(super) fn show(&self, held: &Review) {
        if self.is_silent {
            return;
        }
        report::say_entries(&held.judgement, ServerText::Shown);
        screen::say("");
        for entry in held.judgement.held() {
            let headings = ["before (approved)", "now"];
            side_by_side::show(entry.before.as_ref(), entry.after.as_ref(), headings);
        }
    }

    fn close(
        &self,
        poisoned: Option<&Review>,
        held: &Review,
        after: &Review,
    ) -> Result<Exit, Failure> {
        if self.is_silent {
            let document =
                |review: &Review| json!(VerdictDocument::of(&review.judgement, ServerText::Shown));
            screen::print_json(&json!({
                "poisoned": poisoned.map(document),
                "held": document(held),
                "after_approval": document(after),
            }))?;
        }
        self.say(styled(
            DIM,
            "A hold means that a contract changed, never that a tool is unsafe. You decide.",
        ));
        self.say(styled(DIM, "Guard the servers of your own agent: holdpoint wire"));
        match (held.judgement.verdict, after.judgement.verdict) {
            (Verdict::Hold, Verdict::Proceed) => Ok(Exit::Fine),
            (held, after) => Err(gone_wrong(format!("{held}, then {after}"))),
        }
    }
}
