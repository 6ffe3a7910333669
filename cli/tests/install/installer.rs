//! `install.sh`: installs a release that matches its checksums and signature, with consent, and no
//! other.

use crate::bench::*;
use crate::station::*;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ARCHIVE: &str = "holdpoint-0.0.0-x86_64-unknown-linux-test.tar.gz";

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../install.sh")
}

/// Runs a program, which must succeed.
#[track_caller]
fn does(program: &str, words: &[&str], folder: &Path) {
    let output = Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A release in a folder: the archive with a program, the checksums, the installer.
fn release(station: &Station, program: &str) -> PathBuf {
    let folder = station.bench.path("release");
    let packed = folder.join("holdpoint-0.0.0");
    fs::create_dir_all(&packed).unwrap();
    fs::copy(program, packed.join("holdpoint")).unwrap();
    // A debug binary is large, so use fast compression.
    does("tar", &["-I", "gzip -1", "-cf", ARCHIVE, "holdpoint-0.0.0"], &folder);
    fs::remove_dir_all(packed).unwrap();
    fs::copy(source(), folder.join("install.sh")).unwrap();
    sums(&folder);
    folder
}

fn sums(folder: &Path) {
    does("sh", &["-c", &format!("sha256sum {ARCHIVE} > SHA256SUMS")], folder);
}

/// Signs the checksums, and puts the public key into the installer.
fn sign(folder: &Path) {
    does("openssl", &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"], folder);
    does("openssl", &["pkey", "-in", "key.pem", "-pubout", "-out", "public.pem"], folder);
    let words = [
        "pkeyutl",
        "-sign",
        "-rawin",
        "-inkey",
        "key.pem",
        "-in",
        "SHA256SUMS",
        "-out",
        "SHA256SUMS.sig",
    ];
    does("openssl", &words, folder);
    let key = fs::read_to_string(folder.join("public.pem")).unwrap();
    let script = fs::read_to_string(folder.join("install.sh")).unwrap();
    let signed = script.replace("release_key=''", &format!("release_key='{}'", key.trim_end()));
    assert_ne!(script, signed);
    fs::write(folder.join("install.sh"), signed).unwrap();
}

/// Runs the installer without a terminal.
fn install(station: &Station, folder: &Path, words: &[&str]) -> Answer {
    answer(installer(station, folder, words))
}

fn installer(station: &Station, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command.args(["--wait", "sh"]).arg(folder.join("install.sh")).args(words);
    station.surround(&mut command);
    command.env_remove("HOLDPOINT_HOME").env("HOME", station.user());
    command.env("HOLDPOINT_ARCHIVE", folder.join(ARCHIVE)).stdin(Stdio::null());
    command
}

fn installed(station: &Station) -> PathBuf {
    station.bench.path(".local/bin/holdpoint")
}

/// A user with one server, and a release of this program.
fn with_a_server() -> (Station, PathBuf) {
    let station = Station::new();
    station.cursor(&json!({ "time": server() }));
    let folder = release(&station, binary());
    (station, folder)
}

/// The same with a release of a program that must never be installed.
fn with_something_else() -> (Station, PathBuf) {
    let station = Station::new();
    station.cursor(&json!({ "time": server() }));
    station.program("stand-in", "#!/bin/sh\necho stand-in\n");
    let program = station.bench.path("bin/stand-in");
    let folder = release(&station, program.to_str().unwrap());
    (station, folder)
}

#[test]
fn it_installs_guards_and_watches_with_consent() {
    let (station, folder) = with_a_server();
    let before = fs::read_to_string(station.cursor_path()).unwrap();
    install(&station, &folder, &["--yes"])
        .exits(0)
        .says("is what SHA256SUMS says")
        .says("holdpoint demo");
    assert_eq!(station.command_of("time"), installed(&station).to_str().unwrap());
    #[cfg(target_os = "linux")]
    assert!(fs::read_to_string(station.unit()).unwrap().contains("--auto"));
    // Installing again is an update, and changes nothing for the host.
    let wired = fs::read_to_string(station.cursor_path()).unwrap();
    install(&station, &folder, &["--yes"]).exits(0);
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), wired);
    let mut leave = Command::new(installed(&station));
    leave.args(["uninstall", "--yes"]).stdin(Stdio::null()).current_dir(station.user());
    station.surround(&mut leave);
    leave.env_remove("HOLDPOINT_HOME").env("HOME", station.user());
    answer(leave).exits(0);
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), before);
    assert!(!installed(&station).exists() && !station.unit().exists());
}

#[test]
fn a_dry_run_and_no_consent_change_nothing() {
    let (station, folder) = with_a_server();
    let before = fs::read_to_string(station.cursor_path()).unwrap();
    let place = installed(&station);
    let dry = install(&station, &folder, &["--dry-run"]).exits(0);
    dry.says("would install").says("time").says(place.to_str().unwrap());
    install(&station, &folder, &[]).exits(1).says("no terminal to ask at");
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), before);
    assert!(!place.exists() && !station.bench.path(".holdpoint").exists());
    assert!(!station.unit().exists());
}

