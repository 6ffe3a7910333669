//! The program as installed by package managers: what hosts are told to start, and the packages
//! themselves.

use crate::bench::*;
use crate::station::*;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NPX: &str = ".npm/_npx/8a45/node_modules/@holdpoint/linux-x64/bin";
const UVX: &str = ".cache/uv/archive-v0/9Nqr/bin";

/// Copies this program into a folder of the user's home.
fn placed(station: &Station, folder: &str) -> PathBuf {
    let folder = station.bench.path(folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("holdpoint");
    if fs::hard_link(binary(), &path).is_err() {
        fs::copy(binary(), &path).unwrap();
    }
    path
}

fn run(station: &Station, program: &Path, words: &[&str]) -> Answer {
    let mut command = Command::new(program);
    let as_usual = station.command(words);
    for (name, value) in as_usual.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(as_usual.get_args()).current_dir(station.user());
    answer(command)
}

fn installed(station: &Station) -> PathBuf {
    station.bench.path(".local/bin/holdpoint")
}

#[test]
fn a_program_that_a_package_manager_fetched_is_copied_and_the_copy_is_named() {
    for folder in [NPX, UVX, "app/node_modules/@holdpoint/linux-x64/bin"] {
        let station = Station::new();
        station.cursor(&json!({ "time": server() }));
        let fetched = placed(&station, folder);
        let copy = installed(&station);
        let plan = run(&station, &fetched, &["wire", "--dry-run"]);
        plan.exits(0).says(copy.to_str().unwrap()).never_says(folder);
        assert!(!copy.exists(), "a plan writes nothing");
        run(&station, &fetched, &["wire", "--yes"])
            .exits(0)
            .says("copied to ~/.local/bin/holdpoint");
        assert_eq!(station.command_of("time"), copy.to_str().unwrap());
        assert_eq!(fs::metadata(&copy).unwrap().len(), fs::metadata(binary()).unwrap().len());
        run(&station, &copy, &["--version"]).exits(0);
        // The launcher that a package manager puts first in `PATH` does not count as a different
        // program.
        station.program("holdpoint", "#!/bin/sh\n");
        let report = run(&station, &fetched, &["doctor", "--json"]).exits(0).json();
        let codes = report["findings"].as_array().unwrap().iter().map(|one| &one["code"]);
        assert_eq!(codes.filter(|code| *code == "program_found").count(), 1, "{report:#}");
        let left = fs::read_dir(copy.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "nothing else is left there");
        // Unwiring works as for any other entry.
        run(&station, &fetched, &["unwire", "--yes"]).exits(0);
        assert_eq!(station.command_of("time"), "uvx");
    }
}

#[test]
fn a_program_that_stays_is_named_where_it_is() {
    let station = Station::new();
    station.cursor(&json!({ "time": server() }));
    let own = placed(&station, "tools");
    run(&station, &own, &["wire", "--yes"]).exits(0).never_says("copied");
    assert_eq!(station.command_of("time"), own.to_str().unwrap());
    assert!(!installed(&station).exists());
}

#[test]
fn only_a_newer_version_replaces_the_copy() {
    for (there, is_replaced) in [("0.0.1", true), ("999.0.0", false)] {
        let station = Station::new();
        station.cursor(&json!({ "time": server() }));
        let (fetched, copy) = (placed(&station, NPX), installed(&station));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(&copy, format!("\0holdpoint release <{there}>\0")).unwrap();
        let before = fs::read(&copy).unwrap();
        run(&station, &fetched, &["wire", "--yes"]).exits(0);
        assert_eq!(station.command_of("time"), copy.to_str().unwrap());
        assert_eq!(fs::read(&copy).unwrap() != before, is_replaced, "{there}");
    }
}

#[test]
fn another_program_or_a_link_is_never_replaced() {
    let station = Station::new();
    station.cursor(&json!({ "time": server() }));
    let (fetched, copy) = (placed(&station, NPX), installed(&station));
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::write(&copy, "#!/bin/sh\n").unwrap();
    run(&station, &fetched, &["wire", "--yes"]).exits(2).says("is another program");
    fs::remove_file(&copy).unwrap();
    let managed = station.bench.path("managed");
    fs::write(&managed, "holdpoint release <0.0.1>").unwrap();
    std::os::unix::fs::symlink(&managed, &copy).unwrap();
    run(&station, &fetched, &["wire", "--yes"]).exits(2).says("uv tool upgrade");
    assert_eq!(station.command_of("time"), "uvx", "nothing was wired");
    assert_eq!(fs::read(&managed).unwrap(), b"holdpoint release <0.0.1>");
}

#[test]
fn doctor_names_entries_whose_program_is_fetched_or_may_be_deleted() {
    let station = Station::new();
    let fetched = placed(&station, NPX);
    let by_npx = json!({
        "command": "npx",
        "args": ["-y", "holdpoint", "run", "--server=a.time", "--", "uvx", "mcp-server-time"],
    });
    station.cursor(&json!({
        "cached": guarded_server("a.cached", fetched.to_str().unwrap()),
        "fetched": by_npx,
    }));
    let report = station.run(&["doctor", "--json"]).json();
    let codes: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["code"].as_str())
        .collect();
    for code in ["command_cached", "command_fetched"] {
        assert!(codes.contains(&code), "{code}: {report:#}");
    }
    assert!(!codes.contains(&"host_unwired") && !codes.contains(&"command_other"), "{report:#}");
    // None of the entries is wrapped again.
    station.run(&["wire", "--yes"]).exits(0).says("nothing to wire");
    // The command that `doctor` suggests makes both entries use an installed program.
    let fix = ["--server", "cached", "--server", "fetched", "--yes"];
    station.run(&[&["unwire"][..], &fix].concat()).exits(0);
    station.run(&[&["wire"][..], &fix].concat()).exits(0);
    assert!(station.is_guarded("cached") && station.is_guarded("fetched"));
}

