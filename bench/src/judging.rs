//! Runs the gate's steps on a new list one after the other, and times each.

use contract::schema::Additions;
use contract::surface::{Entry, ListKind, Surface, SurfaceReader};
use gate::comparing::Compared;
use gate::first_use::first_use;
use gate::judge::would_hold;
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::Settings;
use gate::server::ServerStatus;
use gate::time::Timestamp;
use gate::unseen::judge_server_again;
use std::sync::Arc;
use std::time::Duration;

/// The processor time of each step in this thread, not counting other activity on the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Reading the new list.
    pub reading: Duration,
    /// Reading the pins of the old list from their texts.
    pub pins: Duration,
    /// Comparing the two, scanning the new one, and computing the verdicts.
    pub judging: Duration,
    /// Judging again, as after an approval.
    pub again: Duration,
    /// Computing what each posture would hold, and the restrictions on calls.
    pub rest: Duration,
    /// Processing the new list if nothing is pinned yet, including reading it.
    pub first_use: Duration,
}

impl Times {
    pub fn total(&self) -> Duration {
        self.reading + self.pins + self.judging + self.again + self.rest
    }
}

/// Judges a list against pins of its old version, as the gate does when a list arrives.
///
/// # Panics If either list cannot be read, or if nothing changed, since then nothing was measured.
pub fn judge(old: &str, new: &str) -> Times {
    let mut times = Times::default();
    let old = read(&Arc::from(old));
    let new: Arc<str> = Arc::from(new);
    let surface = timed(&mut times.reading, || read(&new));
    assert!(old.unreadable().is_empty(), "{:?}", old.unreadable());
    assert!(surface.unreadable().is_empty(), "{:?}", surface.unreadable());
    // Strings that a person approved are not scanned again, which makes some lists slower and
    // others faster: use the slower result.
    for basis in [Basis::FirstUse, Basis::Person] {
        let times_of_basis = judge_against(&old, &surface, basis);
        if times_of_basis.total() + times.reading > times.total() {
            times = Times { reading: times.reading, ..times_of_basis };
        }
    }
    timed(&mut times.first_use, || {
        let surface = read(&new);
        let book = book(first_use(&surface).pins.iter(), Basis::FirstUse);
        let (status, settings) = (ServerStatus::Unbaselined, Settings::default());
        judge_server_again(status, &book, &surface, &settings, 0, &mut Compared::default())
    });
    times
}

fn judge_against(old: &Surface, new: &Surface, basis: Basis) -> Times {
    let mut times = Times::default();
    // Read each pin from its text, as the store does.
    let pinned: Vec<Entry> = timed(&mut times.pins, || {
        let again = |entry: &Entry| Entry::from_raw(entry.id().clone(), entry.raw());
        old.entries().filter_map(|entry| again(entry).ok()).collect()
    });
    let book = book(pinned.iter(), basis);
    let settings = Settings::default();
    let mut compared = Compared::default();
    let mut judge =
        || judge_server_again(ServerStatus::Verified, &book, new, &settings, 0, &mut compared);
    drop(timed(&mut times.judging, &mut judge));
    let judgement = timed(&mut times.again, &mut judge);
    assert!(!judgement.entries.is_empty(), "something changed");
    timed(&mut times.rest, || {
        for judged in &judgement.entries {
            would_hold(judged, &book, &settings);
            if let (Some(before), Some(after)) = (&judged.before, &judged.after)
                && judged.is_deferred
            {
                drop(Additions::between(before, after));
            }
        }
    });
    times
}

/// Reads a list as the gate does: its entries share the text of the page.
fn read(page: &Arc<str>) -> Surface {
    let mut reader = SurfaceReader::default();
    reader.list_shared(ListKind::Tools, std::slice::from_ref(page));
    reader.finish()
}

fn book<'e>(entries: impl Iterator<Item = &'e Entry>, basis: Basis) -> PinBook {
    let mut book = PinBook::default();
    for entry in entries {
        let (entry, by) = (entry.clone(), "bench".to_owned());
        book.push(Pin { entry, basis, at: Timestamp(0), by });
    }
    book
}

fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = processor_time();
    let result = work();
    *time = processor_time().saturating_sub(begun);
    result
}

/// The processor time of this thread, or elapsed time if the system does not report it.
fn processor_time() -> Duration {
    static BEGUN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = schedule.and_then(|line| line.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}
