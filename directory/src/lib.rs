//! The directory of MCP servers: what is known of a server before it is wired, and a public history of it.
//!
//! `crawl` observes servers, `record` makes entries of what was seen, `log` publishes them so that nobody can rewrite them,
//! and `serve` answers the trust API and the pages from the entries alone. A verdict of the screen never moves a gate's.
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
