//! The directory over HTTP: the trust API for agents, pages for people, and the files of the log.
//!
//! Everything is rendered from the log's model. Agents get no server text; pages show it, escaped.

pub mod api;
pub mod claims;
pub mod http;
mod markdown;
pub mod network;
mod pages;
mod plot;
pub mod rates;
pub mod site;

pub use site::{Site, SiteParts};
