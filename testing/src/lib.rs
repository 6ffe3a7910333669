//! Shared by the tests of several crates: waiting with a deadline for other threads and processes,
//! random numbers, and finding what a machine may lack (PostgreSQL, real servers, captures of them,
//! `/proc`). Only for tests and measurements.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests fail by panicking and report what they did not run"
)]

mod http_service;
mod random;
mod servers;
#[cfg(target_os = "linux")]
pub mod watched;

pub use http_service::{HttpAnswer, HttpRequest, HttpService};
pub use random::Random;
pub use servers::{ListeningServer, newest_release, releases, servers_folder};

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a test waits before it fails. Usually much less is needed; a busy machine may need this
/// long.
pub const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Polls until `look` returns a value; panics after [`PATIENCE`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Waits until a condition is true; panics after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    wait_for(what, || is_true().then_some(()));
}

/// The processor time that this work takes, not counting other activity on the machine.
pub fn processor_time(work: impl FnOnce()) -> Duration {
    let begun = thread_time();
    work();
    thread_time().saturating_sub(begun)
}

#[cfg(unix)]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(unix))]
fn thread_time() -> Duration {
    static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

/// Reports a test that cannot run here: panics with `CI=true`, otherwise prints the reason. The
/// caller returns early.
#[track_caller]
pub fn not_run(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "with CI=true every test runs: {why}");
    eprintln!("NOT RUN: {why}");
}

/// The PostgreSQL server that `scripts/with-postgres` started for the tests.
#[track_caller]
pub fn postgres_url() -> Option<String> {
    variable("HOLDPOINT_TEST_POSTGRES", "run the tests by ./scripts/with-postgres")
}

/// The folder with captures of real servers: `<registry>/<package>/<version>.json`.
#[track_caller]
pub fn corpus() -> Option<PathBuf> {
    let root = variable("HOLDPOINT_CORPUS", "it names a folder with captures of real servers")
        .map(PathBuf::from)?;
    let is_empty = std::fs::read_dir(&root).map_or(true, |mut entries| entries.next().is_none());
    assert!(!is_empty, "`HOLDPOINT_CORPUS` names a folder without captures: {}", root.display());
    Some(root)
}

/// The value of an environment variable that a test needs; reports how to set it if it is missing.
#[track_caller]
pub fn variable(name: &str, how: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    if value.is_none() {
        not_run(&format!("`{name}` is not set ({how})"));
    }
    value
}

/// Whether `/proc` can be read.
#[track_caller]
fn has_proc() -> bool {
    let has_proc = std::path::Path::new("/proc/self").exists();
    if !has_proc {
        not_run("this system has no `/proc`");
    }
    has_proc
}

/// Whether a process has ended but was not yet waited for by its parent.
#[track_caller]
pub fn is_zombie(process: u32) -> bool {
    let stat = has_proc().then(|| std::fs::read_to_string(format!("/proc/{process}/stat")).ok());
    // A program's name may contain any character, including `)`.
    let state = stat.flatten().and_then(|stat| stat.rsplit(") ").next()?.chars().next());
    state == Some('Z')
}

/// Checks that a running process has never used more memory than this.
#[track_caller]
pub fn assert_peak_memory(process: u32, max_kib: u64) {
    if !has_proc() {
        return;
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    assert!(peak.is_some_and(|peak| peak < max_kib), "{peak:?} KiB of at most {max_kib}");
}

/// Compares a text with a golden file; with `UPDATE_GOLDEN=1`, writes the golden file.
#[track_caller]
pub fn check_golden(path: impl AsRef<std::path::Path>, text: &str) {
    let path = path.as_ref();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let name = path.display();
    assert_eq!(golden, text, "{name}: if the change is meant, refresh it with UPDATE_GOLDEN=1");
}
