//! `holdpoint doctor`: reports what works, what is wrong and the command that fixes it. It changes nothing.

mod codes;
mod env_file;
mod home;
mod places;
mod program;
mod sandbox;

use crate::arguments::Options;
use crate::arguments::doctor::DoctorCommand;
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::sign_in::{KnownSignIn, KnownSignIns};
use crate::target::home_path;
use codes::{Code, FindingState};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The result of one check.
#[derive(Debug)]
struct Finding {
    code: Code,
    sentence: String,
    /// The command or the edit that fixes it.
    fix: Option<String>,
    /// The host whose file the finding is about.
    host: Option<&'static str>,
}

impl Finding {
    fn new(code: Code, sentence: impl Into<String>) -> Finding {
        Finding { code, sentence: sentence.into(), fix: None, host: None }
    }

    fn fixed_by(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }
}

#[derive(Debug, Serialize)]
struct FindingDocument<'a> {
    code: &'static str,
    state: &'static str,
    say: &'a str,
    #[serde(rename = "mend")]
    fix: Option<&'a str>,
    page: String,
}

pub(crate) fn run(command: &DoctorCommand, options: &Options) -> Result<Exit, Failure> {
    if let Some(file) = &command.config {
        let finding = check_configuration(file)?;
        report(&[finding], options)?;
        return Ok(Exit::Fine);
    }
    let mut findings = program::look();
    findings.extend(sandbox::look());
    let record = home::look(options, &mut findings)?;
    places::look(options, record.as_ref(), &mut findings)?;
    findings.extend(sign_ins(options)?);
    report(&findings, options)?;
    let is_wrong = findings.iter().any(|finding| finding.code.state() == FindingState::Wrong);
    Ok(if is_wrong { Exit::Unprotected } else { Exit::Fine })
}

/// The servers that Holdpoint holds a credential for. That is no problem, but worth knowing.
fn sign_ins(options: &Options) -> Result<Vec<Finding>, Failure> {
    let known = KnownSignIns::read(&home_path(options)?);
    let finding = |known: &KnownSignIn| {
        let fix = format!("holdpoint sign-out {}", known.id);
        Finding::new(Code::SignedIn, known.words()).fixed_by(fix)
    };
    Ok(known.all().iter().map(finding).collect())
}

/// A file that was named on the command line must exist: a missing one would count as fine.
fn check_configuration(file: &Path) -> Result<Finding, Failure> {
    std::fs::metadata(file)
        .map_err(|error| Failure::usage(format!("`{}`: {error}", file.display())))?;
    Configuration::read(file)?;
    let sentence = format!("`{}` is a configuration that can be used", file.display());
    Ok(Finding::new(Code::ConfigurationFine, sentence))
}

fn report(findings: &[Finding], options: &Options) -> Result<(), Failure> {
    let wrong =
        findings.iter().filter(|finding| finding.code.state() == FindingState::Wrong).count();
    if options.json {
        let document = |finding: &Finding| -> serde_json::Value {
            let Finding { code, sentence, fix, .. } = finding;
            serde_json::json!(FindingDocument {
                code: code.as_str(),
                state: code.state().as_str(),
                say: sentence,
                fix: fix.as_deref(),
                page: code.page(),
            })
        };
        let documents: Vec<_> = findings.iter().map(document).collect();
        return screen::print_json(
            &serde_json::json!({ "as_expected": wrong == 0, "findings": documents }),
        );
    }
    for finding in findings.iter().filter(|finding| finding.host.is_none()) {
        say(finding, &finding.sentence, "", options);
    }
    let hosts: BTreeSet<&str> = findings.iter().filter_map(|finding| finding.host).collect();
    for host in hosts {
        let of_host = findings.iter().filter(|finding| finding.host == Some(host));
        say_host(host, &of_host.collect::<Vec<_>>(), options);
    }
    if wrong > 0 {
        let things = crate::report::count(wrong, "thing is", "things are");
        screen::say(format!(
            "{}: you are less protected than you may think",
            styled(RED.bold(), format!("{things} wrong"))
        ));
    }
    if !options.quiet {
        say_next(findings);
    }
    Ok(())
}

/// Prints one line for a host with a single finding, else a heading and a line per finding.
fn say_host(host: &str, findings: &[&Finding], options: &Options) {
    if let [one] = findings {
        say(one, &one.sentence, "", options);
        return;
    }
    let is_told = |finding: &&&Finding| !options.quiet || finding.code.state() != FindingState::Ok;
    let told: Vec<&&Finding> = findings.iter().filter(is_told).collect();
    if !told.is_empty() {
        screen::say(styled(BOLD, host));
    }
    for finding in told {
        let prefix = format!("{host}: ");
        let sentence = finding.sentence.strip_prefix(&prefix).unwrap_or(&finding.sentence);
        say(finding, sentence, "  ", options);
    }
}

/// Prints the one command that fixes the most, and where the findings are explained.
fn say_next(findings: &[Finding]) {
    let mut fixes: BTreeMap<&str, usize> = BTreeMap::new();
    let not_fine = findings.iter().filter(|finding| finding.code.state() != FindingState::Ok);
    for finding in not_fine.clone() {
        let Some(fix) = finding.fix.as_deref() else { continue };
        // One error outweighs any number of notes.
        let weight = if finding.code.state() == FindingState::Wrong { 1_000 } else { 1 };
        // `wire` without a file covers all of them.
        let whole = fix.split(" --config ").next().filter(|command| *command == "holdpoint wire");
        let command = whole.unwrap_or(fix);
        if command.starts_with("holdpoint ") {
            *fixes.entry(command).or_default() += weight;
        }
    }
    let most = fixes.iter().max_by_key(|(command, count)| (**count, std::cmp::Reverse(*command)));
    if not_fine.count() > 0 {
        screen::say(styled(DIM, "what a finding means: holdpoint help doctor#CODE"));
    }
    if let Some((command, _)) = most {
        screen::say(format!("next: {}", styled(BOLD, screen::readable(command))));
    }
}

fn say(finding: &Finding, sentence: &str, indent: &str, options: &Options) {
    let state = finding.code.state();
    if options.quiet && state == FindingState::Ok {
        return;
    }
    let mark = match state {
        FindingState::Ok => styled(GREEN, "✓"),
        FindingState::Note => styled(YELLOW, "•"),
        FindingState::Wrong => styled(RED.bold(), "✗"),
    };
    let code = styled(DIM, format!("[{}]", finding.code.as_str()));
    screen::say(format!("{indent}{mark} {} {code}", screen::readable(sentence)));
    if state != FindingState::Ok {
        if let Some(fix) = &finding.fix {
            screen::say(format!("{indent}    type: {}", screen::readable(fix)));
        }
        if options.verbose {
            screen::say(styled(DIM, format!("{indent}    see:  {}", finding.code.page())));
        }
    }
}
