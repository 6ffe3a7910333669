//! Numbers that every reader takes for the same value: those that 64 bits or a double hold exactly.

use contract::decimal::Decimal;

/// Whether an integer of 64 bits, or the shortest digits of a double, are exactly this number.
pub(super) fn is_exact(spelling: &str) -> bool {
    if spelling.parse::<i64>().is_ok() || spelling.parse::<u64>().is_ok() {
        return true;
    }
    let Ok(double) = spelling.parse::<f64>() else { return false };
    // `{:e}` prints the shortest digits that read back as the same double.
    double.is_finite() && Decimal::parse(&format!("{double:e}")) == Decimal::parse(spelling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_64_bits_or_a_double_hold_is_exact_and_other_numbers_are_not() {
        for exact in ["0", "-0", "1.50", "0.1", "1e3", "-9223372036854775808"] {
            assert!(is_exact(exact), "{exact}");
        }
        for exact in ["18446744073709551615", "9007199254740993", "1e300", "5e-324"] {
            assert!(is_exact(exact), "{exact}");
        }
        for inexact in ["18446744073709551617", "9007199254740993.5", "1e400", "1e-400"] {
            assert!(!is_exact(inexact), "{inexact}");
        }
        assert!(!is_exact("0.10000000000000000000001"));
    }
}
