//! The types of values. Each type's error says what is expected.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// An integer within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

/// An integer from 0 up.
pub type Count = Whole<0, { u64::MAX }>;

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    pub fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeVisitor)
    }
}

struct WholeVisitor<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Visitor<'_> for WholeVisitor<LEAST, MOST> {
    type Value = Whole<LEAST, MOST>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match MOST {
            u64::MAX => write!(formatter, "a whole number from {LEAST} up"),
            _ => write!(formatter, "a whole number from {LEAST} to {MOST}"),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let found = u64::try_from(number).ok().filter(|number| (LEAST..=MOST).contains(number));
        found.map(Whole).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    /// JSON's type for nonnegative integers.
    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        let found = Some(number).filter(|number| (LEAST..=MOST).contains(number));
        found.map(Whole).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// A nonempty text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Text(String);

impl TryFrom<String> for Text {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Text, &'static str> {
        if text.trim().is_empty() {
            Err("expected a text that is not empty")
        } else {
            Ok(Text(text))
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A text that is parsed by the type it represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Parsed).map_err(D::Error::custom)
    }
}

impl<T: fmt::Display> Serialize for Parsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A size (`"64MiB"`), a duration (`"90d"`), or a list with one of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Amounted")]
pub struct Amounts {
    pub bytes: Option<u64>,
    pub milliseconds: Option<i64>,
}

const AMOUNTS: &str =
    "expected a size (`\"64MiB\"`), a duration (`\"90d\"`), or a list of one of each";

/// The value as written.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a size (`\"64MiB\"`), a duration (`\"90d\"`), or a list of one of each"
)]
enum Amounted {
    One(String),
    Some(Vec<String>),
}

impl Amounts {
    /// The milliseconds of a duration such as `90d`.
    pub fn duration(text: &str) -> Option<i64> {
        match Amount::parse(text)? {
            Amount::Milliseconds(duration) => Some(duration),
            Amount::Bytes(_) => None,
        }
    }
}

impl TryFrom<Amounted> for Amounts {
    type Error = &'static str;

    fn try_from(written: Amounted) -> Result<Amounts, &'static str> {
        let texts = match written {
            Amounted::One(text) => vec![text],
            Amounted::Some(texts) => texts,
        };
        let mut amounts = Amounts::default();
        for text in texts {
            let is_second = match Amount::parse(&text).ok_or(AMOUNTS)? {
                Amount::Bytes(bytes) => amounts.bytes.replace(bytes).is_some(),
                Amount::Milliseconds(age) => amounts.milliseconds.replace(age).is_some(),
            };
            if is_second {
                return Err(AMOUNTS);
            }
        }
        Ok(amounts)
    }
}

/// The quantity that a text denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
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
    fn parse(text: &str) -> Option<Amount> {
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
        assert_eq!(super::Amounts::duration("90d"), Some(90 * 86_400_000));
        assert_eq!(super::Amounts::duration("8MiB"), None);
    }
}