/// Packages of a program that prints its arguments.
fn packages(station: &Station) -> PathBuf {
    station.program("stand-in", "#!/bin/sh\necho \"stand-in $*\"\nexit 7\n");
    let out = station.bench.path("packages");
    fs::create_dir_all(&out).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new(root.join("scripts/registry-packages"));
    command.current_dir(root).arg(station.bench.path("bin/stand-in"));
    command.args(["x86_64-unknown-linux-musl", "0.1.0"]).arg(&out);
    answer(command).exits(0);
    out
}

/// A command with nothing from this account except the paths of programs.
fn in_clean_account(station: &Station, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", station.bench.path("account"));
    command.env("PATH", std::env::var("PATH").unwrap()).current_dir(station.user());
    fs::create_dir_all(station.bench.path("account")).unwrap();
    command
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn npx_starts_the_program_from_local_packages() {
    let station = Station::new();
    let out = packages(&station);
    if Command::new("npx").arg("--version").output().is_err() {
        return testing::not_run("npm is not there");
    }
    let mut command = in_clean_account(&station, Path::new("npx"));
    command.args(["--offline", "-y", "-p"]).arg(out.join("holdpoint-linux-x64-0.1.0.tgz"));
    command.arg("-p").arg(out.join("holdpoint-0.1.0.tgz")).args(["holdpoint", "run", "--", "x"]);
    answer(command).exits(7).says("stand-in run -- x");
    // Without the platform's package, the launcher reports it and starts nothing.
    let mut alone = in_clean_account(&station, Path::new("npx"));
    alone.args(["--offline", "-y", "-p"]).arg(out.join("holdpoint-0.1.0.tgz")).arg("holdpoint");
    answer(alone).exits(12).says("@holdpoint/linux-x64 is not installed");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn uvx_starts_the_program_from_a_local_wheel() {
    let station = Station::new();
    let out = packages(&station);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/installers/bin/uvx");
    let uvx = if own.exists() { own } else { PathBuf::from("uvx") };
    if Command::new(&uvx).arg("--version").output().is_err() {
        return testing::not_run("uv is not there");
    }
    let mut wheels = fs::read_dir(&out).unwrap().map(|file| file.unwrap().path());
    let wheel = wheels.find(|path| path.extension().is_some_and(|end| end == "whl"));
    let mut command = in_clean_account(&station, &uvx);
    command.args(["--offline", "--from"]).arg(wheel.unwrap()).args(["holdpoint", "run", "--", "x"]);
    answer(command).exits(7).says("stand-in run -- x");
}

#[test]
fn no_package_runs_anything_when_it_is_installed() {
    let station = Station::new();
    let out = packages(&station);
    for name in ["holdpoint-0.1.0.tgz", "holdpoint-linux-x64-0.1.0.tgz"] {
        let mut command = Command::new("tar");
        command.arg("-xzOf").arg(out.join(name)).arg("package/package.json");
        let manifest = answer(command).exits(0).json();
        assert!(manifest.get("scripts").is_none() && manifest.get("dependencies").is_none());
    }
}
