use super::*;
use contract::surface::read_capture;

fn known() -> QualityFacts {
    QualityFacts {
        age_days: Some(73),
        has_description: Some(true),
        has_repository: Some(true),
        has_licence: Some(true),
        has_version: Some(true),
        has_launch: Some(false),
        installability: Some(Installability::Listed),
        documentation: Some(Documentation {
            tools: 4,
            described_tools: 2,
            parameters: 10,
            described_parameters: 10,
        }),
        releases: Some(Releases { count: 6, pairs: 5, breaking_non_major: 1 }),
    }
}

#[test]
fn the_score_is_the_formula() {
    let score = QualityScore::of(&known());
    let points: Vec<Option<f64>> = score.parts.iter().map(|part| part.points).collect();
    assert_eq!(points, [Some(20.0), Some(20.0), Some(20.0), Some(11.0), Some(12.0)]);
    assert_eq!(score.total(), 83.0);
    assert_eq!(score.parts.iter().map(|part| part.most).sum::<f64>(), 100.0);
}

#[test]
fn the_best_server_has_100_points() {
    let documentation = Documentation { tools: 1, described_tools: 1, ..Documentation::default() };
    let releases = Releases { count: 3, pairs: 2, breaking_non_major: 0 };
    let best = QualityFacts {
        age_days: Some(0),
        has_launch: Some(true),
        documentation: Some(documentation),
        releases: Some(releases),
        ..known()
    };
    assert_eq!(QualityScore::of(&best).total(), 100.0);
}

#[test]
fn what_is_not_known_counts_nothing_and_is_shown_as_unknown() {
    let score = QualityScore::of(&QualityFacts::default());
    assert!(score.parts.iter().all(|part| part.points.is_none()));
    assert_eq!(score.total(), 0.0);
    let empty = QualityFacts { documentation: Some(Documentation::default()), ..known() };
    assert_eq!(QualityScore::of(&empty).parts[3].points, None);
}

#[test]
fn old_releases_few_releases_and_failures_are_bounded() {
    assert_eq!((freshness(365), freshness(4_000)), (0.0, 0.0));
    assert_eq!(installability(Installability::Installed), 8.0);
    assert_eq!(installability(Installability::Failed), 0.0);
    assert_eq!(semver(Releases { count: 2, pairs: 1, breaking_non_major: 1 }), 7.0);
    assert_eq!(semver(Releases { count: 3, pairs: 2, breaking_non_major: 9 }), 0.0);
}

#[test]
fn tools_and_parameters_with_a_description_are_counted() {
    let capture = br#"[{"name":"a","description":"Adds","inputSchema":{"properties":{
        "x":{"description":"one"},"y":{"description":" "}}}},{"name":"b","inputSchema":{}}]"#;
    let surface = read_capture(capture).expect("a list of tools");
    let found = Documentation::of(&surface);
    let expected =
        Documentation { tools: 2, described_tools: 1, parameters: 2, described_parameters: 1 };
    assert_eq!(found, expected);
}
