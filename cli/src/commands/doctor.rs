//! `holdpoint doctor`: reports what works, what is wrong and the command that fixes it. It changes nothing.

mod codes;
mod env_file;
mod home;
mod places;
mod program;

use crate::arguments::Options;
use crate::arguments::doctor::DoctorCommand;
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::screen::{self, DIM, GREEN, RED, YELLOW, styled};
use codes::{Code, FindingState};
use serde::Serialize;
use std::path::Path;

/// The result of one check.
#[derive(Debug)]
struct Finding {
    code: Code,
    sentence: String,
    /// The command or the edit that fixes it.
    fix: Option<String>,
}

impl Finding {
    fn new(code: Code, sentence: impl Into<String>) -> Finding {
        Finding { code, sentence: sentence.into(), fix: None }
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
    let record = home::look(options, &mut findings)?;
    places::look(options, record.as_ref(), &mut findings)?;
    report(&findings, options)?;
    let is_wrong = findings.iter().any(|finding| finding.code.state() == FindingState::Wrong);
    Ok(if is_wrong { Exit::Unprotected } else { Exit::Fine })
}

/// A file that was named has to be there: one that is not would count as fine.
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
            let Finding { code, sentence, fix } = finding;
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
    for finding in findings {
        say(finding, options);
    }
    if wrong > 0 {
        let things = crate::report::count(wrong, "thing is", "things are");
        screen::say(format!(
            "{}: you are less protected than you may think",
            styled(RED.bold(), format!("{things} wrong"))
        ));
    }
    Ok(())
}

fn say(finding: &Finding, options: &Options) {
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
    screen::say(format!("{mark} {} {code}", screen::readable(&finding.sentence)));
    if state != FindingState::Ok {
        if let Some(fix) = &finding.fix {
            screen::say(format!("    type: {}", screen::readable(fix)));
        }
        if state == FindingState::Wrong || options.verbose {
            screen::say(styled(DIM, format!("    see:  {}", finding.code.page())));
        }
    }
}
