//! Runs a program confined, forwards its output, and then prints each event on a separate line.

use sandbox::{Confined, Embedder, Event, Launch, Profile, Reach};
use serde::Deserialize;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A test's request, besides the profile.
#[derive(Debug, Deserialize)]
struct Asked {
    profile: Profile,
    #[serde(default)]
    never_visible: Vec<PathBuf>,
    #[serde(default)]
    environment: Vec<(String, String)>,
    #[serde(default)]
    egress_closed: bool,
    /// A path to replace with a link to the second path between preparing and starting.
    #[serde(default)]
    swap: Option<(PathBuf, PathBuf)>,
    #[serde(default)]
    stderr: Option<PathBuf>,
    /// The program's input.
    #[serde(default)]
    input: String,
}

/// An address table sufficient for tests on loopback.
fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) if address.is_loopback() => Reach::NeedsPermission,
        IpAddr::V4(address) if address.is_link_local() => Reach::Refused,
        _ => Reach::Allowed,
    }
}

pub(crate) fn drive(asked: &str, words: &[&str]) -> ExitCode {
    let asked: Asked = serde_json::from_str(asked).expect("a profile");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = {
        let seen = seen.clone();
        Arc::new(move |event: Event| seen.lock().unwrap().push(event))
    };
    let switch = sandbox::EgressSwitch::default();
    if asked.egress_closed {
        switch.close();
    }
    let helper = std::env::current_exe().unwrap();
    let never_visible = asked.never_visible;
    let embedder = Embedder { helper: helper.clone(), never_visible, reach, events, switch };
    let [program, arguments @ ..] = words else { return ExitCode::FAILURE };
    let program = if *program == "probe" { helper.into_os_string() } else { program.into() };
    let launch = Launch {
        program,
        arguments: arguments.iter().map(Into::into).collect(),
        environment: asked.environment.iter().map(|(n, v)| (n.into(), v.into())).collect(),
        directory: None,
    };
    let Confined { mut command, watch } = match sandbox::confine(&asked.profile, &launch, &embedder)
    {
        Ok(confined) => confined,
        Err(refusal) => {
            println!("not started: {refusal}");
            return ExitCode::from(3);
        }
    };
    if let Some((path, other)) = asked.swap {
        std::fs::rename(&path, path.with_extension("moved")).unwrap();
        std::os::unix::fs::symlink(other, path).unwrap();
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    match &asked.stderr {
        Some(path) => command.stderr(std::fs::File::create(path).unwrap()),
        None => command.stderr(Stdio::piped()),
    };
    let mut child = command.spawn().unwrap();
    drop(command);
    let input = asked.input.into_bytes();
    let mut stdin = child.stdin.take().unwrap();
    let fed = std::thread::spawn(move || stdin.write_all(&input));
    let mut stderr = child.stderr.take();
    let mut stdout = child.stdout.take().unwrap();
    let mut output = Vec::new();
    stdout.read_to_end(&mut output).unwrap();
    let mut errors = Vec::new();
    if let Some(stderr) = &mut stderr {
        stderr.read_to_end(&mut errors).unwrap();
    }
    let status = child.wait().unwrap();
    let _ = fed.join();
    if let Err(refusal) = watch.ready(Duration::from_secs(5)) {
        println!("not started: {refusal}");
    }
    // All reports of the helper are read before its socket closes.
    drop(watch);
    std::io::stdout().write_all(&output).unwrap();
    std::io::stdout().write_all(&errors).unwrap();
    println!("exit {}", status.code().unwrap_or(-1));
    for event in seen.lock().unwrap().iter() {
        println!("event {event:?}");
    }
    ExitCode::SUCCESS
}
