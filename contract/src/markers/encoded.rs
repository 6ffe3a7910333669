//! Base64 and hex inside a text, decoded once.

/// The shortest run of base64 letters that is decoded: fifteen bytes of text.
pub(super) const MIN_BASE64: usize = 20;
/// The shortest run of hex digits that is decoded: twelve bytes of text.
pub(super) const MIN_HEX: usize = 24;

/// The shortest text that counts as one: bytes that happen to be printable are shorter.
pub(super) const MIN_TEXT: usize = 12;

const NONE: u8 = 0xff;
const SEXTETS: [u8; 256] = sextets();

const fn sextets() -> [u8; 256] {
    let mut table = [NONE; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => NONE,
        };
        #[allow(
            clippy::indexing_slicing,
            reason = "a byte below 128 is within 256, and const code has no `get_mut`"
        )]
        {
            table[byte as usize] = value;
        }
        byte += 1;
    }
    table
}

fn sextet(byte: u8) -> u8 {
    SEXTETS.get(usize::from(byte)).copied().unwrap_or(NONE)
}

fn is_base64(byte: u8) -> bool {
    sextet(byte) != NONE
}

/// Calls `found` with each thing that some run could decode to. A run is tried at all four (hex: both) alignments, as
/// a path or a word may stand right before it; lines of one encoded text are joined.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub(super) fn decode_runs(text: &[u8], mut found: impl FnMut(&[u8])) {
    let mut decoded = Vec::new();
    let mut rest = text;
    while let Some(run) = next_run(&mut rest) {
        let (base64_run, hex_runs) = (run, run);
        for skip in 0..4 {
            decode_base64(base64_run.get(skip..).unwrap_or(&[]), &mut decoded);
            found(&decoded);
        }
        for hex in hex_runs.split(|byte| !byte.is_ascii_hexdigit()) {
            if hex.len() >= MIN_HEX {
                for skip in 0..2 {
                    decode_hex(hex.get(skip..).unwrap_or(&[]), &mut decoded);
                    found(&decoded);
                }
            }
        }
    }
}

/// The next run that is long enough, and moves past it.
///
/// Only every [`MIN_BASE64`]th byte is looked at until one could be inside a run: a run that is long enough cannot slip
/// between two of them.
fn next_run<'t>(rest: &mut &'t [u8]) -> Option<&'t [u8]> {
    let text = *rest;
    let mut from = 0;
    loop {
        let probe = from + MIN_BASE64 - 1;
        let byte = *text.get(probe)?;
        if !in_run(text, probe, byte) {
            from = probe + 1;
            continue;
        }
        let start = (from..probe)
            .rev()
            .find(|&at| text.get(at).is_none_or(|&byte| !in_run(text, at, byte)))
            .map_or(from, |at| at + 1);
        let end = (probe..text.len())
            .find(|&at| text.get(at).is_none_or(|&byte| !in_run(text, at, byte)))
            .unwrap_or(text.len());
        if end - start >= MIN_BASE64 {
            *rest = text.get(end..).unwrap_or(&[]);
            return text.get(start..end);
        }
        from = end;
    }
}

/// Whether a byte is of a run: a base64 letter, or a line break between two of them.
fn in_run(text: &[u8], at: usize, byte: u8) -> bool {
    is_base64(byte)
        || (byte == b'\n' || byte == b'\r')
            && at
                .checked_sub(1)
                .and_then(|before| text.get(before))
                .is_some_and(|&b| is_base64(b) || b == b'\r')
            && text.get(at + 1).is_some_and(|&b| is_base64(b) || b == b'\n')
}

fn decode_base64(run: &[u8], decoded: &mut Vec<u8>) {
    decoded.clear();
    let mut bits = 0_u32;
    let mut count = 0;
    for value in run.iter().map(|&byte| sextet(byte)).filter(|&value| value != NONE) {
        bits = (bits << 6) | u32::from(value);
        count += 1;
        if count == 4 {
            let [_, first, second, third] = bits.to_be_bytes();
            decoded.extend_from_slice(&[first, second, third]);
            bits = 0;
            count = 0;
        }
    }
    // A last group of three letters has two bytes, one of two has one.
    let [_, first, second, _] = (bits << (6 * (4 - count))).to_be_bytes();
    match count {
        3 => decoded.extend_from_slice(&[first, second]),
        2 => decoded.push(first),
        _ => {}
    }
}

fn decode_hex(run: &[u8], decoded: &mut Vec<u8>) {
    decoded.clear();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    decoded.extend(run.chunks_exact(2).filter_map(|pair| match pair {
        [high, low] => Some(digit(*high) << 4 | digit(*low)),
        _ => None,
    }));
}

#[cfg(test)]
mod tests;
