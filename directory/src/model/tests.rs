use super::*;
use crate::entry::{
    ClaimHashes, DriftHashes, ENTRY_VERSION, MethodologyHashes, MethodologyStatement, VerdictHashes,
};
use contract::time::Timestamp;

fn at(seconds: i64) -> Moment {
    Moment(Timestamp(1_790_000_000_000 + seconds * 1_000))
}

fn server() -> SubjectId {
    "npm:files".parse().unwrap()
}

/// Writes entries as the log's writer would, each linked to the one before.
struct Book {
    model: Model,
    seconds: i64,
}

impl Book {
    fn new() -> Book {
        let mut book = Book { model: Model::default(), seconds: 0 };
        book.add(Subject::Document("methodology".to_owned()), methodology("m1")).unwrap();
        book
    }

    fn add(&mut self, subject: Subject, statement: Statement) -> Result<Entry, Misfit> {
        let prev = self.model.head(&subject);
        let entry = Entry { v: ENTRY_VERSION, at: at(self.seconds), subject, prev, statement };
        self.model.apply(&entry.write().unwrap())
    }

    fn verdict(&mut self, tools: &[(&str, &str)]) -> Result<Entry, Misfit> {
        let items = tools.iter().map(|(name, entry)| {
            let known = self.model.servers.get(&server());
            let prev = known.and_then(|known| known.head_of(name)).map(str::to_owned);
            item(name, entry, prev)
        });
        let statement = verdict("m1", items.collect());
        self.add(Subject::ServerId(server()), statement)
    }
}

fn methodology(hash: &str) -> Statement {
    Statement::Methodology(MethodologyStatement {
        hashes: MethodologyHashes { methodology: hash.to_owned() },
        version: "1".to_owned(),
    })
}

fn item(name: &str, entry: &str, prev: Option<String>) -> ToolItem {
    ToolItem {
        tool_name: name.to_owned(),
        definition_hash: format!("d-{entry}"),
        entry_hash: entry.to_owned(),
        prev,
        status: "OK".to_owned(),
        directive: "REVIEW".to_owned(),
        granularity: Some("definition".to_owned()),
        dimensions: Vec::new(),
        honest_limits: Vec::new(),
    }
}

fn verdict(methodology: &str, tools: Vec<ToolItem>) -> Statement {
    Statement::Verdict(Box::new(VerdictStatement {
        hashes: VerdictHashes {
            methodology: methodology.to_owned(),
            manifest: "f".to_owned(),
            surface: Some("s".to_owned()),
        },
        release: Some("1.0.0".to_owned()),
        evidence_grade: "crawl-l0".to_owned(),
        expires_at: at(1_000),
        part: [1, 1],
        outcome: VisitOutcome::Listed,
        cause: None,
        status: "OK".to_owned(),
        directive: "REVIEW".to_owned(),
        dimensions: Vec::new(),
        facts: ServerFacts { tools: tools.len() as u32, ..ServerFacts::default() },
        tools,
    }))
}

fn drift(name: &str, prev: Option<String>, after: Option<&str>) -> Statement {
    Statement::Drift(DriftStatement {
        hashes: DriftHashes { surface_before: "s".to_owned(), surface_after: "t".to_owned() },
        release_before: Some("1.0.0".to_owned()),
        release_after: Some("1.1.0".to_owned()),
        part: [1, 1],
        entries: vec![DriftItem {
            entry_type: "tool".to_owned(),
            name: name.to_owned(),
            prev,
            entry_before: Some("e1".to_owned()),
            entry_after: after.map(str::to_owned),
            kinds: vec!["tool-removed".to_owned()],
            class: "breaking".to_owned(),
            safety: true,
        }],
    })
}

#[test]
fn each_tool_has_a_chain_of_its_own() {
    let mut book = Book::new();
    book.verdict(&[("read", "e1"), ("write", "e2")]).unwrap();
    let head = book.model.servers[&server()].head_of("read").map(str::to_owned);
    let entry = book.add(Subject::ServerId(server()), drift("read", head, None)).unwrap();
    assert!(matches!(entry.statement, Statement::Drift(_)));
    let known = &book.model.servers[&server()];
    assert_eq!(known.tools.keys().collect::<Vec<_>>(), ["write"]);
    // The tool comes back, and continues from its removal.
    book.verdict(&[("read", "e1")]).unwrap();
    assert_eq!(book.model.servers[&server()].tools.len(), 2);
    assert_eq!(book.model.tools_with("d-e1").len(), 1);
}

#[test]
fn an_item_that_leaves_out_the_one_before_is_refused() {
    let mut book = Book::new();
    book.verdict(&[("read", "e1")]).unwrap();
    let size = book.model.size;
    let again = verdict("m1", vec![item("read", "e3", None)]);
    assert_eq!(
        book.add(Subject::ServerId(server()), again),
        Err(Misfit::ItemChain("read".to_owned()))
    );
    assert_eq!(
        book.add(Subject::ServerId(server()), drift("read", None, None)),
        Err(Misfit::ItemChain("read".to_owned()))
    );
    assert_eq!(book.model.size, size);
}

