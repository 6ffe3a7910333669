//! Walks over JSON syntax without building anything, and reports where each value ends or that the
//! text is not JSON.
//!
//! The bytes need not be UTF-8; the caller checks that if it needs text. Nesting costs one bit per
//! level.

use super::MAX_SCAN_DEPTH;
use super::plain::plain_bytes;
use super::text::Text;

/// Why the walk stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Syntax,
    TooDeep,
}

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many objects and arrays are currently open.
    open: usize,
    /// The deepest nesting so far.
    deepest: usize,
    /// Whether a carriage return or line feed occurred between tokens. Inside strings they are not
    /// valid JSON.
    has_line_break: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0, open: 0, deepest: 0, has_line_break: false }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn has_line_break(&self) -> bool {
        self.has_line_break
    }

    /// How many objects and arrays are open at this position.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    pub(super) fn deepest(&self) -> usize {
        self.deepest
    }

    /// Restarts the measurement of the deepest nesting at this position.
    pub(super) fn forget_deepest(&mut self) {
        self.deepest = self.open;
    }

    /// The current position. Passed to [`Self::since`] later, it gives the bytes in between.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn since(&self, place: usize) -> &'a [u8] {
        self.bytes.get(place..self.at).unwrap_or_default()
    }

    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn white_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => self.has_line_break = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Accepts trailing white space, then requires the end of the text.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.white_space();
        if self.at < self.bytes.len() { Err(Fault::Syntax) } else { Ok(()) }
    }

    /// Enters the object or array that starts here.
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'{' | b'[')) {
            return Err(Fault::Syntax);
        }
        if self.open >= MAX_SCAN_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.at += 1;
        self.open += 1;
        self.deepest = self.deepest.max(self.open);
        Ok(())
    }

    /// The name of the next member of the current object, leaving the cursor at its value. Returns
    /// `None` at the closing brace, which is consumed.
    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn member(&mut self, is_first: bool) -> Result<Option<Text<'a>>, Fault> {
        if self.leaves(b'}', is_first)? { Ok(None) } else { self.name().map(Some) }
    }

    /// Whether the current array has another element. If so, the cursor is at that element.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn item(&mut self, is_first: bool) -> Result<bool, Fault> {
        Ok(!self.leaves(b']', is_first)?)
    }

    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn leaves(&mut self, closing: u8, is_first: bool) -> Result<bool, Fault> {
        self.white_space();
        match self.peek() {
            Some(byte) if byte == closing => {
                self.at += 1;
                self.open = self.open.saturating_sub(1);
                Ok(true)
            }
            Some(_) if is_first => Ok(false),
            Some(b',') => {
                self.at += 1;
                self.white_space();
                Ok(false)
            }
            _ => Err(Fault::Syntax),
        }
    }

    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn name(&mut self) -> Result<Text<'a>, Fault> {
        let name = self.string()?;
        self.white_space();
        if self.peek() != Some(b':') {
            return Err(Fault::Syntax);
        }
        self.at += 1;
        self.white_space();
        Ok(name)
    }

    /// Skips the value that starts here and returns its bytes.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn value(&mut self) -> Result<&'a [u8], Fault> {
        let start = self.at;
        match self.peek() {
            Some(b'{' | b'[') => self.nested()?,
            _ => self.scalar()?,
        }
        Ok(self.since(start))
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn nested(&mut self) -> Result<(), Fault> {
        let mut nesting = Nesting::default();
        loop {
            match self.peek() {
                Some(opening @ (b'{' | b'[')) => {
                    let is_object = opening == b'{';
                    nesting.push(is_object);
                    let depth = self.open + nesting.depth;
                    if depth > MAX_SCAN_DEPTH {
                        return Err(Fault::TooDeep);
                    }
                    self.deepest = self.deepest.max(depth);
                    self.at += 1;
                    self.white_space();
                    // In ASCII, each closing bracket is two after its opening one.
                    if self.peek() != Some(opening + 2) {
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.closes(&mut nesting)? {
                return Ok(());
            }
        }
    }

    /// Called after a value: closes the objects and arrays that end here. Returns whether the
    /// outermost one was closed; if not, the cursor is at the next value.
    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn closes(&mut self, nesting: &mut Nesting) -> Result<bool, Fault> {
        loop {
            self.white_space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.white_space();
                    if nesting.is_object() {
                        self.name()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if nesting.is_object() => {}
                Some(b']') if !nesting.is_object() => {}
                _ => return Err(Fault::Syntax),
            }
            self.at += 1;
            nesting.pop();
            if nesting.depth == 0 {
                return Ok(true);
            }
        }
    }

    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn scalar(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => Err(Fault::Syntax),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(Fault::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(Fault::Syntax);
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
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
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Skips the string that starts here.
    #[inline]
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn string(&mut self) -> Result<Text<'a>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(Fault::Syntax);
        }
        self.at += 1;
        let start = self.at;
        let mut escapes = 0;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += plain_bytes(rest);
            match self.peek() {
                Some(b'"') => {
                    let inner = self.since(start);
                    self.at += 1;
                    return Ok(Text { inner, escapes });
                }
                Some(b'\\') => {
                    escapes += 1;
                    self.escape()?;
                }
                _ => return Err(Fault::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
                if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Fault::Syntax);
                }
                self.at += 6;
                Ok(())
            }
            _ => Err(Fault::Syntax),
        }
    }
}

/// A stack of bits: which of the open brackets are braces. Up to 64 levels need no allocation.
#[derive(Debug, Default)]
struct Nesting {
    top: u64,
    depth: usize,
    below: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn push(&mut self, is_object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(is_object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.top >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64)
            && let Some(top) = self.below.pop()
        {
            self.top = top;
        }
    }

    #[inline]
    fn is_object(&self) -> bool {
        self.top & 1 == 1
    }
}

#[cfg(test)]
mod tests;
