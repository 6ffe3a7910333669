//! The process of a stdio server: its input, its output and its end.

use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use wire::StdioLaunch;
use wire::process::{Environment, ServerGroup, ServerProcess, ServerStart, StandardError};

/// The most bytes queued for a server. Above this, requests are refused.
const MAX_UNREAD_BYTES: usize = 64 * 1024 * 1024;
/// How long a server may take to exit after its input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// The input of a process. Clones write to the same one.
#[derive(Debug, Clone)]
pub(crate) struct ChildInput {
    queue: mpsc::UnboundedSender<Bytes>,
    unread: Arc<AtomicUsize>,
    closing: Arc<Notify>,
}

/// Closes the input of a process when dropped, even if there are other handles to the input.
#[derive(Debug)]
pub(crate) struct ChildGuard(ChildInput);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl ChildInput {
    /// An input without a process: writing to it fails.
    pub(crate) fn nowhere() -> ChildInput {
        let (queue, _) = mpsc::unbounded_channel();
        ChildInput { queue, unread: Arc::default(), closing: Arc::default() }
    }

    /// Whether the process is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Closes the input after what is queued. The process has some time to exit, and is killed
    /// then.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    /// Queues bytes. Never blocks.
    pub(crate) fn put(&self, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = Bytes::from(parts.concat());
        let before = self.unread.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() > MAX_UNREAD_BYTES {
            self.unread.fetch_sub(bytes.len(), Ordering::Relaxed);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.queue.send(bytes).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Output of a process.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    /// A line, and whether more lines are already buffered.
    Line(&'a [u8], bool),
    /// The beginning of a line that exceeds the limit, and the length of the line.
    TooLong(&'a [u8], u64),
    End,
}

/// A running process.
pub(crate) struct Child {
    pub(crate) input: ChildInput,
    group: ServerGroup,
    output: ChildStdout,
    process: ServerProcess,
    /// The task that writes the input; ends when the input is closed.
    writing: JoinHandle<()>,
}

impl std::fmt::Debug for Child {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Child").finish_non_exhaustive()
    }
}

impl Child {
    /// Starts a server with its own variables and the few that every program needs.
    pub(crate) fn start(launch: &StdioLaunch) -> io::Result<Child> {
        let start = ServerStart {
            group: ServerGroup::default(),
            become_with: std::env::current_exe().ok(),
            environment: Environment::Named,
            stderr: StandardError::Ours,
        };
        let (process, input, output) = ServerProcess::start_as(launch, start)?;
        let group = process.group();
        let (queue, waiting) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let input = ChildStdin::from_std(input)?;
        let closing = Arc::new(Notify::new());
        let writing = tokio::spawn(write(input, waiting, unread.clone(), closing.clone()));
        let input = ChildInput { queue, unread, closing };
        Ok(Child { input, group, output: ChildStdout::from_std(output)?, process, writing })
    }

    /// Closes the input when dropped.
    pub(crate) fn guard(&self) -> ChildGuard {
        ChildGuard(self.input.clone())
    }

    pub(crate) fn group(&self) -> ServerGroup {
        self.group.clone()
    }

    /// Reads the server's output until it ends. After the input is closed, reads for a limited time
    /// and then kills the process.
    pub(crate) async fn read(self, frame_bytes: usize, mut hear: impl FnMut(Said<'_>)) {
        let Child { output, process, input, writing, .. } = self;
        drop(input);
        let patience = async move {
            let _ = writing.await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::pin!(patience);
        let mut grace = GRACE;
        let mut lines = BufReader::with_capacity(64 * 1024, output);
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = frame_bytes as u64 + 1;
            let read = tokio::select! {
                read = read_line(&mut lines, limit, &mut line) => read,
                () = &mut patience => {
                    grace = Duration::ZERO;
                    break;
                }
            };
            match read {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if line.last() == Some(&b'\n') {
                line.pop();
                let has_more = lines.buffer().contains(&b'\n');
                hear(Said::Line(&line, has_more));
            } else if line.len() > frame_bytes {
                let rest = skip_line(&mut lines).await;
                hear(Said::TooLong(&line, line.len() as u64 + rest));
            } else {
                break;
            }
        }
        hear(Said::End);
        let _ = tokio::task::spawn_blocking(move || process.end(grace)).await;
    }
}

async fn read_line(
    lines: &mut BufReader<ChildStdout>,
    limit: u64,
    line: &mut Vec<u8>,
) -> io::Result<usize> {
    lines.take(limit).read_until(b'\n', line).await
}

async fn skip_line(lines: &mut BufReader<ChildStdout>) -> u64 {
    let mut skipped = 0;
    loop {
        let Ok(buffer) = lines.fill_buf().await else { return skipped };
        if buffer.is_empty() {
            return skipped;
        }
        let (count, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        lines.consume(count);
        skipped += count as u64;
        if is_end {
            return skipped;
        }
    }
}

async fn write(
    mut input: ChildStdin,
    mut waiting: mpsc::UnboundedReceiver<Bytes>,
    unread: Arc<AtomicUsize>,
    closing: Arc<Notify>,
) {
    loop {
        let bytes = tokio::select! {
            biased;
            bytes = waiting.recv() => bytes,
            () = closing.notified() => {
                waiting.close();
                continue;
            }
        };
        let Some(bytes) = bytes else { return };
        if input.write_all(&bytes).await.is_err() {
            return;
        }
        unread.fetch_sub(bytes.len(), Ordering::Relaxed);
    }
}
