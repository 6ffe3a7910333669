//! The tables: what is asked of each and written to it, in SQL that both databases understand.

mod api_keys;
mod approvals;
pub(crate) mod events;
pub(crate) mod history;
mod incident;
pub(crate) mod numbers;
pub(crate) mod observation;
pub(crate) mod pins;
pub(crate) mod servers;
mod statistics;
pub(crate) mod switch_seal;
