//! Tries the tools of a server: for a session, and by hand (`check --behavioral`).

use crate::report::ObservedTool;
use crate::screen;
use contract::surface::{EntryId, EntryType, Surface};
use engine::behavior::{Isolation, Observable, ObservedBehavior, Probe, Prober, SandboxIsolation};
use gate::behavior::{Assessment, Consent};
use gate::judge::SurfaceJudgement;
use gate::server::ServerId;
use gate::tiers::{Behavior, Held, is_behavioral};
use gate::verdict::Verdict;
use std::path::Path;
use wire::Upstream;

/// A prober for the tools of a server, if the operator allows trying them.
pub(crate) fn prober(consent: Consent, upstream: &Upstream, home: &Path) -> Option<Prober> {
    match consent {
        Consent::Off | Consent::NotOwned => None,
        Consent::Given(leg) => Some(Prober::new(leg, upstream.clone(), isolation(home))),
    }
}

fn isolation(home: &Path) -> Option<Box<dyn Isolation>> {
    let helper = std::env::current_exe().ok()?;
    Some(Box::new(SandboxIsolation::new(helper, home.to_owned())))
}

/// The outcome of trying a server by hand.
pub(crate) struct TriedByHand {
    /// The worst outcome of all tools that were tried.
    pub(crate) behavior: Behavior,
    pub(crate) tools: Vec<ObservedTool>,
    /// What the user can do if nothing was tried.
    pub(crate) advice: Option<String>,
}

/// Tries every tool whose change concerns behaviour, and repeats the judgement with what was
/// observed.
pub(crate) fn try_by_hand(
    id: &ServerId,
    consent: Consent,
    upstream: Option<&Upstream>,
    surface: &Surface,
    judgement: &mut SurfaceJudgement,
    home: &Path,
) -> TriedByHand {
    let nothing = |behavior, advice: String| TriedByHand {
        behavior,
        tools: Vec::new(),
        advice: Some(advice),
    };
    let Some(upstream) = upstream else {
        let words = "a capture cannot be tried: name the server";
        return nothing(Behavior::Unavailable, words.to_owned());
    };
    let Some(prober) = prober(consent, upstream, home) else {
        let _ = ObservedBehavior::default().climb(&Held, &Held, consent, surface, judgement);
        return match consent {
            Consent::NotOwned => {
                nothing(Behavior::Declined, format!("{}: {OWNER}", Assessment::Declined.words()))
            }
            Consent::Off | Consent::Given(_) => nothing(
                Behavior::Unavailable,
                format!(
                    "trying this server is not allowed: set `mode` under `[server.{id}.behavior]` \
                     (docs/behavior.md)"
                ),
            ),
        };
    };
    let origin = surface.entry(&EntryId::only(EntryType::Origin));
    let mut observed = ObservedBehavior::default();
    let mut tools = Vec::new();
    let open = judgement.entries.iter();
    let open = open.filter(|it| it.verdict == Verdict::Inconclusive && is_behavioral(it));
    for tool in open.filter_map(|entry| entry.after.as_ref()) {
        let assessment = prober.probe(tool);
        observed.learn(Observable::of(tool, origin), assessment.behavior());
        tools.push(ObservedTool::of(tool.key(), prober.leg(), &assessment));
    }
    let _ = observed.climb(&Held, &Held, consent, surface, judgement);
    match tools.iter().map(|tool| tool.outcome).max_by_key(|behavior| gravity(*behavior)) {
        Some(behavior) => TriedByHand { behavior, tools, advice: None },
        None => nothing(Behavior::NotRun, "no change waits for a look at behaviour".to_owned()),
    }
}

impl TriedByHand {
    /// Whether the trial did not clear the change, which therefore stays held.
    pub(crate) fn holds(&self) -> bool {
        match self.behavior {
            Behavior::Declined | Behavior::Unavailable | Behavior::Failed => true,
            Behavior::Cleared | Behavior::NotRun => false,
        }
    }

    pub(crate) fn say(&self) {
        for ObservedTool { tool, outcome, leg, detail, .. } in &self.tools {
            let (tool, detail) = (screen::name(tool), screen::readable(detail));
            screen::say(format!("behaviour of {tool}: {outcome} ({leg}): {detail}"));
        }
        if let Some(advice) = &self.advice {
            screen::say(format!("behaviour: {}: {}", self.behavior, screen::readable(advice)));
        }
    }
}

const OWNER: &str = "add `owner = true` if it is yours";

fn gravity(behavior: Behavior) -> u8 {
    match behavior {
        Behavior::NotRun => 0,
        Behavior::Cleared => 1,
        Behavior::Unavailable => 2,
        Behavior::Declined => 3,
        Behavior::Failed => 4,
    }
}
