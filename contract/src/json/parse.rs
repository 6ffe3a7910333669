//! The strict parser. One pass over the bytes, no recursion deeper than [`MAX_DEPTH`].

use super::{ESCAPED_BIT, INDEX_MASK, KIND_SHIFT, Kind, Slot, sorted_names, strings};
use std::borrow::Cow;

/// The deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 128;
/// The longest number that is read, in characters.
pub const MAX_NUMBER_LENGTH: usize = 1_024;
/// The largest exponent, either way, that is read.
pub const MAX_EXPONENT: i64 = 10_000;
/// The longest text that is read at all. Lists and entries have smaller limits of their own.
pub const MAX_TEXT_BYTES: usize = 128 * 1024 * 1024;

/// Why a text was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("not JSON at byte {offset}: expected {expected}")]
    Syntax { offset: usize, expected: &'static str },
    #[error("invalid UTF-8 at byte {offset}")]
    NotUtf8 { offset: usize },
    #[error("the member name `{name}` appears twice in the object that ends at byte {offset}")]
    DuplicateMember { offset: usize, name: String },
    #[error("a lone surrogate at byte {offset}")]
    LoneSurrogate { offset: usize },
    #[error("nested deeper than {MAX_DEPTH} levels at byte {offset}")]
    TooDeep { offset: usize },
    #[error("a number of over {MAX_NUMBER_LENGTH} characters at byte {offset}")]
    NumberTooLong { offset: usize },
    #[error("a number with an exponent beyond ±{MAX_EXPONENT} at byte {offset}")]
    ExponentTooLarge { offset: usize },
    #[error("longer than {MAX_TEXT_BYTES} bytes")]
    TooLong,
}

impl ReadError {
    /// Whether the text is not JSON in any reading, as opposed to JSON that could be read in more than one way.
    pub fn is_syntax(&self) -> bool {
        matches!(self, ReadError::Syntax { .. })
    }
}

/// A text that is small enough for its slots to be guessed and to grow: counting them is half of reading it.
const SMALL_BYTES: usize = 65_536;
/// A schema has a value or a name in so many bytes, or in more.
const BYTES_PER_SLOT: usize = 8;

/// Whether the names of an object are known to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Checked,
    Known,
}

#[cfg_attr(holdpoint_small, optimize(speed))]
pub(super) fn parse(text: &str, names: Names) -> Result<Vec<Slot>, ReadError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(ReadError::TooLong);
    }
    let bytes = text.as_bytes();
    let slots = Vec::with_capacity(match bytes.len() {
        small @ ..=SMALL_BYTES => small / BYTES_PER_SLOT + 1,
        _ => slots_needed(bytes),
    });
    let mut parser = Parser { text, bytes, at: 0, slots, names };
    parser.skip_white_space();
    parser.value(0)?;
    parser.skip_white_space();
    if parser.at < bytes.len() {
        return Err(parser.syntax("the end of the text"));
    }
    Ok(parser.slots)
}

/// An upper bound for the slots, so that they are allocated once: doubling would cost hostile input twice the memory.
#[cfg_attr(holdpoint_small, optimize(speed))]
fn slots_needed(bytes: &[u8]) -> usize {
    // In chunks whose count fits into a byte, so that the compiler counts many bytes at a time: a check for overflow would
    // keep it from that.
    let is_structural =
        |byte: u8| (byte == b',') | (byte == b':') | (byte == b'[') | (byte == b'{');
    let count = |chunk: &[u8]| {
        chunk.iter().fold(0_u8, |count, &byte| count.wrapping_add(is_structural(byte).into()))
    };
    let structural: usize = bytes.chunks(240).map(|chunk| usize::from(count(chunk))).sum();
    // An object's first name is announced by its brace, which also announces the object itself; the colon pays for it.
    (structural + 1).min(bytes.len() + 1)
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    slots: Vec<Slot>,
    names: Names,
}

