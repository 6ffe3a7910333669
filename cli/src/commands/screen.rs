//! `holdpoint screen`: reads a contract adversarially and reports the findings. It pins nothing and
//! stops no call.

mod document;
mod intent;
mod sarif;

use crate::arguments::Options;
use crate::arguments::screen::ScreenCommand;
use crate::failure::{Exit, Failure};
use crate::observation::{captured, now, observe_unpinned};
use crate::screen::{self as terminal, DIM, GREEN, RED, YELLOW, styled};
use crate::server_text::{ServerText, on_standard_output};
use ::screen::dimension::Outcome;
use ::screen::finding::{Finding, Severity};
use ::screen::grade::Grade;
use ::screen::limits::HonestLimit;
use ::screen::reading::{Context, LaunchLine};
use ::screen::state::Directive;
use ::screen::verdict::Screening;
use contract::surface::{EntryType, Surface};
use engine::origin::words_of;
use intent::read_asking;
use wire::Upstream;

/// A screened surface and its source.
pub(crate) struct Screened {
    pub(crate) surface: Surface,
    pub(crate) screening: Screening,
    /// The text of the file and its name, if a file was screened.
    pub(crate) file: Option<(String, String)>,
}

pub(crate) fn run(command: &ScreenCommand, options: &Options) -> Result<Exit, Failure> {
    if command.sarif && options.json {
        return Err(Failure::usage(
            "choose one of `--json` and `--sarif`: each is a whole document",
        ));
    }
    let screened = screened(command, options)?;
    let text = on_standard_output(command.text.server_text);
    let worst = screened.screening.worst();
    let is_failed = command.fail_on.is_reached(worst);
    if command.sarif {
        terminal::print_json(&sarif::document(&screened))?;
    } else if options.json {
        let text = if command.text.server_text { ServerText::Shown } else { ServerText::Located };
        terminal::print_json(&document::of(&screened, text, is_failed))?;
    } else {
        print(&screened, text, options);
    }
    Ok(if is_failed { Exit::Held } else { Exit::Fine })
}

fn screened(command: &ScreenCommand, options: &Options) -> Result<Screened, Failure> {
    let Some(path) = &command.file else { return listed(command, options) };
    let surface = captured(path).map_err(|mut failure| {
        // A contract that cannot be parsed unambiguously cannot be screened.
        if failure.exit == Exit::Held {
            failure.exit = Exit::Unreachable;
        }
        failure
    })?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let name = path.to_string_lossy().replace('\\', "/");
    let context = Context::new(Grade::Scanned, now());
    let screening = read_asking(&surface, &context, command, options)?;
    Ok(Screened { surface, screening, file: Some((name, text)) })
}

/// Lists a server now.
fn listed(command: &ScreenCommand, options: &Options) -> Result<Screened, Failure> {
    if command.upstream.url.is_none() && command.upstream.command.is_empty() {
        return Err(Failure::usage(
            "what to screen? name a capture FILE, `-- CMD…` to start a server, or `--url URL`",
        ));
    }
    let (reach, surface) = observe_unpinned(&command.upstream, options)?;
    let mut context = Context::new(Grade::CrawlL0, now());
    match &reach.upstream {
        Upstream::Stdio(launch) => {
            let (program, arguments) = words_of(launch);
            context.names.extend(arguments.iter().cloned());
            context.launch = Some(LaunchLine { program, arguments });
        }
        Upstream::Http(endpoint) => context.names.push(endpoint.url.as_str().to_owned()),
    }
    let screening = read_asking(&surface, &context, command, options)?;
    Ok(Screened { surface, screening, file: None })
}

fn print(screened: &Screened, text: ServerText, options: &Options) {
    let Screened { surface, screening, .. } = screened;
    let state = screening.state(screening.screened_at, surface.surface_hash());
    let directive = match (state.directive, screening.worst()) {
        (Directive::Allow, _) => styled(GREEN, state.directive),
        (Directive::Deny, _) | (_, Some(Severity::High)) => styled(RED, state.directive),
        (Directive::Review | Directive::Unverified, _) => styled(YELLOW, state.directive),
    };
    terminal::say(format!("{directive}  {}", counted(surface)));
    let mut findings: Vec<&Finding> = screening.findings().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    for finding in &findings {
        say_finding(finding, text);
    }
    if findings.is_empty() {
        terminal::say("  nothing was found");
    }
    let dimensions = screening.dimensions().into_iter().map(|result| match result.outcome {
        Outcome::Pass => format!("{} pass", result.dimension),
        Outcome::Fail => format!("{} fail", result.dimension),
        Outcome::NotRun => format!("{} not run", result.dimension),
    });
    terminal::say_fitted(format!("  {}", dimensions.collect::<Vec<_>>().join(", ")));
    let (grade, until) = (screening.grade, screening.expires_at);
    terminal::say(format!("  evidence: {grade}, until {until}"));
    if options.quiet {
        return;
    }
    for limit in HonestLimit::of(&screening.dimensions()) {
        terminal::say_fitted(styled(DIM, format!("  {}", limit.sentence())));
    }
    if text == ServerText::Located && !findings.is_empty() {
        let how =
            "the server's own words are left out: a terminal shows them, and so does --server-text";
        terminal::remark(how);
    }
}

fn say_finding(finding: &Finding, text: ServerText) {
    let severity = match finding.severity {
        Severity::High => styled(RED, "high  "),
        Severity::Medium => styled(YELLOW, "medium"),
        Severity::Low => styled(DIM, "low   "),
    };
    let (name, place) = match text {
        ServerText::Shown => {
            (terminal::name(&finding.entry.key), terminal::readable(&finding.pointer))
        }
        ServerText::Located => (finding.entry_name(), finding.place()),
    };
    let (kind, rule) = (finding.entry.entry_type, finding.rule);
    terminal::say_fitted(format!("  {severity}  {kind} `{name}` {}", finding.reason));
    terminal::say_fitted(styled(DIM, format!("          {place} [{rule}]")));
    if text == ServerText::Shown && !finding.excerpt.is_empty() {
        terminal::say_fitted(format!("          | {}", terminal::readable(&finding.excerpt)));
    }
}

/// The number of entries that were read.
fn counted(surface: &Surface) -> String {
    let parts = EntryType::ALL.into_iter().filter_map(|kind| {
        let count = surface.entries().filter(|entry| entry.entry_type() == kind).count();
        match (count, kind) {
            (0, _) => None,
            (_, EntryType::Instructions | EntryType::Identity | EntryType::Origin) => {
                Some(kind.to_string())
            }
            (1, _) => Some(format!("1 {kind}")),
            (count, _) => Some(format!("{count} {kind}s")),
        }
    });
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => "no contract".to_owned(),
        false => format!("{} read", parts.join(", ")),
    }
}
