use super::*;
use contract::surface::read_capture;
use gate::posture::Posture;

fn newest() -> Surface {
    read_capture(
        br#"{"instructions":"Be careful.","tools":[
        {"name":"find","description":"Finds things.","inputSchema":{"type":"object","properties":{
            "query":{"type":"string","description":"What to find."},"mode":{"enum":["fast","full"]},
            "limit":{"type":"integer","default":10}}},
            "outputSchema":{"type":"object","properties":{"found":{"type":"array"}}},
            "annotations":{"readOnlyHint":true}},
        {"name":"get","description":"Gets a thing.","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}]}"#,
    )
    .expect("a capture")
}

#[test]
fn a_contract_with_everything_has_a_case_of_every_stratum() {
    let cases = cases("some-server", &newest(), 1);
    let strata: Vec<Stratum> = cases.iter().map(|case| case.stratum).collect();
    assert_eq!(strata, Stratum::ALL);
}

#[test]
fn the_same_seed_gives_the_same_cases_and_another_one_others() {
    let shown = |seed: u64| -> Vec<_> {
        let cases = cases("some-server", &newest(), seed);
        cases
            .iter()
            .flat_map(|case| case.shown.iter().map(contract::surface::Surface::surface_hash))
            .collect()
    };
    assert_eq!(shown(1), shown(1));
    assert_ne!(shown(1), shown(2));
}

#[test]
fn strict_stops_every_drift_and_monitor_none() {
    for case in cases("some-server", &newest(), 3) {
        let is_first_sight = case.approved.is_none();
        if case.stratum.role() != Role::Harmless && !is_first_sight {
            assert_eq!(judge(&case, Posture::Strict), Judged::Stopped, "{:?}", case.stratum);
        }
        assert_eq!(judge(&case, Posture::Monitor), Judged::Passed, "{:?}", case.stratum);
    }
}

#[test]
fn guard_and_shield_pass_what_is_harmless_and_stop_what_drifts() {
    for case in cases("some-server", &newest(), 3) {
        for posture in [Posture::Guard, Posture::Shield] {
            let judged = judge(&case, posture);
            match case.stratum.role() {
                Role::Safety => {}
                Role::Drift => assert_eq!(judged, Judged::Stopped, "{posture} {:?}", case.stratum),
                Role::Harmless => {
                    assert_eq!(judged, Judged::Passed, "{posture} {:?}", case.stratum);
                }
            }
        }
    }
}

#[test]
fn a_quarter_of_the_packages_is_held_out() {
    let held_out = (0..1_000).filter(|number| is_held_out(&format!("package-{number}"))).count();
    assert!((200..300).contains(&held_out), "{held_out}");
}
