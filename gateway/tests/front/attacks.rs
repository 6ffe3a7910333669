//! Attacks from either side, each refused with its code and a record.

use crate::stage::{Setting, Stage, tool};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_answered_to_a_stranger() {
    let stage = Stage::open(Setting::default()).await;
    for (name, headers) in [
        ("no proof", vec![]),
        (
            "a made-up key",
            vec![("authorization", "Bearer hp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")],
        ),
        ("another scheme", vec![("authorization", "Basic YTpi")]),
        ("a token of nobody", vec![("authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")]),
    ] {
        for path in ["/mcp", "/servers/reports/mcp", "/servers/nothing/mcp", "/sets/x/mcp"] {
            let answer = stage.send("POST", path, &headers, LIST).await;
            assert!(matches!(answer.status, 400 | 401), "{name} at {path}: {answer:?}");
            let challenge = answer.headers["www-authenticate"].to_str().unwrap();
            assert!(challenge.contains("resource_metadata="), "{challenge}");
            assert!(!answer.body.contains("read_report"), "{name}");
        }
    }
    let refused = stage.receipts().into_iter().any(|line| line["name"] == "auth.refused");
    assert!(refused, "a record of the strangers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_one_json_message_is_refused() {
    let stage = Stage::open(Setting::default()).await;
    let session = stage.begin("/mcp", "ada").await;
    let own = ("mcp-session-id", session.as_str());
    for (name, headers, body, status) in [
        ("plain text", vec![own, ("content-type", "text/plain")], LIST, 415),
        ("a form", vec![own, ("content-type", "application/x-www-form-urlencoded")], LIST, 415),
        ("no media type", vec![own, ("content-type", "")], LIST, 415),
        (
            "another charset",
            vec![own, ("content-type", "application/json; charset=utf-16")],
            LIST,
            415,
        ),
        ("no JSON accepted", vec![own, ("accept", "text/html")], LIST, 406),
        ("no JSON", vec![own], "tools/list", 400),
        ("half a message", vec![own], r#"{"jsonrpc":"2.0","id":1,"method":"tools/li"#, 400),
        (
            "two methods",
            vec![own],
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
            400,
        ),
        (
            "a folded method",
            vec![own],
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}"#,
            400,
        ),
        ("a batch", vec![own], r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#, 400),
        ("no session", vec![], LIST, 400),
        ("a made-up session", vec![("mcp-session-id", "AAAA")], LIST, 404),
    ] {
        let before = stage.receipts().len();
        let answer = stage.post("/mcp", "ada", &headers, body).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        assert!(!answer.body.contains("read_report"), "{name}: {answer:?}");
        testing::wait_until("a record of the refusal", || stage.receipts().len() > before);
    }
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"reports__read_report","arguments":{"path":"a","path":"/etc/passwd"}}}"#;
    let answer = stage.post("/mcp", "ada", &[own], twice).await.json();
    assert_eq!(answer["error"]["code"], -32600, "two members of one name: {answer}");
    // The length alone is enough for a refusal: the body is not awaited.
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\naccept: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
        stage.address,
        stage.key("ada"),
        4 * 1024 * 1024 + 1
    );
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("in time").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_its_callers_own_until_it_is_ended() {
    let stage = Stage::open(Setting::default()).await;
    let session = stage.begin("/mcp", "ada").await;
    let own = [("mcp-session-id", session.as_str())];
    assert_eq!(stage.post("/mcp", "ada", &own, LIST).await.status, 200);
    assert_eq!(stage.post("/mcp", "eve", &own, LIST).await.status, 404, "another caller");
    let elsewhere = stage.post("/servers/reports/mcp", "ada", &own, LIST).await;
    assert_eq!(elsewhere.status, 404, "another path");
    let twice = [own[0], own[0]];
    assert_ne!(stage.post("/mcp", "ada", &twice, LIST).await.status, 200, "two session ids");
    let key = format!("Bearer {}", stage.key("eve"));
    let stranger = [("authorization", key.as_str()), own[0]];
    assert_eq!(stage.send("DELETE", "/mcp", &stranger, "").await.status, 404);
    assert_eq!(stage.send("GET", "/mcp", &stranger, "").await.status, 404);
    let key = format!("Bearer {}", stage.key("ada"));
    let ending = [("authorization", key.as_str()), own[0]];
    assert_eq!(stage.send("DELETE", "/mcp", &ending, "").await.status, 204);
    assert_eq!(stage.post("/mcp", "ada", &own, LIST).await.status, 404, "an ended session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_site_reaches_nothing() {
    let stage = Stage::open(Setting::default()).await;
    for headers in [
        [("origin", "http://evil.example")].as_slice(),
        &[("origin", "null")],
        &[("host", "evil.example")],
        &[("host", "127.0.0.1:1")],
    ] {
        let answer = stage.post("/mcp", "ada", headers, LIST).await;
        assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
    }
    let here = format!("http://{}", stage.address);
    let own = stage.post("/mcp", "ada", &[("origin", &here)], LIST).await;
    assert_ne!(own.status, 403, "{own:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_the_stateless_era_have_to_say_what_the_body_says() {
    let stage = Stage::open(Setting::default()).await;
    let body = |method: &str, name: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {
            "name": name,
            "arguments": {"path": "a"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }})
        .to_string()
    };
    let version = ("mcp-protocol-version", "2026-07-28");
    let list = [version, ("mcp-method", "tools/list")];
    let answer = stage.post("/mcp", "ada", &list, &body("tools/list", "")).await;
    assert_eq!(answer.json()["result"]["cacheScope"], "private", "{answer:?}");
    let call = body("tools/call", "reports__read_report");
    let (method, name) = (("mcp-method", "tools/call"), ("mcp-name", "reports__read_report"));
    let answer = stage.post("/mcp", "ada", &[version, method, name], &call).await;
    assert_eq!(answer.json()["result"]["resultType"], "complete", "{answer:?}");
    let calls = || {
        let script = stage.script.lock().unwrap();
        script.asked.iter().filter(|(method, ..)| method == "tools/call").count()
    };
    let before = calls();
    let decided = stage.decisions().len();
    for headers in [
        vec![version, ("mcp-method", "tools/list"), name],
        vec![version, name],
        vec![version, method],
        vec![version, method, ("mcp-name", "reports__other")],
        vec![method, name],
        vec![("mcp-protocol-version", "2025-11-25"), method, name],
        vec![version, method, method, name],
    ] {
        let answer = stage.post("/mcp", "ada", &headers, &call).await;
        assert_eq!(answer.status, 400, "{headers:?}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], -32020, "{headers:?}: {answer:?}");
    }
    assert_eq!(calls(), before, "nothing reached the server");
    assert_eq!(stage.decisions().len(), decided + 7, "each refusal has its decision");
    for forged in [json!("AAAA"), json!(7), json!({"a": 1})] {
        let mut message: Value = serde_json::from_str(&call).unwrap();
        message["params"]["requestState"] = forged;
        let headers = [version, method, name];
        let answer = stage.post("/mcp", "ada", &headers, &message.to_string()).await;
        assert_eq!(answer.json()["error"]["code"], -32602, "{answer:?}");
    }
    assert_eq!(calls(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_cannot_be_read_is_never_passed_on() {
    for (name, instead) in [
        (
            "another media type",
            (200, "text/html", r#"{"jsonrpc":"2.0","id":"ID","result":{"tools":"smuggled"}}"#),
        ),
        (
            "a failure",
            (
                500,
                "application/json",
                r#"{"jsonrpc":"2.0","id":"ID","result":{"tools":[{"name":"smuggled"}]}}"#,
            ),
        ),
        ("no object", (200, "application/json", r#"["smuggled"]"#)),
        (
            "two lists",
            (
                200,
                "application/json",
                r#"{"jsonrpc":"2.0","id":"ID","result":{"tools":[],"tools":[{"name":"smuggled","inputSchema":{}}]}}"#,
            ),
        ),
        (
            "a redirect",
            (
                302,
                "application/json",
                r#"{"jsonrpc":"2.0","id":"ID","result":{"tools":[{"name":"smuggled"}]}}"#,
            ),
        ),
    ] {
        let stage = Stage::open(Setting::default()).await;
        let (status, media, body) = instead;
        let instead = (status, media, body.to_owned());
        stage.script.lock().unwrap().instead.insert("tools/list".to_owned(), instead);
        let session = stage.begin("/mcp", "ada").await;
        let listed = stage.ask("ada", &session, "tools/list", &json!({})).await;
        assert!(!listed.to_string().contains("smuggled"), "{name}: {listed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_of_a_caller_never_goes_to_a_server() {
    let stage = Stage::open(Setting::default()).await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    let called = stage.call("ada", &session, "reports__read_report", &json!({"path": "a"})).await;
    assert!(called.get("result").is_some(), "{called}");
    let script = stage.script.lock().unwrap();
    assert!(script.asked.iter().any(|(method, ..)| method == "tools/call"));
    for (method, headers, message) in &script.asked {
        assert!(headers.get("authorization").is_none(), "{method}");
        assert!(headers.get("cookie").is_none(), "{method}");
        let all = format!("{headers:?}{message}");
        assert!(!all.contains(stage.key("ada")) && !all.contains(&session), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_two_readers_would_split_differently_is_refused() {
    let stage = Stage::open(Setting::default()).await;
    let key = stage.key("ada");
    let host = stage.address;
    let smuggled = "POST /mcp HTTP/1.1\r\nhost: x\r\n\r\n";
    for (name, request) in [
        (
            "a length and chunks",
            format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
            ),
        ),
        (
            "two lengths",
            format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 40\r\n\r\n{{}}{smuggled}"
            ),
        ),
        (
            "a strange encoding",
            format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ntransfer-encoding: xchunked\r\n\r\n{smuggled}"
            ),
        ),
        (
            "two hosts",
            format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}\r\nhost: evil.example\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
            ),
        ),
    ] {
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(10), read).await.expect("in time").unwrap();
        let answers: Vec<&str> =
            answer.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
        assert!(answers.len() <= 1, "{name}: {answer}");
        assert!(!answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_at_a_private_address_is_not_reached() {
    let stage = Stage::open(Setting {
        server: "[[server]]\nid = \"inside\"\ntrust = \"internal\"\nurl = \"https://10.255.255.1/mcp\"\n[[server]]\nid = \"mapped\"\ntrust = \"internal\"\nurl = \"https://[::ffff:169.254.169.254]/mcp\"",
        tools: vec![tool("read_report", "Reads.")],
        ..Setting::default()
    })
    .await;
    let session = stage.begin("/mcp", "ada").await;
    let begun = std::time::Instant::now();
    let listed = stage.ask("ada", &session, "tools/list", &json!({})).await;
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(begun.elapsed() < Duration::from_secs(10), "it was not tried");
}
