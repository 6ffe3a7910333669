//! What tests of several crates share: waiting with a deadline for what another thread or process does, and finding what a
//! machine may lack (PostgreSQL, captures of real servers, `/proc`). For tests only: no crate uses it otherwise.
#![forbid(unsafe_code)]
#![allow(
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking and report what they did not run"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a test waits before it fails. It passes much sooner; a busy machine may need this long.
pub const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Looks until there is something to return; fails after [`PATIENCE`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Waits until this is true; fails after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    wait_for(what, || is_true().then_some(()));
}

/// How long this work keeps a processor busy, so that what else the machine does is not counted.
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

/// For a test that cannot run here: fails with `CI=true`, and otherwise reports it. The caller returns early.
#[track_caller]
pub fn not_run(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "with CI=true every test runs: {why}");
    eprintln!("NOT RUN: {why}");
}

/// The PostgreSQL that `scripts/with-postgres` started for the tests.
#[track_caller]
pub fn postgres_url() -> Option<String> {
    variable("HOLDPOINT_TEST_POSTGRES", "run the tests by ./scripts/with-postgres")
}

/// The folder with captures of real servers, `<registry>/<package>/<version>.json`.
#[track_caller]
pub fn corpus() -> Option<PathBuf> {
    variable("HOLDPOINT_CORPUS", "it names a folder with captures of real servers")
        .map(PathBuf::from)
}

#[track_caller]
fn variable(name: &str, how: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    if value.is_none() {
        not_run(&format!("`{name}` is not set ({how})"));
    }
    value
}

#[track_caller]
fn process_file(process: u32, name: &str) -> Option<String> {
    let path = format!("/proc/{process}/{name}");
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() && !std::path::Path::new("/proc/self").exists() {
        not_run("this system has no `/proc`");
    }
    text
}

/// Whether a process has ended and its parent has not waited for it yet.
#[track_caller]
pub fn is_zombie(process: u32) -> bool {
    // A program's name may have any character in it, `)` too.
    let stat = process_file(process, "stat");
    stat.is_some_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// The most memory that a process ever had, in KiB. `None` where there is no `/proc`.
#[track_caller]
pub fn peak_kib(process: u32) -> Option<u64> {
    let status = process_file(process, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
}
