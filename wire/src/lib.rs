//! MCP on the wire: messages kept as the bytes they came as, framing, stdio and streamable HTTP, both protocol eras.
//!
//! Today this crate observes: [`observe()`] starts or reaches a server, does the handshake, asks for every list and
//! hands back the raw JSON. It judges nothing; what the bytes mean is for `contract` to say.

mod correlate;
mod endpoint;
pub mod envelope;
mod error;
mod framing;
mod http;
mod limits;
pub mod listing;
pub mod lines;
mod message;
mod observe;
pub mod remote;
mod revision;
mod server_text;
mod stdio;
mod upstream;

pub use crate::http::address::AddressClass;
pub use endpoint::{BadUrl, EndpointUrl};
pub use error::{Awaited, ObserveError};
pub use limits::{MAX_STDERR_TAIL_BYTES, ObserveLimits};
pub use observe::{ListOutcome, Observed, Progress, observe};
pub use revision::{Era, Revision};
pub use server_text::ServerText;
pub use upstream::{HttpEndpoint, StdioLaunch, Upstream};
