//! What a confined program can reach on the network, how blocked attempts are reported, and how
//! connections end.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "support/stage.rs"]
mod stage;

use serde_json::{Value, json};
use stage::{Run, Stage, each_user};
use std::io::{Read, Write};
use std::net::TcpListener;

/// A name that every resolver maps to 127.0.0.1 without a query. Programs inside query the sandbox
/// for it.
const NAME: &str = "0x7f000001";

/// A server on loopback that responds to anything.
fn answering() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut question = [0; 1024];
            if stream.read(&mut question).is_ok_and(|read| read > 0) {
                let _ = stream.write_all(b"answer");
            }
        }
    });
    port.to_string()
}

fn allow(stage: &Stage, rules: &[&str], act: &[&str]) -> Run {
    stage.run_with(&json!({ "network": "allowlist", "allow": rules }), act)
}

fn check(run: &Run, is_done: bool, event: &str) {
    assert_eq!(run.is_done(), is_done, "{}", run.text);
    assert!(run.text.contains(event), "no `{event}` in {}", run.text);
}

#[test]
fn an_allowed_host_is_reached_by_its_name_and_nothing_else_is() {
    each_user(|stage| {
        let port = &answering();
        let rule = format!("private:tcp:{NAME}:{port}");
        let told = format!("Connected {{ host: \"{NAME}\", port: {port} }}");
        let run = allow(stage, &[&rule], &["fetch-name", NAME, port, "hello"]);
        check(&run, true, &told);
        assert!(run.text.contains("done answer"), "{}", run.text);
        // Another name, another of its ports, and its real address.
        check(
            &allow(stage, &[&rule], &["fetch-name", "example.com", port, "x"]),
            false,
            "host: \"example.com\", port: None, reason: NotAllowed",
        );
        let other = &answering();
        let told = format!("host: \"{NAME}\", port: Some({other}), reason: NotAllowed");
        check(&allow(stage, &[&rule], &["fetch-name", NAME, other, "x"]), false, &told);
        check(&allow(stage, &[&rule], &["fetch", &format!("127.0.0.1:{other}"), "x"]), false, "");
        let told = format!("host: \"93.184.215.14\", port: Some({port}), reason: NotAllowed");
        check(
            &allow(stage, &[&rule], &["fetch", &format!("93.184.215.14:{port}"), "x"]),
            false,
            &told,
        );
    });
}

#[test]
fn a_name_that_leads_to_a_private_address_needs_permission() {
    each_user(|stage| {
        let port = &answering();
        let run = allow(stage, &[&format!("tcp:{NAME}:{port}")], &["fetch-name", NAME, port, "x"]);
        check(&run, false, "reason: PrivateAddress");
        // No permission suffices for an address that the table refuses.
        let run = allow(stage, &["169.254.169.254:80"], &["fetch", "169.254.169.254:80", "x"]);
        check(&run, false, "reason: PrivateAddress");
        let run =
            allow(stage, &["private:tcp:0xa9fea9fe:80"], &["fetch-name", "0xa9fea9fe", "80", "x"]);
        check(&run, false, "reason: PrivateAddress");
        let run = allow(
            stage,
            &[&format!("127.0.0.1:{port}")],
            &["fetch", &format!("127.0.0.1:{port}"), "x"],
        );
        check(&run, true, "Connected");
    });
}

#[test]
fn the_loopback_of_the_machine_is_reached_by_either_of_its_addresses() {
    each_user(|stage| {
        let port = &answering();
        let fetch = |rule: &str, host: &str| {
            allow(stage, &[&format!("{rule}:{port}")], &["fetch", &format!("{host}:{port}"), "x"])
        };
        check(&fetch("localhost", "127.0.0.1"), true, "Connected");
        check(&fetch("localhost", "[::1]"), true, "Connected");
        check(&fetch("127.0.0.1", "[::1]"), false, "reason: NotAllowed");
        check(&fetch("localhost", "127.0.0.2"), false, "reason: NotAllowed");
    });
}

