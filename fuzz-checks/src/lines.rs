//! However the input is split into pieces, the lines are those of the whole input.
//!
//! The first two bytes of an input are the line limit, the third determines the size of the pieces,
//! and the rest is read.

use std::io::{self, Read};
use wire::lines::{Line, LineReader, TORN_BYTES};

/// Returns pieces of several sizes, and is interrupted now and then.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
    reads: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        assert!(!room.is_empty());
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.reads.is_multiple_of(7) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let size = 1 + self.size * (self.reads % 3);
        let count = size.min(room.len()).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(count);
        room[..count].copy_from_slice(piece);
        self.rest = rest;
        Ok(count)
    }
}

pub fn run(bytes: &[u8]) {
    let Some((&[low, high, size], input)) = bytes.split_first_chunk::<3>() else { return };
    let limit = usize::from(u16::from_le_bytes([low, high]));
    let size = usize::from(size) * usize::from(size);
    let mut reader = LineReader::new(Pieces { rest: input, size, reads: 0 }, limit);
    let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        next(&mut reader, |read| match read {
            Line::Frame(frame) => assert!(frame == line && line.len() <= limit),
            Line::TooLong { beginning, end, bytes } => {
                assert!(line.len() > limit);
                assert_eq!(bytes, line.len() as u64);
                assert!(beginning == &line[..line.len().min(TORN_BYTES)]);
                assert!(end == &line[line.len().saturating_sub(TORN_BYTES)..]);
            }
            Line::End { .. } => panic!("an end before the end"),
        });
    }
    next(&mut reader, |read| {
        let Line::End { unfinished: rest } = read else { panic!("a line past the end") };
        assert!(unfinished.starts_with(rest));
        assert!(rest.len() == unfinished.len() || unfinished.len() > limit + 1);
    });
    next(&mut reader, |read| assert!(matches!(read, Line::End { unfinished: [] })));
}

/// After an error, the reader continues where it was.
fn next(reader: &mut LineReader<Pieces<'_>>, check: impl FnOnce(Line<'_>)) {
    let is_announced = reader.has_line();
    loop {
        match reader.next_line() {
            Ok(line) => return check(line),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                assert!(!is_announced, "a line that was there had to be waited for");
            }
        }
    }
}
