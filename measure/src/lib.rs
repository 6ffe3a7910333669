//! How often Holdpoint is right, and how sure that is: bounds on rates, calibration from recorded outcomes, and mutations
//! of real contracts that no rule was tuned on.
//!
//! Pure: no file, clock, network or randomness; moments and seeds come in as arguments. Nothing here decides on a call.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod calibration;
pub mod evaluation;
pub mod friction;
pub mod plot;
mod random;
mod working_calls;
