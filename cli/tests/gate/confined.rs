//! `run --sandbox` with real servers, and with one that tries forbidden actions: each refusal has a
//! counterpart that works.
//!
//! These tests need Linux with user namespaces. If servers cannot be fully confined, they report
//! it; with `CI=true` they fail.

use crate::bench::*;
use crate::client::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use testing::newest_release;

/// Whether servers can be confined here.
fn can_confine(bench: &Bench) -> bool {
    let findings = bench.run(["doctor", "--json"]).json();
    let codes = findings["findings"].as_array().unwrap().iter();
    let is_full = codes.clone().any(|finding| finding["code"] == "sandbox_full");
    if !is_full {
        testing::not_run("servers cannot be confined wholly on this system");
    }
    is_full
}

/// The conformance suite's server, in a workspace created by the test.
fn boxed(bench: &Bench) -> (PathBuf, Vec<OsString>) {
    let folder = bench.path("work");
    fs::create_dir_all(&folder).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/gateway/csp/boxed.mjs");
    (folder, vec!["node".into(), script.into()])
}

fn is_error(answer: &Value) -> bool {
    answer["result"]["isError"].as_bool().unwrap_or(true)
}

#[track_caller]
fn lists_tools(bench: &Bench, id: &str, options: &[&str], launch: &[OsString]) -> Client {
    let mut command = bench.command(["run", "--server", id]);
    command.args(options).arg("--").args(launch);
    let mut client = Client::start(command);
    client.begin();
    assert!(!client.tool_names().is_empty(), "{id}");
    client
}

#[test]
fn real_servers_work_confined() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    let work = bench.path("work");
    fs::create_dir(&work).unwrap();
    let folder = work.to_str().unwrap();
    assert!(
        std::process::Command::new("git").args(["init", "-q", folder]).status().unwrap().success()
    );
    let workspace = ["--sandbox", "workspace", "--workspace", folder];
    for (name, options, words, tool, arguments) in [
        ("server-everything", &["--sandbox"][..], &[][..], "echo", json!({"message": "hello"})),
        ("server-memory", &["--sandbox"], &[], "read_graph", json!({})),
        (
            "mcp-server-time",
            &["--sandbox"],
            &["--local-timezone=UTC"],
            "get_current_time",
            json!({"timezone": "UTC"}),
        ),
        ("mcp-server-git", &workspace, &[], "git_status", json!({"repo_path": folder})),
        (
            "server-filesystem",
            &workspace,
            &[folder],
            "write_file",
            json!({"path": format!("{folder}/x"), "content": "y"}),
        ),
    ] {
        let Some(release) = newest_release(name) else { continue };
        let mut launch = vec![release.join("launch").into_os_string()];
        launch.extend(words.iter().map(OsString::from));
        let mut client = lists_tools(&bench, name, options, &launch);
        let answer = client.call(tool, &arguments);
        assert!(answer["result"]["isError"].as_bool() != Some(true), "{name}: {answer}");
        assert!(answer["error"].is_null(), "{name}: {answer}");
        client.end().exits(0);
        let status = bench.run(["status", name, "--json"]).json();
        assert_eq!(status["servers"][0]["sandbox"]["level"], "full", "{name}");
    }
    assert_eq!(fs::read_to_string(work.join("x")).unwrap(), "y");
}