impl Parser<'_> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn syntax(&self, expected: &'static str) -> ReadError {
        ReadError::Syntax { offset: self.at, expected }
    }

    #[inline(always)]
    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Opens a slot at the current byte; `close` gives it its end and kind.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn open(&mut self) -> usize {
        let start = u32::try_from(self.at).unwrap_or(u32::MAX);
        self.slots.push(Slot { start, end: start, link: 0 });
        self.slots.len() - 1
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn close(&mut self, index: usize, kind: Kind, escaped: bool) {
        let end = u32::try_from(self.at).unwrap_or(u32::MAX);
        let next = u32::try_from(self.slots.len()).unwrap_or(u32::MAX) & INDEX_MASK;
        let kind = match kind {
            Kind::Null => 0,
            Kind::False => 1,
            Kind::True => 2,
            Kind::Number => 3,
            Kind::String => 4,
            Kind::Array => 5,
            Kind::Object => 6,
        };
        let escaped = if escaped { ESCAPED_BIT } else { 0 };
        if let Some(slot) = self.slots.get_mut(index) {
            slot.end = end;
            slot.link = kind << KIND_SHIFT | escaped | next;
        }
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn value(&mut self, depth: usize) -> Result<(), ReadError> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Kind::True),
            Some(b'f') => self.literal("false", Kind::False),
            Some(b'n') => self.literal("null", Kind::Null),
            _ => Err(self.syntax("a value")),
        }
    }

    fn literal(&mut self, word: &'static str, kind: Kind) -> Result<(), ReadError> {
        let slot = self.open();
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.syntax("a value"));
        }
        self.at += word.len();
        self.close(slot, kind, false);
        Ok(())
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn array(&mut self, depth: usize) -> Result<(), ReadError> {
        if depth >= MAX_DEPTH {
            return Err(ReadError::TooDeep { offset: self.at });
        }
        let slot = self.open();
        self.at += 1;
        self.skip_white_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.close(slot, Kind::Array, false);
            return Ok(());
        }
        loop {
            self.skip_white_space();
            self.value(depth + 1)?;
            self.skip_white_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.syntax("`,` or `]`")),
            }
        }
        self.at += 1;
        self.close(slot, Kind::Array, false);
        Ok(())
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn object(&mut self, depth: usize) -> Result<(), ReadError> {
        if depth >= MAX_DEPTH {
            return Err(ReadError::TooDeep { offset: self.at });
        }
        let slot = self.open();
        self.at += 1;
        self.skip_white_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.close(slot, Kind::Object, false);
            return Ok(());
        }
        loop {
            self.skip_white_space();
            if self.peek() != Some(b'"') {
                return Err(self.syntax("a member name"));
            }
            self.string()?;
            self.skip_white_space();
            if self.peek() != Some(b':') {
                return Err(self.syntax("`:`"));
            }
            self.at += 1;
            self.skip_white_space();
            self.value(depth + 1)?;
            self.skip_white_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.syntax("`,` or `}`")),
            }
        }
        self.at += 1;
        self.close(slot, Kind::Object, false);
        match self.names {
            Names::Checked => self.refuse_duplicates(slot),
            Names::Known => Ok(()),
        }
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn refuse_duplicates(&self, object: usize) -> Result<(), ReadError> {
        const PAIRWISE: usize = 8;
        let mut few: [Cow<'_, str>; PAIRWISE] = Default::default();
        for (count, index) in self.names_of(object).enumerate() {
            let name = self.name(index);
            if few.iter().take(count).any(|other| *other == name) {
                return Err(self.duplicate(name));
            }
            match few.get_mut(count) {
                Some(place) => *place = name,
                None => return self.refuse_duplicates_among_many(object),
            }
        }
        Ok(())
    }

    fn refuse_duplicates_among_many(&self, object: usize) -> Result<(), ReadError> {
        let mut before = None;
        for index in sorted_names(self.names_of(object), |index| self.name(index)) {
            let name = self.name(index);
            if before.as_ref() == Some(&name) {
                return Err(self.duplicate(name));
            }
            before = Some(name);
        }
        Ok(())
    }

    fn duplicate(&self, name: Cow<'_, str>) -> ReadError {
        ReadError::DuplicateMember { offset: self.at, name: name.into_owned() }
    }

    /// The indices of an object's names.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn names_of(&self, object: usize) -> impl Iterator<Item = u32> + '_ {
        let end = self.slots.get(object).map_or(0, |slot| slot.next());
        let first = u32::try_from(object + 1).ok();
        let next = |name: &u32| self.slots.get(*name as usize + 1).map(|value| value.next());
        std::iter::successors(first, next).take_while(move |&name| name < end)
    }

    fn name(&self, index: u32) -> Cow<'_, str> {
        let Some(slot) = self.slots.get(index as usize) else { return Cow::Borrowed("") };
        let inner = (slot.start as usize + 1)..(slot.end as usize).saturating_sub(1);
        let inner = self.text.get(inner).unwrap_or("");
        if slot.is_escaped() { Cow::Owned(strings::unescape(inner)) } else { Cow::Borrowed(inner) }
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn string(&mut self) -> Result<(), ReadError> {
        let slot = self.open();
        self.at += 1;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or(&[]);
            self.at += strings::plain_bytes(rest);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.close(slot, Kind::String, escaped);
                    return Ok(());
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.syntax("no control character inside a string")),
                None => return Err(self.syntax("the end of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                match self.hex4()? {
                    0xd800..=0xdbff => {
                        let pair = self.bytes.get(self.at..self.at + 2);
                        if pair != Some(b"\\u") {
                            return Err(ReadError::LoneSurrogate { offset: start });
                        }
                        self.at += 2;
                        match self.hex4()? {
                            0xdc00..=0xdfff => Ok(()),
                            _ => Err(ReadError::LoneSurrogate { offset: start }),
                        }
                    }
                    0xdc00..=0xdfff => Err(ReadError::LoneSurrogate { offset: start }),
                    _ => Ok(()),
                }
            }
            _ => Err(self.syntax("an escape that JSON has")),
        }
    }

    fn hex4(&mut self) -> Result<u32, ReadError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.syntax("four hexadecimal digits")) };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn digits(&mut self) -> Result<(), ReadError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.syntax("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ReadError> {
        let slot = self.open();
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let mut exponent = None;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            let digits = self.at;
            self.digits()?;
            exponent = self.text.get(digits..self.at);
        }
        if self.at - start > MAX_NUMBER_LENGTH {
            return Err(ReadError::NumberTooLong { offset: start });
        }
        // The sign was left out: the bound is the same either way.
        if exponent.is_some_and(|digits| digits.parse::<i64>().map_or(true, |e| e > MAX_EXPONENT)) {
            return Err(ReadError::ExponentTooLarge { offset: start });
        }
        self.close(slot, Kind::Number, false);
        Ok(())
    }
}
