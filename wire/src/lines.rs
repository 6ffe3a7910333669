//! Newline framing: one message a line, handed out where it lies in the reader's own buffer.
//!
//! No line makes the buffer larger than the limit; of a longer one only its first and last bytes are kept. Nothing is
//! scanned for its end twice, and a read that fails loses no byte.

use std::io::{self, Read};
use std::ops::Range;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The size of the buffer to begin with, and to come back to.
pub const START_BYTES: usize = 64 * 1024;
/// How much is kept of each end of a line over the limit: enough to find the id of an ordinary message in.
pub const TORN_BYTES: usize = 4 * 1024;
/// A buffer that grew beyond this is given back as soon as its line is done with.
pub const KEPT_BYTES: usize = 2 * 1024 * 1024;
/// A smaller one that grew is given back after this many lines in a row that did not need it: growing costs more than a
/// large line does, and large lines come in series.
pub const QUIET_LINES: usize = 64;
/// The buffer is not moved together for less room than this.
const ROOM_BYTES: usize = 16 * 1024;

/// What came next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, without its line feed and without one carriage return before that.
    Frame(&'a [u8]),
    /// A line over the limit, read to its end and dropped: its first and last [`TORN_BYTES`], and its length.
    TooLong { beginning: &'a [u8], end: &'a [u8], bytes: u64 },
    /// The end of the input; what came after the last line feed is no message. Of more than the limit it is the beginning.
    End { unfinished: &'a [u8] },
}

/// Reads lines.
pub struct LineReader<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Where in the buffer the bytes are that were read and not handed out.
    start: usize,
    end: usize,
    /// Up to here there is no line feed.
    scanned: usize,
    torn: Torn,
    /// The line that is being read is over the limit.
    is_dropping: bool,
    has_ended: bool,
    /// Lines in a row that would have fitted the buffer at its first size.
    quiet_lines: usize,
}

impl<R> std::fmt::Debug for LineReader<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The bytes may be a call's arguments, so they are not shown.
        formatter
            .debug_struct("LineReader")
            .field("limit", &self.limit)
            .field("buffer_bytes", &self.buffer.len())
            .field("waiting_bytes", &(self.end - self.start))
            .finish_non_exhaustive()
    }
}

/// What is kept of a line over the limit.
#[derive(Default)]
struct Torn {
    beginning: Vec<u8>,
    end: Vec<u8>,
    bytes: u64,
}

/// A line by its place, before it is borrowed.
enum Found {
    Frame(Range<usize>),
    TooLong,
    End(Range<usize>),
}

