//! Splits a stream of bytes into lines, in constant memory.

use crate::folder::MAX_LINE_BYTES;
use std::io::{self, Read};

/// The first read is small, because in a folder with thousands of chains most segments are. Later
/// reads are larger.
const FIRST_CHUNK_BYTES: usize = 8 * 1024;
const CHUNK_BYTES: usize = 256 * 1024;

/// A piece of a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'b> {
    /// A line, without its newline.
    Line(&'b [u8]),
    /// The bytes after the last newline.
    Tail(&'b [u8]),
    /// A line above the length limit, which was skipped.
    TooLong,
}

/// Splits its input at newlines.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The range of the buffer that was not returned yet.
    unread: std::ops::Range<usize>,
    is_at_end: bool,
    /// The number of bytes returned or skipped, including newlines.
    consumed: u64,
}

impl<R: Read> LineReader<R> {
    pub fn new(source: R) -> Self {
        LineReader { source, buffer: Vec::new(), unread: 0..0, is_at_end: false, consumed: 0 }
    }

    /// The position in the stream at which the next piece starts.
    pub fn position(&self) -> u64 {
        self.consumed
    }

    /// The next piece; `None` at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece<'_>>> {
        let mut searched = 0;
        let mut skipped = 0_u64;
        loop {
            let unread = self.buffer.get(self.unread.clone()).unwrap_or_default();
            let found = memchr::memchr(b'\n', unread.get(searched..).unwrap_or_default());
            if let Some(found) = found {
                let start = self.unread.start;
                let end = start + searched + found;
                self.unread.start = end + 1;
                self.consumed += skipped + (end + 1 - start) as u64;
                if skipped > 0 || end + 1 - start > MAX_LINE_BYTES {
                    return Ok(Some(Piece::TooLong));
                }
                return Ok(self.buffer.get(start..end).map(Piece::Line));
            }
            searched = unread.len();
            if searched > MAX_LINE_BYTES {
                skipped += searched as u64;
                searched = 0;
                self.unread.start = self.unread.end;
            }
            if self.is_at_end {
                let rest = self.unread.clone();
                self.unread.start = self.unread.end;
                self.consumed += skipped + rest.len() as u64;
                return Ok(match (skipped, rest.is_empty()) {
                    (0, true) => None,
                    (0, false) => self.buffer.get(rest).map(Piece::Tail),
                    _ => Some(Piece::TooLong),
                });
            }
            self.fill()?;
        }
    }

    /// Reads more data after the unread range.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let chunk = (self.buffer.len() * 4).clamp(FIRST_CHUNK_BYTES, CHUNK_BYTES);
        let wanted = self.unread.end + chunk;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let room = self.buffer.get_mut(self.unread.end..).unwrap_or_default();
        loop {
            match self.source.read(room) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => self.unread.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes a few at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn pieces(bytes: &[u8], step: usize) -> Vec<String> {
        let mut reader = LineReader::new(Slow(bytes, step));
        let mut found = Vec::new();
        while let Some(piece) = reader.next_piece().unwrap() {
            found.push(match piece {
                Piece::Line(line) => format!("line {}", line.len()),
                Piece::Tail(tail) => format!("tail {}", tail.len()),
                Piece::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(reader.position(), bytes.len() as u64);
        found
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        for step in [1, 2, 3, 7, 1_000] {
            assert_eq!(pieces(b"a\nbb\n\nccc", step), ["line 1", "line 2", "line 0", "tail 3"]);
            assert_eq!(pieces(b"", step), [""; 0]);
            assert_eq!(pieces(b"a\n", step), ["line 1"]);
        }
    }

    #[test]
    fn a_line_at_the_limit_is_read_and_one_past_it_is_skipped() {
        let line = |length: usize| [vec![b'x'; length - 1], b"\n".to_vec()].concat();
        for step in [4_096, usize::MAX] {
            let full = [line(MAX_LINE_BYTES), line(2)].concat();
            assert_eq!(
                pieces(&full, step),
                [format!("line {}", MAX_LINE_BYTES - 1), "line 1".into()]
            );
            for length in [MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES] {
                let long = [line(length), line(2)].concat();
                assert_eq!(pieces(&long, step), ["too long", "line 1"], "{length} by {step}");
            }
            assert_eq!(pieces(&vec![b'x'; 2 * MAX_LINE_BYTES], step), ["too long"]);
        }
    }
}
