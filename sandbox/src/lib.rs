//! Starts a program confined: it can only see the files and reach the hosts that its profile names.
//!
//! [`confine`] turns a [`Profile`] and a [`Launch`] into a `Command` and a [`Watch`]. The command
//! starts this program again with [`HELPER`] as its first argument. That process confines itself
//! while it is single-threaded, and stays as the first process of the new namespaces. Only this
//! crate contains `unsafe` code, and it makes no decisions about calls.

mod confine;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod elsewhere;
mod event;
#[cfg(target_os = "linux")]
mod hello;
mod host_rule;
#[cfg(target_os = "linux")]
mod linux;
mod observed;
mod profile;
mod refusal;
#[cfg(unix)]
mod runtime;
#[cfg(target_os = "macos")]
mod seatbelt;
mod support;
mod switch;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use seatbelt as system;

pub use confine::{Confined, Embedder, Launch, Watch, confine};
#[cfg(not(unix))]
pub use elsewhere::runtime_of;
pub use event::{BlockReason, Blocked, Event, Events};
pub use host_rule::{BadRule, HostRule, Reach};
pub use observed::{Access, AccessKind, Outcome};
pub use profile::{FilePolicy, Level, Limits, NetworkPolicy, Profile, UnknownWord};
pub use refusal::Refusal;
#[cfg(unix)]
pub use runtime::{DEFAULT_PATH, find_program, runtime_of};
pub use support::{Support, support};
pub use switch::EgressSwitch;

use std::process::ExitCode;

/// Feeds bytes to each parser of data that a confined program, or a file in its workspace,
/// controls. For the fuzzer.
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub fn read_untrusted(bytes: &[u8]) {
    let _ = hello::read(bytes);
    linux::read_untrusted(bytes);
}

/// The hidden first argument that makes this program act as the helper that confines a server.
pub const HELPER: &str = "__confine";

/// Acts as the helper if this process was started as one. Call it first in `main`, before starting
/// any thread.
pub fn helper_main() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == HELPER).then(|| system::become_helper(words))
}
