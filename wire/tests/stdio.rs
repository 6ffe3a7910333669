//! Observing servers that are started as a child process.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what the tests share may fail loudly too"
)]

use contract::client::ClientCapabilities;
use contract::surface::{ListKind, MAX_LIST_BYTES, MAX_LIST_PAGES};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use wire::{
    Era, ListOutcome, ObserveError, ObserveLimits, Observed, Progress, Revision, StdioLaunch,
    Upstream, observe, observe_as,
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}}"#;
const ONE_TOOL: &str =
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"a","inputSchema":{}}]}}"#;
const ONE_TOOL_RESULT: &str = r#"{"tools":[{"name":"a","inputSchema":{}}]}"#;

fn scripted(script: &Value) -> Upstream {
    Upstream::Stdio(StdioLaunch {
        program: env!("CARGO_BIN_EXE_scripted-server").into(),
        arguments: vec![script.to_string().into()],
        environment: Vec::new(),
        directory: None,
        confinement: None,
    })
}

/// Short enough that a test that waits in vain ends soon, and long enough for a busy machine.
fn limits() -> ObserveLimits {
    ObserveLimits { frame_bytes: 100_000, ..ObserveLimits::default() }
}

async fn run(script: &Value) -> Result<Observed, ObserveError> {
    observe(&scripted(script), &limits(), &|_| {}).await
}

/// The outcome of the tools list when it is answered with these turns.
async fn tools(turns: Value) -> ListOutcome {
    let script = json!({ "answers": { "initialize": [[INITIALIZE]], "tools/list": turns } });
    let observed = run(&script).await.unwrap();
    observed.lists[0].1.clone()
}

fn unreadable(outcome: ListOutcome) -> String {
    match outcome {
        ListOutcome::Unreadable(reason) => reason,
        other => panic!("expected an unreadable list, got {other:?}"),
    }
}

fn one_page(observed: &Observed) -> &str {
    match &observed.lists[0] {
        (ListKind::Tools, ListOutcome::Pages(pages)) => &pages[0],
        other => panic!("expected a page of tools, got {other:?}"),
    }
}

