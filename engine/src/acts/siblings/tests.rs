//! Decisions about one of several servers with the same launch.

use crate::acts::*;
use contract::surface::{Surface, read_capture};
use gate::pins::Basis;
use gate::posture::Settings;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use store::{
    Act, By, EntryFile, Home, Launch, LaunchIdentity, NewPin, Observation, SqliteStore, Store,
    Witnessed,
};
use tempfile::TempDir;

type Tools<'a> = &'a [(&'a str, &'a str)];

const BEFORE: Tools<'_> = &[("read", "Reads a file."), ("write", "Writes a file.")];
const AFTER: Tools<'_> = &[("read", "Reads any file."), ("write", "Writes a file.")];

/// A home with servers of several hosts.
struct Hosts {
    _directory: TempDir,
    store: Witnessed,
}

fn surface(tools: Tools<'_>) -> Surface {
    let tool = |(name, says): &(&str, &str)| serde_json::json!({"name": name, "description": says, "inputSchema": {"type": "object"}});
    let tools: Vec<_> = tools.iter().map(tool).collect();
    let capture = serde_json::json!({"serverInfo": {"name": "files"}, "tools": tools});
    read_capture(capture.to_string().as_bytes()).unwrap()
}

fn ada() -> By<'static> {
    By { name: "ada", at: Timestamp(1_700_000_000_000) }
}

fn as_usual(_: &ServerId) -> Settings {
    Settings::default()
}

fn id(name: &str) -> ServerId {
    name.parse().unwrap()
}

impl Hosts {
    /// Servers with the same launch, with these tools accepted on first use.
    fn with(servers: &[&str], tools: Tools<'_>) -> Hosts {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        let store = Witnessed::new(Box::new(SqliteStore::open(&home).unwrap()), &home);
        let mut hosts = Hosts { _directory: directory, store };
        for server in servers {
            hosts.add(server, "https://a.example", EntryFile::User, tools);
        }
        hosts
    }

    fn launch(&mut self, url: &str, file: EntryFile) -> Launch {
        let hash = self.store.launch_key(true).unwrap().hash_address(url, &[]);
        let identity = Some(LaunchIdentity { hash, file });
        Launch::Url {
            url: url.to_owned(),
            header_names: Vec::new(),
            has_secrets: false,
            client_capabilities: None,
            posture: None,
            identity,
        }
    }

    fn add(&mut self, server: &str, url: &str, file: EntryFile, tools: Tools<'_>) {
        self.record(server, url, file, tools, ServerStatus::Verified);
    }

    /// Adds a server that waits for a person's first approval.
    fn add_pending(&mut self, server: &str, file: EntryFile, tools: Tools<'_>) {
        self.record(server, "https://a.example", file, tools, ServerStatus::Pending);
    }

    fn record(
        &mut self,
        server: &str,
        url: &str,
        file: EntryFile,
        tools: Tools<'_>,
        status: ServerStatus,
    ) {
        let (server, launch, seen) = (id(server), self.launch(url, file), surface(tools));
        let observation = Observation::of(&seen, ada().at);
        let mut act = Act::new(&server, ada().at, "holdpoint", "server.pin");
        act.launch = Some(&launch);
        act.status = Some(status);
        act.observation = Some(&observation);
        if status != ServerStatus::Pending {
            let entries = seen.entries().cloned();
            act.pins = entries.map(|entry| NewPin { entry, basis: Basis::FirstUse }).collect();
        }
        self.store.record(act).unwrap();
    }

    fn server(&self, server: &str) -> RecordedServer {
        RecordedServer::known(&self.store, &id(server), Settings::default(), ada().at).unwrap()
    }

    fn review(&self, server: &str) -> Review {
        Review::of(self.server(server)).unwrap()
    }

    fn show(&mut self, server: &str, tools: Tools<'_>) {
        let (server, surface) = (self.server(server), surface(tools));
        let counted = server.judge_for_status(&surface);
        observe(&mut self.store, &server, &surface, Some(&counted), ada()).unwrap();
    }

    fn approve_all(&mut self, server: &str) -> Vec<(String, ServerStatus)> {
        let review = self.review(server);
        let choice = review.choose(&[], &review.surface_hash().unwrap()).unwrap();
        told(approve(&mut self.store, &choice, &as_usual, ada()).unwrap().shared)
    }

    fn quarantine(&mut self, server: &str) -> Vec<(String, ServerStatus)> {
        told(quarantine(&mut self.store, &id(server), None, &as_usual, ada()).unwrap().shared)
    }

    fn status(&self, server: &str) -> ServerStatus {
        self.server(server).status()
    }

