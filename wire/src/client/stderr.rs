//! Keeps the end of a server's standard error; earlier output is discarded.

use crate::ServerText;
use crate::limits::MAX_STDERR_TAIL_BYTES;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;

#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(MAX_STDERR_TAIL_BYTES);
        self.bytes.drain(..excess);
        self.cut |= excess > 0;
    }

    fn text(&self) -> ServerText {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        // Truncated output may begin in the middle of a line or even a character, so start at the
        // first whole line.
        let first_line = bytes.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let start = if self.cut { first_line } else { 0 };
        let shown = bytes.get(start..).filter(|shown| !shown.is_empty()).unwrap_or(&bytes);
        ServerText::lines(shown)
    }
}

/// Follows a standard error until its end, or until this is dropped.
#[derive(Debug)]
pub(super) struct StderrTail {
    tail: Arc<Mutex<Tail>>,
    reading: JoinHandle<()>,
}

impl StderrTail {
    pub(super) fn follow(mut input: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let tail = Arc::new(Mutex::new(Tail::default()));
        let shared = Arc::clone(&tail);
        let reading = tokio::spawn(async move {
            let mut piece = [0_u8; 4096];
            while let Ok(count @ 1..) = input.read(&mut piece).await {
                let piece = piece.get(..count).unwrap_or(&[]);
                shared.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
            }
        });
        StderrTail { tail, reading }
    }

    pub(super) fn text(&self) -> ServerText {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Waits until no process can write to it anymore.
    pub(super) async fn finished(&mut self) {
        if !self.reading.is_finished() {
            let _ = (&mut self.reading).await;
        }
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded_and_begins_with_a_whole_line() {
        let mut tail = Tail::default();
        tail.push(b"first line\n");
        tail.push(&vec![b'x'; MAX_STDERR_TAIL_BYTES - 11]);
        assert!(tail.text().as_str().starts_with("first line\n"), "at the limit all is kept");
        tail.push(b"!");
        assert_eq!(tail.bytes.len(), MAX_STDERR_TAIL_BYTES);
        assert!(tail.text().as_str().starts_with('x'), "one past it a line is lost");
        assert!(tail.text().as_str().ends_with('!'));
    }

    #[test]
    fn one_endless_line_is_still_shown() {
        let mut tail = Tail::default();
        tail.push(&vec![b'x'; MAX_STDERR_TAIL_BYTES * 3]);
        assert_eq!(tail.text().as_str().len(), MAX_STDERR_TAIL_BYTES);
    }
}