#[test]
fn what_is_outside_the_workspace_can_be_neither_read_nor_written() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    let (folder, launch) = boxed(&bench);
    let secret = bench.file("secret", "s3cret");
    let work = folder.to_str().unwrap();
    let run = |options: &[&str]| {
        let mut client = lists_tools(&bench, ID, options, &launch);
        let mut file = |path: &Path, text: Option<&str>| {
            let mut arguments = json!({ "path": path });
            if let Some(text) = text {
                arguments["text"] = json!(text);
            }
            let answer = client.call("file", &arguments);
            !is_error(&answer)
        };
        let inside = file(&folder.join("inside"), Some("a"));
        let read = file(&secret, None);
        let written = file(&bench.home().join("outside"), Some("b"));
        let home = file(&bench.home().join("state.db"), None);
        client.end().exits(0);
        [inside, read, written, home]
    };
    assert_eq!(run(&["--sandbox", "workspace", "--workspace", work]), [true, false, false, false]);
    assert!(!bench.home().join("outside").exists());
    assert_eq!(run(&["--sandbox", "read-only", "--workspace", work]), [false, false, false, false]);
    let receipts = receipts(&bench);
    let last = receipts.last().unwrap();
    assert_eq!(
        last["sandbox"],
        json!({"level": "full", "fs_policy": "read_only", "net_policy": "block_all"})
    );
    // Without a sandbox all of it works, and `status` reports it.
    assert_eq!(run(&[]), [true; 4]);
    let status = bench.run(["status"]).exits(0);
    status.says("1 server runs with all your rights");
}

/// A site on loopback that answers every request.
fn site() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        }
    });
    port
}

#[test]
fn only_hosts_that_are_named_are_reached_and_attempts_are_shown() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    let (_, launch) = boxed(&bench);
    let (allowed, other) = (site(), site());
    let host = format!("127.0.0.1:{allowed}");
    let mut client = lists_tools(&bench, ID, &["--sandbox", "--net-allow", &host], &launch);
    let mut fetch = |url: String| !is_error(&client.call("fetch", &json!({ "url": url })));
    assert!(fetch(format!("http://127.0.0.1:{allowed}/")));
    assert!(!fetch(format!("http://127.0.0.1:{other}/")));
    assert!(!fetch("https://api.blocked.example/".to_owned()));
    client.end().exits(0);
    let events: Vec<Value> = ledger_events(&bench, "egress.blocked");
    let hosts: Vec<&str> =
        events.iter().filter_map(|event| event["data"]["host"].as_str()).collect();
    assert!(hosts.contains(&"api.blocked.example"), "{events:?}");
    let review = bench.run(["review"]).exits(0);
    let review = review.says("its sandbox kept it from the network");
    review.says("\"api.blocked.example\"").says("net_allow = [");
    let document = bench.run(["review", "--json"]).json();
    assert_eq!(document["sandbox"][0]["server"], ID);
    // Once the host is allowed, it is no longer shown.
    bench.configure(&format!("[server.{ID}.sandbox]\nnet_allow = [\"api.blocked.example\"]\n"));
    bench.run(["review"]).exits(0).says("nothing is waiting for you");
}

#[test]
fn mcp_server_fetch_reaches_the_site_that_it_may_and_no_other() {
    let bench = Bench::new();
    let Some(release) = newest_release("mcp-server-fetch") else { return };
    if !can_confine(&bench) {
        return;
    }
    let (allowed, other) = (site(), site());
    let launch = [
        release.join("launch").into_os_string(),
        "--ignore-robots-txt".into(),
        "--allow-private-ips".into(),
    ];
    let host = format!("localhost:{allowed}");
    let mut client = lists_tools(&bench, ID, &["--sandbox", "--net-allow", &host], &launch);
    let mut fetch = |port: u16| {
        let url = format!("http://localhost:{port}/");
        client.call("fetch", &json!({ "url": url, "raw": true }))
    };
    let reached = fetch(allowed);
    assert!(!is_error(&reached) && reached.to_string().contains("ok"), "{reached}");
    assert!(is_error(&fetch(other)));
    client.end().exits(0);
}

