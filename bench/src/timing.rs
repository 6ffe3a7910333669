//! Times within one run. Only ratios are meaningful, since machines differ and may be busy.

use std::time::{Duration, Instant};

/// The best time of each task, run in turn. On a busy machine, the best time is the closest to that
/// of the work itself, since other activity only adds to it.
pub fn best_times<const N: usize>(
    rounds: usize,
    mut tasks: [&mut dyn FnMut(); N],
) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let start = Instant::now();
            task();
            times.push(start.elapsed());
        }
    }
    times.map(|times| times.into_iter().min().unwrap_or_default())
}

/// The processor time used so far by all threads of this process; `None` if the system does not
/// report it.
pub fn cpu_time() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The processor time used by all threads of this process during some work.
pub fn cpu_time_of(work: impl FnOnce()) -> Duration {
    let before = cpu_time();
    work();
    let (Some(before), Some(after)) = (before, cpu_time()) else { return Duration::MAX };
    after.saturating_sub(before)
}

pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64().max(1e-9)
}