impl<R: Read> LineReader<R> {
    /// Blocks for the next line. An error of the input is passed on, `WouldBlock` too, and the next call goes on there.
    pub fn next_line(&mut self) -> io::Result<Line<'_>> {
        self.settle();
        let found = self.find()?;
        Ok(self.line(found))
    }

    /// Blocks for the next line, and says whether another whole one was read already.
    pub fn next_of_some(&mut self) -> io::Result<(Line<'_>, bool)> {
        self.settle();
        let found = self.find()?;
        // What was found lies before what is looked at.
        let has_more = self.has_line();
        Ok((self.line(found), has_more))
    }

    fn find(&mut self) -> io::Result<Found> {
        loop {
            if let Some(found) = self.found() {
                return Ok(found);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(count) => self.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// As [`Self::next_line`], for a task. Dropping the future loses no byte.
    pub(crate) async fn next(&mut self) -> io::Result<Line<'_>> {
        self.settle();
        let found = loop {
            if let Some(found) = self.found() {
                break found;
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let count = self.input.read(room).await?;
            self.filled(count);
        };
        Ok(self.line(found))
    }
}

impl<R> LineReader<R> {
    /// Reads lines of at most `limit` bytes, line feed and carriage return not counted.
    pub fn new(input: R, limit: usize) -> Self {
        LineReader {
            input,
            limit,
            buffer: vec![0; START_BYTES],
            start: 0,
            end: 0,
            scanned: 0,
            torn: Torn::default(),
            is_dropping: false,
            has_ended: false,
            quiet_lines: 0,
        }
    }

    /// The same lines, with another limit from the next one on.
    pub fn with_limit(self, limit: usize) -> Self {
        LineReader { limit, ..self }
    }

    /// Whether a whole line was read already, so that [`Self::next_line`] will not wait for it.
    pub fn has_line(&mut self) -> bool {
        self.newline().is_some()
    }

    fn line(&self, found: Found) -> Line<'_> {
        match found {
            Found::Frame(place) => Line::Frame(self.bytes(place)),
            Found::TooLong => Line::TooLong {
                beginning: &self.torn.beginning,
                end: &self.torn.end,
                bytes: self.torn.bytes,
            },
            Found::End(_) if self.is_dropping => Line::End { unfinished: &self.torn.beginning },
            Found::End(place) => Line::End { unfinished: self.bytes(place) },
        }
    }

    /// The next line among what was read. If there is none, there is room to read into.
    fn found(&mut self) -> Option<Found> {
        if let Some(newline) = self.newline() {
            return Some(self.take_line(newline));
        }
        // One byte is allowed for a carriage return that the line feed may follow.
        if self.is_dropping || self.end - self.start > self.limit.saturating_add(1) {
            self.drop_unfinished();
        }
        if self.has_ended {
            return Some(self.take_end());
        }
        self.make_room();
        None
    }

    /// So many bytes were read into the room; none is the end of the input.
    fn filled(&mut self, count: usize) {
        self.has_ended |= count == 0;
        self.end = self.end.saturating_add(count).min(self.buffer.len());
    }

    /// The place of the next line feed among what was read.
    fn newline(&mut self) -> Option<usize> {
        let unseen = self.buffer.get(self.scanned..self.end).unwrap_or_default();
        match memchr::memchr(b'\n', unseen) {
            Some(offset) => {
                self.scanned += offset;
                Some(self.scanned)
            }
            None => {
                self.scanned = self.end;
                None
            }
        }
    }

    fn take_line(&mut self, newline: usize) -> Found {
        let mut place = self.start..newline;
        self.start = newline + 1;
        self.scanned = self.start;
        if self.is_dropping {
            let piece = self.buffer.get(place).unwrap_or_default();
            self.torn.keep(piece);
            self.torn.finish();
            self.is_dropping = false;
            self.quiet_lines = 0;
            return Found::TooLong;
        }
        self.quiet_lines =
            if place.len() > START_BYTES { 0 } else { self.quiet_lines.saturating_add(1) };
        let line = self.buffer.get(place.clone()).unwrap_or_default();
        let has_carriage_return = line.ends_with(b"\r");
        if line.len() > self.limit.saturating_add(usize::from(has_carriage_return)) {
            self.torn.keep(line);
            self.torn.finish();
            return Found::TooLong;
        }
        place.end -= usize::from(has_carriage_return);
        Found::Frame(place)
    }

    fn take_end(&mut self) -> Found {
        let place = self.start..self.end;
        self.start = self.end;
        self.scanned = self.end;
        Found::End(place)
    }

    fn drop_unfinished(&mut self) {
        let piece = self.buffer.get(self.start..self.end).unwrap_or_default();
        self.torn.keep(piece);
        self.is_dropping = true;
        (self.start, self.end, self.scanned) = (0, 0, 0);
    }

    /// Forgets the line that was handed out before.
    fn settle(&mut self) {
        if !self.is_dropping {
            self.torn.clear();
        } else if self.has_ended {
            // What there was of it has been told with the end.
            self.is_dropping = false;
            self.torn.clear();
        }
        if self.start == self.end {
            (self.start, self.end, self.scanned) = (0, 0, 0);
        }
        let is_large = self.buffer.len() > KEPT_BYTES
            || (self.buffer.len() > START_BYTES && self.quiet_lines >= QUIET_LINES);
        // Half a buffer is left for what comes, or the next read would make it grow again.
        if is_large && self.end - self.start <= START_BYTES / 2 {
            self.resize(START_BYTES);
        }
    }

    /// Sees to it that there is a place to read into.
    fn make_room(&mut self) {
        if self.buffer.len() - self.end >= ROOM_BYTES {
            return;
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        // A window that fills half the buffer would be moved again soon; one that fills it all has to grow.
        if self.end > self.buffer.len() / 2 {
            let most = self.limit.saturating_add(2).max(START_BYTES);
            let size = self.buffer.len().saturating_mul(2).min(most);
            if size > self.buffer.len() {
                self.resize(size);
            }
        }
    }

    /// Moves the bytes that wait into a buffer of another size. A new one, because the system hands out large ones zeroed
    /// without touching them, which growing one in place cannot use.
    fn resize(&mut self, size: usize) {
        let mut buffer = vec![0; size];
        let waiting = self.buffer.get(self.start..self.end).unwrap_or_default();
        if let Some(place) = buffer.get_mut(..waiting.len()) {
            place.copy_from_slice(waiting);
            give_back(std::mem::replace(&mut self.buffer, buffer));
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
    }

    fn bytes(&self, place: Range<usize>) -> &[u8] {
        self.buffer.get(place).unwrap_or_default()
    }
}

/// Frees a buffer that was large once. Freed whole, it would teach the allocator to keep blocks of its size for later,
/// and what a gate needed for one long list would be resident for as long as it runs.
fn give_back(mut buffer: Vec<u8>) {
    buffer.truncate(START_BYTES);
    buffer.shrink_to_fit();
}

impl Torn {
    fn keep(&mut self, piece: &[u8]) {
        let missing = TORN_BYTES.saturating_sub(self.beginning.len()).min(piece.len());
        self.beginning.extend_from_slice(piece.get(..missing).unwrap_or_default());
        // One byte more, for a carriage return that turns out to be no part of the line.
        let last = piece.len().saturating_sub(TORN_BYTES + 1);
        self.end.extend_from_slice(piece.get(last..).unwrap_or_default());
        let surplus = self.end.len().saturating_sub(TORN_BYTES + 1);
        self.end.drain(..surplus);
        let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(count);
    }

    /// The line has ended.
    fn finish(&mut self) {
        if self.end.ends_with(b"\r") {
            self.end.pop();
            self.bytes = self.bytes.saturating_sub(1);
            self.beginning.truncate(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        }
        let surplus = self.end.len().saturating_sub(TORN_BYTES);
        self.end.drain(..surplus);
    }

    fn clear(&mut self) {
        self.beginning.clear();
        self.end.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