#[test]
fn an_entry_that_leaves_out_the_one_before_is_refused() {
    let mut book = Book::new();
    book.verdict(&[("read", "e1")]).unwrap();
    let entry = Entry {
        v: ENTRY_VERSION,
        at: at(0),
        subject: Subject::ServerId(server()),
        prev: None,
        statement: verdict("m1", Vec::new()),
    };
    assert_eq!(book.model.apply(&entry.write().unwrap()), Err(Misfit::Chain));
}

#[test]
fn a_verdict_by_a_methodology_that_is_not_in_the_log_is_refused() {
    let mut book = Book::new();
    let refused = book.add(Subject::ServerId(server()), verdict("m2", Vec::new()));
    assert_eq!(refused, Err(Misfit::Methodology));
    book.add(Subject::Document("methodology".to_owned()), methodology("m2")).unwrap();
    book.add(Subject::ServerId(server()), verdict("m2", Vec::new())).unwrap();
}

#[test]
fn time_does_not_go_back_and_a_drift_needs_a_server() {
    let mut book = Book::new();
    assert_eq!(
        book.add(Subject::ServerId(server()), drift("read", None, None)),
        Err(Misfit::NoServer)
    );
    book.seconds = -1;
    assert_eq!(book.verdict(&[]), Err(Misfit::Time));
}

#[test]
fn a_server_has_so_many_entries_a_day_and_no_more() {
    let mut book = Book::new();
    for _ in 0..MAX_ENTRIES_A_DAY {
        book.verdict(&[]).unwrap();
    }
    assert_eq!(book.verdict(&[]), Err(Misfit::TooMany));
    book.seconds = 24 * 3_600;
    book.verdict(&[]).unwrap();
}

#[test]
fn a_major_version_may_break() {
    assert_eq!(major(Some("1.2.3")).as_deref(), Some("1"));
    assert_eq!(major(Some("0.2.3")).as_deref(), Some("0.2"));
    assert_eq!(major(None), None);
}

fn claim_of(byte: &str, state: ClaimState) -> Statement {
    Statement::Claim(ClaimStatement {
        hashes: ClaimHashes { key: byte.to_owned() },
        domain: "example.com".to_owned(),
        method: "dns".to_owned(),
        state,
        counts_from: None,
    })
}

#[test]
fn claims_do_not_use_up_the_entries_of_visits() {
    let mut book = Book::new();
    let subject = Subject::ServerId(server());
    assert_eq!(
        book.add(subject.clone(), claim_of("a", ClaimState::Verified)),
        Err(Misfit::NoServer)
    );
    book.verdict(&[("read", "e1")]).unwrap();
    let before = book.model.left_on(&server(), at(0));
    for _ in 0..MAX_CLAIMS_A_DAY {
        book.add(subject.clone(), claim_of("a", ClaimState::Verified)).unwrap();
    }
    let more = book.add(subject.clone(), claim_of("a", ClaimState::Verified));
    assert_eq!(more, Err(Misfit::TooMany));
    assert_eq!(book.model.left_on(&server(), at(0)), before);
    book.verdict(&[("read", "e2")]).unwrap();
    book.seconds = 86_400;
    book.add(subject, claim_of("a", ClaimState::Verified)).unwrap();
}

#[test]
fn the_last_word_of_the_log_on_each_claim_counts() {
    let mut book = Book::new();
    book.verdict(&[("read", "e1")]).unwrap();
    let subject = Subject::ServerId(server());
    for (key, state) in
        [("a", ClaimState::Verified), ("b", ClaimState::Waiting), ("a", ClaimState::Suspended)]
    {
        book.add(subject.clone(), claim_of(key, state)).unwrap();
    }
    let known = &book.model.servers[&server()];
    let current: Vec<_> =
        known.current_claims().iter().map(|(_, it)| (it.hashes.key.as_str(), it.state)).collect();
    assert_eq!(current, [("a", ClaimState::Suspended), ("b", ClaimState::Waiting)]);
    assert!(!known.permits_probes(), "one that waits permits nothing");
    let directive = known.directive.clone();
    book.add(subject, claim_of("b", ClaimState::Verified)).unwrap();
    let known = &book.model.servers[&server()];
    assert!(known.permits_probes());
    assert_eq!(known.directive, directive);
}

#[test]
fn a_definition_in_which_more_is_found_later_is_noticed_once() {
    let mut book = Book::new();
    let read = |book: &mut Book, entry: &str, severity: &str| {
        let known = book.model.servers.get(&server());
        let prev = known.and_then(|known| known.head_of("read")).map(str::to_owned);
        let mut item = item("read", entry, prev);
        let outcome = if severity.is_empty() { "pass" } else { "fail" };
        item.dimensions = vec![serde_json::json!({
            "dimension": "injection", "outcome": outcome, "severity": severity })];
        book.add(Subject::ServerId(server()), verdict("m1", vec![item])).unwrap();
    };
    read(&mut book, "e1", "");
    read(&mut book, "e1", "medium");
    assert!(book.model.found_later.is_empty());
    read(&mut book, "e1", "high");
    read(&mut book, "e1", "high");
    // A different definition is a change, not a later finding.
    read(&mut book, "e2", "");
    read(&mut book, "e3", "high");
    let found = &book.model.found_later;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].definition_hash.as_str(), found[0].number), ("d-e1", 3));
    assert_eq!(found[0].dimensions, ["injection"]);
    assert_eq!(book.model.definitions(), 3);
}
