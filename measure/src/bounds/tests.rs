use super::*;

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[test]
fn without_hits_the_upper_bound_has_a_closed_form() {
    for trials in [1.0, 10.0, 59.0, 150.0, 1_000.0, 100_000.0_f64] {
        let expected = 1.0 - 0.05_f64.powf(1.0 / trials);
        assert!(is_near(upper(0.0, trials), expected), "{trials}: {}", upper(0.0, trials));
        assert!(is_near(lower(trials, trials), 1.0 - expected), "{trials}");
    }
    // 150 labels without a false positive satisfy the 2 % limit, 148 do not.
    assert!(upper(0.0, 150.0) < 0.02 && upper(0.0, 148.0) > 0.02);
    // One false positive in 150 does not satisfy it either.
    assert!(upper(1.0, 150.0) > 0.02);
}

#[test]
fn bounds_are_those_of_published_tables() {
    // One-sided 95 % bounds from R's `binom.test(x, n, alternative = ..)`.
    for (hits, trials, low, high) in [
        (1.0, 10.0, 0.005_116_197, 0.394_163_3),
        (5.0, 10.0, 0.222_441_1, 0.777_558_9),
        (95.0, 100.0, 0.897_746_6, 0.980_094_4),
        (3.0, 20.0, 0.042_169_4, 0.343_663_8),
    ] {
        assert!(
            (lower(hits, trials) - low).abs() < 5e-5,
            "{hits} of {trials}: {}",
            lower(hits, trials)
        );
        assert!(
            (upper(hits, trials) - high).abs() < 5e-5,
            "{hits} of {trials}: {}",
            upper(hits, trials)
        );
    }
}

/// The definition of the bound: at the upper bound, at most the observed number of hits has
/// probability 5 %.
#[test]
fn bounds_solve_the_binomial_tail() {
    for trials in [5_u32, 17, 64] {
        for hits in 0..trials {
            let at_most = |rate: f64| (0..=hits).map(|k| binomial(k, trials, rate)).sum::<f64>();
            let bound = upper(f64::from(hits), f64::from(trials));
            assert!((at_most(bound) - 0.05).abs() < 1e-8, "{hits} of {trials}");
            if hits > 0 {
                let at_least =
                    |rate: f64| (hits..=trials).map(|k| binomial(k, trials, rate)).sum::<f64>();
                let bound = lower(f64::from(hits), f64::from(trials));
                assert!((at_least(bound) - 0.05).abs() < 1e-8, "{hits} of {trials}");
            }
        }
    }
}

fn binomial(hits: u32, trials: u32, rate: f64) -> f64 {
    let choose = (0..hits).fold(1.0, |all, k| all * f64::from(trials - k) / f64::from(k + 1));
    choose * rate.powi(hits as i32) * (1.0 - rate).powi((trials - hits) as i32)
}

#[test]
fn nothing_observed_is_nothing_known() {
    assert_eq!((lower(0.0, 0.0), upper(0.0, 0.0)), (0.0, 1.0));
    assert_eq!((upper(4.0, 4.0), lower(0.0, 4.0)), (1.0, 0.0));
}
