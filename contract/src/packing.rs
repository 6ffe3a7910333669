//! Compact encoding of tables: numbers in groups of seven bits, lowest group first. `build.rs`
//! includes this file too, so it must not use anything from the crate.

pub(crate) fn push_number(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    push_number(text.len() as u32, out);
    out.extend_from_slice(text);
}

/// Reads the encoding. Past the end, every byte reads as zero.
pub(crate) struct Unpacking(pub(crate) &'static [u8]);

impl Unpacking {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn number(&mut self) -> u32 {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.byte();
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    pub(crate) fn text(&mut self) -> &'static str {
        let length = self.number() as usize;
        let (text, rest) = self.0.split_at_checked(length).unwrap_or_default();
        self.0 = rest;
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// Reads a count, then that many items.
    pub(crate) fn several<T>(&mut self, mut item: impl FnMut(&mut Unpacking) -> T) -> Vec<T> {
        (0..self.number()).map(|_| item(self)).collect()
    }
}
