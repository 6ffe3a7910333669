//! MCP on the wire: messages kept as their original bytes, framing, stdio and streamable HTTP, both
//! protocol eras.
//!
//! There are two ways to talk to a server. [`observe()`] starts or reaches one, requests every list
//! and returns the raw JSON. [`lines`], [`envelope`] and [`remote`] are what the gate uses to
//! exchange messages during a session. Nothing is judged here: `contract` interprets the bytes, and
//! `engine` decides about calls.

pub mod api;
pub mod application;
pub mod attestation;
pub mod authorizer;
mod client;
pub mod confinement;
pub mod dialer;
pub mod document;
mod endpoint;
mod error;
mod http;
mod limits;
pub mod lines;
mod message;
mod observe;
pub mod process;
pub mod remote;
mod revision;
pub mod service;
mod upstream;

pub use crate::http::address::AddressClass;
pub use ::envelope::listing::{self, ListOutcome};
pub use ::envelope::{self, Answer, ServerText};
pub use endpoint::{BadUrl, EndpointUrl, PlainUrl};
pub use error::{Awaited, ObserveError};
pub use limits::{MAX_STDERR_TAIL_BYTES, ObserveLimits};
pub use observe::trial::{BeforeCalls, CallOutcome, Trial, Tried, TriedServer, try_calls};
pub use observe::{Observed, Progress, observe, observe_as};
pub use revision::{Era, Revision};
pub use upstream::{HttpEndpoint, StdioLaunch, Upstream};
