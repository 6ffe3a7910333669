//! Timestamps. The caller has the clock and passes them in.

use std::fmt;

/// Milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with seconds, as every command prints it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Timestamp {
    /// RFC 3339 in UTC with milliseconds, as the ledger writes it. The length is constant, so text
    /// order is time order.
    pub fn precise(self) -> Precise {
        Precise(self)
    }

    /// Like [`Timestamp::precise`], without an allocation. Returns `None` for years that do not
    /// have four digits.
    pub fn precise_text(self) -> Option<[u8; 24]> {
        let seconds = self.0.div_euclid(1_000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        if !(0..=9_999).contains(&year) {
            return None;
        }
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let milliseconds = self.0.rem_euclid(1_000);
        let numbers = [year, month, day, rest / 3_600, rest / 60 % 60, rest % 60, milliseconds];
        let ends = [4, 7, 10, 13, 16, 19, 23];
        for (mut number, end) in numbers.into_iter().zip(ends) {
            let digits = text.get_mut(..end).unwrap_or_default().iter_mut().rev();
            for digit in digits.take_while(|digit| digit.is_ascii_digit()) {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        Some(text)
    }

    /// Parses the output of `Display` and [`Timestamp::precise`], and a date alone (its first
    /// moment).
    pub fn parse(text: &str) -> Option<Timestamp> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, time.strip_suffix('Z')?),
            None => (text, "00:00:00"),
        };
        let (time, milliseconds) = match time.split_once('.') {
            Some((time, fraction)) => (time, number(fraction, 3, 0..=999)?),
            None => (time, 0),
        };
        let mut parts = date.split('-');
        let year = number(parts.next()?, 4, 0..=9_999)?;
        let month = number(parts.next()?, 2, 1..=12)?;
        let day = number(parts.next()?, 2, 1..=31)?;
        let mut clock = time.split(':');
        let hour = number(clock.next()?, 2, 0..=23)?;
        let minute = number(clock.next()?, 2, 0..=59)?;
        let second = number(clock.next()?, 2, 0..=59)?;
        if parts.next().is_some() || clock.next().is_some() {
            return None;
        }
        let days = days_of(year, month, day);
        if civil(days) != (year, month, day) {
            return None;
        }
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
        Some(Timestamp(seconds * 1_000 + milliseconds))
    }
}

/// A timestamp displayed with its milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Precise(Timestamp);

impl fmt::Display for Precise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.to_string();
        let milliseconds = self.0.0.rem_euclid(1_000);
        write!(formatter, "{}.{milliseconds:03}Z", seconds.trim_end_matches('Z'))
    }
}

fn number(text: &str, digits: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_plain.then(|| text.parse().ok())??;
    range.contains(&number).then_some(number)
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Converts a day counted from 1970-01-01 to a Gregorian date. Years start in March here, so that
/// the leap day comes last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The inverse of [`civil`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn moments_print_as_rfc_3339() {
        for (milliseconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp(milliseconds).to_string(), expected);
        }
    }

    #[test]
    fn moments_read_back_as_they_print() {
        for milliseconds in [0, 951_782_400_001, 1_709_251_199_999, 4_107_542_400_000] {
            let moment = Timestamp(milliseconds);
            assert_eq!(Timestamp::parse(&moment.precise().to_string()), Some(moment));
            let whole = Timestamp(milliseconds - milliseconds % 1_000);
            assert_eq!(Timestamp::parse(&moment.to_string()), Some(whole));
        }
        assert_eq!(Timestamp::parse("1970-01-02"), Some(Timestamp(86_400_000)));
    }

    #[test]
    fn a_precise_text_is_what_is_printed() {
        let day = 86_400_000;
        for milliseconds in (-800_000 * day..4_000_000 * day).step_by(12_345_678_901) {
            let moment = Timestamp(milliseconds);
            let printed = moment.precise().to_string();
            let text =
                moment.precise_text().map(|text| String::from_utf8_lossy(&text).into_owned());
            let has_four_digits = printed.len() == 24 && !printed.starts_with('-');
            assert_eq!(text, has_four_digits.then_some(printed));
        }
        for milliseconds in [i64::MIN, i64::MAX] {
            assert_eq!(Timestamp(milliseconds).precise_text(), None);
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "1970",
            "1970-1-1",
            "2023-02-29",
            "2024-13-01",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.1Z",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00+01:00",
            "+024-01-01",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
