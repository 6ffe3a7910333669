//! A stdio server that the gateway started: its input, its output and its end.

use bytes::Bytes;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use wire::StdioLaunch;
use wire::process::{Environment, ServerGroup, ServerProcess, ServerStart};

/// The most bytes that wait for a server to read them. Past it requests are refused.
const MAX_UNREAD_BYTES: usize = 64 * 1024 * 1024;
/// How long a server may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// The input of a process. Clones write to the same one.
#[derive(Debug, Clone)]
pub(crate) struct ChildInput {
    queue: mpsc::UnboundedSender<Bytes>,
    unread: Arc<AtomicUsize>,
}

impl ChildInput {
    /// Whether the process is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Puts some bytes behind all others. It never blocks.
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

/// What came from a process.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    /// A line, and whether more of them were read already.
    Line(&'a [u8], bool),
    /// A line over the limit, of which this is the beginning.
    TooLong(&'a [u8], u64),
    End,
}

/// A process that was started.
pub(crate) struct Child {
    pub(crate) input: ChildInput,
    group: ServerGroup,
    output: ChildStdout,
    process: ServerProcess,
}

impl std::fmt::Debug for Child {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Child").finish_non_exhaustive()
    }
}

impl Child {
    /// Starts a server with its own variables and a few that every program needs.
    pub(crate) fn start(launch: &StdioLaunch) -> io::Result<Child> {
        let start = ServerStart {
            group: ServerGroup::default(),
            become_with: std::env::current_exe().ok(),
            environment: Environment::Named,
            stderr: Stdio::inherit(),
        };
        let (process, input, output) = ServerProcess::start_as(launch, start)?;
        let group = process.group();
        let (queue, waiting) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let input = ChildStdin::from_std(input)?;
        tokio::spawn(write(input, waiting, unread.clone()));
        let input = ChildInput { queue, unread };
        Ok(Child { input, group, output: ChildStdout::from_std(output)?, process })
    }

    pub(crate) fn group(&self) -> ServerGroup {
        self.group.clone()
    }

    /// Reads what the server says until its end, and then ends it.
    pub(crate) async fn read(self, frame_bytes: usize, mut hear: impl FnMut(Said<'_>)) {
        let Child { output, process, input, .. } = self;
        drop(input);
        let mut lines = BufReader::with_capacity(64 * 1024, output);
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = frame_bytes as u64 + 1;
            match (&mut lines).take(limit).read_until(b'\n', &mut line).await {
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
        let _ = tokio::task::spawn_blocking(move || process.end(GRACE)).await;
    }
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
) {
    while let Some(bytes) = waiting.recv().await {
        if input.write_all(&bytes).await.is_err() {
            return;
        }
        unread.fetch_sub(bytes.len(), Ordering::Relaxed);
    }
}
