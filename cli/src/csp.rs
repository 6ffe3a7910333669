//! The ten tests of the CSP Tool Safety Profile for MCP gateways, against any gateway, from outside: two callers in front of
//! it, a server of the suite's own behind it, and hooks for what only an operator can do.
//!
//! A test that rests on something the configuration does not name is not applicable, with the reason; it does not pass.

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
