//! Measures what a second core of this machine is worth. Many systems count two hardware threads of
//! one core as two cores, although they hash no more together than one does alone: then parallel
//! work gains nothing.

use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};

/// The duration of each measurement.
const TIMED: Duration = Duration::from_millis(100);
const PIECE: [u8; 4096] = [7; 4096];

/// The amount that two threads hash, relative to one: 2 with two cores, 1 with one.
pub fn two_times_one() -> f64 {
    let alone = hashed();
    let both: u64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(hashed), scope.spawn(hashed)];
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    both as f64 / (alone as f64).max(1.0)
}

/// The number of pieces that this thread hashes in that time.
fn hashed() -> u64 {
    let until = Instant::now() + TIMED;
    let mut state = Sha256::new();
    let mut pieces = 0;
    while Instant::now() < until {
        state.update(PIECE);
        pieces += 1;
    }
    std::hint::black_box(state.finalize());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_do_something_and_no_more_than_two() {
        let factor = two_times_one();
        assert!(factor > 0.1 && factor < 8.0, "{factor}");
    }
}
