//! Signals sent to the gate are meant for the server.

#[cfg(unix)]
use super::Happening;
#[cfg(unix)]
use std::sync::mpsc::Sender;

#[cfg(unix)]
const FORWARDED: [(i32, bool); 6] =
    [(1, true), (2, true), (3, true), (15, true), (10, false), (12, false)];

/// Whether a signal requests termination.
#[cfg(unix)]
pub(super) fn is_end(number: i32) -> bool {
    FORWARDED.iter().any(|(known, is_end)| *known == number && *is_end)
}

#[cfg(not(unix))]
pub(super) fn is_end(_: i32) -> bool {
    true
}

/// Forwards the gate's signals to the server.
#[cfg(unix)]
pub(super) fn forward_signals(happens: &Sender<Happening>) {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let mut kinds = tokio::task::JoinSet::new();
        for (number, _) in FORWARDED {
            let happens = happens.clone();
            let Ok(mut stream) = signal(SignalKind::from_raw(number)) else { continue };
            kinds.spawn(async move {
                while stream.recv().await.is_some() {
                    if happens.send(Happening::Signal(number)).is_err() {
                        return;
                    }
                }
            });
        }
        while kinds.join_next().await.is_some() {}
    });
}