    fn is_held(&self, server: &str) -> bool {
        self.review(server).judgement.verdict.is_held()
    }

    fn newest(&self, server: &str, tool: &str) -> Option<(Basis, String)> {
        let pins = self.store.pins(&id(server)).unwrap();
        let (_, pins) = pins.iter().find(|(id, _)| id.key == tool)?;
        pins.iter().next_back().map(|pin| (pin.basis, pin.entry.raw().to_owned()))
    }

    /// The newest act on a server, with its history detail.
    fn last_act(&self, server: &str) -> (String, Option<String>) {
        let history = self.store.history(&id(server)).unwrap();
        let act = history.into_iter().rfind(|event| event.act == event.seq).unwrap();
        (format!("{} by {}", act.action, act.by), act.detail)
    }
}

/// The other servers that a decision applied to.
fn told(shared: Vec<Shared>) -> Vec<(String, ServerStatus)> {
    shared.into_iter().map(|shared| (shared.server.to_string(), shared.outcome.unwrap())).collect()
}

fn verified(servers: &[&str]) -> Vec<(String, ServerStatus)> {
    servers.iter().map(|server| ((*server).to_owned(), ServerStatus::Verified)).collect()
}

#[test]
fn an_approval_counts_for_every_server_that_is_launched_the_same_way() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files"], BEFORE);
    hosts.add("zed.files", "https://b.example", EntryFile::User, BEFORE);
    let servers = ["cursor.files", "vscode.files", "zed.files"];
    servers.iter().for_each(|server| hosts.show(server, AFTER));
    assert!(servers.iter().all(|server| hosts.is_held(server)));
    assert_eq!(hosts.approve_all("cursor.files"), verified(&["vscode.files"]));
    assert!(!hosts.is_held("cursor.files") && !hosts.is_held("vscode.files"));
    assert!(hosts.is_held("zed.files"), "another address is another server");
    let (basis, raw) = hosts.newest("vscode.files", "read").unwrap();
    assert!(basis == Basis::Person && raw.contains("Reads any file."), "{raw}");
    let (act, detail) = hosts.last_act("vscode.files");
    assert_eq!(act, "server.approve by ada");
    let detail = detail.unwrap();
    assert!(detail.ends_with("decided for `cursor.files`, which is launched the same way"));
    assert_eq!(hosts.server("cursor.files").siblings, [id("vscode.files")]);
    assert!(hosts.server("zed.files").siblings.is_empty());
}

#[test]
fn a_server_that_still_shows_what_was_approved_before_goes_on() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files"], BEFORE);
    hosts.show("cursor.files", AFTER);
    assert_eq!(hosts.approve_all("cursor.files"), verified(&["vscode.files"]));
    assert!(!hosts.is_held("vscode.files"));
    hosts.show("vscode.files", AFTER);
    assert!(!hosts.is_held("vscode.files"), "it was approved before it was shown");
    hosts.show("vscode.files", &[("read", "Reads and sends files."), ("write", "Writes a file.")]);
    assert!(hosts.is_held("vscode.files"), "exactly one definition was approved");
}

#[test]
fn an_entry_that_a_server_never_showed_is_not_missed_there() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files"], BEFORE);
    let more = [BEFORE[0], BEFORE[1], ("delete", "Deletes a file.")];
    hosts.show("cursor.files", &more);
    assert!(hosts.approve_all("cursor.files").is_empty());
    assert_eq!(hosts.newest("vscode.files", "delete"), None);
    assert!(hosts.review("vscode.files").waiting().next().is_none());
}

#[test]
fn a_quarantined_server_is_not_approved_along_with_another() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files"], BEFORE);
    let vscode = id("vscode.files");
    let mut act = Act::new(&vscode, ada().at, "ada", "server.quarantine");
    act.status = Some(ServerStatus::Quarantined);
    hosts.store.record(act).unwrap();
    hosts.show("cursor.files", AFTER);
    assert!(hosts.approve_all("cursor.files").is_empty());
    assert_eq!(hosts.status("vscode.files"), ServerStatus::Quarantined);
    assert_eq!(hosts.newest("vscode.files", "read").unwrap().0, Basis::FirstUse);
}

