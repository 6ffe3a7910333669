//! Converts hashes and ids to hexadecimal digits and back, without allocation and in canonical form
//! only: they make up half of a line.

/// The decimal digits of the largest number.
pub(crate) const MAX_DECIMAL_DIGITS: usize = 20;

/// The value of a character that is not a digit.
const NONE: u8 = 0xff;

/// The digits of some bytes. `DIGITS` must be twice `BYTES`.
pub(crate) fn encode<const BYTES: usize, const DIGITS: usize>(bytes: &[u8; BYTES]) -> [u8; DIGITS] {
    const { assert!(DIGITS == 2 * BYTES) };
    let mut digits = [0; DIGITS];
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    digits
}

#[inline]
fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + (value - 10) }
}

/// Appends a number in decimal digits.
pub(crate) fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; MAX_DECIMAL_DIGITS];
    let mut length = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        length += 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - length..).unwrap_or_default());
}

/// Decodes lower-case digits, if there are exactly enough.
pub(crate) fn decode<const BYTES: usize>(digits: &[u8]) -> Option<[u8; BYTES]> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let mut bytes = [0; BYTES];
    if pairs.len() != BYTES {
        return None;
    }
    // Valid values have no upper bits, so any upper bit set at the end means an invalid character.
    let mut seen = 0;
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let (high, low) = (value(*high), value(*low));
        seen |= high | low;
        *byte = (high << 4) | (low & 15);
    }
    (seen < 16).then_some(bytes)
}

/// Branch-free, so that the compiler can vectorize it.
fn value(character: u8) -> u8 {
    let (digit, letter) = (character.wrapping_sub(b'0'), character.wrapping_sub(b'a'));
    if digit < 10 {
        digit
    } else if letter < 6 {
        letter + 10
    } else {
        NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_reads_back_as_it_is_written() {
        for byte in 0..=255_u8 {
            let digits: [u8; 4] = encode(&[byte, !byte]);
            assert_eq!(digits.as_slice(), hex::encode([byte, !byte]).as_bytes());
            assert_eq!(decode(&digits), Some([byte, !byte]));
        }
    }

    #[test]
    fn numbers_are_written_in_their_shortest_form() {
        for number in [0, 1, 9, 10, 99, 100, 1_234_567, u64::MAX - 1, u64::MAX] {
            let mut digits = Vec::new();
            push_decimal(number, &mut digits);
            assert_eq!(digits, number.to_string().as_bytes());
        }
    }

    #[test]
    fn no_other_spelling_and_no_other_length_is_read() {
        for character in 0..=255_u8 {
            let is_digit = matches!(character, b'0'..=b'9' | b'a'..=b'f');
            assert_eq!(decode::<1>(&[b'0', character]).is_some(), is_digit, "{character}");
            assert_eq!(decode::<1>(&[character, b'0']).is_some(), is_digit, "{character}");
        }
        for text in ["", "0", "000", "0000"] {
            assert_eq!(decode::<1>(text.as_bytes()), None, "{text}");
        }
    }
}
