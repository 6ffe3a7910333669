//! The intent dimension: asks the model in `[judge]` about each tool, if the operator wants that.

use crate::arguments::Options;
use crate::arguments::screen::ScreenCommand;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::screen as terminal;
use crate::target::home_path;
use crate::upper_tiers;
use ::screen::finding::Severity;
use ::screen::reading::{Conformance, Context, Opinion, read, read_with};
use ::screen::verdict::Screening;
use contract::surface::{Entry, EntryType, Surface};
use engine::consult::ConfiguredJudge;
use engine::network::NetworkFolder;
use gate::consult::{Answer, ModelOpinion, ModelSeverity};
use gate::server::ServerId;
use std::cell::Cell;

/// The budget that questions of `screen` count against.
const SERVER: &str = "screen";

/// Screens a surface, and asks the model about it if requested or configured.
pub(super) fn read_asking(
    surface: &Surface,
    context: &Context,
    command: &ScreenCommand,
    options: &Options,
) -> Result<Screening, Failure> {
    let Some(judge) = judge(command, options)? else { return Ok(read(surface, context)) };
    let server: ServerId = SERVER.parse().map_err(Failure::internal)?;
    let is_told = Cell::new(false);
    Ok(read_with(surface, context, |entry| {
        let opinion = ask(&judge, &server, entry, &is_told);
        (opinion.into_iter().collect(), Conformance::NotRun)
    }))
}

fn judge(command: &ScreenCommand, options: &Options) -> Result<Option<ConfiguredJudge>, Failure> {
    let home = home_path(options)?;
    let configuration = Configuration::read(&home.join("holdpoint.toml"))?;
    if !command.judge && !configuration.judge().screen {
        return Ok(None);
    }
    let access = upper_tiers::access(&home, &configuration);
    match access.consult {
        Some(settings) => Ok(Some(ConfiguredJudge::new(settings, NetworkFolder::of(&home))?)),
        None if command.judge => {
            let why = match (&access.veto, access.problems.first()) {
                (Some(veto), _) => veto.to_string(),
                (None, Some(problem)) => problem.clone(),
                (None, None) => "name it under `[judge]` in holdpoint.toml".to_owned(),
            };
            Err(Failure::usage(format!("`--judge`: there is no model to ask: {why}")))
        }
        None => Ok(None),
    }
}

/// An entry that could not be asked about counts as not judged. After the first failure no more
/// questions are sent: a slow model would otherwise delay the command for every tool.
fn ask(
    judge: &ConfiguredJudge,
    server: &ServerId,
    entry: &Entry,
    is_told: &Cell<bool>,
) -> Option<Opinion> {
    if entry.entry_type() != EntryType::Tool {
        return None;
    }
    if is_told.get() {
        return judge.known(entry.entry_hash()).as_ref().map(opinion_of);
    }
    match judge.ask_about_entry(server, entry) {
        Ok(answer) => Some(opinion_of(&answer)),
        Err(error) => {
            if !is_told.replace(true) {
                let why = terminal::readable(&error.to_string());
                terminal::remark(format!("the model was not asked about every tool: {why}"));
            }
            None
        }
    }
}

fn opinion_of(answer: &Answer) -> Opinion {
    match answer.opinion {
        ModelOpinion::LikelyHostile => Opinion::LikelyHostile(match answer.severity {
            ModelSeverity::None | ModelSeverity::Low => Severity::Low,
            ModelSeverity::Medium => Severity::Medium,
            ModelSeverity::High => Severity::High,
        }),
        ModelOpinion::LikelyBenign => Opinion::LikelyBenign,
        ModelOpinion::Abstain => Opinion::Abstains,
    }
}
