//! `holdpoint check`: contacts a server now and compares it with its pins. The pins do not change.

use crate::approver;
use crate::arguments::{CheckCommand, Options};
use crate::behavior::{TriedByHand, try_by_hand};
use crate::commands::network::LocalNetwork;
use crate::failure::{Exit, Failure};
use crate::observation::{now, remark_notes, surface_of};
use crate::report::{self, VerdictDocument};
use crate::screen::{self, DIM, styled};
use crate::server_text;
use crate::target::{Source, Target, Workplace};
use crate::vouching::admit_before_look;
use engine::acts::observe;
use gate::judge::SurfaceJudgement;
use gate::server::{ServerId, ServerStatus};
use gate::verdict::Verdict;

pub(crate) fn run(command: &CheckCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open(options)?;
    let target = Target::of(&command.target, &mut workplace)?;
    let server = workplace.recorded(&target.id, now())?;
    if !server.pins().has_baseline() {
        return no_pin(&target.id, options);
    }
    if let Source::Server(reach) = &target.source {
        let (configuration, home) = (&workplace.configuration, workplace.home.path());
        admit_before_look(&target.id, reach, configuration, home)?;
    }
    let surface = surface_of(&target.source, &workplace.launch_key, options)?;
    remark_notes(&surface, options);
    let mut judgement = server.judge(&surface, command.posture);
    // A posture given on the command line is only tried out: it must not change the status.
    let counted = command.posture.is_none().then(|| server.judge_for_status(&surface));
    let by = approver::name();
    let by = approver::by(&by);
    observe(&mut workplace.store, &server, &surface, counted.as_ref(), by)?;
    let tried = command.behavioral.then(|| {
        let upstream = match &target.source {
            Source::Server(reach) => Some(&reach.upstream),
            Source::Capture(_) => None,
        };
        let consent = workplace.configuration.consent(&target.id);
        let home = workplace.home.path();
        try_by_hand(&target.id, consent, upstream, &surface, &mut judgement, home)
    });
    LocalNetwork::open(workplace.home.path(), &workplace.configuration)
        .refreshed()
        .remark_changes(&judgement);
    let is_quarantined = server.status() == ServerStatus::Quarantined;
    let text = server_text::on_standard_output(command.text.server_text);
    let is_untried = if options.json {
        let mut document = VerdictDocument::of(&judgement, text);
        document.server = Some(target.id.as_str());
        if is_quarantined {
            document.quarantined();
        }
        let is_untried = tried.as_ref().is_some_and(TriedByHand::holds);
        document.behavioral = tried.as_ref().map(|tried| tried.behavior);
        document.observed = tried.map(|tried| tried.tools);
        screen::print_json(&document)?;
        is_untried
    } else {
        report::say_entries(&judgement, text);
        let waits = counted.as_ref().unwrap_or(&judgement).waiting().next().is_some();
        print_result(&target.id, &judgement, tried.as_ref(), is_quarantined, waits, options);
        tried.as_ref().is_some_and(TriedByHand::holds)
    };
    let is_held = judgement.verdict.is_held() || is_untried || is_quarantined;
    let is_unreadable =
        !judgement.unreadable.is_empty() && matches!(target.source, Source::Server(_));
    Ok(match (is_unreadable, is_held) {
        (true, _) => Exit::Unreachable,
        (false, true) => Exit::Held,
        (false, false) => Exit::Fine,
    })
}

fn print_result(
    id: &ServerId,
    judgement: &SurfaceJudgement,
    tried: Option<&TriedByHand>,
    is_quarantined: bool,
    waits: bool,
    options: &Options,
) {
    if is_quarantined {
        let held = screen::verdict(Verdict::Hold);
        screen::say(format!(
            "{id}: {held}  quarantined: it is not served until `holdpoint release {id}`"
        ));
    } else {
        screen::say(format!("{id}: {}", report::summary(judgement)));
    }
    if let Some(tried) = tried {
        tried.say();
    }
    if waits && !options.quiet {
        screen::say(styled(DIM, format!("next: holdpoint review {id}")));
    }
}

fn no_pin(id: &ServerId, options: &Options) -> Result<Exit, Failure> {
    let words =
        format!("server `{id}` has no pin yet: type `holdpoint pin` with the same arguments");
    if options.json {
        let document = serde_json::json!({ "server": id, "verdict": "HOLD", "reason": "no_pin", "detail": words });
        screen::print_json(&document)?;
    } else {
        screen::say(format!("{}  {words}", screen::verdict(Verdict::Hold)));
    }
    Ok(Exit::Held)
}
