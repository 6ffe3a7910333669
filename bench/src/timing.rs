//! Times within one run. Only ratios are worth telling: machines differ, and are busy.

use std::time::{Duration, Instant};

/// The middle time of each of some tasks, run in turn so that whatever disturbs one disturbs all.
pub fn medians<const N: usize>(rounds: usize, mut tasks: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let start = Instant::now();
            task();
            times.push(start.elapsed());
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    })
}

pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64().max(1e-9)
}
