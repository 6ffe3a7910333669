//! The screen: reads a contract adversarially and reports findings, their severity, and the
//! strength of the evidence.
//!
//! It advises and never decides on a call: a [`state::Directive`] is not a verdict of the gate, and
//! there is no conversion between them. Pure: no files, clock, network or randomness; times are
//! passed as arguments.
//!
//! ```compile_fail
//! let verdict: gate::verdict::Verdict = screen::state::Directive::Allow.into();
//! ```
#![forbid(unsafe_code)]

mod word;

pub mod dimension;
pub mod finding;
pub mod grade;
pub mod limits;
pub mod quality;
pub mod reading;
pub mod state;
pub mod verdict;