#[test]
fn a_name_is_reached_by_tls_under_its_own_name_only() {
    each_user(|stage| {
        let port = &answering();
        let rule = format!("private:{NAME}:{port}");
        check(&allow(stage, &[&rule], &["fetch-tls", NAME, port, NAME]), true, "Connected");
        check(
            &allow(stage, &[&rule], &["fetch-tls", NAME, port, "other.example"]),
            false,
            "reason: ServerName",
        );
        check(
            &allow(stage, &[&rule], &["fetch-name", NAME, port, "GET / HTTP/1.1\r\n\r\n"]),
            false,
            "reason: NotTls",
        );
    });
}

#[test]
fn a_wildcard_allows_names_below() {
    each_user(|stage| {
        let rules = ["*.example.com:8443"];
        let run = allow(stage, &rules, &["resolve", "a.example.com"]);
        assert!(run.text.contains("done 198.18."), "{}", run.text);
        check(&allow(stage, &rules, &["resolve", "example.com"]), false, "reason: NotAllowed");
        check(
            &allow(stage, &rules, &["resolve", "a.example.com.evil.org"]),
            false,
            "reason: NotAllowed",
        );
    });
}

#[test]
fn every_attempt_is_told_where_everything_is_blocked() {
    each_user(|stage| {
        let told = |act: &[&str], event: &str| check(&stage.run(act), false, event);
        told(&["connect", "93.184.215.14:443"], "host: \"93.184.215.14\", port: Some(443)");
        told(&["connect", "[2606:2800::1]:443"], "host: \"2606:2800::1\", port: Some(443)");
        told(&["connect", "169.254.169.254:80"], "host: \"169.254.169.254\", port: Some(80)");
        told(&["ask-other-resolver", "8.8.8.8:53"], "host: \"8.8.8.8\", port: Some(53)");
        told(&["resolve", "secret.example.com"], "host: \"secret.example.com\", port: None");
        let sent = stage.run(&["send", "203.0.113.9:4000"]);
        assert!(sent.text.contains("host: \"203.0.113.9\", port: Some(4000)"), "{}", sent.text);
        // The program's loopback is separate.
        let own = stage.run(&["loopback"]);
        assert!(own.is_done() && !own.text.contains("Blocked"), "{}", own.text);
    });
}

#[test]
fn an_incident_closes_all_egress() {
    each_user(|stage| {
        let port = &answering();
        let mut asked = json!({ "profile": { "network": "allowlist", "allow": [format!("private:tcp:{NAME}:{port}")] } });
        let act = ["fetch-name", NAME, port.as_str(), "x"];
        check(&stage.run_asking(asked.clone(), &act), true, "Connected");
        asked["egress_closed"] = Value::Bool(true);
        check(&stage.run_asking(asked, &act), false, "reason: Closed");
    });
}

#[test]
fn what_is_used_is_told_where_it_is_observed() {
    each_user(|stage| {
        let observed = json!({ "observe": true });
        let outside = stage.path("outside/secret");
        let run = stage.run_with(&observed, &["read", &outside]);
        check(
            &run,
            false,
            &format!("Access {{ path: \"{outside}\", kind: Read, outcome: NotThere }}"),
        );
        let file = stage.path("workspace/new");
        let run = stage.run_with(&observed, &["write", &file]);
        check(&run, true, &format!("Access {{ path: \"{file}\", kind: Write, outcome: Allowed }}"));
        let run = stage.run_with(&observed, &["write", "/usr/new"]);
        check(&run, false, "Access { path: \"/usr/new\", kind: Write, outcome: Denied }");
        let run = stage.run_with(&observed, &["unix", "/run/docker.sock"]);
        check(
            &run,
            false,
            "Access { path: \"/run/docker.sock\", kind: Connect, outcome: NotThere }",
        );
        let run = stage.run_with(&observed, &["read", &stage.path("workspace/file")]);
        assert!(run.is_done() && !run.text.contains("kind: Write"), "{}", run.text);
    });
}

