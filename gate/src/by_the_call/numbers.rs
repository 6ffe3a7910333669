//! Numbers that every reader parses as the same value: those that 64 bits or a double represent
//! exactly.

use contract::decimal::Decimal;
use serde_json::Number;

/// How far the parsed double may be from the nearest one. The reader multiplies by a power of ten,
/// and both are rounded.
const NEIGHBOURS: u64 = 8;

/// Whether this number is exactly a 64-bit integer or the shortest digits of a double.
///
/// If the shortest digits of any double are this number, the number parses as that double. So it is
/// enough to test the doubles around the one that `serde_json` returns, and none has to be parsed
/// exactly: the tables for that are a tenth of the data of the WebAssembly.
pub(super) fn is_exact(spelling: &str) -> bool {
    if spelling.parse::<i64>().is_ok() || spelling.parse::<u64>().is_ok() {
        return true;
    }
    let Ok(near) = serde_json::from_str::<f64>(spelling) else { return false };
    let number = Decimal::parse(spelling);
    if number.is_zero() {
        return true;
    }
    let bits = near.abs().to_bits();
    (bits.saturating_sub(NEIGHBOURS)..=bits + NEIGHBOURS).any(|bits| {
        let double = f64::from_bits(bits).copysign(near);
        let shortest = Number::from_f64(double).map(|double| Decimal::parse(&double.to_string()));
        shortest.is_some_and(|shortest| shortest == number)
    })
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

    /// The definition: parse a double exactly and print its shortest digits. If two numbers with
    /// the same count of digits are equally near (619942261041825.2 and 619942261041825.3), the
    /// standard library prints a different one from JSON writers.
    fn is_exact_by_definition(spelling: &str) -> bool {
        let Ok(double) = spelling.parse::<f64>() else { return false };
        let printed = Number::from_f64(double).map(|double| Decimal::parse(&double.to_string()));
        spelling.parse::<i64>().is_ok()
            || spelling.parse::<u64>().is_ok()
            || printed.is_some_and(|printed| printed == Decimal::parse(spelling))
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_exact_as_the_definition_says(
            digits in "-?[1-9](\\.[0-9]{1,18})?",
            exponent in proptest::prop_oneof![-20..20_i32, -330..330_i32],
            bits: u64,
        ) {
            let double = f64::from_bits(bits);
            let (above, below) = (double.next_up(), double.next_down());
            for spelling in [
                format!("{digits}e{exponent}"),
                format!("{double:e}"),
                format!("{above:e}"),
                format!("{below:.16e}"),
                format!("{double:.17e}"),
                format!("{double:.15e}"),
            ] {
                proptest::prop_assert_eq!(
                    is_exact(&spelling), is_exact_by_definition(&spelling), "{}", spelling
                );
            }
        }
    }
}
