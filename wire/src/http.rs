//! HTTP as the client uses it: allowed addresses, connections, headers, bodies and event streams.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod connect;
pub(crate) mod headers;
pub(crate) mod silence;
pub(crate) mod sse;
pub(crate) mod tls;
