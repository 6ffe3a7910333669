use super::*;
use testing::check_golden;

fn every_evidence() -> Vec<Evidence> {
    let severities = [None, Some(Severity::Low), Some(Severity::Medium), Some(Severity::High)];
    let mut all = Vec::new();
    for &contract in Contract::ALL {
        for &validity in Validity::ALL {
            for &grade in Grade::ALL {
                for &coverage in Coverage::ALL {
                    for &judges in Judges::ALL {
                        for worst in severities {
                            let e = Evidence { contract, worst, judges, coverage, grade, validity };
                            all.push(e);
                        }
                    }
                }
            }
        }
    }
    all
}

#[test]
fn states_are_those_of_the_golden_table() {
    let mut table = String::from(
        "contract validity grade               coverage judges   worst  | today      graduated\n",
    );
    for evidence in every_evidence() {
        let Evidence { contract, worst, judges, coverage, grade, validity } = evidence;
        let (today, later) = (State::of(evidence), State::graduated(evidence, true));
        if today.status == Status::Error {
            assert_eq!((today, later), (State::UNVERIFIED, State::UNVERIFIED), "{evidence:?}");
            continue;
        }
        let worst = worst.map_or("none", Severity::as_str);
        table.push_str(&format!(
            "{contract:<8} {validity:<8} {grade:<19} {coverage:<8} {judges:<8} {worst:<6} | {:<10} {}\n",
            today.directive, later.directive
        ));
    }
    table.push_str("everything else: status ERROR, UNVERIFIED\n");
    check_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/states.txt"), &table);
}

#[test]
fn nothing_is_allowed_or_denied_before_graduation() {
    // Graduation needs 150 labels with an upper bound of 2 %: see docs/screening.md.
    const { assert!(!GRADUATED) };
    for evidence in every_evidence() {
        let directive = State::of(evidence).directive;
        assert!(matches!(directive, Directive::Review | Directive::Unverified), "{evidence:?}");
    }
}

#[test]
fn after_graduation_only_whole_strong_and_clean_evidence_allows() {
    for evidence in every_evidence() {
        let is_allowed = State::graduated(evidence, true).directive == Directive::Allow;
        let is_clean = matches!(evidence.worst, None | Some(Severity::Low));
        let is_strong = evidence.grade.is_l1()
            && evidence.coverage == Coverage::Whole
            && evidence.judges == Judges::Agree
            && evidence.validity == Validity::Current
            && evidence.contract == Contract::Read;
        assert_eq!(is_allowed, is_clean && is_strong, "{evidence:?}");
    }
}
