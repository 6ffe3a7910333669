//! `holdpoint conformance`: suites that test any implementation.

use crate::arguments::Options;
use crate::arguments::conformance::{ConformanceCommand, ConformanceSubcommand, CspCommand};
use crate::csp::{self, Outcome, Report, SuiteConfig};
use crate::failure::{Exit, Failure};
use crate::gateway_file::read_bounded;
use crate::screen::{self, BOLD, DIM, GREEN, RED, readable, styled};

/// The largest suite configuration.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

pub(crate) fn run(command: &ConformanceCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        ConformanceSubcommand::Csp(command) => run_csp(command, options),
    }
}

fn run_csp(command: &CspCommand, options: &Options) -> Result<Exit, Failure> {
    let place = command.config.display();
    let text = read_bounded(&command.config, MAX_CONFIG_BYTES)?;
    let config =
        SuiteConfig::read(&text).map_err(|error| Failure::usage(format!("{place}: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::internal)?;
    let report = runtime.block_on(csp::run(&command.url, &config)).map_err(Failure::unreachable)?;
    if let Some(path) = &command.junit {
        let written = std::fs::write(path, report.junit());
        written.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    match options.json {
        true => screen::print_json(&report)?,
        false => say(&report),
    }
    Ok(if report.failed == 0 { Exit::Fine } else { Exit::Unprotected })
}

fn say(report: &Report) {
    let mark = |outcome: Outcome| match outcome {
        Outcome::Pass => styled(GREEN, outcome.words()),
        Outcome::Fail => styled(RED, outcome.words()),
        Outcome::NotApplicable => styled(DIM, outcome.words()),
    };
    for test in &report.tests {
        let name = styled(BOLD, test.name);
        screen::say(format!("{:>2}  {}  {name}", test.number, mark(test.outcome)));
        for check in &test.checks {
            let detail = styled(DIM, readable(&check.detail));
            screen::say(format!("        {}  {}: {detail}", mark(check.outcome), check.name));
        }
    }
    screen::say(format!(
        "{} passed, {} failed, {} not applicable",
        report.passed, report.failed, report.not_applicable
    ));
}
