//! The suite's results, as text, JSON and JUnit.

use serde::Serialize;

/// The outcome of a check, and of the test that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Pass,
    Fail,
    NotApplicable,
}

impl Outcome {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "FAIL",
            Outcome::NotApplicable => "n/a",
        }
    }
}

/// One requirement of a test.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReport {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// What was observed, or why the check does not apply. Never contains a token.
    pub(crate) detail: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct TestReport {
    pub(crate) number: u8,
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) checks: Vec<CheckReport>,
}

impl TestReport {
    pub(super) fn new(number: u8, name: &'static str, checks: Vec<CheckReport>) -> TestReport {
        let has = |outcome: Outcome| checks.iter().any(|check| check.outcome == outcome);
        // Checks that do not apply do not fail a test: it passes on the others, and the report
        // names what was not checked.
        let outcome = match (has(Outcome::Fail), has(Outcome::Pass)) {
            (true, _) => Outcome::Fail,
            (false, true) => Outcome::Pass,
            (false, false) => Outcome::NotApplicable,
        };
        TestReport { number, name, outcome, checks }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) suite: &'static str,
    pub(crate) url: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) not_applicable: usize,
    pub(crate) tests: Vec<TestReport>,
}

impl Report {
    pub(super) fn new(url: String, tests: Vec<TestReport>) -> Report {
        let count = |outcome: Outcome| tests.iter().filter(|test| test.outcome == outcome).count();
        Report {
            suite: "csp-mcp-gateway-0.1",
            url,
            passed: count(Outcome::Pass),
            failed: count(Outcome::Fail),
            not_applicable: count(Outcome::NotApplicable),
            tests,
        }
    }

    /// The JUnit format that build servers read, with one test case per check.
    pub(crate) fn junit(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let (mut all, mut failed, mut skipped) = (0, 0, 0);
        let mut cases = String::new();
        for test in &self.tests {
            for check in &test.checks {
                all += 1;
                let name = escaped(check.name);
                let class = escaped(&format!("{:02} {}", test.number, test.name));
                let detail = escaped(&check.detail);
                let inner = match check.outcome {
                    Outcome::Pass => String::new(),
                    Outcome::Fail => {
                        failed += 1;
                        format!("<failure message=\"{detail}\"/>")
                    }
                    Outcome::NotApplicable => {
                        skipped += 1;
                        format!("<skipped message=\"{detail}\"/>")
                    }
                };
                cases.push_str(&format!(
                    "  <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>\n"
                ));
            }
        }
        text.push_str(&format!(
            "<testsuite name=\"{}\" tests=\"{all}\" failures=\"{failed}\" skipped=\"{skipped}\">\n{cases}</testsuite>\n",
            self.suite
        ));
        text
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            character if character.is_control() => out.push(' '),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Outcome) -> CheckReport {
        CheckReport { name: "a", outcome, detail: "x <y> & \"z\"\n".to_owned() }
    }

    #[test]
    fn a_test_fails_with_one_check_and_passes_only_with_one_that_passed() {
        use Outcome::{Fail, NotApplicable, Pass};
        for (checks, expected) in [
            (vec![Pass, Fail, NotApplicable], Fail),
            (vec![Pass, NotApplicable], Pass),
            (vec![NotApplicable], NotApplicable),
            (vec![], NotApplicable),
        ] {
            let checks = checks.into_iter().map(check).collect();
            assert_eq!(TestReport::new(1, "t", checks).outcome, expected);
        }
    }

    #[test]
    fn junit_is_escaped_and_counts_checks() {
        let checks =
            vec![check(Outcome::Pass), check(Outcome::Fail), check(Outcome::NotApplicable)];
        let report = Report::new("http://x".to_owned(), vec![TestReport::new(3, "t", checks)]);
        assert_eq!((report.passed, report.failed, report.not_applicable), (0, 1, 0));
        let junit = report.junit();
        assert!(junit.contains("tests=\"3\" failures=\"1\" skipped=\"1\""), "{junit}");
        assert!(junit.contains("x &lt;y&gt; &amp; &quot;z&quot; "), "{junit}");
    }
}
