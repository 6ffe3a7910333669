//! Exact one-sided 95 % confidence bounds on an observed rate (Clopper and Pearson, 1934).
//!
//! The bound is a quantile of a beta distribution. Weighted counts may be fractions, which a beta
//! distribution accepts as well; such a bound is an approximation, and is only used where a page
//! says so.

/// The confidence level: the true rate is beyond the bound in at most 5 of 100 such observations.
pub const LEVEL: f64 = 0.95;
/// The number of bisection steps: 60 halvings of [0, 1] exceed the precision of a double.
const STEPS: usize = 60;

/// The upper bound of the rate after `hits` in `trials`; 1 without trials.
pub fn upper(hits: f64, trials: f64) -> f64 {
    if trials <= 0.0 || hits >= trials {
        return 1.0;
    }
    beta_quantile(LEVEL, hits.max(0.0) + 1.0, trials - hits.max(0.0))
}

/// The lower bound of the rate after `hits` in `trials`; 0 without trials.
pub fn lower(hits: f64, trials: f64) -> f64 {
    if trials <= 0.0 || hits <= 0.0 {
        return 0.0;
    }
    beta_quantile(1.0 - LEVEL, hits.min(trials), trials - hits.min(trials) + 1.0)
}

/// The x at which the regularized incomplete beta function is `share`. Found by bisection, since
/// the function is monotonic.
fn beta_quantile(share: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if incomplete_beta(middle, a, b) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// I_x(a, b), by the continued fraction where it converges fast, and by symmetry elsewhere.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(x, a, b) / a
    } else {
        1.0 - front * continued_fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut sum = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / nonzero(1.0 + even * d);
        c = nonzero(1.0 + even / c);
        sum *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / nonzero(1.0 + odd * d);
        c = nonzero(1.0 + odd / c);
        let change = d * c;
        sum *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    sum
}

/// ln Γ(x) for x > 0: Stirling's series where it is exact to double precision, and Γ(x + 1) = x
/// Γ(x) below that.
fn ln_gamma(x: f64) -> f64 {
    let mut shifted = x;
    let mut correction = 0.0;
    while shifted < 15.0 {
        correction += shifted.ln();
        shifted += 1.0;
    }
    let inverse = 1.0 / shifted;
    let square = inverse * inverse;
    let series = inverse
        * (1.0 / 12.0
            - square
                * (1.0 / 360.0
                    - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))));
    let half_ln_two_pi = 0.918_938_533_204_672_7;
    (shifted - 0.5) * shifted.ln() - shifted + half_ln_two_pi + series - correction
}

#[cfg(test)]
mod tests;
