//! What a server takes over when it is first seen, and when it first shows an entry.

use crate::judge::{FirstUsePolicy, Judge, Judged, Rules, Seen};
use crate::situation::{DriftScope, ServerProfile};
use contract::surface::{Surface, read_capture};
use gate::pins::Basis;
use gate::posture::{Posture, Settings};
use gate::server::{ServerId, ServerStatus};
use gate::shown::ListMode;
use gate::time::Timestamp;
use store::{
    Act, EntryFile, Home, Launch, LaunchIdentity, NewPin, Observation, SqliteStore, Store,
    Witnessed,
};
use tempfile::TempDir;

type Tools<'a> = &'a [(&'a str, &'a str)];

const TOOLS: Tools<'_> = &[("read", "Reads a file."), ("write", "Writes a file.")];
const OTHERS: Tools<'_> = &[("read", "Reads and sends files."), ("write", "Writes a file.")];
const AT: Timestamp = Timestamp(1_700_000_000_000);
const URL: &str = "https://a.example";

/// A home in which `cursor.files` is known.
struct Ground {
    _directory: TempDir,
    home: Home,
    store: Witnessed,
}

fn surface(tools: Tools<'_>) -> Surface {
    let tool = |(name, says): &(&str, &str)| serde_json::json!({"name": name, "description": says, "inputSchema": {"type": "object"}});
    let tools: Vec<_> = tools.iter().map(tool).collect();
    let capture = serde_json::json!({"serverInfo": {"name": "files"}, "tools": tools});
    read_capture(capture.to_string().as_bytes()).unwrap()
}

fn id(name: &str) -> ServerId {
    name.parse().unwrap()
}

fn open(home: &Home) -> Witnessed {
    Witnessed::new(Box::new(SqliteStore::open(home).unwrap()), home)
}

impl Ground {
    /// A home in which the entries of `cursor.files` were accepted on this basis.
    fn new(basis: Basis, file: EntryFile) -> Ground {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        let store = open(&home);
        let mut ground = Ground { _directory: directory, home, store };
        ground.accept("cursor.files", basis, file, TOOLS, ServerStatus::Verified);
        ground
    }

    fn launch(&mut self, url: &str, file: EntryFile) -> Launch {
        let hash = self.store.launch_key(true).unwrap().hash_address(url, &[]);
        Launch::Url {
            url: url.to_owned(),
            header_names: Vec::new(),
            has_secrets: false,
            client_capabilities: None,
            posture: None,
            identity: Some(LaunchIdentity { hash, file }),
        }
    }

    fn accept(
        &mut self,
        server: &str,
        basis: Basis,
        file: EntryFile,
        tools: Tools<'_>,
        status: ServerStatus,
    ) {
        let (server, launch, seen) = (id(server), self.launch(URL, file), surface(tools));
        let observation = Observation::of(&seen, AT);
        let mut act = Act::new(&server, AT, "ada", "server.pin");
        act.launch = Some(&launch);
        act.status = Some(status);
        act.observation = Some(&observation);
        act.pins = seen.entries().map(|entry| NewPin { entry: entry.clone(), basis }).collect();
        self.store.record(act).unwrap();
    }

    /// The gate of `vscode.files`.
    fn gate(&mut self, first_use: FirstUsePolicy, url: &str, file: EntryFile) -> Judge {
        let rules = Rules {
            server: id("vscode.files"),
            settings: Settings::with_posture(Posture::Guard),
            first_use,
            scope: DriftScope::Tool,
            mode: ListMode::Accepted,
            allowed: None,
            mirrors_parameters: false,
            checks_input: false,
            profile: ServerProfile::default(),
            behavior: gate::behavior::Consent::default(),
            upper: crate::upper_tiers::UpperTiers::default(),
        };
        Judge::new(open(&self.home), rules, Some(self.launch(url, file)))
    }

    /// The status after `vscode.files` showed this, and its newest pins by tool.
    fn after(&mut self, gate: &mut Judge, tools: Tools<'_>) -> (ServerStatus, Vec<String>) {
        take_in(gate, tools);
        let vscode = id("vscode.files");
        let status = self.store.server(&vscode).unwrap().unwrap().status;
        let pins = self.store.pins(&vscode).unwrap();
        let tools = pins.iter().filter(|(id, _)| id.entry_type.as_str() == "tool");
        let newest = tools.filter_map(|(id, pins)| Some((id, pins.iter().next_back()?)));
        (status, newest.map(|(id, pin)| format!("{} {}", id.key, pin.basis)).collect())
    }

    fn detail(&self) -> Option<String> {
        let history = self.store.history(&id("vscode.files")).unwrap();
        history.into_iter().rfind(|event| event.act == event.seq).unwrap().detail
    }
}

fn take_in(gate: &mut Judge, tools: Tools<'_>) -> Judged {
    gate.take_in(&Seen::default(), surface(tools), AT).unwrap()
}

use EntryFile::{Project, User};
use FirstUsePolicy::{Approve, Trust};
use ServerStatus::{Changed, Pending, Quarantined, Verified};

#[test]
fn what_a_person_approved_for_one_is_approved_for_a_new_one() {
    for policy in [Trust, Approve] {
        let mut ground = Ground::new(Basis::Person, User);
        let mut gate = ground.gate(policy, URL, User);
        let (status, pins) = ground.after(&mut gate, TOOLS);
        assert_eq!((status, pins.join(", ").as_str()), (Verified, "read person, write person"));
        let detail = ground.detail().unwrap();
        assert_eq!(detail, "decided for `cursor.files`, which is launched the same way");
    }
}

