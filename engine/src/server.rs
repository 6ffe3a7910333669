//! One upstream server as every caller meets it: what is known of it, and the rules that keep that fresh.

pub(crate) mod asking;
pub mod driver;
pub(crate) mod keeper;
mod notes;