#[test]
fn a_write_is_told_however_it_is_made() {
    each_user(|stage| {
        let observed = json!({ "observe": true });
        let file = stage.path("workspace/file");
        let new = stage.path("workspace/new");
        let workspace = stage.path("workspace");
        let told = |act: &[&str], path: &str| {
            let run = stage.run_with(&observed, act);
            let event = format!("Access {{ path: \"{path}\", kind: Write");
            check(&run, true, &event);
        };
        told(&["write-with-odd-flags", &new], &new);
        told(&["write-unreadable", &new], "(unreadable)");
        told(&["write-after-many-names", &new], &new);
        told(&["write-by-link", "/tmp/link", &workspace, "new"], &new);
        told(&["write-by-descriptor", &file], &file);
        told(&["change-open-file", &file], &file);
        told(&["write", "/proc/self/cwd/new"], &new);
        told(&["write", &format!("/tmp/..{new}")], &new);
        // The program's own output is reported as such.
        let run = stage.run_with(&observed, &["write", "/proc/self/fd/1"]);
        assert!(run.text.contains("/fd/pipe:["), "{}", run.text);
    });
}

#[test]
fn a_flood_of_attempts_is_told_of_by_its_number() {
    each_user(|stage| {
        let port = &answering();
        let rule = format!("private:tcp:{NAME}:{port}");
        // Blocked by the helper if no port is listened on, and by the proxy otherwise.
        for (rules, port) in [(vec![], "443"), (vec![rule.as_str()], port.as_str())] {
            let run = allow(stage, &rules, &["connect-many", "600", port]);
            assert!(run.text.contains("done 600"), "{}", run.text);
            let events: Vec<&str> =
                run.text.lines().filter(|line| line.contains("event Blocked")).collect();
            assert!(events.len() <= 64 + 65 + 10, "{} events", events.len());
            let count = |line: &str| {
                let count = line.rsplit("count: ").next().unwrap();
                count.trim_end_matches(" })").parse::<u64>().unwrap()
            };
            // Some attempts may be counted twice: by their packets, of which too many arrived, and
            // as connections.
            let count = events.into_iter().map(count).sum::<u64>();
            assert!((600..=1200).contains(&count), "{count}");
        }
    });
}

/// The address at which clouds provide credentials, in a separate network namespace with a server
/// listening on it: the refused requests would otherwise have succeeded.
#[test]
fn the_proxy_is_no_relay_to_the_metadata_of_a_machine() {
    let probe = env!("CARGO_BIN_EXE_sandbox-probe");
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(hosts.path(), "169.254.169.254 metadata.example\n127.0.0.1 localhost\n")
        .unwrap();
    let script = r#"
        ip link set lo up && ip address add 169.254.169.254/32 dev lo || exit 3
        mount --bind "$HOSTS" /etc/hosts || exit 3
        "$PROBE" serve 169.254.169.254:80 & server=$!
        trap 'kill $server' EXIT
        for _ in $(seq 100); do
            "$PROBE" fetch 169.254.169.254:80 x | grep -q done && break
            sleep 0.05
        done
        allowed='{"profile":{"network":"allowlist","allow":["169.254.169.254:80","private:tcp:metadata.example:80"]}}'
        echo "unconfined $("$PROBE" fetch 169.254.169.254:80 x)"
        echo "by address $("$PROBE" drive "$allowed" probe fetch 169.254.169.254:80 x | tr '\n' ' ')"
        echo "by name $("$PROBE" drive "$allowed" probe fetch-name metadata.example 80 x | tr '\n' ' ')"
        echo "mapped $("$PROBE" drive "$allowed" probe fetch "[::ffff:169.254.169.254]:80" x | tr '\n' ' ')"
    "#;
    let user: &[&str] = match rustix::process::geteuid().is_root() {
        true => &[],
        false => &["--map-current-user", "--keep-caps"],
    };
    let output = std::process::Command::new("unshare")
        .args(user)
        .args(["--net", "--mount", "sh", "-c", script])
        .env("PROBE", probe)
        .env("HOSTS", hosts.path())
        .output();
    let output = output.unwrap();
    if output.status.code() == Some(3) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        assert!(std::env::var_os("CI").is_none(), "CI has `ip`");
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("unconfined done answer"), "{text}");
    for way in ["by address", "by name", "mapped"] {
        let line = text.lines().find(|line| line.starts_with(way)).unwrap();
        assert!(line.contains("refused") && line.contains("reason: PrivateAddress"), "{line}");
        assert!(!line.contains("Connected"), "{line}");
    }
}
