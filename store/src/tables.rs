//! The queries and statements of each table, in SQL that both databases understand.

mod api_keys;
mod approvals;
mod drills;
pub(crate) mod events;
mod grant_seal;
pub(crate) mod history;
mod incident;
pub(crate) mod numbers;
pub(crate) mod observation;
pub(crate) mod pins;
pub(crate) mod servers;
mod sign_ins;
mod statistics;
pub(crate) mod switch_seal;
