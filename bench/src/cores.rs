//! How much two cores of this machine do. Two threads of one core are counted as two cores by many systems, and hash no
//! more together than one of them does alone: then nothing is gained by working side by side.

use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};

/// How long each is timed.
const TIMED: Duration = Duration::from_millis(100);
const PIECE: [u8; 4096] = [7; 4096];

/// What two threads hash in the same time, times what one does: 2 with two cores, 1 with one.
pub fn two_times_one() -> f64 {
    let alone = hashed();
    let both: u64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(hashed), scope.spawn(hashed)];
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    both as f64 / (alone as f64).max(1.0)
}

/// Pieces that this thread hashes in its time.
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
