//! Sizes and durations as people write them: `8MiB`, `90d`.

/// What a text measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Bytes(u64),
    Milliseconds(i64),
}

const UNITS: [(&str, u64, bool); 10] = [
    ("KiB", 1 << 10, true),
    ("MiB", 1 << 20, true),
    ("GiB", 1 << 30, true),
    ("TiB", 1 << 40, true),
    ("B", 1, true),
    ("s", 1_000, false),
    ("m", 60_000, false),
    ("h", 3_600_000, false),
    ("d", 86_400_000, false),
    ("w", 7 * 86_400_000, false),
];

impl Amount {
    pub(super) fn parse(text: &str) -> Option<Amount> {
        let digits = text.find(|character: char| !character.is_ascii_digit())?;
        let (number, unit) = text.split_at_checked(digits)?;
        let (_, factor, is_size) = UNITS.iter().find(|(name, _, _)| *name == unit.trim_start())?;
        let product = number.parse::<u64>().ok()?.checked_mul(*factor)?;
        if *is_size {
            Some(Amount::Bytes(product))
        } else {
            i64::try_from(product).ok().map(Amount::Milliseconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Amount::{self, Bytes, Milliseconds};

    #[test]
    fn amounts_are_a_number_and_a_unit() {
        for (text, expected) in [
            ("8MiB", Some(Bytes(8 << 20))),
            ("512 KiB", Some(Bytes(512 << 10))),
            ("100B", Some(Bytes(100))),
            ("90d", Some(Milliseconds(90 * 86_400_000))),
            ("30s", Some(Milliseconds(30_000))),
            ("8MB", None),
            ("8", None),
            ("d", None),
            ("-1d", None),
            ("99999999999999999999d", None),
            ("18446744073709551615KiB", None),
            ("", None),
        ] {
            assert_eq!(Amount::parse(text), expected, "{text}");
        }
    }
}