#[test]
fn a_first_approval_counts_for_others_only_if_a_person_saw_all_of_them() {
    let more: Tools<'_> = &[BEFORE[0], BEFORE[1], ("delete", "Deletes a file.")];
    let mut hosts = Hosts::with(&[], BEFORE);
    for (server, file, tools) in [
        ("cursor.files", EntryFile::User, BEFORE),
        ("less.files", EntryFile::User, &BEFORE[..1]),
        ("more.files", EntryFile::User, more),
        ("project.files", EntryFile::Project, BEFORE),
        ("vscode.files", EntryFile::User, BEFORE),
    ] {
        hosts.add_pending(server, file, tools);
    }
    let shared = hosts.approve_all("cursor.files");
    assert_eq!(shared, verified(&["less.files", "vscode.files"]));
    for server in ["more.files", "project.files"] {
        assert_eq!(hosts.status(server), ServerStatus::Pending, "{server}");
    }
    assert!(hosts.approve_all("project.files").is_empty());
}

#[test]
fn a_first_approval_in_a_projects_file_counts_for_no_other_server() {
    let mut hosts = Hosts::with(&[], BEFORE);
    hosts.add_pending("project.files", EntryFile::Project, BEFORE);
    hosts.add_pending("vscode.files", EntryFile::User, BEFORE);
    assert!(hosts.approve_all("project.files").is_empty());
    assert_eq!(hosts.status("vscode.files"), ServerStatus::Pending);
}

#[test]
fn a_pin_counts_for_the_others() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files"], BEFORE);
    hosts.show("vscode.files", AFTER);
    let draft = PinDraft::new(hosts.server("cursor.files"), surface(AFTER), None).unwrap();
    let pinned = pin(&mut hosts.store, draft, None, &as_usual, ada()).unwrap();
    assert_eq!(told(pinned.shared), verified(&["vscode.files"]));
    assert!(!hosts.is_held("vscode.files"));
    // A launch without a known common identity.
    let launch = hosts.launch("https://a.example", EntryFile::User).known_as(None);
    let draft = PinDraft::new(hosts.server("cursor.files"), surface(BEFORE), None).unwrap();
    let pinned = pin(&mut hosts.store, draft, Some(&launch), &as_usual, ada()).unwrap();
    assert!(pinned.shared.is_empty());
}

#[test]
fn a_quarantine_stops_all_of_them_and_a_release_ends_it_for_all() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files"], BEFORE);
    hosts.add("zed.files", "https://b.example", EntryFile::User, BEFORE);
    hosts.show("vscode.files", AFTER);
    let stopped = vec![("vscode.files".to_owned(), ServerStatus::Quarantined)];
    assert_eq!(hosts.quarantine("cursor.files"), stopped);
    assert_eq!(hosts.status("vscode.files"), ServerStatus::Quarantined);
    assert_eq!(hosts.status("zed.files"), ServerStatus::Verified);
    assert!(hosts.quarantine("cursor.files").is_empty());
    let server = hosts.server("cursor.files");
    let released = release(&mut hosts.store, &server, &surface(BEFORE), &as_usual, ada()).unwrap();
    assert_eq!(released.status, ServerStatus::Verified);
    let changed = vec![("vscode.files".to_owned(), ServerStatus::Changed)];
    assert_eq!(told(released.shared), changed, "each by what it last showed");
    let (act, detail) = hosts.last_act("vscode.files");
    assert_eq!(act, "server.release by ada");
    assert_eq!(
        detail.as_deref(),
        Some("decided for `cursor.files`, which is launched the same way")
    );
}

#[test]
fn a_rollback_takes_the_same_pin_back_from_the_others() {
    let mut hosts = Hosts::with(&["cursor.files", "vscode.files", "zed.files"], BEFORE);
    hosts.show("cursor.files", AFTER);
    assert_eq!(hosts.approve_all("cursor.files"), verified(&["vscode.files", "zed.files"]));
    // A newer pin of this server only.
    let (zed, further) = (id("zed.files"), surface(&[("read", "Reads all files.")]));
    let mut act = Act::new(&zed, ada().at, "ada", "server.approve");
    let entry = further.entries().find(|entry| entry.key() == "read").unwrap().clone();
    act.pins = vec![NewPin { entry, basis: Basis::Person }];
    hosts.store.record(act).unwrap();
    let review = hosts.review("cursor.files");
    let back = rollback(&mut hosts.store, &review, "read", &as_usual, ada()).unwrap();
    assert_eq!(told(back.shared), verified(&["vscode.files"]));
    for server in ["cursor.files", "vscode.files"] {
        assert!(hosts.newest(server, "read").unwrap().1.contains("Reads a file."), "{server}");
    }
    assert!(hosts.newest("zed.files", "read").unwrap().1.contains("Reads all files."));
    // There is no earlier pin to go back to anymore.
    let review = hosts.review("cursor.files");
    let refused = rollback(&mut hosts.store, &review, "read", &as_usual, ada());
    assert!(matches!(refused, Err(ActError::OnlyPin { .. })), "{refused:?}");
}
