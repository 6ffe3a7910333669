//! How confined programs end: on request, or with the process that started them, and always
//! completely.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use sandbox::{Confined, Embedder, Event, Launch, Level, Profile, Reach};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sandbox-probe"))
}

fn embedder() -> (Embedder, mpsc::Receiver<Event>) {
    let (sender, events) = mpsc::channel();
    let embedder = Embedder {
        helper: helper(),
        never_visible: Vec::new(),
        reach: |_| Reach::Allowed,
        events: std::sync::Arc::new(move |event| drop(sender.send(event))),
        switch: sandbox::EgressSwitch::default(),
    };
    (embedder, events)
}

/// Starts a shell script confined.
fn start(script: &str) -> (Child, sandbox::Watch, mpsc::Receiver<Event>) {
    let (embedder, events) = embedder();
    let launch = Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        ..Launch::default()
    };
    let Confined { mut command, watch } =
        sandbox::confine(&Profile::default(), &launch, &embedder).unwrap();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    assert_eq!(watch.ready(PATIENCE).unwrap(), Level::Full);
    (child, watch, events)
}

#[test]
fn a_signal_reaches_the_program() {
    let (mut child, _watch, _) =
        start("trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.05; done");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "asked\n");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn killing_the_child_ends_everything_that_the_program_started() {
    let (mut child, _watch, _) =
        start("setsid sh -c 'sleep 600' & setsid sh -c 'sleep 600' & wait");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    // The pipe closes when the last process that holds it has ended.
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
}

#[test]
fn dropping_the_watch_ends_the_program() {
    let (mut child, watch, _) = start("setsid sh -c 'sleep 600' & sleep 600");
    drop(watch);
    assert_eq!(child.wait().unwrap().code(), Some(125));
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    let (mut child, _watch, events) = start("setsid sh -c 'sleep 600' & exit 3");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Ended { code: 3 });
}

#[test]
fn a_program_whose_embedder_was_killed_ends() {
    let asked = r#"{"profile":{}}"#;
    let mut driver = Command::new(helper())
        .args(["drive", asked, "/bin/sh", "-c", "echo begun >&2; sleep 600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The driver's only child is the helper.
    let children = format!("/proc/{0}/task/{0}/children", driver.id());
    let until = std::time::Instant::now() + PATIENCE;
    let helper = loop {
        let text = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(helper) = text.split_whitespace().next() {
            break helper.to_owned();
        }
        assert!(std::time::Instant::now() < until, "no helper");
        std::thread::yield_now();
    };
    let helper = rustix::process::Pid::from_raw(helper.parse().unwrap()).unwrap();
    let helper = rustix::process::pidfd_open(helper, rustix::process::PidfdFlags::empty()).unwrap();
    driver.kill().unwrap();
    driver.wait().unwrap();
    let mut waiting = [rustix::event::PollFd::new(&helper, rustix::event::PollFlags::IN)];
    let patience = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut waiting, Some(&patience)).unwrap(), 1);
}

#[test]
fn a_program_that_cannot_be_started_is_told() {
    let (embedder, events) = embedder();
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch {
        program: "/bin/true".into(),
        directory: Some(folder.path().to_owned()),
        ..Launch::default()
    };
    let Confined { mut command, watch } =
        sandbox::confine(&Profile::default(), &launch, &embedder).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let refusal = watch.ready(PATIENCE).unwrap_err().to_string();
    assert!(refusal.contains("the folder"), "{refusal}");
    assert_eq!(child.wait().unwrap().code(), Some(125));
    assert!(matches!(events.recv_timeout(PATIENCE).unwrap(), Event::Failed(_)));
}

#[test]
fn the_system_is_tried_and_told() {
    let support = sandbox::support(&helper());
    // A machine without user namespaces still gets a valid result.
    assert_eq!(support.level == Level::Full, support.namespaces.is_none(), "{support:?}");
    let broken = sandbox::support(std::path::Path::new("/nonexistent"));
    assert_eq!(broken.level, Level::None);
    assert!(broken.namespaces.is_some());
}

/// Without user namespaces, a profile that accepts their absence gets a lower level, and any other
/// is refused.
#[test]
fn without_namespaces_the_level_is_partial_or_nothing_starts() {
    // An outer namespace in which no further user namespace can be created.
    let run = |minimum: &str, act: &[&str]| {
        let asked = format!(r#"{{"profile":{{"minimum":"{minimum}"}}}}"#);
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        let output = Command::new("unshare")
            .args(["--map-root-user", "--mount-proc", "--pid", "--fork", "sh", "-c", script, "sh"])
            .arg(helper())
            .args(["drive", &asked])
            .args(act)
            .output()
            .unwrap();
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let full = run("full", &["/bin/sh", "-c", "echo begun"]);
    assert!(full.contains("not started") && !full.contains("begun\n"), "{full}");
    let partial =
        run("partial", &["/bin/sh", "-c", "echo begun; cat /etc/shadow; cat /etc/passwd"]);
    assert!(partial.contains("begun"), "{partial}");
    assert!(partial.contains("/etc/shadow: Permission denied"), "{partial}");
    // The system's temporary folder is not the program's.
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("secret");
    std::fs::write(&outside, "s3cret").unwrap();
    let script = format!(
        "cat {0}; echo x > {0}; echo x > /dev/shm/holdpoint-partial; echo ended",
        outside.display()
    );
    let partial = run("partial", &["/bin/sh", "-c", &script]);
    assert!(partial.contains("ended") && !partial.contains("s3cret"), "{partial}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "s3cret");
    assert!(!std::path::Path::new("/dev/shm/holdpoint-partial").exists());
}
