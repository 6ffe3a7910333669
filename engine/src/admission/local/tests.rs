use super::*;
use attest::{Draft, Flavor, Scheme, SigningKey, TrustRoot};
use serde_json::json;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

const FILE: &[u8] = b"the program";

fn key() -> SigningKey {
    SigningKey::from_seed([3; 32])
}

fn terms() -> Terms {
    let root = json!({ "v": 1, "signers": [{
        "keyId": "acme", "publicKeyPem": key().public_key().to_pem().unwrap(), "approvedClearance": ["internal"],
    }] });
    let root = Arc::new(TrustRoot::parse(root.to_string().as_bytes()).unwrap());
    let scheme = Cow::Borrowed(Scheme::built_in("default").unwrap());
    Terms::new(root, scheme, "internal".to_owned(), Flavor::Enclaved).unwrap()
}

fn signed(level: &str) -> String {
    let document = json!({
        "v": 2, "id": "mcp.example.calc", "publisher": "acme", "version": "1", "clearance": level,
        "capabilities": ["mcp-server"], "verification": "tested", "signerKeyId": "acme",
    });
    Draft::parse(document.to_string().as_bytes()).unwrap().sign(&key()).unwrap()
}

fn program(bytes: &[u8]) -> Program {
    Program { file: vec![Digest::sha256(bytes)], ..Program::default() }
}

/// A program that behaves as configured, and records how it was used.
#[derive(Default)]
struct Fake {
    done: Arc<Mutex<Vec<&'static str>>>,
    is_launcher: bool,
    on_disk: Option<Program>,
    answers: VecDeque<Result<Answered, Denial>>,
    running: Option<Program>,
    is_handed_over: bool,
}

impl Fake {
    fn does(&self, what: &'static str) {
        self.done.lock().unwrap().push(what);
    }
}

impl Startable for Fake {
    fn is_started(&self) -> bool {
        self.is_handed_over
    }
    fn on_disk(&mut self) -> Program {
        self.does("files");
        self.on_disk.clone().unwrap_or_default()
    }
    fn is_launcher(&self) -> bool {
        self.is_launcher
    }
    fn ask_cleanly(&mut self, _: Greeting) -> Result<Answered, Denial> {
        self.does("clean start");
        self.answers.pop_front().unwrap()
    }
    fn start(&mut self) -> Result<(), Denial> {
        self.does("start");
        Ok(())
    }
    fn running(&mut self) -> Program {
        self.does("processes");
        self.running.clone().unwrap_or_default()
    }
    fn hand_over(&mut self) -> Result<(), Denial> {
        self.does("hand over");
        self.is_handed_over = true;
        Ok(())
    }
    fn stop(&mut self) {
        self.does("stop");
    }
}

/// The reason of a denial, and the recorded actions.
fn admitted(mut fake: Fake, source: &Source) -> (Option<Reason>, Vec<&'static str>) {
    let bindings = [Binding::File(Digest::sha256(FILE))];
    let (outcome, _) = admit(&mut fake, &bindings, source, &terms(), Greeting::Initialize);
    let done = fake.done.lock().unwrap().clone();
    (outcome.err().map(|denial| denial.reason()), done)
}

fn answered(document: Option<&str>, bytes: &[u8]) -> Result<Answered, Denial> {
    let handshake = document.map(|document| {
        format!(r#"{{"capabilities":{{"experimental":{{"mcp-attestation":{document}}}}}}}"#)
    });
    Ok(Answered { handshake, program: program(bytes) })
}

fn file(document: &str) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("document.json");
    std::fs::write(&path, document).unwrap();
    (folder, Source::File(path))
}

#[test]
fn a_document_in_a_file_is_verified_before_the_start_and_again_before_the_first_message() {
    let (_folder, source) = file(&signed("internal"));
    let good = || Some(program(FILE));
    let fake = Fake { on_disk: good(), running: good(), ..Fake::default() };
    assert_eq!(admitted(fake, &source), (None, vec!["files", "start", "processes", "hand over"]));
    // A different program on disk is not started.
    let fake = Fake { on_disk: Some(program(b"another")), running: good(), ..Fake::default() };
    assert_eq!(admitted(fake, &source), (Some(Reason::HostNotBound), vec!["files"]));
    // A program that runs but was not on disk is ended, and gets no message.
    let fake = Fake { on_disk: good(), running: Some(program(b"another")), ..Fake::default() };
    let done = vec!["files", "start", "processes", "stop"];
    assert_eq!(admitted(fake, &source), (Some(Reason::HostNotBound), done));
    // An invalid document starts nothing, whatever it binds.
    let (_folder, source) = file("{}");
    let fake = Fake { on_disk: good(), running: good(), ..Fake::default() };
    assert_eq!(admitted(fake, &source), (Some(Reason::ManifestInvalid), vec!["files"]));
}

#[test]
fn what_only_a_process_shows_is_looked_at_in_a_clean_start_first() {
    let (_folder, source) = file(&signed("internal"));
    let launcher = |bytes| Fake {
        is_launcher: true,
        answers: [answered(None, bytes)].into(),
        running: Some(program(FILE)),
        ..Fake::default()
    };
    let done = vec!["files", "clean start", "start", "processes", "hand over"];
    assert_eq!(admitted(launcher(FILE), &source), (None, done));
    let done = vec!["files", "clean start"];
    assert_eq!(admitted(launcher(b"another"), &source), (Some(Reason::HostNotBound), done));
}

#[test]
fn an_in_band_document_is_asked_for_in_a_clean_start() {
    let fake = |document: Option<&str>| Fake {
        answers: [answered(document, FILE)].into(),
        running: Some(program(FILE)),
        ..Fake::default()
    };
    let good = signed("internal");
    let done = vec!["clean start", "start", "processes", "hand over"];
    assert_eq!(admitted(fake(Some(&good)), &Source::InBand), (None, done));
    let denied = |reason| (Some(reason), vec!["clean start"]);
    assert_eq!(admitted(fake(None), &Source::InBand), denied(Reason::Unattested));
    assert_eq!(admitted(fake(Some("{}")), &Source::InBand), denied(Reason::ManifestInvalid));
    let failed =
        Fake { answers: [Err(Denial::fetch_failed("it ended"))].into(), ..Fake::default() };
    assert_eq!(admitted(failed, &Source::InBand), denied(Reason::FetchFailed));
}
