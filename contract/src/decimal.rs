//! Numbers as exact decimals. They never pass through a double, which would lose digits.

use std::cmp::Ordering;

/// An exact decimal number: ±0.d₁d₂d₃… × 10^point, with neither leading nor trailing zeros among
/// the digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// Parses the spelling of a JSON number. The JSON reader has already validated it; any other
    /// text counts as zero.
    pub fn parse(spelling: &str) -> Decimal {
        let (negative, unsigned) = match spelling.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, spelling),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(0)),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if !all.iter().all(u8::is_ascii_digit) {
            return Decimal { negative: false, digits: Vec::new(), point: 0 };
        }
        let leading = all.iter().take_while(|&&digit| digit == b'0').count();
        let trailing = all.iter().rev().take_while(|&&digit| digit == b'0').count();
        let digits = all.get(leading..all.len().saturating_sub(trailing)).unwrap_or(&[]).to_vec();
        if digits.is_empty() {
            return Decimal { negative: false, digits, point: 0 };
        }
        let point = (whole.len() as i64 - leading as i64).saturating_add(exponent);
        Decimal { negative, digits, point }
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the number has no fraction.
    pub fn is_integer(&self) -> bool {
        self.point >= self.digits.len() as i64
    }

    /// The value as an integer. Returns `None` if it has a fraction or is too large.
    pub fn to_i128(&self) -> Option<i128> {
        if !self.is_integer() || self.point > 38 {
            return None;
        }
        let zeros = usize::try_from(self.point).ok()?.saturating_sub(self.digits.len());
        let digits = self.digits.iter().copied().chain(std::iter::repeat_n(b'0', zeros));
        let mut value: i128 = 0;
        for digit in digits {
            value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        Some(if self.negative { -value } else { value })
    }

    /// The largest integer that is not greater than this number. Returns `None` if it is too large.
    pub fn floor(&self) -> Option<i128> {
        if self.is_integer() {
            return self.to_i128();
        }
        let whole = usize::try_from(self.point).unwrap_or(0);
        let digits = self.digits.get(..whole).unwrap_or(&[]).to_vec();
        let truncated = Decimal { negative: false, digits, point: self.point };
        let truncated = if whole == 0 { 0 } else { truncated.to_i128()? };
        Some(if self.negative { -truncated - 1 } else { truncated })
    }

    /// The smallest integer that is not less than this number. Returns `None` if it is too large.
    pub fn ceiling(&self) -> Option<i128> {
        if self.is_integer() { self.to_i128() } else { self.floor()?.checked_add(1) }
    }

    /// Writes the canonical spelling of this value, in the layout that RFC 8785 uses for doubles
    /// but with any number of digits.
    ///
    /// If the shortest digits of a double are exactly this value, the output is the same as RFC
    /// 8785's. Any other value keeps all its digits, so two different numbers never share a
    /// spelling.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        let count = self.digits.len() as i64;
        if count == 0 {
            out.push(b'0');
            return;
        }
        if self.negative {
            out.push(b'-');
        }
        let point = self.point;
        if count <= point && point <= 21 {
            out.extend_from_slice(&self.digits);
            out.extend(std::iter::repeat_n(b'0', (point - count) as usize));
        } else if 0 < point && point <= 21 {
            let (whole, fraction) = self.digits.split_at(point as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else if -6 < point && point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-point) as usize));
            out.extend_from_slice(&self.digits);
        } else {
            let (first, rest) = self.digits.split_at(1);
            out.extend_from_slice(first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
            let exponent = point - 1;
            out.push(b'e');
            out.push(if exponent < 0 { b'-' } else { b'+' });
            out.extend_from_slice(exponent.unsigned_abs().to_string().as_bytes());
        }
    }

    fn magnitude_order(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // No digit string starts with a zero, so compare the point first and then the digits as
            // text.
            (false, false) => {
                self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::new();
        self.write_canonical(&mut out);
        formatter.write_str(&String::from_utf8_lossy(&out))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude_order(other),
            (true, true) => other.magnitude_order(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests;