/// A registry on loopback with one package that has this shell script as its install script.
fn registry(bench: &Bench, script: &str) -> u16 {
    let folder = bench.path("registry/package");
    fs::create_dir_all(&folder).unwrap();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/gateway/csp/boxed.mjs");
    let code = fs::read_to_string(server).unwrap();
    fs::write(folder.join("index.mjs"), format!("#!/usr/bin/env node\n{code}")).unwrap();
    fs::write(folder.join("install.sh"), script).unwrap();
    let manifest = json!({
        "name": "poisoned-mcp",
        "version": "1.0.0",
        "bin": { "poisoned-mcp": "index.mjs" },
        "scripts": { "postinstall": "sh install.sh" },
    });
    fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
    let packed = std::process::Command::new("tar")
        .args(["-czf", "package.tgz", "package"])
        .current_dir(bench.path("registry"))
        .status();
    assert!(packed.unwrap().success());
    let package = fs::read(bench.path("registry/package.tgz")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut version = manifest;
    version["hasInstallScript"] = json!(true);
    version["dist"] = json!({ "tarball": format!("http://127.0.0.1:{port}/package.tgz") });
    let described = json!({
        "name": "poisoned-mcp",
        "dist-tags": { "latest": "1.0.0" },
        "versions": { "1.0.0": version },
    });
    let described = described.to_string().into_bytes();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut question = [0; 4096];
            let read = stream.read(&mut question).unwrap_or(0);
            let is_package = question[..read].starts_with(b"GET /package.tgz");
            let body = if is_package { &package } else { &described };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    port
}

/// A package's code runs during installation. Whatever it leaves in its folder, Holdpoint neither
/// writes to the user's files through it nor reveals them.
#[test]
fn a_package_that_leaves_links_in_its_tree_reaches_nothing_by_them() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    let own = bench.file("own.rc", "mine\n");
    let secret = bench.file("secret", "s3cret");
    let tree = "cd ../..";
    let script = format!(
        "{tree} && touch installed-by-script && for name in holdpoint-installed.json package-lock.json x.json; do rm -f $name; ln -s {} $name; done; ln -s {} found; ls -a > seen",
        own.display(),
        secret.display(),
    );
    let port = registry(&bench, &script);
    fs::create_dir_all(bench.home()).unwrap();
    bench.configure(&format!("[sandbox]\nnpm_registry = \"http://127.0.0.1:{port}/\"\n"));
    let cache = bench.path("cache");
    let mut command = bench.command(["run", "--server", ID, "--sandbox", "--"]);
    command.args(["npx", "-y", "poisoned-mcp"]).env("HOLDPOINT_CACHE", &cache);
    let mut client = Client::start(command);
    client.begin();
    assert_eq!(client.tool_names(), ["file", "fetch"]);
    let trees = cache.join("packages/npm");
    let tree = fs::read_dir(&trees).unwrap().flatten().map(|entry| entry.path());
    let tree = tree.into_iter().find(|path| path.is_dir()).unwrap();
    assert!(tree.join("installed-by-script").exists(), "the script did not run");
    let read = client.call("file", &json!({ "path": tree.join("found") }));
    assert!(is_error(&read), "{read}");
    let written = client.call("file", &json!({ "path": tree.join("index.mjs"), "text": "x" }));
    assert!(is_error(&written), "{written}");
    client.end().exits(0);
    assert_eq!(fs::read_to_string(own).unwrap(), "mine\n");
}

#[test]
fn a_server_that_is_kept_from_the_network_again_and_again_is_quarantined() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    fs::create_dir_all(bench.home()).unwrap();
    bench.configure("[anomaly]\nquarantine = { egress_blocks = \"5/hour\" }\n");
    let (_, launch) = boxed(&bench);
    let mut client = lists_tools(&bench, ID, &["--sandbox"], &launch);
    let mut fetch = |number: usize| {
        let url = format!("https://host-{number}.blocked.example/");
        client.call("fetch", &json!({ "url": url }))["error"]["data"]["reason"].clone()
    };
    assert_eq!(fetch(0), Value::Null, "one attempt is no anomaly");
    let mut number = 0;
    testing::wait_until("the session to be quarantined", || {
        number += 1;
        fetch(number) == "session_quarantined"
    });
    assert!(number >= 5, "{number}");
    client.end().exits(0);
    let events = ledger_events(&bench, "incident.anomaly");
    assert_eq!(events[0]["data"]["signal"], "egress_blocks", "{events:?}");
    bench.run(["incident", "status"]).exits(0).says("more than 5/hour egress_blocks");
}

/// The ledger's events with this name.
fn ledger_events(bench: &Bench, name: &str) -> Vec<Value> {
    let listed = bench.run(["receipts", "list", "-n", "100000", "--json"]).exits(0);
    let lines = listed.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["record"] == "event" && line["name"] == name).collect()
}

