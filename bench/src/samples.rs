//! Statistics over the times of many calls, in rounds.

use std::time::Duration;

/// The median and the 99th percentile of a round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    pub p50: f64,
    pub p99: f64,
}

impl Round {
    /// Converts to microseconds.
    pub fn of(times: &[Duration]) -> Round {
        let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
        times.sort_by(f64::total_cmp);
        Round { p50: quantile(&times, 0.5), p99: quantile(&times, 0.99) }
    }
}

/// The first quartile: of several rounds, one of those least disturbed by other activity.
pub fn first_quarter(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.25)
}

/// The median of unsorted values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// The quantile of sorted values; 0 if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let times: Vec<Duration> = (1..=100).rev().map(Duration::from_micros).collect();
        let round = Round::of(&times);
        assert!((round.p50 - 50.0).abs() < 1e-6, "{round:?}");
        assert!((round.p99 - 99.0).abs() < 1e-6, "{round:?}");
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-6);
        assert!((first_quarter(vec![4.0, 3.0, 1.0, 2.0]) - 1.0).abs() < 1e-6);
        assert!(median(Vec::new()).abs() < 1e-6);
    }
}