#[tokio::test]
async fn an_ordinary_server_is_observed_byte_for_byte() {
    let tools = r#"{ "tools" : [ {"name":"a","x":1e2, "é":"\u00e9"} ] }"#;
    let script = json!({ "answers": {
        "initialize": [[r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"instructions":"be kind"}}"#]],
        "tools/list": [[format!(r#"{{"result":{tools},"id":$ID,"jsonrpc":"2.0"}}"#)]],
        "prompts/list": [
            [r#"{"jsonrpc":"2.0","id":$ID,"result":{"prompts":[1],"nextCursor":"p2"}}"#],
            [r#"{"jsonrpc":"2.0","id":$ID,"result":{"prompts":[2],"nextCursor":null}}"#]],
        "resources/list": [[r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"broken"}}"#]],
        "resources/templates/list": [[r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}"#]],
    } });
    let seen = std::sync::Mutex::new(Vec::new());
    let note = |step| seen.lock().unwrap().push(step);
    let observed = observe(&scripted(&script), &limits(), &note).await.unwrap();
    assert_eq!(observed.era, Era::Initialize { protocol_version: Revision::November2025 });
    assert!(observed.handshake.contains(r#""instructions":"be kind""#));
    assert_eq!(one_page(&observed), tools);
    let prompts = [r#"{"prompts":[1],"nextCursor":"p2"}"#, r#"{"prompts":[2],"nextCursor":null}"#];
    assert_eq!(observed.lists[1].1, ListOutcome::Pages(Arc::new(prompts.map(Arc::from).to_vec())));
    assert_eq!(observed.lists[2].1, ListOutcome::NotOffered);
    assert_eq!(observed.lists[3].1, ListOutcome::NotOffered);
    let note = "`resources/list` was answered with error -32603: `broken`; left out";
    assert_eq!(observed.notes, [note]);
    assert_eq!(observed.tls_key, None);
    let steps = seen.into_inner().unwrap();
    assert_eq!(
        steps.get(..5).unwrap(),
        [
            Progress::Starting,
            Progress::Handshake,
            Progress::Listing(ListKind::Tools, 1),
            Progress::Listing(ListKind::Prompts, 1),
            Progress::Listing(ListKind::Prompts, 2)
        ]
    );
}

#[tokio::test]
async fn what_is_not_declared_is_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let script = json!({ "record": record, "answers": {
        "initialize": [[INITIALIZE]], "tools/list": [[ONE_TOOL]],
        "prompts/list": [[r#"{"jsonrpc":"2.0","id":$ID,"result":{"prompts":[]}}"#]],
    } });
    let observed = run(&script).await.unwrap();
    assert_eq!(observed.lists.len(), 4);
    assert!(observed.lists[1..].iter().all(|(_, outcome)| *outcome == ListOutcome::NotOffered));
    let sent = std::fs::read_to_string(record).unwrap();
    let methods: Vec<_> = sent
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["method"].to_string())
        .collect();
    assert_eq!(methods, ["\"initialize\"", "\"notifications/initialized\"", "\"tools/list\""]);
}

#[tokio::test]
async fn a_server_that_declares_nothing_is_asked_for_tools_and_one_that_declares_none_is_not() {
    let handshake = |capabilities: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"protocolVersion":"2024-11-05"{capabilities}}}}}"#
        )
    };
    let script = |capabilities| json!({ "answers": { "initialize": [[handshake(capabilities)]], "tools/list": [[ONE_TOOL]] } });
    assert_eq!(one_page(&run(&script("")).await.unwrap()), ONE_TOOL_RESULT);
    let declared = run(&script(r#","capabilities":{}"#)).await.unwrap();
    assert_eq!(declared.lists[0].1, ListOutcome::NotOffered);
}

#[tokio::test]
async fn logs_on_standard_output_are_dropped_with_a_note() {
    let script = json!({
        "before": ["starting up", "", "{\"level\":\"info\"}", "[warn] x"],
        "answers": { "initialize": [[INITIALIZE]], "tools/list": [["listing", ONE_TOOL]] }
    });
    let observed = run(&script).await.unwrap();
    assert_eq!(one_page(&observed), ONE_TOOL_RESULT);
    assert_eq!(observed.notes.len(), 2, "{:?}", observed.notes);
    assert!(observed.notes[0].starts_with("4 lines"), "{:?}", observed.notes);
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_shown_with_its_standard_error() {
    let script = json!({ "stderr": ["no such\u{1b}[31m key", "giving up"], "exit": 3 });
    let error = run(&script).await.unwrap_err();
    assert!(matches!(&error, ObserveError::Exited { status, .. } if status.code() == Some(3)));
    let said = error.to_string();
    assert!(said.contains("before the answer to `initialize`"), "{said}");
    assert!(said.ends_with("no such\\u{1b}[31m key\ngiving up"), "{said}");
    assert!(error.stderr().is_some());
}

#[tokio::test]
async fn a_server_that_ends_during_a_list_says_which() {
    let script =
        json!({ "answers": { "initialize": [[INITIALIZE]], "tools/list": [[{ "exit": 0 }]] } });
    let error = run(&script).await.unwrap_err();
    assert!(error.to_string().contains("before the answer to `tools/list`"), "{error}");
}

#[tokio::test]
async fn a_server_that_closes_its_output_and_stays_is_told_apart_from_one_that_ended() {
    let launch = StdioLaunch {
        program: "sh".into(),
        arguments: vec!["-c".into(), "exec >&-; trap '' TERM; while :; do sleep 1; done".into()],
        environment: Vec::new(),
        directory: None,
        confinement: None,
    };
    let limits = ObserveLimits { shutdown_grace: Duration::from_millis(50), ..limits() };
    let error = observe(&Upstream::Stdio(launch), &limits, &|_| {}).await.unwrap_err();
    assert!(matches!(error, ObserveError::ClosedOutput { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_with_what_was_waited_for() {
    let limits = ObserveLimits { start_timeout: Duration::from_millis(1_500), ..limits() };
    let script = json!({ "stderr": ["thinking"] });
    let error = observe(&scripted(&script), &limits, &|_| {}).await.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("waited 1.5 s for the answer to `initialize`"), "{said}");
    assert!(said.ends_with("thinking"), "{said}");
}

#[tokio::test]
async fn a_list_that_is_never_answered_is_unreadable_and_the_next_one_is_asked_for() {
    let limits = ObserveLimits { list_timeout: Duration::from_millis(300), ..limits() };
    let both = INITIALIZE.replace(r#""tools":{}"#, r#""tools":{},"prompts":{}"#);
    let script = json!({ "answers": {
        "initialize": [[both]],
        "prompts/list": [[r#"{"jsonrpc":"2.0","id":$ID,"result":{"prompts":[]}}"#]],
    } });
    let observed = observe(&scripted(&script), &limits, &|_| {}).await.unwrap();
    assert_eq!(unreadable(observed.lists[0].1.clone()), "not answered in full within 0.3 s");
    assert_eq!(observed.lists[1].1, ListOutcome::Pages(Arc::new(vec![r#"{"prompts":[]}"#.into()])));
}

#[tokio::test]
async fn an_answer_with_another_id_is_not_heard() {
    let turns = json!([[
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["forged"]}}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{"tools":["forged"]}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"forged"}}"#,
        ONE_TOOL
    ]]);
    let script = json!({ "answers": { "initialize": [[INITIALIZE]], "tools/list": turns } });
    let observed = run(&script).await.unwrap();
    assert_eq!(one_page(&observed), ONE_TOOL_RESULT);
    assert!(observed.notes[0].starts_with("3 lines"), "{:?}", observed.notes);
}

#[tokio::test]
async fn a_list_that_pages_for_ever_is_unreadable_and_one_at_the_limit_is_not() {
    let page = r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[],"nextCursor":"c$COUNT"}}"#;
    let reason = unreadable(tools(json!([[page]])).await);
    assert_eq!(reason, format!("more than {MAX_LIST_PAGES} pages"));
    let mut turns = vec![json!([page]); MAX_LIST_PAGES - 1];
    turns.push(json!([ONE_TOOL]));
    match tools(Value::from(turns)).await {
        ListOutcome::Pages(pages) => assert_eq!(pages.len(), MAX_LIST_PAGES),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_cursor_that_repeats_or_is_no_string_makes_the_list_unreadable() {
    let page = |cursor: &str| {
        json!([[format!(
            r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"tools":[],"nextCursor":{cursor}}}}}"#
        )]])
    };
    assert_eq!(unreadable(tools(page("\"same\"")).await), "a `nextCursor` that came before");
    assert_eq!(unreadable(tools(page("7")).await), "a `nextCursor` that is not a string");
    assert!(matches!(tools(page("null")).await, ListOutcome::Pages(_)));
    assert!(matches!(tools(page("\"\"")).await, ListOutcome::Pages(_)));
}

#[tokio::test]
async fn a_message_over_the_limit_makes_the_list_unreadable_and_one_at_it_does_not() {
    let limit = limits().frame_bytes;
    assert!(matches!(tools(json!([[{ "long": limit }]])).await, ListOutcome::Pages(_)));
    let reason = unreadable(tools(json!([[{ "long": limit + 1 }]])).await);
    assert_eq!(reason, format!("a message longer than {limit} bytes"));
}

#[tokio::test]
async fn a_list_over_the_limit_of_bytes_is_unreadable_and_one_at_it_is_not() {
    let half = MAX_LIST_BYTES / 2;
    for (second, is_readable) in [(half, true), (half + 1, false)] {
        let turns = json!([[{ "page": half, "more": true }], [{ "page": second }]]);
        let script = json!({ "answers": { "initialize": [[INITIALIZE]], "tools/list": turns } });
        let observed = observe(&scripted(&script), &ObserveLimits::default(), &|_| {}).await;
        let outcome = observed.unwrap().lists.remove(0).1;
        match outcome {
            ListOutcome::Pages(pages) => assert!(is_readable && pages.len() == 2),
            ListOutcome::Unreadable(reason) => {
                assert!(!is_readable);
                assert_eq!(reason, format!("larger than {MAX_LIST_BYTES} bytes"));
            }
            ListOutcome::NotOffered => panic!("the list was offered"),
        }
    }
}

#[tokio::test]
async fn a_list_that_reads_two_ways_is_unreadable_and_the_session_goes_on() {
    let both = INITIALIZE.replace(r#""tools":{}"#, r#""tools":{},"prompts":{}"#);
    let script = json!({ "answers": {
        "initialize": [[both]],
        "tools/list": [[r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"a","name":"b"}]}}"#]],
        "prompts/list": [[r#"{"jsonrpc":"2.0","id":$ID,"result":{"prompts":[]}}"#]],
    } });
    let observed = run(&script).await.unwrap();
    assert!(unreadable(observed.lists[0].1.clone()).contains("`name` appears twice"));
    assert!(matches!(observed.lists[1].1, ListOutcome::Pages(_)));
}

#[tokio::test]
async fn a_carriage_return_inside_a_message_makes_it_unreadable() {
    let line = ONE_TOOL.replace(r#""result":"#, "\"result\":\r");
    assert_eq!(
        unreadable(tools(json!([[line]])).await),
        "a line break inside the message, where some readers start a new one"
    );
    let ending = format!("{ONE_TOOL}\r");
    assert!(matches!(tools(json!([[ending]])).await, ListOutcome::Pages(_)));
}

#[tokio::test]
async fn a_refused_list_of_tools_is_unreadable() {
    let turns = json!([[r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"x\ny"}}"#]]);
    assert_eq!(unreadable(tools(turns).await), "answered with error -32603: `x\\u{a}y`");
}

#[tokio::test]
async fn requests_of_the_server_are_answered_or_declined() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let script = json!({ "record": record, "answers": {
        "initialize": [[INITIALIZE]],
        "tools/list": [[
            r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
            ONE_TOOL]],
    } });
    run(&script).await.unwrap();
    let sent = std::fs::read_to_string(record).unwrap();
    assert!(sent.contains(r#"{"jsonrpc":"2.0","id":"p","result":{}}"#), "{sent}");
    assert!(sent.contains(r#""id":5,"error":{"code":-32601"#), "{sent}");
}

#[tokio::test]
async fn what_a_client_can_do_is_declared_in_its_place_and_its_requests_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let script = json!({ "record": record, "answers": {
        "initialize": [[INITIALIZE]],
        "tools/list": [[
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{}}"#,
            ONE_TOOL]],
    } });
    let said = r#"{"elicitation":{},"roots":{"n":9007199254740993},"sampling":{}}"#;
    let client = ClientCapabilities::read(said.as_bytes()).unwrap();
    observe_as(&client, &scripted(&script), &limits(), &|_| {}).await.unwrap();
    let sent = std::fs::read_to_string(record).unwrap();
    assert!(sent.contains(&format!(r#""capabilities":{said},"#)), "{sent}");
    assert!(sent.contains(r#""id":1,"result":{"roots":[]}}"#), "{sent}");
    assert!(sent.contains(r#""id":2,"error":{"code":-1,"#), "{sent}");
    assert!(sent.contains(r#""id":3,"result":{"action":"cancel"}}"#), "{sent}");
}

#[tokio::test]
async fn a_server_of_the_stateless_era_is_found_and_spoken_to_in_its_way() {
    let refusals = [
        r#"{"code":-32601,"message":"unknown method"}"#,
        r#"{"code":-32602,"message":"no _meta"}"#,
        r#"{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"]}}"#,
    ];
    for refusal in refusals {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        let script = json!({ "record": record, "answers": {
            "initialize": [[format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{refusal}}}"#)]],
            "server/discover": [[r#"{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#]],
            "tools/list": [[ONE_TOOL]],
        } });
        let observed = run(&script).await.unwrap();
        assert_eq!(observed.era, Era::Stateless { protocol_version: Revision::July2026 });
        assert_eq!(one_page(&observed), ONE_TOOL_RESULT);
        let sent = std::fs::read_to_string(record).unwrap();
        assert!(!sent.contains("notifications/initialized"));
        let list: Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
        let meta = &list["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
    }
}

#[tokio::test]
async fn a_handshake_that_cannot_be_used_is_an_error_that_says_why() {
    let check = async |answer: &str, expected: &str| {
        let script = json!({ "answers": { "initialize": [[answer]] } });
        let said = run(&script).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    };
    check(
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2031-01-01"}}"#,
        "`2031-01-01`",
    )
    .await;
    check(r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#, "no `protocolVersion`").await;
    check(r#"{"jsonrpc":"2.0","id":$ID,"result":{"a":1,"a":2}}"#, "appears twice").await;
    check(
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no licence"}}"#,
        "-32000: `no licence`",
    )
    .await;
}

#[tokio::test]
async fn a_program_or_directory_that_is_not_there_is_named() {
    let launch = |program: &str, directory: Option<&str>| {
        Upstream::Stdio(StdioLaunch {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: directory.map(Into::into),
            confinement: None,
        })
    };
    let error = observe(&launch("no-such-program", None), &limits(), &|_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "the program `no-such-program` was not found");
    let error = observe(&launch("sh", Some("/no/such")), &limits(), &|_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "the directory `/no/such` was not found");
}

#[tokio::test]
async fn environment_and_directory_reach_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let launch = StdioLaunch {
        program: "sh".into(),
        arguments: vec!["-c".into(), "echo \"$HOLDPOINT_TEST in $(pwd -P)\" >&2; exit 1".into()],
        environment: vec![("HOLDPOINT_TEST".into(), "value".into())],
        directory: Some(folder.path().to_owned()),
        confinement: None,
    };
    assert!(!format!("{launch:?}").contains("value"), "values are not shown");
    let error = observe(&Upstream::Stdio(launch), &limits(), &|_| {}).await.unwrap_err();
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(error.stderr().unwrap().as_str(), format!("value in {}", place.display()));
}

#[cfg(target_os = "linux")]
mod processes {
    use super::*;
    use std::path::Path;

    /// Like `testing::wait_for`, but keeps the runtime going, which runs the observation and reaps
    /// processes.
    async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = std::time::Instant::now() + testing::PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(std::time::Instant::now() < deadline, "timed out waiting for {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn number_in(path: &Path) -> u32 {
        eventually("the number", || std::fs::read_to_string(path).ok()?.parse().ok()).await
    }

    /// A dead process that its parent has not reaped yet counts as ended.
    fn is_gone(number: u32) -> bool {
        !exists(number) || testing::is_zombie(number)
    }

    fn exists(number: u32) -> bool {
        Path::new(&format!("/proc/{number}")).exists()
    }

    #[tokio::test]
    async fn the_server_and_its_child_are_gone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let (server, child) = (folder.path().join("server"), folder.path().join("child"));
        for ignore_end in [false, true] {
            let script = json!({
                "number": server, "child": child, "ignore_end": ignore_end,
                "answers": { "initialize": [[INITIALIZE]], "tools/list": [[ONE_TOOL]] },
            });
            let limits = ObserveLimits { shutdown_grace: Duration::from_millis(200), ..limits() };
            // The child must exist before the list is answered, or the test would prove nothing.
            let started = |step| {
                while matches!(step, Progress::Listing(..)) && !child.exists() {
                    std::thread::yield_now();
                }
            };
            observe(&scripted(&script), &limits, &started).await.unwrap();
            let (server_number, child_number) = (number_in(&server).await, number_in(&child).await);
            assert!(!exists(server_number), "the server is collected, not left as a zombie");
            eventually("the child's end", || is_gone(child_number).then_some(())).await;
            std::fs::remove_file(&child).unwrap();
        }
    }

    #[tokio::test]
    async fn a_server_that_ignores_every_request_to_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let number = folder.path().join("number");
        let shell = "trap '' TERM; echo $$ > \"$NUMBER.new\"; mv \"$NUMBER.new\" \"$NUMBER\"; while :; do sleep 1; done";
        let launch = StdioLaunch {
            program: "sh".into(),
            arguments: vec!["-c".into(), shell.into()],
            environment: vec![("NUMBER".into(), number.clone().into())],
            directory: None,
            confinement: None,
        };
        let limits = ObserveLimits {
            start_timeout: Duration::from_millis(1_500),
            shutdown_grace: Duration::from_millis(50),
            ..limits()
        };
        let error = observe(&Upstream::Stdio(launch), &limits, &|_| {}).await.unwrap_err();
        assert!(matches!(error, ObserveError::TimedOut { .. }), "{error}");
        let number = std::fs::read_to_string(number).unwrap().trim().parse().unwrap();
        assert!(!exists(number));
    }

    #[tokio::test]
    async fn giving_up_the_observation_leaves_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let (server, child) = (folder.path().join("server"), folder.path().join("child"));
        let script = json!({ "number": server, "child": child, "ignore_end": true });
        let upstream = scripted(&script);
        let observing =
            tokio::spawn(async move { observe(&upstream, &limits(), &|_| {}).await.map(|_| ()) });
        let (server, child) = (number_in(&server).await, number_in(&child).await);
        assert!(!is_gone(server) && !is_gone(child));
        observing.abort();
        eventually("the server's end", || is_gone(server).then_some(())).await;
        eventually("the child's end", || is_gone(child).then_some(())).await;
        eventually("the server's collection", || (!exists(server)).then_some(())).await;
    }
}