#[test]
fn a_server_that_cannot_be_confined_as_asked_does_not_start() {
    let bench = Bench::new();
    let refused = |options: &[&str], launch: &[&str], expected: &str| {
        let mut command = bench.command(["run", "--server", ID]);
        let answer = answer({
            command.args(options).arg("--").args(launch);
            command
        });
        assert!(answer.code != Some(0), "{launch:?}");
        answer.says(expected);
    };
    refused(
        &["--sandbox"],
        &["npx", "github:a/b"],
        "`github:a/b` is not the name of a registry package",
    );
    refused(&["--sandbox"], &["npx", "-c", "server"], "start its program");
    refused(&["--sandbox"], &["ssh", "host", "server"], "cannot confine");
    refused(
        &["--sandbox"],
        &["docker", "run", "--privileged", "image"],
        "`--privileged` gives the container",
    );
    refused(
        &["--sandbox", "workspace", "--workspace", "/"],
        &["/bin/cat"],
        "it is the whole file system",
    );
    bench.configure("[sandbox]\nrequired = true\n");
    refused(&[], &["docker", "run", "-i", "image"], "`docker` confines it");
}

#[test]
fn a_server_that_was_confined_is_confined_when_it_is_looked_at_again() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    let (folder, launch) = boxed(&bench);
    let work = folder.to_str().unwrap();
    lists_tools(&bench, ID, &["--sandbox", "workspace", "--workspace", work], &launch)
        .end()
        .exits(0);
    let before = last_start(&bench);
    bench.run(["check", ID]).exits(0);
    let after = last_start(&bench);
    assert_eq!(after["level"], "full");
    assert!(after["at_ms"].as_i64() > before["at_ms"].as_i64(), "{before} {after}");
    // An unreadable record must not lead to starting the server unconfined.
    let path = bench.home().join("sandbox/servers").join(format!("{ID}.json"));
    let record = fs::read(&path).unwrap();
    fs::write(&path, &record[..record.len() - 1]).unwrap();
    bench.run(["check", ID]).exits(2).says("how `reports` was confined cannot be read");
    fs::write(&path, &record).unwrap();
    // A later start without a sandbox applies to later checks.
    lists_tools(&bench, ID, &[], &launch).end().exits(0);
    bench.run(["check", ID]).exits(0);
    assert_eq!(last_start(&bench)["level"], "none");
}

fn last_start(bench: &Bench) -> Value {
    let path = bench.home().join("sandbox/servers").join(format!("{ID}.json"));
    let record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    record["started"].clone()
}

#[test]
fn the_sandbox_command_says_what_was_denied_and_passes_the_exit_code_on() {
    let bench = Bench::new();
    if !can_confine(&bench) {
        return;
    }
    let secret = bench.file("secret", "s3cret");
    let script = format!("cat {} ; echo done; exit 7", secret.display());
    let tried = |options: &[&str]| {
        let mut command = bench.command(["sandbox"]);
        command.args(options).args(["--", "sh", "-c", &script]);
        answer(command)
    };
    let plain = tried(&[]).exits(7);
    plain.says("done").never_says("s3cret");
    let explained = tried(&["--explain"]).exits(7);
    let line = format!("read = [\"{}\"", secret.display());
    explained.says("denied:").says(&line);
    tried(&["--read", secret.to_str().unwrap()]).exits(7).says("s3cret");
    // The output may go to a file, which the program does not see as a file.
    let mut command = bench.command(["sandbox"]);
    command.args(["--", "sh", "-c", "echo kept; test -f /proc/self/fd/1 || echo no file"]);
    let path = bench.path("output");
    assert!(command.stdout(fs::File::create(&path).unwrap()).status().unwrap().success());
    assert_eq!(fs::read_to_string(path).unwrap(), "kept\nno file\n");
    let document = tried(&["--explain", "--json"]).exits(7).json();
    assert_eq!((&document["level"], &document["exit_code"]), (&json!("full"), &json!(7)));
}
