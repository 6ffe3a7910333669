//! Figures with their bounds, and the memory of a process.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use std::error::Error;
use std::process::ExitCode;

/// The results that determine the exit code.
#[derive(Debug, Default)]
pub struct Figures {
    over: usize,
}

impl Figures {
    /// Reports a figure with an upper bound.
    pub fn tell(&mut self, what: &str, figure: f64, bound: f64) {
        self.judge(what, figure, "at most", bound, figure <= bound);
    }

    /// Reports a figure with a lower bound.
    pub fn tell_at_least(&mut self, what: &str, figure: f64, bound: f64) {
        self.judge(what, figure, "at least", bound, figure >= bound);
    }

    pub fn are_within_bounds(&self) -> bool {
        self.over == 0
    }

    fn judge(&mut self, what: &str, figure: f64, how: &str, bound: f64, is_within: bool) {
        let verdict = if is_within { "ok" } else { "OVER" };
        self.over += usize::from(!is_within);
        println!("{what:<58} {figure:>8.2}   {how:<8} {bound:>6.2}   {verdict}");
    }
}

/// The exit code of a measurement: success if every figure is within its bound. Prints an error.
pub fn exit_code(measured: Result<Figures, Box<dyn Error>>) -> ExitCode {
    match measured {
        Ok(figures) if figures.are_within_bounds() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The peak memory of this process; `None` if the system does not report it.
pub fn peak_bytes() -> Option<u64> {
    memory("VmHWM:")
}

/// The current memory of this process; `None` if the system does not report it.
pub fn resident_bytes() -> Option<u64> {
    memory("VmRSS:")
}

fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
