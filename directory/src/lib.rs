//! The directory of MCP servers: information about a server before it is wired, with a public
//! history.
//!
//! `crawl` observes servers, `record` turns observations into entries, `log` publishes them in a
//! tamper-evident log, and `serve` serves the trust API and the pages from the entries alone. The
//! screen's verdict never affects a gate's.
#![forbid(unsafe_code)]

pub mod adjudication;
pub mod claim;
pub mod corpus;
pub mod crawl;
pub mod database;
pub mod demand;
pub mod entry;
pub mod feed;
pub mod keeping;
pub mod log;
pub mod mirror;
pub mod model;
pub mod record;
pub mod secret_file;
pub mod serve;
pub mod subject;
pub mod writer;
