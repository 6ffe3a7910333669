//! Newline framing: one message a line, a bound on the line, and nothing lost when a wait is given up.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// How much is asked of the pipe at once.
const READ_BYTES: usize = 64 * 1024;

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A line, without its line feed and without a carriage return before that.
    Line(Vec<u8>),
    /// A line over the limit. It was read to its end and dropped; its first bytes are kept.
    TooLong { beginning: Vec<u8> },
    /// The end; whatever came after the last line feed is no message.
    End { unfinished_bytes: usize },
}

/// The first bytes of an over-long line that are kept: enough to see whether it looks like a message.
const BEGINNING_BYTES: usize = 16;

/// Reads frames. Dropping the future of [`FrameReader::next`] loses no byte.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    input: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    over_limit: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        let input = BufReader::with_capacity(READ_BYTES, input);
        FrameReader { input, limit, line: Vec::new(), over_limit: false }
    }

    pub(crate) async fn next(&mut self) -> std::io::Result<Frame> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                let unfinished_bytes = std::mem::take(&mut self.line).len();
                self.over_limit = false;
                return Ok(Frame::End { unfinished_bytes });
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let piece = available.get(..end.unwrap_or(available.len())).unwrap_or(available);
            let consumed = piece.len() + usize::from(end.is_some());
            if !self.over_limit {
                // A carriage return before the line feed is no part of the line; one byte is allowed for it.
                if self.line.len() + piece.len() > self.limit.saturating_add(1) {
                    self.over_limit = true;
                    let missing = BEGINNING_BYTES.saturating_sub(self.line.len()).min(piece.len());
                    self.line.extend_from_slice(piece.get(..missing).unwrap_or(piece));
                    self.line.truncate(BEGINNING_BYTES);
                    self.line.shrink_to_fit();
                } else {
                    self.line.extend_from_slice(piece);
                }
            }
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(self.finish());
            }
        }
    }

    fn finish(&mut self) -> Frame {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.over_limit) {
            return Frame::TooLong { beginning: line };
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() > self.limit {
            line.truncate(BEGINNING_BYTES);
            return Frame::TooLong { beginning: line };
        }
        Frame::Line(line)
    }

    /// Reads and forgets everything until the end, so that a server that is ending is not stuck on a full pipe.
    pub(crate) async fn drain(&mut self) {
        while let Ok(available) = self.input.fill_buf().await {
            let count = available.len();
            if count == 0 {
                return;
            }
            self.input.consume(count);
        }
    }
}

#[cfg(test)]
mod tests;
