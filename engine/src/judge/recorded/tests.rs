//! When the recorded surface is judged again.

use crate::judge::{FirstUsePolicy, Judge, Rules};
use crate::situation::{DriftScope, ServerProfile};
use contract::surface::{Surface, read_capture};
use gate::pins::Basis;
use gate::posture::Settings;
use gate::server::{ServerId, ServerStatus};
use gate::shown::ListMode;
use gate::time::Timestamp;
use std::sync::Arc;
use store::{
    Act, Count, Day, Home, NewPin, Observation, SqliteStore, StatisticsStore, Store, Witnessed,
};

const AT: Timestamp = Timestamp(1_700_000_000_000);

fn surface(tool: &str) -> Surface {
    let tool = serde_json::json!({"name": tool, "inputSchema": {"type": "object"}});
    let capture = serde_json::json!({"serverInfo": {"name": "files"}, "tools": [tool]});
    read_capture(capture.to_string().as_bytes()).unwrap()
}

fn open(home: &Home) -> Witnessed {
    Witnessed::new(Box::new(SqliteStore::open(home).unwrap()), home)
}

fn record(store: &mut Witnessed, server: &ServerId, tool: &str, status: ServerStatus) {
    let seen = surface(tool);
    let observation = Observation::of(&seen, AT);
    let mut act = Act::new(server, AT, "ada", "server.pin");
    act.status = Some(status);
    act.observation = Some(&observation);
    let pin =
        |entry: &contract::surface::Entry| NewPin { entry: entry.clone(), basis: Basis::Person };
    act.pins = seen.entries().map(pin).collect();
    store.record(act).unwrap();
}

#[test]
fn a_judgement_stays_until_something_is_written_that_it_rests_on() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::open(&directory.path().join("home")).unwrap();
    let mut store = open(&home);
    let server: ServerId = "files".parse().unwrap();
    let rules = Rules {
        server: server.clone(),
        settings: Settings::default(),
        first_use: FirstUsePolicy::Trust,
        scope: DriftScope::Tool,
        mode: ListMode::Accepted,
        allowed: None,
        mirrors_parameters: false,
        checks_input: false,
        profile: ServerProfile::default(),
        behavior: gate::behavior::Consent::default(),
        upper: crate::upper_tiers::UpperTiers::default(),
    };
    let mut judge = Judge::new(open(&home), rules, None);
    assert!(judge.judge_recorded(AT).unwrap().is_none(), "never observed");

    record(&mut store, &server, "read", ServerStatus::Verified);
    let first = judge.judge_recorded(AT).unwrap().unwrap();
    let count = Count { day: Day::of(AT), server: server.clone(), name: "calls".into(), value: 1 };
    store.add_counts(&[count]).unwrap();
    record(&mut store, &"others".parse().unwrap(), "read", ServerStatus::Verified);
    let same = judge.judge_recorded(AT).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &same), "what was written is about something else");

    record(&mut store, &server, "write", ServerStatus::Verified);
    let shown = judge.judge_recorded(AT).unwrap().unwrap();
    assert!(!Arc::ptr_eq(&first, &shown) && !shown.is_closed());

    record(&mut store, &server, "write", ServerStatus::Quarantined);
    assert!(judge.judge_recorded(AT).unwrap().unwrap().is_closed());
}
