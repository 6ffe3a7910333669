//! Measures how long the gate takes for the slowest lists to read, compare and judge that we know
//! of.
//!
//! Prints each time with its bound, and exits with 1 if one exceeds it. Arguments select lists
//! whose names contain one of them.
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::hostile::lists::{Size, pairs};
use holdpoint_bench::judging::judge;
use std::process::ExitCode;

/// The time limit for any list, in seconds.
const BOUND: f64 = 2.0;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut figures = Figures::default();
    for (size_name, size) in [("large entries", Size::LARGEST), ("many entries", Size::MOST)] {
        for pair in pairs(size) {
            let name = format!("{}, {size_name}", pair.name);
            if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
                continue;
            }
            let times = judge(&pair.before(), &pair.after());
            let parts = [
                ("read", times.reading),
                ("pins", times.pins),
                ("judge", times.judging),
                ("again", times.again),
                ("rest", times.rest),
                ("first use", times.first_use),
            ];
            let parts = parts.map(|(part, time)| format!("{part} {:.2}", time.as_secs_f64()));
            println!("{name}: {}", parts.join(", "));
            let longest = times.total().max(times.first_use);
            figures.tell(&name, longest.as_secs_f64(), BOUND);
        }
    }
    exit_code(Ok(figures))
}