#[test]
fn a_new_server_that_shows_something_else_is_held_to_what_was_approved() {
    for policy in [Trust, Approve] {
        let mut ground = Ground::new(Basis::Person, User);
        let mut gate = ground.gate(policy, URL, User);
        assert_eq!(ground.after(&mut gate, OTHERS).0, Changed, "{policy:?}");
        let held = take_in(&mut gate, OTHERS).judgement;
        let held: Vec<_> = held.held().map(|judged| judged.id.key.as_str()).collect();
        assert_eq!(held, ["read"]);
    }
}

#[test]
fn nothing_is_taken_over_from_another_launch() {
    let mut ground = Ground::new(Basis::Person, User);
    let mut gate = ground.gate(Trust, "https://b.example", User);
    let (status, pins) = ground.after(&mut gate, OTHERS);
    assert_eq!((status, pins.join(", ").as_str()), (Verified, "read first-use, write first-use"));
    let mut ground = Ground::new(Basis::Person, User);
    let mut gate = ground.gate(Approve, "https://b.example", User);
    assert_eq!(ground.after(&mut gate, TOOLS), (Pending, Vec::new()));
}

#[test]
fn what_no_person_approved_is_not_taken_over() {
    let mut ground = Ground::new(Basis::FirstUse, User);
    let mut gate = ground.gate(Trust, URL, User);
    let (_, pins) = ground.after(&mut gate, OTHERS);
    assert_eq!(pins.join(", "), "read first-use, write first-use");
    let mut ground = Ground::new(Basis::FirstUse, User);
    let mut gate = ground.gate(Approve, URL, User);
    assert_eq!(ground.after(&mut gate, TOOLS), (Pending, Vec::new()));
}

#[test]
fn where_a_person_has_to_approve_first_projects_neither_give_nor_take() {
    for (of_known, of_new) in [(Project, User), (User, Project), (Project, Project)] {
        let mut ground = Ground::new(Basis::Person, of_known);
        let mut gate = ground.gate(Approve, URL, of_new);
        assert_eq!(
            ground.after(&mut gate, TOOLS),
            (Pending, Vec::new()),
            "{of_known:?} {of_new:?}"
        );
    }
    let mut ground = Ground::new(Basis::Person, Project);
    let mut gate = ground.gate(Trust, URL, Project);
    assert_eq!(ground.after(&mut gate, OTHERS).0, Changed);
}

#[test]
fn where_a_person_has_to_approve_first_a_part_is_not_enough() {
    let more: Tools<'_> = &[TOOLS[0], TOOLS[1], ("delete", "Deletes a file.")];
    let mut ground = Ground::new(Basis::Person, User);
    let mut gate = ground.gate(Approve, URL, User);
    assert_eq!(ground.after(&mut gate, more), (Pending, Vec::new()));
    // It now matches what was approved elsewhere.
    assert_eq!(ground.after(&mut gate, TOOLS).0, Verified);
    let mut ground = Ground::new(Basis::Person, User);
    let mut gate = ground.gate(Trust, URL, User);
    let (_, pins) = ground.after(&mut gate, more);
    assert_eq!(pins.join(", "), "delete first-use, read person, write person");
}

#[test]
fn an_entry_that_a_server_shows_for_the_first_time_is_taken_over() {
    let more: Tools<'_> = &[TOOLS[0], TOOLS[1], ("delete", "Deletes every file, at once.")];
    let mut ground = Ground::new(Basis::Person, User);
    let mut gate = ground.gate(Trust, URL, User);
    ground.after(&mut gate, TOOLS);
    ground.accept("cursor.files", Basis::Person, User, more, Verified);
    let (status, pins) = ground.after(&mut gate, more);
    assert_eq!(pins.join(", "), "delete person, read person, write person");
    assert_eq!(status, Verified);
    let another: Tools<'_> = &[TOOLS[0], TOOLS[1], more[2], ("send", "Sends a file.")];
    let (_, pins) = ground.after(&mut gate, another);
    assert!(!pins.contains(&"send person".to_owned()), "{pins:?}");
}

#[test]
fn a_server_that_is_launched_like_a_quarantined_one_is_quarantined() {
    for policy in [Trust, Approve] {
        let mut ground = Ground::new(Basis::Person, User);
        ground.accept("cursor.files", Basis::Person, User, TOOLS, Quarantined);
        let mut gate = ground.gate(policy, URL, Project);
        assert_eq!(ground.after(&mut gate, TOOLS), (Quarantined, Vec::new()));
        let detail = ground.detail().unwrap();
        assert_eq!(detail, "decided for `cursor.files`, which is launched the same way");
        let mut other = Ground::new(Basis::Person, User);
        other.accept("cursor.files", Basis::Person, User, TOOLS, Quarantined);
        let mut gate = other.gate(policy, "https://b.example", User);
        assert_ne!(other.after(&mut gate, TOOLS).0, Quarantined);
    }
}

#[test]
fn a_known_server_whose_launch_becomes_that_of_a_quarantined_one_is_quarantined() {
    let mut ground = Ground::new(Basis::Person, User);
    ground.accept("cursor.files", Basis::Person, User, TOOLS, Quarantined);
    let mut gate = ground.gate(Trust, "https://b.example", User);
    assert_eq!(ground.after(&mut gate, TOOLS).0, Verified);
    let mut gate = ground.gate(Trust, URL, User);
    assert_eq!(ground.after(&mut gate, TOOLS).0, Quarantined);
}
