//! The gate around one session of an application: messages in, what to do with them out. The SDKs are shells of it, in
//! WebAssembly and in Python.
//!
//! Pure: strings come in and go out, time is an argument, and the shell owns connections, files and timers. Every rule is
//! in `contract` and `gate`; here is only when a list is asked for and what waits for it.
#![forbid(unsafe_code)]

mod actions;
pub mod checks;
mod options;
mod pins;
mod session;

pub use options::OptionsError;
pub use pins::{PinsError, revision_of};
pub use session::{OpenError, RepinError, Session};