#[test]
fn it_takes_three_options_and_no_others() {
    let (station, folder) = with_something_else();
    let help = install(&station, &folder, &["--help"]).exits(0).out;
    for option in ["--yes", "--dry-run", "--help", "HOLDPOINT_ARCHIVE"] {
        assert!(help.contains(option), "{help}");
    }
    for wrong in ["--force", "-y", "--proxy-only", "x"] {
        install(&station, &folder, &["--yes", wrong]).exits(2).says("unknown option");
    }
    assert!(!installed(&station).exists());
}

#[test]
fn an_archive_that_is_not_what_its_sum_says_is_refused() {
    let (station, folder) = with_something_else();
    let mut bytes = fs::read(folder.join(ARCHIVE)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.join(ARCHIVE), bytes).unwrap();
    install(&station, &folder, &["--yes"]).exits(1).says("is not what SHA256SUMS says");
    fs::write(folder.join("SHA256SUMS"), "").unwrap();
    install(&station, &folder, &["--yes"]).exits(1).says("does not name");
    fs::remove_file(folder.join("SHA256SUMS")).unwrap();
    install(&station, &folder, &["--yes"]).exits(1).says("cannot be checked");
    assert!(!installed(&station).exists());
}

#[test]
fn a_signed_release_is_installed_and_one_with_another_signature_is_not() {
    let (station, folder) = with_something_else();
    sign(&folder);
    install(&station, &folder, &["--dry-run"]).exits(0).says("is signed with the release key");
    // New checksums for a different archive, which the owner of the key did not sign.
    fs::write(folder.join("note"), "").unwrap();
    does("tar", &["-czf", ARCHIVE, "note"], &folder);
    sums(&folder);
    install(&station, &folder, &["--yes"]).exits(1).says("not signed with the release key");
    fs::remove_file(folder.join("SHA256SUMS.sig")).unwrap();
    install(&station, &folder, &["--yes"]).exits(1).says("signed releases only");
    assert!(!installed(&station).exists());
}

#[test]
fn a_signature_that_cannot_be_checked_is_no_signature() {
    let (station, folder) = with_something_else();
    sign(&folder);
    station.program("openssl", "#!/bin/sh\necho LibreSSL\n");
    install(&station, &folder, &["--yes"]).exits(1).says("HOLDPOINT_SKIP_SIGNATURE=1");
    assert!(!installed(&station).exists());
    let mut command = installer(&station, &folder, &["--dry-run"]);
    command.env("HOLDPOINT_SKIP_SIGNATURE", "1");
    answer(command).exits(0).says("not checked: the signature");
}

#[test]
fn root_is_refused_and_a_user_is_not() {
    let (station, folder) = with_something_else();
    let mut command = installer(&station, &folder, &["--dry-run"]);
    command.env_remove("HOLDPOINT_ALLOW_ROOT");
    if rustix::process::getuid().is_root() {
        answer(command).exits(1).says("not as root");
    } else {
        answer(command).exits(0);
    }
}

/// An interrupted download must not run half of the script.
#[test]
fn a_script_that_was_cut_off_does_nothing() {
    let (station, folder) = with_something_else();
    let script = fs::read_to_string(folder.join("install.sh")).unwrap();
    let lines: Vec<&str> = script.lines().collect();
    for end in [lines.len() / 2, lines.len() - 30, lines.len() - 2, lines.len() - 1] {
        fs::write(folder.join("install.sh"), lines[..end].join("\n")).unwrap();
        let answer = install(&station, &folder, &["--yes"]);
        assert!(!installed(&station).exists() && answer.out.is_empty(), "{end}: {}", answer.out);
    }
}

#[test]
fn only_https_is_fetched() {
    let (station, folder) = with_something_else();
    let mut command = Command::new("sh");
    command.arg(folder.join("install.sh")).arg("--yes").stdin(Stdio::null());
    station.surround(&mut command);
    command.env("HOLDPOINT_ARCHIVE", "http://127.0.0.1:9/x.tar.gz").env("HOME", station.user());
    answer(command).exits(1).says("only https");
}

/// From nothing to a held call, as a new user would go.
#[test]
fn a_call_is_held_within_the_first_minute() {
    let station = Station::new();
    let folder = release(&station, binary());
    // The archive is found next to the script, under the name of this system.
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin",
        _ => "unknown-linux-test",
    };
    let name = format!("holdpoint-0.0.0-{}-{system}.tar.gz", std::env::consts::ARCH);
    let _ = fs::rename(folder.join(ARCHIVE), folder.join(&name));
    does("sh", &["-c", &format!("sha256sum {name} > SHA256SUMS")], &folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/first-minute");
    let mut command = Command::new(script);
    command.arg(&folder).stdin(Stdio::null());
    station.surround(&mut command);
    answer(command).exits(0).says("caught a silent change").says("byte for byte");
}
