//! One file a command.

pub(crate) mod approve;
pub(crate) mod attest;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod hash;
pub(crate) mod history;
pub(crate) mod hosts;
pub(crate) mod incident;
pub(crate) mod lifecycle;
pub(crate) mod man;
pub(crate) mod pin;
pub(crate) mod receipts;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod unwire;
pub(crate) mod wire;
pub(crate) mod wiring;
