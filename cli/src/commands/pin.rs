//! `holdpoint pin`: contacts a server now and pins its surface as approved by the user.

use crate::approver;
use crate::arguments::{Options, PinCommand};
use crate::commands::network::LocalNetwork;
use crate::commands::review::show_change;
use crate::failure::{Exit, Failure};
use crate::observation::{Looked, look_at, now, remark_notes};
use crate::report;
use crate::screen::{self, BOLD, DIM, styled};
use crate::server_text::{self, ServerText};
use crate::sharing;
use crate::target::{Source, Target, Workplace};
use crate::vouching::{admit_before_look, checker_for};
use contract::json::Node;
use contract::surface::{Entry, EntryId, EntryType};
use engine::acts::{PinDraft, PinQuestion, Pinned, pin};
use engine::admission::Admitted;
use gate::server::ServerId;
use wire::attestation::Greeting;

pub(crate) fn run(command: &PinCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open_to_record(options)?;
    let target = Target::of(&command.target, &mut workplace)?;
    let server = workplace.recorded(&target.id, now())?;
    server.check_pin()?;
    let (checker, before) = match &target.source {
        Source::Capture(_) => (None, None),
        Source::Server(reach) => {
            let (configuration, home) = (&workplace.configuration, workplace.home.path());
            let before = admit_before_look(&target.id, reach, configuration, home)?;
            (checker_for(&target.id, reach, &workplace, options)?, before)
        }
    };
    let Looked { surface, handshake } = look_at(&target.source, &workplace.launch_key, options)?;
    remark_notes(&surface, options);
    let admitted = before.or_else(|| {
        checker
            .map(|mut checker| checker.check(handshake.as_deref(), Greeting::Initialize).admitted)
    });
    let vouched = admitted.as_deref().and_then(Admitted::anchor);
    let draft = PinDraft::new(server, surface, vouched)?;
    remark_unvouched(admitted.as_deref(), options);
    let text = server_text::on_standard_output(command.text.server_text);
    let draft = ask(draft, &target.id, &workplace, options, text)?;
    preview(&draft, &target.id, options, text);
    let by = approver::name();
    let network = LocalNetwork::open(workplace.home.path(), &workplace.configuration);
    let (store, configured) = workplace.acting();
    let pinned = pin(store, draft, target.launch.as_ref(), &configured, approver::by(&by))?;
    let exit = print_result(&target.id, &pinned, options, text)?;
    network.refreshed().remark_pinned(&pinned.surface);
    Ok(sharing::exit(pinned.shared, exit))
}

/// Shows what is about to be approved. A change of a pinned server is already part of the question.
fn preview(draft: &PinDraft, id: &ServerId, options: &Options, text: ServerText) {
    let is_shown = match &draft.question {
        PinQuestion::Nothing | PinQuestion::Marked(_) => true,
        PinQuestion::Change(_) => false,
    };
    if options.json || options.quiet || !is_shown || draft.entries().is_empty() {
        return;
    }
    screen::say(format!("{} offers:", styled(BOLD, id)));
    for entry in draft.entries() {
        let name = match entry.entry_type() {
            EntryType::Instructions | EntryType::Identity | EntryType::Origin => String::new(),
            EntryType::Tool | EntryType::Prompt | EntryType::Resource | EntryType::Template => {
                format!(" {}", screen::name(&text.name(entry.key(), false)))
            }
        };
        let says = first_line(entry).filter(|_| text == ServerText::Shown);
        let says = says.map(|says| styled(DIM, format!("  \"{}\"", screen::readable(&says))));
        screen::say(format!("  {}{name}{}", entry.entry_type(), says.unwrap_or_default()));
    }
    screen::say(styled(DIM, format!("all of it, once it is pinned: holdpoint show {id}")));
}

