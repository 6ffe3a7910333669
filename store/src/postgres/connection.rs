//! A connection and its thread: the thread does the I/O, callers wait for it on any thread.

use super::address::{Address, Encryption};
use super::tls::Tls;
use crate::error::StoreError;
use std::future::poll_fn;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

/// How long connecting may take, including TLS and login.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How much longer the thread may take to report a failure.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait until the closing message is sent, so that the server logs no error.
const FAREWELL_PATIENCE: Duration = Duration::from_millis(200);

/// The events that the connection's thread received.
#[derive(Debug, Default)]
pub(super) struct Heard {
    state: Mutex<HeardState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct HeardState {
    notifications: u64,
    is_over: bool,
}

impl Heard {
    fn state(&self) -> MutexGuard<'_, HeardState> {
        // Ignore poisoning: no holder of the lock can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut HeardState)) {
        change(&mut self.state());
        self.moved.notify_all();
    }

    pub(super) fn notifications(&self) -> u64 {
        self.state().notifications
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits for a notification beyond those counted, or for the end of the connection.
    pub(super) fn wait_beyond(&self, counted: u64, patience: Duration) {
        self.wait_while(patience, |state| state.notifications == counted && !state.is_over);
    }

    fn wait_for_the_end(&self, patience: Duration) {
        self.wait_while(patience, |state| !state.is_over);
    }

    fn wait_while(&self, patience: Duration, mut is_waiting: impl FnMut(&HeardState) -> bool) {
        let deadline = Instant::now() + patience;
        let mut state = self.state();
        while is_waiting(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.moved.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A client whose connection ends when it is dropped.
pub(super) struct Connected {
    client: Option<Client>,
    /// Dropping it ends the connection without a closing message.
    end: Option<oneshot::Sender<()>>,
    pub(super) heard: Arc<Heard>,
}

impl Connected {
    /// Connects within [`CONNECT_PATIENCE`].
    pub(super) fn to(address: &Address) -> Result<Connected, StoreError> {
        let unreachable = |reason| StoreError::Unreachable { place: address.to_string(), reason };
        let heard = Arc::new(Heard::default());
        let (sender, receiver) = mpsc::sync_channel(1);
        let (end, ended) = oneshot::channel();
        let (wanted, hearing) = (address.clone(), Arc::clone(&heard));
        thread::Builder::new()
            .name("holdpoint-postgres".to_owned())
            .spawn(move || live(&wanted, &sender, &hearing, ended))
            .map_err(|error| unreachable(error.to_string()))?;
        match receiver.recv_timeout(CONNECT_PATIENCE + GRACE) {
            Ok(Ok(client)) => Ok(Connected { client: Some(client), end: Some(end), heard }),
            Ok(Err(reason)) => Err(unreachable(reason)),
            Err(_) => Err(unreachable(no_answer())),
        }
    }

    /// The client, unless the connection is being closed.
    pub(super) fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // Without its client, the connection sends its closing message and ends.
        drop(self.client.take());
        self.heard.wait_for_the_end(FAREWELL_PATIENCE);
        drop(self.end.take());
    }
}

fn no_answer() -> String {
    format!("no answer within {} seconds", CONNECT_PATIENCE.as_secs())
}

type Answer = SyncSender<Result<Client, String>>;

/// The body of the connection's thread.
fn live(address: &Address, answer: &Answer, heard: &Heard, ended: oneshot::Receiver<()>) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            runtime.block_on(async {
                tokio::select! {
                    () = connect_and_drive(address, answer, heard) => {}
                    _ = ended => {}
                }
            });
            // Do not wait for a name lookup that still hangs.
            runtime.shutdown_background();
        }
        Err(error) => give(answer, Err(error.to_string())),
    }
    heard.note(|state| state.is_over = true);
}

/// Sends the result. The caller may have stopped waiting.
fn give(answer: &Answer, result: Result<Client, String>) {
    let _ = answer.send(result);
}

async fn connect_and_drive(address: &Address, answer: &Answer, heard: &Heard) {
    match &address.encryption {
        Encryption::Plain => {
            let connecting = address.config.connect(NoTls);
            drive(within_patience(connecting).await, answer, heard).await;
        }
        Encryption::Verified { roots } => match Tls::trusting(roots.as_deref()) {
            Ok(tls) => {
                let connecting = address.config.connect(tls);
                drive(within_patience(connecting).await, answer, heard).await;
            }
            Err(error) => {
                let file = roots.as_ref().map_or_else(String::new, |path| {
                    format!("the certificates in `{}`: ", path.display())
                });
                give(answer, Err(format!("{file}{error}")));
            }
        },
    }
}

async fn within_patience<T>(
    connecting: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    match tokio::time::timeout(CONNECT_PATIENCE, connecting).await {
        Ok(connected) => connected.map_err(|error| reason(&error)),
        Err(_) => Err(no_answer()),
    }
}

async fn drive<S, T>(
    connected: Result<(Client, Connection<S, T>), String>,
    answer: &Answer,
    heard: &Heard,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = match connected {
        Ok((client, connection)) => {
            give(answer, Ok(client));
            connection
        }
        Err(reason) => return give(answer, Err(reason)),
    };
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            heard.note(|state| state.notifications = state.notifications.wrapping_add(1));
        }
    }
}

/// The message of the innermost cause. The server's messages are given without their detail, which
/// may quote values.
pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
