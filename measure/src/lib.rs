//! Measures how often Holdpoint is right, and with what confidence: bounds on rates, calibration
//! from recorded outcomes, and mutations of real contracts that no rule was tuned on.
//!
//! Pure: no files, clock, network or randomness; times and seeds are passed as arguments. Nothing
//! here decides on a call.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod calibration;
pub mod evaluation;
pub mod friction;
pub mod plot;
mod random;
mod working_calls;