/// The first line of a description or of the instructions.
fn first_line(entry: &Entry) -> Option<String> {
    let document = entry.document().ok()?;
    let root = document.root();
    let text = root.as_str().or_else(|| root.get("description").and_then(Node::as_str))?;
    text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

/// Prints why the signer is not pinned with the server.
fn remark_unvouched(admitted: Option<&Admitted>, options: &Options) {
    if let Some(denial) = admitted.and_then(Admitted::failure).filter(|_| !options.quiet) {
        screen::remark(styled(
            DIM,
            format!(
                "note: the server's attestation is not pinned: {}: {}",
                denial.reason(),
                screen::readable(denial.detail())
            ),
        ));
    }
}

/// Asks the user every question that the draft needs.
fn ask(
    draft: PinDraft,
    id: &ServerId,
    workplace: &Workplace,
    options: &Options,
    text: ServerText,
) -> Result<PinDraft, Failure> {
    let judgement = match &draft.question {
        PinQuestion::Nothing => return Ok(draft),
        PinQuestion::Change(judgement) | PinQuestion::Marked(judgement) => judgement,
    };
    if !options.json {
        report::say_entries(judgement, text);
    }
    if let PinQuestion::Change(_) = &draft.question {
        let hash = draft.surface.surface_hash();
        let what = format!(
            "Server `{id}` changed since it was pinned; its surface now has the hash {hash}."
        );
        approver::confirm(&workplace.configuration, &what, || {
            judgement.entries.iter().for_each(|entry| show_change(entry, ServerText::Shown));
        })?;
        return Ok(draft);
    }
    let question = "These have wording or characters that are made to steer a model. Pin them too?";
    let is_seen = workplace.configuration.is_unattended() || approver::need_screen().is_ok();
    if !is_seen {
        return Ok(draft.without_marked());
    }
    match approver::confirm_yes(&workplace.configuration, question) {
        Ok(()) => Ok(draft),
        // No terminal, or the answer was not yes.
        Err(_) => Ok(draft.without_marked()),
    }
}

fn print_result(
    id: &ServerId,
    pinned: &Pinned,
    options: &Options,
    text: ServerText,
) -> Result<Exit, Failure> {
    let Pinned { status, count: pinned, surface, left_out, shared } = pinned;
    let exit = if left_out.is_empty() { Exit::Fine } else { Exit::Held };
    if options.json {
        let name = |id: &EntryId| format!("{}:{}", id.entry_type, text.name(&id.key, false));
        let left_out: Vec<String> = left_out.iter().map(name).collect();
        let document = serde_json::json!({
            "server": id,
            "status": status,
            "pinned": pinned,
            "left_out": left_out,
            "entries": surface.entries().count(),
            "surface_hash": surface.surface_hash(),
        });
        screen::print_json(&sharing::with_shared(document, shared))?;
        return Ok(exit);
    }
    let count = |entry_type: EntryType| {
        let entries = surface.entries().filter(|entry| !left_out.contains(entry.id()));
        entries.filter(|entry| entry.entry_type() == entry_type).count()
    };
    let kinds = [
        (EntryType::Tool, "tool"),
        (EntryType::Prompt, "prompt"),
        (EntryType::Resource, "resource"),
        (EntryType::Template, "template"),
    ];
    let parts: Vec<String> = kinds
        .into_iter()
        .map(|(entry_type, word)| (count(entry_type), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| report::count(count, word, &format!("{word}s")))
        .collect();
    let what = if parts.is_empty() { "only its identity".to_owned() } else { parts.join(", ") };
    screen::say(format!("pinned {} {what}, approved by you", styled(BOLD, format!("{id}:"))));
    sharing::say(shared);
    if !left_out.is_empty() {
        let count = report::count(left_out.len(), "entry", "entries");
        screen::say(format!("{count} with a marker left out and held, until you approve them"));
    }
    if !options.quiet {
        screen::say(styled(DIM, format!("surface {}", surface.surface_hash())));
        let next = if left_out.is_empty() { "check" } else { "review" };
        screen::say(styled(DIM, format!("next: holdpoint {next} {id}")));
    }
    Ok(exit)
}
