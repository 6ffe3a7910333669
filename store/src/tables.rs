//! The tables: what is asked of each and written to it, in SQL that both databases understand.

pub(crate) mod history;
pub(crate) mod numbers;
pub(crate) mod observation;
pub(crate) mod pins;
pub(crate) mod servers;
