//! MCP on the wire: messages kept as the bytes they came as, framing, stdio and streamable HTTP, both protocol eras.
//!
//! Two ways of being with a server: [`observe()`] starts or reaches one, asks for every list and hands back the raw JSON;
//! [`lines`], [`envelope`] and [`remote`] are what the gate reads and sends messages with while a session lasts. Nothing is
//! judged here; what the bytes mean is for `contract` to say, and what becomes of a call for `engine`.

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
