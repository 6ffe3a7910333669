//! A running host writes its own file while that file is wired and unwired: none of its writes is
//! lost, and no file is incomplete.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "all of this file is a test"
)]

use hosts::{Aim, Choice, Config, Surroundings, System, Workshop};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Barrier;

const ROUNDS: u64 = 60;

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).expect("a file is never half")
}

/// What a host does: reads its whole file, changes a part of its own, and writes the whole file
/// again.
fn save(path: &Path, number: u64) {
    let mut document = read(path);
    document["saved"] = number.into();
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec_pretty(&document).unwrap()).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn what_a_host_writes_meanwhile_is_never_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".cursor").join("mcp.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, r#"{"saved": 0, "mcpServers": {"files": {"command": "npx", "args": ["x"]}}}"#)
        .unwrap();
    let surroundings = Surroundings {
        system: System::Linux,
        home: folder.path().to_owned(),
        variables: BTreeMap::new(),
        projects: Vec::new(),
    };
    let config = Config::named(&path, None, &surroundings).unwrap();
    let program = folder.path().join("holdpoint");
    fs::write(&program, "").unwrap();
    let workshop = Workshop::new(&program, &folder.path().join("wiring"), None).unwrap();
    for round in 1..=ROUNDS {
        let aim = if round % 2 == 1 { Aim::Wire } else { Aim::Unwire };
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                (0..5).for_each(|step| save(&path, round * 10 + step));
            });
            start.wait();
            let plan = workshop.plan(&config, aim, &Choice::default()).unwrap();
            // With a host that never stops writing, applying gives up, but must not do any harm.
            let _ = workshop.apply(plan);
        });
        let document = read(&path);
        assert_eq!(document["saved"], round * 10 + 4, "what the host wrote last is gone");
        assert_eq!(document["mcpServers"].as_object().unwrap().len(), 1);
    }
    // Once the host stops writing, everything works as usual.
    for aim in [Aim::Wire, Aim::Unwire] {
        let plan = workshop.plan(&config, aim, &Choice::default()).unwrap();
        workshop.apply(plan).unwrap();
    }
    let entry = &read(&path)["mcpServers"]["files"];
    assert_eq!(*entry, serde_json::json!({ "command": "npx", "args": ["x"] }));
    let left: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|name| name.unwrap().file_name())
        .collect();
    assert_eq!(left, ["mcp.json"]);
}
