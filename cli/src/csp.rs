//! The ten tests of the CSP Tool Safety Profile for MCP gateways. They test any gateway from
//! outside, with two callers in front of it, the suite's own server behind it, and hooks for
//! actions that only an operator can take.
//!
//! A test that needs something the configuration does not name is reported as not applicable, with
//! the reason; it does not pass.

mod caller;
mod config;
mod hooks;
mod oauth_proxy;
mod profile;
mod report;
mod upstream;

pub(crate) use config::SuiteConfig;
pub(crate) use profile::run;
pub(crate) use report::{Outcome, Report};
